//! A job on its way.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use cuzk_filecoin::CircuitId;

use super::Payloads;
use crate::{
    JobId, JobTimes, Parsed, PartitionProof, Priority, Stage, executor::CancelToken,
    memory::Reservation,
};

/// A job as it is accepted.
pub(crate) struct NewJob<P: Payloads> {
    pub name: JobId,
    pub request_id: Option<String>,
    pub circuit: CircuitId,
    pub level: Priority,
    pub input: P::Input,
    pub input_bytes: u64,
    pub accepted: SystemTime,
    /// On the scheduler's clock.
    pub deadline: Option<Duration>,
    /// Proofs from before a restart.
    pub restored: BTreeMap<usize, PartitionProof>,
}

/// A job that is not finished.
pub(crate) struct Job<P: Payloads> {
    pub name: JobId,
    pub request_id: Option<String>,
    pub circuit: CircuitId,
    pub level: Priority,
    pub input: P::Input,
    pub input_bytes: u64,
    pub accepted: SystemTime,
    pub deadline: Option<Duration>,
    pub submitted: Duration,
    pub started: Option<Duration>,
    pub phase: Phase<P>,
    /// Proofs that were made before the request was last parsed.
    pub restored: BTreeMap<usize, PartitionProof>,
    /// What went wrong so far, by partition.
    pub troubles: BTreeMap<usize, Trouble>,
    pub cancel: CancelToken,
    pub times: JobTimes,
    /// Counted in its level's `opened`.
    pub opened: bool,
}

/// How far a job is.
pub(crate) enum Phase<P: Payloads> {
    /// Its request is bytes.
    Queued,
    /// Its request is being read.
    Parsing,
    /// Its request is parsed.
    Open {
        request: P::Request,
        memory: Reservation,
        partitions: Vec<Partition>,
    },
}

/// One partition of an open job.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    pub stage: Stage,
    pub since: Duration,
    pub device: Option<usize>,
    pub proof: Option<PartitionProof>,
    pub synthesis: Duration,
    pub prove: Duration,
}

/// Failed attempts at a partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble {
    pub attempts: u32,
    /// The device of the last one.
    pub device: Option<usize>,
    /// What was found out about the first one.
    pub first: Option<String>,
}

impl<P: Payloads> Job<P> {
    pub fn new(job: NewJob<P>, now: Duration) -> Self {
        Self {
            name: job.name,
            request_id: job.request_id,
            circuit: job.circuit,
            level: job.level,
            input: job.input,
            input_bytes: job.input_bytes,
            accepted: job.accepted,
            deadline: job.deadline,
            submitted: now,
            started: None,
            phase: Phase::Queued,
            restored: job.restored,
            troubles: BTreeMap::new(),
            cancel: CancelToken::default(),
            times: JobTimes::default(),
            opened: false,
        }
    }

    pub fn partitions(&self) -> &[Partition] {
        match &self.phase {
            Phase::Open { partitions, .. } => partitions,
            _ => &[],
        }
    }

    pub fn partitions_mut(&mut self) -> &mut [Partition] {
        match &mut self.phase {
            Phase::Open { partitions, .. } => partitions,
            _ => &mut [],
        }
    }

    /// The first partition that may be synthesised.
    pub fn first_waiting(&self) -> Option<usize> {
        let waiting = |partition: &Partition| partition.stage == Stage::Waiting;
        self.partitions().iter().position(waiting)
    }

    /// Whether every partition is waiting or proved.
    pub fn is_at_rest(&self) -> bool {
        let rests = |p: &Partition| matches!(p.stage, Stage::Waiting | Stage::Proved);
        self.partitions().iter().all(rests)
    }

    /// The proofs of all partitions, if all are there.
    pub fn proofs(&self) -> Option<Vec<PartitionProof>> {
        self.partitions().iter().map(|p| p.proof).collect()
    }

    /// Takes the parsed request in.
    pub fn open(&mut self, parsed: Parsed<P::Request>, memory: Reservation, now: Duration) {
        let partitions = (0..parsed.partitions).map(|k| {
            let proof = self.restored.get(&k).copied();
            Partition {
                stage: if proof.is_some() {
                    Stage::Proved
                } else {
                    Stage::Waiting
                },
                since: now,
                device: None,
                proof,
                synthesis: Duration::ZERO,
                prove: Duration::ZERO,
            }
        });
        self.phase = Phase::Open {
            request: parsed.request,
            memory,
            partitions: partitions.collect(),
        };
    }

    /// Gives the parsed request up, but keeps the proofs.
    pub fn close(&mut self) -> Option<(P::Request, Reservation)> {
        match std::mem::replace(&mut self.phase, Phase::Queued) {
            Phase::Open {
                request,
                memory,
                partitions,
            } => {
                let proofs = partitions.into_iter().enumerate();
                self.restored
                    .extend(proofs.filter_map(|(k, p)| Some((k, p.proof?))));
                Some((request, memory))
            }
            other => {
                self.phase = other;
                None
            }
        }
    }
}
