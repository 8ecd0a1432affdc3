//! The engine as its users see it.

mod driver;
mod open;
mod shared;
mod submit;

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use cuzk_filecoin::CircuitId;
use tokio::sync::broadcast;

use crate::{
    CancelOutcome, Drained, EngineConfig, EngineError, EngineStatus, Event, Evicted, Executor,
    Filecoin, JobId, PreloadError, Preloaded, Submission, SubmitError, Submitted, Waited,
    scheduler::Preload,
};
use shared::{Completion, Shared};

/// Takes jobs and brings proofs. Clones are one engine; the last one to go ends its threads, after
/// the tasks that they are at.
pub struct Engine<E: Executor = Filecoin> {
    inner: Arc<Inner<E>>,
}

impl<E: Executor> Clone for Engine<E> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

struct Inner<E: Executor> {
    shared: Arc<Shared<E>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What is known about a job.
enum Found {
    Nothing,
    Result(Waited),
    Live(Arc<Completion>),
}

impl Engine<Filecoin> {
    /// Opens the devices and the journal, and starts the threads. Jobs of the journal that are not
    /// finished run again.
    ///
    /// # Errors
    /// The configuration makes no sense, a device cannot be used, or the journal cannot be read.
    pub fn open(config: EngineConfig) -> Result<Self, EngineError> {
        let executor = Filecoin::open(&config)?;
        Self::with_executor(config, executor)
    }
}

impl<E: Executor> Engine<E> {
    /// An engine that has its work done by `executor`.
    ///
    /// # Errors
    /// As [`Engine::open`], but for the devices.
    pub fn with_executor(config: EngineConfig, executor: E) -> Result<Self, EngineError> {
        let shared = Arc::new(Shared::open(config, executor)?);
        let threads = driver::start(&shared)?;
        Ok(Self {
            inner: Arc::new(Inner {
                shared,
                threads: Mutex::new(threads),
            }),
        })
    }

    /// Accepts a job. Blocks for as long as it takes to write the input to disk.
    ///
    /// The same request under the same id joins the job, or brings its result when it is completed.
    /// A request whose job failed or was cancelled is proved again.
    ///
    /// # Errors
    /// See [`SubmitError`]; nothing of a refused job is kept.
    pub fn submit(&self, submission: Submission) -> Result<Submitted, SubmitError> {
        self.inner.shared.submit(submission)
    }

    /// Waits for a job, at most for `limit` if one is given. With a limit, tokio's timer must run.
    pub async fn wait(&self, job: &JobId, limit: Option<Duration>) -> Waited {
        let completion = match self.find(job) {
            Found::Nothing => return Waited::Unknown,
            Found::Result(waited) => return waited,
            Found::Live(completion) => completion,
        };
        let result = match limit {
            None => Some(completion.wait().await),
            Some(limit) => tokio::time::timeout(limit, completion.wait()).await.ok(),
        };
        self.fetched(job, result)
    }

    /// [`Engine::wait`] for threads.
    pub fn wait_blocking(&self, job: &JobId, limit: Option<Duration>) -> Waited {
        match self.find(job) {
            Found::Nothing => Waited::Unknown,
            Found::Result(waited) => waited,
            Found::Live(completion) => self.fetched(job, completion.wait_blocking(limit)),
        }
    }

    /// The result if there is one: [`Engine::wait`] without waiting.
    pub fn result(&self, job: &JobId) -> Waited {
        match self.find(job) {
            Found::Nothing => Waited::Unknown,
            Found::Result(waited) => waited,
            Found::Live(_) => Waited::Timeout,
        }
    }

    fn find(&self, job: &JobId) -> Found {
        let mut state = self.inner.shared.lock();
        if let Some(result) = state.results.fetch(job) {
            return Found::Result(Waited::Done(result));
        }
        match state.live.get(job) {
            Some(live) => Found::Live(Arc::clone(&live.completion)),
            None => Found::Nothing,
        }
    }

    fn fetched(&self, job: &JobId, result: Option<Arc<crate::JobResult>>) -> Waited {
        let Some(result) = result else {
            return Waited::Timeout;
        };
        // It may have expired meanwhile; the waiter has it none the less.
        self.inner.shared.lock().results.fetch(job);
        Waited::Done(result)
    }

