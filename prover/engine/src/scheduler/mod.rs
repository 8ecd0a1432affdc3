//! Who does what next: a state machine without threads, clocks or work of its own.
//!
//! Whoever drives it says what time it is, asks what a free lane should do ([`Scheduler::next`]), and
//! reports how that ended ([`Scheduler::complete`]). The engine drives it with threads, the simulation
//! with a list of future events; both get the same decisions. Whatever is to be told to others
//! collects in [`Effects`].

mod choose;
mod circuits;
mod complete;
mod job;
mod report;
mod start;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use cuzk_filecoin::CircuitId;

use crate::{
    DeviceSpec, Diagnosis, EventKind, Footprint, JobResult, Loaded, Parsed, PartitionProof,
    Priority, Stage, TaskError, Totals, executor::CancelToken, memory::Pool, memory::Reservation,
};
use circuits::Circuit;
pub(crate) use circuits::Preload;
use circuits::Residency;
use job::Job;
pub(crate) use job::NewJob;
pub(crate) use start::REQUEST_FACTOR;

/// A job's number: the order of acceptance.
pub(crate) type Key = u64;
/// The number of a task.
pub(crate) type TaskId = u64;

/// What passes through the scheduler unseen.
pub(crate) trait Payloads: 'static {
    /// Where a request's bytes are.
    type Input: Clone;
    /// A parsed request.
    type Request: Clone;
    /// Loaded parameters.
    type Parameters: Clone;
    /// A synthesised partition.
    type Synthesis;
}

/// Numbers that do not change.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Partitions that are synthesised at once. One more may be of a critical job or an overdue level.
    pub synthesis_workers: usize,
    /// Partitions that are being synthesised or wait for a device. One more as above.
    pub ahead: usize,
    /// Partitions that each device has started at once.
    pub device_slots: usize,
    /// See [`crate::EngineConfig::ageing`].
    pub ageing: Duration,
    /// The most bytes of each device.
    pub device_limits: Vec<u64>,
}

impl Settings {
    /// Threads that keep the host's lanes busy: the syntheses, one for a critical job, and one for
    /// requests, parameters and finished jobs.
    pub fn host_lanes(&self) -> usize {
        self.synthesis_workers + 2
    }
}

/// Something that does one task at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// A thread of the host.
    Host,
    /// One of a device's slots.
    Device(usize),
}

/// Work to be done.
pub(crate) enum Task<P: Payloads> {
    /// Read and check a request.
    Parse { input: P::Input },
    /// Load parameters.
    Load,
    /// Synthesise a partition.
    Synthesise {
        request: P::Request,
        partition: usize,
        parameters: P::Parameters,
        cancel: CancelToken,
    },
    /// Prove a partition.
    Prove {
        device: usize,
        parameters: P::Parameters,
        synthesis: P::Synthesis,
        cancel: CancelToken,
    },
    /// Look into a failure.
    Diagnose {
        request: P::Request,
        partition: usize,
        error: TaskError,
    },
    /// Join a job's proofs and verify the whole.
    Assemble {
        request: P::Request,
        proofs: Vec<PartitionProof>,
    },
}

/// A task and what it is about.
pub(crate) struct Assigned<P: Payloads> {
    pub id: TaskId,
    pub circuit: CircuitId,
    pub task: Task<P>,
}

/// How a task ended.
pub(crate) enum Outcome<P: Payloads> {
    Parsed(Result<Parsed<P::Request>, TaskError>),
    Loaded(Result<Loaded<P::Parameters>, TaskError>),
    Synthesised(Result<P::Synthesis, TaskError>),
    Proved(Result<PartitionProof, TaskError>),
    Diagnosed(Diagnosis),
    Assembled(Result<Vec<u8>, TaskError>),
}

/// A job that ended.
pub(crate) struct Finished {
    pub key: Key,
    pub circuit: CircuitId,
    pub result: JobResult,
}

/// Large things to be dropped outside any lock, with the memory that they hold.
#[expect(dead_code, reason = "held only to be dropped")]
pub(crate) enum Garbage<P: Payloads> {
    Parameters(P::Parameters, Reservation),
    Synthesis(P::Synthesis, Reservation),
    Request(P::Request, Reservation),
}

