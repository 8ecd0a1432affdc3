//! Portable limb arithmetic in 64-bit words: the host's back end and the device's reference.

use crate::backend::{Backend, FixedBackend};
use crate::params::FieldParams;

/// Back end in plain Rust.
pub struct Portable;

/// Words of the largest field, enough for 16 limbs.
const WORDS: usize = 8;

#[inline(always)]
fn words<const N: usize>(a: &[u32; N]) -> [u64; WORDS] {
    let mut w = [0; WORDS];
    for i in 0..N / 2 {
        w[i] = a[2 * i] as u64 | (a[2 * i + 1] as u64) << 32;
    }
    w
}

#[inline(always)]
fn limbs<const N: usize>(w: &[u64]) -> [u32; N] {
    let mut a = [0; N];
    for i in 0..N / 2 {
        a[2 * i] = w[i] as u32;
        a[2 * i + 1] = (w[i] >> 32) as u32;
    }
    a
}

/// (low, high) of a + bc + carry.
#[inline(always)]
fn mac(a: u64, b: u64, c: u64, carry: u64) -> (u64, u64) {
    let t = a as u128 + b as u128 * c as u128 + carry as u128;
    (t as u64, (t >> 64) as u64)
}

/// -p^-1 mod 2^64 from -p^-1 mod 2^32.
#[inline(always)]
fn inverse64(p: u64, inv: u32) -> u64 {
    let x = (inv as u64).wrapping_neg();
    x.wrapping_mul(2u64.wrapping_sub(p.wrapping_mul(x)))
        .wrapping_neg()
}

/// Divides t by 2^64 modulo p; `t` has one word more than p and one for its carry.
#[inline(always)]
fn reduce_word(t: &mut [u64; WORDS + 2], p: &[u64; WORDS], inv: u64, n: usize) {
    let m = t[0].wrapping_mul(inv);
    let (_, mut carry) = mac(t[0], m, p[0], 0);
    for j in 1..n {
        (t[j - 1], carry) = mac(t[j], m, p[j], carry);
    }
    let (s, over) = t[n].overflowing_add(carry);
    t[n - 1] = s;
    t[n] = t[n + 1] + over as u64;
    t[n + 1] = 0;
}

/// t += ab over n words, carry into t[n], t[n + 1].
#[inline(always)]
fn add_row(t: &mut [u64; WORDS + 2], a: &[u64; WORDS], b: u64, n: usize) {
    let mut carry = 0;
    for j in 0..n {
        (t[j], carry) = mac(t[j], a[j], b, carry);
    }
    let (s, over) = t[n].overflowing_add(carry);
    t[n] = s;
    t[n + 1] += over as u64;
}

impl<const N: usize> Backend<N> for Portable {
    #[inline]
    fn add(a: &[u32; N], b: &[u32; N]) -> [u32; N] {
        let mut z = [0; N];
        let mut carry = 0;
        for i in 0..N {
            let s = a[i] as u64 + b[i] as u64 + carry;
            z[i] = s as u32;
            carry = s >> 32;
        }
        z
    }

    #[inline]
    fn sub(a: &[u32; N], b: &[u32; N]) -> ([u32; N], u32) {
        let mut z = [0; N];
        let mut borrow = 0i64;
        for i in 0..N {
            let s = a[i] as i64 - b[i] as i64 + borrow;
            z[i] = s as u32;
            borrow = s >> 32;
        }
        (z, borrow as u32)
    }

    #[inline]
    fn add_carry(a: &[u32; N], b: &[u32; N], carry: u32) -> ([u32; N], u32) {
        let mut z = [0; N];
        let mut carry = carry as u64;
        for i in 0..N {
            let s = a[i] as u64 + b[i] as u64 + carry;
            z[i] = s as u32;
            carry = s >> 32;
        }
        (z, carry as u32)
    }

    #[inline]
    fn sub_with_borrow(a: &[u32; N], b: &[u32; N], borrow: u32) -> ([u32; N], u32) {
        let mut z = [0; N];
        let mut borrow = borrow as i32 as i64;
        for i in 0..N {
            let s = a[i] as i64 - b[i] as i64 + borrow;
            z[i] = s as u32;
            borrow = s >> 32;
        }
        (z, borrow as u32)
    }

