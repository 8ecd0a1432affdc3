//! Field operations on arrays: the axioms' machine on a device, and the simplest kernels to read.
//!
//! Each kernel computes one operation for `i < n`, one thread an element, 128 threads a block. Operands
//! and results are in Montgomery form, in the range that the field's type states (lazy for Fp and Fp2).
//! Bound by bandwidth, inversions by multiply-adds.

#[cfg(not(target_arch = "nvptx64"))]
mod machine;
pub mod throughput;
#[cfg(not(target_arch = "nvptx64"))]
pub use machine::{FieldKernels, RuntimeMachine};

use cuzk_field::{FieldOps, Fp, Fp2, Fr};

use crate::{Global, GlobalMut, kernel};

/// Kernels `z[i] = f(x[i], y[i])`. A value of the declaration is the operation and its register limit.
macro_rules! elementwise {
    ($($(#[$meta:meta])* $name:ident: $type:ty, $registers:literal, |$a:ident, $b:ident| $value:expr;)*) => {$(
        kernel! {
            $(#[$meta])*
            pub fn $name(gpu, n: u32, x: Global<$type>, y: Global<$type>, z: GlobalMut<$type>)
            limits { threads: 128, min_blocks: 2, registers: $registers, shared: 0 }
            {
                let i = gpu.index();
                if i < n as usize {
                    let ($a, $b) = (&x.load(gpu, i), &y.load(gpu, i));
                    z.store(gpu, i, $value);
                }
            }
        }
    )*};
}

elementwise! {
    /// x + y in Fp.
    fp_add: Fp, 64, |a, b| FieldOps::add(a, b);
    /// x - y in Fp.
    fp_sub: Fp, 64, |a, b| FieldOps::sub(a, b);
    /// -x in Fp.
    fp_neg: Fp, 64, |a, _b| FieldOps::neg(a);
    /// 2x in Fp.
    fp_double: Fp, 64, |a, _b| FieldOps::double(a);
    /// xy in Fp.
    fp_mul: Fp, 80, |a, b| FieldOps::mul(a, b);
    /// xy in Fp by one level of Karatsuba.
    fp_mul_karatsuba: Fp, 96, |a, b| FieldOps::mul_karatsuba(a, b);
    /// x² in Fp.
    fp_sqr: Fp, 80, |a, _b| FieldOps::sqr(a);
    /// 1/x in Fp.
    fp_invert: Fp, 168, |a, _b| FieldOps::invert(a);
    /// xy - yx in Fp with one reduction.
    fp_commutator: Fp, 96, |a, b| FieldOps::mul_sub_mul(a, b, b, a);

    /// x + y in Fr.
    fr_add: Fr, 48, |a, b| FieldOps::add(a, b);
    /// x - y in Fr.
    fr_sub: Fr, 48, |a, b| FieldOps::sub(a, b);
    /// -x in Fr.
    fr_neg: Fr, 48, |a, _b| FieldOps::neg(a);
    /// 2x in Fr.
    fr_double: Fr, 48, |a, _b| FieldOps::double(a);
    /// xy in Fr.
    fr_mul: Fr, 64, |a, b| FieldOps::mul(a, b);
    /// xy in Fr by one level of Karatsuba, where the field has it.
    fr_mul_karatsuba: Fr, 64, |a, b| FieldOps::mul_karatsuba(a, b);
    /// x² in Fr.
    fr_sqr: Fr, 64, |a, _b| FieldOps::sqr(a);
    /// 1/x in Fr.
    fr_invert: Fr, 128, |a, _b| FieldOps::invert(a);
    /// xy - yx in Fr with one reduction.
    fr_commutator: Fr, 80, |a, b| FieldOps::mul_sub_mul(a, b, b, a);

    /// x + y in Fp2.
    fp2_add: Fp2, 96, |a, b| FieldOps::add(a, b);
    /// x - y in Fp2.
    fp2_sub: Fp2, 96, |a, b| FieldOps::sub(a, b);
    /// -x in Fp2.
    fp2_neg: Fp2, 96, |a, _b| FieldOps::neg(a);
    /// 2x in Fp2.
    fp2_double: Fp2, 96, |a, _b| FieldOps::double(a);
    /// xy in Fp2.
    fp2_mul: Fp2, 168, |a, b| FieldOps::mul(a, b);
    /// xy in Fp2 by one level of Karatsuba in the base field.
    fp2_mul_karatsuba: Fp2, 168, |a, b| FieldOps::mul_karatsuba(a, b);
    /// x² in Fp2.
    fp2_sqr: Fp2, 128, |a, _b| FieldOps::sqr(a);
    /// 1/x in Fp2.
    fp2_invert: Fp2, 255, |a, _b| FieldOps::invert(a);
    /// xy - yx in Fp2.
    fp2_commutator: Fp2, 255, |a, b| FieldOps::mul_sub_mul(a, b, b, a);
}
