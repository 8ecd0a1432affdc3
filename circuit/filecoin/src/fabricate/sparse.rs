//! A replica tree of which only the wanted leaves exist.
//!
//! A proof shows paths and nothing else, so a node that lies on no path may have any value: it is drawn from the
//! seed. Building costs one hash for each node on a path, whatever the size of the sector.

use std::collections::BTreeMap;

use blstrs::Scalar;
use rayon::prelude::*;

use super::FabricateError;
use super::shape::{Path, ReplicaProof, ReplicaTree, arity_bits, hash_children, replica_proof};
use super::source::Source;

/// A Poseidon tree that can open the leaves it was built from.
pub(super) struct SparseTree {
    rows: Vec<Row>,
    root: Scalar,
}

/// The families (all children of one parent) of one height that hold at least one node on a path.
struct Row {
    /// Binary logarithm of the number of children in a family.
    bits: u32,
    /// The indices of the parents in their own row, ascending.
    parents: Vec<u64>,
    /// The children of each parent, one family after the other.
    children: Vec<Scalar>,
}

impl SparseTree {
    /// Builds the paths above `opened` (leaf index → value) in a tree of `leaves` leaves.
    ///
    /// The shape is that of `Tree`; all nodes off the paths come from `source`.
    pub(super) fn build<Tree: ReplicaTree>(
        leaves: u64,
        opened: &BTreeMap<u64, Scalar>,
        source: &Source,
    ) -> Result<Self, FabricateError> {
        if let Some(index) = opened.keys().find(|index| **index >= leaves) {
            return Err(FabricateError::LeafOutOfRange {
                index: *index,
                leaves,
            });
        }
        let mut nodes: Vec<(u64, Scalar)> = opened
            .iter()
            .map(|(index, value)| (*index, *value))
            .collect();
        let mut rows = Vec::new();
        for (height, bits) in arity_bits::<Tree>(leaves)?.into_iter().enumerate() {
            let row = Row::build(bits, &nodes, source, height as u64);
            nodes = row.parent_nodes();
            rows.push(row);
        }
        match nodes.as_slice() {
            [(0, root)] => Ok(SparseTree { rows, root: *root }),
            _ => Err(FabricateError::NothingToOpen),
        }
    }

    /// The root of the tree.
    pub(super) fn root(&self) -> Scalar {
        self.root
    }

    /// The opening of one of the leaves that the tree was built from.
    pub(super) fn proof<Tree: ReplicaTree>(
        &self,
        index: u64,
    ) -> Result<ReplicaProof<Tree>, FabricateError> {
        let absent = || FabricateError::LeafNotBuilt { index };
        let leaf = self
            .rows
            .first()
            .and_then(|row| row.node(index))
            .ok_or_else(absent)?;
        let mut path: Path<Scalar> = Vec::with_capacity(self.rows.len());
        let mut node = index;
        for row in &self.rows {
            path.push(row.siblings(node).ok_or_else(absent)?);
            node >>= row.bits;
        }
        Ok(replica_proof::<Tree>(leaf, self.root, path))
    }
}

impl Row {
    fn build(bits: u32, nodes: &[(u64, Scalar)], source: &Source, height: u64) -> Self {
        let families: Vec<&[(u64, Scalar)]> = nodes
            .chunk_by(|left, right| left.0 >> bits == right.0 >> bits)
            .collect();
        let parents: Vec<u64> = families.iter().map(|family| family[0].0 >> bits).collect();
        let mut children = vec![Scalar::default(); parents.len() << bits];
        children
            .par_chunks_mut(1 << bits)
            .zip(&families)
            .for_each(|(children, family)| {
                source.fill(height, (family[0].0 >> bits) << bits, children);
                for (index, value) in family.iter() {
                    children[position(*index, bits)] = *value;
                }
            });
        Row {
            bits,
            parents,
            children,
        }
    }

    fn parent_nodes(&self) -> Vec<(u64, Scalar)> {
        self.parents
            .par_iter()
            .zip(self.children.par_chunks(1 << self.bits))
            .map(|(parent, children)| (*parent, hash_children(children)))
            .collect()
    }

    fn family(&self, index: u64) -> Option<&[Scalar]> {
        let family = self.parents.binary_search(&(index >> self.bits)).ok()?;
        self.children
            .get(family << self.bits..(family + 1) << self.bits)
    }

    fn node(&self, index: u64) -> Option<Scalar> {
        self.family(index)
            .map(|family| family[position(index, self.bits)])
    }

    fn siblings(&self, index: u64) -> Option<(Vec<Scalar>, usize)> {
        let mut siblings = self.family(index)?.to_vec();
        let position = position(index, self.bits);
        siblings.remove(position);
        Some((siblings, position))
    }
}

/// Where a node stands among the 2^`bits` children of its parent.
fn position(index: u64, bits: u32) -> usize {
    (index & ((1 << bits) - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use filecoin_proofs::constants::*;
    use storage_proofs_core::merkle::MerkleProofTrait;

    fn opens_its_leaves<Tree: ReplicaTree>(leaves: u64) {
        let source = Source::new(leaves);
        let opened: BTreeMap<u64, Scalar> = [0, 1, 7, 8, leaves / 2, leaves / 3, leaves - 1]
            .into_iter()
            .map(|index| (index, source.element(99, index)))
            .collect();
        let tree = SparseTree::build::<Tree>(leaves, &opened, &source).unwrap();
        for (index, value) in &opened {
            let proof = tree.proof::<Tree>(*index).unwrap();
            assert!(proof.verify(), "leaf {index} of {leaves}");
            assert_eq!(proof.path_index() as u64, *index);
            assert_eq!(proof.path().len(), proof.expected_len(leaves as usize));
            assert_eq!(Scalar::from(proof.leaf()), *value);
            assert_eq!(Scalar::from(proof.root()), tree.root());
        }
        assert!(matches!(
            tree.proof::<Tree>(leaves / 5 * 2),
            Err(FabricateError::LeafNotBuilt { .. })
        ));
    }

    #[test]
    fn a_sparse_tree_of_every_shape_opens_the_leaves_it_was_built_from() {
        opens_its_leaves::<SectorShape8MiB>(1 << 18);
        opens_its_leaves::<SectorShape512MiB>(1 << 24);
        opens_its_leaves::<SectorShape32GiB>(1 << 30);
        opens_its_leaves::<SectorShape64GiB>(1 << 31);
    }

    #[test]
    fn a_sparse_tree_refuses_leaves_that_it_cannot_hold() {
        let source = Source::new(1);
        let outside = BTreeMap::from([(64, Scalar::default())]);
        assert!(matches!(
            SparseTree::build::<SectorShape2KiB>(64, &outside, &source),
            Err(FabricateError::LeafOutOfRange {
                index: 64,
                leaves: 64
            })
        ));
        assert!(matches!(
            SparseTree::build::<SectorShape2KiB>(64, &BTreeMap::new(), &source),
            Err(FabricateError::NothingToOpen)
        ));
    }
}
