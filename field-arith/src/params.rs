//! What defines a prime field: its modulus. Every other constant is computed from it at compile time.

/// A prime field of `N` 32-bit limbs (8 or 12), held in Montgomery form with R = 2^(32 N).
///
/// Only [`NAME`](Self::NAME) and [`MODULUS`](Self::MODULUS) are written by hand; limbs are
/// little-endian.
pub trait FieldParams<const N: usize>: Copy + core::fmt::Debug + Send + Sync + 'static {
    /// Name of the field in error messages and test output.
    const NAME: &'static str;
    /// The prime p.
    const MODULUS: [u32; N];
    /// 2p. Meaningful for lazy fields, wraps otherwise.
    const DOUBLE_MODULUS: [u32; N] = double_wrapping(&Self::MODULUS);
    /// -p^-1 mod 2^32.
    const INV: u32 = negated_inverse(Self::MODULUS[0]);
    /// R mod p: one in Montgomery form.
    const R: [u32; N] = power_of_two(&Self::MODULUS, 32 * N as u32);
    /// R^2 mod p: multiplying by it enters Montgomery form.
    const R2: [u32; N] = power_of_two(&Self::MODULUS, 64 * N as u32);
    /// Whether elements are kept in [0, 2p) between operations: true when 4p < R, because then
    /// sums fit and products return to [0, 2p) by themselves. Otherwise elements are in [0, p).
    const LAZY: bool = Self::MODULUS[N - 1] < 1 << 30;
    /// Exclusive upper bound of the values that operations take and return: 2p or p.
    const BOUND: [u32; N] = if Self::LAZY {
        Self::DOUBLE_MODULUS
    } else {
        Self::MODULUS
    };
    /// Whether (ab + cd)/R stays below 2p for a, b, c, d <= 2p: true when 8p <= R.
    const DOT2_CLOSED: bool = Self::MODULUS[N - 1] < 1 << 29;
}

/// A prime field with a large power of two in p - 1, over which transforms run.
pub trait TwoAdicParams<const N: usize>: FieldParams<N> {
    /// A small generator of the multiplicative group (also the shift of the coset domain).
    const GENERATOR: u32;
    /// Largest s with 2^s dividing p - 1.
    const TWO_ADICITY: u32 = two_adicity(&Self::MODULUS);
    /// GENERATOR in Montgomery form.
    const GENERATOR_MONT: [u32; N] = small_to_mont(&Self::MODULUS, Self::GENERATOR);
    /// GENERATOR^((p-1) / 2^s) in Montgomery form: a primitive 2^s-th root of unity.
    const ROOT_OF_UNITY: [u32; N] = pow_mont(
        &Self::MODULUS,
        &Self::GENERATOR_MONT,
        &shift_right(&minus_one(&Self::MODULUS), Self::TWO_ADICITY),
    );
}

/// a >= b.
pub const fn at_least<const N: usize>(a: &[u32; N], b: &[u32; N]) -> bool {
    let mut i = N;
    while i > 0 {
        i -= 1;
        if a[i] != b[i] {
            return a[i] > b[i];
        }
    }
    true
}

/// a - b mod 2^(32 N).
pub const fn sub_wrapping<const N: usize>(a: &[u32; N], b: &[u32; N]) -> [u32; N] {
    let mut z = [0; N];
    let mut borrow = 0i64;
    let mut i = 0;
    while i < N {
        let s = a[i] as i64 - b[i] as i64 + borrow;
        z[i] = s as u32;
        borrow = s >> 32;
        i += 1;
    }
    z
}

/// 2a mod 2^(32 N).
pub const fn double_wrapping<const N: usize>(a: &[u32; N]) -> [u32; N] {
    let mut z = [0; N];
    let mut carry = 0;
    let mut i = 0;
    while i < N {
        z[i] = (a[i] << 1) | carry;
        carry = a[i] >> 31;
        i += 1;
    }
    z
}

/// -p^-1 mod 2^32 for odd p, by Newton's iteration (each step doubles the correct bits).
pub const fn negated_inverse(p: u32) -> u32 {
    let mut x = 1u32;
    let mut i = 0;
    while i < 5 {
        x = x.wrapping_mul(2u32.wrapping_sub(p.wrapping_mul(x)));
        i += 1;
    }
    x.wrapping_neg()
}

