//! Scalars cut into signed window digits.
//!
//! A scalar k is first replaced by ±k' with k' ≤ (r − 1) / 2 < 2²⁵⁴; its sign moves to the point.
//! With windows of c bits, Booth's recoding reads digit i from bits ic − 1 … ic + c − 1 alone:
//! `bits[ic .. ic+c) + bit[ic−1] − 2^c · bit[ic+c−1]`, which lies in [−2^(c−1), 2^(c−1)], so no
//! carry runs from window to window and 2^(c−1) buckets suffice. The topmost window has no sign
//! bit; its digits are those of the plain binary form plus the bit below.

use blstrs::Scalar;
use ff::PrimeField;

/// Bits of k'.
const BITS: usize = 254;
/// Set in the highest limb when the point is to be negated; k' leaves that bit free.
const SIGN: u64 = 1 << 63;

/// The group order r, little-endian limbs.
const ORDER: [u64; 4] = [
    0xffff_ffff_0000_0001,
    0x53bd_a402_fffe_5bfe,
    0x3339_d808_09a1_d805,
    0x73ed_a753_299d_7d48,
];
/// (r − 1) / 2, little-endian limbs.
const HALF: [u64; 4] = [
    0x7fff_ffff_8000_0000,
    0xa9de_d201_7fff_2dff,
    0x199c_ec04_04d0_ec02,
    0x39f6_d3a9_94ce_bea4,
];

/// A scalar in canonical form, halved in range, with its sign.
#[derive(Clone, Copy)]
pub(crate) struct Recoded([u64; 4]);

impl Recoded {
    pub(crate) fn new(scalar: &Scalar) -> Self {
        let bytes = scalar.to_repr();
        let mut limbs = [0u64; 4];
        for (limb, bytes) in limbs.iter_mut().zip(bytes.chunks_exact(8)) {
            *limb = bytes
                .iter()
                .rev()
                .fold(0, |value, &byte| value << 8 | u64::from(byte));
        }
        if limbs.iter().rev().gt(HALF.iter().rev()) {
            limbs = subtract(&ORDER, &limbs);
            limbs[3] |= SIGN;
        }
        Self(limbs)
    }

    /// The digit of the window that `windows` numbers `i`, as magnitude and sign.
    #[inline(always)]
    pub(crate) fn digit(&self, windows: &Windows, i: usize) -> (u32, bool) {
        let c = windows.bits;
        let magnitude_limbs = [self.0[0], self.0[1], self.0[2], self.0[3] & !SIGN];
        let negative = self.0[3] & SIGN != 0;
        // c + 1 bits from ic − 1 on; the bit below the lowest window is zero.
        let read = if i == 0 {
            bits(&magnitude_limbs, 0) << 1
        } else {
            bits(&magnitude_limbs, i * c - 1)
        };
        let read = (read & ((1 << (c + 1)) - 1)) as u32;
        let digit = (read >> 1) + (read & 1);
        // Without branches: the sign is as random as the scalar.
        let signed = u32::from(i + 1 < windows.count);
        let below = (read >> c) & signed;
        let mask = below.wrapping_neg();
        let magnitude = (digit ^ mask)
            .wrapping_add(below)
            .wrapping_add((1 << c) & mask);
        (magnitude, negative ^ (below == 1))
    }
}

fn subtract(x: &[u64; 4], y: &[u64; 4]) -> [u64; 4] {
    let mut borrow = false;
    std::array::from_fn(|i| {
        let (difference, first) = x[i].overflowing_sub(y[i]);
        let (difference, second) = difference.overflowing_sub(u64::from(borrow));
        borrow = first | second;
        difference
    })
}

/// 64 bits from bit `at` on; zeros beyond the top.
#[inline(always)]
fn bits(limbs: &[u64; 4], at: usize) -> u64 {
    let (limb, shift) = (at / 64, at % 64);
    let low = limbs.get(limb).copied().unwrap_or(0) >> shift;
    match limbs.get(limb + 1) {
        Some(high) if shift > 0 => low | high << (64 - shift),
        _ => low,
    }
}

/// How scalars are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    /// Bits of a window, 2 to 30.
    pub(crate) bits: usize,
    /// Number of windows.
    pub(crate) count: usize,
}

impl Windows {
    pub(crate) fn new(bits: usize) -> Self {
        let bits = bits.clamp(2, 30);
        Self {
            bits,
            count: BITS.div_ceil(bits),
        }
    }

    /// The largest magnitude of a digit in window `i`.
    pub(crate) fn largest(&self, i: usize) -> usize {
        if i + 1 < self.count {
            1 << (self.bits - 1)
        } else {
            bits(&HALF, i * self.bits) as usize + 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn edge_and_random_scalars() -> Vec<Scalar> {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let half = Scalar::from(2).invert().unwrap();
        let mut scalars = vec![Scalar::ZERO, Scalar::ONE, -Scalar::ONE, half, -half];
        scalars.extend((0..255).map(|i| Scalar::from(2).pow_vartime([i])));
        scalars.extend((0..255).map(|i| -Scalar::from(2).pow_vartime([i])));
        scalars.extend((0..255).map(|i| Scalar::from(2).pow_vartime([i]) - Scalar::ONE));
        scalars.extend((0..200).map(|_| Scalar::random(&mut rng)));
        scalars
    }

    #[test]
    fn digits_sum_to_the_scalar_and_stay_within_their_window() {
        for c in 2..=30 {
            let windows = Windows::new(c);
            for scalar in edge_and_random_scalars() {
                let recoded = Recoded::new(&scalar);
                let mut sum = Scalar::ZERO;
                for i in (0..windows.count).rev() {
                    let (magnitude, negative) = recoded.digit(&windows, i);
                    assert!(
                        magnitude as usize <= windows.largest(i),
                        "window {i} of {c} bits"
                    );
                    let digit = Scalar::from(u64::from(magnitude));
                    sum = sum * Scalar::from(1 << c) + if negative { -digit } else { digit };
                }
                assert_eq!(sum, scalar, "{c} bits");
            }
        }
    }
}
