//! Opening an engine: the numbers that follow from its configuration, and the journal's jobs.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rand_core::{OsRng, RngCore as _};
use tokio::sync::{Notify, broadcast};

use super::shared::{Completion, Input, Known, Live, Shared, State, millis};
use crate::{
    Budget, DeviceSpec, EngineConfig, EngineError, Executor, Footprint, JobState, PartitionProof,
    journal::{JobRecord, Journal, Recovered, ResultRecord},
    memory::{Pool, device_limit, host_limit},
    results::Results,
    scheduler::{Key, NewJob, Scheduler, Settings},
};

/// Most syntheses at once on a GPU's behalf, unless the configuration says otherwise.
const SYNTHESES: usize = 16;

impl<E: Executor> Shared<E> {
    pub fn open(config: EngineConfig, executor: E) -> Result<Self, EngineError> {
        check(&config)?;
        let (journal, recovered) = match &config.state_dir {
            None => (None, Recovered::default()),
            Some(dir) => {
                let (journal, recovered) = Journal::open(dir, config.disk_reserve)?;
                (Some(journal), recovered)
            }
        };
        let devices = executor.devices();
        let regular: Vec<&DeviceSpec> = devices.iter().filter(|d| !d.fallback).collect();
        let only_device = match regular.as_slice() {
            [only] => Some(only.name.clone()),
            _ => None,
        };
        // A twentieth is for memory that waits to be used again.
        let limit = host_limit(config.host_memory);
        let memory = Pool::new(limit - limit / 20);
        let settings = settings(&config, &devices);
        let state = State {
            scheduler: Scheduler::new(settings, memory.clone(), devices),
            live: HashMap::new(),
            requests: HashMap::new(),
            results: Results::new(config.results),
            failures: VecDeque::new(),
            next_key: 0,
            draining: false,
            stop: false,
        };
        let shared = Self {
            executor,
            journal,
            memory,
            queue: config.queue,
            only_device,
            instance: OsRng.next_u64(),
            state: Mutex::new(state),
            accepting: Mutex::default(),
            work: Condvar::new(),
            changed: Notify::new(),
            events: broadcast::Sender::new(config.event_buffer.max(1)),
            opened: Instant::now(),
        };
        shared.restore(recovered);
        for circuit in config.preload {
            match shared.footprint_of(circuit) {
                Ok(footprint) => {
                    shared.lock().scheduler.preload(circuit, footprint);
                }
                Err(error) => tracing::warn!(%error, "not preloaded"),
            }
        }
        Ok(shared)
    }

    /// Takes in what the journal held.
    fn restore(&self, recovered: Recovered) {
        let Recovered {
            jobs,
            mut partitions,
            results,
        } = recovered;
        let mut state = self.lock();
        let keys = jobs.keys().chain(results.keys());
        state.next_key = keys.copied().max().unwrap_or(0);
        drop(state);
        for (key, record) in results {
            self.restore_result(key, record);
        }
        for (key, record) in jobs {
            let proofs = partitions.remove(&key).unwrap_or_default();
            self.restore_job(key, record, proofs);
        }
    }

    fn restore_result(&self, key: Key, record: ResultRecord) {
        let finished = UNIX_EPOCH + Duration::from_millis(record.finished);
        // A clock that was set back makes results younger, not older.
        let age = SystemTime::now()
            .duration_since(finished)
            .unwrap_or_default();
        let result = Arc::new(record.result);
        let mut state = self.lock();
        if let Some(id) = &result.request_id {
            let known = Known {
                job: result.job.clone(),
                digest: record.digest,
            };
            state.requests.insert(id.clone(), known);
        }
        let now = self.now();
        state.results.keep(key, result, age, now);
    }

    fn restore_job(&self, key: Key, record: JobRecord, restored: BTreeMap<usize, PartitionProof>) {
        let Some(journal) = &self.journal else {
            return;
        };
        let input = journal.input_path(&record.job);
        let circuit = record.circuit.parse().map_err(|e| format!("{e}"));
        let fits = circuit.and_then(|circuit| {
            let fit = self.fit(circuit, record.input_bytes);
            fit.map(|footprint| (circuit, footprint))
                .map_err(|error| error.to_string())
        });
        let now = self.now();
        let mut state = self.lock();
        if let Some(id) = &record.request_id {
            let known = Known {
                job: record.job.clone(),
                digest: record.digest,
            };
            state.requests.insert(id.clone(), known);
        }
        let live = Live {
            key,
            digest: record.digest,
            completion: Arc::new(Completion::default()),
        };
        state.live.insert(record.job.clone(), live);
        // A job that can no longer be proved ends with a result like any other.
        let (circuit, footprint, failure) = match fits {
            Ok((circuit, footprint)) => (circuit, footprint, None),
            Err(message) => {
                let any = cuzk_filecoin::CircuitId::all().next();
                let Some(any) = record.circuit.parse().ok().or(any) else {
                    return;
                };
                (any, Footprint::default(), Some(message))
            }
        };
        let left = record.deadline.map(|deadline| {
            Duration::from_millis(deadline.saturating_sub(millis(SystemTime::now())))
        });
        let job = NewJob {
            name: record.job,
            request_id: record.request_id,
            circuit,
            level: record.priority,
            input: Input::File(input),
            input_bytes: record.input_bytes,
            accepted: UNIX_EPOCH + Duration::from_millis(record.accepted),
            deadline: left.and_then(|left| now.checked_add(left)),
            restored,
        };
        state.scheduler.submit(key, job, footprint, now);
        if let Some(message) = failure {
            state.scheduler.end(key, JobState::Failed, &message, now);
        }
        drop(self.settle(state));
    }
}

/// Refuses a configuration under which nothing could run.
fn check(config: &EngineConfig) -> Result<(), EngineError> {
    let positive = |key, value: u64| {
        if value > 0 {
            return Ok(());
        }
        Err(EngineError::Config {
            key,
            expected: "more than 0",
            found: value.to_string(),
        })
    };
    positive("queue.jobs", config.queue.jobs as u64)?;
    positive("queue.bytes", config.queue.bytes)?;
    positive("results.count", config.results.count as u64)?;
    positive("results.bytes", config.results.bytes)?;
    if let Budget::Bytes(bytes) = config.host_memory {
        positive("host_memory", bytes)?;
    }
    Ok(())
}

/// The scheduler's numbers: what the configuration leaves open follows from the machine.
fn settings(config: &EngineConfig, devices: &[DeviceSpec]) -> Settings {
    let or = |value: usize, default: usize| if value == 0 { default } else { value };
    let regular = devices.iter().filter(|device| !device.fallback);
    let on_gpu = regular.clone().any(|device| device.ordinal.is_some());
    let devices_count = regular.count().max(1);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    // The CPU prover uses all cores itself.
    let syntheses = if on_gpu {
        cores.saturating_sub(1).clamp(1, SYNTHESES)
    } else {
        1
    };
    let synthesis_workers = or(config.synthesis_workers, syntheses);
    Settings {
        synthesis_workers,
        ahead: or(config.synthesised_ahead, synthesis_workers + devices_count),
        device_slots: or(config.partitions_in_flight, if on_gpu { 2 } else { 1 }),
        ageing: config.ageing,
        device_limits: devices
            .iter()
            .map(|device| device_limit(config.device_memory, device.memory))
            .collect(),
    }
}
