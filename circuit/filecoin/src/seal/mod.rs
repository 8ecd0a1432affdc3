//! Really sealed test sectors: random data through all sealing phases, and requests about it.
//!
//! Everything is done by storage-proofs, so sealing takes the time and the space that it takes: tens
//! of milliseconds for 2 KiB, minutes for 512 MiB. Sectors of 32 and 64 GiB take hours and hundreds
//! of gigabytes and are left to sealing software; [`crate::fabricate`] makes requests of their size.
//! storage-proofs also keeps a graph cache per sector size under `FIL_PROOFS_PARENT_CACHE` (default
//! `/var/tmp/filecoin-parents`).

mod post;
mod update;

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use filecoin_proofs::constants::SectorShapeBase;
use filecoin_proofs::{
    PieceInfo, PoRepConfig, SealCommitPhase1Output, SealPreCommitOutput, UnpaddedBytesAmount,
    VanillaSealProof, add_piece, generate_synth_proofs, seal_commit_phase1, seal_pre_commit_phase1,
    seal_pre_commit_phase2,
};
use filecoin_proofs_api::RegisteredSealProof;
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use serde::Serialize;

use crate::error::RequestError;
use crate::guard::guarded;
use crate::kind::{ProofKind, SectorSize};
use crate::miner::prover_id;
use crate::registered::{SealVariant, seal_proof};
use crate::request::ProofRequest;

pub use post::window_of;

/// The tree shape of all sectors that are sealed here.
type Tree = SectorShapeBase;

/// What to seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealOptions {
    /// The sector's size.
    pub size: SectorSize,
    /// The seal proof's variant.
    pub variant: SealVariant,
    /// The miner's actor id.
    pub miner_id: u64,
    /// The sector's number.
    pub sector_number: u64,
    /// Where the data, the ticket and all other randomness come from.
    pub seed: u64,
}

impl SealOptions {
    /// Sector 1 of miner 1000, current variant.
    pub fn new(size: SectorSize) -> Self {
        Self {
            size,
            variant: SealVariant::V1_1,
            miner_id: 1000,
            sector_number: 1,
            seed: 0,
        }
    }

    /// The randomness of one use; equal options and equal use give equal randomness.
    fn rng(&self, usage: u64) -> ChaCha20Rng {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        seed[8..16].copy_from_slice(&self.sector_number.to_le_bytes());
        let mut rng = ChaCha20Rng::from_seed(seed);
        rng.set_stream(usage);
        rng
    }

    /// 32 random bytes that are a field element, as beacon randomness is before it is used.
    fn randomness(&self, usage: u64) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.rng(usage).fill_bytes(&mut bytes);
        bytes[31] &= 0x3f;
        bytes
    }
}

/// The streams of [`SealOptions::rng`].
mod usage {
    pub(super) const DATA: u64 = 1;
    pub(super) const TICKET: u64 = 2;
    pub(super) const SEED: u64 = 3;
    pub(super) const RANDOMNESS: u64 = 4;
    pub(super) const NEW_DATA: u64 = 5;
}

/// A sealed sector in a folder: the replica `sealed`, its trees in `cache`, the data in `staged`.
#[derive(Clone, Debug)]
pub struct SealedSector {
    options: SealOptions,
    dir: PathBuf,
    comm_r: [u8; 32],
    comm_d: [u8; 32],
    c1: Vec<u8>,
}

/// Seals a sector of random data into `dir`, which is created and must not hold a sector already.
///
/// # Errors
/// The sector is of 32 or 64 GiB, the folder cannot be written, or storage-proofs fails.
pub fn seal(dir: &Path, options: SealOptions) -> Result<SealedSector, RequestError> {
    if options.size > SectorSize::Mib512 {
        return Err(RequestError::mismatch(
            "sector size to seal",
            "2KiB, 8MiB or 512MiB (larger sectors can be fabricated)",
            options.size,
        ));
    }
    let cache = dir.join("cache");
    std::fs::create_dir_all(&cache).map_err(RequestError::io(&cache))?;
    let registered = seal_proof(options.size, options.variant);
    let config = registered.as_v1_config();
    let piece = write_piece(dir, options.rng(usage::DATA), &config)?;
    let sealed = dir.join("sealed");
    File::create_new(&sealed).map_err(RequestError::io(&sealed))?;
    let (prover, sector) = (prover_id(options.miner_id), options.sector_number.into());
    let ticket = options.randomness(usage::TICKET);
    let pieces = [piece];
    let labels = guarded("sealing, phase 1 of the pre-commit", || {
        let staged = dir.join("staged");
        seal_pre_commit_phase1::<_, _, _, Tree>(
            &config, &cache, &staged, &sealed, prover, sector, ticket, &pieces,
        )
    })?;
    let commitments = guarded("sealing, phase 2 of the pre-commit", || {
        seal_pre_commit_phase2::<_, _, Tree>(&config, labels, &cache, &sealed)
    })?;
    if options.variant == SealVariant::Synthetic {
        guarded("generating the synthetic proofs", || {
            let commitments = commitments.clone();
            generate_synth_proofs::<_, Tree>(
                &config,
                &cache,
                &sealed,
                prover,
                sector,
                ticket,
                commitments,
                &pieces,
            )
        })?;
    }
    let SealPreCommitOutput { comm_r, comm_d } = commitments.clone();
    let output = guarded("sealing, phase 1 of the commit", || {
        let seed = options.randomness(usage::SEED);
        seal_commit_phase1::<_, Tree>(
            &config,
            &cache,
            &sealed,
            prover,
            sector,
            ticket,
            seed,
            commitments,
            &pieces,
        )
    })?;
    Ok(SealedSector {
        options,
        dir: dir.to_owned(),
        comm_r,
        comm_d,
        c1: c1_json(options.size, registered, &output)?,
    })
}

