//! What an engine tells its subscribers.

use std::time::SystemTime;

use cuzk_filecoin::CircuitId;

use crate::{JobId, JobState, Tier};

/// What part of its work a job or a partition is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The request is read and checked.
    Parse,
    /// A partition waits for memory, parameters or a worker.
    Waiting,
    /// A partition's witness is made.
    Synthesis,
    /// A partition's witness is ready and waits for a device.
    Ready,
    /// A device proves a partition, and its proof is verified.
    Prove,
    /// A failed partition is looked into.
    Diagnose,
    /// A partition's verified proof is there.
    Proved,
    /// The partitions' proofs are put together and checked by the official verifier.
    Assemble,
}

impl Stage {
    /// The stage in one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Waiting => "waiting",
            Self::Synthesis => "synthesis",
            Self::Ready => "ready",
            Self::Prove => "prove",
            Self::Diagnose => "diagnose",
            Self::Proved => "proved",
            Self::Assemble => "assemble",
        }
    }
}

/// Something happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// When, by the machine's clock.
    pub at: SystemTime,
    /// What.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A job was accepted.
    Accepted {
        /// The job.
        job: JobId,
        /// Its circuit.
        circuit: CircuitId,
    },
    /// A job went on to a stage (parse or assemble).
    Job {
        /// The job.
        job: JobId,
        /// The stage.
        stage: Stage,
    },
    /// A partition went on to a stage.
    Partition {
        /// The job.
        job: JobId,
        /// The partition, from 0.
        partition: usize,
        /// The stage.
        stage: Stage,
        /// The device, where one is involved: an index into [`crate::EngineStatus::devices`].
        device: Option<usize>,
    },
    /// A partition failed and is tried again.
    Retry {
        /// The job.
        job: JobId,
        /// The partition, from 0.
        partition: usize,
        /// What went wrong.
        message: String,
    },
    /// A job ended.
    Finished {
        /// The job.
        job: JobId,
        /// How.
        state: JobState,
    },
    /// A circuit's parameters moved.
    Parameters {
        /// The circuit.
        circuit: CircuitId,
        /// Where they are now.
        tier: Tier,
    },
}
