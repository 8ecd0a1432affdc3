//! The prover: checks what it is given, hands it to a back end, verifies what comes back.

use std::{fmt, sync::Arc};

use blstrs::Scalar;
use cuzk_circuit::{Assignment, CompiledCircuit, Shape, Witness};
use ff::Field;
use group::prime::PrimeCurveAffine;
use rand_core::RngCore;
use tracing::{debug, error, info};

use crate::{
    Backend, Device, DeviceError, Params, Proof, ProveError,
    backend::{Cancel, Job, Output, Running},
    cpu::Cpu,
    cuda,
    timeline::{Span, Timeline},
};

/// Makes proofs on one device. Clones share the device.
///
/// A proof is made in two steps, so that the next circuit can be synthesised while the device works:
/// [`Prover::start`] returns once the device has what it needs, [`PendingProof::finish`] waits for
/// the proof and verifies it. [`Prover::prove`] does both.
#[derive(Clone)]
pub struct Prover {
    backend: Arc<dyn Backend>,
}

impl fmt::Debug for Prover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prover")
            .field("backend", &self.backend())
            .finish()
    }
}

impl Prover {
    /// A prover on a device.
    ///
    /// # Errors
    /// When the device was asked for by name and cannot be used.
    pub fn new(device: Device) -> Result<Self, DeviceError> {
        match device {
            Device::Cpu => Ok(Self::with_backend(Cpu::default())),
            Device::Auto => match cuda::backend(&[], None) {
                Ok(gpu) => {
                    info!(backend = gpu.describe(), "the driver shows devices");
                    Ok(Self::with_backend(gpu))
                }
                Err(reason) => {
                    info!(%reason, "proving on the cpu");
                    Ok(Self::with_backend(Cpu::default()))
                }
            },
            Device::Cuda(ref ordinals) => match cuda::backend(ordinals, None) {
                Ok(gpu) => Ok(Self::with_backend(gpu)),
                Err(error) => {
                    let reason = error.to_string();
                    Err(DeviceError::NoCuda { device, reason })
                }
            },
        }
    }

    /// A prover on a back end of one's own.
    pub fn with_backend(backend: impl Backend + 'static) -> Self {
        Self {
            backend: Arc::new(backend),
        }
    }

    /// The back end and its device in words, such as "cpu (16 threads)".
    pub fn backend(&self) -> String {
        self.backend.describe()
    }

    /// Begins to make a proof with the blinding factors `r` and `s`, which have to be random and
    /// secret for the proof to hide the witness: see [`Self::start_random`].
    ///
    /// # Errors
    /// When the assignment does not fit the parameters, or the back end cannot begin.
    pub fn start(
        &self,
        params: &Arc<Params>,
        assignment: Assignment,
        r: Scalar,
        s: Scalar,
    ) -> Result<PendingProof, ProveError> {
        self.start_on(Timeline::new(), params, assignment, r, s)
    }

