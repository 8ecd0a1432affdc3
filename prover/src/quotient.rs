//! The quotient polynomial h = (A·B − C) / Z of a satisfied system, with six transforms and no C.
//!
//! # The identity
//!
//! Let A, B, C be the polynomials of degree below n that take the values aᵢ, bᵢ, cᵢ on the n-th
//! roots of unity, Z = xⁿ − 1, and P = A·B = Σ pᵢ·xⁱ with i ≤ 2n − 2. If the system is satisfied,
//! P − C vanishes on all roots, so P = h·Z + C. As C has degree below n, h·Z + C is the division
//! of P by xⁿ − 1 with remainder:
//!
//! - hᵢ = p_(i+n), the upper half of P, for i < n − 1 (h has degree at most n − 2), and
//! - Cᵢ = pᵢ + p_(i+n), P modulo xⁿ − 1: the polynomial with the values aᵢ·bᵢ on the roots.
//!
//! On a coset γ·⟨ω⟩ with s = γⁿ, where xⁿ = s, the product A·B agrees with D = P modulo xⁿ − s,
//! so Dᵢ = pᵢ + s·p_(i+n). Subtracting gives Cᵢ − Dᵢ = (1 − s)·p_(i+n), hence
//!
//! **hᵢ = (Cᵢ − Dᵢ) / (1 − s).**
//!
//! Any γ with s ≠ 1 serves. Here γ = 7, the generator whose coset [`Domain`] knows; the constant
//! 1 − s costs no more than the 2 of s = −1.
//!
//! # The transforms
//!
//! A and B are interpolated and evaluated on the coset (4), the products aᵢ·bᵢ on the roots and on
//! the coset are interpolated (2). bellperson needs 7, and the values cᵢ. For a system that is not
//! satisfied the result is the upper half of P all the same, and the proof does not verify.
//!
//! All evaluations are kept in bit-reversed order; the only permutations are those of a and b at
//! the start.

use crate::ntt::{Domain, NttError, Points};
use cuzk_circuit::Scalar;
use ff::{Field, PrimeField};
use rayon::prelude::*;

/// Scalars that one task of the pointwise loops takes at least.
const TASK: usize = 1 << 10;

/// The coefficients of h from the values of A and B on the domain; see [`quotient_into`].
///
/// # Errors
/// [`NttError::Length`] when `a` or `b` has more values than the domain has points.
pub fn quotient(
    domain: &Domain,
    a: &mut Vec<Scalar>,
    b: &mut Vec<Scalar>,
) -> Result<Vec<Scalar>, NttError> {
    let mut h = Vec::new();
    quotient_into(domain, a, b, &mut h)?;
    Ok(h)
}

/// Writes the n coefficients of h into `h`, lowest first. The last one, of degree n − 1, is zero,
/// so n − 1 of them meet the n − 1 points of the parameters' `h` section.
///
/// `a` and `b` hold the values on the points ωⁱ in natural order, one a row, and are padded with
/// zeros. Both are used as workspace and left with n elements of no meaning; `h` may have any
/// content and is overwritten. With buffers of capacity n nothing is allocated.
///
/// # Errors
/// [`NttError::Length`] when `a` or `b` has more values than the domain has points; nothing is
/// changed then.
pub fn quotient_into(
    domain: &Domain,
    a: &mut Vec<Scalar>,
    b: &mut Vec<Scalar>,
    h: &mut Vec<Scalar>,
) -> Result<(), NttError> {
    let n = domain.len();
    for values in [&*a, &*b] {
        if values.len() > n {
            return Err(NttError::Length {
                expected: n,
                found: values.len(),
            });
        }
    }
    for values in [&mut *a, &mut *b, &mut *h] {
        values.resize(n, Scalar::ZERO);
    }
    // Rotating the three buffers: h takes a's values, a takes b's, b takes the products.
    domain.bit_reverse(a, h)?;
    domain.bit_reverse(b, a)?;
    products(h, a, b);
    let (coset_a, coset_b, on_roots) = (h, a, b);
    for values in [&mut *coset_a, &mut *coset_b] {
        domain.interpolate_reversed(values, Points::Subgroup)?;
        domain.evaluate_reversed(values, Points::Coset)?;
    }
    domain.interpolate_reversed(on_roots, Points::Subgroup)?;
    multiply(coset_a, coset_b);
    domain.interpolate_reversed(coset_a, Points::Coset)?;
    combine(domain, on_roots, coset_a);
    Ok(())
}

/// `to = x · y`, element by element.
fn products(x: &[Scalar], y: &[Scalar], to: &mut [Scalar]) {
    to.par_iter_mut()
        .with_min_len(TASK)
        .zip(x)
        .zip(y)
        .for_each(|((to, x), y)| *to = x * y);
}

