//! The two coordinate fields of BLS12-381 as the affine formulas need them: Fp for G1, Fp2 for G2.
//!
//! Products come from blst's assembly. Sums, differences and comparisons are a few instructions
//! each and stand here, where they can be inlined.

use blst::{
    blst_fp, blst_fp_eucl_inverse, blst_fp_mul, blst_fp_sqr, blst_fp2, blst_fp2_eucl_inverse,
    blst_fp2_mul, blst_fp2_sqr,
};

/// A field element in blst's Montgomery form, always fully reduced.
pub(crate) trait Coordinate: Copy + Default + Send + Sync {
    /// Zero.
    const ZERO: Self;
    /// One, R mod p in Montgomery form.
    const ONE: Self;

    /// `self · rhs`.
    fn mul(&self, rhs: &Self) -> Self;
    /// `self = self · rhs`.
    fn mul_assign(&mut self, rhs: &Self);
    /// `self²`.
    fn square(&self) -> Self;
    /// `self + rhs`.
    fn add(&self, rhs: &Self) -> Self;
    /// `self − rhs`.
    fn sub(&self, rhs: &Self) -> Self;
    /// `1 / self`, and 0 for 0. Variable time.
    fn inverse(&self) -> Self;
    /// Whether `self = rhs`.
    fn equals(&self, rhs: &Self) -> bool;
    /// Whether `self = 0`.
    fn is_zero(&self) -> bool;

    /// `−self` or `self`, without a branch.
    fn negated_if(&self, negate: bool) -> Self;

    /// `−self`.
    #[inline(always)]
    fn neg(&self) -> Self {
        Self::ZERO.sub(self)
    }
}

/// p, little-endian limbs.
const MODULUS: [u64; 6] = [
    0xb9fe_ffff_ffff_aaab,
    0x1eab_fffe_b153_ffff,
    0x6730_d2a0_f6b0_f624,
    0x6477_4b84_f385_12bf,
    0x4b1b_a7b6_434b_acd7,
    0x1a01_11ea_397f_e69a,
];
/// R mod p with R = 2³⁸⁴.
const FP_ONE: blst_fp = blst_fp {
    l: [
        0x7609_0000_0002_fffd,
        0xebf4_000b_c40c_0002,
        0x5f48_9857_53c7_58ba,
        0x77ce_5853_7052_5745,
        0x5c07_1a97_a256_ec6d,
        0x15f6_5ec3_fa80_e493,
    ],
};
const FP_ZERO: blst_fp = blst_fp { l: [0; 6] };

/// x + y modulo 2³⁸⁴.
#[inline(always)]
fn add_limbs(x: &[u64; 6], y: &[u64; 6]) -> [u64; 6] {
    let mut carry = false;
    let mut sum = [0; 6];
    for i in 0..6 {
        let (partial, first) = x[i].overflowing_add(y[i]);
        let (limb, second) = partial.overflowing_add(u64::from(carry));
        sum[i] = limb;
        carry = first | second;
    }
    sum
}

/// x − y modulo 2³⁸⁴.
#[inline(always)]
fn sub_limbs(x: &[u64; 6], y: &[u64; 6]) -> [u64; 6] {
    let mut borrow = false;
    let mut difference = [0; 6];
    for i in 0..6 {
        let (partial, first) = x[i].overflowing_sub(y[i]);
        let (limb, second) = partial.overflowing_sub(u64::from(borrow));
        difference[i] = limb;
        borrow = first | second;
    }
    difference
}

/// `x + p` if `x`, in two's complement, is negative, else `x`. The sign is spread by a shift: a
/// comparison would become a branch that is mispredicted every other time.
#[inline(always)]
fn add_modulus_if_negative(x: &[u64; 6]) -> [u64; 6] {
    let mask = (x[5] as i64 >> 63) as u64;
    add_limbs(x, &MODULUS.map(|limb| limb & mask))
}

impl Coordinate for blst_fp {
    const ZERO: Self = FP_ZERO;
    const ONE: Self = FP_ONE;

    #[inline(always)]
    fn mul(&self, rhs: &Self) -> Self {
        let mut out = FP_ZERO;
        // SAFETY: the function reads two and writes one valid element of its own type.
        unsafe { blst_fp_mul(&mut out, self, rhs) };
        out
    }

    #[inline(always)]
    fn mul_assign(&mut self, rhs: &Self) {
        let this = std::ptr::from_mut(self);
        // SAFETY: the function reads two and writes one valid element of its own type, and the
        // result may take the place of an operand.
        unsafe { blst_fp_mul(this, this, rhs) };
    }

    #[inline(always)]
    fn square(&self) -> Self {
        let mut out = FP_ZERO;
        // SAFETY: the function reads one and writes one valid element of its own type.
        unsafe { blst_fp_sqr(&mut out, self) };
        out
    }

    #[inline(always)]
    fn add(&self, rhs: &Self) -> Self {
        // Both are below p < 2³⁸¹, so neither carry nor overflow occurs.
        let reduced = sub_limbs(&add_limbs(&self.l, &rhs.l), &MODULUS);
        Self {
            l: add_modulus_if_negative(&reduced),
        }
    }

    #[inline(always)]
    fn sub(&self, rhs: &Self) -> Self {
        Self {
            l: add_modulus_if_negative(&sub_limbs(&self.l, &rhs.l)),
        }
    }

