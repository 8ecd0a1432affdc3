//! Errors of compiled circuits.

use crate::CircuitError;
use std::path::PathBuf;

/// Why a compiled circuit could not be recorded, used, saved or opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompiledError {
    /// The circuit could not be synthesised.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
    /// A single row names more coefficients than a template can.
    #[error("a row has more than {limit} distinct coefficients")]
    TooManyCoefficients {
        /// Most coefficients of one template.
        limit: usize,
    },
    /// A witness belongs to another circuit.
    #[error("the witness has {found} {kind} variables, the compiled circuit {expected}")]
    WrongWitness {
        /// `input` or `auxiliary`.
        kind: &'static str,
        /// Number of variables of the compiled circuit.
        expected: usize,
        /// Number of variables of the witness.
        found: usize,
    },
    /// C was asked for and is not recorded.
    #[error("the compiled circuit '{identity}' was recorded without C")]
    WithoutC {
        /// Identity of the circuit.
        identity: String,
    },
    /// A replayed circuit differs from the compiled one.
    #[error("the circuit differs from the compiled one at constraint {row}")]
    Differs {
        /// First constraint that differs, or the number of constraints when only counts differ.
        row: usize,
    },
    /// A file could not be read or written.
    #[error("{path}: cannot {action}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was attempted.
        action: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file holds another circuit.
    #[error("{path}: holds circuit '{found}', expected '{expected}'", path = path.display())]
    WrongCircuit {
        /// The file.
        path: PathBuf,
        /// Identity asked for.
        expected: String,
        /// Identity in the file.
        found: String,
    },
    /// A file is not a compiled circuit, is damaged or was written by another version.
    #[error(
        "{path}: {field} at offset {offset}: expected {expected}, found {found}",
        path = path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The field that is wrong.
        field: &'static str,
        /// Its offset in bytes.
        offset: u64,
        /// What should stand there.
        expected: String,
        /// What stands there.
        found: String,
    },
}