/// What others have to be told.
pub(crate) struct Effects<P: Payloads> {
    pub events: Vec<EventKind>,
    pub finished: Vec<Finished>,
    pub checkpoints: Vec<(Key, usize, PartitionProof)>,
    pub garbage: Vec<Garbage<P>>,
}

impl<P: Payloads> Effects<P> {
    fn new() -> Self {
        Self {
            events: Vec::new(),
            finished: Vec::new(),
            checkpoints: Vec::new(),
            garbage: Vec::new(),
        }
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.finished.is_empty()
            && self.checkpoints.is_empty()
            && self.garbage.is_empty()
    }
}

/// The jobs of one level that have work to be started.
#[derive(Debug, Default)]
struct Level {
    jobs: BTreeSet<Key>,
    /// Since when there has been at least one.
    since: Duration,
    /// When a partition was last started.
    served: Duration,
    /// Jobs whose request is parsed or being parsed and none of whose partitions has been started.
    opened: usize,
}

/// A synthesised partition that waits for a device.
struct Ready<P: Payloads> {
    key: Key,
    partition: usize,
    level: Priority,
    circuit: CircuitId,
    synthesis: P::Synthesis,
    memory: Reservation,
    since: Duration,
    /// The device that failed it before.
    avoid: Option<usize>,
}

/// What a lane is busy with.
struct Running {
    /// The job; none for parameters that were asked for by themselves.
    key: Option<Key>,
    circuit: CircuitId,
    work: Work,
    started: Duration,
    memory: Vec<Reservation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Parse,
    Load,
    Synthesise(usize),
    Prove { partition: usize, device: usize },
    Diagnose(usize),
    Assemble,
}

impl Work {
    /// Whether it keeps the circuit's parameters from being unloaded.
    fn uses_parameters(self) -> bool {
        matches!(self, Self::Synthesise(_) | Self::Prove { .. })
    }
}

struct Device {
    spec: DeviceSpec,
    limit: u64,
    /// Job and partition of the tasks in its slots.
    proving: Vec<(TaskId, Key, usize)>,
    /// Circuits whose parameters it holds, latest last.
    hot: Vec<CircuitId>,
    proved: u64,
    failed: u64,
    busy: Duration,
    busy_since: Duration,
}

/// The state machine.
pub(crate) struct Scheduler<P: Payloads> {
    settings: Settings,
    memory: Pool,
    devices: Vec<Device>,
    circuits: BTreeMap<CircuitId, Circuit<P>>,
    jobs: BTreeMap<Key, Job<P>>,
    levels: [Level; 4],
    ready: Vec<Ready<P>>,
    diagnoses: VecDeque<(Key, usize, TaskError)>,
    assemblies: VecDeque<Key>,
    running: BTreeMap<TaskId, Running>,
    deadlines: BTreeSet<(Duration, Key)>,
    synthesising: usize,
    /// When parameters were last loaded.
    last_load: Duration,
    next_task: TaskId,
    queued_bytes: u64,
    totals: Totals,
    /// No job is started that has not been.
    hold: bool,
    effects: Effects<P>,
}

impl<P: Payloads> Scheduler<P> {
    pub fn new(settings: Settings, memory: Pool, devices: Vec<DeviceSpec>) -> Self {
        let limits = settings.device_limits.iter().copied();
        let limits = limits.chain(std::iter::repeat(0));
        let devices = devices.into_iter().zip(limits).map(Device::new).collect();
        Self {
            settings,
            memory,
            devices,
            circuits: BTreeMap::new(),
            jobs: BTreeMap::new(),
            levels: Default::default(),
            ready: Vec::new(),
            diagnoses: VecDeque::new(),
            assemblies: VecDeque::new(),
            running: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            synthesising: 0,
            last_load: Duration::ZERO,
            next_task: 0,
            queued_bytes: 0,
            totals: Totals::default(),
            hold: false,
            effects: Effects::new(),
        }
    }

    /// What has to be told since this was last called.
    pub fn take_effects(&mut self) -> Effects<P> {
        std::mem::replace(&mut self.effects, Effects::new())
    }

    /// What a lane should do now; none when there is nothing that may be started.
    pub fn next(&mut self, lane: Lane, now: Duration) -> Option<Assigned<P>> {
        match lane {
            Lane::Host => self.next_on_host(now),
            Lane::Device(device) => self.next_on_device(device, now),
        }
    }