/// Writes random data that fills a sector, as the raw `piece` and the padded `staged` file.
fn write_piece(
    dir: &Path,
    mut rng: ChaCha20Rng,
    config: &PoRepConfig,
) -> Result<PieceInfo, RequestError> {
    let size: UnpaddedBytesAmount = config.unpadded_bytes_amount();
    let path = dir.join("piece");
    let mut left = u64::from(size) as usize;
    let mut file = File::create(&path).map_err(RequestError::io(&path))?;
    let mut block = vec![0; left.min(1 << 20)];
    while left > 0 {
        let block = &mut block[..left.min(1 << 20)];
        rng.fill_bytes(block);
        file.write_all(block).map_err(RequestError::io(&path))?;
        left -= block.len();
    }
    let source = File::open(&path).map_err(RequestError::io(&path))?;
    let staged = dir.join("staged");
    let target = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&staged)
        .map_err(RequestError::io(&staged))?;
    guarded("padding the data", || add_piece(source, target, size, &[])).map(|(info, _)| info)
}

/// The first phase's output with storage-proofs' field names and order.
#[derive(Serialize)]
struct Phase1Output<'a> {
    registered_proof: RegisteredSealProof,
    vanilla_proofs: std::collections::BTreeMap<String, &'a Vec<Vec<VanillaSealProof<Tree>>>>,
    comm_r: [u8; 32],
    comm_d: [u8; 32],
    replica_id: filecoin_hashers::poseidon::PoseidonDomain,
    seed: [u8; 32],
    ticket: [u8; 32],
}

fn c1_json(
    size: SectorSize,
    registered_proof: RegisteredSealProof,
    output: &SealCommitPhase1Output<Tree>,
) -> Result<Vec<u8>, RequestError> {
    let variant = format!("StackedDrg{}V1", size.registered_name());
    serde_json::to_vec(&Phase1Output {
        registered_proof,
        vanilla_proofs: [(variant, &output.vanilla_proofs)].into(),
        comm_r: output.comm_r,
        comm_d: output.comm_d,
        replica_id: output.replica_id,
        seed: output.seed,
        ticket: output.ticket,
    })
    .map_err(|e| RequestError::json("C1", &e))
}

impl SealedSector {
    /// What was sealed.
    pub fn options(&self) -> SealOptions {
        self.options
    }

    /// The folder that holds the replica `sealed` and its trees in `cache`.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The replica's commitment.
    pub fn comm_r(&self) -> [u8; 32] {
        self.comm_r
    }

    /// The data's commitment.
    pub fn comm_d(&self) -> [u8; 32] {
        self.comm_d
    }

    /// The output of the commit's first phase as JSON, bare.
    pub fn c1(&self) -> &[u8] {
        &self.c1
    }

    /// The same in the wrapper that clients send:
    /// `{"SectorNum":…,"Phase1Out":"<base64>","SectorSize":…}`.
    ///
    /// # Errors
    /// None in practice; JSON's writer has an error type.
    pub fn c1_wrapped(&self) -> Result<Vec<u8>, RequestError> {
        #[derive(Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Wrapper {
            sector_num: u64,
            phase1_out: String,
            sector_size: u64,
        }
        serde_json::to_vec(&Wrapper {
            sector_num: self.options.sector_number,
            phase1_out: STANDARD.encode(&self.c1),
            sector_size: self.options.size.bytes(),
        })
        .map_err(|e| RequestError::json("C1", &e))
    }

    /// A request of any kind about this sector, as a client would send it.
    ///
    /// An update encodes new random data into a copy of the replica under `update` in the sector's
    /// folder, once.
    ///
    /// # Errors
    /// The folder cannot be read or written, or storage-proofs fails.
    pub fn request(&self, kind: ProofKind) -> Result<ProofRequest, RequestError> {
        let mut request = match kind {
            ProofKind::Porep => ProofRequest {
                vanilla_proof: self.c1_wrapped()?,
                registered_proof: self.registered_number(),
                ..ProofRequest::new(kind)
            },
            ProofKind::Winning => post::winning(self)?,
            ProofKind::Window => window_of(&[self], 0)?,
            ProofKind::Update => update::update(self)?,
        };
        request.sector_size = self.options.size.bytes();
        request.miner_id = self.options.miner_id;
        request.sector_number = self.options.sector_number;
        Ok(request)
    }

    /// Writes `c1.json` (the wrapper) and a request file of each kind (`porep.json`, `winning.json`,
    /// `window.json`, `update.json`) into `dir`; returns the request files.
    ///
    /// # Errors
    /// The folder cannot be written, or storage-proofs fails.
    pub fn write_requests(&self, dir: &Path) -> Result<Vec<(ProofKind, PathBuf)>, RequestError> {
        std::fs::create_dir_all(dir).map_err(RequestError::io(dir))?;
        let write = |name: &str, bytes: &[u8]| {
            let path = dir.join(name);
            std::fs::write(&path, bytes).map_err(RequestError::io(&path))?;
            Ok(path)
        };
        write("c1.json", &self.c1_wrapped()?)?;
        ProofKind::ALL
            .into_iter()
            .map(|kind| {
                let request = self.request(kind)?.to_json()?;
                Ok((kind, write(&format!("{kind}.json"), &request)?))
            })
            .collect()
    }

    /// The network's number of this seal proof.
    fn registered_number(&self) -> u64 {
        seal_proof(self.options.size, self.options.variant) as u64
    }
}
