//! The fields of the wire contract's `SubmitProofRequest`, and what each proof kind makes of them.

use bincode::Options as _;
use serde::de::DeserializeOwned;
use storage_proofs_core::api_version::ApiVersion;

use super::c1::{self, C1Origin, Expected};
use super::{Request, post, update};
use crate::error::RequestError;
use crate::kind::{CircuitId, ProofKind, SectorSize};
use crate::registered::Registered;
use crate::shape::{by_shape, window_config, winning_config};

/// A proving request as a client sends it, field by field; nothing is checked yet.
///
/// As on the wire, zero and empty mean "not given". [`Request::parse`] checks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofRequest {
    /// What is to be proved.
    pub kind: ProofKind,
    /// The sector size in bytes; 0 leaves it to the proof type or to the file.
    pub sector_size: u64,
    /// The network's number of the seal, window, winning or update proof type.
    pub registered_proof: u64,
    /// The miner's actor id, e.g. 1000 for `f01000`.
    pub miner_id: u64,
    /// The sector's number (proofs of replication and updates).
    pub sector_number: u64,
    /// Proofs of replication: the commit's first phase as JSON, bare or wrapped.
    pub vanilla_proof: Vec<u8>,
    /// One bincode sector proof a sector (winning, window) or partition proof a partition (update).
    pub vanilla_proofs: Vec<Vec<u8>>,
    /// Winning and window: the 32 bytes of beacon randomness.
    pub randomness: Vec<u8>,
    /// Window: which partition of the deadline.
    pub partition_index: u32,
    /// Update: the replica's old commitment, 32 bytes or a CID.
    pub comm_r_old: Vec<u8>,
    /// Update: the replica's new commitment, 32 bytes or a CID.
    pub comm_r_new: Vec<u8>,
    /// Update: the new data's commitment, 32 bytes or a CID.
    pub comm_d_new: Vec<u8>,
}

impl ProofRequest {
    /// A request of `kind` with nothing else given.
    pub fn new(kind: ProofKind) -> Self {
        Self {
            kind,
            sector_size: 0,
            registered_proof: 0,
            miner_id: 0,
            sector_number: 0,
            vanilla_proof: Vec::new(),
            vanilla_proofs: Vec::new(),
            randomness: Vec::new(),
            partition_index: 0,
            comm_r_old: Vec::new(),
            comm_r_new: Vec::new(),
            comm_d_new: Vec::new(),
        }
    }

    /// The proof type that the number names, if one is given.
    fn registered(&self) -> Result<Option<Registered>, RequestError> {
        match self.registered_proof {
            0 => Ok(None),
            number => Registered::from_number(self.kind, number).map(Some),
        }
    }

    /// The sector size from either field that names it; both must agree.
    fn size(&self) -> Result<Option<SectorSize>, RequestError> {
        let named = self.registered()?.map(Registered::size);
        let stated = match self.sector_size {
            0 => None,
            bytes => Some(c1::sector_size("sector_size", bytes)?),
        };
        if let (Some(stated), Some(named)) = (stated, named) {
            c1::check_size("registered_proof", stated, named)?;
        }
        Ok(stated.or(named))
    }

    /// The sector size, for the kinds whose proofs do not name it.
    fn known_size(&self) -> Result<SectorSize, RequestError> {
        match self.size()? {
            Some(size) => Ok(size),
            // Clients that share proofs state an update's size by its proof type alone, and the
            // number of the smallest is the same zero as "not given".
            None if self.kind == ProofKind::Update => Ok(SectorSize::Kib2),
            None => Err(self.missing("sector_size")),
        }
    }

    fn missing(&self, field: &'static str) -> RequestError {
        RequestError::Missing {
            field,
            kind: self.kind,
        }
    }
}

/// Parses and checks a request of any kind.
pub(super) fn parse(request: &ProofRequest) -> Result<Request, RequestError> {
    match request.kind {
        ProofKind::Porep => parse_porep(request),
        ProofKind::Winning | ProofKind::Window => parse_post(request),
        ProofKind::Update => parse_update(request),
    }
}

fn parse_porep(request: &ProofRequest) -> Result<Request, RequestError> {
    if request.vanilla_proof.is_empty() {
        return Err(request.missing("vanilla_proof"));
    }
    let variant = request
        .registered()?
        .and_then(|registered| match registered {
            Registered::Seal(_, variant) => Some(variant),
            _ => None,
        });
    let origin = C1Origin {
        miner_id: request.miner_id,
        sector_number: request.sector_number,
    };
    let expected = Expected {
        size: request.size()?,
        variant,
        // Actor 0 is the system's own, never a miner.
        origin: Some(origin).filter(|origin| origin.miner_id != 0),
    };
    c1::parse(&request.vanilla_proof, expected)
}

