//! One device: what stays on it, who may work on it, and whether it is trusted.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cuzk_kernels::runtime::{DeviceBuffer, Runtime, RuntimeError};
use tracing::{error, warn};

use super::evaluate::CircuitTables;
use super::lane::Lane;
use super::plan::{Choices, Plan, Room, Shape};
use super::pool::{Entry, InFlight, Kept, Pool};
use super::proof::{AnyError, Work};
use super::resident::{Resident, ResidentError};
use crate::{Proof, ProveError, backend::Job, setup::SetupError, timeline::Span};

/// Failures in a row after which a device is no longer used.
const MOST_FAILURES: u32 = 3;
/// How often a waiting proof asks whether it is still wanted.
const PATIENCE: Duration = Duration::from_millis(100);

/// A device and its state.
pub struct Device {
    /// Its place in the list of devices.
    pub number: usize,
    runtime: Arc<dyn Runtime>,
    /// The most device memory that proofs may take, parameters included.
    limit: Option<u64>,
    choices: Choices,
    pub(super) in_flight: AtomicUsize,
    failures: AtomicU32,
    broken: AtomicBool,
    pool: Mutex<Pool>,
    pub(super) changed: Condvar,
}

impl Device {
    /// A device of which proofs take at most `limit` bytes.
    pub fn new(
        number: usize,
        runtime: Arc<dyn Runtime>,
        limit: Option<u64>,
        choices: Choices,
    ) -> Self {
        Device {
            number,
            runtime,
            limit,
            choices,
            in_flight: AtomicUsize::new(0),
            failures: AtomicU32::new(0),
            broken: AtomicBool::new(false),
            pool: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Its name and number.
    pub fn name(&self) -> String {
        format!("gpu {} ({})", self.number, self.runtime.name())
    }

    /// Proofs in flight.
    pub fn load(&self) -> usize {
        self.in_flight.load(SeqCst)
    }

    /// Whether it was taken out of use.
    pub fn is_broken(&self) -> bool {
        self.broken.load(SeqCst)
    }

    /// Counts a proof as in flight.
    pub fn enter_flight(self: &Arc<Self>) -> InFlight {
        InFlight::new(self)
    }

    /// Makes a proof.
    ///
    /// # Errors
    /// [`ProveError::Backend`] if the device failed.
    pub fn prove(&self, job: &mut Job) -> Result<Proof, ProveError> {
        let outcome = self.try_prove(job);
        match &outcome {
            Ok(_) => self.failures.store(0, SeqCst),
            Err(ProveError::Backend { .. }) => self.count_failure(),
            Err(_) => {}
        }
        outcome
    }

    fn try_prove(&self, job: &mut Job) -> Result<Proof, ProveError> {
        let span = job.timeline.span_in(job.parent, "gpu");
        let mut entry = self.admit(job, &span)?;
        if let (Some(circuit), None) = (&job.circuit, &entry.kept.circuit) {
            span.time("evaluate on the host", || {
                circuit.evaluate_into(&mut job.assignment)
            })?;
        }
        let work = Work {
            job,
            plan: &entry.plan,
            blocks: &entry.blocks,
            resident: &entry.kept.resident,
            circuit: entry.kept.circuit.as_deref(),
        };
        let Some(lane) = &mut entry.lane else {
            return Err(self.failure("a lane was lost".into()));
        };
        let sums = work
            .sums(lane, &span)
            .map_err(|error| self.failure(error))?;
        // The device is free for the next one while the host puts the proof together.
        entry.leave();
        Ok(span.time("assemble", || {
            sums.assemble(job.params.vk(), &job.r, &job.s)
        }))
    }

    /// The plan for a job on this device as it is now.
    ///
    /// # Errors
    /// When it does not fit, or the device does not answer.
    pub fn plan(&self, shape: &Shape) -> Result<Plan, ProveError> {
        let room = self
            .room(&self.pool())
            .map_err(|error| self.failure(error.into()))?;
        self.plan_in(shape, room)
    }

    fn plan_in(&self, shape: &Shape, room: Room) -> Result<Plan, ProveError> {
        Plan::with_choices(shape, room, self.choices).map_err(|source| ProveError::DeviceMemory {
            device: self.name(),
            needed: source.needed,
            limit: source.limit,
        })
    }

    /// Waits until the job may work on the device.
    fn admit(&self, job: &Job, span: &Span) -> Result<Entry<'_>, ProveError> {
        let shape = span.time("count the witness", || {
            Shape::new(&job.params, &job.assignment, job.circuit.as_deref())
        });
        let wait = span.child("wait for the device");
        let mut pool = self.pool();
        let ticket = pool.next;
        pool.next += 1;
        pool.queue.push_back(ticket);
        loop {
            let outcome = match job.cancelled.check() {
                Err(error) => Err(error),
                Ok(()) if pool.queue.front() == Some(&ticket) => {
                    self.try_admit(&mut pool, job, &shape, span)
                }
                Ok(()) => Ok(None),
            };
            if let Some(outcome) = outcome.transpose() {
                pool.queue.retain(|&waiting| waiting != ticket);
                self.changed.notify_all();
                drop(pool);
                drop(wait);
                return outcome;
            }
            pool = self
                .changed
                .wait_timeout(pool, PATIENCE)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Lets the job in, unless it has to wait for others.
    fn try_admit<'a>(
        &'a self,
        pool: &mut Pool,
        job: &Job,
        shape: &Shape,
        span: &Span,
    ) -> Result<Option<Entry<'a>>, ProveError> {
        pool.forget_unwanted();
        let here = pool.position(&job.params);
        let working = pool.busy.len();
        // Only proofs of the same parameters work side by side.
        let others_work = working > 0 && here.is_none_or(|here| here + 1 < pool.kept.len());
        if others_work || working > 0 && working as u32 >= pool.lanes {
            return Ok(None);
        }
        let plan = self.plan_beside(pool, job, shape)?;
        let here = pool.position(&job.params);
        let fits = here.is_some_and(|here| pool.kept[here].serves(job, &plan))
            && plan.shared_bytes() + pool.busy_bytes() + plan.lane_bytes() <= plan.room.bytes
            && working < plan.lanes as usize;
        if working > 0 && !fits {
            return Ok(None);
        }
        match self.set_up(pool, job, &plan, span) {
            Ok((kept, lane)) => {
                let bytes = lane.bytes();
                pool.busy.push(bytes);
                pool.lanes = plan.lanes;
                Ok(Some(Entry {
                    device: self,
                    kept,
                    blocks: shape.blocks.clone(),
                    plan,
                    bytes,
                    lane: Some(lane),
                }))
            }
            Err(error) => {
                pool.clear();
                Err(self.failure(error))
            }
        }
    }

    /// The plan for a job beside the parameters of other circuits, as long as that costs it nothing; the ones
    /// that were not used for the longest time are given up first.
    fn plan_beside(&self, pool: &mut Pool, job: &Job, shape: &Shape) -> Result<Plan, ProveError> {
        loop {
            let room = self
                .room(pool)
                .map_err(|error| self.failure(error.into()))?;
            let oldest = pool
                .kept
                .iter()
                .position(|kept| !kept.resident.is_for(&job.params));
            let others = pool.kept_bytes_besides(&job.params);
            let beside = Room {
                bytes: room.bytes.saturating_sub(others),
                ..room
            };
            match (self.plan_in(shape, beside), oldest) {
                (plan, None) => return plan,
                (Ok(plan), Some(_)) if plan.is_undivided() => return Ok(plan),
                (_, Some(oldest)) => drop(pool.kept.remove(oldest)),
            }
        }
    }

    /// Brings parameters, tables and working memory to what the plan says.
    fn set_up(
        &self,
        pool: &mut Pool,
        job: &Job,
        plan: &Plan,
        span: &Span,
    ) -> Result<(Kept, Lane), AnyError> {
        pool.idle.truncate(plan.lanes as usize - pool.busy.len());
        let kept = match pool.take(&job.params) {
            Some(kept) if kept.serves(job, plan) => kept,
            old => {
                let old = old.filter(|old| old.resident.sets() == plan.resident);
                // Room first: two sets of points may not fit, nor beside memory that was planned for others.
                pool.idle.clear();
                let resident = match old {
                    Some(old) => old.resident,
                    None => {
                        let part = span.child("parameters");
                        Arc::new(Resident::new(
                            &self.runtime,
                            &job.params,
                            plan.resident,
                            &part,
                        )?)
                    }
                };
                Kept {
                    resident,
                    circuit: self.circuit_tables(job, plan, span)?,
                }
            }
        };
        pool.kept.push(kept.clone());
        let mut lane = match pool.idle.pop() {
            Some(lane) => lane,
            None => Lane::new(&self.runtime)?,
        };
        let most = plan.most_arena_bytes();
        pool.idle.retain(|other| other.bytes() <= most);
        let _part = span.child("memory");
        lane.prepare(plan, job.params.counts().domain_log2())?;
        Ok((kept, lane))
    }

    fn circuit_tables(
        &self,
        job: &Job,
        plan: &Plan,
        span: &Span,
    ) -> Result<Option<Arc<CircuitTables>>, RuntimeError> {
        let Some(circuit) = job.circuit.as_ref().filter(|_| plan.circuit_bytes > 0) else {
            return Ok(None);
        };
        let part = span.child("circuit tables");
        let tables = CircuitTables::new(&self.runtime, circuit)?;
        // Other streams read the tables from now on.
        self.runtime.synchronize()?;
        part.note("bytes", tables.bytes());
        Ok(Some(Arc::new(tables)))
    }

    /// All memory that proofs may take on the device now, with what they have already.
    fn room(&self, pool: &Pool) -> Result<Room, RuntimeError> {
        let memory = self.runtime.memory()?;
        let own = pool.bytes();
        // Some is left to the driver.
        let free = (memory.free + own) - (memory.free + own) / 32;
        Ok(Room {
            multiprocessors: self.runtime.multiprocessors(),
            bytes: self.limit.map_or(free, |limit| free.min(limit)),
        })
    }

    /// Counts a failure and decides whether the device is still used.
    pub fn count_failure(&self) {
        let failures = self.failures.fetch_add(1, SeqCst) + 1;
        let answer = self.probe();
        if failures < MOST_FAILURES && answer.is_ok() {
            warn!(device = self.name(), failures, "a proof failed on a device");
            return;
        }
        self.broken.store(true, SeqCst);
        self.pool().clear();
        let reason = answer.err().map(|error| error.to_string());
        error!(
            device = self.name(),
            failures, reason, "a device is no longer used"
        );
    }

    /// Whether the device still answers: after a sticky error it does not.
    fn probe(&self) -> Result<(), RuntimeError> {
        let sent: Vec<u32> = (0..64).collect();
        let buffer = DeviceBuffer::from_slice(&self.runtime, &sent)?;
        self.runtime.synchronize()?;
        if buffer.to_vec()? == sent {
            Ok(())
        } else {
            Err(RuntimeError::device(
                "probe",
                "memory holds other values than were sent",
            ))
        }
    }

    /// An error of the back end, or the error that it wraps.
    fn failure(&self, source: AnyError) -> ProveError {
        let source = match source.downcast::<ProveError>() {
            Ok(error) => return *error,
            Err(source) => source,
        };
        match source.downcast::<ResidentError>() {
            Ok(error) => match *error {
                ResidentError::Params(error) => ProveError::Params(error),
                ResidentError::Setup(SetupError::Device(error)) => self.failure(error.into()),
                ResidentError::Setup(error) => self.failure(error.to_string().into()),
                ResidentError::Runtime(error) => self.failure(error.into()),
            },
            Err(source) => ProveError::Backend {
                backend: self.name(),
                source,
            },
        }
    }

    pub(super) fn pool(&self) -> MutexGuard<'_, Pool> {
        // What a panic left there is whole: lanes and parameters are put in when they are complete.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
