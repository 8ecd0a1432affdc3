//! Proofs in the making: waiting, verification, and another attempt elsewhere when a device fails.

use std::{fmt, sync::Arc};

use blstrs::Scalar;
use cuzk_circuit::{Assignment, CompiledCircuit};
use tracing::{error, warn};

use crate::{
    Backend, Params, Proof, ProveError,
    backend::{Cancel, Failed, Job, Output, Running},
    timeline::{Span, Timeline},
};

/// What a proof is to be of; the same for all attempts.
pub(crate) struct Order {
    pub params: Arc<Params>,
    /// Without the constant one.
    pub public_inputs: Vec<Scalar>,
    pub circuit: Option<Arc<CompiledCircuit>>,
    pub r: Scalar,
    pub s: Scalar,
    pub cancelled: Cancel,
}

/// A proof in the making. Dropping it gives the work up.
pub struct PendingProof {
    order: Order,
    attempts: Attempts,
    running: Option<Box<dyn Running>>,
    span: Span,
}

/// The back ends, and what failed on them so far.
struct Attempts {
    /// The prover's, then the CPU.
    backends: [Arc<dyn Backend>; 2],
    /// Which of the two works on the proof.
    current: usize,
    /// Devices of the first that failed.
    avoid: Vec<usize>,
    retries: Vec<Retry>,
    /// Whether a proof came out that did not verify.
    invalid_before: bool,
    /// The last attempt, as a part of the proof's span.
    span: Option<Span>,
}

/// An attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retry {
    /// The device that failed.
    pub backend: String,
    /// Why.
    pub reason: String,
}

/// A verified proof, with where its time went and the memory to reuse.
#[derive(Debug)]
pub struct Finished {
    /// The proof.
    pub proof: Proof,
    /// The public inputs that it was verified for, without the constant one.
    pub public_inputs: Vec<Scalar>,
    /// The device that made it.
    pub backend: String,
    /// Attempts on other devices that failed before.
    pub retries: Vec<Retry>,
    /// Where the time went.
    pub timeline: Timeline,
    /// The assignment's memory; its values may have been overwritten. Give it to
    /// `cuzk_circuit::synthesize_into`, or its witness to `cuzk_circuit::witness_into`, so that
    /// nothing large is freed and allocated again.
    pub assignment: Assignment,
}

impl fmt::Debug for PendingProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingProof")
            .field("backend", &self.attempts.backend().describe())
            .field("params", &self.order.params.name())
            .finish_non_exhaustive()
    }
}

impl PendingProof {
    /// Begins the first attempt.
    pub(crate) fn start(
        order: Order,
        backends: [Arc<dyn Backend>; 2],
        assignment: Assignment,
        span: Span,
    ) -> Result<Self, ProveError> {
        let mut attempts = Attempts {
            backends,
            current: 0,
            avoid: Vec::new(),
            retries: Vec::new(),
            invalid_before: false,
            span: None,
        };
        let running = attempts.begin(&order, assignment, &span)?;
        Ok(PendingProof {
            order,
            attempts,
            running: Some(running),
            span,
        })
    }

    /// Whether [`Self::finish`] has nothing to wait for but the verification, or another attempt.
    pub fn is_finished(&self) -> bool {
        self.running
            .as_ref()
            .is_none_or(|running| running.is_finished())
    }

    /// The timeline that the proof's spans go to.
    pub fn timeline(&self) -> &Timeline {
        self.span.timeline()
    }

    /// Waits for the proof and verifies it. If a device fails, the proof is made on another one, and at
    /// last on the CPU; a proof that does not verify is made once more. [`Finished::retries`] tells.
    ///
    /// # Errors
    /// When the work was not possible for another reason than a device's failure, or the last attempt
    /// failed.
    pub fn finish(mut self) -> Result<Finished, ProveError> {
        loop {
            let running = self.running.take().ok_or(ProveError::Cancelled)?;
            let wait = self.span.child("wait for the back end");
            let outcome = running.finish();
            drop(wait);
            let failed = match outcome.and_then(|output| self.verify(output)) {
                Ok(output) => return Ok(self.finished(output)),
                Err(failed) => *failed,
            };
            let assignment = self.attempts.fail(failed)?;
            self.order.cancelled.check()?;
            let running = self.attempts.begin(&self.order, assignment, &self.span)?;
            self.running = Some(running);
        }
    }

