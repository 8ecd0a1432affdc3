//! From vanilla proofs to the values that the native witness generators take.

use std::fmt;
use std::sync::LazyLock;

use cuzk_circuit::Scalar;
use cuzk_witness::tree::Path;
use cuzk_witness::{Poseidon, Poseidons, WitnessError};
use filecoin_hashers::{
    Hasher, POSEIDON_CONSTANTS_2, POSEIDON_CONSTANTS_4, POSEIDON_CONSTANTS_8, POSEIDON_CONSTANTS_11,
};
use storage_proofs_core::merkle::MerkleProofTrait;
use storage_proofs_update::constants::POSEIDON_CONSTANTS_GEN_RANDOMNESS;

use crate::error::RequestError;
use crate::guard::caught;

/// What made a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WitnessPath {
    /// A native generator: no constraint system.
    Native,
    /// The circuit's own synthesis in a constraint system that keeps the values alone.
    Generic,
}

impl fmt::Display for WitnessPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Generic => "generic",
        })
    }
}

/// Runs a native generator for a partition; conversions of storage-proofs' values may panic.
pub(crate) fn native(
    partition: usize,
    generate: impl FnOnce() -> Result<(), WitnessError>,
) -> Result<WitnessPath, RequestError> {
    match caught(generate) {
        Ok(Ok(())) => Ok(WitnessPath::Native),
        Ok(Err(source)) => Err(RequestError::Witness { partition, source }),
        Err(message) => Err(RequestError::Panic {
            action: "generating the witness",
            message,
        }),
    }
}

/// The Poseidon instances of all circuits, prepared once.
pub(crate) fn poseidons() -> &'static Poseidons {
    static POSEIDONS: LazyLock<Poseidons> = LazyLock::new(|| Poseidons {
        two: Poseidon::from(&*POSEIDON_CONSTANTS_2),
        four: Poseidon::from(&*POSEIDON_CONSTANTS_4),
        eight: Poseidon::from(&*POSEIDON_CONSTANTS_8),
        eleven: Poseidon::from(&*POSEIDON_CONSTANTS_11),
        randomness: Poseidon::from(&*POSEIDON_CONSTANTS_GEN_RANDOMNESS),
    });
    &POSEIDONS
}

/// An inclusion proof's siblings and index.
pub(crate) fn path<P: MerkleProofTrait>(proof: &P) -> Path
where
    Scalar: From<<P::Hasher as Hasher>::Domain>,
{
    let (mut index, mut bits) = (0, 0);
    let siblings = proof
        .path()
        .into_iter()
        .map(|(siblings, position)| {
            index |= (position as u64) << bits;
            bits += (siblings.len() + 1).trailing_zeros();
            siblings.into_iter().map(Scalar::from).collect()
        })
        .collect();
    Path { siblings, index }
}
