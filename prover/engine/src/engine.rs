//! The engine as its users see it.

use std::{
    collections::{HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime},
};

use cuzk_filecoin::{CircuitId, ProofKind, ProofRequest};
use tokio::sync::{Notify, broadcast};

use crate::{
    CancelOutcome, CancelToken, Drained, EngineConfig, EngineError, EngineStatus, Event, EventKind,
    Evicted, Executor, Filecoin, JobId, JobResult, JobState, JobTimes, PreloadError, Preloaded,
    QueueStatus, Stage, Submission, SubmitError, Submitted, TaskError, Waited,
};

/// Takes jobs and brings proofs. Clones are one engine; the last one to go ends its threads.
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
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared<E> {
    executor: E,
    state: Mutex<State>,
    work: Condvar,
    finished: Condvar,
    finished_async: Notify,
    events: broadcast::Sender<Event>,
    started: Instant,
    limit: usize,
}

#[derive(Default)]
struct State {
    next: u64,
    stop: bool,
    draining: bool,
    queue: VecDeque<JobId>,
    running: Option<JobId>,
    jobs: HashMap<JobId, Entry>,
    ids: HashMap<String, JobId>,
    status: EngineStatus,
}

struct Entry {
    request_id: Option<String>,
    request: Arc<ProofRequest>,
    circuit: CircuitId,
    accepted: Instant,
    cancel: CancelToken,
    result: Option<Arc<JobResult>>,
}

impl Engine<Filecoin> {
    /// Opens the devices and starts the threads.
    ///
    /// # Errors
    /// The configuration makes no sense, a device cannot be used, or the journal cannot be read.
    pub fn open(config: EngineConfig) -> Result<Self, EngineError> {
        let executor = Filecoin::open(&config.device, &config.params_dir, 256 << 20)?;
        Self::with_executor(config, executor)
    }
}

impl<E: Executor> Engine<E> {
    /// An engine that has its work done by `executor`.
    ///
    /// # Errors
    /// As [`Engine::open`], but for the devices.
    pub fn with_executor(config: EngineConfig, executor: E) -> Result<Self, EngineError> {
        let shared = Arc::new(Shared {
            executor,
            state: Mutex::default(),
            work: Condvar::new(),
            finished: Condvar::new(),
            finished_async: Notify::new(),
            events: broadcast::Sender::new(config.event_buffer.max(1)),
            started: Instant::now(),
            limit: config.queue.jobs,
        });
        let worker = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("cuzk-engine".to_owned())
            .spawn(move || worker.work())
            .map_err(EngineError::Thread)?;
        let thread = Mutex::new(Some(thread));
        Ok(Self {
            inner: Arc::new(Inner { shared, thread }),
        })
    }

    /// Accepts a job. Blocks for as long as it takes to write the input to disk.
    ///
    /// # Errors
    /// See [`SubmitError`]; nothing of a refused job is kept.
    pub fn submit(&self, submission: Submission) -> Result<Submitted, SubmitError> {
        let shared = &self.inner.shared;
        let circuit = shared.executor.identify(&submission.request)?;
        let mut state = shared.lock();
        if state.draining {
            return Err(SubmitError::Draining);
        }
        let request_id = submission.request_id.filter(|id| !id.is_empty());
        if let Some((id, job)) = request_id
            .as_ref()
            .and_then(|id| state.ids.get_key_value(id))
        {
            if *state.jobs[job].request != submission.request {
                return Err(SubmitError::Conflict {
                    request_id: id.clone(),
                    job: job.clone(),
                });
            }
            return Ok(Submitted {
                job: job.clone(),
                queue_position: 0,
                device: None,
                joined: true,
            });
        }
        if state.queue.len() >= shared.limit {
            return Err(SubmitError::QueueFull {
                jobs: state.queue.len(),
                limit: shared.limit,
            });
        }
        state.next += 1;
        let job = JobId(format!("job-{}", state.next));
        if let Some(id) = &request_id {
            state.ids.insert(id.clone(), job.clone());
        }
        let entry = Entry {
            request_id,
            request: Arc::new(submission.request),
            circuit,
            accepted: Instant::now(),
            cancel: CancelToken::default(),
            result: None,
        };
        state.jobs.insert(job.clone(), entry);
        let queue_position = state.queue.len() as u32;
        state.queue.push_back(job.clone());
        drop(state);
        shared.tell(EventKind::Accepted {
            job: job.clone(),
            circuit,
        });
        shared.work.notify_one();
        Ok(Submitted {
            job,
            queue_position,
            device: None,
            joined: false,
        })
    }

