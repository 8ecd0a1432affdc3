//! Errors of synthesis.

use crate::Scalar;
use bellpepper_core::SynthesisError;

/// Why a circuit could not be turned into an assignment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CircuitError {
    /// The circuit itself reported an error, for instance a missing value.
    #[error("synthesis failed: {0}")]
    Synthesis(#[from] SynthesisError),
    /// A constraint does not hold for the assignment.
    #[error("constraint {row} ({path}) is not satisfied: a = {a}, b = {b}, c = {c}")]
    Unsatisfied {
        /// Zero-based number of the constraint, in order of synthesis.
        row: usize,
        /// Namespaces and annotation of the constraint, joined by `/`.
        path: String,
        /// Value of the first linear combination.
        a: Box<Scalar>,
        /// Value of the second linear combination.
        b: Box<Scalar>,
        /// Value of the third linear combination, which differs from `a · b`.
        c: Box<Scalar>,
    },
    /// A constraint refers to a variable that is not allocated (yet).
    #[error("constraint {row} refers to {kind} variable {index}, but only {allocated} exist")]
    UnknownVariable {
        /// Zero-based number of the constraint.
        row: usize,
        /// `input` or `auxiliary`.
        kind: &'static str,
        /// Index of the missing variable.
        index: usize,
        /// Number of variables of that kind at that point.
        allocated: usize,
    },
    /// The circuit needs more rows than the field's largest power-of-two domain has.
    #[error("{rows} rows exceed the largest evaluation domain of 2^32")]
    TooLarge {
        /// Constraints plus inputs.
        rows: usize,
    },
}
