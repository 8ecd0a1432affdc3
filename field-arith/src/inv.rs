//! Inversion by half-delta division steps (Bernstein and Yang, "Fast constant-time gcd computation
//! and modular inversion", 2019, in the variant of libsecp256k1's safegcd notes).
//!
//! Batches of 30 steps on the low 30 bits give a 2x2 matrix that is then applied to the full
//! numbers, kept as signed 30-bit digits. Nothing depends on the data, so that the lanes of a warp
//! invert side by side.

use crate::montgomery::Mont;
use crate::ops::DivisionSteps;
use crate::params::FieldParams;

/// Digits have this many bits, and a batch as many division steps.
const DIGIT: usize = 30;
const MASK: i32 = (1 << DIGIT) - 1;

/// Batches after which g is zero for any inputs below 2^bits: the bound of ⌊(45907 bits + 26313) /
/// 19929⌋ division steps (Wuille, "safegcd bounds"), rounded up to whole batches.
const fn batches(bits: usize) -> usize {
    ((45907 * bits + 26313) / 19929).div_ceil(DIGIT)
}

/// Signed digits of an unsigned number.
const fn digits<const N: usize, const D: usize>(a: &[u32; N]) -> [i32; D] {
    let mut z = [0; D];
    let mut i = 0;
    while i < D {
        let (word, shift) = (DIGIT * i / 32, DIGIT * i % 32);
        let low = if word < N { a[word] as u64 } else { 0 };
        let high = if word + 1 < N { a[word + 1] as u64 } else { 0 };
        z[i] = ((low | high << 32) >> shift) as i32 & MASK;
        i += 1;
    }
    z
}

/// p and R^2 in digits, and p^-1 mod 2^30.
struct Digits<P, const N: usize, const D: usize>(core::marker::PhantomData<P>);

impl<P: FieldParams<N>, const N: usize, const D: usize> Digits<P, N, D> {
    const MODULUS: [i32; D] = digits(&P::MODULUS);
    /// Starting value of the Bézout coefficient: x = aR then gives R^2/x = a^-1 R.
    const R2: [i32; D] = digits(&P::R2);
    const INVERSE: u32 = P::INV.wrapping_neg() & MASK as u32;
}

/// A batch of division steps on the low digits: (zeta, matrix (u, v; q, r)), zeta = -(delta + 1/2).
#[inline(always)]
fn division_steps(mut zeta: i32, f0: i32, g0: i32) -> (i32, [i32; 4]) {
    let (mut u, mut v, mut q, mut r) = (1i32, 0i32, 0i32, 1i32);
    let (mut f, mut g) = (f0, g0);
    let mut i = 0;
    while i < DIGIT {
        let negative = zeta >> 31;
        let odd = (g & 1).wrapping_neg();
        let x = (f ^ negative).wrapping_sub(negative);
        let y = (u ^ negative).wrapping_sub(negative);
        let z = (v ^ negative).wrapping_sub(negative);
        g = g.wrapping_add(x & odd);
        q = q.wrapping_add(y & odd);
        r = r.wrapping_add(z & odd);
        let swap = negative & odd;
        zeta = (zeta ^ swap).wrapping_sub(1);
        f = f.wrapping_add(g & swap);
        u = u.wrapping_add(q & swap);
        v = v.wrapping_add(r & swap);
        g = ((g as u32) >> 1) as i32;
        u = u.wrapping_shl(1);
        v = v.wrapping_shl(1);
        i += 1;
    }
    (zeta, [u, v, q, r])
}

/// c + a b.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
fn mac(c: i64, a: i32, b: i32) -> i64 {
    c + a as i64 * b as i64
}
#[cfg(target_arch = "nvptx64")]
use crate::ptx::mad_wide_signed as mac;

