//! Eight limbs: 256-bit fields.

use super::chains::{chain1, chain2, chain3, chain4, low_chain2, low_chain3, low_chain4};
use super::{Ptx, wide};
use crate::backend::{Backend, FixedBackend};
use crate::params::FieldParams;

define_rows!(
    n = 8, top = "o7",
    mid = ["2" "3" "a2" "a3", "4" "5" "a4" "a5"],
    last = ["6" "7" "a6" "a7"],
    limbs = [0 e0 o0 a0, 1 e1 o1 a1, 2 e2 o2 a2, 3 e3 o3 a3, 4 e4 o4 a4, 5 e5 o5 a5,
             6 e6 o6 a6, 7 e7 o7 a7]
);
define_add_sub!(add8, sub8, 8, first = "0", mid = ["1" "2" "3" "4" "5" "6"], last = "7",
    limbs = [0 r0 a0 b0, 1 r1 a1 b1, 2 r2 a2 b2, 3 r3 a3 b3, 4 r4 a4 b4, 5 r5 a5 b5,
             6 r6 a6 b6, 7 r7 a7 b7]);
define_add_carry!(
    add8_carry, 8, first = "0", rest = ["1" "2" "3" "4" "5" "6" "7"],
    limbs = [0 r0 a0 b0, 1 r1 a1 b1, 2 r2 a2 b2, 3 r3 a3 b3, 4 r4 a4 b4, 5 r5 a5 b5, 6 r6 a6 b6, 7 r7 a7 b7]
);
define_sub_borrow!(
    sub8_borrow, 8, first = "0", rest = ["1" "2" "3" "4" "5" "6" "7"],
    limbs = [0 r0 a0 b0, 1 r1 a1 b1, 2 r2 a2 b2, 3 r3 a3 b3, 4 r4 a4 b4, 5 r5 a5 b5, 6 r6 a6 b6, 7 r7 a7 b7]
);

/// Moduli p = 1 + (2^32 - 1) 2^32 + … (BLS12-381's r) need no multiplication for two of the limbs:
/// m = -V\[0\], and m (2^32 - 1) = m 2^32 - m.
#[inline(always)]
const fn is_unit_modulus<P: FieldParams<8>>() -> bool {
    P::MODULUS[0] == 1 && P::MODULUS[1] == u32::MAX
}

/// V += p m with the m that makes limb 0 of V zero, for such a modulus:
/// 6 products. Limb 0 of E is left unspecified.
#[inline(always)]
fn unit_row<P: FieldParams<8>>(ev: &mut [u32; 8], od: &mut [u32; 8]) {
    // SAFETY: pure register arithmetic.
    unsafe {
        core::arch::asm!(
            concat!(
                "{{ .reg .u32 m; .reg .u32 h; .reg .u32 t;\n",
                // (h, -m) = m (2^32 - 1)
                "sub.cc.u32 m, 0, {e0}; subc.u32 h, m, 0;\n",
                "add.cc.u32 {o0}, {o0}, {e0}; addc.cc.u32 {o1}, {o1}, h;\n",
                mad_next!("o", "p3", "2", "3", "m"),
                mad_next!("o", "p5", "4", "5", "m"),
                mad_last!("o", "p7", "6", "7", "m"),
                // only the carry of this sum counts
                "add.cc.u32 t, {e0}, m; addc.cc.u32 {e1}, {e1}, 0;\n",
                mad_next!("e", "p2", "2", "3", "m"),
                mad_next!("e", "p4", "4", "5", "m"),
                mad_next!("e", "p6", "6", "7", "m"),
                "addc.u32 {o7}, {o7}, 0; }}",
            ),
            e0 = in(reg32) ev[0], e1 = inout(reg32) ev[1], e2 = inout(reg32) ev[2],
            e3 = inout(reg32) ev[3], e4 = inout(reg32) ev[4], e5 = inout(reg32) ev[5],
            e6 = inout(reg32) ev[6], e7 = inout(reg32) ev[7],
            o0 = inout(reg32) od[0], o1 = inout(reg32) od[1], o2 = inout(reg32) od[2],
            o3 = inout(reg32) od[3], o4 = inout(reg32) od[4], o5 = inout(reg32) od[5],
            o6 = inout(reg32) od[6], o7 = inout(reg32) od[7],
            p2 = const P::MODULUS[2], p3 = const P::MODULUS[3], p4 = const P::MODULUS[4],
            p5 = const P::MODULUS[5], p6 = const P::MODULUS[6], p7 = const P::MODULUS[7],
            options(pure, nomem, nostack, preserves_flags)
        );
    }
}

