//! The data tree of a fabricated sector: SHA-256, two children a node, over patterned data.

use filecoin_hashers::HashFunction;
use filecoin_hashers::sha256::{Sha256Domain, Sha256Function, Sha256Hasher};
use generic_array::typenum::U2;
use storage_proofs_core::merkle::MerkleProof;

use super::FabricateError;
use super::pattern::{CLASSES, PatternTree};
use super::source::Source;
use crate::SectorSize;

/// The tree over data of eight different leaves in the pattern of [`PatternTree`], the same in the whole sector.
pub(super) fn data_tree(
    size: SectorSize,
    source: &Source,
) -> Result<PatternTree<Sha256Domain>, FabricateError> {
    let pattern: [Sha256Domain; CLASSES] =
        std::array::from_fn(|class| source.element(0, class as u64).into());
    PatternTree::build(
        vec![1; size.nodes().ilog2() as usize],
        vec![pattern],
        |children| match children {
            [left, right] => Sha256Function::hash2(left, right),
            _ => Sha256Domain::default(),
        },
    )
}

/// The opening of one leaf of the data.
pub(super) fn data_proof(
    tree: &PatternTree<Sha256Domain>,
    index: u64,
) -> MerkleProof<Sha256Hasher, U2> {
    MerkleProof::from_parts(tree.leaf(index), tree.root(), tree.path(index))
}
