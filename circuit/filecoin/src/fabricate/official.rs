//! The official vanilla verifiers, called directly: the oracle of this folder's tests.
//!
//! Everything is read back from the bytes that clients send.

use filecoin_hashers::poseidon::PoseidonDomain;
use filecoin_hashers::sha256::{Sha256Domain, Sha256Hasher};
use filecoin_proofs::parameters::{
    public_params, window_post_public_params, winning_post_public_params,
};
use filecoin_proofs::single_partition_vanilla_proofs;
use filecoin_proofs::types::{FallbackPoStSectorProof, PoStType};
use filecoin_proofs_api::seal::{SealCommitPhase1Output, VanillaSealProof};
use storage_proofs_core::merkle::MerkleProofTrait;
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_core::sector::SectorId;
use storage_proofs_porep::stacked::{self, StackedDrg};
use storage_proofs_post::fallback::{self, FallbackPoSt, PublicSector};
use storage_proofs_update::constants::h_default;
use storage_proofs_update::{EmptySectorUpdate, PartitionProof, PublicInputs, PublicParams};

use super::shape::ReplicaTree;
use super::source::element_from_bytes;
use super::{Fabricated, PorepSector, PostSector, PostSectors, UpdateSector};
use crate::shape::by_shape;

/// Whether the official verifier of its kind accepts the sector; an error counts as a refusal.
pub(super) fn accepts(fabricated: &Fabricated) -> bool {
    match fabricated {
        Fabricated::Porep(porep) => accepts_porep(porep),
        Fabricated::Post(post) => by_shape!(post.size, Tree => accepts_post::<Tree>(post)),
        Fabricated::Update(update) => {
            by_shape!(update.size, Tree => accepts_update::<Tree>(update))
        }
    }
}

fn accepts_porep(porep: &PorepSector) -> bool {
    let output: SealCommitPhase1Output = serde_json::from_slice(&porep.c1).unwrap();
    assert_eq!((output.comm_r, output.comm_d), (porep.comm_r, porep.comm_d));
    assert_eq!((output.ticket, output.seed), (porep.ticket, porep.seed));
    match &output.vanilla_proofs {
        VanillaSealProof::StackedDrg2KiBV1(proofs) => accepts_challenges(&output, proofs),
        VanillaSealProof::StackedDrg8MiBV1(proofs) => accepts_challenges(&output, proofs),
        VanillaSealProof::StackedDrg512MiBV1(proofs) => accepts_challenges(&output, proofs),
        VanillaSealProof::StackedDrg32GiBV1(proofs) => accepts_challenges(&output, proofs),
        VanillaSealProof::StackedDrg64GiBV1(proofs) => accepts_challenges(&output, proofs),
    }
}

fn accepts_challenges<Tree: ReplicaTree>(
    output: &SealCommitPhase1Output,
    proofs: &[Vec<stacked::Proof<Tree, Sha256Hasher>>],
) -> bool {
    let config = output.registered_proof.as_v1_config();
    let parameters = public_params::<Tree>(&config).unwrap();
    let tau = stacked::Tau {
        comm_d: Sha256Domain(output.comm_d),
        comm_r: element_from_bytes(&output.comm_r).into(),
    };
    let inputs = stacked::PublicInputs {
        replica_id: output.replica_id,
        seed: Some(output.seed),
        tau: Some(tau),
        k: None,
    };
    // The verifier leaves these two paths to the circuit, apart from their ends.
    let paths_hold = proofs
        .iter()
        .flatten()
        .all(|proof| proof.comm_d_proofs.verify() && proof.comm_r_last_proof.verify());
    paths_hold
        && proofs.len() == usize::from(config.partitions)
        && StackedDrg::<Tree, Sha256Hasher>::verify_all_partitions(&parameters, &inputs, proofs)
            .unwrap()
}

fn accepts_post<Tree: ReplicaTree>(post: &PostSectors) -> bool {
    let config = post.registered_proof.as_v1_config();
    let parameters = match config.typ {
        PoStType::Winning => winning_post_public_params::<Tree>(&config),
        PoStType::Window => window_post_public_params::<Tree>(&config),
    }
    .unwrap();
    let proofs: Vec<FallbackPoStSectorProof<Tree>> = post
        .vanilla_proofs
        .iter()
        .map(|bytes| bincode::deserialize(bytes).unwrap())
        .collect();
    let mut inputs = fallback::PublicInputs {
        randomness: element_from_bytes(&post.randomness).into(),
        prover_id: element_from_bytes(&post.prover_id).into(),
        sectors: post.sectors.iter().map(public_sector).collect(),
        k: Some(post.partition as usize),
    };
    // This verifies too; a winning proof's first challenge only.
    let Ok(partition) = single_partition_vanilla_proofs(&config, &parameters, &inputs, &proofs)
    else {
        return false;
    };
    if let (PoStType::Winning, [sector]) = (config.typ, post.sectors.as_slice()) {
        // A winning proof is verified as one challenge in each of 66 copies of the sector.
        inputs.sectors = vec![public_sector(sector); parameters.sector_count];
        return FallbackPoSt::<Tree>::verify(&parameters, &inputs, &partition).unwrap();
    }
    true
}

fn public_sector(sector: &PostSector) -> PublicSector<PoseidonDomain> {
    PublicSector {
        id: SectorId::from(sector.number),
        comm_r: element_from_bytes(&sector.comm_r).into(),
    }
}

fn accepts_update<Tree: ReplicaTree>(update: &UpdateSector) -> bool {
    let parameters = PublicParams::from_sector_size(update.size.bytes());
    let proofs: Vec<PartitionProof<Tree>> = update
        .vanilla_proofs
        .iter()
        .map(|bytes| bincode::deserialize(bytes).unwrap())
        .collect();
    let inputs = PublicInputs {
        k: 0,
        comm_r_old: element_from_bytes(&update.comm_r_old).into(),
        comm_d_new: Sha256Domain(update.comm_d_new),
        comm_r_new: element_from_bytes(&update.comm_r_new).into(),
        h: h_default(parameters.sector_nodes),
    };
    EmptySectorUpdate::<Tree>::verify_all_partitions(&parameters, &inputs, &proofs).unwrap()
}