    /// Ends a job: its result is [`crate::JobState::Cancelled`]. Work of it that has begun is thrown
    /// away at the next partition's end. None if there is no such job.
    pub fn cancel(&self, job: &JobId) -> Option<CancelOutcome> {
        let shared = &self.inner.shared;
        let mut state = shared.lock();
        let Some(key) = state.live.get(job).map(|live| live.key) else {
            state.results.peek(job)?;
            return Some(CancelOutcome {
                was_running: false,
                was_finished: true,
            });
        };
        let cancelled = state.scheduler.cancel(key, "cancelled", shared.now());
        drop(shared.settle(state));
        shared.work.notify_all();
        Some(CancelOutcome {
            was_running: cancelled.unwrap_or(false),
            was_finished: cancelled.is_none(),
        })
    }

    /// Everything at this moment. Never waits for work.
    pub fn status(&self) -> EngineStatus {
        let shared = &self.inner.shared;
        let now = shared.now();
        let state = shared.lock();
        let mut status = state.scheduler.report(now);
        status.failures = state.failures.iter().cloned().collect();
        status.results_kept = state.results.len();
        status.uptime = now;
        status.draining = state.draining;
        status
    }

    /// Events from now on. A subscriber that lags behind loses the oldest.
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.inner.shared.events.subscribe()
    }

    /// Loads a circuit's parameters before they are needed, and waits for it.
    ///
    /// # Errors
    /// They are missing, malformed, or larger than the budget.
    pub async fn preload(&self, circuit: CircuitId) -> Result<Preloaded, PreloadError> {
        let shared = &self.inner.shared;
        let footprint = shared.footprint_of(circuit)?;
        let (there, failures) = {
            let mut state = shared.lock();
            if state.draining {
                return Err(PreloadError::Draining);
            }
            state.scheduler.preload(circuit, footprint)
        };
        shared.work.notify_all();
        loop {
            let changed = shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let state = {
                let state = shared.lock();
                if state.stop {
                    return Err(PreloadError::Draining);
                }
                state.scheduler.preload_state(circuit, failures)
            };
            match state {
                Preload::Loaded(load_time) => {
                    return Ok(Preloaded {
                        already_loaded: there,
                        load_time: if there { Duration::ZERO } else { load_time },
                    });
                }
                Preload::Failed(message) => {
                    return Err(PreloadError::Parameters { circuit, message });
                }
                Preload::Waiting => changed.await,
            }
        }
    }

    /// Unloads a circuit's parameters, now or as soon as nothing uses them.
    pub fn evict(&self, circuit: CircuitId) -> Evicted {
        let shared = &self.inner.shared;
        let mut state = shared.lock();
        let evicted = state.scheduler.evict(circuit);
        drop(shared.settle(state));
        shared.work.notify_all();
        evicted
    }

    /// Accepts no more jobs and waits until those that there are have ended, at most for `limit`.
    ///
    /// With a journal, jobs that have not been started are left in it; those that have been and do not
    /// end in time are left as well, with the proofs of their finished partitions. Without a journal
    /// everything is waited for, and what does not end in time is cancelled.
    /// Afterwards no work is started any more. Tokio's timer must run.
    pub async fn drain(&self, limit: Duration) -> Drained {
        let shared = &self.inner.shared;
        let kept = shared.journal.is_some();
        {
            let mut state = shared.lock();
            state.draining = true;
            if kept {
                state.scheduler.hold();
            }
        }
        let until = Instant::now() + limit;
        loop {
            let changed = shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (unfinished, started) = {
                let state = shared.lock();
                let publishing = state.live.len() - state.scheduler.job_count();
                (
                    state.live.len(),
                    state.scheduler.started_count() + publishing,
                )
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || unfinished == 0 || kept && started == 0 {
                return shared.stop(kept);
            }
            // Either way the counts are looked at again.
            let _ = tokio::time::timeout(left, changed).await;
        }
    }
}

impl<E: Executor> Drop for Inner<E> {
    fn drop(&mut self) {
        self.shared.halt();
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // A panic of the thread has been reported where it happened.
            let _ = thread.join();
        }
    }
}
