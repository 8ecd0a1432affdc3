//! Starting work: what is reserved and recorded when a lane is given a task.

use std::{cmp::Reverse, time::Duration};

use cuzk_filecoin::CircuitId;

use super::{
    Assigned, Garbage, Key, Lane, Payloads, Ready, Residency, Running, Scheduler, Task, Work,
    job::Phase,
};
use crate::{EventKind, Priority, Stage, Tier, executor::CancelToken, memory::Reservation};

/// Memory that a parsed request takes, as a multiple of its bytes.
pub(crate) const REQUEST_FACTOR: u64 = 3;

/// What came of an attempt to start a job's next work.
enum Step<P: Payloads> {
    Start(Assigned<P>),
    /// It needs memory that is taken: nobody else may take any before it.
    Memory,
    /// It has to wait for something else.
    Later,
}

impl<P: Payloads> Scheduler<P> {
    /// A task for a thread of the host: finished jobs first, so that they leave.
    pub(super) fn next_on_host(&mut self, now: Duration) -> Option<Assigned<P>> {
        if let Some(task) = self.next_assembly(now) {
            return Some(task);
        }
        if let Some(task) = self.next_diagnosis(now) {
            return Some(task);
        }
        if self.is_fallback_starved() {
            return None;
        }
        if let Some(task) = self.next_wanted(now) {
            return Some(task);
        }
        let overdue = self.overdue(now);
        for level in self.level_order(overdue) {
            // What must not be put off any longer may take the slot that critical jobs have more.
            let extra = overdue == Some(level) || level == Priority::Critical as usize;
            for key in self.job_order(level, now) {
                match self.step(key, extra, now) {
                    Step::Start(task) => return Some(task),
                    Step::Memory => return None,
                    Step::Later => {}
                }
            }
        }
        None
    }

    fn next_assembly(&mut self, now: Duration) -> Option<Assigned<P>> {
        let jobs = &self.jobs;
        self.assemblies.retain(|key| jobs.contains_key(key));
        let queued = self.assemblies.iter().enumerate();
        let (place, _) = queued.min_by_key(|(place, key)| {
            let level = jobs.get(key).map(|job| job.level);
            (Reverse(level), *place)
        })?;
        let key = self.assemblies.remove(place)?;
        let job = self.jobs.get(&key)?;
        let Phase::Open { request, .. } = &job.phase else {
            return None;
        };
        let (request, circuit) = (request.clone(), job.circuit);
        let proofs = job.proofs()?;
        self.tell_job(key, Stage::Assemble);
        let task = Task::Assemble { request, proofs };
        Some(self.assign(Some(key), circuit, Work::Assemble, Vec::new(), task, now))
    }

    fn next_diagnosis(&mut self, now: Duration) -> Option<Assigned<P>> {
        while let Some((key, partition, error)) = self.diagnoses.pop_front() {
            let Some(job) = self.jobs.get(&key) else {
                continue;
            };
            let Phase::Open { request, .. } = &job.phase else {
                continue;
            };
            let (request, circuit) = (request.clone(), job.circuit);
            let work = Work::Diagnose(partition);
            let task = Task::Diagnose {
                request,
                partition,
                error,
            };
            return Some(self.assign(Some(key), circuit, work, Vec::new(), task, now));
        }
        None
    }

    /// A load that was asked for by itself, if there is memory for it.
    fn next_wanted(&mut self, now: Duration) -> Option<Assigned<P>> {
        let wanted = self.circuits.iter().filter(|(_, circuit)| {
            circuit.wanted && matches!(circuit.residency, Residency::Absent)
        });
        let wanted: Vec<CircuitId> = wanted.map(|(id, _)| *id).collect();
        wanted
            .into_iter()
            .find_map(|id| match self.start_load(id, None, now) {
                Step::Start(task) => Some(task),
                _ => None,
            })
    }

    /// Starts a job's next work.
    fn step(&mut self, key: Key, extra: bool, now: Duration) -> Step<P> {
        let Some(job) = self.jobs.get(&key) else {
            return Step::Later;
        };
        let circuit = job.circuit;
        match &job.phase {
            Phase::Parsing => Step::Later,
            Phase::Queued => self.start_parse(key, now),
            Phase::Open { .. } => match self.circuits.get(&circuit).map(|c| &c.residency) {
                None | Some(Residency::Loading) => Step::Later,
                Some(Residency::Absent) => self.start_load(circuit, Some(key), now),
                Some(Residency::Loaded { .. }) => self.start_synthesis(key, extra, now),
            },
        }
    }

