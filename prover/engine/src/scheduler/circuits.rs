//! Which parameters are in memory, who uses them, and which go when room is needed.

use std::time::Duration;

use cuzk_filecoin::CircuitId;

use super::{Garbage, Job, Key, Payloads, Scheduler};
use crate::{EventKind, Evicted, Footprint, Loaded, Tier, job::JobId, memory::Reservation};

/// A circuit that somebody asked for.
pub(crate) struct Circuit<P: Payloads> {
    pub footprint: Footprint,
    pub residency: Residency<P>,
    /// Partitions that are synthesised, ready or proved with them.
    pub users: u32,
    pub last_used: Duration,
    /// Unload as soon as nobody uses them.
    pub leaving: bool,
    /// Somebody asked for them to be loaded.
    pub wanted: bool,
    /// How long the last load took.
    pub load_time: Duration,
    /// How often loading failed, and why the last time.
    pub failures: u64,
    pub error: String,
}

/// Where parameters are.
pub(crate) enum Residency<P: Payloads> {
    Absent,
    Loading,
    Loaded {
        loaded: Loaded<P::Parameters>,
        memory: Reservation,
    },
}

/// What is known about a preload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Preload {
    Loaded(Duration),
    Waiting,
    Failed(String),
}

impl<P: Payloads> Scheduler<P> {
    /// Makes a circuit known.
    pub(super) fn know(&mut self, id: CircuitId, footprint: Footprint) {
        let circuit = self.circuits.entry(id).or_insert_with(|| Circuit {
            footprint,
            residency: Residency::Absent,
            users: 0,
            last_used: Duration::ZERO,
            leaving: false,
            wanted: false,
            load_time: Duration::ZERO,
            failures: 0,
            error: String::new(),
        });
        if matches!(circuit.residency, Residency::Absent) {
            circuit.footprint = footprint;
        }
    }

    /// Asks for parameters. Returns whether they are there and how often loading has failed so far.
    pub fn preload(&mut self, id: CircuitId, footprint: Footprint) -> (bool, u64) {
        self.know(id, footprint);
        let Some(circuit) = self.circuits.get_mut(&id) else {
            return (false, 0);
        };
        circuit.leaving = false;
        let there = matches!(circuit.residency, Residency::Loaded { .. });
        circuit.wanted = !there;
        (there, circuit.failures)
    }

    /// What became of a preload that found `failures`.
    pub fn preload_state(&self, id: CircuitId, failures: u64) -> Preload {
        let Some(circuit) = self.circuits.get(&id) else {
            return Preload::Waiting;
        };
        match &circuit.residency {
            Residency::Loaded { .. } => Preload::Loaded(circuit.load_time),
            _ if circuit.failures > failures => Preload::Failed(circuit.error.clone()),
            _ => Preload::Waiting,
        }
    }

    /// Unloads parameters, now or when nobody uses them any more.
    pub fn evict(&mut self, id: CircuitId) -> Evicted {
        let nothing = Evicted {
            was_loaded: false,
            freed_bytes: 0,
            deferred: false,
        };
        let Some(circuit) = self.circuits.get_mut(&id) else {
            return nothing;
        };
        circuit.wanted = false;
        let was_loaded = matches!(circuit.residency, Residency::Loaded { .. });
        if matches!(circuit.residency, Residency::Loading) || circuit.users > 0 {
            circuit.leaving = true;
            return Evicted {
                was_loaded,
                deferred: true,
                ..nothing
            };
        }
        Evicted {
            was_loaded,
            freed_bytes: self.unload(id),
            deferred: false,
        }
    }

    /// Unloads parameters that nobody uses; returns the bytes that are freed.
    fn unload(&mut self, id: CircuitId) -> u64 {
        let Some(circuit) = self.circuits.get_mut(&id) else {
            return 0;
        };
        circuit.leaving = false;
        let residency = std::mem::replace(&mut circuit.residency, Residency::Absent);
        let Residency::Loaded { loaded, mut memory } = residency else {
            circuit.residency = residency;
            return 0;
        };
        for device in &mut self.devices {
            device.hot.retain(|hot| *hot != id);
        }
        memory.depart();
        let bytes = memory.bytes();
        let garbage = Garbage::Parameters(loaded.parameters, memory);
        self.effects.garbage.push(garbage);
        self.tell_tier(id, Tier::Cold);
        bytes
    }

