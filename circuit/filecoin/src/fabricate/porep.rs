//! A satisfying PoRep without sealing.
//!
//! The circuit and the vanilla verifier look at the challenged nodes, at the columns of their parents and at Merkle
//! paths. They recompute the labels of the challenged nodes only: a parent's labels are as good as random. So the
//! order is: data tree (any leaf can be opened) → data commitment → replica id → challenges (interactive PoRep: they
//! do not depend on the replica) → free columns of the parents → labels of the challenged nodes, layer by layer →
//! sparse column tree and replica tree → replica commitment.
//!
//! The variants in which the challenges depend on the replica commitment (synthetic and non-interactive) cannot be
//! had this way; their circuits are the same.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blstrs::Scalar;
use filecoin_hashers::HashFunction;
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonFunction, PoseidonHasher};
use filecoin_hashers::sha256::{Sha256Domain, Sha256Hasher};
use filecoin_proofs::constants::DRG_DEGREE;
use filecoin_proofs::parameters::public_params;
use filecoin_proofs_api::RegisteredSealProof;
use filecoin_proofs_api::seal::{SealCommitPhase1Output, VanillaSealProof};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use storage_proofs_core::drgraph::Graph;
use storage_proofs_porep::stacked::{
    self, Column, ColumnProof, EncodingProof, LabelingProof, ReplicaColumnProof, TOTAL_PARENTS,
};

use super::data::{data_proof, data_tree};
use super::pattern::PatternTree;
use super::shape::{ReplicaProof, ReplicaTree};
use super::source::{Source, element_from_bytes};
use super::sparse::SparseTree;
use super::{FabricateError, Options, domain_bytes};
use crate::miner::prover_id;
use crate::{ProofKind, ProofRequest, SectorSize};

/// A fabricated PoRep: what the sealing of a sector hands to the proof, as clients send it.
#[derive(Clone, Debug)]
pub struct PorepSector {
    /// The sector size.
    pub size: SectorSize,
    /// The seal proof type: V1_1, interactive.
    pub registered_proof: RegisteredSealProof,
    /// The number of the miner.
    pub miner: u64,
    /// The number of the sector.
    pub sector: u64,
    /// The miner's address as the verifiers take it.
    pub prover_id: [u8; 32],
    /// The randomness of the replica id.
    pub ticket: [u8; 32],
    /// The randomness of the challenges.
    pub seed: [u8; 32],
    /// The data commitment, a little-endian field element.
    pub comm_d: [u8; 32],
    /// The replica commitment, a little-endian field element.
    pub comm_r: [u8; 32],
    /// The C1 output as JSON, the way filecoin-proofs-api writes it, without a wrapper.
    pub c1: Vec<u8>,
}

/// How a size's vanilla proofs are put into the enumeration of filecoin-proofs-api.
type Wrap<Tree> = fn(Vec<Vec<stacked::Proof<Tree, Sha256Hasher>>>) -> VanillaSealProof;

/// The public inputs of the vanilla PoRep.
type PublicInputs = stacked::PublicInputs<PoseidonDomain, Sha256Domain>;

impl PorepSector {
    /// The C1 output as clients send it:
    /// `{"SectorNum":n,"Phase1Out":"<base64 of the C1 JSON>","SectorSize":bytes}`.
    pub fn wrapped(&self) -> Vec<u8> {
        let mut document = format!("{{\"SectorNum\":{},\"Phase1Out\":\"", self.sector);
        STANDARD.encode_string(&self.c1, &mut document);
        document.push_str(&format!("\",\"SectorSize\":{}}}", self.size.bytes()));
        document.into_bytes()
    }
}

impl From<PorepSector> for ProofRequest {
    fn from(sector: PorepSector) -> Self {
        ProofRequest {
            sector_size: sector.size.bytes(),
            registered_proof: sector.registered_proof as u64,
            miner_id: sector.miner,
            sector_number: sector.sector,
            vanilla_proof: sector.wrapped(),
            ..ProofRequest::new(ProofKind::Porep)
        }
    }
}

/// Fabricates the C1 output of a PoRep of `size`.
pub fn porep(size: SectorSize, options: &Options) -> Result<PorepSector, FabricateError> {
    use RegisteredSealProof::*;
    match size {
        SectorSize::Kib2 => build(
            size,
            StackedDrg2KiBV1_1,
            VanillaSealProof::StackedDrg2KiBV1,
            options,
        ),
        SectorSize::Mib8 => build(
            size,
            StackedDrg8MiBV1_1,
            VanillaSealProof::StackedDrg8MiBV1,
            options,
        ),
        SectorSize::Mib512 => build(
            size,
            StackedDrg512MiBV1_1,
            VanillaSealProof::StackedDrg512MiBV1,
            options,
        ),
        SectorSize::Gib32 => build(
            size,
            StackedDrg32GiBV1_1,
            VanillaSealProof::StackedDrg32GiBV1,
            options,
        ),
        SectorSize::Gib64 => build(
            size,
            StackedDrg64GiBV1_1,
            VanillaSealProof::StackedDrg64GiBV1,
            options,
        ),
    }
}

