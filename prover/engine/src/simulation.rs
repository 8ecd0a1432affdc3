//! The scheduler under a simulated clock: tasks take the time that a [`World`] says and nothing is done.
//!
//! Every run with the same world is the same run.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    time::Duration,
};

use cuzk_filecoin::CircuitId;

use crate::{
    Footprint, Loaded, Parsed,
    executor::{Diagnosis, PartitionProof},
    scheduler::{
        Assigned, Effects, Finished, Key, Lane, NewJob, Outcome, Payloads, Scheduler, Task, TaskId,
    },
};

/// Payloads that only say whose they are.
pub(crate) struct Simulated;

/// A request: its job and how many partitions it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub key: Key,
    pub partitions: usize,
}

impl Payloads for Simulated {
    type Input = Tag;
    type Request = Tag;
    type Parameters = ();
    type Synthesis = (Key, usize);
}

/// How long tasks take and how they end.
pub(crate) trait World {
    /// The end of a task that starts now, and its outcome.
    fn perform(
        &mut self,
        now: Duration,
        circuit: CircuitId,
        task: Task<Simulated>,
    ) -> (Duration, Outcome<Simulated>);

    /// Sees everything that is told, and the scheduler after each event.
    fn observe(
        &mut self,
        _now: Duration,
        _scheduler: &Scheduler<Simulated>,
        _effects: &Effects<Simulated>,
    ) {
    }
}

/// What will happen.
enum Future {
    Arrive(Key, Box<NewJob<Simulated>>, Footprint),
    #[cfg(test)]
    Cancel(Key),
    End(TaskId, Lane, Outcome<Simulated>),
}

/// A run.
pub(crate) struct Simulation<W> {
    pub scheduler: Scheduler<Simulated>,
    pub world: W,
    pub now: Duration,
    pub finished: Vec<(Duration, Finished)>,
    future: BinaryHeap<Reverse<(Duration, u64)>>,
    what: BTreeMap<u64, Future>,
    count: u64,
    free_host_lanes: usize,
}

impl<W: World> Simulation<W> {
    pub fn new(scheduler: Scheduler<Simulated>, world: W) -> Self {
        Self {
            free_host_lanes: scheduler.settings().host_lanes(),
            scheduler,
            world,
            now: Duration::ZERO,
            finished: Vec::new(),
            future: BinaryHeap::new(),
            what: BTreeMap::new(),
            count: 0,
        }
    }

    fn plan(&mut self, at: Duration, future: Future) {
        self.count += 1;
        self.future.push(Reverse((at, self.count)));
        self.what.insert(self.count, future);
    }

    /// A job will arrive.
    pub fn arrive(&mut self, at: Duration, key: Key, job: NewJob<Simulated>, footprint: Footprint) {
        self.plan(at, Future::Arrive(key, Box::new(job), footprint));
    }

    /// A job will be cancelled, if it is there then.
    #[cfg(test)]
    pub fn cancel(&mut self, at: Duration, key: Key) {
        self.plan(at, Future::Cancel(key));
    }

    /// Runs until nothing happens any more.
    pub fn run(&mut self) {
        self.pump();
        while let Some(Reverse((at, number))) = self.future.pop() {
            self.now = at;
            self.scheduler.expire(at);
            match self.what.remove(&number) {
                Some(Future::Arrive(key, job, footprint)) => {
                    self.scheduler.submit(key, *job, footprint, at);
                }
                #[cfg(test)]
                Some(Future::Cancel(key)) => {
                    self.scheduler.cancel(key, "cancelled", at);
                }
                Some(Future::End(id, lane, outcome)) => {
                    if lane == Lane::Host {
                        self.free_host_lanes += 1;
                    }
                    self.scheduler.complete(id, outcome, at);
                }
                None => {}
            }
            self.pump();
        }
    }

    /// Starts everything that may start now.
    fn pump(&mut self) {
        loop {
            let mut progress = self.tell();
            for lane in self.scheduler.lanes() {
                while lane != Lane::Host || self.free_host_lanes > 0 {
                    let Some(assigned) = self.scheduler.next(lane, self.now) else {
                        break;
                    };
                    self.start(lane, assigned);
                    progress = true;
                }
            }
            if !progress && self.scheduler.is_quiet() {
                return;
            }
        }
    }

    fn start(&mut self, lane: Lane, assigned: Assigned<Simulated>) {
        if lane == Lane::Host {
            self.free_host_lanes -= 1;
        }
        let Assigned { id, circuit, task } = assigned;
        let (end, outcome) = self.world.perform(self.now, circuit, task);
        self.plan(end, Future::End(id, lane, outcome));
    }

    fn tell(&mut self) -> bool {
        let effects = self.scheduler.take_effects();
        self.world.observe(self.now, &self.scheduler, &effects);
        let any = !effects.is_empty();
        for finished in effects.finished {
            self.finished.push((self.now, finished));
        }
        any
    }
}

/// The outcome of a task that succeeds.
pub(crate) fn success(task: &Task<Simulated>) -> Outcome<Simulated> {
    const PROOF: PartitionProof = [0; cuzk_filecoin::PARTITION_PROOF_LEN];
    match task {
        Task::Parse { input } => Outcome::Parsed(Ok(Parsed {
            request: *input,
            partitions: input.partitions,
        })),
        Task::Load => Outcome::Loaded(Ok(Loaded {
            parameters: (),
            compiled: true,
        })),
        Task::Synthesise {
            request, partition, ..
        } => Outcome::Synthesised(Ok((request.key, *partition))),
        Task::Prove { .. } => Outcome::Proved(Ok(PROOF)),
        Task::Diagnose { error, .. } => Outcome::Diagnosed(Diagnosis {
            message: error.to_string(),
            retry: true,
        }),
        Task::Assemble { proofs, .. } => Outcome::Assembled(Ok(proofs.concat())),
    }
}
