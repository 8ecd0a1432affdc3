//! Twelve limbs: 384-bit base fields.

use super::chains::{chain1, chain2, chain3, chain4, chain5, chain6};
use super::{Ptx, wide};
use crate::backend::Backend;
use crate::params::FieldParams;

define_rows!(
    n = 12, top = "o11",
    mid = ["2" "3" "a2" "a3", "4" "5" "a4" "a5", "6" "7" "a6" "a7", "8" "9" "a8" "a9"],
    last = ["10" "11" "a10" "a11"],
    limbs = [0 e0 o0 a0, 1 e1 o1 a1, 2 e2 o2 a2, 3 e3 o3 a3, 4 e4 o4 a4, 5 e5 o5 a5,
             6 e6 o6 a6, 7 e7 o7 a7, 8 e8 o8 a8, 9 e9 o9 a9, 10 e10 o10 a10, 11 e11 o11 a11]
);
define_add_sub!(add12, sub12, 12, first = "0",
    mid = ["1" "2" "3" "4" "5" "6" "7" "8" "9" "10"], last = "11",
    limbs = [0 r0 a0 b0, 1 r1 a1 b1, 2 r2 a2 b2, 3 r3 a3 b3, 4 r4 a4 b4, 5 r5 a5 b5,
             6 r6 a6 b6, 7 r7 a7 b7, 8 r8 a8 b8, 9 r9 a9 b9, 10 r10 a10 b10, 11 r11 a11 b11]);
define_add_carry!(
    add12_carry, 12, first = "0", rest = ["1" "2" "3" "4" "5" "6" "7" "8" "9" "10" "11"],
    limbs = [0 r0 a0 b0, 1 r1 a1 b1, 2 r2 a2 b2, 3 r3 a3 b3, 4 r4 a4 b4, 5 r5 a5 b5, 6 r6 a6 b6, 7 r7 a7 b7, 8 r8 a8 b8, 9 r9 a9 b9, 10 r10 a10 b10, 11 r11 a11 b11]
);
define_sub_borrow!(
    sub12_borrow, 12, first = "0", rest = ["1" "2" "3" "4" "5" "6" "7" "8" "9" "10" "11"],
    limbs = [0 r0 a0 b0, 1 r1 a1 b1, 2 r2 a2 b2, 3 r3 a3 b3, 4 r4 a4 b4, 5 r5 a5 b5, 6 r6 a6 b6, 7 r7 a7 b7, 8 r8 a8 b8, 9 r9 a9 b9, 10 r10 a10 b10, 11 r11 a11 b11]
);

/// V = a b in even and odd columns.
#[inline(always)]
fn first_row(a: &[u32; 12], b: u32) -> ([u32; 12], [u32; 12]) {
    let (e0, e1) = wide(a[0], b);
    let (o0, o1) = wide(a[1], b);
    let (e2, e3) = wide(a[2], b);
    let (o2, o3) = wide(a[3], b);
    let (e4, e5) = wide(a[4], b);
    let (o4, o5) = wide(a[5], b);
    let (e6, e7) = wide(a[6], b);
    let (o6, o7) = wide(a[7], b);
    let (e8, e9) = wide(a[8], b);
    let (o8, o9) = wide(a[9], b);
    let (e10, e11) = wide(a[10], b);
    let (o10, o11) = wide(a[11], b);
    (
        [e0, e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11],
        [o0, o1, o2, o3, o4, o5, o6, o7, o8, o9, o10, o11],
    )
}

/// V / 2^32: the columns change roles; E\[1\] is still to be added at position 0.
#[inline(always)]
fn shift(e: &[u32; 12], o: &[u32; 12]) -> ([u32; 12], [u32; 12], u32) {
    let od = [
        e[2], e[3], e[4], e[5], e[6], e[7], e[8], e[9], e[10], e[11], 0, 0,
    ];
    (*o, od, e[1])
}

/// V / 2^32 as one number.
#[inline(always)]
fn merge(e: &[u32; 12], o: &[u32; 12]) -> [u32; 12] {
    let rest = [
        e[1], e[2], e[3], e[4], e[5], e[6], e[7], e[8], e[9], e[10], e[11], 0,
    ];
    add12(o, &rest)
}

