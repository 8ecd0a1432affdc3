//! A complete tree over a patterned sector: every leaf can be opened, and almost nothing is stored.
//!
//! Some challenges are known only after the root (an update's depend on the new replica's commitment, a PoRep's on
//! the data commitment), so these trees must be able to open any leaf. The sector is cut into 2^b equal *bands*, and
//! within a band the value of leaf `i` depends only on its *class*, the sum of the octal digits of `i` modulo 8.
//!
//! The node at height `k` (in bits above the leaves) with index `y` then depends only on its band and on the class of
//! `y << k`. Proof: let it have 2^a children at height `k' = k - a`, with no octal digit of the leaf index split
//! between two heights except from below (`k' mod 3 + a <= 3`). Child `j` has the index `2^a y + j`, and shifting
//! that left by `k'` adds `j * 2^(k' mod 3)` to the digit sum of `y << k`, since it only sets clear bits of one octal
//! digit. So the classes of the children, and by induction their values, follow from the class of the parent.
//!
//! Hence eight values a height and band describe the tree up to the height where a node spans several bands; from
//! there on the rows are short and stored in full. The eight children of a node have eight different classes, so
//! that siblings differ and a wrong position in a path is noticed.

use rayon::prelude::*;

use super::FabricateError;
use super::shape::Path;

/// Number of classes: one for each value of an octal digit.
pub(super) const CLASSES: usize = 8;

/// The values of one height of the tree.
enum Row<Node> {
    /// Each band holds 2^`inner_bits` nodes of this height; their value is looked up by band and class.
    Banded {
        inner_bits: u32,
        bands: Vec<[Node; CLASSES]>,
    },
    /// All nodes of this height.
    Full(Vec<Node>),
}

/// A tree over a sector whose leaves depend on their band and class only.
pub(super) struct PatternTree<Node> {
    /// Binary logarithm of the arity of each height, from the leaves to the root.
    arity_bits: Vec<u32>,
    /// Heights in bits above the leaves, one for each row; the first is 0.
    heights: Vec<u32>,
    rows: Vec<Row<Node>>,
}

impl<Node: Copy + Send + Sync> PatternTree<Node> {
    /// Builds the tree over 2^(sum of `arity_bits`) leaves, cut into `bands.len()` (a power of two) equal bands;
    /// `bands[b][c]` is the value of the leaves of class `c` in band `b`, and `hash` makes a node of its children.
    pub(super) fn build(
        arity_bits: Vec<u32>,
        bands: Vec<[Node; CLASSES]>,
        hash: impl Fn(&[Node]) -> Node + Sync,
    ) -> Result<Self, FabricateError> {
        let leaf_bits: u32 = arity_bits.iter().sum();
        let band_bits = bands.len().checked_ilog2().unwrap_or_default();
        if !bands.len().is_power_of_two() || band_bits > leaf_bits {
            return Err(FabricateError::NotAPowerOfTwo {
                value: bands.len() as u64,
            });
        }
        let mut tree = PatternTree {
            arity_bits: Vec::new(),
            heights: vec![0],
            rows: vec![Row::Banded {
                inner_bits: leaf_bits - band_bits,
                bands,
            }],
        };
        let mut height = 0;
        for bits in arity_bits {
            if height % 3 + bits > 3 {
                return Err(FabricateError::SplitDigit { height, bits });
            }
            let row = tree.row_above(bits, leaf_bits - height - bits, &hash);
            height += bits;
            tree.arity_bits.push(bits);
            tree.heights.push(height);
            tree.rows.push(row);
        }
        Ok(tree)
    }

    /// The root of the tree.
    pub(super) fn root(&self) -> Node {
        self.node(self.rows.len() - 1, 0)
    }

    /// The value of leaf `index`.
    pub(super) fn leaf(&self, index: u64) -> Node {
        self.node(0, index)
    }

    /// The node `index` of row `row`, where row 0 holds the leaves.
    pub(super) fn node(&self, row: usize, index: u64) -> Node {
        match &self.rows[row] {
            Row::Banded { inner_bits, bands } => {
                bands[(index >> inner_bits) as usize][class(index << self.heights[row])]
            }
            Row::Full(nodes) => nodes[index as usize],
        }
    }

    /// The siblings and positions on the way from leaf `index` to the root.
    pub(super) fn path(&self, index: u64) -> Path<Node> {
        let mut node = index;
        let mut path = Vec::with_capacity(self.arity_bits.len());
        for (row, bits) in self.arity_bits.iter().enumerate() {
            let first = node >> bits << bits;
            let siblings = (first..first + (1 << bits))
                .filter(|other| *other != node)
                .map(|other| self.node(row, other));
            path.push((siblings.collect(), (node - first) as usize));
            node >>= bits;
        }
        path
    }

