//! The two coordinate fields of BLS12-381 as the affine formulas need them: Fp for G1, Fp2 for G2.

use blst::{
    blst_fp, blst_fp_add, blst_fp_eucl_inverse, blst_fp_mul, blst_fp_sqr, blst_fp_sub, blst_fp2,
    blst_fp2_add, blst_fp2_eucl_inverse, blst_fp2_mul, blst_fp2_sqr, blst_fp2_sub,
};

/// A field element in blst's Montgomery form, always fully reduced.
pub(crate) trait Coordinate: Copy + PartialEq + Default + Send + Sync {
    /// Zero.
    const ZERO: Self;
    /// One, R mod p in Montgomery form.
    const ONE: Self;

    /// `self · rhs`.
    fn mul(&self, rhs: &Self) -> Self;
    /// `self²`.
    fn square(&self) -> Self;
    /// `self + rhs`.
    fn add(&self, rhs: &Self) -> Self;
    /// `self − rhs`.
    fn sub(&self, rhs: &Self) -> Self;
    /// `1 / self`, and 0 for 0. Variable time.
    fn inverse(&self) -> Self;

    /// `−self`.
    fn neg(&self) -> Self {
        Self::ZERO.sub(self)
    }
}

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

macro_rules! coordinate {
    ($field:ty, $zero:expr, $one:expr, $mul:ident, $sqr:ident, $add:ident, $sub:ident, $inv:ident) => {
        impl Coordinate for $field {
            const ZERO: Self = $zero;
            const ONE: Self = $one;

            #[inline(always)]
            fn mul(&self, rhs: &Self) -> Self {
                let mut out = Self::ZERO;
                // SAFETY: the function reads two and writes one valid element of its own type.
                unsafe { $mul(&mut out, self, rhs) };
                out
            }

            #[inline(always)]
            fn square(&self) -> Self {
                let mut out = Self::ZERO;
                // SAFETY: the function reads one and writes one valid element of its own type.
                unsafe { $sqr(&mut out, self) };
                out
            }

            #[inline(always)]
            fn add(&self, rhs: &Self) -> Self {
                let mut out = Self::ZERO;
                // SAFETY: the function reads two and writes one valid element of its own type.
                unsafe { $add(&mut out, self, rhs) };
                out
            }

            #[inline(always)]
            fn sub(&self, rhs: &Self) -> Self {
                let mut out = Self::ZERO;
                // SAFETY: the function reads two and writes one valid element of its own type.
                unsafe { $sub(&mut out, self, rhs) };
                out
            }

            fn inverse(&self) -> Self {
                let mut out = Self::ZERO;
                // SAFETY: the function reads one and writes one valid element of its own type.
                unsafe { $inv(&mut out, self) };
                out
            }
        }
    };
}

coordinate!(
    blst_fp,
    FP_ZERO,
    FP_ONE,
    blst_fp_mul,
    blst_fp_sqr,
    blst_fp_add,
    blst_fp_sub,
    blst_fp_eucl_inverse
);
coordinate!(
    blst_fp2,
    blst_fp2 {
        fp: [FP_ZERO, FP_ZERO]
    },
    blst_fp2 {
        fp: [FP_ONE, FP_ZERO]
    },
    blst_fp2_mul,
    blst_fp2_sqr,
    blst_fp2_add,
    blst_fp2_sub,
    blst_fp2_eucl_inverse
);

#[cfg(test)]
mod tests {
    use super::*;

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
