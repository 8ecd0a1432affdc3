//! What an engine's threads and its callers share.

use std::{
    collections::{HashMap, VecDeque},
    marker::PhantomData,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use cuzk_filecoin::{CircuitId, ProofRequest};
use tokio::sync::{Notify, broadcast};

use crate::{
    Drained, Event, EventKind, Executor, Failure, Footprint, JobId, JobResult, JobState,
    PreloadError, QueueLimits,
    journal::{Digest, Journal, ResultRecord},
    memory::Pool,
    results::Results,
    scheduler::{Finished, Key, Payloads, Scheduler},
};

/// The latest failures that a status shows.
const FAILURES: usize = 32;

/// The payloads of an executor.
pub(super) struct Of<E>(PhantomData<E>);

impl<E: Executor> Payloads for Of<E> {
    type Input = Input;
    type Request = E::Request;
    type Parameters = E::Parameters;
    type Synthesis = E::Synthesis;
}

/// Where a request's bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Memory(Arc<ProofRequest>),
    File(PathBuf),
}

pub(super) struct Shared<E: Executor> {
    pub executor: E,
    pub journal: Option<Journal>,
    pub memory: Pool,
    pub queue: QueueLimits,
    /// The only device that takes new work, if there is only one.
    pub only_device: Option<String>,
    /// What makes the names of this engine's jobs unlike those of others.
    pub instance: u64,
    pub state: Mutex<State<E>>,
    /// Held while a job is written to the journal, so that two with one id do not both get in.
    pub accepting: Mutex<()>,
    /// There may be work for a lane.
    pub work: Condvar,
    /// A task or a job has ended.
    pub changed: Notify,
    pub events: broadcast::Sender<Event>,
    pub opened: Instant,
}

pub(super) struct State<E: Executor> {
    pub scheduler: Scheduler<Of<E>>,
    /// Jobs whose result has not been published.
    pub live: HashMap<JobId, Live>,
    /// The jobs of clients' own names.
    pub requests: HashMap<String, Known>,
    pub results: Results,
    pub failures: VecDeque<Failure>,
    pub next_key: Key,
    pub draining: bool,
    pub stop: bool,
}

pub(super) struct Live {
    pub key: Key,
    pub digest: Digest,
    pub completion: Arc<Completion>,
}

#[derive(Clone)]
pub(super) struct Known {
    pub job: JobId,
    pub digest: Digest,
}

/// Where waiters wait for one job.
#[derive(Default)]
pub(super) struct Completion {
    result: Mutex<Option<Arc<JobResult>>>,
    threads: Condvar,
    tasks: Notify,
}

impl Completion {
    fn get(&self) -> Option<Arc<JobResult>> {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        result.clone()
    }

    fn set(&self, result: Arc<JobResult>) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.threads.notify_all();
        self.tasks.notify_waiters();
    }

    pub async fn wait(&self) -> Arc<JobResult> {
        loop {
            let notified = self.tasks.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if let Some(result) = self.get() {
                return result;
            }
            notified.await;
        }
    }

    pub fn wait_blocking(&self, limit: Option<Duration>) -> Option<Arc<JobResult>> {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = |result: &mut Option<_>| result.is_none();
        let result = match limit {
            None => self
                .threads
                .wait_while(result, unknown)
                .unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                self.threads
                    .wait_timeout_while(result, limit, unknown)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        };
        result.clone()
    }
}

impl<E: Executor> Shared<E> {
    pub fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine's clock: since it was opened.
    pub fn now(&self) -> Duration {
        self.opened.elapsed()
    }

    /// What a circuit takes, if that can ever be had.
    pub fn footprint_of(&self, circuit: CircuitId) -> Result<Footprint, PreloadError> {
        let footprint = self.executor.footprint(circuit);
        let footprint =
            footprint.map_err(|message| PreloadError::Parameters { circuit, message })?;
        let limit = self.memory.limit();
        if footprint.parameters > limit {
            return Err(PreloadError::NeverFits {
                circuit,
                needed: footprint.parameters,
                limit,
            });
        }
        Ok(footprint)
    }

