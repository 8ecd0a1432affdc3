//! Scalars to signed digits.
//!
//! With s the scalar or its negative, whichever is below r/2, the recoded scalar is t = s + Σ 2^(cw+c−1)
//! over all windows w but the last (the *bias*). Window w of t, less 2^(c−1), is then a digit in
//! [−2^(c−1), 2^(c−1)) without a carry from below, and the last window of t is its digit as it is, at
//! most 2^(c−1). Two per scalar field 255 bits suffice, hence ⌈255/c⌉ windows.
use cuzk_field::Fr;
use cuzk_field::backend::{Backend, Native};

use super::NO_BASE;
use crate::{Global, GlobalMut, Gpu, kernel};

/// Bits of a recoded scalar.
pub const RECODED_BITS: u32 = 255;

/// Number of windows of `bits` bits.
pub const fn windows(bits: u32) -> u32 {
    RECODED_BITS.div_ceil(bits)
}

/// The bias for windows of `bits` bits, as limbs.
pub fn bias(bits: u32) -> [u32; 8] {
    let mut limbs = [0; 8];
    for window in 0..windows(bits) - 1 {
        let bit = bits * window + bits - 1;
        limbs[(bit / 32) as usize] |= 1 << (bit % 32);
    }
    limbs
}

kernel! {
    /// Recodes scalar i for i < n: limb k of the result goes to `recoded[k·n + i]`, and bit i of
    /// `signs` says whether the scalar was negated. Where `mapped` is not 0, a scalar whose
    /// `map[i]` is `NO_BASE` counts as zero. `bias`: two 16-byte words.
    ///
    /// One thread a scalar. Bound by memory: 64 bytes a scalar.
    pub fn msm_recode(gpu, n: u32, scalars: Global<Fr>, mapped: u32, map: Global<u32>,
        bias: Global<[u32; 4]>, recoded: GlobalMut<u32>, signs: GlobalMut<u32>)
    limits { threads: 256, min_blocks: 4, registers: 64, shared: 0 }
    {
        let i = gpu.index();
        let inside = i < n as usize;
        let mut negative = false;
        if inside {
            let mut limbs = scalars.load(gpu, i).to_integer();
            if mapped != 0 && map.load(gpu, i) == NO_BASE {
                limbs = [0; 8];
            }
            let (opposite, _) = <Native as Backend<8>>::sub(&Fr::MODULUS, &limbs);
            let (_, smaller) = <Native as Backend<8>>::sub(&opposite, &limbs);
            negative = smaller != 0;
            if negative {
                limbs = opposite;
            }
            let (low, high) = (bias.load(gpu, 0), bias.load(gpu, 1));
            let bias = [low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]];
            let t = <Native as Backend<8>>::add(&limbs, &bias);
            let n = n as usize;
            recoded.store(gpu, i, t[0]);
            recoded.store(gpu, n + i, t[1]);
            recoded.store(gpu, 2 * n + i, t[2]);
            recoded.store(gpu, 3 * n + i, t[3]);
            recoded.store(gpu, 4 * n + i, t[4]);
            recoded.store(gpu, 5 * n + i, t[5]);
            recoded.store(gpu, 6 * n + i, t[6]);
            recoded.store(gpu, 7 * n + i, t[7]);
        }
        let word = gpu.ballot(negative);
        if gpu.lane() == 0 && inside {
            signs.store(gpu, i / 32, word);
        }
    }
}

/// Reads digits of recoded scalars.
#[derive(Clone, Copy)]
pub(crate) struct Digits {
    /// Number of scalars.
    pub n: u32,
    /// Window width c.
    pub bits: u32,
    /// Limbs, plane by plane.
    pub recoded: Global<u32>,
    /// Bit i: scalar i was negated.
    pub signs: Global<u32>,
}

impl Digits {
    /// (|d|, whether the point enters negated) of scalar `i` in `window`.
    #[inline(always)]
    pub fn digit<G: Gpu>(self, gpu: G, window: u32, i: u32) -> (u32, bool) {
        let bit = window * self.bits;
        let (limb, shift) = ((bit / 32) as usize, bit % 32);
        let n = self.n as usize;
        let low = self.recoded.load(gpu, limb * n + i as usize);
        let mut value = low >> shift;
        if shift + self.bits > 32 && limb < 7 {
            value |= self.recoded.load(gpu, (limb + 1) * n + i as usize) << (32 - shift);
        }
        let width = if bit + self.bits >= RECODED_BITS {
            RECODED_BITS - bit
        } else {
            self.bits
        };
        let digit = value & ((1 << width) - 1);
        let flipped = self.signs.load(gpu, (i / 32) as usize) >> (i % 32) & 1 != 0;
        let half = 1 << (self.bits - 1);
        if bit + self.bits >= RECODED_BITS {
            (digit, flipped)
        } else if digit < half {
            (half - digit, !flipped)
        } else {
            (digit - half, flipped)
        }
    }
}
