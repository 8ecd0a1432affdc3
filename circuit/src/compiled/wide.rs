//! Sums of field elements that are reduced once, at the end.

use crate::Scalar;
use blst::blst_fr;

/// The modulus r, little-endian limbs.
const MODULUS: [u64; 4] = [
    0xffff_ffff_0000_0001,
    0x53bd_a402_fffe_5bfe,
    0x3339_d808_09a1_d805,
    0x73ed_a753_299d_7d48,
];
/// 2^256 mod r: a carry out of the fourth limb is worth this.
const CARRY: [u64; 4] = [
    0x0000_0001_ffff_fffe,
    0x5884_b7fa_0003_4802,
    0x998c_4fef_ecbc_4ff5,
    0x1824_b159_acc5_056f,
];

/// The limbs of a field element as it lies in memory (Montgomery form, below r).
#[inline]
pub(super) fn limbs(scalar: &Scalar) -> [u64; 4] {
    blst_fr::from(*scalar).l
}

/// A sum of at most 2³² field elements, not reduced.
#[derive(Clone, Copy, Default)]
pub(super) struct WideSum {
    low: [u64; 4],
    /// Carries out of the fourth limb.
    high: u64,
}

impl WideSum {
    /// Adds a field element given by its limbs.
    #[inline]
    pub fn add(&mut self, limbs: &[u64; 4]) {
        self.high += add_to(&mut self.low, limbs);
    }

    /// The sum modulo r.
    #[inline]
    pub fn reduce(self) -> Scalar {
        let Self { mut low, mut high } = self;
        while high != 0 {
            let mut carry = 0u128;
            let product = CARRY.map(|limb| {
                carry += u128::from(limb) * u128::from(high);
                let low = carry as u64;
                carry >>= 64;
                low
            });
            high = carry as u64 + add_to(&mut low, &product);
        }
        // 2^256 < 3r, so two subtractions suffice.
        subtract_modulus(&mut low);
        subtract_modulus(&mut low);
        Scalar::from(blst_fr { l: low })
    }
}

#[inline]
fn add_to(sum: &mut [u64; 4], limbs: &[u64; 4]) -> u64 {
    let mut carry = 0u128;
    for (sum, limb) in sum.iter_mut().zip(limbs) {
        carry += u128::from(*sum) + u128::from(*limb);
        *sum = carry as u64;
        carry >>= 64;
    }
    carry as u64
}

#[inline]
fn subtract_modulus(value: &mut [u64; 4]) {
    let mut borrow = false;
    let mut difference = *value;
    for (limb, modulus) in difference.iter_mut().zip(MODULUS) {
        let (first, under) = limb.overflowing_sub(modulus);
        let (second, under_again) = first.overflowing_sub(u64::from(borrow));
        *limb = second;
        borrow = under | under_again;
    }
    if !borrow {
        *value = difference;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::{Field, PrimeField};
    use rand_chacha::ChaCha20Rng;
    use rand_core::{RngCore, SeedableRng};

    #[test]
    fn the_constants_are_those_of_the_field() {
        let one = Scalar::from(blst_fr { l: CARRY });
        assert_eq!(one, Scalar::ONE, "the Montgomery form of 1 is 2^256 mod r");
        let text = MODULUS.iter().rev().map(|limb| format!("{limb:016x}"));
        assert_eq!(format!("0x{}", text.collect::<String>()), Scalar::MODULUS);
    }

    #[test]
    fn sums_equal_those_of_the_field_at_the_edges_and_at_random() {
        let edges = [Scalar::ZERO, Scalar::ONE, -Scalar::ONE];
        for seed in 0..200u64 {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let (mut wide, mut expected) = (WideSum::default(), Scalar::ZERO);
            for _ in 0..rng.next_u32() % 3000 {
                let value = match rng.next_u32() as u64 % 3 + seed % 2 * 10 {
                    0 => edges[rng.next_u32() as usize % 3],
                    1 => -Scalar::from(rng.next_u64()),
                    // The largest limbs make the most carries.
                    10.. => Scalar::from(blst_fr {
                        l: [0, MODULUS[1], MODULUS[2], MODULUS[3]],
                    }),
                    _ => Scalar::random(&mut rng),
                };
                wide.add(&limbs(&value));
                expected += value;
            }
            assert_eq!(wide.reduce(), expected, "seed {seed}");
        }
    }
}