    fn start_parse(&mut self, key: Key, now: Duration) -> Step<P> {
        let Some(job) = self.jobs.get(&key) else {
            return Step::Later;
        };
        let new = job.started.is_none();
        let level = job.level as usize;
        if new && self.hold || self.levels[level].opened > self.settings.synthesis_workers {
            return Step::Later;
        }
        let bytes = REQUEST_FACTOR * job.input_bytes;
        let (circuit, input) = (job.circuit, job.input.clone());
        let Some(memory) = self.reserve(bytes, Some(key)) else {
            return Step::Memory;
        };
        if let Some(job) = self.jobs.get_mut(&key) {
            job.phase = Phase::Parsing;
            job.opened = true;
            if new {
                job.started = Some(now);
                job.times.queue_wait = now.saturating_sub(job.submitted);
            }
        }
        self.levels[level].opened += 1;
        self.levels[level].jobs.remove(&key);
        self.tell_job(key, Stage::Parse);
        let task = Task::Parse { input };
        Step::Start(self.assign(Some(key), circuit, Work::Parse, vec![memory], task, now))
    }

    fn start_load(&mut self, id: CircuitId, key: Option<Key>, now: Duration) -> Step<P> {
        let Some(bytes) = self.circuits.get(&id).map(|c| c.footprint.parameters) else {
            return Step::Later;
        };
        let Some(memory) = self.reserve(bytes, key) else {
            return Step::Memory;
        };
        if let Some(circuit) = self.circuits.get_mut(&id) {
            circuit.residency = Residency::Loading;
        }
        Step::Start(self.assign(key, id, Work::Load, vec![memory], Task::Load, now))
    }

    /// Whether one more partition may be synthesised, or even one `extra`.
    fn has_slot(&self, extra: bool) -> bool {
        let extra = usize::from(extra);
        self.synthesising < self.settings.synthesis_workers + extra
            && self.synthesising + self.ready.len() < self.settings.ahead + extra
    }

    fn start_synthesis(&mut self, key: Key, extra: bool, now: Duration) -> Step<P> {
        let Some(job) = self.jobs.get(&key) else {
            return Step::Later;
        };
        let (level, id, cancel) = (job.level, job.circuit, job.cancel.clone());
        let (Some(partition), Phase::Open { request, .. }) = (job.first_waiting(), &job.phase)
        else {
            return Step::Later;
        };
        let request = request.clone();
        if !self.has_slot(extra) {
            return Step::Later;
        }
        let bytes = self.circuits.get(&id).map_or(0, |c| c.footprint.partition);
        let Some(memory) = self.reserve(bytes, Some(key)) else {
            return Step::Memory;
        };
        let Some(parameters) = self.enter(id, now) else {
            return Step::Later;
        };
        self.synthesising += 1;
        self.levels[level as usize].served = now;
        self.set_stage(key, partition, Stage::Synthesis, now);
        if let Some(job) = self.jobs.get_mut(&key) {
            if std::mem::take(&mut job.opened) {
                self.levels[level as usize].opened -= 1;
            }
            if job.first_waiting().is_none() {
                self.levels[level as usize].jobs.remove(&key);
            }
        }
        let task = Task::Synthesise {
            request,
            partition,
            parameters,
            cancel,
        };
        let work = Work::Synthesise(partition);
        Step::Start(self.assign(Some(key), id, work, vec![memory], task, now))
    }

