//! The verifying key and its file format, the exact prefix of a parameter file.

use std::{fs, path::Path};

use blstrs::{G1Affine, G2Affine};
use group::prime::PrimeCurveAffine;

use crate::params::{
    ParamsError, PointFault, check_subgroup, io_error,
    layout::{self, FIXED_KEY_BYTES, Section},
    point::{Encoded, Place, decode_all, decode_checked},
    store,
};

/// The public part of a circuit's parameters.
///
/// Points are affine with coordinates in Montgomery form, as in blstrs. In a key that was read from
/// bytes each point is finite, on the curve and in the subgroup of prime order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingKey {
    /// α in G1.
    pub alpha_g1: G1Affine,
    /// β in G1; only a prover needs it.
    pub beta_g1: G1Affine,
    /// β in G2.
    pub beta_g2: G2Affine,
    /// γ in G2.
    pub gamma_g2: G2Affine,
    /// δ in G1; only a prover needs it.
    pub delta_g1: G1Affine,
    /// δ in G2.
    pub delta_g2: G2Affine,
    /// One point for each public input, the constant one first:
    /// (β·u_i(τ) + α·v_i(τ) + w_i(τ)) / γ.
    pub ic: Vec<G1Affine>,
}

impl VerifyingKey {
    /// The number of public inputs, without the constant one.
    pub fn public_inputs(&self) -> usize {
        self.ic.len().saturating_sub(1)
    }

    /// Reads a `.vk` file.
    ///
    /// # Errors
    /// When the file cannot be read, has the wrong size or holds a bad point.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ParamsError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let bytes = fs::read(path).map_err(|source| io_error(&file, "read", source))?;
        Self::from_bytes(&file, &bytes)
    }

    /// Decodes a whole `.vk` file that lies in memory; `name` stands for the file in messages.
    ///
    /// # Errors
    /// When the bytes are not exactly one key, or a point in it is bad.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self, ParamsError> {
        let ic = layout::key(name, bytes)?;
        if ic.end() != bytes.len() {
            if layout::parse(name, bytes).is_ok() {
                return Err(ParamsError::WrongKind {
                    file: name.to_owned(),
                    expected: "a verifying key alone",
                    found: "a whole parameter file",
                });
            }
            return Err(ParamsError::Oversized {
                file: name.to_owned(),
                expected: ic.end() as u64,
                found: bytes.len() as u64,
            });
        }
        Self::decode(name, bytes, ic)
    }

    /// Decodes the key at the start of `bytes`, where the ic section has already been found.
    pub(crate) fn decode(file: &str, bytes: &[u8], ic: Section) -> Result<Self, ParamsError> {
        let mut fixed = Fixed {
            file,
            bytes,
            offset: 0,
        };
        let alpha_g1 = fixed.next("alpha_g1")?;
        let beta_g1 = fixed.next("beta_g1")?;
        let beta_g2 = fixed.next("beta_g2")?;
        let gamma_g2 = fixed.next("gamma_g2")?;
        let delta_g1 = fixed.next("delta_g1")?;
        let delta_g2 = fixed.next("delta_g2")?;
        let place = Place {
            file,
            what: "ic",
            offset: ic.offset as u64,
        };
        let ic = decode_all(ic.of(bytes), place)?;
        check_subgroup(&[&ic], &[place])?;
        Ok(Self {
            alpha_g1,
            beta_g1,
            beta_g2,
            gamma_g2,
            delta_g1,
            delta_g2,
            ic,
        })
    }

    /// The bytes of the key's `.vk` file.
    ///
    /// # Errors
    /// When a point is the point at infinity, or the count of ic does not fit in 32 bits.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ParamsError> {
        self.encode("verifying key")
    }

    /// [`Self::to_bytes`] with the name of the file for messages.
    pub(crate) fn encode(&self, file: &str) -> Result<Vec<u8>, ParamsError> {
        self.check_finite(file)?;
        let mut out = Vec::with_capacity(FIXED_KEY_BYTES + 4 + self.ic.len() * G1Affine::BYTES);
        self.alpha_g1.encode(&mut out);
        self.beta_g1.encode(&mut out);
        self.beta_g2.encode(&mut out);
        self.gamma_g2.encode(&mut out);
        self.delta_g1.encode(&mut out);
        self.delta_g2.encode(&mut out);
        out.extend_from_slice(&store::count(file, "ic", out.len(), self.ic.len())?);
        for point in &self.ic {
            point.encode(&mut out);
        }
        Ok(out)
    }

    /// Writes a `.vk` file: a temporary file in the same folder, synced and then renamed.
    ///
    /// # Errors
    /// When the file cannot be written, or [`Self::to_bytes`] fails.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), ParamsError> {
        let path = path.as_ref();
        let bytes = self.encode(&path.display().to_string())?;
        store::replace(path, |out| out.write_all(&bytes))
    }

    /// Refuses points at infinity, which no file may hold.
    fn check_finite(&self, file: &str) -> Result<(), ParamsError> {
        let place = |what| Place {
            file,
            what,
            offset: 0,
        };
        for (what, point) in [
            ("alpha_g1", &self.alpha_g1),
            ("beta_g1", &self.beta_g1),
            ("delta_g1", &self.delta_g1),
        ] {
            if bool::from(point.is_identity()) {
                return Err(place(what).fault::<G1Affine>(0, PointFault::Identity));
            }
        }
        for (what, point) in [
            ("beta_g2", &self.beta_g2),
            ("gamma_g2", &self.gamma_g2),
            ("delta_g2", &self.delta_g2),
        ] {
            if bool::from(point.is_identity()) {
                return Err(place(what).fault::<G2Affine>(0, PointFault::Identity));
            }
        }
        store::check_finite(&self.ic, place("ic"))
    }
}

/// Reads the six fixed points one after the other.
struct Fixed<'a> {
    file: &'a str,
    bytes: &'a [u8],
    offset: usize,
}

impl Fixed<'_> {
    /// Decodes and checks the next point.
    fn next<P: Encoded>(&mut self, what: &'static str) -> Result<P, ParamsError> {
        let place = Place {
            file: self.file,
            what,
            offset: self.offset as u64,
        };
        let bytes = self
            .bytes
            .get(self.offset..self.offset + P::BYTES)
            .unwrap_or_default();
        self.offset += P::BYTES;
        decode_checked(bytes, place)
    }
}
