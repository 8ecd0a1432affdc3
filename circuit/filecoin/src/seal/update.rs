//! Update requests: new data encoded into a sealed sector.

use std::fs::File;
use std::path::Path;

use filecoin_proofs::{
    EmptySectorUpdateEncoded, SectorUpdateConfig, encode_into, generate_partition_proofs,
};

use super::{SealedSector, Tree, usage, write_piece};
use crate::circuit::blank_seal_proof;
use crate::error::RequestError;
use crate::guard::guarded;
use crate::kind::ProofKind;
use crate::request::ProofRequest;

/// Encodes new random data into a copy of the replica and proves the encoding.
pub(super) fn update(sector: &SealedSector) -> Result<ProofRequest, RequestError> {
    let dir = sector.dir.join("update");
    // Whatever an earlier call left: the same data makes the same replica again.
    if dir.exists() {
        std::fs::remove_dir_all(&dir).map_err(RequestError::io(&dir))?;
    }
    let encoded = encode(sector, &dir)?;
    let proofs = guarded("opening the challenged nodes", || {
        generate_partition_proofs::<Tree>(
            update_config(sector),
            sector.comm_r,
            encoded.comm_r_new,
            encoded.comm_d_new,
            &sector.dir.join("sealed"),
            &sector.dir.join("cache"),
            &dir.join("sealed"),
            &dir.join("cache"),
        )
    })?;
    let vanilla_proofs = proofs
        .iter()
        .map(|proof| guarded("encoding the vanilla proof", || bincode::serialize(proof)))
        .collect::<Result<_, _>>()?;
    Ok(ProofRequest {
        vanilla_proofs,
        comm_r_old: sector.comm_r.to_vec(),
        comm_r_new: encoded.comm_r_new.to_vec(),
        comm_d_new: encoded.comm_d_new.to_vec(),
        ..ProofRequest::new(ProofKind::Update)
    })
}

fn update_config(sector: &SealedSector) -> SectorUpdateConfig {
    SectorUpdateConfig::from_porep_config(&blank_seal_proof(sector.options.size).as_v1_config())
}

/// Writes the new replica and its trees into `dir`.
fn encode(sector: &SealedSector, dir: &Path) -> Result<EmptySectorUpdateEncoded, RequestError> {
    let (cache, sealed) = (dir.join("cache"), dir.join("sealed"));
    std::fs::create_dir_all(&cache).map_err(RequestError::io(&cache))?;
    let config = blank_seal_proof(sector.options.size).as_v1_config();
    let piece = write_piece(dir, sector.options.rng(usage::NEW_DATA), &config)?;
    File::create(&sealed)
        .and_then(|file| file.set_len(sector.options.size.bytes()))
        .map_err(RequestError::io(&sealed))?;
    guarded("encoding new data into the replica", || {
        encode_into::<Tree>(
            &update_config(sector),
            &sealed,
            &cache,
            &sector.dir.join("sealed"),
            &sector.dir.join("cache"),
            &dir.join("staged"),
            &[piece],
        )
    })
}