#[inline(always)]
fn reduce_row<P: FieldParams<8>>(ev: &mut [u32; 8], od: &mut [u32; 8]) {
    if const { is_unit_modulus::<P>() } {
        unit_row::<P>(ev, od)
    } else {
        red_row::<P>(ev, od)
    }
}

#[inline(always)]
fn reduce_row_carry<P: FieldParams<8>>(ev: &mut [u32; 8], od: &mut [u32; 8], carry_limb: u32) {
    if const { is_unit_modulus::<P>() } {
        let (sum, carry) = ev[0].overflowing_add(carry_limb);
        ev[0] = sum;
        *od = add8(od, &[carry as u32, 0, 0, 0, 0, 0, 0, 0]);
        unit_row::<P>(ev, od)
    } else {
        red_row_carry::<P>(ev, od, carry_limb)
    }
}

/// V = a b in even and odd columns.
#[inline(always)]
fn first_row(a: &[u32; 8], b: u32) -> ([u32; 8], [u32; 8]) {
    let (e0, e1) = wide(a[0], b);
    let (o0, o1) = wide(a[1], b);
    let (e2, e3) = wide(a[2], b);
    let (o2, o3) = wide(a[3], b);
    let (e4, e5) = wide(a[4], b);
    let (o4, o5) = wide(a[5], b);
    let (e6, e7) = wide(a[6], b);
    let (o6, o7) = wide(a[7], b);
    (
        [e0, e1, e2, e3, e4, e5, e6, e7],
        [o0, o1, o2, o3, o4, o5, o6, o7],
    )
}

/// V / 2^32: the columns change roles; E\[1\] is still to be added at position 0.
#[inline(always)]
fn shift(e: &[u32; 8], o: &[u32; 8]) -> ([u32; 8], [u32; 8], u32) {
    (*o, [e[2], e[3], e[4], e[5], e[6], e[7], 0, 0], e[1])
}

/// V / 2^32 as one number.
#[inline(always)]
fn merge(e: &[u32; 8], o: &[u32; 8]) -> [u32; 8] {
    add8(o, &[e[1], e[2], e[3], e[4], e[5], e[6], e[7], 0])
}

/// (E + O 2^32) / R mod p, for V below R.
#[inline(always)]
fn reduce<P: FieldParams<8>>(mut e: [u32; 8], mut o: [u32; 8]) -> [u32; 8] {
    reduce_row::<P>(&mut e, &mut o);
    macro_rules! step { ($($i:literal)*) => { $(
        let (mut next_e, mut next_o, carry_limb) = shift(&e, &o);
        let _ = $i;
        reduce_row_carry::<P>(&mut next_e, &mut next_o, carry_limb);
        (e, o) = (next_e, next_o);
    )* } }
    step!(1 2 3 4 5 6 7);
    merge(&e, &o)
}

/// Columns (E, O) of ab: 64 products.
#[inline(always)]
fn mul_columns(a: &[u32; 8], b: &[u32; 8]) -> ([u32; 18], [u32; 18]) {
    let mut ev = [0u32; 18];
    let mut od = [0u32; 18];
    macro_rules! even { ($acc:ident $i:literal [$($p:literal)*] $c:literal) => {
        row!($acc, chain4, b[$i], [$($p)*], [a[0], a[2], a[4], a[6]], $c)
    } }
    macro_rules! odd { ($acc:ident $i:literal [$($p:literal)*]) => {
        row!($acc, chain4, b[$i], [$($p)*], [a[1], a[3], a[5], a[7]])
    } }
    products!(ev, b[0], [0 1 a[0]] [2 3 a[2]] [4 5 a[4]] [6 7 a[6]]);
    products!(od, b[0], [1 2 a[1]] [3 4 a[3]] [5 6 a[5]] [7 8 a[7]]);
    even!(od 1 [1 2 3 4 5 6 7 8] 9);
    odd!(ev 1 [2 3 4 5 6 7 8 9]);
    even!(ev 2 [2 3 4 5 6 7 8 9] 10);
    odd!(od 2 [3 4 5 6 7 8 9 10]);
    even!(od 3 [3 4 5 6 7 8 9 10] 11);
    odd!(ev 3 [4 5 6 7 8 9 10 11]);
    even!(ev 4 [4 5 6 7 8 9 10 11] 12);
    odd!(od 4 [5 6 7 8 9 10 11 12]);
    even!(od 5 [5 6 7 8 9 10 11 12] 13);
    odd!(ev 5 [6 7 8 9 10 11 12 13]);
    even!(ev 6 [6 7 8 9 10 11 12 13] 14);
    odd!(od 6 [7 8 9 10 11 12 13 14]);
    even!(od 7 [7 8 9 10 11 12 13 14] 15);
    odd!(ev 7 [8 9 10 11 12 13 14 15]);
    (ev, od)
}

