//! A Groth16 proof and its 192 bytes.

use std::{fs, io, path::Path};

use blstrs::{G1Affine, G2Affine};
use group::prime::PrimeCurveAffine;
use thiserror::Error;

use crate::params::{ParamsError, PointFault, store};

/// Bytes of a compressed G1 point.
const G1: usize = 48;
/// Bytes of a compressed G2 point.
const G2: usize = 96;

/// A proof. Points are affine with coordinates in Montgomery form, as in blstrs.
///
/// ```
/// use cuzk_prover::{Proof, ProofError};
///
/// let refused = Proof::from_bytes(&[0; 10]);
/// assert!(matches!(refused, Err(ProofError::Length { expected: 192, found: 10 })));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// A in G1.
    pub a: G1Affine,
    /// B in G2.
    pub b: G2Affine,
    /// C in G1.
    pub c: G1Affine,
}

/// Why bytes are not a proof.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProofError {
    /// The file could not be read or written.
    #[error("{file}: cannot {action}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What was tried.
        action: &'static str,
        /// The operating system's answer.
        source: io::Error,
    },
    /// There are too few or too many bytes.
    #[error("a proof has {expected} bytes, found {found}")]
    Length {
        /// The bytes that a proof, or a run of proofs, has.
        expected: usize,
        /// The bytes that there were.
        found: usize,
    },
    /// An element is no valid point.
    #[error("element {element} at offset {offset}: expected {expected}, found {found}")]
    Point {
        /// "a", "b" or "c".
        element: &'static str,
        /// Where the element starts.
        offset: usize,
        /// The group that the element should be in.
        expected: &'static str,
        /// What is wrong with it.
        found: PointFault,
    },
}

impl Proof {
    /// Bytes of an encoded proof.
    pub const BYTES: usize = 2 * G1 + G2;

    /// The proof's bytes: a, b, c, each compressed and big-endian (b with c1 before c0).
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..G1].copy_from_slice(&self.a.to_compressed());
        bytes[G1..G1 + G2].copy_from_slice(&self.b.to_compressed());
        bytes[G1 + G2..].copy_from_slice(&self.c.to_compressed());
        bytes
    }

    /// Decodes a proof. Each point has to be finite, canonically encoded and in the subgroup of
    /// prime order.
    ///
    /// # Errors
    /// When the length is not 192 or a point is bad.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProofError> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().map_err(|_| ProofError::Length {
            expected: Self::BYTES,
            found: bytes.len(),
        })?;
        Ok(Self {
            a: decode_g1("a", bytes, 0)?,
            b: decode_g2("b", bytes, G1)?,
            c: decode_g1("c", bytes, G1 + G2)?,
        })
    }

    /// Decodes `count` proofs that follow one another, as the partitions of a Filecoin proof do.
    ///
    /// # Errors
    /// When the length is not 192 · `count`, or a proof is bad.
    pub fn many_from_bytes(bytes: &[u8], count: usize) -> Result<Vec<Self>, ProofError> {
        let expected = Self::BYTES.saturating_mul(count);
        if bytes.len() != expected {
            return Err(ProofError::Length {
                expected,
                found: bytes.len(),
            });
        }
        bytes
            .chunks_exact(Self::BYTES)
            .map(Self::from_bytes)
            .collect()
    }

    /// Reads a proof file of exactly 192 bytes.
    ///
    /// # Errors
    /// When the file cannot be read or does not hold a proof.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ProofError> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|source| ProofError::Io {
            file: path.display().to_string(),
            action: "read",
            source,
        })?;
        Self::from_bytes(&bytes)
    }

    /// Writes a proof file: a temporary file in the same folder, synced and then renamed.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), ProofError> {
        store::replace(path.as_ref(), |out| out.write_all(&self.to_bytes())).map_err(|e| match e {
            ParamsError::Io {
                file,
                action,
                source,
            } => ProofError::Io {
                file,
                action,
                source,
            },
            other => ProofError::Io {
                file: path.as_ref().display().to_string(),
                action: "write",
                source: io::Error::other(other),
            },
        })
    }
}

/// Finds out what is wrong with a compressed point that did not decode.
fn fault(first_byte: u8, on_curve: bool) -> PointFault {
    match first_byte & 0xe0 {
        0x80 | 0xa0 if on_curve => PointFault::OutsideSubgroup,
        0x80 | 0xa0 => PointFault::OffCurve,
        _ => PointFault::Flags(first_byte),
    }
}

macro_rules! impl_decode {
    ($name:ident, $point:ty, $bytes:ident, $group:literal) => {
        /// Decodes the compressed point at `offset`.
        fn $name(
            element: &'static str,
            proof: &[u8; Proof::BYTES],
            offset: usize,
        ) -> Result<$point, ProofError> {
            let refuse = |found| ProofError::Point {
                element,
                offset,
                expected: $group,
                found,
            };
            let mut bytes = [0; $bytes];
            bytes.copy_from_slice(&proof[offset..offset + $bytes]);
            match Option::<$point>::from(<$point>::from_compressed(&bytes)) {
                Some(point) if bool::from(point.is_identity()) => Err(refuse(PointFault::Identity)),
                Some(point) => Ok(point),
                None => {
                    let on_curve = <$point>::from_compressed_unchecked(&bytes).is_some().into();
                    Err(refuse(fault(bytes[0], on_curve)))
                }
            }
        }
    };
}

impl_decode!(decode_g1, G1Affine, G1, "a point of G1");
impl_decode!(decode_g2, G2Affine, G2, "a point of G2");
