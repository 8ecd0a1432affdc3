//! Jobs as their clients see them: what is submitted, what comes back.

use std::{fmt, str::FromStr, time::Duration};

use cuzk_filecoin::{CircuitId, ProofKind, ProofRequest};
use serde::{Deserialize, Serialize};

/// How urgent a job is. Higher levels go first; see [`crate::EngineConfig::ageing`] for what keeps
/// lower ones going.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Priority {
    /// When nothing else is to be done.
    Low,
    /// Proofs of replication and updates.
    Normal,
    /// Window proofs.
    High,
    /// Winning proofs.
    Critical,
}

impl Priority {
    /// Every level, lowest first.
    pub const ALL: [Self; 4] = [Self::Low, Self::Normal, Self::High, Self::Critical];

    /// The level of a kind of proof whose client names none.
    pub const fn of(kind: ProofKind) -> Self {
        match kind {
            ProofKind::Porep | ProofKind::Update => Self::Normal,
            ProofKind::Window => Self::High,
            ProofKind::Winning => Self::Critical,
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Critical => "critical",
        })
    }
}

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL
            .into_iter()
            .find(|level| level.to_string() == text);
        found.ok_or_else(|| format!("expected low, normal, high or critical, found {text:?}"))
    }
}

/// A job's name: unique for ever, also across restarts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId(pub(crate) String);

impl JobId {
    /// The name as a client sent it; nothing says that there is such a job.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is to be proved, and how.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The client's own name for the request: the same one again joins the job or returns its
    /// result. Empty is none.
    pub request_id: Option<String>,
    /// The client's fields and bytes.
    pub request: ProofRequest,
    /// How urgent it is; by kind if none is given.
    pub priority: Option<Priority>,
    /// The job is cancelled when it is not finished after this time.
    pub deadline: Option<Duration>,
}

impl Submission {
    /// A request without an id, at its kind's priority, without a deadline.
    pub fn new(request: ProofRequest) -> Self {
        Self {
            request_id: None,
            request,
            priority: None,
            deadline: None,
        }
    }

    /// The same with an id.
    pub fn with_id(self, request_id: impl Into<String>) -> Self {
        Self {
            request_id: Some(request_id.into()),
            ..self
        }
    }
}

/// An accepted job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Its name.
    pub job: JobId,
    /// How many jobs that are not started go before it; 0 for one that is running or finished.
    pub queue_position: u32,
    /// The device that is sure to prove it, if there is only one.
    pub device: Option<String>,
    /// Whether it was known: no new job was made.
    pub joined: bool,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum JobState {
    /// There is a verified proof.
    Completed,
    /// There is none, and the message says why.
    Failed,
    /// The client or its deadline ended it.
    Cancelled,
}

/// Where a job's time went. Partitions overlap, so that sums of theirs may exceed `total`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobTimes {
    /// From acceptance to the first work on it.
    pub queue_wait: Duration,
    /// Loading the parameters, where it had to be done for this job.
    pub srs_load: Duration,
    /// Parsing the request and synthesising the partitions.
    pub synthesis: Duration,
    /// From the start of the partitions' proofs to their end, all partitions together.
    pub gpu_compute: Duration,
    /// From acceptance to the end.
    pub total: Duration,
}

/// How a job ended, and with what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobResult {
    /// The job.
    pub job: JobId,
    /// The client's own name for it.
    pub request_id: Option<String>,
    /// The circuit, as [`CircuitId`] displays it.
    pub circuit: String,
    /// How it ended.
    pub state: JobState,
    /// 192 bytes a partition, in their order; empty unless completed.
    pub proof: Vec<u8>,
    /// Why there is no proof; empty if there is one.
    pub message: String,
    /// Where the time went.
    pub times: JobTimes,
}

impl JobResult {
    /// The circuit, if this version knows it.
    pub fn circuit_id(&self) -> Option<CircuitId> {
        self.circuit.parse().ok()
    }
}

/// What waiting for a job brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited {
    /// There is no such job, or its result has expired.
    Unknown,
    /// It was not finished in time.
    Timeout,
    /// How it ended.
    Done(std::sync::Arc<JobResult>),
}

/// What a cancellation met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelOutcome {
    /// Work on the job had begun and it was not finished.
    pub was_running: bool,
    /// The job had ended before.
    pub was_finished: bool,
}