/// `x = x · y`, element by element.
fn multiply(x: &mut [Scalar], y: &[Scalar]) {
    x.par_iter_mut()
        .with_min_len(TASK)
        .zip(y)
        .for_each(|(x, y)| *x *= y);
}

/// hᵢ from n·Cᵢ and n³·Dᵢ, in the place of the latter: interpolation left a factor n in each of A,
/// B, C and D.
fn combine(domain: &Domain, on_roots: &[Scalar], on_coset: &mut [Scalar]) {
    let inverse = domain.len_inverse();
    let shift = Scalar::MULTIPLICATIVE_GENERATOR.pow_vartime([domain.len() as u64]);
    let scale = (Scalar::ONE - shift).invert().unwrap_or(Scalar::ZERO) * inverse;
    let coset_scale = scale * inverse.square();
    on_coset
        .par_iter_mut()
        .with_min_len(TASK)
        .zip(on_roots)
        .for_each(|(d, c)| *d = *c * scale - *d * coset_scale);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::{RngCore, SeedableRng};

    /// Coefficients of the polynomial with these values on the roots, by the inverse of the
    /// Vandermonde matrix.
    fn interpolate(domain: &Domain, values: &[Scalar]) -> Vec<Scalar> {
        let n = domain.len();
        let inverse_root = domain.root().invert().unwrap();
        (0..n)
            .map(|i| {
                let step = inverse_root.pow_vartime([i as u64]);
                let mut power = Scalar::ONE;
                let mut sum = Scalar::ZERO;
                for j in 0..n {
                    sum += values.get(j).copied().unwrap_or(Scalar::ZERO) * power;
                    power *= step;
                }
                sum * domain.len_inverse()
            })
            .collect()
    }

    /// Schoolbook (A·B − C) / (xⁿ − 1), with C given; panics on a remainder.
    fn naive(domain: &Domain, a: &[Scalar], b: &[Scalar], c: &[Scalar]) -> Vec<Scalar> {
        let n = domain.len();
        let [a, b, c] = [a, b, c].map(|values| interpolate(domain, values));
        let mut rest = vec![Scalar::ZERO; 2 * n];
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                rest[i + j] += x * y;
            }
        }
        rest.iter_mut().zip(&c).for_each(|(rest, c)| *rest -= c);
        let mut h = vec![Scalar::ZERO; n];
        for i in (0..n).rev() {
            h[i] = rest[i + n];
            let coefficient = rest[i + n];
            rest[i] += coefficient;
        }
        assert!(rest[..n].iter().all(|x| *x == Scalar::ZERO));
        h
    }

    #[test]
    fn it_equals_the_schoolbook_division_for_satisfied_systems() {
        for seed in 0..40u64 {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let log2 = (seed % 8) as u32;
            let domain = Domain::new(log2).unwrap();
            let rows = match seed / 8 {
                0 => domain.len(),
                _ => rng.next_u32() as usize % domain.len() + 1,
            };
            let mut values = || {
                (0..rows)
                    .map(|_| match rng.next_u32() % 3 {
                        0 => Scalar::ZERO,
                        1 => Scalar::ONE,
                        _ => Scalar::random(&mut rng),
                    })
                    .collect::<Vec<_>>()
            };
            let (mut a, mut b) = (values(), values());
            let c: Vec<Scalar> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
            let expected = naive(&domain, &a, &b, &c);
            let h = quotient(&domain, &mut a, &mut b).unwrap();
            assert_eq!(h, expected, "seed {seed}");
            assert_eq!(h.last(), Some(&Scalar::ZERO), "seed {seed}");
        }
    }

    #[test]
    fn used_buffers_give_the_same_result_as_new_ones() {
        let mut rng = ChaCha20Rng::seed_from_u64(99);
        let domain = Domain::new(6).unwrap();
        let (mut used_a, mut used_b, mut used_h) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..3 {
            let rows = rng.next_u32() as usize % 64 + 1;
            let mut a: Vec<_> = (0..rows).map(|_| Scalar::random(&mut rng)).collect();
            let mut b: Vec<_> = (0..rows).map(|_| Scalar::random(&mut rng)).collect();
            used_a.clear();
            used_a.extend_from_slice(&a);
            used_b.clear();
            used_b.extend_from_slice(&b);
            quotient_into(&domain, &mut used_a, &mut used_b, &mut used_h).unwrap();
            assert_eq!(quotient(&domain, &mut a, &mut b).unwrap(), used_h);
        }
    }

    #[test]
    fn more_rows_than_points_are_refused() {
        let domain = Domain::new(2).unwrap();
        let mut a = vec![Scalar::ONE; 5];
        let mut b = vec![Scalar::ONE; 4];
        assert_eq!(
            quotient(&domain, &mut a, &mut b),
            Err(NttError::Length {
                expected: 4,
                found: 5
            })
        );
    }
}
