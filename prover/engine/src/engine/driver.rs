//! The threads: each asks the scheduler what to do, does it, and reports.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use cuzk_filecoin::CircuitId;

use super::{
    shared::{Input, Of, Shared},
    submit::read_input,
};
use crate::{
    Diagnosis, EngineError, Executor, TaskError,
    scheduler::{Lane, Outcome, Task},
};

/// How often deadlines and the age of results are looked at.
const TICK: Duration = Duration::from_millis(100);

/// Starts an engine's threads.
pub(super) fn start<E: Executor>(
    shared: &Arc<Shared<E>>,
) -> Result<Vec<JoinHandle<()>>, EngineError> {
    let mut threads = Vec::new();
    for (name, lane) in shared.lanes() {
        let worker = Arc::clone(shared);
        let thread = thread::Builder::new().name(name);
        threads.push(thread.spawn(move || worker.work(lane)));
    }
    let clock = Arc::clone(shared);
    let thread = thread::Builder::new().name("cuzk-clock".to_owned());
    threads.push(thread.spawn(move || clock.keep_time()));
    let threads: Result<Vec<_>, _> = threads.into_iter().collect();
    threads.map_err(|error| {
        shared.halt();
        EngineError::Thread(error)
    })
}

impl<E: Executor> Shared<E> {
    /// The names and lanes of the threads.
    fn lanes(&self) -> Vec<(String, Lane)> {
        let state = self.lock();
        let lanes = state.scheduler.lanes();
        let each = lanes.into_iter().flat_map(|lane| {
            let (name, threads) = match lane {
                Lane::Host => (
                    "cuzk-host".to_owned(),
                    state.scheduler.settings().host_lanes(),
                ),
                Lane::Device(device) => (
                    format!("cuzk-device-{device}"),
                    state.scheduler.slots(device),
                ),
            };
            (0..threads).map(move |i| (format!("{name}-{i}"), lane))
        });
        each.collect()
    }

    /// One thread's life.
    fn work(&self, lane: Lane) {
        let mut state = self.lock();
        while !state.stop {
            let next = state.scheduler.next(lane, self.now());
            let quiet = state.scheduler.is_quiet();
            state = self.settle(state);
            let Some(assigned) = next else {
                // Settling may have freed the memory that was missing.
                if quiet && !state.stop {
                    state = self
                        .work
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                continue;
            };
            drop(state);
            let (id, circuit) = (assigned.id, assigned.circuit);
            let outcome = self.perform(circuit, assigned.task);
            state = self.lock();
            if state.stop {
                // What was interrupted is no failure: it runs again after a restart.
                break;
            }
            state.scheduler.complete(id, outcome, self.now());
            state = self.settle(state);
            self.work.notify_all();
            self.changed.notify_waiters();
        }
    }

    /// Does a task. Panics become errors.
    fn perform(&self, circuit: CircuitId, task: Task<Of<E>>) -> Outcome<Of<E>> {
        let executor = &self.executor;
        match task {
            Task::Parse { input } => Outcome::Parsed(guarded(|| match input {
                Input::Memory(request) => executor.parse(&request),
                Input::File(path) => {
                    executor.parse(&read_input(&path).map_err(TaskError::Request)?)
                }
            })),
            Task::Load => Outcome::Loaded(guarded(|| executor.load(circuit))),
            Task::Synthesise {
                request,
                partition,
                parameters,
                cancel,
            } => Outcome::Synthesised(guarded(|| {
                executor.synthesise(&request, partition, &parameters, &cancel)
            })),
            Task::Prove {
                device,
                parameters,
                synthesis,
                cancel,
            } => Outcome::Proved(guarded(|| {
                executor.prove(device, &parameters, synthesis, &cancel)
            })),
            Task::Diagnose {
                request,
                partition,
                error,
            } => Outcome::Diagnosed(
                guarded(|| Ok(executor.diagnose(&request, partition, &error))).unwrap_or_else(
                    |panic| Diagnosis {
                        message: format!("{error}; looking into it, {panic}"),
                        retry: false,
                    },
                ),
            ),
            Task::Assemble { request, proofs } => {
                Outcome::Assembled(guarded(|| executor.assemble(&request, &proofs)))
            }
        }
    }

    /// Ends jobs whose deadline has passed, and results that are too old.
    fn keep_time(&self) {
        let mut state = self.lock();
        while !state.stop {
            state.scheduler.expire(self.now());
            state = self.settle(state);
            self.prune(state);
            thread::sleep(TICK);
            state = self.lock();
        }
    }
}

/// Runs work of others, whose panics are errors here.
fn guarded<T>(work: impl FnOnce() -> Result<T, TaskError>) -> Result<T, TaskError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(TaskError::Panic(message(&*panic))))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
        .to_owned()
}
