//! Requests as files: one JSON document with the wire contract's field names, bytes in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::c1::{self, C1Origin, Expected};
use super::{ProofRequest, Request};
use crate::error::RequestError;
use crate::kind::{ProofKind, SectorSize};

/// The document. Absent fields are zero or empty, as on the wire.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    kind: String,
    /// A number of bytes or a name such as `32GiB`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    sector_size: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    registered_proof: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    miner_id: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    sector_number: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    partition_index: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    randomness: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    comm_r_old: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    comm_r_new: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    comm_d_new: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    vanilla_proof: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    vanilla_proofs: Vec<String>,
}

fn is_zero<N: PartialEq + From<u8>>(number: &N) -> bool {
    *number == N::from(0)
}

impl ProofRequest {
    /// The request as a JSON document: this struct's field names, `kind` and `sector_size` by name,
    /// bytes in base64. [`Request::open`] reads it back.
    ///
    /// # Errors
    /// The sector size is neither 0 nor a published one.
    pub fn to_json(&self) -> Result<Vec<u8>, RequestError> {
        let size = match self.sector_size {
            0 => String::new(),
            bytes => c1::sector_size("sector_size", bytes)?.to_string(),
        };
        let document = Document {
            kind: self.kind.to_string(),
            sector_size: size,
            registered_proof: self.registered_proof,
            miner_id: self.miner_id,
            sector_number: self.sector_number,
            partition_index: self.partition_index,
            randomness: STANDARD.encode(&self.randomness),
            comm_r_old: STANDARD.encode(&self.comm_r_old),
            comm_r_new: STANDARD.encode(&self.comm_r_new),
            comm_d_new: STANDARD.encode(&self.comm_d_new),
            vanilla_proof: STANDARD.encode(&self.vanilla_proof),
            vanilla_proofs: self
                .vanilla_proofs
                .iter()
                .map(|p| STANDARD.encode(p))
                .collect(),
        };
        serde_json::to_vec(&document).map_err(|e| RequestError::json("request", &e))
    }

    /// Reads the document that [`ProofRequest::to_json`] writes.
    ///
    /// # Errors
    /// The bytes are not such a document: the error names the field.
    pub fn from_json(bytes: &[u8]) -> Result<Self, RequestError> {
        let document: Document =
            serde_json::from_slice(bytes).map_err(|e| RequestError::json("request", &e))?;
        let name = |field| move |source| RequestError::Name { field, source };
        let kind: ProofKind = document.kind.parse().map_err(name("kind"))?;
        let sector_size = match document.sector_size.as_str() {
            "" => 0,
            text => text
                .parse::<SectorSize>()
                .map_err(name("sector_size"))?
                .bytes(),
        };
        let proofs = document.vanilla_proofs.iter().enumerate();
        Ok(Self {
            kind,
            sector_size,
            registered_proof: document.registered_proof,
            miner_id: document.miner_id,
            sector_number: document.sector_number,
            partition_index: document.partition_index,
            randomness: bytes_of("randomness", &document.randomness)?,
            comm_r_old: bytes_of("comm_r_old", &document.comm_r_old)?,
            comm_r_new: bytes_of("comm_r_new", &document.comm_r_new)?,
            comm_d_new: bytes_of("comm_d_new", &document.comm_d_new)?,
            vanilla_proof: bytes_of("vanilla_proof", &document.vanilla_proof)?,
            vanilla_proofs: proofs
                .map(|(i, text)| bytes_of(&format!("vanilla_proofs[{i}]"), text))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// Decodes a base64 field.
fn bytes_of(field: &str, text: &str) -> Result<Vec<u8>, RequestError> {
    STANDARD.decode(text).map_err(|e| RequestError::Base64 {
        field: field.to_owned(),
        message: e.to_string(),
    })
}

/// Parses a file's contents in any of the formats.
pub(super) fn parse(bytes: &[u8]) -> Result<Request, RequestError> {
    let keys = c1::wrapper(bytes)?;
    if keys.kind.is_some() {
        return Request::parse(&ProofRequest::from_json(bytes)?);
    }
    c1::parse_document(bytes, keys, Expected::default())
}

/// Parses a file's contents in any of the formats, for the sector of a known miner.
pub(super) fn parse_of(bytes: &[u8], miner_id: u64) -> Result<Request, RequestError> {
    let keys = c1::wrapper(bytes)?;
    if keys.kind.is_some() {
        return Request::parse(&ProofRequest {
            miner_id,
            ..ProofRequest::from_json(bytes)?
        });
    }
    let Some(sector_number) = keys.sector_number else {
        return Err(RequestError::Missing {
            field: "SectorNum",
            kind: ProofKind::Porep,
        });
    };
    let origin = C1Origin {
        miner_id,
        sector_number,
    };
    Request::from_c1_of(bytes, origin)
}
