//! Free functions under the names that bellperson's users know.
//!
//! They prove on one prover for the whole process, [`Device::Auto`]. Against bellperson's: the curve
//! is fixed, parameters are an `Arc<Params>`, batches may mix circuits of different inputs, every
//! proof is verified before it is returned, and errors say what is wrong. With the same parameters
//! and the same random numbers the proofs are the same, byte for byte.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
};

use bellpepper_core::Circuit;
use blstrs::Scalar;
use cuzk_circuit::{Assignment, synthesize};
use ff::Field;
use rand_core::RngCore;
use rayon::prelude::*;

use crate::{
    Device, Params, PendingProof, PreparedVerifyingKey, Proof, ProveError, Prover, VerifyError,
    VerifyingKey,
    setup::{self, SetupError, ToxicWaste},
};

/// Proofs of a batch that are in the making at the same time: one on the device, one that waits.
const IN_FLIGHT: usize = 2;

/// The prover that the functions of this module share.
fn shared_prover() -> Result<&'static Prover, ProveError> {
    static PROVER: OnceLock<Prover> = OnceLock::new();
    if let Some(prover) = PROVER.get() {
        return Ok(prover);
    }
    let prover = Prover::new(Device::Auto)?;
    Ok(PROVER.get_or_init(|| prover))
}

/// Proves a circuit with the blinding factors `r` and `s`.
///
/// # Errors
/// When synthesis fails, the parameters belong to another circuit, or the proof does not verify.
pub fn create_proof<C: Circuit<Scalar> + Send>(
    circuit: C,
    params: &Arc<Params>,
    r: Scalar,
    s: Scalar,
) -> Result<Proof, ProveError> {
    let assignment = synthesize(circuit)?;
    Ok(shared_prover()?.prove(params, assignment, r, s)?.proof)
}

/// Proves a circuit with blinding factors from `rng`, r first.
///
/// # Errors
/// As [`create_proof`].
pub fn create_random_proof<C: Circuit<Scalar> + Send, R: RngCore>(
    circuit: C,
    params: &Arc<Params>,
    rng: &mut R,
) -> Result<Proof, ProveError> {
    let r = Scalar::random(&mut *rng);
    let s = Scalar::random(&mut *rng);
    create_proof(circuit, params, r, s)
}

/// Proves circuits of the same shape, each with its blinding factors.
///
/// # Errors
/// As [`create_proof`], and when there are not as many values of r and s as circuits.
pub fn create_proof_batch<C: Circuit<Scalar> + Send>(
    circuits: Vec<C>,
    params: &Arc<Params>,
    r: Vec<Scalar>,
    s: Vec<Scalar>,
) -> Result<Vec<Proof>, ProveError> {
    check_batch(circuits.len(), &r, &s)?;
    prove_from_assignments(synthesize_circuits_batch(circuits)?, params, r, s)
}

/// Proves circuits of the same shape with blinding factors from `rng`: first all r, then all s.
///
/// # Errors
/// As [`create_proof`].
pub fn create_random_proof_batch<C: Circuit<Scalar> + Send, R: RngCore>(
    circuits: Vec<C>,
    params: &Arc<Params>,
    rng: &mut R,
) -> Result<Vec<Proof>, ProveError> {
    let mut draw = || {
        circuits
            .iter()
            .map(|_| Scalar::random(&mut *rng))
            .collect::<Vec<_>>()
    };
    let (r, s) = (draw(), draw());
    create_proof_batch(circuits, params, r, s)
}

/// Synthesises circuits side by side: the half of the work that needs no parameters.
///
/// # Errors
/// When a circuit cannot be synthesised.
pub fn synthesize_circuits_batch<C: Circuit<Scalar> + Send>(
    circuits: Vec<C>,
) -> Result<Vec<Assignment>, ProveError> {
    circuits
        .into_par_iter()
        .map(|circuit| Ok(synthesize(circuit)?))
        .collect()
}

/// Proves assignments, each with its blinding factors: the half of the work that needs parameters.
///
/// # Errors
/// As [`create_proof_batch`].
pub fn prove_from_assignments(
    assignments: Vec<Assignment>,
    params: &Arc<Params>,
    r: Vec<Scalar>,
    s: Vec<Scalar>,
) -> Result<Vec<Proof>, ProveError> {
    check_batch(assignments.len(), &r, &s)?;
    let prover = shared_prover()?;
    let mut proofs = Vec::with_capacity(assignments.len());
    let mut pending: VecDeque<PendingProof> = VecDeque::with_capacity(IN_FLIGHT);
    for ((assignment, r), s) in assignments.into_iter().zip(r).zip(s) {
        if pending.len() == IN_FLIGHT
            && let Some(oldest) = pending.pop_front()
        {
            proofs.push(oldest.finish()?.proof);
        }
        pending.push_back(prover.start(params, assignment, r, s)?);
    }
    for rest in pending {
        proofs.push(rest.finish()?.proof);
    }
    Ok(proofs)
}

/// Generates parameters of a circuit from random secrets that are forgotten, for tests and private
/// networks: bellperson's own, byte for byte, with the same `rng`. The circuit is synthesised twice
/// and needs no witness.
///
/// # Errors
/// When synthesis fails or a private variable is unconstrained.
pub fn generate_random_parameters<C: Circuit<Scalar> + Clone, R: RngCore>(
    circuit: C,
    rng: &mut R,
) -> Result<Params, SetupError> {
    setup::generate(circuit, &ToxicWaste::random(rng))
}

/// Prepares a verifying key.
pub fn prepare_verifying_key(vk: &VerifyingKey) -> PreparedVerifyingKey {
    PreparedVerifyingKey::new(vk)
}

/// Checks one proof; `public_inputs` does not hold the constant one.
///
/// # Errors
/// When the number of public inputs is not that of the circuit.
pub fn verify_proof(
    pvk: &PreparedVerifyingKey,
    proof: &Proof,
    public_inputs: &[Scalar],
) -> Result<bool, VerifyError> {
    pvk.verify(proof, public_inputs)
}

/// Checks that all proofs are valid, at the cost of little more than a pairing each.
///
/// # Errors
/// When the batch is empty, or the numbers of proofs and inputs do not fit.
pub fn verify_proofs_batch<R: RngCore>(
    pvk: &PreparedVerifyingKey,
    rng: &mut R,
    proofs: &[Proof],
    public_inputs: &[Vec<Scalar>],
) -> Result<bool, VerifyError> {
    pvk.verify_batch(rng, proofs, public_inputs)
}

/// Refuses batches without exactly one r and one s for each circuit.
fn check_batch(circuits: usize, r: &[Scalar], s: &[Scalar]) -> Result<(), ProveError> {
    for (what, values) in [("r", r), ("s", s)] {
        if values.len() != circuits {
            return Err(ProveError::BatchLength {
                what,
                expected: circuits,
                found: values.len(),
            });
        }
    }
    Ok(())
}