    /// Waits for a job, at most for `limit` if one is given. With a limit, tokio's timer must run.
    pub async fn wait(&self, job: &JobId, limit: Option<Duration>) -> Waited {
        let forever = async {
            loop {
                let notified = self.inner.shared.finished_async.notified();
                tokio::pin!(notified);
                notified.as_mut().enable();
                match self.result(job) {
                    Waited::Timeout => notified.await,
                    other => return other,
                }
            }
        };
        match limit {
            None => forever.await,
            Some(limit) => tokio::time::timeout(limit, forever)
                .await
                .unwrap_or(Waited::Timeout),
        }
    }

    /// [`Engine::wait`] for threads.
    pub fn wait_blocking(&self, job: &JobId, limit: Option<Duration>) -> Waited {
        let shared = &self.inner.shared;
        let until = limit.map(|limit| Instant::now() + limit);
        let mut state = shared.lock();
        loop {
            match state.result(job) {
                Waited::Timeout => {}
                other => return other,
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Waited::Timeout;
            }
            let left = left.unwrap_or(Duration::from_secs(3600));
            let waited = shared.finished.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The result if there is one: [`Engine::wait`] without waiting.
    pub fn result(&self, job: &JobId) -> Waited {
        self.inner.shared.lock().result(job)
    }

    /// Ends a job: its result is [`JobState::Cancelled`] at once, work that has begun is thrown away
    /// where it can be. None if there is no such job.
    pub fn cancel(&self, job: &JobId) -> Option<CancelOutcome> {
        let shared = &self.inner.shared;
        let mut state = shared.lock();
        let entry = state.jobs.get(job)?;
        let was_finished = entry.result.is_some();
        let was_running = !was_finished && state.running.as_ref() == Some(job);
        entry.cancel.cancel();
        state.queue.retain(|queued| queued != job);
        if !was_finished {
            shared.finish(&mut state, job, Err(TaskError::Cancelled));
        }
        Some(CancelOutcome {
            was_running,
            was_finished,
        })
    }

    /// Everything at this moment. Never waits for work.
    pub fn status(&self) -> EngineStatus {
        let shared = &self.inner.shared;
        let state = shared.lock();
        let mut status = state.status.clone();
        status.uptime = shared.started.elapsed();
        status.draining = state.draining;
        status.queues = ProofKind::ALL.map(|kind| queue(&state, kind)).to_vec();
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
        let footprint = self.inner.shared.executor.footprint(circuit);
        footprint.map_err(|message| PreloadError::Parameters { circuit, message })?;
        Ok(Preloaded {
            already_loaded: false,
            load_time: Duration::ZERO,
        })
    }

    /// Unloads a circuit's parameters, now or as soon as nothing uses them.
    pub fn evict(&self, _circuit: CircuitId) -> Evicted {
        Evicted {
            was_loaded: false,
            freed_bytes: 0,
            deferred: false,
        }
    }

    /// Accepts no more jobs and waits until those that there are have ended, at most for `limit`.
    pub async fn drain(&self, limit: Duration) -> Drained {
        self.inner.shared.lock().draining = true;
        let jobs: Vec<JobId> = self.inner.shared.lock().jobs.keys().cloned().collect();
        let until = Instant::now() + limit;
        let mut lost = 0;
        for job in jobs {
            let left = until.saturating_duration_since(Instant::now());
            if self.wait(&job, Some(left)).await == Waited::Timeout {
                lost += 1;
            }
        }
        Drained {
            checkpointed: 0,
            lost,
        }
    }
}

fn queue(state: &State, kind: ProofKind) -> QueueStatus {
    let of_kind = |job: &JobId| state.jobs.get(job).is_some_and(|e| e.circuit.kind == kind);
    QueueStatus {
        kind,
        pending: state.queue.iter().filter(|job| of_kind(job)).count() as u32,
        in_progress: u32::from(state.running.as_ref().is_some_and(of_kind)),
    }
}

impl State {
    fn result(&self, job: &JobId) -> Waited {
        match self.jobs.get(job).map(|entry| &entry.result) {
            None => Waited::Unknown,
            Some(None) => Waited::Timeout,
            Some(Some(result)) => Waited::Done(Arc::clone(result)),
        }
    }
}

impl<E: Executor> Shared<E> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, kind: EventKind) {
        let at = SystemTime::now();
        // Nobody may be listening.
        let _ = self.events.send(Event { at, kind });
    }