fn build<Tree: ReplicaTree>(
    size: SectorSize,
    registered_proof: RegisteredSealProof,
    wrap: Wrap<Tree>,
    options: &Options,
) -> Result<PorepSector, FabricateError> {
    let source = Source::new(options.seed).child("porep", options.sector);
    let config = registered_proof.as_v1_config();
    let parameters =
        public_params::<Tree>(&config).map_err(FabricateError::in_step("PoRep parameters"))?;
    let data = data_tree(size, &source.child("data", 0))?;
    let (ticket, seed) = (source.element_bytes("ticket"), source.element_bytes("seed"));
    let prover_id = prover_id(options.miner);
    let comm_d = data.root();
    let replica_id = stacked::generate_replica_id::<PoseidonHasher, _>(
        &prover_id,
        options.sector,
        &ticket,
        comm_d,
        &config.porep_id,
    );
    let inputs = public_inputs(replica_id, comm_d, PoseidonDomain::default(), seed);
    let challenges: Vec<Vec<usize>> = (0..usize::from(config.partitions))
        .map(|partition| inputs.challenges(&parameters.challenges, size.nodes(), Some(partition)))
        .collect();
    let labels = Labels::compute(
        &parameters,
        &replica_id,
        challenges.iter().flatten(),
        &source,
    )?;
    let trees = Trees::build::<Tree>(size, &labels, &data, &source)?;
    let proofs = challenges
        .iter()
        .map(|partition| {
            partition
                .par_iter()
                .map(|node| challenge_proof::<Tree>(*node as u64, &labels, &data, &trees))
                .collect()
        })
        .collect::<Result<Vec<Vec<_>>, FabricateError>>()?;
    let comm_r = domain_bytes(trees.comm_r());
    let output = SealCommitPhase1Output {
        registered_proof,
        vanilla_proofs: wrap(proofs),
        comm_r,
        comm_d: comm_d.0,
        replica_id,
        seed,
        ticket,
    };
    let c1 = serde_json::to_vec(&output)?;
    let (miner, sector) = (options.miner, options.sector);
    Ok(PorepSector {
        size,
        registered_proof,
        miner,
        sector,
        prover_id,
        ticket,
        seed,
        comm_d: comm_d.0,
        comm_r,
        c1,
    })
}

fn public_inputs(
    replica_id: PoseidonDomain,
    comm_d: Sha256Domain,
    comm_r: PoseidonDomain,
    seed: [u8; 32],
) -> PublicInputs {
    stacked::PublicInputs {
        replica_id,
        seed: Some(seed),
        tau: Some(stacked::Tau { comm_d, comm_r }),
        k: None,
    }
}

/// The labels that a proof shows: the columns of the challenged nodes and of their parents.
struct Labels {
    layers: usize,
    /// The parents of each challenged node: first those of the depth-robust graph, then the expander's.
    parents: BTreeMap<u64, Vec<u64>>,
    /// The labels of a node, one for each layer.
    columns: BTreeMap<u64, Vec<PoseidonDomain>>,
}

impl Labels {
    fn compute<'a, Tree: ReplicaTree>(
        parameters: &stacked::PublicParams<Tree>,
        replica_id: &PoseidonDomain,
        challenges: impl Iterator<Item = &'a usize>,
        source: &Source,
    ) -> Result<Self, FabricateError> {
        let challenges: BTreeSet<u64> = challenges.map(|node| *node as u64).collect();
        let mut parents = BTreeMap::new();
        for node in &challenges {
            parents.insert(*node, parents_of(parameters, *node)?);
        }
        let layers = parameters.num_layers;
        let columns = free_columns(
            challenges.iter().chain(parents.values().flatten()),
            layers,
            source,
        );
        let mut labels = Labels {
            layers,
            parents,
            columns,
        };
        // Parents in the same layer have smaller indices, parents from the expander lie one layer below.
        for layer in 1..=layers {
            for node in &challenges {
                let label = label(
                    replica_id,
                    layer,
                    *node,
                    &labels.parent_labels(*node, layer),
                );
                if let Some(column) = labels.columns.get_mut(node) {
                    column[layer - 1] = label;
                }
            }
        }
        Ok(labels)
    }

    /// The labels that are hashed into the label of `node` in `layer` (from 1), repeated up to their full number.
    fn parent_labels(&self, node: u64, layer: usize) -> Vec<PoseidonDomain> {
        let (base, expander) = self.parents[&node].split_at(DRG_DEGREE);
        let below = if layer > 1 { expander } else { &[] };
        let labels: Vec<PoseidonDomain> = base
            .iter()
            .map(|parent| self.columns[parent][layer - 1])
            .chain(below.iter().map(|parent| self.columns[parent][layer - 2]))
            .collect();
        labels.iter().cycle().take(TOTAL_PARENTS).copied().collect()
    }

    /// The label of the last layer, which encodes the data.
    fn key(&self, node: u64) -> Scalar {
        self.columns[&node][self.layers - 1].into()
    }
}

