//! Verification of one proof, and of many at once by a random linear combination.
//!
//! A proof (A, B, C) for the inputs x is valid when
//! e(A, B) · e(Σ x_i·ic_i, −γ) · e(C, −δ) = e(α, β), with x_0 = 1.

use std::iter;

use blstrs::{Bls12, G1Affine, G1Projective, G2Prepared, Gt, Scalar};
use ff::Field;
use group::Curve;
use pairing::{Engine, MillerLoopResult, MultiMillerLoop};
use rand_core::RngCore;
use rayon::prelude::*;
use thiserror::Error;

use crate::{Proof, VerifyingKey, msm};

/// Why proofs could not be checked. A proof that is checked and wrong is no error but `false`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyError {
    /// The number of public inputs is not that of the circuit.
    #[error("the circuit has {expected} public inputs, found {found}")]
    InputCount {
        /// The inputs that the key has, without the constant one.
        expected: usize,
        /// The inputs that were given.
        found: usize,
    },
    /// A batch has as many input vectors as proofs.
    #[error("{expected} proofs, but {found} vectors of public inputs")]
    BatchLength {
        /// The number of proofs.
        expected: usize,
        /// The number of input vectors.
        found: usize,
    },
    /// A batch without proofs says nothing.
    #[error("no proofs to verify")]
    EmptyBatch,
}

/// A verifying key with everything computed that does not depend on the proof.
#[derive(Clone, Debug)]
pub struct PreparedVerifyingKey {
    alpha_beta: Gt,
    minus_gamma: G2Prepared,
    minus_delta: G2Prepared,
    ic: Vec<G1Affine>,
}

impl PreparedVerifyingKey {
    /// Prepares a key: one pairing and the line functions of two points.
    pub fn new(vk: &VerifyingKey) -> Self {
        Self {
            alpha_beta: Bls12::pairing(&vk.alpha_g1, &vk.beta_g2),
            minus_gamma: (-vk.gamma_g2).into(),
            minus_delta: (-vk.delta_g2).into(),
            ic: vk.ic.clone(),
        }
    }

    /// The number of public inputs, without the constant one.
    pub fn public_inputs(&self) -> usize {
        self.ic.len().saturating_sub(1)
    }

    /// Checks one proof; `public_inputs` does not hold the constant one.
    ///
    /// # Errors
    /// When the number of public inputs is not that of the circuit.
    pub fn verify(&self, proof: &Proof, public_inputs: &[Scalar]) -> Result<bool, VerifyError> {
        self.check_inputs(public_inputs)?;
        let scalars: Vec<Scalar> = iter::once(Scalar::ONE)
            .chain(public_inputs.iter().copied())
            .collect();
        let inputs = msm::few(&self.ic, &scalars, msm::g1).to_affine();
        let b = G2Prepared::from(proof.b);
        let product = Bls12::multi_miller_loop(&[
            (&proof.a, &b),
            (&inputs, &self.minus_gamma),
            (&proof.c, &self.minus_delta),
        ]);
        Ok(product.final_exponentiation() == self.alpha_beta)
    }

    /// Checks that all proofs are valid: the equations, each times a random factor of 128 bits, are
    /// multiplied and checked as one. A batch with a wrong proof passes with probability 2^-128 if
    /// `rng` is unpredictable to whoever made the proofs.
    ///
    /// # Errors
    /// When the batch is empty, the numbers of proofs and input vectors differ, or a vector's length
    /// is not that of the circuit.
    pub fn verify_batch<R: RngCore>(
        &self,
        rng: &mut R,
        proofs: &[Proof],
        public_inputs: &[Vec<Scalar>],
    ) -> Result<bool, VerifyError> {
        if proofs.len() != public_inputs.len() {
            return Err(VerifyError::BatchLength {
                expected: proofs.len(),
                found: public_inputs.len(),
            });
        }
        public_inputs
            .iter()
            .try_for_each(|inputs| self.check_inputs(inputs))?;
        match proofs {
            [] => Err(VerifyError::EmptyBatch),
            [proof] => self.verify(proof, &public_inputs[0]),
            _ => {
                let factors: Vec<Scalar> = proofs.iter().map(|_| random_factor(rng)).collect();
                Ok(self.combined_equation_holds(&factors, proofs, public_inputs))
            }
        }
    }

    /// The product of all equations, each to the power of its factor.
    fn combined_equation_holds(
        &self,
        factors: &[Scalar],
        proofs: &[Proof],
        public_inputs: &[Vec<Scalar>],
    ) -> bool {
        let sum: Scalar = factors.iter().sum();
        let inputs = msm::g1(&self.ic, &combined_inputs(sum, factors, public_inputs)).to_affine();
        let c_points: Vec<G1Affine> = proofs.iter().map(|proof| proof.c).collect();
        let c = msm::g1(&c_points, factors).to_affine();
        let mut product =
            Bls12::multi_miller_loop(&[(&inputs, &self.minus_gamma), (&c, &self.minus_delta)]);
        let pairs: Vec<_> = proofs
            .par_iter()
            .zip(factors)
            .map(|(proof, factor)| {
                let a = (G1Projective::from(proof.a) * factor).to_affine();
                Bls12::multi_miller_loop(&[(&a, &G2Prepared::from(proof.b))])
            })
            .collect();
        pairs.into_iter().for_each(|pair| product += pair);
        product.final_exponentiation() == self.alpha_beta * sum
    }

    /// Refuses a vector of public inputs of the wrong length.
    fn check_inputs(&self, public_inputs: &[Scalar]) -> Result<(), VerifyError> {
        let (expected, found) = (self.public_inputs(), public_inputs.len());
        if expected == found && !self.ic.is_empty() {
            Ok(())
        } else {
            Err(VerifyError::InputCount { expected, found })
        }
    }
}

/// Σ_j z_j·x_j,i for all i, with x_j,0 = 1.
fn combined_inputs(sum: Scalar, factors: &[Scalar], public_inputs: &[Vec<Scalar>]) -> Vec<Scalar> {
    let count = public_inputs.first().map_or(0, Vec::len);
    iter::once(sum)
        .chain((0..count).map(|i| {
            factors
                .iter()
                .zip(public_inputs)
                .map(|(factor, inputs)| factor * inputs[i])
                .sum()
        }))
        .collect()
}

/// A random factor of 128 bits.
fn random_factor<R: RngCore>(rng: &mut R) -> Scalar {
    let two_to_64 = Scalar::from(u64::MAX) + Scalar::ONE;
    Scalar::from(rng.next_u64()) * two_to_64 + Scalar::from(rng.next_u64())
}