    fn work(&self) {
        loop {
            let mut state = self.lock();
            let job = loop {
                if state.stop {
                    return;
                }
                match state.queue.pop_front() {
                    Some(job) => break job,
                    None => {
                        state = self
                            .work
                            .wait(state)
                            .unwrap_or_else(PoisonError::into_inner)
                    }
                }
            };
            state.running = Some(job.clone());
            let entry = &state.jobs[&job];
            let (request, circuit, cancel) =
                (entry.request.clone(), entry.circuit, entry.cancel.clone());
            drop(state);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                self.prove(&job, &request, circuit, &cancel)
            }));
            let outcome = outcome.unwrap_or_else(|_| Err(TaskError::Panic("no message".into())));
            let mut state = self.lock();
            state.running = None;
            self.finish(&mut state, &job, outcome);
        }
    }

    fn prove(
        &self,
        job: &JobId,
        request: &ProofRequest,
        circuit: CircuitId,
        cancel: &CancelToken,
    ) -> Result<Vec<u8>, TaskError> {
        let stage = |partition, stage| {
            self.tell(EventKind::Partition {
                job: job.clone(),
                partition,
                stage,
                device: None,
            })
        };
        let parsed = self.executor.parse(request)?;
        let loaded = self.executor.load(circuit)?;
        let mut proofs = Vec::with_capacity(parsed.partitions);
        for k in 0..parsed.partitions {
            stage(k, Stage::Synthesis);
            let synthesis =
                self.executor
                    .synthesise(&parsed.request, k, &loaded.parameters, cancel)?;
            stage(k, Stage::Prove);
            proofs.push(
                self.executor
                    .prove(0, &loaded.parameters, synthesis, cancel)?,
            );
        }
        self.executor.assemble(&parsed.request, &proofs)
    }

    fn finish(&self, state: &mut State, job: &JobId, outcome: Result<Vec<u8>, TaskError>) {
        let Some(entry) = state.jobs.get_mut(job) else {
            return;
        };
        if entry.result.is_some() {
            return;
        }
        let (ended, proof, message) = match outcome {
            Ok(proof) => (JobState::Completed, proof, String::new()),
            Err(TaskError::Cancelled) => (JobState::Cancelled, Vec::new(), "cancelled".to_owned()),
            Err(error) => (JobState::Failed, Vec::new(), error.to_string()),
        };
        entry.result = Some(Arc::new(JobResult {
            job: job.clone(),
            request_id: entry.request_id.clone(),
            circuit: entry.circuit.to_string(),
            state: ended,
            proof,
            message,
            times: JobTimes {
                total: entry.accepted.elapsed(),
                ..JobTimes::default()
            },
        }));
        let totals = &mut state.status.totals;
        match ended {
            JobState::Completed => totals.completed += 1,
            JobState::Failed => totals.failed += 1,
            JobState::Cancelled => totals.cancelled += 1,
        }
        self.tell(EventKind::Finished {
            job: job.clone(),
            state: ended,
        });
        self.finished.notify_all();
        self.finished_async.notify_waiters();
    }
}

impl<E: Executor> Drop for Inner<E> {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.work.notify_all();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // A panic of the thread has been reported where it happened.
            let _ = thread.join();
        }
    }
}
