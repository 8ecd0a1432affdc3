//! Ending work: what a task's outcome means for its partition, its job and everybody else.

use std::time::Duration;

use super::{
    Finished, Garbage, Key, Outcome, Payloads, REQUEST_FACTOR, Ready, Residency, Scheduler, TaskId,
    Work,
};
use crate::{
    Diagnosis, EventKind, JobResult, JobState, Loaded, Parsed, PartitionProof, Stage, TaskError,
    Tier, memory::Reservation,
};

/// How often a partition is tried.
const ATTEMPTS: u32 = 2;

impl<P: Payloads> Scheduler<P> {
    /// A task has ended.
    pub fn complete(&mut self, id: TaskId, outcome: Outcome<P>, now: Duration) {
        let Some(running) = self.running.remove(&id) else {
            return;
        };
        let mut memory = running.memory;
        let took = now.saturating_sub(running.started);
        let key = running.key;
        match (running.work, outcome) {
            (Work::Parse, Outcome::Parsed(result)) => {
                self.parsed(key, result, memory.pop(), took, now);
            }
            (Work::Load, Outcome::Loaded(result)) => {
                self.loaded(key, running.circuit, result, memory.pop(), took, now);
            }
            (Work::Synthesise(k), Outcome::Synthesised(result)) => {
                self.synthesising -= 1;
                self.totals.synthesis += took;
                let circuit = running.circuit;
                self.synthesised(key, k, circuit, result, memory.pop(), took, now);
            }
            (Work::Prove { partition, device }, Outcome::Proved(result)) => {
                drop(memory);
                self.totals.prove += took;
                self.leave(running.circuit, now);
                self.vacate(device, id, result.is_ok(), now);
                self.proved(key, partition, device, result, took, now);
            }
            (Work::Diagnose(k), Outcome::Diagnosed(diagnosis)) => {
                self.diagnosed(key, k, &diagnosis, now);
            }
            (Work::Assemble, Outcome::Assembled(result)) => self.assembled(key, result, now),
            (work, _) => {
                // Whoever drives the scheduler answered a question that was not asked.
                if work.uses_parameters() {
                    self.leave(running.circuit, now);
                }
                self.fail(key, "internal error: a task ended as another one", now);
            }
        }
    }

    fn parsed(
        &mut self,
        key: Option<Key>,
        result: Result<Parsed<P::Request>, TaskError>,
        memory: Option<Reservation>,
        took: Duration,
        now: Duration,
    ) {
        let alive = key.filter(|key| self.jobs.contains_key(key));
        let (Some(key), Some(memory)) = (alive, memory) else {
            return;
        };
        let parsed = match result {
            Ok(parsed) if parsed.partitions > 0 => parsed,
            Ok(_) => return self.fail(Some(key), "the request has no partitions", now),
            Err(error) => return self.fail(Some(key), &error.to_string(), now),
        };
        let Some(job) = self.jobs.get_mut(&key) else {
            return;
        };
        job.times.synthesis += took;
        job.open(parsed, memory, now);
        let waiting = job.first_waiting().is_some();
        if waiting {
            self.enqueue(key, now);
        } else {
            self.unopen(key);
            self.assemblies.push_back(key);
        }
    }