/// -p^-1 mod 2^(32 N) for odd p, limb by limb: x p = -1 mod 2^(32 (i + 1)) after step i.
pub const fn negated_inverse_wide<const N: usize>(p: &[u32; N]) -> [u32; N] {
    let inv = negated_inverse(p[0]);
    let mut x = [0; N];
    // t = 1 + x p, of which the lowest limbs are zero already
    let mut t = [0u32; N];
    t[0] = 1;
    let mut i = 0;
    while i < N {
        x[i] = t[i].wrapping_mul(inv);
        let mut carry = 0u64;
        let mut j = 0;
        while i + j < N {
            let s = t[i + j] as u64 + x[i] as u64 * p[j] as u64 + carry;
            t[i + j] = s as u32;
            carry = s >> 32;
            j += 1;
        }
        i += 1;
    }
    x
}

/// 2^k mod p, by doubling.
pub const fn power_of_two<const N: usize>(p: &[u32; N], k: u32) -> [u32; N] {
    let mut x = [0; N];
    x[0] = 1;
    let mut i = 0;
    while i < k {
        let carry = x[N - 1] >> 31;
        x = double_wrapping(&x);
        if carry == 1 || at_least(&x, p) {
            x = sub_wrapping(&x, p);
        }
        i += 1;
    }
    x
}

/// a - 1 for odd a.
pub const fn minus_one<const N: usize>(a: &[u32; N]) -> [u32; N] {
    let mut z = *a;
    z[0] -= 1;
    z
}

/// a >> k, k < 32 N.
pub const fn shift_right<const N: usize>(a: &[u32; N], k: u32) -> [u32; N] {
    let (words, bits) = ((k / 32) as usize, k % 32);
    let mut z = [0; N];
    let mut i = 0;
    while i + words < N {
        let low = a[i + words] >> bits;
        let high = if bits > 0 && i + words + 1 < N {
            a[i + words + 1] << (32 - bits)
        } else {
            0
        };
        z[i] = low | high;
        i += 1;
    }
    z
}

/// ⌊a / k⌋.
pub const fn divide_small<const N: usize>(a: &[u32; N], k: u32) -> [u32; N] {
    let mut z = [0; N];
    let mut rest = 0u64;
    let mut i = N;
    while i > 0 {
        i -= 1;
        let t = rest << 32 | a[i] as u64;
        z[i] = (t / k as u64) as u32;
        rest = t % k as u64;
    }
    z
}

/// Largest s with 2^s dividing p - 1.
pub const fn two_adicity<const N: usize>(p: &[u32; N]) -> u32 {
    let m = minus_one(p);
    let mut i = 0;
    while i < N {
        if m[i] != 0 {
            return 32 * i as u32 + m[i].trailing_zeros();
        }
        i += 1;
    }
    0
}

/// ab / R mod p, canonical, for a, b < p: the definition that constants are computed with.
pub const fn mul_mont<const N: usize>(p: &[u32; N], a: &[u32; N], b: &[u32; N]) -> [u32; N] {
    let inv = negated_inverse(p[0]);
    let mut t = [0u32; N];
    let mut top = 0u64;
    let mut i = 0;
    while i < N {
        let mut carry = 0u64;
        let mut j = 0;
        while j < N {
            let s = t[j] as u64 + a[j] as u64 * b[i] as u64 + carry;
            t[j] = s as u32;
            carry = s >> 32;
            j += 1;
        }
        top += carry;
        let m = t[0].wrapping_mul(inv);
        carry = (t[0] as u64 + m as u64 * p[0] as u64) >> 32;
        j = 1;
        while j < N {
            let s = t[j] as u64 + m as u64 * p[j] as u64 + carry;
            t[j - 1] = s as u32;
            carry = s >> 32;
            j += 1;
        }
        top += carry;
        t[N - 1] = top as u32;
        top >>= 32;
        i += 1;
    }
    if top != 0 || at_least(&t, p) {
        sub_wrapping(&t, p)
    } else {
        t
    }
}

/// k R mod p for a small k.
pub const fn small_to_mont<const N: usize>(p: &[u32; N], k: u32) -> [u32; N] {
    let mut x = [0; N];
    x[0] = k;
    mul_mont(p, &x, &power_of_two(p, 64 * N as u32))
}

/// base^e in Montgomery form, for a base in Montgomery form.
pub const fn pow_mont<const N: usize>(p: &[u32; N], base: &[u32; N], e: &[u32; N]) -> [u32; N] {
    let mut x = power_of_two(p, 32 * N as u32);
    let mut i = 32 * N;
    while i > 0 {
        i -= 1;
        x = mul_mont(p, &x, &x);
        if (e[i / 32] >> (i % 32)) & 1 == 1 {
            x = mul_mont(p, &x, base);
        }
    }
    x
}
