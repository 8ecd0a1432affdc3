//! The shape of a replica tree: how many children a node has at each height, from the leaves to the root.

use blstrs::Scalar;
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonHasher};
use filecoin_hashers::{POSEIDON_CONSTANTS_2, POSEIDON_CONSTANTS_8};
use generic_array::typenum::Unsigned;
use neptune::Poseidon;
use storage_proofs_core::merkle::{MerkleProof, MerkleTreeTrait};

use super::FabricateError;

/// A tree type of Filecoin's sectors: Poseidon in every node.
pub(super) trait ReplicaTree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher> {}
impl<T: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>> ReplicaTree for T {}

/// The opening of one leaf in the form that storage-proofs has for the tree type.
pub(super) type ReplicaProof<Tree> = MerkleProof<
    PoseidonHasher,
    <Tree as MerkleTreeTrait>::Arity,
    <Tree as MerkleTreeTrait>::SubTreeArity,
    <Tree as MerkleTreeTrait>::TopTreeArity,
>;

/// The siblings and the position of a node at each height, from the leaf upwards.
pub(super) type Path<Node> = Vec<(Vec<Node>, usize)>;

/// The binary logarithms of the arities of a replica tree over `leaves` leaves, from the leaves to the root: base
/// trees of eight children a node, then one row that joins the base trees (the sub-tree arity), then one that joins
/// those (the top arity), where the type has them.
pub(super) fn arity_bits<Tree: ReplicaTree>(leaves: u64) -> Result<Vec<u32>, FabricateError> {
    let base = log2(Tree::Arity::U64)?;
    let upper = [Tree::SubTreeArity::U64, Tree::TopTreeArity::U64]
        .into_iter()
        .filter(|arity| *arity > 0)
        .map(log2)
        .collect::<Result<Vec<_>, _>>()?;
    let height = log2(leaves)?;
    let base_height = height
        .checked_sub(upper.iter().sum())
        .filter(|base_height| base > 0 && base_height % base == 0)
        .ok_or_else(|| FabricateError::TreeShape {
            leaves,
            tree: Tree::display(),
        })?;
    let mut bits = vec![base; (base_height / base) as usize];
    bits.extend(upper);
    Ok(bits)
}

fn log2(value: u64) -> Result<u32, FabricateError> {
    if value.is_power_of_two() {
        Ok(value.ilog2())
    } else {
        Err(FabricateError::NotAPowerOfTwo { value })
    }
}

/// The Poseidon digest of a node's two or eight children.
pub(super) fn hash_children(children: &[Scalar]) -> Scalar {
    if children.len() == 2 {
        Poseidon::new_with_preimage(children, &POSEIDON_CONSTANTS_2).hash()
    } else {
        Poseidon::new_with_preimage(children, &POSEIDON_CONSTANTS_8).hash()
    }
}

/// Puts a path over field elements into the form of storage-proofs.
pub(super) fn replica_proof<Tree: ReplicaTree>(
    leaf: Scalar,
    root: Scalar,
    path: Path<Scalar>,
) -> ReplicaProof<Tree> {
    let path = path
        .into_iter()
        .map(|(siblings, position)| {
            (
                siblings.into_iter().map(PoseidonDomain::from).collect(),
                position,
            )
        })
        .collect();
    MerkleProof::from_parts(leaf.into(), root.into(), path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use filecoin_proofs::constants::*;

    #[test]
    fn arities_follow_the_tree_type_of_each_sector_size() {
        assert_eq!(arity_bits::<SectorShape2KiB>(1 << 6).unwrap(), [3; 2]);
        assert_eq!(arity_bits::<SectorShape8MiB>(1 << 18).unwrap(), [3; 6]);
        assert_eq!(arity_bits::<SectorShape512MiB>(1 << 24).unwrap(), [3; 8]);
        assert_eq!(arity_bits::<SectorShape32GiB>(1 << 30).unwrap(), [3; 10]);
        assert_eq!(
            arity_bits::<SectorShape64GiB>(1 << 31).unwrap(),
            [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 1]
        );
        assert!(arity_bits::<SectorShape2KiB>(1 << 7).is_err());
        assert!(arity_bits::<SectorShape2KiB>(100).is_err());
    }
}
