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
    BG1,
    BG2,
}

impl Part {
    /// How much a point of the part counts.
    pub(super) fn weight(self) -> u64 {
        match self {
            Part::BG2 => G2_WEIGHT,
            _ => 1,
        }
    }
}

/// Why parts were not computed or not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum EmitError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Sink(#[from] io::Error),
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
            Some(Part::BG1 | Part::BG2) => &mut self.points.b_g1,
        };
        section.extend(points);
        Ok(())
    }

    fn g2(&mut self, points: Vec<G2Affine>) -> io::Result<()> {
        self.points.b_g2.extend(points);
        Ok(())
    }
}

/// Multiplies a generator of either group by many scalars.
pub(super) trait Multiples {
    /// Scalars that it takes at once.
    fn block(&self) -> usize;
    /// The multiples of the generator of G1.
    fn g1(&mut self, scalars: &Secret) -> Result<Vec<G1Affine>, SetupError>;
    /// The multiples of the generator of G2.
    fn g2(&mut self, scalars: &Secret) -> Result<Vec<G2Affine>, SetupError>;
}

/// Tables on the host.
pub(super) struct Host {
    g1: FixedBase<G1>,
    g2: FixedBase<G2>,
}

impl Host {
    pub(super) fn new(sections: &Sections<'_>) -> Self {
        let (waste, counts) = (sections.waste, sections.counts);
        Self {
            g1: FixedBase::new(&waste.g1, counts.g1()),
            g2: FixedBase::new(&waste.g2, counts.b),
        }
    }
}

impl Multiples for Host {
    fn block(&self) -> usize {
        BLOCK
    }

    fn g1(&mut self, scalars: &Secret) -> Result<Vec<G1Affine>, SetupError> {
        Ok(self.g1.multiply(scalars))
    }

    fn g2(&mut self, scalars: &Secret) -> Result<Vec<G2Affine>, SetupError> {
        Ok(self.g2.multiply(scalars))
    }
}

