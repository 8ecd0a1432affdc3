//! The pointwise steps between the quotient's transforms.

use cuzk_field::{FixedFr, Fr};

use crate::{Cache, Global, GlobalMut, kernel};

kernel! {
    /// `z[i] = x[i]·y[i]` for `i < n`. `z` may be `x`.
    ///
    /// One thread an element. Bound by memory: 96 bytes an element.
    pub fn ntt_multiply(gpu, n: u32, x: Global<Fr>, y: Global<Fr>, z: GlobalMut<Fr>)
    limits { threads: 256, min_blocks: 4, registers: 64, shared: 0 }
    {
        let i = gpu.index();
        if i < n as usize {
            let product = x.load_with(gpu, i, Cache::Streaming).mul(&y.load(gpu, i));
            z.store(gpu, i, product);
        }
    }

    /// `h[i] = s·(c[r] − d[r])` with r the index i < 2^log2 in bit-reversed order and s the one element
    /// of `scale`: the quotient's coefficients in natural order.
    ///
    /// One thread an element. Bound by memory: 96 bytes an element, a third of them scattered by 32.
    pub fn ntt_quotient(gpu, log2: u32, scale: Global<FixedFr>, c: Global<Fr>, d: Global<Fr>, h: GlobalMut<Fr>)
    limits { threads: 256, min_blocks: 4, registers: 64, shared: 0 }
    {
        let r = gpu.index();
        if r >> log2 == 0 {
            let i = if log2 == 0 { 0 } else { (r as u32).reverse_bits() >> (32 - log2) };
            let difference = c
                .load_with(gpu, r, Cache::Streaming)
                .sub(&d.load_with(gpu, r, Cache::Streaming));
            h.store(gpu, i as usize, scale.load_read_only(gpu, 0).mul(&difference));
        }
    }
}
