//! The parts of the parameters in the order of the file, computed block by block.

use super::{
    SetupError,
    fixed_base::FixedBase,
    qap::{Evaluations, Polynomials},
    waste::{Secret, ToxicWaste},
};
use crate::{
    Points, VerifyingKey,
    msm::curve::{G1, G2},
};
use blstrs::{G1Affine, G2Affine};
use cuzk_circuit::Scalar;
use ff::Field;
use group::Curve as _;
use rayon::prelude::*;
use std::io;

/// Points that are computed together before they leave: 25 MB in G1.
const BLOCK: usize = 1 << 18;

/// How far generation has come. A G2 point counts as three points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Points made.
    pub done: u64,
    /// Points to be made.
    pub total: u64,
}

/// A point of G2 takes about as long as this many of G1.
const G2_WEIGHT: u64 = 3;

/// A part of the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    H,
    L,
    A,
    B,
}

/// Takes the parts in order: h, l, a, b in G1, b in G2, each announced with its count.
pub(super) trait Sink {
    fn begin(&mut self, part: Part, count: usize) -> io::Result<()>;
    fn g1(&mut self, points: Vec<G1Affine>) -> io::Result<()>;
    fn g2(&mut self, points: Vec<G2Affine>) -> io::Result<()>;
}

/// Keeps the points.
#[derive(Default)]
pub(super) struct Memory {
    points: Points,
    part: Option<Part>,
}

impl Memory {
    pub(super) fn points(self) -> Points {
        self.points
    }
}

impl Sink for Memory {
    fn begin(&mut self, part: Part, _: usize) -> io::Result<()> {
        self.part = Some(part);
        Ok(())
    }

    fn g1(&mut self, points: Vec<G1Affine>) -> io::Result<()> {
        let section = match self.part {
            Some(Part::H) | None => &mut self.points.h,
            Some(Part::L) => &mut self.points.l,
            Some(Part::A) => &mut self.points.a,
            Some(Part::B) => &mut self.points.b_g1,
        };
        section.extend(points);
        Ok(())
    }

    fn g2(&mut self, points: Vec<G2Affine>) -> io::Result<()> {
        self.points.b_g2.extend(points);
        Ok(())
    }
}

/// Everything that is needed to compute any block of any part.
pub(super) struct Sections<'a> {
    waste: &'a ToxicWaste,
    evaluations: &'a Evaluations,
    g1: FixedBase<G1>,
    g2: FixedBase<G2>,
    /// 1/δ.
    delta_inverse: Scalar,
    key: VerifyingKey,
    counts: Counts,
}

#[derive(Clone, Copy)]
struct Counts {
    h: usize,
    l: usize,
    a: usize,
    b: usize,
}

impl Counts {
    fn new(evaluations: &Evaluations) -> Self {
        let (inputs, aux) = (&evaluations.inputs, &evaluations.aux);
        Self {
            h: (1usize << evaluations.domain_log2) - 1,
            l: aux.u.len(),
            a: nonzero(&inputs.u) + nonzero(&aux.u),
            b: nonzero(&inputs.v) + nonzero(&aux.v),
        }
    }

    fn g1(&self) -> usize {
        self.h + self.l + self.a + self.b
    }
}

fn nonzero(values: &[Scalar]) -> usize {
    values
        .par_iter()
        .filter(|value| !value.is_zero_vartime())
        .count()
}

impl<'a> Sections<'a> {
    /// Builds the tables and the key.
    pub(super) fn new(
        waste: &'a ToxicWaste,
        evaluations: &'a Evaluations,
    ) -> Result<Self, SetupError> {
        let delta_inverse = inverse("delta", waste.delta)?;
        let gamma_inverse = inverse("gamma", waste.gamma)?;
        let counts = Counts::new(evaluations);
        let g1 = FixedBase::new(&waste.g1, counts.g1());
        let g2 = FixedBase::new(&waste.g2, counts.b);
        let inputs = &evaluations.inputs;
        let extended = extended(waste, inputs, 0..inputs.u.len(), gamma_inverse);
        let key = VerifyingKey {
            alpha_g1: (waste.g1 * waste.alpha).to_affine(),
            beta_g1: (waste.g1 * waste.beta).to_affine(),
            beta_g2: (waste.g2 * waste.beta).to_affine(),
            gamma_g2: (waste.g2 * waste.gamma).to_affine(),
            delta_g1: (waste.g1 * waste.delta).to_affine(),
            delta_g2: (waste.g2 * waste.delta).to_affine(),
            ic: g1.multiply(&extended),
        };
        let sections = Self {
            waste,
            evaluations,
            g1,
            g2,
            delta_inverse,
            key,
            counts,
        };
        sections.check_constrained()?;
        Ok(sections)
    }

    pub(super) fn verifying_key(&self) -> VerifyingKey {
        self.key.clone()
    }