    pub fn tell(&self, kind: EventKind) {
        let at = SystemTime::now();
        // Nobody may be listening.
        let _ = self.events.send(Event { at, kind });
    }

    /// Tells what the scheduler has to tell; lets go of the lock for what takes time.
    pub fn settle<'a>(&'a self, mut state: MutexGuard<'a, State<E>>) -> MutexGuard<'a, State<E>> {
        loop {
            let effects = state.scheduler.take_effects();
            if effects.is_empty() {
                return state;
            }
            for event in effects.events {
                self.tell(event);
            }
            drop(state);
            if !effects.garbage.is_empty() {
                drop(effects.garbage);
                self.work.notify_all();
            }
            if let Some(journal) = &self.journal {
                for (key, partition, proof) in effects.checkpoints {
                    if let Err(error) = journal.checkpoint(key, partition, &proof) {
                        tracing::warn!(%error, "a partition's proof is not kept");
                    }
                }
            }
            for finished in effects.finished {
                self.publish(finished);
            }
            state = self.lock();
        }
    }

    /// Makes a result known, once it is on disk.
    fn publish(&self, finished: Finished) {
        let Finished {
            key,
            circuit,
            result,
        } = finished;
        let digest = self.lock().live.get(&result.job).map(|live| live.digest);
        if let Some(journal) = &self.journal {
            let record = ResultRecord {
                result: result.clone(),
                digest: digest.unwrap_or_default(),
                finished: millis(SystemTime::now()),
            };
            if let Err(error) = journal.finish(key, &record) {
                tracing::error!(%error, job = %result.job, "a result is not kept: the job runs again after a restart");
            }
        }
        let (job, ended) = (result.job.clone(), result.state);
        tracing::info!(%job, %circuit, state = ?ended, message = result.message, "job ended");
        let result = Arc::new(result);
        let mut state = self.lock();
        if ended == JobState::Failed {
            if state.failures.len() == FAILURES {
                state.failures.pop_front();
            }
            state.failures.push_back(Failure {
                at: SystemTime::now(),
                job: job.clone(),
                circuit,
                message: result.message.clone(),
            });
        }
        let now = self.now();
        state
            .results
            .keep(key, Arc::clone(&result), Duration::ZERO, now);
        let live = state.live.remove(&job);
        self.prune(state);
        self.tell(EventKind::Finished { job, state: ended });
        if let Some(live) = live {
            live.completion.set(result);
        }
        self.changed.notify_waiters();
    }

    /// Forgets results that are too many or too old.
    pub fn prune(&self, mut state: MutexGuard<'_, State<E>>) {
        let gone = state.results.prune(self.now());
        let mut keys = Vec::with_capacity(gone.len());
        for (key, result) in gone {
            keys.push(key);
            if let Some(id) = &result.request_id
                && state
                    .requests
                    .get(id)
                    .is_some_and(|known| known.job == result.job)
            {
                state.requests.remove(id);
            }
        }
        drop(state);
        if let (Some(journal), false) = (&self.journal, keys.is_empty())
            && let Err(error) = journal.forget(&keys)
        {
            tracing::warn!(%error, "expired results stay in the journal");
        }
    }

    /// Starts no work any more.
    pub fn halt(&self) {
        let mut state = self.lock();
        state.draining = true;
        state.stop = true;
        state.scheduler.discourage();
        drop(state);
        self.work.notify_all();
        self.changed.notify_waiters();
    }

    /// Ends the work after a drain: what is not finished stays in the journal, or is cancelled.
    pub fn stop(&self, kept: bool) -> Drained {
        let mut state = self.lock();
        let unfinished = state.live.len();
        if !kept {
            let now = self.now();
            for key in state.live.values().map(|live| live.key).collect::<Vec<_>>() {
                state
                    .scheduler
                    .cancel(key, "the engine is shutting down", now);
            }
            drop(self.settle(state));
        } else {
            drop(state);
        }
        self.halt();
        Drained {
            checkpointed: if kept { unfinished } else { 0 },
            lost: if kept { 0 } else { unfinished },
        }
    }
}

/// Milliseconds since 1970.
pub(super) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
