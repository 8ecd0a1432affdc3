//! The two butterflies, on fully reduced scalars in Montgomery form.
//!
//! The product is blst's assembly; sums and differences are a few instructions each and are
//! inlined. As r < 2²⁵⁵, the sign of a 256-bit two's complement difference is its top bit.

use blst::{blst_fr, blst_fr_mul};
use cuzk_circuit::Scalar;

/// The group order r, little-endian limbs.
const ORDER: [u64; 4] = [
    0xffff_ffff_0000_0001,
    0x53bd_a402_fffe_5bfe,
    0x3339_d808_09a1_d805,
    0x73ed_a753_299d_7d48,
];

/// (x, y) → (x + c·y, x − c·y) on pairs.
#[inline(always)]
pub(super) fn multiply_then_add(low: &mut [Scalar], high: &mut [Scalar], c: Scalar) {
    let c = c.into();
    for (x, y) in low.iter_mut().zip(high) {
        let mut product: blst_fr = (*y).into();
        multiply(&mut product, &c);
        let sum: blst_fr = (*x).into();
        *y = sub(&sum, &product).into();
        *x = add(&sum, &product).into();
    }
}

/// (x, y) → (x + y, (y − x)·c) on pairs.
#[inline(always)]
pub(super) fn subtract_then_multiply(low: &mut [Scalar], high: &mut [Scalar], c: Scalar) {
    let c = c.into();
    for (x, y) in low.iter_mut().zip(high) {
        let (first, second): (blst_fr, blst_fr) = ((*x).into(), (*y).into());
        let mut difference = sub(&second, &first);
        multiply(&mut difference, &c);
        *x = add(&first, &second).into();
        *y = difference.into();
    }
}

/// (x, y) → (x + y, x − y) on pairs.
#[inline(always)]
pub(super) fn add_only(low: &mut [Scalar], high: &mut [Scalar]) {
    for (x, y) in low.iter_mut().zip(high) {
        let (first, second): (blst_fr, blst_fr) = ((*x).into(), (*y).into());
        *x = add(&first, &second).into();
        *y = sub(&first, &second).into();
    }
}

/// `x = x · y`.
#[inline(always)]
fn multiply(x: &mut blst_fr, y: &blst_fr) {
    let this = std::ptr::from_mut(x);
    // SAFETY: the function reads two and writes one valid element, and the result may take the
    // place of an operand.
    unsafe { blst_fr_mul(this, this, y) };
}

#[inline(always)]
fn add(x: &blst_fr, y: &blst_fr) -> blst_fr {
    // x + y < 2r < 2²⁵⁶.
    add_order_if_negative(sub_limbs(&add_limbs(&x.l, &y.l), &ORDER))
}

#[inline(always)]
fn sub(x: &blst_fr, y: &blst_fr) -> blst_fr {
    add_order_if_negative(sub_limbs(&x.l, &y.l))
}

/// The sign is spread by a shift: a comparison would become a branch that is mispredicted every
/// other time.
#[inline(always)]
fn add_order_if_negative(x: [u64; 4]) -> blst_fr {
    let mask = (x[3] as i64 >> 63) as u64;
    blst_fr {
        l: add_limbs(&x, &ORDER.map(|limb| limb & mask)),
    }
}

/// x + y modulo 2²⁵⁶.
#[inline(always)]
fn add_limbs(x: &[u64; 4], y: &[u64; 4]) -> [u64; 4] {
    let mut carry = false;
    let mut sum = [0; 4];
    for i in 0..4 {
        let (partial, first) = x[i].overflowing_add(y[i]);
        let (limb, second) = partial.overflowing_add(u64::from(carry));
        sum[i] = limb;
        carry = first | second;
    }
    sum
}

/// x − y modulo 2²⁵⁶.
#[inline(always)]
fn sub_limbs(x: &[u64; 4], y: &[u64; 4]) -> [u64; 4] {
    let mut borrow = false;
    let mut difference = [0; 4];
    for i in 0..4 {
        let (partial, first) = x[i].overflowing_sub(y[i]);
        let (limb, second) = partial.overflowing_sub(u64::from(borrow));
        difference[i] = limb;
        borrow = first | second;
    }
    difference
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;

    #[test]
    fn butterflies_equal_the_field_operations_at_the_edges() {
        let two = Scalar::from(2);
        let mut values = vec![
            Scalar::ZERO,
            Scalar::ONE,
            -Scalar::ONE,
            two.invert().unwrap(),
        ];
        values.extend((0..255).map(|i| two.pow_vartime([i])));
        values.extend((0..255).map(|i| -two.pow_vartime([i])));
        for c in [Scalar::ZERO, -Scalar::ONE, Scalar::from(12345).square()] {
            for x in &values {
                for y in values.iter().step_by(7) {
                    let butterfly = |work: fn(&mut [Scalar], &mut [Scalar], Scalar)| {
                        let (mut low, mut high) = ([*x], [*y]);
                        work(&mut low, &mut high, c);
                        (low[0], high[0])
                    };
                    assert_eq!(butterfly(multiply_then_add), (x + c * y, x - c * y));
                    assert_eq!(butterfly(subtract_then_multiply), (x + y, (y - x) * c));
                    assert_eq!(
                        butterfly(|low, high, _| add_only(low, high)),
                        (x + y, x - y)
                    );
                }
            }
        }
    }
}
