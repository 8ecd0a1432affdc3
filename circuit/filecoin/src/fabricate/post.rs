//! Satisfying proofs of space-time without sectors.
//!
//! The challenged leaves follow from the randomness, the number of the sector and the index of the challenge. None
//! depends on the replica, so a sparse replica tree over the challenged leaves is all that a sector needs.

use std::collections::BTreeMap;

use blstrs::Scalar;
use filecoin_hashers::HashFunction;
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonFunction};
use filecoin_proofs::types::{FallbackPoStSectorProof, PoStConfig, PoStType};
use filecoin_proofs_api::RegisteredPoStProof;
use rayon::prelude::*;
use storage_proofs_core::sector::SectorId;
use storage_proofs_post::fallback::{
    self, SectorProof, generate_leaf_challenge, get_challenge_index,
};

use super::shape::ReplicaTree;
use super::source::{Source, element_from_bytes};
use super::sparse::SparseTree;
use super::{FabricateError, Options, domain_bytes};
use crate::miner::prover_id;
use crate::shape::by_shape;
use crate::{ProofKind, ProofRequest, SectorSize};

/// Fabricated proofs of space-time: one partition (window) or one sector (winning), as clients send them.
#[derive(Clone, Debug)]
pub struct PostSectors {
    /// The sector size.
    pub size: SectorSize,
    /// The proof type; it says whether this is a winning or a window proof, and the version.
    pub registered_proof: RegisteredPoStProof,
    /// The number of the miner.
    pub miner: u64,
    /// The miner's address as the verifiers take it.
    pub prover_id: [u8; 32],
    /// The randomness of the challenges, a little-endian field element.
    pub randomness: [u8; 32],
    /// The index of the partition in its deadline; 0 for a winning proof.
    pub partition: u32,
    /// The sectors, by ascending number.
    pub sectors: Vec<PostSector>,
    /// One bincode `FallbackPoStSectorProof` for each sector, in the same order.
    pub vanilla_proofs: Vec<Vec<u8>>,
}

/// What the public knows about a sector under a proof of space-time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostSector {
    /// The number of the sector.
    pub number: u64,
    /// The replica commitment, a little-endian field element.
    pub comm_r: [u8; 32],
}

impl From<PostSectors> for ProofRequest {
    fn from(post: PostSectors) -> Self {
        let kind = match post.registered_proof.as_v1_config().typ {
            PoStType::Winning => ProofKind::Winning,
            PoStType::Window => ProofKind::Window,
        };
        ProofRequest {
            sector_size: post.size.bytes(),
            registered_proof: post.registered_proof as u64,
            miner_id: post.miner,
            randomness: post.randomness.to_vec(),
            partition_index: post.partition,
            vanilla_proofs: post.vanilla_proofs,
            ..ProofRequest::new(kind)
        }
    }
}

/// The number of sectors in a full window partition of this sector size.
pub fn window_sectors(size: SectorSize) -> usize {
    window_proof(size).as_v1_config().sector_count
}

/// Fabricates the sector of a WinningPoSt of `size`.
pub fn winning(size: SectorSize, options: &Options) -> Result<PostSectors, FabricateError> {
    use RegisteredPoStProof::*;
    let registered_proof = match size {
        SectorSize::Kib2 => StackedDrgWinning2KiBV1,
        SectorSize::Mib8 => StackedDrgWinning8MiBV1,
        SectorSize::Mib512 => StackedDrgWinning512MiBV1,
        SectorSize::Gib32 => StackedDrgWinning32GiBV1,
        SectorSize::Gib64 => StackedDrgWinning64GiBV1,
    };
    by_shape!(size, Tree => build::<Tree>(size, registered_proof, 1, 0, options))
}

/// Fabricates the sectors of one partition of a WindowPoSt of `size`, of the version whose challenges do not depend
/// on a sector's place in the deadline (V1_2).
///
/// The number of sectors and the partition's index are taken from the options.
pub fn window(size: SectorSize, options: &Options) -> Result<PostSectors, FabricateError> {
    let full = window_sectors(size);
    let count = options.window_sectors.unwrap_or(full);
    if count == 0 || count > full {
        return Err(FabricateError::Option {
            option: "window sectors",
            expected: format!("1 to {full}, the sectors of a {size} partition"),
            found: count.to_string(),
        });
    }
    let (proof, partition) = (window_proof(size), options.window_partition);
    by_shape!(size, Tree => build::<Tree>(size, proof, count, partition, options))
}

