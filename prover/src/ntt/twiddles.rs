//! The constants of the butterflies.
//!
//! Evaluating at the roots of xⁿ − γⁿ splits the polynomial again and again: modulo x^m − c² it
//! splits into the residues modulo x^(m/2) − c and x^(m/2) + c. At level ℓ there are 2^ℓ residues
//! and residue k has c = γ^(n / 2^(ℓ+1)) · ω^rev(k), where rev reverses log2 − 1 bits. So one
//! constant serves a whole block of butterflies, one table serves all levels (level ℓ uses its
//! first 2^ℓ entries), and a coset costs one more multiplication for each block.

use super::Points;
use cuzk_circuit::Scalar;
use ff::{Field, PrimeField};
use rayon::prelude::*;

/// ω^rev(k) for k < n/2, and the coset's factors γ^(n / 2^(ℓ+1)) with their inverses.
#[derive(Debug)]
pub(super) struct Twiddles {
    table: Vec<Scalar>,
    coset: Vec<Scalar>,
    coset_inverse: Vec<Scalar>,
}

impl Twiddles {
    pub(super) fn new(log2: u32, root: Scalar) -> Self {
        Self {
            table: table(log2, root),
            coset: level_factors(log2, Scalar::MULTIPLICATIVE_GENERATOR),
            coset_inverse: level_factors(
                log2,
                Scalar::MULTIPLICATIVE_GENERATOR
                    .invert()
                    .unwrap_or(Scalar::ONE),
            ),
        }
    }

    pub(super) fn forward(&self, points: Points) -> Forward<'_> {
        Forward {
            table: &self.table,
            factors: (points == Points::Coset).then_some(&self.coset),
        }
    }

    pub(super) fn inverse(&self, points: Points) -> Inverse<'_> {
        Inverse {
            table: &self.table,
            factors: (points == Points::Coset).then_some(&self.coset_inverse),
        }
    }
}

/// Entry 2^m + j is entry j times ω^(n / 2^(m+2)): bit m of k is bit log2 − 2 − m of rev(k).
fn table(log2: u32, root: Scalar) -> Vec<Scalar> {
    let mut steps: Vec<Scalar> = std::iter::successors(Some(root), |step| Some(step.square()))
        .take(log2.saturating_sub(1) as usize)
        .collect();
    steps.reverse();
    let mut table = vec![Scalar::ONE; 1 << log2.saturating_sub(1)];
    for (m, step) in steps.iter().enumerate() {
        let (known, next) = table.split_at_mut(1 << m);
        next[..1 << m]
            .par_iter_mut()
            .with_min_len(1 << 10)
            .zip(known)
            .for_each(|(next, known)| *next = *known * step);
    }
    table
}

/// γ^(2^(log2 − 1 − ℓ)) for each level ℓ.
fn level_factors(log2: u32, gamma: Scalar) -> Vec<Scalar> {
    let mut factors: Vec<Scalar> = std::iter::successors(Some(gamma), |f| Some(f.square()))
        .take(log2 as usize)
        .collect();
    factors.reverse();
    factors
}

/// Constants of (x, y) → (x + c·y, x − c·y).
pub(super) struct Forward<'a> {
    table: &'a [Scalar],
    factors: Option<&'a Vec<Scalar>>,
}

impl Forward<'_> {
    /// c for block `k` of `level`; `None` stands for 1.
    #[inline(always)]
    pub(super) fn constant(&self, level: usize, k: usize) -> Option<Scalar> {
        match self.factors {
            Some(factors) => Some(factors[level] * self.table[k]),
            None if k == 0 => None,
            None => Some(self.table[k]),
        }
    }
}

/// Constants of (x, y) → (x + y, (x − y) / c), computed as (y − x) · (−1/c).
pub(super) struct Inverse<'a> {
    table: &'a [Scalar],
    factors: Option<&'a Vec<Scalar>>,
}

impl Inverse<'_> {
    /// −1/c for block `k` of `level`; `None` stands for c = 1. As 1/ω^e = −ω^(n/2 − e), it stands
    /// in the same table: negating e flips those bits of k that lie below its highest one.
    #[inline(always)]
    pub(super) fn negated_constant(&self, level: usize, k: usize) -> Option<Scalar> {
        let Some(highest) = k.checked_ilog2() else {
            return self.factors.map(|factors| -factors[level]);
        };
        let constant = self.table[k ^ ((1 << highest) - 1)];
        match self.factors {
            Some(factors) => Some(factors[level] * constant),
            None => Some(constant),
        }
    }
}
