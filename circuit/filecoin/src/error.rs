//! The errors of this crate: which field of which input is wrong, what it holds, what it should hold.

use std::path::PathBuf;

use cuzk_circuit::CircuitError;
use cuzk_witness::WitnessError;

use crate::kind::{CircuitId, ProofKind, SectorSize};

/// A name that stands for no proof kind, sector size or circuit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Not a proof kind.
    #[error("unknown proof kind {0:?}: expected porep, winning, window or update")]
    ProofKind(String),
    /// Not a published sector size.
    #[error("unknown sector size {0:?}: expected 2KiB, 8MiB, 512MiB, 32GiB or 64GiB")]
    SectorSize(String),
    /// Not a circuit's name.
    #[error(
        "unknown circuit {0:?}: expected porep, winning, wpost or snap, then -2k, -8m, -512m, -32g or -64g"
    )]
    CircuitId(String),
}

/// Why a proving request was refused, or could not be turned into a circuit or checked.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// A file of the request could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A name inside the request stands for nothing.
    #[error("{field}: {source}")]
    Name {
        /// The field that holds the name.
        field: &'static str,
        /// What is wrong with it.
        source: NameError,
    },
    /// The bytes are not the JSON document that they should be.
    #[error("{field}: not valid JSON at line {line}, column {column}: {message}")]
    Json {
        /// The document.
        field: String,
        /// One-based line.
        line: usize,
        /// One-based column.
        column: usize,
        /// What the parser found and expected.
        message: String,
    },
    /// The text is not base64 (standard alphabet, padded).
    #[error("{field}: not valid base64: {message}")]
    Base64 {
        /// The field that holds the text.
        field: String,
        /// The offset and the byte that is wrong.
        message: String,
    },
    /// The bytes are not the bincode value that they should be.
    #[error("{field}: not a valid bincode {expected} ({length} bytes): {message}")]
    Bincode {
        /// The field, with its index where it is repeated.
        field: String,
        /// The type that was expected.
        expected: &'static str,
        /// How many bytes the field holds.
        length: usize,
        /// What the decoder found.
        message: String,
    },
    /// The value ends before the bytes do.
    #[error("{field}: {found} bytes, but its {expected} ends at offset {offset}: trailing bytes")]
    TrailingBytes {
        /// The field, with its index where it is repeated.
        field: String,
        /// The type that was read.
        expected: &'static str,
        /// Where the value ends.
        offset: usize,
        /// How many bytes the field holds.
        found: usize,
    },
    /// A field that this kind of proof needs is not there.
    #[error("{field}: missing, a {kind} request needs it")]
    Missing {
        /// The field.
        field: &'static str,
        /// The kind of proof.
        kind: ProofKind,
    },
    /// A field of fixed length has another one.
    #[error("{field}: {found} bytes, expected {expected}")]
    Length {
        /// The field.
        field: String,
        /// The length in bytes that it must have.
        expected: usize,
        /// The length in bytes that it has.
        found: usize,
    },
    /// A list has another number of elements than the circuit has places.
    #[error("{field}: {found} elements, expected {expected}")]
    Count {
        /// The list, by its path in the input.
        field: String,
        /// How many elements there must be.
        expected: String,
        /// How many there are.
        found: usize,
    },
    /// A value contradicts another part of the request or the sector size.
    #[error("{field}: found {found}, expected {expected}")]
    Mismatch {
        /// The value, by its path in the input.
        field: String,
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// 32 bytes that should be a field element are not below the modulus.
    #[error("{field}: {found} is not a canonical little-endian element of the scalar field")]
    NotCanonical {
        /// The value, by its path in the input.
        field: String,
        /// The bytes in hexadecimal, in the order of the input.
        found: String,
    },
    /// The input is about sectors of another size.
    #[error("{field}: {found}, expected {expected}")]
    SectorSize {
        /// Where the other size was found.
        field: String,
        /// The size that the request states.
        expected: SectorSize,
        /// The size that was found.
        found: SectorSize,
    },
    /// The circuit of this request is not the one that was asked for.
    #[error("the request is for circuit {found}, expected {expected}")]
    Circuit {
        /// The circuit that was asked for.
        expected: CircuitId,
        /// The circuit of the request.
        found: CircuitId,
    },
    /// There is no such partition.
    #[error("partition {partition} does not exist: the request has {partitions}")]
    Partition {
        /// The partition that was asked for.
        partition: usize,
        /// How many there are.
        partitions: usize,
    },
    /// The vanilla proof of a partition leads to no witness.
    #[error("partition {partition}: {source}")]
    Witness {
        /// The partition.
        partition: usize,
        /// What is wrong.
        source: WitnessError,
    },
    /// Synthesis of the circuit failed.
    #[error(transparent)]
    Synthesis(CircuitError),
    /// storage-proofs refused the input.
    #[error("{action}: {message}")]
    StorageProofs {
        /// What was being done.
        action: &'static str,
        /// The whole chain of storage-proofs' messages.
        message: String,
    },
    /// storage-proofs panicked on the input.
    #[error("{action}: storage-proofs panicked: {message}")]
    Panic {
        /// What was being done.
        action: &'static str,
        /// The panic's message.
        message: String,
    },
}

impl RequestError {
    /// Wraps an I/O error with the path that it is about.
    pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// A [`RequestError::Mismatch`] of two values that can be shown.
    pub(crate) fn mismatch(
        field: impl Into<String>,
        expected: impl ToString,
        found: impl ToString,
    ) -> Self {
        Self::Mismatch {
            field: field.into(),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    /// A [`RequestError::Json`] with the parser's position.
    pub(crate) fn json(field: &str, error: &serde_json::Error) -> Self {
        Self::Json {
            field: field.to_owned(),
            line: error.line(),
            column: error.column(),
            message: error.to_string(),
        }
    }
}
