//! Pointwise field kernels: the device's known-answer tests, and the simplest kernels to read.
//!
//! All take arrays of `n` elements in Montgomery form, one thread an element, and write canonical
//! results. Bound by bandwidth.
use cuzk_field::{Fp, Fr};

use crate::{Global, GlobalMut, kernel};

/// A kernel `z[i] = f(x[i], y[i])`.
macro_rules! binary {
    ($($(#[$meta:meta])* $name:ident: $type:ty, $registers:literal, |$a:ident, $b:ident| $value:expr;)*) => {$(
        kernel! {
            $(#[$meta])*
            pub fn $name(gpu, n: u32, x: Global<$type>, y: Global<$type>, z: GlobalMut<$type>)
            limits { threads: 128, min_blocks: 4, registers: $registers, shared: 0 }
            {
                let i = gpu.index();
                if i < n as usize {
                    let $a = x.load(gpu, i);
                    let $b = y.load(gpu, i);
                    z.store(gpu, i, $value.canonical());
                }
            }
        }
    )*};
}

/// A kernel `z[i] = f(x[i])`.
macro_rules! unary {
    ($($(#[$meta:meta])* $name:ident: $type:ty, $registers:literal, |$a:ident| $value:expr;)*) => {$(
        kernel! {
            $(#[$meta])*
            pub fn $name(gpu, n: u32, x: Global<$type>, z: GlobalMut<$type>)
            limits { threads: 128, min_blocks: 4, registers: $registers, shared: 0 }
            {
                let i = gpu.index();
                if i < n as usize {
                    let $a = x.load(gpu, i);
                    z.store(gpu, i, $value.canonical());
                }
            }
        }
    )*};
}

binary! {
    /// `z[i] = x[i]·y[i]` in Fp.
    fp_mul: Fp, 80, |a, b| a.mul(&b);
    /// `z[i] = x[i] + y[i]` in Fp.
    fp_add: Fp, 64, |a, b| a.add(&b);
    /// `z[i] = x[i] - y[i]` in Fp.
    fp_sub: Fp, 64, |a, b| a.sub(&b);
    /// `z[i] = x[i]·y[i]` in Fr.
    fr_mul: Fr, 64, |a, b| a.mul(&b);
    /// `z[i] = x[i] + y[i]` in Fr.
    fr_add: Fr, 48, |a, b| a.add(&b);
    /// `z[i] = x[i] - y[i]` in Fr.
    fr_sub: Fr, 48, |a, b| a.sub(&b);
}

unary! {
    /// `z[i] = x[i]²` in Fp.
    fp_sqr: Fp, 80, |a| a.sqr();
    /// `z[i] = x[i]²` in Fr.
    fr_sqr: Fr, 64, |a| a.sqr();
}