    /// Refuses proofs that do not verify.
    fn verify(&self, output: Output) -> Result<Output, Box<Failed>> {
        let key = self.order.params.prepared_vk();
        let valid = self.span.time("verify", || {
            key.verify(&output.proof, &self.order.public_inputs)
        });
        if valid.map_err(ProveError::from)? {
            return Ok(output);
        }
        let (backend, params) = (output.maker.name.clone(), self.order.params.name());
        error!(backend, params, "a proof did not verify");
        self.attempts.backend().distrust(output.maker.number);
        Err(Box::new(Failed {
            error: ProveError::Invalid { backend },
            maker: Some(output.maker),
            assignment: Some(output.assignment),
        }))
    }

    fn finished(mut self, output: Output) -> Finished {
        drop(self.attempts.span.take());
        self.span
            .note("retries", self.attempts.retries.len() as u64);
        Finished {
            proof: output.proof,
            public_inputs: std::mem::take(&mut self.order.public_inputs),
            backend: output.maker.name,
            retries: std::mem::take(&mut self.attempts.retries),
            timeline: self.span.timeline().clone(),
            assignment: output.assignment,
        }
    }
}

impl Attempts {
    fn backend(&self) -> &Arc<dyn Backend> {
        &self.backends[self.current]
    }

    /// Starts the next attempt: on a device that has not failed, or else on the CPU.
    fn begin(
        &mut self,
        order: &Order,
        mut assignment: Assignment,
        span: &Span,
    ) -> Result<Box<dyn Running>, ProveError> {
        loop {
            if !self.retries.is_empty() {
                self.span = None;
                self.span = Some(span.child("retry"));
            }
            let job = Job {
                params: Arc::clone(&order.params),
                assignment,
                circuit: order.circuit.clone(),
                r: order.r,
                s: order.s,
                timeline: span.timeline().clone(),
                parent: self.span.as_ref().unwrap_or(span).id(),
                cancelled: order.cancelled.clone(),
                avoid: if self.current == 0 {
                    self.avoid.clone()
                } else {
                    Vec::new()
                },
            };
            let failed = match self.backend().start(job) {
                Ok(running) => return Ok(running),
                Err(failed) => *failed,
            };
            assignment = match failed {
                Failed {
                    error: ProveError::NoDevice { backend },
                    assignment: Some(assignment),
                    ..
                } if self.current == 0 => {
                    self.current = 1;
                    if self.retries.is_empty() {
                        let reason = "no device is left".to_owned();
                        self.retries.push(Retry { backend, reason });
                    }
                    warn!("proving on the cpu: no other device is left");
                    assignment
                }
                failed => self.fail(failed)?,
            };
        }
    }

    /// Notes a failure; hands the assignment back if another attempt may be made.
    fn fail(&mut self, failed: Failed) -> Result<Assignment, ProveError> {
        let Failed {
            error,
            maker,
            assignment,
        } = failed;
        let once = match &error {
            ProveError::Backend { .. } | ProveError::WorkerPanicked { .. } => false,
            ProveError::Invalid { .. } => true,
            _ => return Err(error),
        };
        // Two wrong proofs of the same witness: it is the witness that is wrong.
        let tried = once && self.invalid_before;
        let (Some(assignment), Some(maker), 0, false) = (assignment, maker, self.current, tried)
        else {
            return Err(error);
        };
        warn!(backend = maker.name, reason = %error, "another attempt is made");
        if matches!(error, ProveError::WorkerPanicked { .. }) {
            self.backend().distrust(maker.number);
        }
        self.invalid_before |= once;
        self.avoid.push(maker.number);
        self.retries.push(Retry {
            backend: maker.name,
            reason: error.to_string(),
        });
        Ok(assignment)
    }
}

impl Drop for PendingProof {
    fn drop(&mut self) {
        self.order.cancelled.cancel();
    }
}
