//! What an engine says about itself, at no cost to the proofs in the making.

use std::time::{Duration, SystemTime};

use cuzk_filecoin::{CircuitId, ProofKind};

use crate::{JobId, Priority, Stage};

/// Everything at one moment.
#[derive(Clone, Debug, Default)]
pub struct EngineStatus {
    /// The devices, in the order that events and running partitions refer to.
    pub devices: Vec<DeviceStatus>,
    /// The parameters that are loaded or were asked for, by circuit.
    pub parameters: Vec<ParametersStatus>,
    /// All four kinds, in the order of [`ProofKind::ALL`].
    pub queues: Vec<QueueStatus>,
    /// Jobs that have been started and not finished, oldest first.
    pub running: Vec<RunningJob>,
    /// Jobs that ended.
    pub totals: Totals,
    /// Host memory.
    pub host_memory: MemoryStatus,
    /// The latest failures, newest last.
    pub failures: Vec<Failure>,
    /// Results that are kept.
    pub results_kept: usize,
    /// Bytes of inputs of jobs that are not finished.
    pub queued_bytes: u64,
    /// Since the engine was opened.
    pub uptime: Duration,
    /// Whether no more jobs are accepted.
    pub draining: bool,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceStatus {
    /// The driver's ordinal; none for the CPU.
    pub ordinal: Option<usize>,
    /// Such as "NVIDIA H200" or "cpu (16 threads)".
    pub name: String,
    /// Whether it only takes what failed elsewhere.
    pub fallback: bool,
    /// Device memory in bytes; 0 for the CPU.
    pub memory_total: u64,
    /// Of which free as far as this engine's own use goes.
    pub memory_free: u64,
    /// What it proves: job, kind, partition.
    pub proving: Vec<(JobId, ProofKind, usize)>,
    /// Partitions that it proved.
    pub proved: u64,
    /// Partitions that failed on it.
    pub failed: u64,
    /// The time in which it had at least one partition.
    pub busy: Duration,
}

/// Where parameters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Where the prover uses them: decoded in the CPU prover's memory, or on a device.
    Hot,
    /// Opened and mapped.
    Warm,
    /// In their file.
    Cold,
}

impl Tier {
    /// The tier in one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Warm => "warm",
            Self::Cold => "cold",
        }
    }
}

/// The parameters of one circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParametersStatus {
    /// The circuit.
    pub circuit: CircuitId,
    /// Where they are.
    pub tier: Tier,
    /// Their size in bytes.
    pub bytes: u64,
    /// Partitions that use them now.
    pub users: u32,
    /// Whether the compiled circuit is there as well.
    pub compiled: bool,
}

/// The jobs of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStatus {
    /// The kind.
    pub kind: ProofKind,
    /// Jobs that are not started.
    pub pending: u32,
    /// Jobs that are started and not finished.
    pub in_progress: u32,
}

/// A job that has been started and not finished.
#[derive(Clone, Debug)]
pub struct RunningJob {
    /// The job.
    pub job: JobId,
    /// The client's own name for it.
    pub request_id: Option<String>,
    /// Its circuit.
    pub circuit: CircuitId,
    /// Its level.
    pub priority: Priority,
    /// When it was accepted, by the machine's clock.
    pub accepted: SystemTime,
    /// Since the work on it began.
    pub running: Duration,
    /// Its partitions; empty while the request is parsed.
    pub partitions: Vec<PartitionStatus>,
}

/// One partition of a running job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionStatus {
    /// What it is at.
    pub stage: Stage,
    /// Since it got there.
    pub since: Duration,
    /// The device that proves or proved it: an index into [`EngineStatus::devices`].
    pub device: Option<usize>,
    /// How often its proof was begun.
    pub attempts: u32,
    /// Its finished synthesis took this long.
    pub synthesis: Duration,
    /// Its finished proof took this long.
    pub prove: Duration,
}

/// Jobs that ended since the engine was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// With a proof.
    pub completed: u64,
    /// Without one.
    pub failed: u64,
    /// By cancellation.
    pub cancelled: u64,
    /// Partitions proved.
    pub partitions: u64,
    /// Partitions tried again.
    pub retries: u64,
    /// Time spent in synthesis.
    pub synthesis: Duration,
    /// Time spent in proofs.
    pub prove: Duration,
    /// Completed jobs by kind, in the order of [`ProofKind::ALL`].
    pub completed_by_kind: [u64; 4],
}

/// A memory budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStatus {
    /// Bytes reserved now.
    pub used: u64,
    /// The most that may be.
    pub limit: u64,
    /// The most that have been.
    pub peak: u64,
}

/// A job that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// When, by the machine's clock.
    pub at: SystemTime,
    /// The job.
    pub job: JobId,
    /// Its circuit.
    pub circuit: CircuitId,
    /// Why.
    pub message: String,
}

/// What a preload found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preloaded {
    /// The parameters were there.
    pub already_loaded: bool,
    /// How long loading took.
    pub load_time: Duration,
}

/// What an eviction found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// The parameters were loaded.
    pub was_loaded: bool,
    /// Bytes that were freed at once.
    pub freed_bytes: u64,
    /// The parameters are in use and go as soon as they are not.
    pub deferred: bool,
}

/// What is left after a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Jobs that are not finished and stay in the journal: they run after a restart.
    pub checkpointed: usize,
    /// Jobs that are not finished and were failed, for there is no journal.
    pub lost: usize,
}