/// Implements [`DivisionSteps`] for one limb count; the lists unroll the digit loops, because register
/// arrays must not be indexed at run time.
macro_rules! define_inversion {
    (limbs = $n:literal, digits = $d:literal, top = $top:literal,
     words = [$($w:literal)*], first = 0, rest = [$($i:literal)*]) => {
        const _: () = {
            const N: usize = $n;
            const D: usize = $d;
            const TOP: usize = $top;

            #[inline(always)]
            fn split(a: &[u32; N]) -> [i32; D] {
                macro_rules! digit { ($k:literal) => {{
                    const WORD: usize = DIGIT * $k / 32;
                    const SHIFT: usize = DIGIT * $k % 32;
                    const NEXT: usize = if WORD + 1 < N { WORD + 1 } else { WORD };
                    let high = if SHIFT > 2 && WORD + 1 < N { a[NEXT] << ((32 - SHIFT) & 31) } else { 0 };
                    (a[WORD] >> SHIFT | high) as i32 & MASK
                }} }
                [digit!(0), $( digit!($i) ),*]
            }

            #[inline(always)]
            fn join(x: &[i32; D]) -> [u32; N] {
                macro_rules! word { ($k:literal) => {{
                    const LOW: usize = 32 * $k / DIGIT;
                    const SHIFT: usize = 32 * $k % DIGIT;
                    const NEXT: usize = if LOW + 1 < D { LOW + 1 } else { LOW };
                    const LAST: usize = if LOW + 2 < D { LOW + 2 } else { LOW };
                    let mut w = (x[LOW] as u32) >> SHIFT;
                    if LOW + 1 < D {
                        w |= (x[NEXT] as u32) << (DIGIT - SHIFT);
                    }
                    if LOW + 2 < D && SHIFT > 28 {
                        w |= (x[LAST] as u32) << ((2 * DIGIT - SHIFT) & 31);
                    }
                    w
                }} }
                [$( word!($w) ),*]
            }

            /// (f, g) = t (f, g) / 2^30, exact.
            #[inline(always)]
            fn update_fg(f: &mut [i32; D], g: &mut [i32; D], [u, v, q, r]: [i32; 4]) {
                let mut cf = mac(mac(0, u, f[0]), v, g[0]) >> DIGIT;
                let mut cg = mac(mac(0, q, f[0]), r, g[0]) >> DIGIT;
                $(
                    cf = mac(mac(cf, u, f[$i]), v, g[$i]);
                    cg = mac(mac(cg, q, f[$i]), r, g[$i]);
                    f[$i - 1] = cf as i32 & MASK;
                    g[$i - 1] = cg as i32 & MASK;
                    cf >>= DIGIT;
                    cg >>= DIGIT;
                )*
                f[TOP] = cf as i32;
                g[TOP] = cg as i32;
            }

            /// (d, e) = t (d, e) / 2^30 mod p, both staying in (-2p, p).
            #[inline(always)]
            fn update_de<P: FieldParams<N>>(
                d: &mut [i32; D], e: &mut [i32; D], [u, v, q, r]: [i32; 4],
            ) {
                let (sd, se) = (d[TOP] >> 31, e[TOP] >> 31);
                let mut md = (u & sd).wrapping_add(v & se);
                let mut me = (q & sd).wrapping_add(r & se);
                let mut cd = mac(mac(0, u, d[0]), v, e[0]);
                let mut ce = mac(mac(0, q, d[0]), r, e[0]);
                let inverse = Digits::<P, N, D>::INVERSE;
                // the multiples of p that clear the low digits
                md = md.wrapping_sub((inverse.wrapping_mul(cd as u32).wrapping_add(md as u32) as i32) & MASK);
                me = me.wrapping_sub((inverse.wrapping_mul(ce as u32).wrapping_add(me as u32) as i32) & MASK);
                cd = mac(cd, Digits::<P, N, D>::MODULUS[0], md) >> DIGIT;
                ce = mac(ce, Digits::<P, N, D>::MODULUS[0], me) >> DIGIT;
                $(
                    cd = mac(mac(mac(cd, u, d[$i]), v, e[$i]), Digits::<P, N, D>::MODULUS[$i], md);
                    ce = mac(mac(mac(ce, q, d[$i]), r, e[$i]), Digits::<P, N, D>::MODULUS[$i], me);
                    d[$i - 1] = cd as i32 & MASK;
                    e[$i - 1] = ce as i32 & MASK;
                    cd >>= DIGIT;
                    ce >>= DIGIT;
                )*
                d[TOP] = cd as i32;
                e[TOP] = ce as i32;
            }

            /// d in (-2p, p), negated if `negative` is all ones, brought into [0, p).
            #[inline(always)]
            fn normalise<P: FieldParams<N>>(mut d: [i32; D], negative: i32) -> [u32; N] {
                let add = d[TOP] >> 31;
                macro_rules! fix { ($k:literal) => {
                    d[$k] = ((d[$k] + (Digits::<P, N, D>::MODULUS[$k] & add)) ^ negative) - negative;
                } }
                fix!(0);
                $( fix!($i); )*
                $( d[$i] += d[$i - 1] >> DIGIT; d[$i - 1] &= MASK; )*
                let add = d[TOP] >> 31;
                d[0] += Digits::<P, N, D>::MODULUS[0] & add;
                $( d[$i] += Digits::<P, N, D>::MODULUS[$i] & add; )*
                $( d[$i] += d[$i - 1] >> DIGIT; d[$i - 1] &= MASK; )*
                join(&d)
            }

            impl<P: FieldParams<N>> DivisionSteps for Mont<P, N> {
                #[inline(always)]
                fn invert_by_division_steps(&self) -> Self {
                    let mut f = Digits::<P, N, D>::MODULUS;
                    let mut g = split(self.canonical().limbs());
                    let mut d = [0i32; D];
                    let mut e = Digits::<P, N, D>::R2;
                    let mut zeta = -1;
                    let mut k = 0;
                    while k < const { batches(32 * N) } {
                        let (next, matrix) = division_steps(zeta, f[0], g[0]);
                        zeta = next;
                        update_de::<P>(&mut d, &mut e, matrix);
                        update_fg(&mut f, &mut g, matrix);
                        k += 1;
                    }
                    // f is now 1 or -1 (or p for a zero input, with d = 0)
                    Self::from_limbs(normalise::<P>(d, f[TOP] >> 31))
                }
            }
        };
    };
}

define_inversion!(limbs = 8, digits = 9, top = 8,
    words = [0 1 2 3 4 5 6 7], first = 0, rest = [1 2 3 4 5 6 7 8]);
define_inversion!(limbs = 12, digits = 13, top = 12,
    words = [0 1 2 3 4 5 6 7 8 9 10 11], first = 0, rest = [1 2 3 4 5 6 7 8 9 10 11 12]);