    #[inline]
    fn masked(a: &[u32; N], mask: u32) -> [u32; N] {
        a.map(|limb| limb & mask)
    }

    #[inline]
    fn is_zero(a: &[u32; N]) -> bool {
        a.iter().fold(0, |z, &x| z | x) == 0
    }

    #[inline]
    fn equal(a: &[u32; N], b: &[u32; N]) -> bool {
        a == b
    }

    #[inline]
    fn mont_mul<P: FieldParams<N>>(a: &[u32; N], b: &[u32; N]) -> [u32; N] {
        let (a, b, p) = (words(a), words(b), words(&P::MODULUS));
        let inv = inverse64(p[0], P::INV);
        let mut t = [0; WORDS + 2];
        for &word in &b[..N / 2] {
            add_row(&mut t, &a, word, N / 2);
            reduce_word(&mut t, &p, inv, N / 2);
        }
        limbs(&t)
    }

    #[inline]
    fn mont_sqr<P: FieldParams<N>>(a: &[u32; N]) -> [u32; N] {
        Self::mont_mul::<P>(a, a)
    }

    #[inline]
    fn mont_dot2<P: FieldParams<N>>(
        a: &[u32; N],
        b: &[u32; N],
        c: &[u32; N],
        d: &[u32; N],
    ) -> [u32; N] {
        let (a, b, c, d, p) = (words(a), words(b), words(c), words(d), words(&P::MODULUS));
        let inv = inverse64(p[0], P::INV);
        let mut t = [0; WORDS + 2];
        for i in 0..N / 2 {
            add_row(&mut t, &a, b[i], N / 2);
            add_row(&mut t, &c, d[i], N / 2);
            reduce_word(&mut t, &p, inv, N / 2);
        }
        limbs(&t)
    }

    #[inline]
    fn mul_wide(a: &[u32; N], b: &[u32; N]) -> ([u32; N], [u32; N]) {
        let (a, b) = (words(a), words(b));
        let mut t = [0; 2 * WORDS];
        for i in 0..N / 2 {
            let mut carry = 0;
            for j in 0..N / 2 {
                (t[i + j], carry) = mac(t[i + j], a[j], b[i], carry);
            }
            t[i + N / 2] = carry;
        }
        (limbs(&t), limbs(&t[N / 2..]))
    }

    #[inline]
    fn sqr_wide(a: &[u32; N]) -> ([u32; N], [u32; N]) {
        Self::mul_wide(a, a)
    }

    #[inline]
    fn mont_reduce<P: FieldParams<N>>(low: &[u32; N], high: &[u32; N]) -> [u32; N] {
        let p = words(&P::MODULUS);
        let inv = inverse64(p[0], P::INV);
        let mut t = [0; WORDS + 2];
        t[..WORDS].copy_from_slice(&words(low));
        for _ in 0..N / 2 {
            reduce_word(&mut t, &p, inv, N / 2);
        }
        <Self as Backend<N>>::add(&limbs(&t), high)
    }

    #[inline]
    fn reverse_bytes(a: &[u32; N]) -> [u32; N] {
        core::array::from_fn(|i| a[N - 1 - i].swap_bytes())
    }

    #[inline]
    unsafe fn load(p: *const u32) -> [u32; N] {
        // SAFETY: the caller vouches for N readable, aligned limbs.
        unsafe { p.cast::<[u32; N]>().read() }
    }

    #[inline]
    unsafe fn store(a: &[u32; N], p: *mut u32) {
        // SAFETY: the caller vouches for N writable, aligned limbs.
        unsafe { p.cast::<[u32; N]>().write(*a) }
    }
}

impl<const N: usize> FixedBackend<N> for Portable {
    #[inline]
    fn mul_low(a: &[u32; N], b: &[u32; N]) -> [u32; N] {
        Self::mul_wide(a, b).0
    }

    #[inline]
    fn mul_fixed<P: FieldParams<N>>(
        value: &[u32; N],
        quotient: &[u32; N],
        x: &[u32; N],
    ) -> [u32; N] {
        let (_, multiple) = Self::mul_wide(quotient, x);
        let product = Self::mul_low(value, x);
        <Self as Backend<N>>::sub(&product, &Self::mul_low(&multiple, &P::MODULUS)).0
    }
}