    /// A task for a slot of a device.
    pub(super) fn next_on_device(&mut self, device: usize, now: Duration) -> Option<Assigned<P>> {
        let fallback = self.devices.get(device)?.spec.fallback;
        if self.devices[device].proving.len() >= self.slots(device) {
            return None;
        }
        let place = self.choose_ready(device, now)?;
        let mut more = None;
        if fallback {
            let ready = &self.ready[place];
            let (key, partition) = (ready.key, ready.partition);
            let bytes = self.fallback_bytes(ready.circuit);
            more = self.reserve(bytes, Some(key));
            if more.is_none() {
                if self.running.is_empty() {
                    self.shed_ready(key, partition, now);
                }
                return None;
            }
        }
        let ready = self.ready.remove(place);
        let parameters = match self.circuits.get(&ready.circuit).map(|c| &c.residency) {
            Some(Residency::Loaded { loaded, .. }) => loaded.parameters.clone(),
            _ => return None,
        };
        let cancel = self
            .jobs
            .get(&ready.key)
            .map_or_else(CancelToken::default, |job| job.cancel.clone());
        if let Some(job) = self.jobs.get_mut(&ready.key)
            && let Some(partition) = job.partitions_mut().get_mut(ready.partition)
        {
            partition.device = Some(device);
        }
        self.set_stage(ready.key, ready.partition, Stage::Prove, now);
        self.touch(device, ready.circuit);
        let work = Work::Prove {
            partition: ready.partition,
            device,
        };
        let task = Task::Prove {
            device,
            parameters,
            synthesis: ready.synthesis,
            cancel,
        };
        let memory = std::iter::once(ready.memory).chain(more).collect();
        let assigned = self.assign(Some(ready.key), ready.circuit, work, memory, task, now);
        let state = &mut self.devices[device];
        if state.proving.is_empty() {
            state.busy_since = now;
        }
        state
            .proving
            .push((assigned.id, ready.key, ready.partition));
        Some(assigned)
    }

    /// Throws away every synthesised partition but one, for which nothing else would make room. They
    /// are synthesised again.
    fn shed_ready(&mut self, key: Key, partition: usize, now: Duration) {
        let kept = |ready: &Ready<P>| (ready.key, ready.partition) == (key, partition);
        while let Some(place) = self.ready.iter().rposition(|ready| !kept(ready)) {
            let mut ready = self.ready.remove(place);
            ready.memory.depart();
            let garbage = Garbage::Synthesis(ready.synthesis, ready.memory);
            self.effects.garbage.push(garbage);
            self.leave(ready.circuit, now);
            self.set_stage(ready.key, ready.partition, Stage::Waiting, now);
            self.enqueue(ready.key, now);
        }
    }

    /// Host memory that a proof of a circuit takes on the fallback device on top.
    pub(super) fn fallback_bytes(&self, id: CircuitId) -> u64 {
        self.circuits.get(&id).map_or(0, |c| c.footprint.fallback)
    }

    /// Whether a partition waits for memory to be proved on the fallback device: then no other work
    /// may take memory before it.
    fn is_fallback_starved(&self) -> bool {
        self.ready.iter().any(|ready| {
            let device = self.fallback_after(ready.avoid);
            device.is_some_and(|device| {
                self.devices[device].proving.is_empty()
                    && self.memory.free() < self.fallback_bytes(ready.circuit)
            })
        })
    }

    /// Records that a device holds a circuit's parameters, and what it can no longer hold.
    fn touch(&mut self, device: usize, id: CircuitId) {
        let before = self.tier(id);
        let bytes = |id: &CircuitId| {
            let circuit = self.circuits.get(id);
            circuit.map_or(0, |c| c.footprint.device_parameters)
        };
        let limit = self.devices[device].limit;
        let mut hot = self.devices[device].hot.clone();
        hot.retain(|hot| *hot != id);
        hot.push(id);
        let mut gone = Vec::new();
        while hot.len() > 1 && hot.iter().map(bytes).sum::<u64>() > limit {
            gone.push(hot.remove(0));
        }
        self.devices[device].hot = hot;
        if before != Tier::Hot {
            self.tell_tier(id, Tier::Hot);
        }
        for id in gone {
            let tier = self.tier(id);
            if tier != Tier::Hot {
                self.tell_tier(id, tier);
            }
        }
    }

    fn tell_job(&mut self, key: Key, stage: Stage) {
        if let Some(job) = self.name_of(key) {
            self.effects.events.push(EventKind::Job { job, stage });
        }
    }

    fn assign(
        &mut self,
        key: Option<Key>,
        circuit: CircuitId,
        work: Work,
        memory: Vec<Reservation>,
        task: Task<P>,
        now: Duration,
    ) -> Assigned<P> {
        self.next_task += 1;
        let id = self.next_task;
        let running = Running {
            key,
            circuit,
            work,
            started: now,
            memory,
        };
        self.running.insert(id, running);
        Assigned { id, circuit, task }
    }

    /// The lanes, in the order in which they are asked.
    pub fn lanes(&self) -> Vec<Lane> {
        let devices = (0..self.devices.len()).map(Lane::Device);
        devices.chain([Lane::Host]).collect()
    }
}