    /// One user of a circuit's parameters less.
    pub(super) fn leave(&mut self, id: CircuitId, now: Duration) {
        let Some(circuit) = self.circuits.get_mut(&id) else {
            return;
        };
        circuit.users = circuit.users.saturating_sub(1);
        circuit.last_used = now;
        if circuit.users == 0 && circuit.leaving {
            self.unload(id);
        }
    }

    /// One user of a circuit's parameters more; the parameters.
    pub(super) fn enter(&mut self, id: CircuitId, now: Duration) -> Option<P::Parameters> {
        let circuit = self.circuits.get_mut(&id)?;
        let Residency::Loaded { loaded, .. } = &circuit.residency else {
            return None;
        };
        circuit.users += 1;
        circuit.last_used = now;
        Some(loaded.parameters.clone())
    }

    pub(super) fn tell_tier(&mut self, circuit: CircuitId, tier: Tier) {
        self.effects
            .events
            .push(EventKind::Parameters { circuit, tier });
    }

    /// Where a circuit's parameters are.
    pub(super) fn tier(&self, id: CircuitId) -> Tier {
        let loaded = self
            .circuits
            .get(&id)
            .is_some_and(|circuit| matches!(circuit.residency, Residency::Loaded { .. }));
        let hot = self.devices.iter().any(|device| device.hot.contains(&id));
        match (loaded, hot) {
            (false, _) => Tier::Cold,
            (true, false) => Tier::Warm,
            (true, true) => Tier::Hot,
        }
    }

    /// Whether loading a circuit needs no other one to go.
    pub(super) fn fits_beside(&self, id: CircuitId) -> bool {
        self.circuits
            .get(&id)
            .is_some_and(|circuit| circuit.footprint.parameters <= self.memory.free())
    }

    /// Reserves memory; where there is too little, sends away what nobody needs now, so that there
    /// will be enough later.
    pub(super) fn reserve(&mut self, bytes: u64, whose: Option<Key>) -> Option<Reservation> {
        let reservation = self.memory.try_reserve(bytes);
        if reservation.is_none() {
            self.make_room(bytes, whose);
        }
        reservation
    }

    /// Unloads idle parameters, the longest unused first, until `bytes` will be free. Where nothing is
    /// in the making, parsed requests of other jobs than `whose` are given up as well.
    fn make_room(&mut self, bytes: u64, whose: Option<Key>) {
        let spared = whose
            .and_then(|key| self.jobs.get(&key))
            .map(|job| job.circuit);
        while self.memory.free_soon() < bytes {
            let idle = self.circuits.iter().filter(|(id, circuit)| {
                circuit.users == 0
                    && Some(**id) != spared
                    && matches!(circuit.residency, Residency::Loaded { .. })
            });
            let Some((&id, _)) = idle.min_by_key(|(id, circuit)| (circuit.last_used, **id)) else {
                break;
            };
            self.unload(id);
        }
        if self.memory.free_soon() >= bytes || !self.running.is_empty() {
            return;
        }
        let others = self.jobs.iter().rev().filter(|(key, job)| {
            Some(**key) != whose && !job.partitions().is_empty() && job.is_at_rest()
        });
        let others: Vec<Key> = others.map(|(key, _)| *key).collect();
        for key in others {
            if self.memory.free_soon() >= bytes {
                break;
            }
            self.close(key);
        }
    }

    /// Gives up a job's parsed request; it is parsed again later.
    fn close(&mut self, key: Key) {
        let Some(job) = self.jobs.get_mut(&key) else {
            return;
        };
        if job.first_waiting().is_none() {
            return;
        }
        if std::mem::take(&mut job.opened) {
            self.levels[job.level as usize].opened -= 1;
        }
        if let Some((request, mut memory)) = job.close() {
            memory.depart();
            self.effects.garbage.push(Garbage::Request(request, memory));
        }
    }

    /// Ends the jobs whose parameters cannot be loaded.
    pub(super) fn fail_without_parameters(&mut self, id: CircuitId, error: &str, now: Duration) {
        let stuck = |job: &Job<P>| job.circuit == id && job.first_waiting().is_some();
        let jobs = self
            .jobs
            .iter()
            .filter(|(_, job)| stuck(job) && job.is_at_rest());
        let keys: Vec<Key> = jobs.map(|(key, _)| *key).collect();
        for key in keys {
            let message = format!("the parameters of {id}: {error}");
            self.finish(key, crate::JobState::Failed, Vec::new(), &message, now);
        }
    }

    /// The name of a job.
    pub(super) fn name_of(&self, key: Key) -> Option<JobId> {
        self.jobs.get(&key).map(|job| job.name.clone())
    }
}