/// Columns (E, O) of a^2: 36 products, off-diagonal ones taken once with the doubled limb.
#[inline(always)]
fn sqr_columns(a: &[u32; 8]) -> ([u32; 18], [u32; 18]) {
    // d = 2a with the bits carried between limbs; l[i] = low limb of 2 (a >> 32 i)
    let mut d = [0u32; 8];
    let mut l = [0u32; 8];
    macro_rules! double { ($([$i:literal $j:literal])*) => { $(
        l[$i] = a[$i] << 1;
        d[$i] = (a[$i] << 1) | (a[$j] >> 31);
    )* } }
    double!([1 0] [2 1] [3 2] [4 3] [5 4] [6 5] [7 6]);
    let mut ev = [0u32; 18];
    let mut od = [0u32; 18];
    products!(ev, a[0], [0 1 a[0]] [2 3 d[2]] [4 5 d[4]] [6 7 d[6]]);
    products!(od, a[0], [1 2 l[1]] [3 4 d[3]] [5 6 d[5]] [7 8 d[7]]);
    row!(ev, chain4, a[1], [2 3 4 5 6 7 8 9], [a[1], d[3], d[5], d[7]], 10);
    row!(od, chain3, a[1], [3 4 5 6 7 8], [l[2], d[4], d[6]], 9);
    row!(ev, chain3, a[2], [4 5 6 7 8 9], [a[2], d[4], d[6]], 10);
    row!(od, chain3, a[2], [5 6 7 8 9 10], [l[3], d[5], d[7]], 11);
    row!(ev, chain3, a[3], [6 7 8 9 10 11], [a[3], d[5], d[7]], 12);
    row!(od, chain2, a[3], [7 8 9 10], [l[4], d[6]], 11);
    row!(ev, chain2, a[4], [8 9 10 11], [a[4], d[6]], 12);
    row!(od, chain2, a[4], [9 10 11 12], [l[5], d[7]], 13);
    row!(ev, chain2, a[5], [10 11 12 13], [a[5], d[7]], 14);
    row!(od, chain1, a[5], [11 12], [l[6]], 13);
    row!(ev, chain1, a[6], [12 13], [a[6]], 14);
    row!(od, chain1, a[6], [13 14], [l[7]], 15);
    row!(ev, chain1, a[7], [14 15], [a[7]], 16);
    (ev, od)
}

/// (low, high) of E + O.
#[inline(always)]
fn join_columns(e: &[u32; 18], o: &[u32; 18]) -> ([u32; 8], [u32; 8]) {
    let (low, carry) = add8_carry(
        &[e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7]],
        &[0, o[1], o[2], o[3], o[4], o[5], o[6], o[7]],
        0,
    );
    let (high, _) = add8_carry(
        &[e[8], e[9], e[10], e[11], e[12], e[13], e[14], e[15]],
        &[o[8], o[9], o[10], o[11], o[12], o[13], o[14], o[15]],
        carry,
    );
    (low, high)
}

impl Backend<8> for Ptx {
    #[inline(always)]
    fn add(a: &[u32; 8], b: &[u32; 8]) -> [u32; 8] {
        add8(a, b)
    }

    #[inline(always)]
    fn sub(a: &[u32; 8], b: &[u32; 8]) -> ([u32; 8], u32) {
        sub8(a, b)
    }

    #[inline(always)]
    fn add_carry(a: &[u32; 8], b: &[u32; 8], carry: u32) -> ([u32; 8], u32) {
        add8_carry(a, b, carry)
    }

    #[inline(always)]
    fn sub_with_borrow(a: &[u32; 8], b: &[u32; 8], borrow: u32) -> ([u32; 8], u32) {
        sub8_borrow(a, b, borrow)
    }

