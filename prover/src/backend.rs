//! What a back end is given and what it yields: the seam between the prover and its devices.

use std::{
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
    Params, Proof, ProveError, VerifyingKey,
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
    /// When the work cannot begin.
    fn start(&self, job: Job) -> Result<Box<dyn Running>, ProveError>;
}

/// A proof in the making.
pub trait Running: Send {
    /// Whether [`Running::finish`] would return without waiting.
    fn is_finished(&self) -> bool;

    /// Waits for the proof.
    ///
    /// # Errors
    /// When the proof could not be made.
    fn finish(self: Box<Self>) -> Result<Output, ProveError>;
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
}

/// What a back end yields.
pub struct Output {
    /// The proof.
    pub proof: Proof,
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
    backend: String,
    thread: JoinHandle<Result<Output, ProveError>>,
}

impl Background {
    /// Starts `work` on a thread called `name`; errors speak of `backend`.
    pub(crate) fn start(
        name: &str,
        backend: String,
        work: impl FnOnce() -> Result<Output, ProveError> + Send + 'static,
    ) -> Result<Box<dyn Running>, ProveError> {
        match thread::Builder::new().name(name.to_owned()).spawn(work) {
            Ok(thread) => Ok(Box::new(Background { backend, thread })),
            Err(source) => Err(ProveError::Backend {
                backend,
                source: source.into(),
            }),
        }
    }
}

impl Running for Background {
    fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    fn finish(self: Box<Self>) -> Result<Output, ProveError> {
        let Background { backend, thread } = *self;
        thread.join().unwrap_or_else(|panic| {
            Err(ProveError::WorkerPanicked {
                backend,
                message: panic_message(&*panic),
            })
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
