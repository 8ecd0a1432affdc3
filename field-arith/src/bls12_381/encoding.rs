//! Uncompressed points as the Zcash serialisation and `.params` files have them.
//!
//! G1: x, y; G2: x.c1, x.c0, y.c1, y.c0; each coordinate 48 bytes, big endian. The three top bits
//! of the first byte say: compressed (must be 0), identity (all other bits 0), sign (must be 0).

use core::fmt;

use super::{Fp, Fp2, G1, G2};
use crate::backend::{Backend, Native};
use crate::curve::{Affine, Curve};

/// 48 bytes as twelve words read in little-endian order, as a device loads them.
pub type Words = [u32; 12];

/// Flags in the first word, whose lowest byte is the first byte of the encoding.
const COMPRESSED: u32 = 0x80;
const IDENTITY: u32 = 0x40;
const SIGN: u32 = 0x20;

/// Why bytes are not an uncompressed point of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum PointError {
    /// The compressed or the sign flag is set.
    Flags = 1,
    /// The identity flag is set, but a coordinate is not zero.
    Identity = 2,
    /// A coordinate is not below p.
    Range = 3,
    /// y^2 differs from x^3 + b.
    NotOnCurve = 4,
    /// The point is not in the subgroup of order r.
    NotInSubgroup = 5,
}

impl fmt::Display for PointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flags => "the encoding's flags are not those of an uncompressed point",
            Self::Identity => "the identity's encoding has other bits set",
            Self::Range => "a coordinate is not below the modulus",
            Self::NotOnCurve => "the point is not on the curve",
            Self::NotInSubgroup => "the point is not in the subgroup of prime order",
        })
    }
}

impl core::error::Error for PointError {}

/// Curves with an uncompressed encoding.
pub trait Uncompressed: Curve {
    /// The coordinates' words, in the order of the encoding.
    type Encoding: bytemuck::Pod;
    /// Decodes a point and checks flags, ranges and the curve equation, not the subgroup. The
    /// result is canonical.
    ///
    /// # Errors
    /// The [`PointError`] that describes the first fault.
    fn decode(words: &Self::Encoding) -> Result<Affine<Self>, PointError>;
    /// Encodes a point.
    fn encode(p: &Affine<Self>) -> Self::Encoding;
}

/// Big-endian words to an integer.
#[inline(always)]
fn integer(words: &Words) -> [u32; 12] {
    Native::reverse_bytes(words)
}

/// Separates the flags from the first coordinate: Ok(true) for the identity's flag.
#[inline(always)]
fn flags(first: u32) -> Result<bool, PointError> {
    if first & (COMPRESSED | SIGN) != 0 {
        return Err(PointError::Flags);
    }
    Ok(first & IDENTITY != 0)
}

#[inline(always)]
fn on_curve<C: Curve>(p: Affine<C>) -> Result<Affine<C>, PointError> {
    // (0, 0) encoded without the flag is no point either, although it is how we keep the identity
    if p.is_on_curve() && !p.is_identity() {
        Ok(p)
    } else {
        Err(PointError::NotOnCurve)
    }
}

impl Uncompressed for G1 {
    type Encoding = [Words; 2];

    #[inline(always)]
    fn decode(words: &[Words; 2]) -> Result<Affine<G1>, PointError> {
        let [mut x, y] = *words;
        if flags(x[0])? {
            x[0] &= !IDENTITY;
            let zero = Native::is_zero(&x) && Native::is_zero(&y);
            return if zero {
                Ok(Affine::IDENTITY)
            } else {
                Err(PointError::Identity)
            };
        }
        let (x, y) = (integer(&x), integer(&y));
        if !(Fp::is_canonical_integer(&x) && Fp::is_canonical_integer(&y)) {
            return Err(PointError::Range);
        }
        let p = Affine {
            x: Fp::from_integer(&x),
            y: Fp::from_integer(&y),
        };
        on_curve(p.canonical())
    }

    #[inline(always)]
    fn encode(p: &Affine<G1>) -> [Words; 2] {
        let mut words = [integer(&p.x.to_integer()), integer(&p.y.to_integer())];
        if p.is_identity() {
            words[0][0] = IDENTITY;
        }
        words
    }
}

impl Uncompressed for G2 {
    type Encoding = [Words; 4];

    #[inline(always)]
    fn decode(words: &[Words; 4]) -> Result<Affine<G2>, PointError> {
        let [mut x1, x0, y1, y0] = *words;
        if flags(x1[0])? {
            x1[0] &= !IDENTITY;
            let zero = Native::is_zero(&x1)
                && Native::is_zero(&x0)
                && Native::is_zero(&y1)
                && Native::is_zero(&y0);
            return if zero {
                Ok(Affine::IDENTITY)
            } else {
                Err(PointError::Identity)
            };
        }
        let (x1, x0, y1, y0) = (integer(&x1), integer(&x0), integer(&y1), integer(&y0));
        let in_range = Fp::is_canonical_integer(&x1)
            && Fp::is_canonical_integer(&x0)
            && Fp::is_canonical_integer(&y1)
            && Fp::is_canonical_integer(&y0);
        if !in_range {
            return Err(PointError::Range);
        }
        let p = Affine {
            x: Fp2::new(Fp::from_integer(&x0), Fp::from_integer(&x1)),
            y: Fp2::new(Fp::from_integer(&y0), Fp::from_integer(&y1)),
        };
        on_curve(p.canonical())
    }

    #[inline(always)]
    fn encode(p: &Affine<G2>) -> [Words; 4] {
        let mut words = [
            integer(&p.x.c1.to_integer()),
            integer(&p.x.c0.to_integer()),
            integer(&p.y.c1.to_integer()),
            integer(&p.y.c0.to_integer()),
        ];
        if p.is_identity() {
            words[0][0] = IDENTITY;
        }
        words
    }
}
