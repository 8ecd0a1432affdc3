//! What a generator refuses.

/// Private inputs that no circuit of this kind has, or that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WitnessError {
    /// There is no Poseidon instance for this number of elements.
    #[error("no Poseidon instance hashes {found} elements (there are 2, 4, 8 and 11)")]
    Arity {
        /// The number of elements.
        found: usize,
    },
    /// A list has another length than the circuit's.
    #[error("{list}: {found} elements, expected {expected}")]
    Count {
        /// The list.
        list: &'static str,
        /// How many elements the circuit has.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// A value that the circuit derives differs from the one that is given.
    #[error("challenge {challenge}: {value} is not the one that the circuit derives")]
    Contradiction {
        /// The challenge's position in its partition.
        challenge: usize,
        /// The value.
        value: &'static str,
    },
}

impl WitnessError {
    /// Refuses a list of another length.
    pub(crate) fn check_count(
        list: &'static str,
        expected: usize,
        found: usize,
    ) -> Result<(), Self> {
        if expected == found {
            return Ok(());
        }
        Err(Self::Count {
            list,
            expected,
            found,
        })
    }
}