    /// Accepts a job.
    pub fn submit(&mut self, key: Key, job: NewJob<P>, footprint: Footprint, now: Duration) {
        self.know(job.circuit, footprint);
        self.effects.events.push(EventKind::Accepted {
            job: job.name.clone(),
            circuit: job.circuit,
        });
        if let Some(deadline) = job.deadline {
            self.deadlines.insert((deadline, key));
        }
        self.queued_bytes += job.input_bytes;
        self.jobs.insert(key, Job::new(job, now));
        self.enqueue(key, now);
    }

    /// Ends a job; whether work on it had begun, or none if there is no such job.
    pub fn cancel(&mut self, key: Key, message: &str, now: Duration) -> Option<bool> {
        let was_running = self.jobs.get(&key)?.started.is_some();
        self.finish(key, crate::JobState::Cancelled, Vec::new(), message, now);
        Some(was_running)
    }

    /// Ends a job in another way.
    pub fn end(&mut self, key: Key, state: crate::JobState, message: &str, now: Duration) {
        self.finish(key, state, Vec::new(), message, now);
    }

    /// Tells the work of all jobs that it is no longer wanted.
    pub fn discourage(&mut self) {
        for job in self.jobs.values() {
            job.cancel.cancel();
        }
    }

    /// Whether there is nothing to tell.
    pub fn is_quiet(&self) -> bool {
        self.effects.is_empty()
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Partitions that a device has started at once.
    pub fn slots(&self, device: usize) -> usize {
        if self.devices.get(device).is_some_and(|d| d.spec.fallback) {
            1
        } else {
            self.settings.device_slots
        }
    }

    /// Ends the jobs whose deadline has passed.
    pub fn expire(&mut self, now: Duration) {
        while let Some(&(deadline, key)) = self.deadlines.first() {
            if deadline > now {
                break;
            }
            self.deadlines.remove(&(deadline, key));
            self.cancel(key, "the deadline passed", now);
        }
    }

    /// Starts no more jobs that have not been started.
    pub fn hold(&mut self) {
        self.hold = true;
    }

    /// Jobs that are not finished.
    pub fn job_count(&self) -> usize {
        self.jobs.len()
    }

    /// Jobs that have been started and are not finished.
    pub fn started_count(&self) -> usize {
        let started = |job: &&Job<P>| job.started.is_some();
        self.jobs.values().filter(started).count()
    }

    /// Input bytes of the jobs that are not finished.
    pub fn queued_bytes(&self) -> u64 {
        self.queued_bytes
    }

    /// How many jobs with work to be started go before a job.
    pub fn position(&self, key: Key) -> u32 {
        let Some(job) = self.jobs.get(&key).filter(|job| job.started.is_none()) else {
            return 0;
        };
        let higher = Priority::ALL.iter().filter(|level| **level > job.level);
        let higher: usize = higher
            .map(|&level| self.levels[level as usize].jobs.len())
            .sum();
        let before = self.levels[job.level as usize].jobs.range(..key).count();
        (higher + before) as u32
    }

    /// Puts a job where its unstarted work is found.
    fn enqueue(&mut self, key: Key, now: Duration) {
        let Some(job) = self.jobs.get(&key) else {
            return;
        };
        let level = &mut self.levels[job.level as usize];
        if level.jobs.is_empty() && level.opened == 0 {
            level.since = now;
        }
        level.jobs.insert(key);
    }

    /// Moves a partition on, and says so.
    fn set_stage(&mut self, key: Key, partition: usize, stage: Stage, now: Duration) {
        let Some(job) = self.jobs.get_mut(&key) else {
            return;
        };
        let Some(found) = job.partitions_mut().get_mut(partition) else {
            return;
        };
        found.stage = stage;
        found.since = now;
        let device = found
            .device
            .filter(|_| matches!(stage, Stage::Prove | Stage::Proved));
        self.effects.events.push(EventKind::Partition {
            job: job.name.clone(),
            partition,
            stage,
            device,
        });
    }
}

impl Device {
    fn new((spec, limit): (DeviceSpec, u64)) -> Self {
        Self {
            spec,
            limit,
            proving: Vec::new(),
            hot: Vec::new(),
            proved: 0,
            failed: 0,
            busy: Duration::ZERO,
            busy_since: Duration::ZERO,
        }
    }
}
