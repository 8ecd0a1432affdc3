//! What a back end is given and what it yields: the seam between the prover and its devices.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use blstrs::{G1Projective, G2Projective, Scalar};
use cuzk_circuit::{Assignment, CompiledCircuit};
use group::Curve;

use crate::{
    Params, Proof, ProveError, VerifyingKey, gpu,
    timeline::{SpanId, Timeline},
};

/// A device, or a set of devices, that makes proofs.
///
/// The prover has checked that the assignment fits the parameters before it calls
/// [`Backend::start`], and verifies the proof after [`Running::finish`].
pub trait Backend: Send + Sync {
    /// The back end and its device in words, such as "cpu (16 threads)".
    fn describe(&self) -> String;

    /// Begins to make a proof and returns as soon as the device has what it needs.
    ///
    /// # Errors
    /// When the work cannot begin: [`ProveError::NoDevice`] when no device is left that the job does
    /// not avoid.
    fn start(&self, job: Job) -> Result<Box<dyn Running>, Box<Failed>>;

    /// Hears that a proof which this device made did not verify.
    fn distrust(&self, _device: usize) {}

    /// How each device would make a proof, for back ends that plan.
    ///
    /// # Errors
    /// When a device has not enough memory or does not answer.
    fn plans(
        &self,
        _params: &Params,
        _assignment: &Assignment,
        _circuit: Option<&CompiledCircuit>,
    ) -> Result<Vec<(String, gpu::plan::Plan)>, ProveError> {
        Ok(Vec::new())
    }
}

/// A proof in the making.
pub trait Running: Send {
    /// Whether [`Running::finish`] would return without waiting.
    fn is_finished(&self) -> bool;

    /// Waits for the proof.
    ///
    /// # Errors
    /// When the proof could not be made.
    fn finish(self: Box<Self>) -> Result<Output, Box<Failed>>;
}

/// One proof's worth of work for a back end.
pub struct Job {
    /// The parameters. Their points may not be decoded yet: see [`Params::decode`], [`Params::raw`].
    pub params: Arc<Params>,
    /// The synthesised circuit. With a compiled `circuit`, its `a` and `b` are empty: the back end
    /// evaluates them where it needs them.
    pub assignment: Assignment,
    /// A and B of the circuit, where they are still to be evaluated for the witness. The witness
    /// fits and the assignment has the circuit's densities.
    pub circuit: Option<Arc<CompiledCircuit>>,
    /// The first blinding factor. Secret.
    pub r: Scalar,
    /// The second blinding factor. Secret.
    pub s: Scalar,
    /// Where spans go.
    pub timeline: Timeline,
    /// The span that the back end's spans are parts of.
    pub parent: SpanId,
    /// Becomes true when nobody waits for the proof any more.
    pub cancelled: Cancel,
    /// Devices that failed at this proof before.
    pub avoid: Vec<usize>,
}

/// The device that made a proof or failed at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maker {
    /// In words.
    pub name: String,
    /// Its number among the back end's devices: what [`Job::avoid`] holds.
    pub number: usize,
}

/// A proof that was not made, and what is needed to make it elsewhere.
#[derive(Debug)]
pub struct Failed {
    /// Why.
    pub error: ProveError,
    /// Where; none if no device was involved.
    pub maker: Option<Maker>,
    /// The assignment, if it came back.
    pub assignment: Option<Assignment>,
}

impl Failed {
    /// A job that did not begin.
    pub fn before(job: Job, error: ProveError) -> Box<Self> {
        Box::new(Failed {
            error,
            maker: None,
            assignment: Some(job.assignment),
        })
    }
}

impl From<ProveError> for Box<Failed> {
    fn from(error: ProveError) -> Self {
        Box::new(Failed {
            error,
            maker: None,
            assignment: None,
        })
    }
}