fn parents_of<Tree: ReplicaTree>(
    parameters: &stacked::PublicParams<Tree>,
    node: u64,
) -> Result<Vec<u64>, FabricateError> {
    let mut parents = vec![0; parameters.graph.degree()];
    parameters
        .graph
        .parents(node as usize, &mut parents)
        .map_err(FabricateError::in_step("parents of a node"))?;
    Ok(parents.into_iter().map(u64::from).collect())
}

/// Columns of arbitrary labels.
fn free_columns<'a>(
    nodes: impl Iterator<Item = &'a u64>,
    layers: usize,
    source: &Source,
) -> BTreeMap<u64, Vec<PoseidonDomain>> {
    let source = source.child("columns", 0);
    let nodes: BTreeSet<u64> = nodes.copied().collect();
    nodes
        .into_iter()
        .map(|node| {
            let mut labels = vec![Scalar::default(); layers];
            source.fill(0, node * layers as u64, &mut labels);
            (node, labels.into_iter().map(PoseidonDomain::from).collect())
        })
        .collect()
}

/// SHA-256 of the replica id, the layer (32 bits) and the node (64 bits), both big-endian, padded to one block with
/// zeros, then of the parents' labels; cut to 254 bits.
fn label(
    replica_id: &PoseidonDomain,
    layer: usize,
    node: u64,
    parents: &[PoseidonDomain],
) -> PoseidonDomain {
    let mut block = [0; 64];
    block[..32].copy_from_slice(replica_id.as_ref());
    block[32..36].copy_from_slice(&(layer as u32).to_be_bytes());
    block[36..44].copy_from_slice(&node.to_be_bytes());
    let mut hasher = Sha256::new_with_prefix(block);
    for parent in parents {
        hasher.update(AsRef::<[u8]>::as_ref(parent));
    }
    let mut digest: [u8; 32] = hasher.finalize().into();
    digest[31] &= 0x3f;
    element_from_bytes(&digest).into()
}

/// The two Poseidon trees under the replica commitment.
struct Trees {
    columns: SparseTree,
    replica: SparseTree,
}

impl Trees {
    fn build<Tree: ReplicaTree>(
        size: SectorSize,
        labels: &Labels,
        data: &PatternTree<Sha256Domain>,
        source: &Source,
    ) -> Result<Self, FabricateError> {
        let leaves = size.nodes() as u64;
        let hashed: BTreeMap<u64, Scalar> = labels
            .columns
            .par_iter()
            .map(|(node, column)| Ok((*node, column_hash(*node, column)?)))
            .collect::<Result<_, FabricateError>>()?;
        let encoded: BTreeMap<u64, Scalar> = labels
            .parents
            .keys()
            .map(|node| {
                (
                    *node,
                    labels.key(*node) + element_from_bytes(&data.leaf(*node).0),
                )
            })
            .collect();
        Ok(Trees {
            columns: SparseTree::build::<Tree>(leaves, &hashed, &source.child("column tree", 0))?,
            replica: SparseTree::build::<Tree>(leaves, &encoded, &source.child("replica tree", 0))?,
        })
    }

    fn comm_r(&self) -> PoseidonDomain {
        PoseidonFunction::hash2(&self.columns.root().into(), &self.replica.root().into())
    }
}

fn column_hash(node: u64, labels: &[PoseidonDomain]) -> Result<Scalar, FabricateError> {
    Column::<PoseidonHasher>::new(node as u32, labels.to_vec())
        .map(|column| column.hash())
        .map_err(FabricateError::in_step("column hash"))
}

fn challenge_proof<Tree: ReplicaTree>(
    node: u64,
    labels: &Labels,
    data: &PatternTree<Sha256Domain>,
    trees: &Trees,
) -> Result<stacked::Proof<Tree, Sha256Hasher>, FabricateError> {
    let column = |node: &u64| column_proof::<Tree>(*node, labels, &trees.columns);
    let (base, expander) = labels.parents[&node].split_at(DRG_DEGREE);
    Ok(stacked::Proof {
        comm_d_proofs: data_proof(data, node),
        comm_r_last_proof: trees.replica.proof::<Tree>(node)?,
        replica_column_proofs: ReplicaColumnProof {
            c_x: column(&node)?,
            drg_parents: base.iter().map(column).collect::<Result<_, _>>()?,
            exp_parents: expander.iter().map(column).collect::<Result<_, _>>()?,
        },
        labeling_proofs: (1..=labels.layers)
            .map(|layer| LabelingProof::new(layer as u32, node, labels.parent_labels(node, layer)))
            .collect(),
        encoding_proof: EncodingProof::new(
            labels.layers as u32,
            node,
            labels.parent_labels(node, labels.layers),
        ),
    })
}

fn column_proof<Tree: ReplicaTree>(
    node: u64,
    labels: &Labels,
    columns: &SparseTree,
) -> Result<ColumnProof<ReplicaProof<Tree>>, FabricateError> {
    Ok(ColumnProof::new(
        node as u32,
        labels.columns[&node].clone(),
        columns.proof::<Tree>(node)?,
    ))
}
