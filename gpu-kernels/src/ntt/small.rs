//! Transforms of at most 1,024 elements by one block, stage by stage.

use cuzk_field::{FixedFr, Fr};

use super::SMALL_LOG2;
use crate::{Global, GlobalMut, Gpu, Planes, kernel};

const SIZE: u32 = 1 << SMALL_LOG2;

/// x times w_2n^((2c+1)·e) or, without coset, x itself: the coset's shift of coefficient e.
#[inline(always)]
fn shifted<G: Gpu>(gpu: G, shift: Global<FixedFr>, coset: u32, e: u32, x: Fr) -> Fr {
    if coset == 0 {
        x
    } else {
        shift.load_read_only(gpu, e as usize).mul(&x)
    }
}

kernel! {
    /// Decimation in frequency of 2^log2 elements, log2 ≤ 10, in place. `roots[i]` = w_n^i for
    /// i < n/2; `shift[i]` = w_2n^i for i < n is read if `coset` is not 0: then output i is multiplied by
    /// the factor of its coefficient.
    ///
    /// Grid: one block. Bound by latency: it is not for speed.
    pub fn ntt_dif_small(gpu, log2: u32, coset: u32, data: GlobalMut<Fr>,
        roots: Global<FixedFr>, shift: Global<FixedFr>)
    limits { threads: 256, min_blocks: 1, registers: 128, shared: super::SIZE * 32 }
    {
        let n = 1u32 << log2;
        let tile = Planes::<Fr>::new(gpu, 0, SIZE);
        let mut i = gpu.thread();
        while i < n {
            tile.store(gpu, i, data.load(gpu, i as usize));
            i += THREADS;
        }
        gpu.barrier();
        let mut half_log2 = log2;
        while half_log2 > 0 {
            half_log2 -= 1;
            let mut pair = gpu.thread();
            while pair < n / 2 {
                let low = pair & ((1 << half_log2) - 1);
                let a = ((pair >> half_log2) << (half_log2 + 1)) + low;
                let b = a + (1 << half_log2);
                let (x, y) = (tile.load(gpu, a), tile.load(gpu, b));
                let w = roots.load_read_only(gpu, (low << (log2 - 1 - half_log2)) as usize);
                tile.store(gpu, a, x.add(&y));
                tile.store(gpu, b, w.mul(&x.sub(&y)));
                pair += THREADS;
            }
            gpu.barrier();
        }
        let mut i = gpu.thread();
        while i < n {
            let e = if log2 == 0 { 0 } else { i.reverse_bits() >> (32 - log2) };
            data.store(gpu, i as usize, shifted(gpu, shift, coset, e, tile.load(gpu, i)));
            i += THREADS;
        }
    }

    /// Decimation in time of 2^log2 elements, log2 ≤ 10, in place; arguments as for
    /// [`ntt_dif_small`](super::ntt_dif_small), the coset's factors are applied to the input.
    pub fn ntt_dit_small(gpu, log2: u32, coset: u32, data: GlobalMut<Fr>,
        roots: Global<FixedFr>, shift: Global<FixedFr>)
    limits { threads: 256, min_blocks: 1, registers: 128, shared: super::SIZE * 32 }
    {
        let n = 1u32 << log2;
        let tile = Planes::<Fr>::new(gpu, 0, SIZE);
        let mut i = gpu.thread();
        while i < n {
            let e = if log2 == 0 { 0 } else { i.reverse_bits() >> (32 - log2) };
            tile.store(gpu, i, shifted(gpu, shift, coset, e, data.load(gpu, i as usize)));
            i += THREADS;
        }
        gpu.barrier();
        let mut half_log2 = 0;
        while half_log2 < log2 {
            let mut pair = gpu.thread();
            while pair < n / 2 {
                let low = pair & ((1 << half_log2) - 1);
                let a = ((pair >> half_log2) << (half_log2 + 1)) + low;
                let b = a + (1 << half_log2);
                let w = roots.load_read_only(gpu, (low << (log2 - 1 - half_log2)) as usize);
                let (x, y) = (tile.load(gpu, a), w.mul(&tile.load(gpu, b)));
                tile.store(gpu, a, x.add(&y));
                tile.store(gpu, b, x.sub(&y));
                pair += THREADS;
            }
            gpu.barrier();
            half_log2 += 1;
        }
        let mut i = gpu.thread();
        while i < n {
            data.store(gpu, i as usize, tile.load(gpu, i));
            i += THREADS;
        }
    }
}
