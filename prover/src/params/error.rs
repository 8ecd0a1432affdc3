//! What can be wrong with a parameter file, a verifying key or one of their points.

use std::{fmt, io};

use thiserror::Error;

/// Why a parameter file or a verifying key was refused or could not be written.
///
/// Offsets count bytes from the start of the file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ParamsError {
    /// The operating system refused an operation on the file.
    #[error("{file}: cannot {action}: {source}")]
    Io {
        /// The file, or the name that the caller gave to the bytes.
        file: String,
        /// What was tried: "open", "map", "write", "sync", "rename".
        action: &'static str,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The file has no bytes at all.
    #[error("{file}: the file is empty, expected at least {expected} bytes of {what}")]
    Empty {
        /// The file.
        file: String,
        /// What the file should have held.
        what: &'static str,
        /// The least number of bytes of such a file.
        expected: u64,
    },
    /// The file ends before an element does.
    #[error(
        "{file}: truncated at offset {offset}: {what} needs {expected} bytes from there, found {found}"
    )]
    Truncated {
        /// The file.
        file: String,
        /// The element that is cut off.
        what: &'static str,
        /// Where the element starts.
        offset: u64,
        /// The bytes that the element needs.
        expected: u64,
        /// The bytes that are left in the file.
        found: u64,
    },
    /// Bytes follow after the last element.
    #[error("{file}: {found} bytes, expected {expected} by the counts in the file")]
    Oversized {
        /// The file.
        file: String,
        /// The size that follows from the counts.
        expected: u64,
        /// The size of the file.
        found: u64,
    },
    /// The file is a well-formed file of another kind.
    #[error("{file}: expected {expected}, found {found}")]
    WrongKind {
        /// The file.
        file: String,
        /// The kind that was asked for.
        expected: &'static str,
        /// The kind that the bytes have.
        found: &'static str,
    },
    /// Counts inside the file contradict one another.
    #[error("{file}: the count of {what} at offset {offset} is {found}, expected {expected}")]
    Count {
        /// The file.
        file: String,
        /// The section that the count belongs to.
        what: &'static str,
        /// Where the count stands.
        offset: u64,
        /// The rule that the count has to obey.
        expected: String,
        /// The count.
        found: u64,
    },
    /// Points that are made on devices are too many for the host.
    #[error(
        "{file}: {bytes} bytes of points are made on devices only, on the host at most {limit}"
    )]
    NotOnHost {
        /// A name for the parameters.
        file: String,
        /// Bytes that a file of them would have.
        bytes: u64,
        /// Most bytes that are made on the host.
        limit: u64,
    },
    /// An element is not a valid point.
    #[error("{file}: {what}[{index}] at offset {offset}: expected {expected}, found {found}")]
    Point {
        /// The file.
        file: String,
        /// The section.
        what: &'static str,
        /// The position in the section.
        index: usize,
        /// Where the point starts.
        offset: u64,
        /// The group that the point should be in.
        expected: &'static str,
        /// What is wrong with it.
        found: PointFault,
    },
}

/// What is wrong with the encoding of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointFault {
    /// The three flag bits of the first byte are not those of this encoding.
    Flags(u8),
    /// The point at infinity, where none is allowed.
    Identity,
    /// A coordinate is not below the field's modulus, or the point is not on the curve.
    OffCurve,
    /// A point of the curve outside of the subgroup of prime order.
    OutsideSubgroup,
}

impl fmt::Display for PointFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flags(byte) => write!(f, "flag bits {:#010b} in the first byte", byte & 0xe0),
            Self::Identity => f.write_str("the point at infinity"),
            Self::OffCurve => f.write_str("bytes that are no point of the curve"),
            Self::OutsideSubgroup => f.write_str("a point outside of the prime-order subgroup"),
        }
    }
}