    /// Computes all parts, in order.
    pub(super) fn emit(
        &self,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(Progress),
    ) -> io::Result<()> {
        let counts = self.counts;
        let mut done = 0;
        let total = counts.g1() as u64 + G2_WEIGHT * counts.b as u64;
        let mut report = |points: u64| {
            done += points;
            progress(Progress { done, total });
        };

        sink.begin(Part::H, counts.h)?;
        for start in (0..counts.h).step_by(BLOCK) {
            let scalars = self.h(start, BLOCK.min(counts.h - start));
            self.emit_g1(&scalars, sink, &mut report)?;
        }
        sink.begin(Part::L, counts.l)?;
        for start in (0..counts.l).step_by(BLOCK) {
            let scalars = self.l(start..(start + BLOCK).min(counts.l));
            self.emit_g1(&scalars, sink, &mut report)?;
        }
        let (inputs, aux) = (&self.evaluations.inputs, &self.evaluations.aux);
        sink.begin(Part::A, counts.a)?;
        for block in blocks(&inputs.u, &aux.u) {
            self.emit_g1(&without_zeros(block), sink, &mut report)?;
        }
        sink.begin(Part::B, counts.b)?;
        for block in blocks(&inputs.v, &aux.v) {
            self.emit_g1(&without_zeros(block), sink, &mut report)?;
        }
        sink.begin(Part::B, counts.b)?;
        for block in blocks(&inputs.v, &aux.v) {
            let points = self.g2.multiply(&without_zeros(block));
            let weight = G2_WEIGHT * points.len() as u64;
            sink.g2(points)?;
            report(weight);
        }
        Ok(())
    }

    fn emit_g1(
        &self,
        scalars: &Secret,
        sink: &mut dyn Sink,
        report: &mut dyn FnMut(u64),
    ) -> io::Result<()> {
        sink.g1(self.g1.multiply(scalars))?;
        report(scalars.len() as u64);
        Ok(())
    }

    /// τ^i · (τⁿ − 1) / δ for `count` values of i from `start` on.
    fn h(&self, start: usize, count: usize) -> Secret {
        const RUN: usize = 1 << 10;
        let tau = self.waste.tau;
        let vanishing = tau.pow_vartime([1 << self.evaluations.domain_log2]) - Scalar::ONE;
        let scale = vanishing * self.delta_inverse;
        let mut values = Secret(vec![Scalar::ZERO; count]);
        values
            .0
            .par_chunks_mut(RUN)
            .enumerate()
            .for_each(|(k, values)| {
                let mut power = tau.pow_vartime([(start + k * RUN) as u64]) * scale;
                for value in values {
                    *value = power;
                    power *= tau;
                }
            });
        values
    }

    /// (β·uᵢ + α·vᵢ + wᵢ) / δ for private variables.
    fn l(&self, range: std::ops::Range<usize>) -> Secret {
        extended(self.waste, &self.evaluations.aux, range, self.delta_inverse)
    }

    /// l must be dense: a private variable whose value does not matter is refused.
    fn check_constrained(&self) -> Result<(), SetupError> {
        let Polynomials { u, v, w } = &self.evaluations.aux;
        let unconstrained = u
            .par_iter()
            .zip(v.par_iter())
            .zip(w.par_iter())
            .position_first(|((u, v), w)| {
                (self.waste.beta * u + self.waste.alpha * v + w).is_zero_vartime()
            });
        match unconstrained {
            None => Ok(()),
            Some(index) => Err(SetupError::Unconstrained { index }),
        }
    }
}

/// (β·uᵢ + α·vᵢ + wᵢ) · `scale`.
fn extended(
    waste: &ToxicWaste,
    polynomials: &Polynomials,
    range: std::ops::Range<usize>,
    scale: Scalar,
) -> Secret {
    let Polynomials { u, v, w } = polynomials;
    let (alpha, beta) = (waste.alpha * scale, waste.beta * scale);
    Secret(
        range
            .into_par_iter()
            .map(|i| beta * u[i] + alpha * v[i] + scale * w[i])
            .collect(),
    )
}

fn inverse(secret: &'static str, value: Scalar) -> Result<Scalar, SetupError> {
    Option::from(value.invert()).ok_or(SetupError::Waste {
        secret,
        value: "zero",
    })
}

/// The inputs' values, then the private variables', in blocks.
fn blocks<'a>(inputs: &'a [Scalar], aux: &'a [Scalar]) -> impl Iterator<Item = &'a [Scalar]> {
    inputs.chunks(BLOCK).chain(aux.chunks(BLOCK))
}

/// The values of the polynomials that do not vanish at τ.
fn without_zeros(values: &[Scalar]) -> Secret {
    Secret(
        values
            .iter()
            .filter(|value| !value.is_zero_vartime())
            .copied()
            .collect(),
    )
}