    fn loaded(
        &mut self,
        key: Option<Key>,
        id: cuzk_filecoin::CircuitId,
        result: Result<Loaded<P::Parameters>, TaskError>,
        memory: Option<Reservation>,
        took: Duration,
        now: Duration,
    ) {
        let Some(circuit) = self.circuits.get_mut(&id) else {
            return;
        };
        circuit.wanted = false;
        match (result, memory) {
            (Ok(loaded), Some(memory)) => {
                circuit.residency = Residency::Loaded { loaded, memory };
                circuit.load_time = took;
                self.last_load = now;
                circuit.last_used = now;
                let leaving = circuit.leaving && key.is_none();
                self.tell_tier(id, Tier::Warm);
                if leaving {
                    self.evict(id);
                }
                if let Some(job) = key.and_then(|key| self.jobs.get_mut(&key)) {
                    job.times.srs_load += took;
                }
            }
            (Err(error), _) => {
                circuit.residency = Residency::Absent;
                circuit.failures += 1;
                circuit.error = error.to_string();
                let error = circuit.error.clone();
                self.fail_without_parameters(id, &error, now);
            }
            (Ok(_), None) => circuit.residency = Residency::Absent,
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one ended task")]
    fn synthesised(
        &mut self,
        key: Option<Key>,
        partition: usize,
        circuit: cuzk_filecoin::CircuitId,
        result: Result<P::Synthesis, TaskError>,
        memory: Option<Reservation>,
        took: Duration,
        now: Duration,
    ) {
        let job = key.and_then(|key| Some((key, self.jobs.get_mut(&key)?)));
        match (job, result, memory) {
            (Some((key, job)), Ok(synthesis), Some(memory)) => {
                job.times.synthesis += took;
                let trouble = job.troubles.get(&partition);
                let avoid = trouble.and_then(|trouble| trouble.device);
                let level = job.level;
                if let Some(found) = job.partitions_mut().get_mut(partition) {
                    found.synthesis = took;
                }
                self.ready.push(Ready {
                    key,
                    partition,
                    level,
                    circuit,
                    synthesis,
                    memory,
                    since: now,
                    avoid,
                });
                self.set_stage(key, partition, Stage::Ready, now);
            }
            (None, Ok(synthesis), Some(mut memory)) => {
                memory.depart();
                let garbage = Garbage::Synthesis(synthesis, memory);
                self.effects.garbage.push(garbage);
                self.leave(circuit, now);
            }
            (job, result, _) => {
                let key = job.map(|(key, _)| key);
                self.leave(circuit, now);
                if let (Some(key), Err(error)) = (key, result) {
                    self.troubled(key, partition, None, error, now);
                }
            }
        }
    }

    /// A slot of a device is free again.
    fn vacate(&mut self, device: usize, task: TaskId, success: bool, now: Duration) {
        let Some(state) = self.devices.get_mut(device) else {
            return;
        };
        state.proving.retain(|(id, ..)| *id != task);
        if state.proving.is_empty() {
            state.busy += now.saturating_sub(state.busy_since);
        }
        if success {
            state.proved += 1;
        } else {
            state.failed += 1;
            // After a fault nothing on the device is trusted.
            state.hot.clear();
        }
    }

    fn proved(
        &mut self,
        key: Option<Key>,
        partition: usize,
        device: usize,
        result: Result<PartitionProof, TaskError>,
        took: Duration,
        now: Duration,
    ) {
        let Some(key) = key else {
            return;
        };
        let Some(job) = self.jobs.get_mut(&key) else {
            return;
        };
        job.times.gpu_compute += took;
        let proof = match result {
            Ok(proof) => proof,
            Err(error) => return self.troubled(key, partition, Some(device), error, now),
        };
        self.totals.partitions += 1;
        if let Some(found) = job.partitions_mut().get_mut(partition) {
            found.proof = Some(proof);
            found.prove = took;
        }
        let partitions = job.partitions().len();
        let all = job.proofs().is_some();
        self.set_stage(key, partition, Stage::Proved, now);
        if all {
            self.assemblies.push_back(key);
        } else if partitions > 1 {
            self.effects.checkpoints.push((key, partition, proof));
        }
    }

    /// A partition failed: somebody has to find out why.
    fn troubled(
        &mut self,
        key: Key,
        partition: usize,
        device: Option<usize>,
        error: TaskError,
        now: Duration,
    ) {
        let Some(job) = self.jobs.get_mut(&key) else {
            return;
        };
        let trouble = job.troubles.entry(partition).or_default();
        trouble.attempts += 1;
        trouble.device = device;
        self.set_stage(key, partition, Stage::Diagnose, now);
        self.diagnoses.push_back((key, partition, error));
    }

    fn diagnosed(&mut self, key: Option<Key>, k: usize, diagnosis: &Diagnosis, now: Duration) {
        let Some(key) = key else {
            return;
        };
        let Some(job) = self.jobs.get_mut(&key) else {
            return;
        };
        let circuit = job.circuit;
        let of = job.partitions().len();
        let trouble = job.troubles.entry(k).or_default();
        let (attempts, device) = (trouble.attempts, trouble.device);
        let first = trouble.first.clone();
        let place = device
            .and_then(|device| self.devices.get(device))
            .map_or_else(String::new, |device| format!(" on {}", device.spec.name));
        let mut message = format!("partition {k} of {of}{place}: {}", diagnosis.message);
        let request = REQUEST_FACTOR * job.input_bytes;
        let fits = self.fits_after(circuit, device, request);
        if diagnosis.retry && attempts < ATTEMPTS && fits {
            if let Some(job) = self.jobs.get_mut(&key) {
                job.troubles.entry(k).or_default().first = Some(message.clone());
                self.effects.events.push(EventKind::Retry {
                    job: job.name.clone(),
                    partition: k,
                    message,
                });
            }
            self.totals.retries += 1;
            self.set_stage(key, k, Stage::Waiting, now);
            self.enqueue(key, now);
            return;
        }
        if let Some(first) = first {
            message = format!("{message}; the first attempt: {first}");
        }
        if diagnosis.retry && !fits {
            message = format!("{message}; there is not enough memory to try again on the CPU");
        }
        self.fail(Some(key), &message, now);
    }

    /// Whether there can be memory for another attempt after a failure on a device.
    fn fits_after(
        &self,
        id: cuzk_filecoin::CircuitId,
        device: Option<usize>,
        request: u64,
    ) -> bool {
        if self.fallback_after(device).is_none() {
            return true;
        }
        self.circuits.get(&id).is_some_and(|circuit| {
            let needs = circuit.footprint;
            let sum = needs.parameters + needs.partition + needs.fallback + request;
            sum <= self.memory.limit()
        })
    }

    fn assembled(&mut self, key: Option<Key>, result: Result<Vec<u8>, TaskError>, now: Duration) {
        let Some(key) = key else {
            return;
        };
        match result {
            Ok(proof) => self.finish(key, JobState::Completed, proof, "", now),
            Err(error) => {
                let again = self.jobs.get_mut(&key).is_some_and(|job| {
                    !std::mem::take(&mut job.restored).is_empty()
                        && !matches!(error, TaskError::Parameters(_))
                });
                if again {
                    // Proofs from before a restart are in doubt: all are made again.
                    self.prove_again(key, &error.to_string(), now);
                } else {
                    let message = format!("the assembled proof: {error}");
                    self.fail(Some(key), &message, now);
                }
            }
        }
    }

    fn prove_again(&mut self, key: Key, message: &str, now: Duration) {
        let Some(job) = self.jobs.get_mut(&key) else {
            return;
        };
        let partitions = job.partitions().len();
        for partition in job.partitions_mut() {
            partition.proof = None;
        }
        for partition in 0..partitions {
            if let Some(job) = self.name_of(key) {
                let message = message.to_owned();
                self.effects.events.push(EventKind::Retry {
                    job,
                    partition,
                    message,
                });
            }
            self.set_stage(key, partition, Stage::Waiting, now);
        }
        self.enqueue(key, now);
    }

    pub(super) fn fail(&mut self, key: Option<Key>, message: &str, now: Duration) {
        if let Some(key) = key {
            self.finish(key, JobState::Failed, Vec::new(), message, now);
        }
    }

    fn unopen(&mut self, key: Key) {
        if let Some(job) = self.jobs.get_mut(&key)
            && std::mem::take(&mut job.opened)
        {
            self.levels[job.level as usize].opened -= 1;
        }
    }

    /// Ends a job.
    pub(super) fn finish(
        &mut self,
        key: Key,
        state: JobState,
        proof: Vec<u8>,
        message: &str,
        now: Duration,
    ) {
        self.unopen(key);
        let Some(mut job) = self.jobs.remove(&key) else {
            return;
        };
        job.cancel.cancel();
        self.levels[job.level as usize].jobs.remove(&key);
        self.queued_bytes -= job.input_bytes;
        if let Some(deadline) = job.deadline {
            self.deadlines.remove(&(deadline, key));
        }
        self.drop_ready(key, now);
        if let Some((request, mut memory)) = job.close() {
            memory.depart();
            self.effects.garbage.push(Garbage::Request(request, memory));
        }
        self.count(state, job.circuit.kind);
        job.times.total = now.saturating_sub(job.submitted);
        if job.started.is_none() {
            job.times.queue_wait = job.times.total;
        }
        let result = JobResult {
            job: job.name,
            request_id: job.request_id,
            circuit: job.circuit.to_string(),
            state,
            proof,
            message: message.to_owned(),
            times: job.times,
        };
        self.effects.finished.push(Finished {
            key,
            circuit: job.circuit,
            result,
        });
    }

    /// Throws a job's synthesised partitions away.
    fn drop_ready(&mut self, key: Key, now: Duration) {
        while let Some(place) = self.ready.iter().position(|ready| ready.key == key) {
            let mut ready = self.ready.remove(place);
            ready.memory.depart();
            let garbage = Garbage::Synthesis(ready.synthesis, ready.memory);
            self.effects.garbage.push(garbage);
            self.leave(ready.circuit, now);
        }
    }

    fn count(&mut self, state: JobState, kind: cuzk_filecoin::ProofKind) {
        match state {
            JobState::Completed => {
                self.totals.completed += 1;
                self.totals.completed_by_kind[kind as usize] += 1;
            }
            JobState::Failed => self.totals.failed += 1,
            JobState::Cancelled => self.totals.cancelled += 1,
        }
    }
}