    /// [`Self::start`] with blinding factors from `rng`, r first.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_random<R: RngCore>(
        &self,
        params: &Arc<Params>,
        assignment: Assignment,
        rng: &mut R,
    ) -> Result<PendingProof, ProveError> {
        let r = Scalar::random(&mut *rng);
        let s = Scalar::random(&mut *rng);
        self.start(params, assignment, r, s)
    }

    /// [`Self::start`] with spans on a timeline that the caller already has.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_on(
        &self,
        timeline: Timeline,
        params: &Arc<Params>,
        assignment: Assignment,
        r: Scalar,
        s: Scalar,
    ) -> Result<PendingProof, ProveError> {
        let span = timeline.span("prove");
        let start = span.child("start");
        check_assignment(&assignment)?;
        check_fit(params, &shape_of(&assignment))?;
        let pending = self.begin(span, params, assignment, None, [r, s])?;
        drop(start);
        Ok(pending)
    }

    /// Begins to make a proof from the witness alone: the back end evaluates A and B from the
    /// compiled circuit, on its device where it can. The proof is that of [`Self::start`], byte for
    /// byte. [`Finished::assignment`] hands the witness's memory back.
    ///
    /// # Errors
    /// When the witness does not fit the circuit, or the circuit the parameters, or the back end
    /// cannot begin.
    pub fn start_compiled(
        &self,
        params: &Arc<Params>,
        circuit: &Arc<CompiledCircuit>,
        witness: Witness,
        r: Scalar,
        s: Scalar,
    ) -> Result<PendingProof, ProveError> {
        self.start_compiled_on(Timeline::new(), params, circuit, witness, r, s)
    }

    /// [`Self::start_compiled`] with spans on a timeline that the caller already has.
    ///
    /// # Errors
    /// As [`Self::start_compiled`].
    pub fn start_compiled_on(
        &self,
        timeline: Timeline,
        params: &Arc<Params>,
        circuit: &Arc<CompiledCircuit>,
        witness: Witness,
        r: Scalar,
        s: Scalar,
    ) -> Result<PendingProof, ProveError> {
        let span = timeline.span("prove");
        let start = span.child("start");
        let shape = circuit.shape();
        check_counts([
            ("inputs of the witness", shape.inputs, witness.inputs.len()),
            (
                "auxiliary variables of the witness",
                shape.aux,
                witness.aux.len(),
            ),
        ])?;
        check_one(&witness)?;
        check_fit(params, shape)?;
        let assignment = Assignment {
            witness,
            densities: Arc::clone(circuit.densities()),
            constraints: shape.constraints,
            ..Assignment::default()
        };
        let circuit = Some(Arc::clone(circuit));
        let pending = self.begin(span, params, assignment, circuit, [r, s])?;
        drop(start);
        Ok(pending)
    }

    /// Hands checked work to the back end.
    fn begin(
        &self,
        span: Span,
        params: &Arc<Params>,
        assignment: Assignment,
        circuit: Option<Arc<CompiledCircuit>>,
        [r, s]: [Scalar; 2],
    ) -> Result<PendingProof, ProveError> {
        let public_inputs = assignment.witness.inputs[1..].to_vec();
        let cancelled = Cancel::default();
        debug!(
            backend = self.backend(),
            constraints = assignment.constraints,
            compiled = circuit.is_some(),
            "proof started"
        );
        let running = self.backend.start(Job {
            params: Arc::clone(params),
            assignment,
            circuit,
            r,
            s,
            timeline: span.timeline().clone(),
            parent: span.id(),
            cancelled: cancelled.clone(),
        })?;
        Ok(PendingProof {
            backend: Arc::clone(&self.backend),
            params: Arc::clone(params),
            public_inputs,
            running: Some(running),
            cancelled,
            span,
        })
    }

    /// Makes a proof: [`Self::start`] and [`PendingProof::finish`] in one call.
    ///
    /// # Errors
    /// As those two.
    pub fn prove(
        &self,
        params: &Arc<Params>,
        assignment: Assignment,
        r: Scalar,
        s: Scalar,
    ) -> Result<Finished, ProveError> {
        self.start(params, assignment, r, s)?.finish()
    }

    /// Makes a proof with blinding factors from `rng`, r first.
    ///
    /// # Errors
    /// As [`Self::prove`].
    pub fn prove_random<R: RngCore>(
        &self,
        params: &Arc<Params>,
        assignment: Assignment,
        rng: &mut R,
    ) -> Result<Finished, ProveError> {
        self.start_random(params, assignment, rng)?.finish()
    }
}

/// A proof in the making. Dropping it gives the work up.
pub struct PendingProof {
    backend: Arc<dyn Backend>,
    params: Arc<Params>,
    public_inputs: Vec<Scalar>,
    running: Option<Box<dyn Running>>,
    cancelled: Cancel,
    span: Span,
}

impl fmt::Debug for PendingProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingProof")
            .field("backend", &self.backend.describe())
            .field("params", &self.params.name())
            .finish_non_exhaustive()
    }
}

/// A verified proof, with where its time went and the memory to reuse.
#[derive(Debug)]
pub struct Finished {
    /// The proof.
    pub proof: Proof,
    /// The public inputs that it was verified for, without the constant one.
    pub public_inputs: Vec<Scalar>,
    /// Where the time went.
    pub timeline: Timeline,
    /// The assignment's memory; its values may have been overwritten. Give it to
    /// `cuzk_circuit::synthesize_into`, or its witness to `cuzk_circuit::witness_into`, so that
    /// nothing large is freed and allocated again.
    pub assignment: Assignment,
}

