//! blst's base field and its quadratic extension as values with operators.

use std::ops::{Add, Mul, Neg, Sub};

use cuzk_field::{Fp, Fp2};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlstFp(blst::blst_fp);

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlstFp2(blst::blst_fp2);

impl BlstFp {
    pub fn new(x: &Fp) -> Self {
        Self(blst::blst_fp {
            l: bytemuck::cast(*x.canonical().limbs()),
        })
    }
    pub fn ours(&self) -> Fp {
        Fp::from_limbs(bytemuck::cast(self.0.l))
    }
    pub fn invert(&self) -> Self {
        let mut z = blst::blst_fp::default();
        // SAFETY: pointers to live values.
        unsafe { blst::blst_fp_eucl_inverse(&mut z, &self.0) };
        Self(z)
    }
}

impl BlstFp2 {
    pub fn new(x: &Fp2) -> Self {
        Self(blst::blst_fp2 {
            fp: [BlstFp::new(&x.c0).0, BlstFp::new(&x.c1).0],
        })
    }
    pub fn invert(&self) -> Self {
        let mut z = blst::blst_fp2::default();
        // SAFETY: pointers to live values.
        unsafe { blst::blst_fp2_eucl_inverse(&mut z, &self.0) };
        Self(z)
    }
}

macro_rules! operators {
    ($t:ident, $raw:ident, $add:ident, $sub:ident, $mul:ident) => {
        operators!($t, $raw, Add add $add);
        operators!($t, $raw, Sub sub $sub);
        operators!($t, $raw, Mul mul $mul);
        impl Neg for $t {
            type Output = Self;
            fn neg(self) -> Self {
                Self(blst::$raw::default()) - self
            }
        }
    };
    ($t:ident, $raw:ident, $op:ident $name:ident $f:ident) => {
        impl $op for $t {
            type Output = Self;
            fn $name(self, o: Self) -> Self {
                let mut z = blst::$raw::default();
                // SAFETY: pointers to live values.
                unsafe { blst::$f(&mut z, &self.0, &o.0) };
                Self(z)
            }
        }
    };
}
operators!(BlstFp, blst_fp, blst_fp_add, blst_fp_sub, blst_fp_mul);
operators!(BlstFp2, blst_fp2, blst_fp2_add, blst_fp2_sub, blst_fp2_mul);