/// What a back end yields.
pub struct Output {
    /// The proof.
    pub proof: Proof,
    /// The device that made it.
    pub maker: Maker,
    /// The assignment that was given; its `a` and `b` may have been overwritten, its memory is reused.
    pub assignment: Assignment,
}

/// Says whether work is still wanted.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Makes the work unwanted.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work is unwanted.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Ends unwanted work.
    ///
    /// # Errors
    /// When the work is unwanted.
    pub fn check(&self) -> Result<(), ProveError> {
        if self.is_cancelled() {
            Err(ProveError::Cancelled)
        } else {
            Ok(())
        }
    }
}

/// A proof that a thread is making: how the back ends of this crate run a [`Job`].
pub(crate) struct Background {
    maker: Maker,
    thread: JoinHandle<Result<Output, Box<Failed>>>,
}

impl Background {
    /// Starts `work` on a thread called `name`. Whatever happens to it, a panic included, the job's
    /// assignment comes back.
    pub(crate) fn start(
        name: &str,
        maker: Maker,
        job: Job,
        work: impl FnOnce(&mut Job) -> Result<Proof, ProveError> + Send + 'static,
    ) -> Result<Box<dyn Running>, Box<Failed>> {
        let by = maker.clone();
        let run = move || {
            let mut job = job;
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut job)));
            let outcome = outcome.unwrap_or_else(|panic| {
                Err(ProveError::WorkerPanicked {
                    backend: by.name.clone(),
                    message: panic_message(&*panic),
                })
            });
            let assignment = job.assignment;
            match outcome {
                Ok(proof) => Ok(Output {
                    proof,
                    maker: by,
                    assignment,
                }),
                Err(error) => Err(Box::new(Failed {
                    error,
                    maker: Some(by),
                    assignment: Some(assignment),
                })),
            }
        };
        match thread::Builder::new().name(name.to_owned()).spawn(run) {
            Ok(thread) => Ok(Box::new(Background { maker, thread })),
            Err(source) => Err(Box::from(ProveError::Backend {
                backend: maker.name,
                source: source.into(),
            })),
        }
    }
}

impl Running for Background {
    fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    fn finish(self: Box<Self>) -> Result<Output, Box<Failed>> {
        let Background { maker, thread } = *self;
        thread.join().unwrap_or_else(|panic| {
            Err(Box::from(ProveError::WorkerPanicked {
                backend: maker.name,
                message: panic_message(&*panic),
            }))
        })
    }
}

/// The text of a panic.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
        .to_owned()
}

/// The multi-scalar multiplications of a proof. x are the inputs, w the auxiliary variables, z both.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    /// Σ h_i · [`crate::Points::h`]_i over the coefficients of the quotient.
    pub h: G1Projective,
    /// Σ w_i · [`crate::Points::l`]_i.
    pub l: G1Projective,
    /// Σ z_i · [`crate::Points::a`]_i over the variables that occur in A.
    pub a: G1Projective,
    /// Σ z_i · [`crate::Points::b_g1`]_i over the variables that occur in B.
    pub b_g1: G1Projective,
    /// Σ z_i · [`crate::Points::b_g2`]_i over the variables that occur in B.
    pub b_g2: G2Projective,
}

impl Sums {
    /// Puts the proof together:
    ///
    /// - A = α + Σ a + r·δ
    /// - B = β + Σ b + s·δ
    /// - C = Σ h + Σ l + s·A + r·(β + Σ b), the last in G1. This is the literature's
    ///   s·A + r·B − r·s·δ, where B would include its s·δ.
    pub fn assemble(&self, vk: &VerifyingKey, r: &Scalar, s: &Scalar) -> Proof {
        let a = self.a + vk.alpha_g1 + vk.delta_g1 * r;
        let b = self.b_g2 + vk.beta_g2 + vk.delta_g2 * s;
        let c = self.h + self.l + a * s + (self.b_g1 + vk.beta_g1) * r;
        Proof {
            a: a.to_affine(),
            b: b.to_affine(),
            c: c.to_affine(),
        }
    }
}
