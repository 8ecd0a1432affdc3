//! The secrets behind parameters.

use super::SetupError;
use blstrs::{G1Projective, G2Projective};
use cuzk_circuit::Scalar;
use ff::Field;
use group::Group;
use rand_core::RngCore;
use rayon::prelude::*;
use std::{fmt, hint::black_box, ops::Deref};

/// Scalars that one task writes.
const RUN: usize = 1 << 16;

/// The secrets that determine a circuit's parameters, with the generators of the two groups.
///
/// They are overwritten when dropped and never printed.
pub struct ToxicWaste {
    /// The generator of G1 that all points are multiples of.
    pub g1: G1Projective,
    /// The generator of G2.
    pub g2: G2Projective,
    /// α.
    pub alpha: Scalar,
    /// β.
    pub beta: Scalar,
    /// γ, not zero.
    pub gamma: Scalar,
    /// δ, not zero.
    pub delta: Scalar,
    /// τ, not a root of unity of the domain's order.
    pub tau: Scalar,
}

impl ToxicWaste {
    /// Random secrets, drawn in the order in which bellperson's `generate_random_parameters` draws
    /// them: equal generators of random numbers give equal parameters.
    pub fn random(mut rng: impl RngCore) -> Self {
        Self {
            g1: G1Projective::random(&mut rng),
            g2: G2Projective::random(&mut rng),
            alpha: Scalar::random(&mut rng),
            beta: Scalar::random(&mut rng),
            gamma: Scalar::random(&mut rng),
            delta: Scalar::random(&mut rng),
            tau: Scalar::random(&mut rng),
        }
    }

    /// Refuses secrets that make points vanish.
    pub(super) fn check(&self) -> Result<(), SetupError> {
        let generators = [
            ("g1", bool::from(self.g1.is_identity())),
            ("g2", bool::from(self.g2.is_identity())),
        ];
        let scalars = [
            ("alpha", self.alpha),
            ("beta", self.beta),
            ("gamma", self.gamma),
            ("delta", self.delta),
        ]
        .map(|(secret, scalar)| (secret, scalar.is_zero_vartime()));
        match generators.into_iter().chain(scalars).find(|(_, bad)| *bad) {
            None => Ok(()),
            Some((secret, _)) => Err(SetupError::Waste {
                secret,
                value: "zero",
            }),
        }
    }
}

impl fmt::Debug for ToxicWaste {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToxicWaste").finish_non_exhaustive()
    }
}

impl Drop for ToxicWaste {
    fn drop(&mut self) {
        for secret in [
            &mut self.alpha,
            &mut self.beta,
            &mut self.gamma,
            &mut self.delta,
            &mut self.tau,
        ] {
            *secret = Scalar::ZERO;
        }
        // Counts as a use of the zeros, so that writing them is not optimised away.
        black_box(&*self);
    }
}

/// Scalars from which the secrets could be computed; overwritten when dropped.
pub(super) struct Secret(pub(super) Vec<Scalar>);

impl Secret {
    /// Zeros in fresh memory, which the threads of the pool touch together.
    pub(super) fn zeros(len: usize) -> Self {
        let zeros = (0..len).into_par_iter().with_min_len(RUN);
        Self(zeros.map(|_| Scalar::ZERO).collect())
    }
}

impl Deref for Secret {
    type Target = [Scalar];

    fn deref(&self) -> &[Scalar] {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0
            .par_chunks_mut(RUN)
            .for_each(|run| run.fill(Scalar::ZERO));
        black_box(self.0.as_slice());
    }
}
