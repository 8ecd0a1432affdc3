//! Products of twelve limbs from three of six: 108 instead of 144 multiplications for some forty
//! additions, which run beside them.
//!
//! With a = a0 + a1 B, b = b0 + b1 B, B = 2^192:
//! ab = z0 + (z0 + z2 - (a0 - a1)(b0 - b1)) B + z2 B^2, z0 = a0 b0, z2 = a1 b1.

use super::chains::chain3;
use super::n12::{add12, add12_carry};

define_add_sub!(add6, sub6, 6, first = "0", mid = ["1" "2" "3" "4"], last = "5",
    limbs = [0 r0 a0 b0, 1 r1 a1 b1, 2 r2 a2 b2, 3 r3 a3 b3, 4 r4 a4 b4, 5 r5 a5 b5]);

/// ab of six limbs: 36 products.
#[inline(always)]
fn mul6(a: &[u32; 6], b: &[u32; 6]) -> [u32; 12] {
    let mut ev = [0u32; 12];
    let mut od = [0u32; 12];
    macro_rules! even { ($acc:ident $i:literal [$($p:literal)*] $c:literal) => {
        row!($acc, chain3, b[$i], [$($p)*], [a[0], a[2], a[4]], $c)
    } }
    macro_rules! odd { ($acc:ident $i:literal [$($p:literal)*]) => {
        row!($acc, chain3, b[$i], [$($p)*], [a[1], a[3], a[5]])
    } }
    products!(ev, b[0], [0 1 a[0]] [2 3 a[2]] [4 5 a[4]]);
    products!(od, b[0], [1 2 a[1]] [3 4 a[3]] [5 6 a[5]]);
    even!(od 1 [1 2 3 4 5 6] 7);
    odd!(ev 1 [2 3 4 5 6 7]);
    even!(ev 2 [2 3 4 5 6 7] 8);
    odd!(od 2 [3 4 5 6 7 8]);
    even!(od 3 [3 4 5 6 7 8] 9);
    odd!(ev 3 [4 5 6 7 8 9]);
    even!(ev 4 [4 5 6 7 8 9] 10);
    odd!(od 4 [5 6 7 8 9 10]);
    even!(od 5 [5 6 7 8 9 10] 11);
    odd!(ev 5 [6 7 8 9 10 11]);
    add12(&ev, &od)
}

/// (|a - b|, mask of a < b).
#[inline(always)]
fn distance(a: &[u32; 6], b: &[u32; 6]) -> ([u32; 6], u32) {
    let (d, m) = sub6(a, b);
    let flipped = [d[0] ^ m, d[1] ^ m, d[2] ^ m, d[3] ^ m, d[4] ^ m, d[5] ^ m];
    (add6(&flipped, &[m & 1, 0, 0, 0, 0, 0]), m)
}

/// (low, high) of ab.
#[inline(always)]
pub(super) fn mul_wide(a: &[u32; 12], b: &[u32; 12]) -> ([u32; 12], [u32; 12]) {
    let half = |x: &[u32; 12]| {
        (
            [x[0], x[1], x[2], x[3], x[4], x[5]],
            [x[6], x[7], x[8], x[9], x[10], x[11]],
        )
    };
    let ((a0, a1), (b0, b1)) = (half(a), half(b));
    let z0 = mul6(&a0, &b0);
    let z2 = mul6(&a1, &b1);
    let (da, sa) = distance(&a0, &a1);
    let (db, sb) = distance(&b0, &b1);
    let m = mul6(&da, &db);
    combine(&z0, &z2, &m, !(sa ^ sb))
}

/// z0 + (z0 + z2 - m) B + z2 B^2 if the mask `s` is all ones, with + m if it is 0.
#[inline(always)]
fn combine(z0: &[u32; 12], z2: &[u32; 12], m: &[u32; 12], s: u32) -> ([u32; 12], [u32; 12]) {
    // subtraction: the complement and a carry
    let m = [
        m[0] ^ s,
        m[1] ^ s,
        m[2] ^ s,
        m[3] ^ s,
        m[4] ^ s,
        m[5] ^ s,
        m[6] ^ s,
        m[7] ^ s,
        m[8] ^ s,
        m[9] ^ s,
        m[10] ^ s,
        m[11] ^ s,
    ];
    let (sum, top) = add12_carry(z0, z2, 0);
    let (middle, carry) = add12_carry(&sum, &m, s & 1);
    let top = top.wrapping_add(s).wrapping_add(carry);
    let (t, carry) = add12_carry(
        &[
            z0[6], z0[7], z0[8], z0[9], z0[10], z0[11], z2[0], z2[1], z2[2], z2[3], z2[4], z2[5],
        ],
        &middle,
        0,
    );
    // top + carry <= 2
    let high = add6(
        &[z2[6], z2[7], z2[8], z2[9], z2[10], z2[11]],
        &[top.wrapping_add(carry), 0, 0, 0, 0, 0],
    );
    (
        [
            z0[0], z0[1], z0[2], z0[3], z0[4], z0[5], t[0], t[1], t[2], t[3], t[4], t[5],
        ],
        [
            t[6], t[7], t[8], t[9], t[10], t[11], high[0], high[1], high[2], high[3], high[4],
            high[5],
        ],
    )
}
