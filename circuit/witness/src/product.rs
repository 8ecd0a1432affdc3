//! Sums of products of field elements that are reduced once, at the end.

use blst::blst_fr;
use cuzk_circuit::Scalar;

/// The modulus r, little-endian limbs.
const MODULUS: [u64; 4] = [
    0xffff_ffff_0000_0001,
    0x53bd_a402_fffe_5bfe,
    0x3339_d808_09a1_d805,
    0x73ed_a753_299d_7d48,
];
/// -r⁻¹ mod 2⁶⁴.
const INVERSE: u64 = 0xffff_fffe_ffff_ffff;
/// r / 2²⁴⁸, rounded up.
const MODULUS_TOP: u64 = 0x74;

/// A field element's limbs as they lie in memory: Montgomery form, below r.
pub(crate) type Limbs = [u64; 4];

/// The limbs of a field element.
#[inline]
pub(crate) fn limbs(scalar: &Scalar) -> Limbs {
    blst_fr::from(*scalar).l
}

/// A sum of at most 64 products, times R = 2²⁵⁶ and not reduced: below 2⁵¹⁶.
#[derive(Clone, Copy, Default)]
pub(crate) struct ProductSum([u64; 9]);

impl ProductSum {
    /// Starts with one field element.
    #[inline]
    pub fn from_element(element: &Limbs) -> Self {
        let [a, b, c, d] = *element;
        Self([0, 0, 0, 0, a, b, c, d, 0])
    }

    /// Adds the product of two field elements.
    #[inline]
    pub fn add(&mut self, x: &Limbs, y: &Limbs) {
        let mut high = 0;
        for (i, x) in x.iter().enumerate() {
            let mut carry = 0;
            for (limb, y) in self.0[i..].iter_mut().zip(y) {
                carry = step(limb, *x, *y, carry);
            }
            high = add_carries(&mut self.0[i + 4], carry, high);
        }
        self.0[8] += high;
    }

    /// The sum modulo r.
    #[inline]
    pub fn reduce(self) -> Limbs {
        let mut sum = self.0;
        // Montgomery: adds the multiple of r that makes the low four limbs zero.
        let mut high = 0;
        for i in 0..4 {
            let factor = sum[i].wrapping_mul(INVERSE);
            let mut carry = 0;
            for (limb, modulus) in sum[i..].iter_mut().zip(MODULUS) {
                carry = step(limb, factor, modulus, carry);
            }
            high = add_carries(&mut sum[i + 4], carry, high);
        }
        let top = sum[8] + high;
        let mut low = [sum[4], sum[5], sum[6], sum[7]];
        // The quotient is at most one too small: r differs from its rounding by less than 2^-10 of it.
        let quotient = (top << 8 | low[3] >> 56) / MODULUS_TOP;
        subtract_multiple(&mut low, quotient);
        subtract_if_above(&mut low);
        low
    }
}

/// `limb += x · y + carry`; returns the new carry.
#[inline]
fn step(limb: &mut u64, x: u64, y: u64, carry: u64) -> u64 {
    let sum = u128::from(*limb) + u128::from(x) * u128::from(y) + u128::from(carry);
    *limb = sum as u64;
    (sum >> 64) as u64
}

/// `limb += x + y`; returns the carry.
#[inline]
fn add_carries(limb: &mut u64, x: u64, y: u64) -> u64 {
    let sum = u128::from(*limb) + u128::from(x) + u128::from(y);
    *limb = sum as u64;
    (sum >> 64) as u64
}

/// Subtracts `factor · r`; the fifth limb of the difference is zero and left out.
#[inline]
fn subtract_multiple(low: &mut Limbs, factor: u64) {
    let (mut carry, mut borrow) = (0u64, false);
    for (limb, modulus) in low.iter_mut().zip(MODULUS) {
        let product = u128::from(modulus) * u128::from(factor) + u128::from(carry);
        carry = (product >> 64) as u64;
        (*limb, borrow) = subtract(*limb, product as u64, borrow);
    }
}

/// Subtracts r from a value below 2r unless it is below r.
#[inline]
fn subtract_if_above(low: &mut Limbs) {
    let (mut difference, mut borrow) = (*low, false);
    for (limb, modulus) in difference.iter_mut().zip(MODULUS) {
        (*limb, borrow) = subtract(*limb, modulus, borrow);
    }
    if !borrow {
        *low = difference;
    }
}

#[inline]
fn subtract(x: u64, y: u64, borrow: bool) -> (u64, bool) {
    let (difference, first) = x.overflowing_sub(y);
    let (difference, second) = difference.overflowing_sub(u64::from(borrow));
    (difference, first | second)
}

/// The field element with these limbs.
#[inline]
pub(crate) fn scalar(limbs: Limbs) -> Scalar {
    Scalar::from(blst_fr { l: limbs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;
    use rand_chacha::ChaCha20Rng;
    use rand_core::{RngCore, SeedableRng};

    #[test]
    fn sums_of_products_equal_those_of_the_field() {
        let seed = 11;
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let edges = [
            Scalar::ZERO,
            Scalar::ONE,
            -Scalar::ONE,
            scalar([u64::MAX, u64::MAX, u64::MAX, MODULUS[3] - 1]),
        ];
        let pick = |rng: &mut ChaCha20Rng| match rng.next_u32() % 8 {
            i @ 0..4 => edges[i as usize],
            _ => Scalar::random(rng),
        };
        for round in 0..4000 {
            let first = pick(&mut rng);
            let mut sum = ProductSum::from_element(&limbs(&first));
            let mut expected = first;
            for _ in 0..round % 64 {
                let (x, y) = (pick(&mut rng), pick(&mut rng));
                sum.add(&limbs(&x), &limbs(&y));
                expected += x * y;
            }
            assert_eq!(scalar(sum.reduce()), expected, "seed {seed}, round {round}");
        }
    }

    #[test]
    fn the_largest_sums_are_reduced() {
        let x = limbs(&scalar({
            let mut largest = MODULUS;
            largest[0] -= 1;
            largest
        }));
        for count in 0..=64 {
            let mut sum = ProductSum::from_element(&x);
            for _ in 0..count {
                sum.add(&x, &x);
            }
            let x = scalar(x);
            assert_eq!(scalar(sum.reduce()), x + Scalar::from(count) * x * x);
        }
    }
}
