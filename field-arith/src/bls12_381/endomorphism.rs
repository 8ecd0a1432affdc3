//! Endomorphisms of G1 and G2, subgroup membership, and scalars in base z.
//!
//! With x = -z the curve's parameter and r = x^4 - x^2 + 1:
//!
//! - On G1, φ(x, y) = (βx, y) with β^3 = 1 multiplies by -x^2. Conversely φ(P) = -\[x^2\]P puts P
//!   into G1, because rP = (x^4 - x^2 + 1)P = (φ^2 + φ + 1)P = 0.
//! - On G2, ψ = twist⁻¹ ∘ Frobenius ∘ twist multiplies by x, and satisfies ψ^2 - (x + 1)ψ + p = 0.
//!   Conversely ψ(P) = \[x\]P gives (p - x)P = 0 with p - x = r (x - 1)^2 / 3, whose second factor
//!   is coprime to the cofactor of G2 (Scott, "A note on group membership tests for G1, G2 and GT
//!   on BLS pairing-friendly curves", 2021).

use super::{Fp, Fp2, FpParams, FrParams, G1, G2};
use crate::curve::{Affine, Curve, Xyzz};
use crate::ops::FieldOps;
use crate::params::{
    FieldParams, divide_small, minus_one, pow_mont, shift_right, small_to_mont, sub_wrapping,
};

/// z = -x = 0xd201000000010000, of Hamming weight 6.
pub const Z: u64 = 0xd201_0000_0001_0000;

const P: [u32; 12] = FpParams::MODULUS;

/// β = 2^((p - 1) / 3), the primitive cube root of unity with φ(P) = -\[x^2\]P on G1.
pub const BETA: Fp = Fp::from_limbs(pow_mont(
    &P,
    &small_to_mont(&P, 2),
    &divide_small(&minus_one(&P), 3),
));

/// 1 / (1 + i)^((p - 1) / 3) = -βi, the factor of ψ's x coordinate.
pub const PSI_X: Fp2 = Fp2::new(Fp::ZERO, Fp::from_limbs(sub_wrapping(&P, BETA.limbs())));

/// 2^((p - 3) / 4).
const ROOT: [u32; 12] = pow_mont(&P, &small_to_mont(&P, 2), &shift_right(&P, 2));

/// 1 / (1 + i)^((p - 1) / 2) = 2^((p - 3) / 4) (1 - i), the factor of ψ's y coordinate.
pub const PSI_Y: Fp2 = Fp2::new(
    Fp::from_limbs(ROOT),
    Fp::from_limbs(sub_wrapping(&P, &ROOT)),
);

/// A curve whose prime-order subgroup an endomorphism recognises.
pub trait Subgroup: Curve {
    /// φ on G1, ψ on G2.
    fn endomorphism(p: &Affine<Self>) -> Affine<Self>;
    /// For a point of the curve: whether rP = 0. The identity is in.
    fn contains(p: &Affine<Self>) -> bool;
}

/// \[k\]P by double and add, for a public k: all threads do the same.
#[inline(always)]
fn multiply<C: Curve>(k: u128, p: &Affine<C>) -> Xyzz<C> {
    let mut q = Xyzz::from_affine(p);
    let mut bit = 127 - k.leading_zeros();
    while bit > 0 {
        bit -= 1;
        q.double();
        if (k >> bit) & 1 == 1 {
            q.add_affine(p);
        }
    }
    q
}

/// Whether -q = p, for an affine p that is not the identity.
#[inline(always)]
fn is_opposite<C: Curve>(q: &Xyzz<C>, p: &Affine<C>) -> bool {
    !q.is_identity() && p.x.mul(&q.zz).sub(&q.x).is_zero() && p.y.mul(&q.zzz).add(&q.y).is_zero()
}

impl Subgroup for G1 {
    #[inline(always)]
    fn endomorphism(p: &Affine<G1>) -> Affine<G1> {
        Affine {
            x: p.x.mul(&BETA),
            y: p.y,
        }
    }

    #[inline(always)]
    fn contains(p: &Affine<G1>) -> bool {
        // adding the affine P for the 16 bits of z^2 keeps fewer registers alive than [z][z]P
        let q = multiply(Z as u128 * Z as u128, p);
        p.is_identity() || is_opposite(&q, &Self::endomorphism(p))
    }
}

