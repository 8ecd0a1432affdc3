//! Checks of untrusted commitments and Merkle proofs before storage-proofs converts them.
//!
//! storage-proofs asserts what is checked here: path lengths, sibling counts, insertion indices and
//! values below the modulus. Nothing is hashed; a proof that passes may still be false, which the
//! circuit's verification finds.

use blstrs::Scalar;
use ff::PrimeField;
use filecoin_hashers::Domain;
use generic_array::typenum::Unsigned;
use storage_proofs_core::merkle::{MerkleProofTrait, MerkleTreeTrait, base_path_length};

use crate::error::RequestError;

/// A place in the input, built only when an error needs it.
pub(crate) type Place<'a> = &'a (dyn Fn() -> String + Sync);

/// The arity of each level of a tree over `leaves` nodes, from the leaves to the root.
pub(crate) fn tree_arities<T: MerkleTreeTrait>(leaves: usize) -> Vec<usize> {
    let base = base_path_length::<T::Arity, T::SubTreeArity, T::TopTreeArity>(leaves);
    let upper = [T::SubTreeArity::to_usize(), T::TopTreeArity::to_usize()];
    std::iter::repeat_n(T::Arity::to_usize(), base)
        .chain(upper.into_iter().filter(|&arity| arity > 0))
        .collect()
}

/// The arity of each level of the binary tree over the data's `leaves` nodes.
pub(crate) fn data_arities(leaves: usize) -> Vec<usize> {
    vec![2; leaves.trailing_zeros() as usize]
}

/// The arities of the column and replica trees and of the data tree of a sector.
#[derive(Clone, Debug)]
pub(crate) struct Arities {
    /// The replica and column trees.
    pub(crate) replica: Vec<usize>,
    /// The data tree.
    pub(crate) data: Vec<usize>,
}

impl Arities {
    /// The trees of shape `T` over `leaves` nodes.
    pub(crate) fn of<T: MerkleTreeTrait>(leaves: usize) -> Self {
        Self {
            replica: tree_arities::<T>(leaves),
            data: data_arities(leaves),
        }
    }
}

/// Checks one inclusion proof's form and returns the index of the leaf that it is about.
pub(crate) fn check_proof<P: MerkleProofTrait>(
    place: Place<'_>,
    proof: &P,
    arities: &[usize],
) -> Result<usize, RequestError>
where
    Scalar: From<<P::Hasher as filecoin_hashers::Hasher>::Domain>,
{
    let path = proof.path();
    if path.len() != arities.len() {
        return Err(RequestError::Count {
            field: format!("{}: path levels", place()),
            expected: arities.len().to_string(),
            found: path.len(),
        });
    }
    check_element(place, "leaf", &proof.leaf())?;
    check_element(place, "root", &proof.root())?;
    let mut index = 0;
    for (level, ((siblings, position), &arity)) in path.iter().zip(arities).enumerate().rev() {
        if siblings.len() != arity - 1 {
            return Err(RequestError::Count {
                field: format!("{}: siblings at path level {level}", place()),
                expected: (arity - 1).to_string(),
                found: siblings.len(),
            });
        }
        if *position >= arity {
            return Err(RequestError::mismatch(
                format!("{}: position at path level {level}", place()),
                format!("below {arity}"),
                position,
            ));
        }
        for sibling in siblings {
            check_element(place, "sibling", sibling)?;
        }
        index = index * arity + position;
    }
    Ok(index)
}

/// Checks that an inclusion proof is well formed and about leaf `expected`.
pub(crate) fn check_proof_of<P: MerkleProofTrait>(
    place: Place<'_>,
    proof: &P,
    arities: &[usize],
    expected: usize,
) -> Result<(), RequestError>
where
    Scalar: From<<P::Hasher as filecoin_hashers::Hasher>::Domain>,
{
    let index = check_proof(place, proof, arities)?;
    if index != expected {
        return Err(RequestError::mismatch(
            format!("{}: challenged node", place()),
            expected,
            index,
        ));
    }
    Ok(())
}

/// Checks that two roots or commitments of the same name are equal.
pub(crate) fn check_same<D: Domain>(
    place: Place<'_>,
    what: &str,
    expected: &D,
    found: &D,
) -> Result<(), RequestError> {
    if expected != found {
        return Err(RequestError::mismatch(
            format!("{}: {what}", place()),
            hex(expected.as_ref()),
            hex(found.as_ref()),
        ));
    }
    Ok(())
}

/// Checks that a hash value is below the modulus.
pub(crate) fn check_element<D: Domain>(
    place: Place<'_>,
    what: &str,
    value: &D,
) -> Result<(), RequestError> {
    if is_canonical(value.as_ref()) {
        return Ok(());
    }
    Err(RequestError::NotCanonical {
        field: format!("{}: {what}", place()),
        found: hex(value.as_ref()),
    })
}

/// Turns 32 little-endian bytes into a hash value, refusing what is not below the modulus.
pub(crate) fn element<D: Domain>(field: &str, bytes: &[u8; 32]) -> Result<D, RequestError> {
    let refused = || RequestError::NotCanonical {
        field: field.to_owned(),
        found: hex(bytes),
    };
    if !is_canonical(bytes) {
        return Err(refused());
    }
    D::try_from_bytes(bytes).map_err(|_| refused())
}

/// As [`element`], and refuses zero, which no honest commitment is.
pub(crate) fn commitment<D: Domain>(field: &str, bytes: &[u8; 32]) -> Result<D, RequestError> {
    if *bytes == [0; 32] {
        return Err(RequestError::mismatch(
            field,
            "a commitment",
            "32 zero bytes",
        ));
    }
    element(field, bytes)
}

/// Whether 32 little-endian bytes are a number below the modulus of the scalar field.
pub(crate) fn is_canonical(bytes: &[u8]) -> bool {
    <[u8; 32]>::try_from(bytes).is_ok_and(|repr| bool::from(Scalar::from_repr(repr).is_some()))
}

/// Lower-case hexadecimal, for error messages.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;
    use filecoin_proofs::constants::{SectorShapeBase, SectorShapeSub8, SectorShapeTop2};

    #[test]
    fn arities_multiply_to_the_number_of_leaves() {
        assert_eq!(tree_arities::<SectorShapeBase>(64), [8, 8]);
        for (arities, leaves) in [
            (tree_arities::<SectorShapeBase>(1 << 18), 1 << 18),
            (tree_arities::<SectorShapeSub8>(1 << 30), 1 << 30),
            (tree_arities::<SectorShapeTop2>(1 << 31), 1_usize << 31),
            (data_arities(64), 64),
        ] {
            assert_eq!(arities.iter().product::<usize>(), leaves);
        }
        assert_eq!(tree_arities::<SectorShapeTop2>(1 << 31).last(), Some(&2));
    }

    #[test]
    fn the_modulus_itself_is_not_canonical_and_one_less_is() {
        let mut bytes = (-Scalar::ONE).to_repr();
        assert!(is_canonical(&bytes));
        bytes[0] += 1;
        assert!(!is_canonical(&bytes));
        assert!(!is_canonical(&[0xff; 32]));
        assert!(!is_canonical(&[0; 31]));
    }
}