/// The scalars of all parts: what the points are multiples by.
pub(super) struct Sections<'a> {
    waste: &'a ToxicWaste,
    evaluations: &'a Evaluations,
    /// 1/δ.
    delta_inverse: Scalar,
    /// 1/γ.
    gamma_inverse: Scalar,
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
    /// Checks the secrets and the circuit.
    pub(super) fn new(
        waste: &'a ToxicWaste,
        evaluations: &'a Evaluations,
    ) -> Result<Self, SetupError> {
        let sections = Self {
            waste,
            evaluations,
            delta_inverse: inverse("delta", waste.delta)?,
            gamma_inverse: inverse("gamma", waste.gamma)?,
            counts: Counts::new(evaluations),
        };
        sections.check_constrained()?;
        Ok(sections)
    }

    pub(super) fn counts(&self) -> crate::Counts {
        let counts = self.counts;
        crate::Counts {
            inputs: self.evaluations.inputs.u.len(),
            h: counts.h,
            l: counts.l,
            a: counts.a,
            b: counts.b,
        }
    }

    pub(super) fn verifying_key(&self) -> VerifyingKey {
        let (waste, inputs) = (self.waste, &self.evaluations.inputs);
        let extended = extended(waste, inputs, 0..inputs.u.len(), self.gamma_inverse);
        let ic = FixedBase::<G1>::new(&waste.g1, extended.len()).multiply(&extended);
        VerifyingKey {
            alpha_g1: (waste.g1 * waste.alpha).to_affine(),
            beta_g1: (waste.g1 * waste.beta).to_affine(),
            beta_g2: (waste.g2 * waste.beta).to_affine(),
            gamma_g2: (waste.g2 * waste.gamma).to_affine(),
            delta_g1: (waste.g1 * waste.delta).to_affine(),
            delta_g2: (waste.g2 * waste.delta).to_affine(),
            ic,
        }
    }

    /// The points of a and b that belong to inputs; the other parts stay empty.
    pub(super) fn input_points(&self) -> Points {
        let inputs = &self.evaluations.inputs;
        let (a, b) = (without_zeros(&inputs.u), without_zeros(&inputs.v));
        let g1 = FixedBase::<G1>::new(&self.waste.g1, a.len() + b.len());
        Points {
            a: g1.multiply(&a),
            b_g1: g1.multiply(&b),
            b_g2: FixedBase::<G2>::new(&self.waste.g2, b.len()).multiply(&b),
            ..Points::default()
        }
    }

    /// Computes all parts, in order.
    pub(super) fn emit(
        &self,
        multiples: &mut dyn Multiples,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), EmitError> {
        let total = self.weight();
        let mut done = 0;
        let block = multiples.block();
        for part in [Part::H, Part::L, Part::A, Part::BG1, Part::BG2] {
            sink.begin(part, self.count(part))?;
            self.scalars(part, block, &mut |scalars| {
                match part {
                    Part::BG2 => sink.g2(multiples.g2(scalars)?)?,
                    _ => sink.g1(multiples.g1(scalars)?)?,
                }
                done += part.weight() * scalars.len() as u64;
                progress(Progress { done, total });
                Ok::<(), EmitError>(())
            })?;
        }
        Ok(())
    }

    /// All points, a point of G2 counted several times.
    pub(super) fn weight(&self) -> u64 {
        self.counts.g1() as u64 + G2_WEIGHT * self.counts.b as u64
    }

    fn count(&self, part: Part) -> usize {
        match part {
            Part::H => self.counts.h,
            Part::L => self.counts.l,
            Part::A => self.counts.a,
            Part::BG1 | Part::BG2 => self.counts.b,
        }
    }

    /// The scalars of a part in order, in blocks of at most `block`.
    pub(super) fn scalars<E>(
        &self,
        part: Part,
        block: usize,
        take: &mut dyn FnMut(&Secret) -> Result<(), E>,
    ) -> Result<(), E> {
        let (inputs, aux) = (&self.evaluations.inputs, &self.evaluations.aux);
        let dense = |inputs: &Secret, aux: &Secret, take: &mut dyn FnMut(&Secret) -> _| {
            let mut blocks = inputs.chunks(block).chain(aux.chunks(block));
            blocks.try_for_each(|values| take(&without_zeros(values)))
        };
        match part {
            Part::H => (0..self.counts.h)
                .step_by(block)
                .try_for_each(|start| take(&self.h(start, block.min(self.counts.h - start)))),
            Part::L => (0..self.counts.l)
                .step_by(block)
                .try_for_each(|start| take(&self.l(start..(start + block).min(self.counts.l)))),
            Part::A => dense(&inputs.u, &aux.u, take),
            Part::BG1 | Part::BG2 => dense(&inputs.v, &aux.v, take),
        }
    }

    /// τ^i · (τⁿ − 1) / δ for `count` values of i from `start` on.
    fn h(&self, start: usize, count: usize) -> Secret {
        const RUN: usize = 1 << 10;
        let tau = self.waste.tau;
        let vanishing = tau.pow_vartime([1 << self.evaluations.domain_log2]) - Scalar::ONE;
        let scale = vanishing * self.delta_inverse;
        let mut values = Secret::zeros(count);
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

/// The values of the polynomials that do not vanish at τ.
fn without_zeros(values: &[Scalar]) -> Secret {
    const RUN: usize = 1 << 14;
    let counts: Vec<usize> = values.par_chunks(RUN).map(nonzero_of_run).collect();
    let mut dense = Secret::zeros(counts.iter().sum());
    let mut rest = &mut dense.0[..];
    let mut runs = Vec::with_capacity(counts.len());
    for (run, count) in values.chunks(RUN).zip(counts) {
        let (own, others) = std::mem::take(&mut rest).split_at_mut(count);
        runs.push((run, own));
        rest = others;
    }
    runs.into_par_iter().for_each(|(run, own)| {
        let nonzero = run.iter().filter(|value| !value.is_zero_vartime());
        own.iter_mut()
            .zip(nonzero)
            .for_each(|(to, from)| *to = *from);
    });
    dense
}

fn nonzero_of_run(values: &[Scalar]) -> usize {
    values
        .iter()
        .filter(|value| !value.is_zero_vartime())
        .count()
}