    /// Operand scanning, each row reduced at once.
    #[inline(always)]
    fn mont_mul<P: FieldParams<8>>(a: &[u32; 8], b: &[u32; 8]) -> [u32; 8] {
        let (mut e, mut o) = first_row(a, b[0]);
        reduce_row::<P>(&mut e, &mut o);
        macro_rules! step { ($($i:literal)*) => { $(
            let (mut next_e, mut next_o, carry_limb) = shift(&e, &o);
            mac_row(&mut next_e, &mut next_o, carry_limb, a, b[$i]);
            reduce_row::<P>(&mut next_e, &mut next_o);
            (e, o) = (next_e, next_o);
        )* } }
        step!(1 2 3 4 5 6 7);
        merge(&e, &o)
    }

    #[inline(always)]
    fn mont_sqr<P: FieldParams<8>>(a: &[u32; 8]) -> [u32; 8] {
        // rows that are reduced at once spare a unit modulus the carries of a separate reduction
        if const { is_unit_modulus::<P>() } {
            return Self::mont_mul::<P>(a, a);
        }
        let (low, high) = Self::sqr_wide(a);
        Self::mont_reduce::<P>(&low, &high)
    }

    /// Full products first, because the sum of a, c and p may not fit in eight limbs.
    #[inline(always)]
    fn mont_dot2<P: FieldParams<8>>(
        a: &[u32; 8],
        b: &[u32; 8],
        c: &[u32; 8],
        d: &[u32; 8],
    ) -> [u32; 8] {
        let (ab_low, ab_high) = Self::mul_wide(a, b);
        let (cd_low, cd_high) = Self::mul_wide(c, d);
        let (low, carry) = add8_carry(&ab_low, &cd_low, 0);
        Self::mont_reduce::<P>(&low, &add8_carry(&ab_high, &cd_high, carry).0)
    }

    #[inline(always)]
    fn mul_wide(a: &[u32; 8], b: &[u32; 8]) -> ([u32; 8], [u32; 8]) {
        let (e, o) = mul_columns(a, b);
        join_columns(&e, &o)
    }

    #[inline(always)]
    fn sqr_wide(a: &[u32; 8]) -> ([u32; 8], [u32; 8]) {
        let (e, o) = sqr_columns(a);
        join_columns(&e, &o)
    }

    #[inline(always)]
    fn mont_reduce<P: FieldParams<8>>(low: &[u32; 8], high: &[u32; 8]) -> [u32; 8] {
        add8(&reduce::<P>(*low, [0; 8]), high)
    }

    define_memory!(8, first = 0, rest = [1 2 3 4 5 6 7]);
}

/// ⌊qx / 2^256⌋, or one less: the columns from 6 on, 43 of 64 products.
#[inline(always)]
fn mul_high(q: &[u32; 8], x: &[u32; 8]) -> [u32; 8] {
    let mut ev = [0u32; 17];
    let mut od = [0u32; 17];
    products!(ev, x[0], [6 7 q[6]]);
    products!(od, x[0], [7 8 q[7]]);
    row!(ev, chain2, x[1], [6 7 8 9], [q[5], q[7]], 10);
    row!(od, chain1, x[1], [7 8], [q[6]], 9);
    row!(ev, chain2, x[2], [6 7 8 9], [q[4], q[6]], 10);
    row!(od, chain2, x[2], [7 8 9 10], [q[5], q[7]], 11);
    row!(ev, chain3, x[3], [6 7 8 9 10 11], [q[3], q[5], q[7]], 12);
    row!(od, chain2, x[3], [7 8 9 10], [q[4], q[6]], 11);
    row!(ev, chain3, x[4], [6 7 8 9 10 11], [q[2], q[4], q[6]], 12);
    row!(od, chain3, x[4], [7 8 9 10 11 12], [q[3], q[5], q[7]], 13);
    row!(ev, chain4, x[5], [6 7 8 9 10 11 12 13], [q[1], q[3], q[5], q[7]], 14);
    row!(od, chain3, x[5], [7 8 9 10 11 12], [q[2], q[4], q[6]], 13);
    row!(ev, chain4, x[6], [6 7 8 9 10 11 12 13], [q[0], q[2], q[4], q[6]], 14);
    row!(od, chain4, x[6], [7 8 9 10 11 12 13 14], [q[1], q[3], q[5], q[7]], 15);
    row!(ev, chain4, x[7], [8 9 10 11 12 13 14 15], [q[1], q[3], q[5], q[7]], 16);
    row!(od, chain4, x[7], [7 8 9 10 11 12 13 14], [q[0], q[2], q[4], q[6]], 15);
    let (_, carry) = ev[7].overflowing_add(od[7]);
    let (high, _) = add8_carry(
        &[ev[8], ev[9], ev[10], ev[11], ev[12], ev[13], ev[14], ev[15]],
        &[od[8], od[9], od[10], od[11], od[12], od[13], od[14], od[15]],
        carry as u32,
    );
    high
}

