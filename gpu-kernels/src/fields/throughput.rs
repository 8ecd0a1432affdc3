//! Throughput of the arithmetic alone: loops of dependent operations that touch memory only at their
//! ends. Bound by the rate of 32-bit multiply-adds; `n · iterations` operations for n threads.
//!
//! Every thread starts from elements of a table of 1,024 and writes one result, so that nothing can be
//! left out. 128 threads a block; as many blocks as fill the device.
use cuzk_field::{FixedFr, Fp, Fp2, Fr, G1Affine, G1Xyzz, G2Affine, G2Xyzz, Karatsuba, PerThread};

use crate::{Global, GlobalMut, kernel};

/// Elements of the table that a thread starts from.
pub const TABLE: usize = 1024;

macro_rules! chain {
    ($($(#[$meta:meta])* $name:ident: $type:ty, $registers:literal, $blocks:literal, |$a:ident, $b:ident| $value:expr;)*) => {$(
        kernel! {
            $(#[$meta])*
            pub fn $name(gpu, iterations: u32, x: Global<$type>, z: GlobalMut<$type>)
            limits { threads: 128, min_blocks: $blocks, registers: $registers, shared: 0 }
            {
                let i = gpu.index();
                let $b = x.load(gpu, i % TABLE);
                let mut $a = x.load(gpu, (i + 1) % TABLE);
                let mut k = 0;
                while k < iterations {
                    $a = $value;
                    k += 1;
                }
                z.store(gpu, i, $a);
            }
        }
    )*};
}

chain! {
    /// a ← a·b in Fp.
    bench_fp_mul: Fp, 64, 8, |a, b| a.mul(&b);
    /// a ← a·b in Fp by one level of Karatsuba.
    bench_fp_mul_karatsuba: Fp, 80, 6, |a, b| a.mul_karatsuba(&b);
    /// a ← a² in Fp.
    bench_fp_sqr: Fp, 64, 8, |a, _b| a.sqr();
    /// a ← a·b in Fr.
    bench_fr_mul: Fr, 64, 8, |a, b| b.mul(&a);
    /// a ← a·b in Fr, results below 2r.
    bench_fr_mul_lazy: Fr, 64, 8, |a, b| b.mul_lazy(&a);
    /// a ← a² in Fr.
    bench_fr_sqr: Fr, 64, 8, |a, _b| a.sqr();
    /// a ← a·b in Fp2.
    bench_fp2_mul: Fp2, 168, 3, |a, b| cuzk_field::FieldOps::mul(&a, &b);
}

kernel! {
    /// a ← a·w in Fr with a fixed factor w and its quotient.
    pub fn bench_fr_mul_fixed(gpu, iterations: u32, w: Global<FixedFr>, x: Global<Fr>, z: GlobalMut<Fr>)
    limits { threads: 128, min_blocks: 8, registers: 64, shared: 0 }
    {
        let i = gpu.index();
        let factor = w.load(gpu, i % TABLE);
        let mut a = x.load(gpu, i % TABLE);
        let mut k = 0;
        while k < iterations {
            a = factor.mul(&a);
            k += 1;
        }
        z.store(gpu, i, a);
    }
}

/// Sums of points that a linear congruential generator picks from a table of `mask + 1`.
macro_rules! point_sums {
    ($($(#[$meta:meta])* $name:ident: $affine:ty, $xyzz:ty, $registers:literal, $blocks:literal, $spills:literal, $stack:literal, |$sum:ident, $p:ident| $add:expr;)*) => {$(
        kernel! {
            $(#[$meta])*
            pub fn $name(gpu, iterations: u32, mask: u32, points: Global<$affine>, z: GlobalMut<$xyzz>)
            limits { threads: 128, min_blocks: $blocks, registers: $registers, shared: 0, spills: $spills, stack: $stack }
            {
                let i = gpu.index();
                let mut $sum = <$xyzz>::IDENTITY;
                let mut state = i as u32;
                let mut k = 0;
                while k < iterations {
                    state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                    let $p = points.load(gpu, ((state >> 8) & mask) as usize);
                    $add;
                    k += 1;
                }
                z.store(gpu, i, $sum.canonical());
            }
        }
    )*};
}

point_sums! {
    /// Sums in G1, XYZZ coordinates.
    bench_g1_sum: G1Affine, G1Xyzz, 168, 3, 0, 0, |sum, p| sum.add_affine_with(&PerThread, &p);
    /// Sums in G1, Karatsuba multiplications.
    bench_g1_sum_karatsuba: G1Affine, G1Xyzz, 255, 2, 0, 0, |sum, p| sum.add_affine_with(&Karatsuba, &p);
    /// Sums in G2, XYZZ coordinates; equal and opposite points are left out.
    bench_g2_sum: G2Affine, G2Xyzz, 255, 2, 320, 64, |sum, p| _ = sum.add_affine_distinct(&PerThread, &p);
}
