//! A satisfying empty-sector update without sectors.
//!
//! An update encodes new data into an old replica: `new = old + data * rho`, where `rho` is a hash of `phi` and the
//! top bits of the node's index, and `phi` is a hash of the data commitment and the old replica commitment. The
//! challenges depend on the new replica commitment, so all of the new tree must exist. With the old replica and the
//! data in the pattern of [`PatternTree`], the new replica has that pattern too, with one band for each `rho`: a few
//! ten thousand hashes at 32 GiB.

use blstrs::Scalar;
use filecoin_hashers::HashFunction;
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonFunction};
use filecoin_hashers::sha256::Sha256Domain;
use filecoin_proofs_api::RegisteredUpdateProof;
use rayon::prelude::*;
use storage_proofs_update::constants::h_default;
use storage_proofs_update::{ChallengeProof, Challenges, PartitionProof, PublicParams, phi, rho};

use super::data::{data_proof, data_tree};
use super::pattern::{CLASSES, PatternTree};
use super::shape::{ReplicaProof, ReplicaTree, arity_bits, hash_children, replica_proof};
use super::source::{Source, element_from_bytes};
use super::{FabricateError, Options, domain_bytes};
use crate::shape::by_shape;
use crate::{ProofKind, ProofRequest, SectorSize};

/// A fabricated empty-sector update, as clients send it.
#[derive(Clone, Debug)]
pub struct UpdateSector {
    /// The sector size.
    pub size: SectorSize,
    /// The update proof type.
    pub registered_proof: RegisteredUpdateProof,
    /// The number of the miner.
    pub miner: u64,
    /// The number of the sector.
    pub sector: u64,
    /// The replica commitment before the update, a little-endian field element.
    pub comm_r_old: [u8; 32],
    /// The replica commitment after the update, a little-endian field element.
    pub comm_r_new: [u8; 32],
    /// The commitment of the new data, a little-endian field element.
    pub comm_d_new: [u8; 32],
    /// One bincode `PartitionProof` for each partition, in order.
    pub vanilla_proofs: Vec<Vec<u8>>,
}

impl From<UpdateSector> for ProofRequest {
    fn from(update: UpdateSector) -> Self {
        ProofRequest {
            sector_size: update.size.bytes(),
            registered_proof: update.registered_proof as u64,
            miner_id: update.miner,
            sector_number: update.sector,
            vanilla_proofs: update.vanilla_proofs,
            comm_r_old: update.comm_r_old.to_vec(),
            comm_r_new: update.comm_r_new.to_vec(),
            comm_d_new: update.comm_d_new.to_vec(),
            ..ProofRequest::new(ProofKind::Update)
        }
    }
}

/// Fabricates all partitions of an empty-sector update of `size`.
pub fn update(size: SectorSize, options: &Options) -> Result<UpdateSector, FabricateError> {
    use RegisteredUpdateProof::*;
    let registered_proof = match size {
        SectorSize::Kib2 => StackedDrg2KiBV1,
        SectorSize::Mib8 => StackedDrg8MiBV1,
        SectorSize::Mib512 => StackedDrg512MiBV1,
        SectorSize::Gib32 => StackedDrg32GiBV1,
        SectorSize::Gib64 => StackedDrg64GiBV1,
    };
    by_shape!(size, Tree => build::<Tree>(size, registered_proof, options))
}

/// The three trees of an update and what ties them together.
struct Trees {
    data: PatternTree<Sha256Domain>,
    old: PatternTree<Scalar>,
    new: PatternTree<Scalar>,
    comm_c: PoseidonDomain,
}

impl Trees {
    fn build<Tree: ReplicaTree>(size: SectorSize, source: &Source) -> Result<Self, FabricateError> {
        let shape = arity_bits::<Tree>(size.nodes() as u64)?;
        let data = data_tree(size, &source.child("data", 0))?;
        let replica = source.child("old replica", 0);
        let pattern: [Scalar; CLASSES] =
            std::array::from_fn(|class| replica.element(0, class as u64));
        let old = PatternTree::build(shape.clone(), vec![pattern], hash_children)?;
        let comm_c: PoseidonDomain = source.child("comm_c", 0).element(0, 0).into();
        let phi = phi(&data.root(), &commit(comm_c, &old));
        let bands = (0..1u32 << h_default(size.nodes()))
            .into_par_iter()
            .map(|band| {
                let rho = rho(&phi, band);
                // Below 8, a leaf index is its own class.
                std::array::from_fn(|class| {
                    pattern[class] + element_from_bytes(&data.leaf(class as u64).0) * rho
                })
            })
            .collect();
        Ok(Trees {
            new: PatternTree::build(shape, bands, hash_children)?,
            data,
            old,
            comm_c,
        })
    }

    fn partition_proof<Tree: ReplicaTree>(
        &self,
        parameters: &PublicParams,
        comm_r_new: PoseidonDomain,
        partition: usize,
    ) -> PartitionProof<Tree> {
        let apex_height = parameters.challenge_bit_len
            - parameters.partition_bit_len
            - parameters.apex_leaf_bit_len;
        let apex_first = (partition * parameters.apex_leaf_count) as u64;
        PartitionProof {
            comm_c: self.comm_c,
            apex_leafs: (apex_first..apex_first + parameters.apex_leaf_count as u64)
                .map(|leaf| self.data.node(apex_height, leaf))
                .collect(),
            challenge_proofs: Challenges::new(parameters.sector_nodes, comm_r_new, partition)
                .map(|leaf| ChallengeProof {
                    proof_r_old: opening::<Tree>(&self.old, u64::from(leaf)),
                    proof_d_new: data_proof(&self.data, u64::from(leaf)),
                    proof_r_new: opening::<Tree>(&self.new, u64::from(leaf)),
                })
                .collect(),
        }
    }
}

/// The replica commitment over a replica tree.
fn commit(comm_c: PoseidonDomain, replica: &PatternTree<Scalar>) -> PoseidonDomain {
    PoseidonFunction::hash2(&comm_c, &replica.root().into())
}

fn opening<Tree: ReplicaTree>(tree: &PatternTree<Scalar>, leaf: u64) -> ReplicaProof<Tree> {
    replica_proof::<Tree>(tree.leaf(leaf), tree.root(), tree.path(leaf))
}

fn build<Tree: ReplicaTree>(
    size: SectorSize,
    registered_proof: RegisteredUpdateProof,
    options: &Options,
) -> Result<UpdateSector, FabricateError> {
    let source = Source::new(options.seed).child("update", options.sector);
    let trees = Trees::build::<Tree>(size, &source)?;
    let parameters = PublicParams::from_sector_size(size.bytes());
    let comm_r_new = commit(trees.comm_c, &trees.new);
    let vanilla_proofs = (0..parameters.partition_count)
        .into_par_iter()
        .map(|partition| {
            Ok(bincode::serialize(&trees.partition_proof::<Tree>(
                &parameters,
                comm_r_new,
                partition,
            ))?)
        })
        .collect::<Result<_, FabricateError>>()?;
    Ok(UpdateSector {
        size,
        registered_proof,
        miner: options.miner,
        sector: options.sector,
        comm_r_old: domain_bytes(commit(trees.comm_c, &trees.old)),
        comm_r_new: domain_bytes(comm_r_new),
        comm_d_new: trees.data.root().0,
        vanilla_proofs,
    })
}