    /// The row above the last one, whose nodes have 2^`bits` children and number 2^`count_bits`.
    fn row_above(
        &self,
        bits: u32,
        count_bits: u32,
        hash: &(impl Fn(&[Node]) -> Node + Sync),
    ) -> Row<Node> {
        let row = self.rows.len() - 1;
        match &self.rows[row] {
            Row::Banded { inner_bits, bands } if *inner_bits > bits => {
                let step = 1 << (self.heights[row] % 3);
                Row::Banded {
                    inner_bits: inner_bits - bits,
                    bands: bands
                        .par_iter()
                        .map(|values| parent_classes(values, step, bits, hash))
                        .collect(),
                }
            }
            _ => Row::Full(
                (0..1u64 << count_bits)
                    .into_par_iter()
                    .map(|parent| {
                        let first = parent << bits;
                        let children: Vec<Node> = (first..first + (1 << bits))
                            .map(|child| self.node(row, child))
                            .collect();
                        hash(&children)
                    })
                    .collect(),
            ),
        }
    }
}

/// The values of the eight classes of parents, when the classes of neighbouring children are `step` apart.
fn parent_classes<Node: Copy>(
    values: &[Node; CLASSES],
    step: usize,
    bits: u32,
    hash: &impl Fn(&[Node]) -> Node,
) -> [Node; CLASSES] {
    std::array::from_fn(|parent| {
        let children: Vec<Node> = (0..1usize << bits)
            .map(|child| values[(parent + child * step) % CLASSES])
            .collect();
        hash(&children)
    })
}

/// The sum of the octal digits of a leaf index, modulo 8.
pub(super) fn class(index: u64) -> usize {
    let mut sum = 0;
    let mut rest = index;
    while rest != 0 {
        sum += rest & 7;
        rest >>= 3;
    }
    (sum % CLASSES as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabricate::shape::hash_children;
    use crate::fabricate::source::Source;
    use blstrs::Scalar;

    /// All rows of the tree, made from all its leaves.
    fn every_row(arity_bits: &[u32], leaves: Vec<Scalar>) -> Vec<Vec<Scalar>> {
        let mut rows = vec![leaves];
        for bits in arity_bits {
            let row = rows[rows.len() - 1]
                .chunks(1 << bits)
                .map(hash_children)
                .collect();
            rows.push(row);
        }
        rows
    }

    fn bands(count: u64) -> Vec<[Scalar; CLASSES]> {
        let source = Source::new(count);
        (0..count)
            .map(|band| std::array::from_fn(|class| source.element(band, class as u64)))
            .collect()
    }

    fn agrees_with_the_full_tree(arity_bits: &[u32], band_bits: u32) {
        let leaf_bits: u32 = arity_bits.iter().sum();
        let bands = bands(1 << band_bits);
        let tree = PatternTree::build(arity_bits.to_vec(), bands.clone(), hash_children).unwrap();
        let leaves: Vec<Scalar> = (0..1u64 << leaf_bits)
            .map(|leaf| bands[(leaf >> (leaf_bits - band_bits)) as usize][class(leaf)])
            .collect();
        let rows = every_row(arity_bits, leaves);
        for (height, row) in rows.iter().enumerate() {
            for (index, node) in row.iter().enumerate() {
                assert_eq!(
                    tree.node(height, index as u64),
                    *node,
                    "{arity_bits:?}, row {height}, node {index}"
                );
            }
        }
        for leaf in [0, 1, (1u64 << leaf_bits) / 3, (1 << leaf_bits) - 1] {
            let mut node = leaf as usize;
            for ((siblings, position), (row, bits)) in
                tree.path(leaf).into_iter().zip(rows.iter().zip(arity_bits))
            {
                let first = node >> bits << bits;
                let mut family = row[first..first + (1 << bits)].to_vec();
                assert_eq!(family.remove(position), row[node]);
                assert_eq!(family, siblings);
                node >>= bits;
            }
            assert_eq!(tree.leaf(leaf), rows[0][leaf as usize]);
        }
        assert_eq!(tree.root(), rows[arity_bits.len()][0]);
    }

    #[test]
    fn a_pattern_tree_is_the_tree_over_its_leaves() {
        for band_bits in [0, 1, 2, 3, 5, 6] {
            agrees_with_the_full_tree(&[3, 3, 3], band_bits);
            agrees_with_the_full_tree(&[3, 3, 3, 1], band_bits);
            agrees_with_the_full_tree(&[1; 8], band_bits);
        }
    }

    #[test]
    fn siblings_in_a_patterned_tree_differ() {
        let tree = PatternTree::build(vec![3; 10], bands(1), hash_children).unwrap();
        for (siblings, _) in tree.path(0o1234567012) {
            for (index, sibling) in siblings.iter().enumerate() {
                assert!(!siblings[index + 1..].contains(sibling));
            }
        }
    }

    #[test]
    fn shapes_that_have_no_pattern_are_refused() {
        let build = |arity_bits, count| PatternTree::build(arity_bits, bands(count), hash_children);
        assert!(matches!(
            build(vec![3, 1, 3], 1),
            Err(FabricateError::SplitDigit { height: 4, bits: 3 })
        ));
        assert!(matches!(
            build(vec![3, 3], 3),
            Err(FabricateError::NotAPowerOfTwo { value: 3 })
        ));
        assert!(matches!(
            build(vec![1], 4),
            Err(FabricateError::NotAPowerOfTwo { value: 4 })
        ));
    }
}