    fn inverse(&self) -> Self {
        let mut out = FP_ZERO;
        // SAFETY: the function reads one and writes one valid element of its own type.
        unsafe { blst_fp_eucl_inverse(&mut out, self) };
        out
    }

    #[inline(always)]
    fn negated_if(&self, negate: bool) -> Self {
        let mask = u64::from(negate).wrapping_neg();
        let negated = self.neg();
        Self {
            l: std::array::from_fn(|i| self.l[i] ^ ((self.l[i] ^ negated.l[i]) & mask)),
        }
    }

    #[inline(always)]
    fn equals(&self, rhs: &Self) -> bool {
        (0..6).fold(0, |bits, i| bits | (self.l[i] ^ rhs.l[i])) == 0
    }

    #[inline(always)]
    fn is_zero(&self) -> bool {
        self.l.iter().fold(0, |bits, limb| bits | limb) == 0
    }
}

impl Coordinate for blst_fp2 {
    const ZERO: Self = Self {
        fp: [FP_ZERO, FP_ZERO],
    };
    const ONE: Self = Self {
        fp: [FP_ONE, FP_ZERO],
    };

    #[inline(always)]
    fn mul(&self, rhs: &Self) -> Self {
        let mut out = Self::ZERO;
        // SAFETY: the function reads two and writes one valid element of its own type.
        unsafe { blst_fp2_mul(&mut out, self, rhs) };
        out
    }

    #[inline(always)]
    fn mul_assign(&mut self, rhs: &Self) {
        let this = std::ptr::from_mut(self);
        // SAFETY: the function reads two and writes one valid element of its own type, and the
        // result may take the place of an operand.
        unsafe { blst_fp2_mul(this, this, rhs) };
    }

    #[inline(always)]
    fn square(&self) -> Self {
        let mut out = Self::ZERO;
        // SAFETY: the function reads one and writes one valid element of its own type.
        unsafe { blst_fp2_sqr(&mut out, self) };
        out
    }

    #[inline(always)]
    fn add(&self, rhs: &Self) -> Self {
        Self {
            fp: [self.fp[0].add(&rhs.fp[0]), self.fp[1].add(&rhs.fp[1])],
        }
    }

    #[inline(always)]
    fn sub(&self, rhs: &Self) -> Self {
        Self {
            fp: [self.fp[0].sub(&rhs.fp[0]), self.fp[1].sub(&rhs.fp[1])],
        }
    }

    fn inverse(&self) -> Self {
        let mut out = Self::ZERO;
        // SAFETY: the function reads one and writes one valid element of its own type.
        unsafe { blst_fp2_eucl_inverse(&mut out, self) };
        out
    }

    #[inline(always)]
    fn negated_if(&self, negate: bool) -> Self {
        Self {
            fp: [self.fp[0].negated_if(negate), self.fp[1].negated_if(negate)],
        }
    }

    #[inline(always)]
    fn equals(&self, rhs: &Self) -> bool {
        self.fp[0].equals(&rhs.fp[0]) && self.fp[1].equals(&rhs.fp[1])
    }

    #[inline(always)]
    fn is_zero(&self) -> bool {
        self.fp[0].is_zero() && self.fp[1].is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blst::{blst_fp_add, blst_fp_sub};

    /// Elements around 0, p and the limbs' carries.
    fn elements() -> Vec<blst_fp> {
        let mut elements = vec![FP_ZERO, FP_ONE, FP_ONE.neg()];
        for i in 0..6 {
            let mut limbs = [0; 6];
            limbs[i] = 1;
            elements.push(blst_fp { l: limbs });
            limbs[..i].fill(u64::MAX);
            elements.push(blst_fp { l: limbs });
        }
        elements.extend(elements.clone().iter().map(Coordinate::square));
        elements.extend(elements.clone().iter().map(Coordinate::neg));
        elements
    }

    #[test]
    fn sums_and_differences_equal_those_of_blst() {
        for x in elements() {
            for y in elements() {
                let (mut sum, mut difference) = (FP_ZERO, FP_ZERO);
                // SAFETY: the functions read two and write one valid element of their own type.
                unsafe {
                    blst_fp_add(&mut sum, &x, &y);
                    blst_fp_sub(&mut difference, &x, &y);
                }
                assert_eq!(x.add(&y), sum);
                assert_eq!(x.sub(&y), difference);
                assert_eq!(x.equals(&y), x == y);
                assert_eq!(x.is_zero(), x == FP_ZERO);
                assert_eq!(x.negated_if(true), FP_ZERO.sub(&x));
                assert_eq!(x.negated_if(false), x);
            }
        }
    }

    #[test]
    fn one_is_neutral_and_equals_the_quotient_of_equal_elements() {
        let x = blst_fp {
            l: [5, 4, 3, 2, 1, 7],
        };
        assert_eq!(x.mul(&blst_fp::ONE), x);
        assert_eq!(x.mul(&x.inverse()), blst_fp::ONE);
        let y = blst_fp2 {
            fp: [x, x.square()],
        };
        assert_eq!(y.mul(&blst_fp2::ONE), y);
        assert_eq!(y.mul(&y.inverse()), blst_fp2::ONE);
        assert_eq!(blst_fp2::ZERO.inverse(), blst_fp2::ZERO);
    }
}
