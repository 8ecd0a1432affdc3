//! The prover: checks what it is given, hands it to a back end, verifies what comes back.

use std::{fmt, sync::Arc};

use blstrs::Scalar;
use cuzk_circuit::{Assignment, CompiledCircuit, Shape, Witness};
use ff::Field;
use group::prime::PrimeCurveAffine;
use rand_core::RngCore;
use tracing::{debug, info};

use crate::{
    Backend, Device, DeviceError, Params, ProveError,
    backend::Cancel,
    cpu::Cpu,
    cuda,
    gpu::plan::Plan,
    pending::{Finished, Order, PendingProof},
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
    /// Makes the proofs that the back end's devices fail at.
    fallback: Arc<Cpu>,
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
        Self::with_memory_limit(device, None)
    }

    /// A prover that takes at most `limit` bytes of memory on each CUDA device, parameters included. What
    /// does not fit is streamed and worked on in pieces: the proofs are the same, [`Self::plans`] tells the
    /// price. The driver's own memory, some 0.5 GiB a device, comes on top.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_memory_limit(device: Device, limit: Option<u64>) -> Result<Self, DeviceError> {
        match device {
            Device::Cpu => Ok(Self::with_backend(Cpu::default())),
            Device::Auto => match cuda::backend(&[], limit) {
                Ok(gpu) => {
                    info!(backend = gpu.describe(), "the driver shows devices");
                    Ok(Self::with_backend(gpu))
                }
                Err(reason) => {
                    info!(%reason, "proving on the cpu");
                    Ok(Self::with_backend(Cpu::default()))
                }
            },
            Device::Cuda(ref ordinals) => match cuda::backend(ordinals, limit) {
                Ok(gpu) => Ok(Self::with_backend(gpu)),
                Err(error) => {
                    let reason = error.to_string();
                    Err(DeviceError::NoCuda { device, reason })
                }
            },
        }
    }

    /// A prover on a back end of one's own. What none of its devices can do is done on the CPU.
    pub fn with_backend(backend: impl Backend + 'static) -> Self {
        Self {
            backend: Arc::new(backend),
            fallback: Arc::new(Cpu::default()),
        }
    }

    /// How each device would make a proof: what stays on it, what is streamed, in how many pieces, and the
    /// expected time. Empty for the CPU.
    ///
    /// # Errors
    /// When the proof cannot be made within the allowed memory, or a device does not answer.
    pub fn plans(
        &self,
        params: &Params,
        assignment: &Assignment,
        circuit: Option<&CompiledCircuit>,
    ) -> Result<Vec<(String, Plan)>, ProveError> {
        self.backend.plans(params, assignment, circuit)
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
        debug!(
            backend = self.backend(),
            constraints = assignment.constraints,
            compiled = circuit.is_some(),
            "proof started"
        );
        let order = Order {
            params: Arc::clone(params),
            public_inputs: assignment.witness.inputs[1..].to_vec(),
            circuit,
            r,
            s,
            cancelled: Cancel::default(),
        };
        let backends = [
            Arc::clone(&self.backend),
            Arc::clone(&self.fallback) as Arc<dyn Backend>,
        ];
        PendingProof::start(order, backends, assignment, span)
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