/// Low columns of a product: limbs 0 to 7 of E and O.
struct LowColumns {
    ev: [u32; 8],
    od: [u32; 8],
}

impl LowColumns {
    /// += ab mod 2^256: 28 wide and 8 low products.
    #[inline(always)]
    fn add_product(&mut self, a: &[u32; 8], b: &[u32; 8]) {
        let Self { ev, od } = self;
        row!(ev, chain4, b[0], [0 1 2 3 4 5 6 7], [a[0], a[2], a[4], a[6]]);
        row!(low od, low_chain4, b[0], [1 2 3 4 5 6 7], [a[1], a[3], a[5], a[7]]);
        row!(ev, chain3, b[1], [2 3 4 5 6 7], [a[1], a[3], a[5]]);
        row!(low od, low_chain4, b[1], [1 2 3 4 5 6 7], [a[0], a[2], a[4], a[6]]);
        self.add_upper_rows(a, b);
    }

    /// += ab mod 2^256 without the rows b\[0\] and b\[1\]: 15 wide and 6 low products.
    #[inline(always)]
    fn add_upper_rows(&mut self, a: &[u32; 8], b: &[u32; 8]) {
        let Self { ev, od } = self;
        row!(ev, chain3, b[2], [2 3 4 5 6 7], [a[0], a[2], a[4]]);
        row!(low od, low_chain3, b[2], [3 4 5 6 7], [a[1], a[3], a[5]]);
        row!(ev, chain2, b[3], [4 5 6 7], [a[1], a[3]]);
        row!(low od, low_chain3, b[3], [3 4 5 6 7], [a[0], a[2], a[4]]);
        row!(ev, chain2, b[4], [4 5 6 7], [a[0], a[2]]);
        row!(low od, low_chain2, b[4], [5 6 7], [a[1], a[3]]);
        row!(ev, chain1, b[5], [6 7], [a[1]]);
        row!(low od, low_chain2, b[5], [5 6 7], [a[0], a[2]]);
        row!(ev, chain1, b[6], [6 7], [a[0]]);
        od[7] = od[7].wrapping_add(a[1].wrapping_mul(b[6]));
        od[7] = od[7].wrapping_add(a[0].wrapping_mul(b[7]));
    }

    #[inline(always)]
    fn merge(&self) -> [u32; 8] {
        let od = &self.od;
        add8(
            &self.ev,
            &[0, od[1], od[2], od[3], od[4], od[5], od[6], od[7]],
        )
    }
}

/// 2^256 - p.
struct Complement<P>(core::marker::PhantomData<P>);
impl<P: FieldParams<8>> Complement<P> {
    const LIMBS: [u32; 8] = crate::params::sub_wrapping(&[0; 8], &P::MODULUS);
}

impl FixedBackend<8> for Ptx {
    #[inline(always)]
    fn mul_low(a: &[u32; 8], b: &[u32; 8]) -> [u32; 8] {
        let mut columns = LowColumns {
            ev: [0; 8],
            od: [0; 8],
        };
        columns.add_product(a, b);
        columns.merge()
    }

    #[inline(always)]
    fn mul_fixed<P: FieldParams<8>>(
        value: &[u32; 8],
        quotient: &[u32; 8],
        x: &[u32; 8],
    ) -> [u32; 8] {
        let q = mul_high(quotient, x);
        let mut columns = LowColumns {
            ev: [0; 8],
            od: [0; 8],
        };
        columns.add_product(value, x);
        if const { is_unit_modulus::<P>() } {
            // the complement's low limbs are 2^32 - 1 and 0: q (2^32 - 1) = (q << 32) - q
            columns.add_upper_rows(&q, &Complement::<P>::LIMBS);
            let shifted = add8(
                &columns.merge(),
                &[0, q[0], q[1], q[2], q[3], q[4], q[5], q[6]],
            );
            sub8(&shifted, &q).0
        } else {
            columns.add_product(&q, &Complement::<P>::LIMBS);
            columns.merge()
        }
    }
}
