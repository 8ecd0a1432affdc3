//! The engine: jobs in, verified proofs out, whatever happens in between.
//!
//! [`Engine::open`] starts one; [`Engine::submit`] takes what clients send, [`Engine::wait`] brings
//! the result, [`Engine::status`] and [`Engine::subscribe`] tell what goes on. Every accepted job
//! ends with exactly one [`JobResult`].
//!
//! Async functions need tokio's timer ([`Engine::wait`] with a time limit and [`Engine::drain`]);
//! the work itself is done on threads of the engine's own.

#![forbid(unsafe_code)]

mod config;
mod engine;
mod error;
mod event;
mod executor;
mod filecoin;
mod job;
mod journal;
pub mod memory;
pub mod plan;
mod results;
mod scheduler;
mod simulation;
mod status;

pub use config::{Budget, EngineConfig, KeptResults, QueueLimits};
pub use engine::Engine;
pub use error::{EngineError, JournalError, PreloadError, SubmitError};
pub use event::{Event, EventKind, Stage};
pub use executor::{
    CancelToken, DeviceSpec, Diagnosis, Executor, Footprint, Loaded, Parsed, PartitionProof,
    TaskError,
};
pub use filecoin::{Filecoin, Parameters, Synthesis};
pub use job::{
    CancelOutcome, JobId, JobResult, JobState, JobTimes, Priority, Submission, Submitted, Waited,
};
pub use status::{
    DeviceStatus, Drained, EngineStatus, Evicted, Failure, MemoryStatus, ParametersStatus,
    PartitionStatus, Preloaded, QueueStatus, RunningJob, Tier, Totals,
};
