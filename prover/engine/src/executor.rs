//! The seam between scheduling and work: what an engine needs done, without how it is done.
//!
//! [`crate::Filecoin`] does the real work. Tests put something else behind an engine, and the
//! simulation of [`crate::plan`] needs no work at all.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use cuzk_filecoin::{CircuitId, ProofRequest};
use thiserror::Error;

/// The proof of one partition.
pub type PartitionProof = [u8; cuzk_filecoin::PARTITION_PROOF_LEN];

/// A device that proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSpec {
    /// The driver's ordinal; none for the CPU.
    pub ordinal: Option<usize>,
    /// Such as "NVIDIA H200" or "cpu (16 threads)".
    pub name: String,
    /// Device memory in bytes; 0 where it is the host's.
    pub memory: u64,
    /// Whether it only takes partitions that failed elsewhere.
    pub fallback: bool,
}

/// What a circuit takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Host memory of loaded parameters and of the compiled circuit.
    pub parameters: u64,
    /// Host memory of a partition from the start of its synthesis to the end of its proof.
    pub partition: u64,
    /// Host memory that a proof on the fallback device takes on top.
    pub fallback: u64,
    /// Device memory of parameters.
    pub device_parameters: u64,
}

/// A parsed request.
#[derive(Clone, Debug)]
pub struct Parsed<R> {
    /// What the executor makes circuits from.
    pub request: R,
    /// How many partitions it has.
    pub partitions: usize,
}

/// Loaded parameters.
#[derive(Clone, Debug)]
pub struct Loaded<P> {
    /// What the executor proves with.
    pub parameters: P,
    /// Whether the compiled circuit is there as well.
    pub compiled: bool,
}

/// Why work was not done.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TaskError {
    /// The request is to blame: the same work would fail again.
    #[error("{0}")]
    Request(String),
    /// The parameters are to blame.
    #[error("{0}")]
    Parameters(String),
    /// The device, the driver or the back end failed.
    #[error("{0}")]
    Device(String),
    /// The back end's proof does not verify.
    #[error("{0}")]
    Invalid(String),
    /// Something panicked.
    #[error("a worker panicked: {0}")]
    Panic(String),
    /// Nobody wants the work any more.
    #[error("cancelled")]
    Cancelled,
}

/// What is found out about a failed partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Which check failed, and on what.
    pub message: String,
    /// Whether another attempt may succeed.
    pub retry: bool,
}

/// Says whether work is still wanted. Clones are one switch.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Makes the work unwanted.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether the work is unwanted.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The work behind an engine. Calls come from several threads at once; a panic fails the job.
pub trait Executor: Send + Sync + 'static {
    /// A parsed request; clones share it.
    type Request: Clone + Send + Sync + 'static;
    /// Loaded parameters; clones share them.
    type Parameters: Clone + Send + Sync + 'static;
    /// A synthesised partition.
    type Synthesis: Send + 'static;

    /// The devices, which do not change.
    fn devices(&self) -> Vec<DeviceSpec>;

    /// The circuit of a request, from as few of its fields as possible.
    ///
    /// # Errors
    /// The request is malformed.
    fn identify(&self, request: &ProofRequest) -> Result<CircuitId, cuzk_filecoin::RequestError>;

    /// What a circuit takes.
    ///
    /// # Errors
    /// There are no usable parameters; the text says why.
    fn footprint(&self, circuit: CircuitId) -> Result<Footprint, String>;

    /// Reads and checks a request.
    ///
    /// # Errors
    /// The request is malformed.
    fn parse(&self, request: &ProofRequest) -> Result<Parsed<Self::Request>, TaskError>;

    /// Loads a circuit's parameters into host memory.
    ///
    /// # Errors
    /// They are missing or malformed.
    fn load(&self, circuit: CircuitId) -> Result<Loaded<Self::Parameters>, TaskError>;

    /// Makes the witness of partition `k` and what else its proof needs.
    ///
    /// # Errors
    /// The request does not yield a witness, or one with other public inputs than it should.
    fn synthesise(
        &self,
        request: &Self::Request,
        k: usize,
        parameters: &Self::Parameters,
        cancel: &CancelToken,
    ) -> Result<Self::Synthesis, TaskError>;

    /// Proves a partition on a device, and verifies the proof.
    ///
    /// # Errors
    /// There is no valid proof.
    fn prove(
        &self,
        device: usize,
        parameters: &Self::Parameters,
        synthesis: Self::Synthesis,
        cancel: &CancelToken,
    ) -> Result<PartitionProof, TaskError>;

    /// Finds out why partition `k` failed.
    fn diagnose(&self, request: &Self::Request, k: usize, error: &TaskError) -> Diagnosis;

    /// Joins the partitions' proofs and has the official verifier check the whole.
    ///
    /// # Errors
    /// The official verifier refuses it.
    fn assemble(
        &self,
        request: &Self::Request,
        proofs: &[PartitionProof],
    ) -> Result<Vec<u8>, TaskError>;
}