fn window_proof(size: SectorSize) -> RegisteredPoStProof {
    use RegisteredPoStProof::*;
    match size {
        SectorSize::Kib2 => StackedDrgWindow2KiBV1_2,
        SectorSize::Mib8 => StackedDrgWindow8MiBV1_2,
        SectorSize::Mib512 => StackedDrgWindow512MiBV1_2,
        SectorSize::Gib32 => StackedDrgWindow32GiBV1_2,
        SectorSize::Gib64 => StackedDrgWindow64GiBV1_2,
    }
}

fn build<Tree: ReplicaTree>(
    size: SectorSize,
    registered_proof: RegisteredPoStProof,
    count: usize,
    partition: u32,
    options: &Options,
) -> Result<PostSectors, FabricateError> {
    let source = Source::new(options.seed).child("post", partition.into());
    let config = registered_proof.as_v1_config();
    let randomness = source.element_bytes("randomness");
    let proofs: Vec<(PostSector, Vec<u8>)> = (0..count)
        .into_par_iter()
        .map(|index| {
            let number = options.sector + index as u64;
            let challenges = challenges(
                &config,
                &randomness,
                number,
                partition as usize * config.sector_count + index,
            );
            let proof =
                sector_proof::<Tree>(size, number, &challenges, &source.child("sector", number))?;
            let sector = PostSector {
                number,
                comm_r: domain_bytes(proof.comm_r),
            };
            Ok((sector, bincode::serialize(&proof)?))
        })
        .collect::<Result<_, FabricateError>>()?;
    let (sectors, vanilla_proofs) = proofs.into_iter().unzip();
    let (miner, prover_id) = (options.miner, prover_id(options.miner));
    Ok(PostSectors {
        size,
        registered_proof,
        miner,
        prover_id,
        randomness,
        partition,
        sectors,
        vanilla_proofs,
    })
}

/// The challenged leaves of the sector that stands at `index` in its deadline.
fn challenges(config: &PoStConfig, randomness: &[u8; 32], number: u64, index: usize) -> Vec<u64> {
    let parameters = fallback::PublicParams {
        sector_size: config.sector_size.into(),
        challenge_count: config.challenge_count,
        sector_count: config.sector_count,
        api_version: config.api_version,
    };
    let randomness: PoseidonDomain = element_from_bytes(randomness).into();
    (0..config.challenge_count)
        .map(|challenge| {
            let challenge =
                get_challenge_index(config.api_version, index, config.challenge_count, challenge);
            generate_leaf_challenge(&parameters, randomness, number, challenge)
        })
        .collect()
}

/// The vanilla proof of one sector for these challenged leaves.
fn sector_proof<Tree: ReplicaTree>(
    size: SectorSize,
    number: u64,
    challenges: &[u64],
    source: &Source,
) -> Result<FallbackPoStSectorProof<Tree>, FabricateError> {
    let replica = source.child("replica", 0);
    let opened: BTreeMap<u64, Scalar> = challenges
        .iter()
        .map(|leaf| (*leaf, replica.element(0, *leaf)))
        .collect();
    let tree = SparseTree::build::<Tree>(
        size.nodes() as u64,
        &opened,
        &source.child("replica tree", 0),
    )?;
    let comm_c: PoseidonDomain = source.child("comm_c", 0).element(0, 0).into();
    let comm_r_last: PoseidonDomain = tree.root().into();
    let inclusion_proofs = challenges
        .iter()
        .map(|leaf| tree.proof::<Tree>(*leaf))
        .collect::<Result<_, _>>()?;
    Ok(FallbackPoStSectorProof {
        sector_id: SectorId::from(number),
        comm_r: PoseidonFunction::hash2(&comm_c, &comm_r_last),
        vanilla_proof: fallback::Proof {
            sectors: vec![SectorProof {
                inclusion_proofs,
                comm_c,
                comm_r_last,
            }],
        },
    })
}
