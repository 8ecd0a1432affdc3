//! BLS12-381: all that distinguishes this curve from another one.

pub mod encoding;
pub mod endomorphism;

use crate::curve::{Affine, Curve, Xyzz};
use crate::fixed::Fixed;
use crate::fp2::Quadratic;
use crate::montgomery::Mont;
use crate::params::{FieldParams, TwoAdicParams};

/// Parameters of the base field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FpParams;

impl FieldParams<12> for FpParams {
    const NAME: &'static str = "Fp";
    /// p = (x - 1)^2 (x^4 - x^2 + 1) / 3 + x with x = -0xd201000000010000.
    const MODULUS: [u32; 12] = [
        0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe, 0xf6b0f624, 0x6730d2a0, 0xf38512bf,
        0x64774b84, 0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea,
    ];
}

/// Parameters of the scalar field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrParams;

impl FieldParams<8> for FrParams {
    const NAME: &'static str = "Fr";
    /// r = x^4 - x^2 + 1.
    const MODULUS: [u32; 8] = [
        0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402, 0x09a1d805, 0x3339d808, 0x299d7d48,
        0x73eda753,
    ];
}

impl TwoAdicParams<8> for FrParams {
    const GENERATOR: u32 = 7;
}

/// Base field, values in [0, 2p).
pub type Fp = Mont<FpParams, 12>;
/// Fp(i) with i^2 = -1.
pub type Fp2 = Quadratic<FpParams, 12>;
/// Scalar field, values in [0, r).
pub type Fr = Mont<FrParams, 8>;

/// A prepared factor in Fr, for transforms.
pub type FixedFr = Fixed<FrParams, 8>;

/// The curve y^2 = x^3 + 4 over Fp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct G1;

impl Curve for G1 {
    type Base = Fp;
    const NAME: &'static str = "G1";
    /// 4.
    const B: Fp = Fp::from_limbs(crate::params::small_to_mont(&FpParams::MODULUS, 4));
}

/// Affine point on G1.
pub type G1Affine = Affine<G1>;
/// XYZZ point on G1.
pub type G1Xyzz = Xyzz<G1>;

/// The curve y^2 = x^3 + 4 (1 + i) over Fp2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct G2;

impl Curve for G2 {
    type Base = Fp2;
    const NAME: &'static str = "G2";
    /// 4 + 4i.
    const B: Fp2 = Fp2::new(G1::B, G1::B);
}

/// Affine point on G2.
pub type G2Affine = Affine<G2>;
/// XYZZ point on G2.
pub type G2Xyzz = Xyzz<G2>;