/// (E + O 2^32) / R mod p, for V below R.
#[inline(always)]
fn reduce<P: FieldParams<12>>(mut e: [u32; 12], mut o: [u32; 12]) -> [u32; 12] {
    red_row::<P>(&mut e, &mut o);
    macro_rules! step { ($($i:literal)*) => { $(
        let (mut next_e, mut next_o, carry_limb) = shift(&e, &o);
        let _ = $i;
        red_row_carry::<P>(&mut next_e, &mut next_o, carry_limb);
        (e, o) = (next_e, next_o);
    )* } }
    step!(1 2 3 4 5 6 7 8 9 10 11);
    merge(&e, &o)
}

/// Columns (E, O) of a^2: 78 products, off-diagonal ones taken once with the doubled limb.
#[inline(always)]
fn sqr_columns(a: &[u32; 12]) -> ([u32; 26], [u32; 26]) {
    // d = 2a with the bits carried between limbs; l[i] = low limb of 2 (a >> 32 i)
    let mut d = [0u32; 12];
    let mut l = [0u32; 12];
    macro_rules! double { ($([$i:literal $j:literal])*) => { $(
        l[$i] = a[$i] << 1;
        d[$i] = (a[$i] << 1) | (a[$j] >> 31);
    )* } }
    double!([1 0] [2 1] [3 2] [4 3] [5 4] [6 5] [7 6] [8 7] [9 8] [10 9] [11 10]);
    // absolute limb positions
    let mut ev = [0u32; 26];
    let mut od = [0u32; 26];
    products!(ev, a[0], [0 1 a[0]] [2 3 d[2]] [4 5 d[4]] [6 7 d[6]] [8 9 d[8]] [10 11 d[10]]);
    products!(od, a[0], [1 2 l[1]] [3 4 d[3]] [5 6 d[5]] [7 8 d[7]] [9 10 d[9]] [11 12 d[11]]);
    row!(ev, chain6, a[1], [2 3 4 5 6 7 8 9 10 11 12 13], [a[1], d[3], d[5], d[7], d[9], d[11]], 14);
    row!(od, chain5, a[1], [3 4 5 6 7 8 9 10 11 12], [l[2], d[4], d[6], d[8], d[10]], 13);
    row!(ev, chain5, a[2], [4 5 6 7 8 9 10 11 12 13], [a[2], d[4], d[6], d[8], d[10]], 14);
    row!(od, chain5, a[2], [5 6 7 8 9 10 11 12 13 14], [l[3], d[5], d[7], d[9], d[11]], 15);
    row!(ev, chain5, a[3], [6 7 8 9 10 11 12 13 14 15], [a[3], d[5], d[7], d[9], d[11]], 16);
    row!(od, chain4, a[3], [7 8 9 10 11 12 13 14], [l[4], d[6], d[8], d[10]], 15);
    row!(ev, chain4, a[4], [8 9 10 11 12 13 14 15], [a[4], d[6], d[8], d[10]], 16);
    row!(od, chain4, a[4], [9 10 11 12 13 14 15 16], [l[5], d[7], d[9], d[11]], 17);
    row!(ev, chain4, a[5], [10 11 12 13 14 15 16 17], [a[5], d[7], d[9], d[11]], 18);
    row!(od, chain3, a[5], [11 12 13 14 15 16], [l[6], d[8], d[10]], 17);
    row!(ev, chain3, a[6], [12 13 14 15 16 17], [a[6], d[8], d[10]], 18);
    row!(od, chain3, a[6], [13 14 15 16 17 18], [l[7], d[9], d[11]], 19);
    row!(ev, chain3, a[7], [14 15 16 17 18 19], [a[7], d[9], d[11]], 20);
    row!(od, chain2, a[7], [15 16 17 18], [l[8], d[10]], 19);
    row!(ev, chain2, a[8], [16 17 18 19], [a[8], d[10]], 20);
    row!(od, chain2, a[8], [17 18 19 20], [l[9], d[11]], 21);
    row!(ev, chain2, a[9], [18 19 20 21], [a[9], d[11]], 22);
    row!(od, chain1, a[9], [19 20], [l[10]], 21);
    row!(ev, chain1, a[10], [20 21], [a[10]], 22);
    row!(od, chain1, a[10], [21 22], [l[11]], 23);
    row!(ev, chain1, a[11], [22 23], [a[11]], 24);
    (ev, od)
}

impl Backend<12> for Ptx {
    #[inline(always)]
    fn add(a: &[u32; 12], b: &[u32; 12]) -> [u32; 12] {
        add12(a, b)
    }