fn parse_post(request: &ProofRequest) -> Result<Request, RequestError> {
    let size = request.known_size()?;
    let configs = match (request.kind, request.registered()?) {
        (ProofKind::Winning, _) => vec![winning_config(size)],
        (_, Some(Registered::Window(_, version))) => vec![window_config(size, version)?],
        // The rule in use first; the older one for proofs of old networks.
        _ => vec![
            window_config(size, ApiVersion::V1_2_0)?,
            window_config(size, ApiVersion::V1_0_0)?,
        ],
    };
    let fields = post::Fields {
        size,
        randomness: fixed("randomness", &request.randomness)?,
        miner_id: request.miner_id,
        partition_index: request.partition_index as usize,
        vanilla_proofs: vanilla_proofs(request)?,
    };
    let circuit = CircuitId::new(request.kind, size);
    by_shape!(size, Tree => Ok(Request::new(circuit, post::PostJob::<Tree>::check(&fields, &configs)?)))
}

fn parse_update(request: &ProofRequest) -> Result<Request, RequestError> {
    let size = request.known_size()?;
    let fields = update::Fields {
        size,
        comm_r_old: commitment_bytes(request, "comm_r_old", &request.comm_r_old, &SEALED_CID)?,
        comm_r_new: commitment_bytes(request, "comm_r_new", &request.comm_r_new, &SEALED_CID)?,
        comm_d_new: commitment_bytes(request, "comm_d_new", &request.comm_d_new, &UNSEALED_CID)?,
        vanilla_proofs: vanilla_proofs(request)?,
    };
    let circuit = CircuitId::new(ProofKind::Update, size);
    by_shape!(size, Tree => Ok(Request::new(circuit, update::UpdateJob::<Tree>::check(&fields)?)))
}

fn vanilla_proofs(request: &ProofRequest) -> Result<&[Vec<u8>], RequestError> {
    if request.vanilla_proofs.is_empty() {
        return Err(request.missing("vanilla_proofs"));
    }
    Ok(&request.vanilla_proofs)
}

/// A field of exactly `N` bytes.
fn fixed<const N: usize>(field: &str, bytes: &[u8]) -> Result<[u8; N], RequestError> {
    bytes.try_into().map_err(|_| RequestError::Length {
        field: field.to_owned(),
        expected: N,
        found: bytes.len(),
    })
}

/// What precedes the 32 bytes in the CID of a sealed sector: CID version 1, codec
/// `fil-commitment-sealed`, hash `poseidon-bls12_381-a2-fc1`, length 32.
const SEALED_CID: [u8; 8] = [0x01, 0x82, 0xe2, 0x03, 0x81, 0xe8, 0x02, 0x20];

/// What precedes the 32 bytes in the CID of unsealed data: CID version 1, codec
/// `fil-commitment-unsealed`, hash `sha2-256-trunc254-padded`, length 32.
const UNSEALED_CID: [u8; 7] = [0x01, 0x81, 0xe2, 0x03, 0x92, 0x20, 0x20];

/// A commitment given as its 32 bytes or as the CID that holds them.
fn commitment_bytes(
    request: &ProofRequest,
    field: &'static str,
    bytes: &[u8],
    cid_prefix: &[u8],
) -> Result<[u8; 32], RequestError> {
    if bytes.is_empty() {
        return Err(request.missing(field));
    }
    fixed(
        field,
        bytes
            .strip_prefix(cid_prefix)
            .filter(|rest| rest.len() == 32)
            .unwrap_or(bytes),
    )
}

/// Decodes one bincode value that fills `bytes` exactly.
pub(super) fn decode<V: DeserializeOwned>(
    field: &str,
    expected: &'static str,
    bytes: &[u8],
) -> Result<V, RequestError> {
    let mut rest = bytes;
    let value = bincode::options()
        .with_fixint_encoding()
        .allow_trailing_bytes()
        // A length prefix cannot make the decoder reserve more than the input could hold.
        .with_limit(bytes.len() as u64)
        .deserialize_from(&mut rest)
        .map_err(|error| RequestError::Bincode {
            field: field.to_owned(),
            expected,
            length: bytes.len(),
            message: format!("at offset {}: {error}", bytes.len() - rest.len()),
        })?;
    if rest.is_empty() {
        return Ok(value);
    }
    Err(RequestError::TrailingBytes {
        field: field.to_owned(),
        expected,
        offset: bytes.len() - rest.len(),
        found: bytes.len(),
    })
}
