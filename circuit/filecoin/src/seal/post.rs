//! Space-time requests about sealed sectors.

use filecoin_proofs::{
    PoStConfig, PrivateReplicaInfo, generate_fallback_sector_challenges,
    generate_single_vanilla_proof,
};
use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_core::sector::SectorId;

use super::{SealedSector, Tree, usage};
use crate::error::RequestError;
use crate::guard::guarded;
use crate::kind::ProofKind;
use crate::miner::prover_id;
use crate::request::ProofRequest;
use crate::shape::{window_config, winning_config};

/// A winning request about one sector.
pub(super) fn winning(sector: &SealedSector) -> Result<ProofRequest, RequestError> {
    let config = winning_config(sector.options.size);
    request(ProofKind::Winning, &config, &[sector], 0)
}

/// A window request about a partition of several sectors of one miner and size, in ascending order
/// of their numbers; `partition_index` is the partition's place in its deadline.
///
/// # Errors
/// There is no sector, the sectors differ in size or miner, or storage-proofs fails.
pub fn window_of(
    sectors: &[&SealedSector],
    partition_index: u32,
) -> Result<ProofRequest, RequestError> {
    let Some(first) = sectors.first() else {
        return Err(RequestError::Count {
            field: "sectors".to_owned(),
            expected: "at least 1".to_owned(),
            found: 0,
        });
    };
    let size = first.options.size;
    for sector in sectors {
        let found = sector.options;
        if (found.size, found.miner_id) != (size, first.options.miner_id) {
            return Err(RequestError::mismatch(
                format!("sector {}", found.sector_number),
                format!("{size} of miner {}", first.options.miner_id),
                format!("{} of miner {}", found.size, found.miner_id),
            ));
        }
    }
    let config = window_config(size, ApiVersion::V1_2_0)?;
    request(ProofKind::Window, &config, sectors, partition_index)
}

fn request(
    kind: ProofKind,
    config: &PoStConfig,
    sectors: &[&SealedSector],
    partition_index: u32,
) -> Result<ProofRequest, RequestError> {
    let options = sectors[0].options;
    let randomness = options.randomness(usage::RANDOMNESS);
    let ids: Vec<SectorId> = sectors
        .iter()
        .map(|s| s.options.sector_number.into())
        .collect();
    let challenges = guarded("deriving the challenges", || {
        let prover = prover_id(options.miner_id);
        generate_fallback_sector_challenges::<Tree>(config, &randomness, &ids, prover)
    })?;
    let vanilla_proofs = sectors
        .iter()
        .zip(&ids)
        .map(|(sector, id)| {
            let proof = guarded("opening the challenged nodes", || {
                let cache = sector.dir.join("cache");
                let replica = PrivateReplicaInfo::<Tree>::new(
                    sector.dir.join("sealed"),
                    sector.comm_r,
                    cache,
                )?;
                generate_single_vanilla_proof::<Tree>(config, *id, &replica, &challenges[id])
            })?;
            guarded("encoding the vanilla proof", || bincode::serialize(&proof))
        })
        .collect::<Result<_, _>>()?;
    Ok(ProofRequest {
        sector_size: options.size.bytes(),
        miner_id: options.miner_id,
        randomness: randomness.to_vec(),
        partition_index,
        vanilla_proofs,
        ..ProofRequest::new(kind)
    })
}
