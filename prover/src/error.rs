//! Why a proof was not made.

use cuzk_circuit::{CircuitError, CompiledError};
use thiserror::Error;

use crate::{DeviceError, ParamsError, VerifyError, ntt::NttError};

/// Why a proof was not made. No proof leaves the library that has not been verified.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProveError {
    /// The parameters belong to another circuit than the assignment.
    #[error(
        "{params}: the parameters do not fit the circuit: {what}: expected {expected}, found {found}"
    )]
    Mismatch {
        /// The name of the parameters.
        params: String,
        /// What was counted.
        what: &'static str,
        /// The count in the parameters.
        expected: usize,
        /// The count in the assignment.
        found: usize,
    },
    /// An assignment contradicts itself.
    #[error("malformed assignment: {what}: expected {expected}, found {found}")]
    Assignment {
        /// What was counted.
        what: &'static str,
        /// The count that follows from the rest of the assignment.
        expected: usize,
        /// The count that was found.
        found: usize,
    },
    /// δ is the point at infinity, so that the proof would hide nothing.
    #[error("{params}: delta is the point at infinity")]
    InfiniteDelta {
        /// The name of the parameters.
        params: String,
    },
    /// Circuits and random numbers of a batch differ in number.
    #[error("{expected} circuits, but {found} values of {what}")]
    BatchLength {
        /// "r" or "s".
        what: &'static str,
        /// The number of circuits.
        expected: usize,
        /// The number of values.
        found: usize,
    },
    /// The proof does not verify: the witness violates a constraint, the parameters belong to
    /// another circuit, or the device computed wrongly. `cuzk_circuit::check` names a violated
    /// constraint.
    #[error("{backend}: the proof does not verify; the witness may violate a constraint")]
    Invalid {
        /// The back end that made the proof.
        backend: String,
    },
    /// The work was given up because its [`crate::PendingProof`] was dropped.
    #[error("the proof was cancelled")]
    Cancelled,
    /// A thread of the back end ended by a panic.
    #[error("{backend}: a worker panicked: {message}")]
    WorkerPanicked {
        /// The back end.
        backend: String,
        /// The panic's message.
        message: String,
    },
    /// No device is left: each of them failed at this proof or was taken out of use.
    #[error("{backend}: no device is left")]
    NoDevice {
        /// The back end.
        backend: String,
    },
    /// The proof cannot be made within the device memory that it may take. Found before any work is
    /// done.
    #[error("{device}: {needed} bytes of device memory needed at least, {limit} allowed")]
    DeviceMemory {
        /// The device.
        device: String,
        /// The least that would do; 0 if no amount would.
        needed: u64,
        /// What may be taken.
        limit: u64,
    },
    /// A back end failed in a way of its own, for instance on a device fault.
    #[error("{backend}: {source}")]
    Backend {
        /// The back end.
        backend: String,
        /// What it reported.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A transform was refused.
    #[error(transparent)]
    Ntt(#[from] NttError),
    /// Synthesis failed.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
    /// A compiled circuit could not be evaluated.
    #[error(transparent)]
    Compiled(#[from] CompiledError),
    /// The parameters could not be decoded.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// The proof could not be checked.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// There is no such device.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