impl PendingProof {
    /// Whether [`Self::finish`] has nothing to wait for but the verification.
    pub fn is_finished(&self) -> bool {
        self.running
            .as_ref()
            .is_none_or(|running| running.is_finished())
    }

    /// The timeline that the proof's spans go to.
    pub fn timeline(&self) -> &Timeline {
        self.span.timeline()
    }

    /// Waits for the proof and verifies it.
    ///
    /// # Errors
    /// When the back end fails, or the proof does not verify.
    pub fn finish(mut self) -> Result<Finished, ProveError> {
        let running = self.running.take().ok_or(ProveError::Cancelled)?;
        let wait = self.span.child("wait for the back end");
        let Output { proof, assignment } = running.finish()?;
        drop(wait);
        let verify = self.span.child("verify");
        let valid = self
            .params
            .prepared_vk()
            .verify(&proof, &self.public_inputs)?;
        drop(verify);
        if !valid {
            let backend = self.backend.describe();
            error!(
                backend,
                params = self.params.name(),
                "a proof did not verify"
            );
            return Err(ProveError::Invalid { backend });
        }
        let timeline = self.span.timeline().clone();
        let public_inputs = std::mem::take(&mut self.public_inputs);
        Ok(Finished {
            proof,
            public_inputs,
            timeline,
            assignment,
        })
    }
}

impl Drop for PendingProof {
    fn drop(&mut self) {
        self.cancelled.cancel();
    }
}

/// Refuses assignments whose parts contradict each other.
fn check_assignment(assignment: &Assignment) -> Result<(), ProveError> {
    let Assignment {
        witness,
        a,
        b,
        densities,
        ..
    } = assignment;
    let (inputs, aux) = (witness.inputs.len(), witness.aux.len());
    let checks = [
        ("rows of a", assignment.rows(), a.len()),
        ("rows of b", assignment.rows(), b.len()),
        (
            "density of a over the auxiliary variables",
            aux,
            densities.a_aux.len(),
        ),
        (
            "density of b over the inputs",
            inputs,
            densities.b_inputs.len(),
        ),
        (
            "density of b over the auxiliary variables",
            aux,
            densities.b_aux.len(),
        ),
    ];
    check_counts(checks)?;
    check_one(witness)
}

/// Refuses the first pair of counts that differ.
fn check_counts<const N: usize>(
    checks: [(&'static str, usize, usize); N],
) -> Result<(), ProveError> {
    match checks.into_iter().find(|check| check.1 != check.2) {
        None => Ok(()),
        Some((what, expected, found)) => Err(ProveError::Assignment {
            what,
            expected,
            found,
        }),
    }
}

/// Refuses witnesses that do not begin with the constant one.
fn check_one(witness: &Witness) -> Result<(), ProveError> {
    let first = witness.inputs.first() == Some(&Scalar::ONE);
    let what = "inputs that are the constant one at the front";
    check_counts([(what, 1, usize::from(first))])
}

/// The counts of an assignment that parameters have to fit.
fn shape_of(assignment: &Assignment) -> Shape {
    let Assignment {
        witness, densities, ..
    } = assignment;
    Shape {
        constraints: assignment.constraints,
        inputs: witness.inputs.len(),
        aux: witness.aux.len(),
        a_aux: densities.a_aux.count_ones(),
        b_inputs: densities.b_inputs.count_ones(),
        b_aux: densities.b_aux.count_ones(),
        ..Shape::default()
    }
}

/// Refuses parameters of another circuit.
fn check_fit(params: &Params, shape: &Shape) -> Result<(), ProveError> {
    let counts = params.counts();
    let checks = [
        ("inputs", counts.inputs, shape.inputs),
        ("domain size", counts.h + 1, 1 << shape.domain_log2()),
        ("auxiliary variables", counts.l, shape.aux),
        ("variables in a", counts.a, shape.a_len()),
        ("variables in b", counts.b, shape.b_len()),
    ];
    for (what, expected, found) in checks {
        if expected != found {
            let params = params.name().to_owned();
            return Err(ProveError::Mismatch {
                params,
                what,
                expected,
                found,
            });
        }
    }
    let vk = params.vk();
    if bool::from(vk.delta_g1.is_identity() | vk.delta_g2.is_identity()) {
        return Err(ProveError::InfiniteDelta {
            params: params.name().to_owned(),
        });
    }
    Ok(())
}
