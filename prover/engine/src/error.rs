//! Why an engine does not open, and why a job or a command is refused.

use std::path::PathBuf;

use cuzk_filecoin::{CircuitId, RequestError};
use cuzk_prover::DeviceError;
use thiserror::Error;

use crate::JobId;

/// Why an engine did not open.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// storage-proofs' own settings cannot be read.
    #[error(transparent)]
    Filecoin(#[from] RequestError),
    /// The official verifiers would read other keys than the prover.
    #[error(
        "parameter folder: expected {}, where the official verifiers read their keys (FIL_PROOFS_PARAMETER_CACHE), found {}",
        expected.display(), found.display()
    )]
    ParamsDir {
        /// The folder of the official verifiers.
        expected: PathBuf,
        /// The folder of the configuration.
        found: PathBuf,
    },
    /// A value of the configuration makes no sense.
    #[error("{key}: expected {expected}, found {found}")]
    Config {
        /// The field of [`crate::EngineConfig`].
        key: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A thread could not be started.
    #[error("starting a thread: {0}")]
    Thread(std::io::Error),
}

/// Why the journal could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// A file of the journal.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process has the journal open.
    #[error("{}: another process uses this journal", path.display())]
    Busy {
        /// The journal.
        path: PathBuf,
    },
    /// Too little of the disk is free.
    #[error("{}: {free} bytes free, {needed} needed", path.display())]
    NoSpace {
        /// The folder of the journal.
        path: PathBuf,
        /// Bytes that are free.
        free: u64,
        /// Bytes that have to be, those kept in reserve included.
        needed: u64,
    },
    /// The store itself.
    #[error("{}: {message}", path.display())]
    Store {
        /// The journal.
        path: PathBuf,
        /// What the store reported.
        message: String,
        /// Whether the disk is full.
        full: bool,
    },
    /// A record is not what this version writes.
    #[error("{}: record {record} of table {table}: {message}", path.display())]
    Record {
        /// The journal.
        path: PathBuf,
        /// The table.
        table: &'static str,
        /// The record's key.
        record: u64,
        /// What is wrong with it.
        message: String,
    },
}

impl JournalError {
    /// Whether the disk is full.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Io { source, .. } => {
                matches!(source.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
            }
            Self::NoSpace { .. } => true,
            Self::Store { full, .. } => *full,
            _ => false,
        }
    }
}

/// Why a job was not accepted. Nothing of it is kept.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// Another request is known under this id (gRPC `ALREADY_EXISTS`).
    #[error("request id {request_id:?} belongs to job {job}, whose request is another one")]
    Conflict {
        /// The id.
        request_id: String,
        /// The job that has it.
        job: JobId,
    },
    /// The request is wrong (gRPC `INVALID_ARGUMENT`).
    #[error(transparent)]
    Invalid(#[from] RequestError),
    /// The request's id is too long (gRPC `INVALID_ARGUMENT`).
    #[error("request id: {found} bytes, at most {limit}")]
    RequestId {
        /// Its length.
        found: usize,
        /// The most it may be.
        limit: usize,
    },
    /// As many jobs as may wait are waiting (gRPC `RESOURCE_EXHAUSTED`).
    #[error("the queue is full: {jobs} jobs of at most {limit}")]
    QueueFull {
        /// Jobs that are not finished.
        jobs: usize,
        /// The most there may be.
        limit: usize,
    },
    /// As many bytes as may wait are waiting (gRPC `RESOURCE_EXHAUSTED`).
    #[error("the queue is full: {queued} bytes of inputs and {bytes} more, at most {limit}")]
    QueueBytes {
        /// The input's size.
        bytes: u64,
        /// The size of the inputs that wait.
        queued: u64,
        /// The most there may be.
        limit: u64,
    },
    /// The job needs more host memory than the engine may ever use (gRPC `FAILED_PRECONDITION`).
    #[error(
        "{circuit} needs {needed} bytes of host memory ({parameters} of parameters, {partition} a partition, {request} for the request), the budget is {limit}"
    )]
    NeverFits {
        /// The circuit.
        circuit: CircuitId,
        /// The sum.
        needed: u64,
        /// Bytes of parameters.
        parameters: u64,
        /// Bytes for one partition's synthesis and proof.
        partition: u64,
        /// Bytes for the parsed request.
        request: u64,
        /// The budget.
        limit: u64,
    },
    /// The parameters are missing or unusable (gRPC `FAILED_PRECONDITION`).
    #[error("the parameters of {circuit}: {message}")]
    Parameters {
        /// The circuit.
        circuit: CircuitId,
        /// File and reason.
        message: String,
    },
    /// The disk is full (gRPC `RESOURCE_EXHAUSTED`). Jobs that were accepted go on.
    #[error("the job cannot be kept, the disk is full: {0}")]
    DiskFull(JournalError),
    /// The job could not be written to the journal (gRPC `INTERNAL`).
    #[error("the job cannot be kept: {0}")]
    Journal(JournalError),
    /// The engine accepts no more jobs (gRPC `UNAVAILABLE`).
    #[error("the engine is shutting down")]
    Draining,
}

/// Why parameters were not loaded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PreloadError {
    /// They are missing or unusable.
    #[error("the parameters of {circuit}: {message}")]
    Parameters {
        /// The circuit.
        circuit: CircuitId,
        /// File and reason.
        message: String,
    },
    /// They need more host memory than the engine may ever use.
    #[error(
        "the parameters of {circuit} need {needed} bytes of host memory, the budget is {limit}"
    )]
    NeverFits {
        /// The circuit.
        circuit: CircuitId,
        /// What they need.
        needed: u64,
        /// The budget.
        limit: u64,
    },
    /// The engine is shutting down.
    #[error("the engine is shutting down")]
    Draining,
}