impl Subgroup for G2 {
    #[inline(always)]
    fn endomorphism(p: &Affine<G2>) -> Affine<G2> {
        let x = p.x.conjugate();
        // PSI_X = b i: (c0 + c1 i) b i = -b c1 + b c0 i
        let x = Fp2::new(x.c1.mul(&PSI_X.c1).neg(), x.c0.mul(&PSI_X.c1));
        // PSI_Y = k (1 - i): (c0 + c1 i) k (1 - i) = k ((c0 + c1) + (c1 - c0) i)
        let y = p.y.conjugate();
        let y = Fp2::new(y.c0.add(&y.c1), y.c1.sub(&y.c0)).scale(&PSI_Y.c0);
        Affine { x, y }
    }

    #[inline(always)]
    fn contains(p: &Affine<G2>) -> bool {
        let q = multiply(Z as u128, p);
        p.is_identity() || is_opposite(&q, &Self::endomorphism(p))
    }
}

/// ⌊(2^128 - 1) / z⌋ - 2^64: the reciprocal of z (Möller and Granlund, "Improved division by
/// invariant integers", 2011).
const RECIPROCAL: u64 = (u128::MAX / Z as u128 - (1 << 64)) as u64;

/// (quotient, remainder) of (high, low) by z, for high < z.
#[inline(always)]
fn divide_by_z(high: u64, low: u64) -> (u64, u64) {
    let estimate = (RECIPROCAL as u128 * high as u128) + ((high as u128) << 64 | low as u128);
    let mut quotient = ((estimate >> 64) as u64).wrapping_add(1);
    let mut remainder = low.wrapping_sub(quotient.wrapping_mul(Z));
    if remainder > estimate as u64 {
        quotient = quotient.wrapping_sub(1);
        remainder = remainder.wrapping_add(Z);
    }
    if remainder >= Z {
        quotient = quotient.wrapping_add(1);
        remainder -= Z;
    }
    (quotient, remainder)
}

/// Digits of a scalar k < r in base z: k = d0 + d1 z + d2 z^2 + d3 z^3, all below z.
///
/// On G2, \[z\]P = -ψ(P): kP = d0 P - d1 ψ(P) + d2 ψ^2(P) - d3 ψ^3(P). On G1, \[z^2\]P = -φ(P):
/// kP = (d0 + d1 z)P - (d2 + d3 z)φ(P). `k` is an integer (not in Montgomery form).
#[inline(always)]
pub fn digits_in_base_z(k: &[u32; 8]) -> [u64; 4] {
    let word = |low: u32, high: u32| low as u64 | (high as u64) << 32;
    let k = [
        word(k[0], k[1]),
        word(k[2], k[3]),
        word(k[4], k[5]),
        word(k[6], k[7]),
    ];
    let (q3, r) = divide_by_z(0, k[3]);
    let (q2, r) = divide_by_z(r, k[2]);
    let (q1, r) = divide_by_z(r, k[1]);
    let (q0, d0) = divide_by_z(r, k[0]);
    let (s3, r) = divide_by_z(0, q3);
    let (s2, r) = divide_by_z(r, q2);
    let (s1, r) = divide_by_z(r, q1);
    let (s0, d1) = divide_by_z(r, q0);
    // k < z^4, so k / z^2 has two words and s3 = s2 = 0
    let _ = (s3, s2);
    let (_, r) = divide_by_z(0, s1);
    let (d3, d2) = divide_by_z(r, s0);
    [d0, d1, d2, d3]
}

/// (d0 + d1 z, d2 + d3 z): the two halves of a scalar for [`G1`], each below z^2 < 2^128.
#[inline(always)]
pub fn halves(k: &[u32; 8]) -> [u128; 2] {
    let [d0, d1, d2, d3] = digits_in_base_z(k);
    [
        d0 as u128 + d1 as u128 * Z as u128,
        d2 as u128 + d3 as u128 * Z as u128,
    ]
}

const _: () = assert!(FrParams::MODULUS[7] < 0x7400_0000, "r < z^4");