    #[inline(always)]
    fn sub(a: &[u32; 12], b: &[u32; 12]) -> ([u32; 12], u32) {
        sub12(a, b)
    }

    #[inline(always)]
    fn add_carry(a: &[u32; 12], b: &[u32; 12], carry: u32) -> ([u32; 12], u32) {
        add12_carry(a, b, carry)
    }

    #[inline(always)]
    fn sub_with_borrow(a: &[u32; 12], b: &[u32; 12], borrow: u32) -> ([u32; 12], u32) {
        sub12_borrow(a, b, borrow)
    }

    /// Operand scanning, each row reduced at once: 12 (12 + 12) products and 12 for the factors m.
    #[inline(always)]
    fn mont_mul<P: FieldParams<12>>(a: &[u32; 12], b: &[u32; 12]) -> [u32; 12] {
        let (mut e, mut o) = first_row(a, b[0]);
        red_row::<P>(&mut e, &mut o);
        macro_rules! step { ($($i:literal)*) => { $(
            let (mut next_e, mut next_o, carry_limb) = shift(&e, &o);
            mac_row(&mut next_e, &mut next_o, carry_limb, a, b[$i]);
            red_row::<P>(&mut next_e, &mut next_o);
            (e, o) = (next_e, next_o);
        )* } }
        step!(1 2 3 4 5 6 7 8 9 10 11);
        merge(&e, &o)
    }

    #[inline(always)]
    fn mont_sqr<P: FieldParams<12>>(a: &[u32; 12]) -> [u32; 12] {
        let (e, o) = sqr_columns(a);
        let low = reduce::<P>(
            [
                e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7], e[8], e[9], e[10], e[11],
            ],
            [
                o[1], o[2], o[3], o[4], o[5], o[6], o[7], o[8], o[9], o[10], o[11], 0,
            ],
        );
        let high = add12(
            &[
                e[12], e[13], e[14], e[15], e[16], e[17], e[18], e[19], e[20], e[21], e[22], e[23],
            ],
            &[
                o[12], o[13], o[14], o[15], o[16], o[17], o[18], o[19], o[20], o[21], o[22], o[23],
            ],
        );
        add12(&low, &high)
    }

    #[inline(always)]
    fn mont_dot2<P: FieldParams<12>>(
        a: &[u32; 12],
        b: &[u32; 12],
        c: &[u32; 12],
        d: &[u32; 12],
    ) -> [u32; 12] {
        let (mut e, mut o) = first_row(a, b[0]);
        mac_row(&mut e, &mut o, 0, c, d[0]);
        red_row::<P>(&mut e, &mut o);
        macro_rules! step { ($($i:literal)*) => { $(
            let (mut next_e, mut next_o, carry_limb) = shift(&e, &o);
            mac_row(&mut next_e, &mut next_o, carry_limb, a, b[$i]);
            mac_row(&mut next_e, &mut next_o, 0, c, d[$i]);
            red_row::<P>(&mut next_e, &mut next_o);
            (e, o) = (next_e, next_o);
        )* } }
        step!(1 2 3 4 5 6 7 8 9 10 11);
        merge(&e, &o)
    }

    #[inline(always)]
    fn mul_wide(a: &[u32; 12], b: &[u32; 12]) -> ([u32; 12], [u32; 12]) {
        super::karatsuba::mul_wide(a, b)
    }

    #[inline(always)]
    fn sqr_wide(a: &[u32; 12]) -> ([u32; 12], [u32; 12]) {
        let (e, o) = sqr_columns(a);
        let (low, carry) = add12_carry(
            &[
                e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7], e[8], e[9], e[10], e[11],
            ],
            &[
                0, o[1], o[2], o[3], o[4], o[5], o[6], o[7], o[8], o[9], o[10], o[11],
            ],
            0,
        );
        let (high, _) = add12_carry(
            &[
                e[12], e[13], e[14], e[15], e[16], e[17], e[18], e[19], e[20], e[21], e[22], e[23],
            ],
            &[
                o[12], o[13], o[14], o[15], o[16], o[17], o[18], o[19], o[20], o[21], o[22], o[23],
            ],
            carry,
        );
        (low, high)
    }

    #[inline(always)]
    fn mont_reduce<P: FieldParams<12>>(low: &[u32; 12], high: &[u32; 12]) -> [u32; 12] {
        add12(&reduce::<P>(*low, [0; 12]), high)
    }

    define_memory!(12, first = 0, rest = [1 2 3 4 5 6 7 8 9 10 11]);
}
