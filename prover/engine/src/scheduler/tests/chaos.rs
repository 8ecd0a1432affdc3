//! Thousands of jobs among random failures and cancellations: nothing is lost, nothing is exceeded.

use std::{collections::HashMap, time::Duration};

use cuzk_filecoin::CircuitId;
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore as _, SeedableRng as _};

use super::*;

/// Random times, random failures; checks the invariants after every event.
struct Chaos {
    rng: ChaCha20Rng,
    limit: u64,
    parsed: HashMap<Key, usize>,
}

impl Chaos {
    fn below(&mut self, bound: u64) -> u64 {
        self.rng.next_u64() % bound
    }
}

impl World for Chaos {
    fn perform(
        &mut self,
        now: Duration,
        _circuit: CircuitId,
        task: Task<Simulated>,
    ) -> (Duration, Outcome<Simulated>) {
        let end = now + Duration::from_millis(self.below(2000));
        let fails = self.below(50) == 0;
        let error = || TaskError::Panic("chaos".into());
        let outcome = match &task {
            Task::Parse { .. } if fails => Outcome::Parsed(Err(error())),
            Task::Load if fails => Outcome::Loaded(Err(error())),
            Task::Synthesise { .. } if fails => Outcome::Synthesised(Err(error())),
            Task::Prove { .. } if fails => Outcome::Proved(Err(error())),
            Task::Assemble { .. } if fails => Outcome::Assembled(Err(error())),
            _ => success(&task),
        };
        if let Task::Parse { input } = &task {
            *self.parsed.entry(input.key).or_default() += 1;
        }
        (end, outcome)
    }

    fn observe(
        &mut self,
        _now: Duration,
        scheduler: &Scheduler<Simulated>,
        _effects: &Effects<Simulated>,
    ) {
        assert!(scheduler.memory.status().used <= self.limit);
        let settings = scheduler.settings();
        assert!(scheduler.synthesising <= settings.synthesis_workers + 1);
        assert!(scheduler.synthesising + scheduler.ready.len() <= settings.ahead + 1);
        for device in &scheduler.devices {
            assert!(device.proving.len() <= settings.device_slots);
        }
        let users: u32 = scheduler.circuits.values().map(|c| c.users).sum();
        let proving: usize = scheduler.devices.iter().map(|d| d.proving.len()).sum();
        let using = scheduler.synthesising + scheduler.ready.len() + proving;
        assert_eq!(users as usize, using);
    }
}

#[test]
fn thousands_of_jobs_each_end_once_within_the_budgets_whatever_fails_or_is_cancelled() {
    for seed in 1..=2 {
        println!("seed {seed}");
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let limit = 110 + rng.next_u64() % 200;
        let world = Chaos {
            rng: rng.clone(),
            limit,
            parsed: HashMap::new(),
        };
        let devices = vec![device("a", false), device("b", false), device("cpu", true)];
        let mut run = simulation(limit, devices, world);
        let mut at = Duration::ZERO;
        let jobs = 1000;
        for key in 1..=jobs {
            at += Duration::from_millis(rng.next_u64() % 3000);
            let kind = (rng.next_u64() % 4) as usize;
            let level = Priority::ALL[(rng.next_u64() % 4) as usize];
            let partitions = 1 + (rng.next_u64() % 10) as usize;
            let new = NewJob {
                deadline: (rng.next_u64() % 10 == 0).then(|| at + seconds(rng.next_u64() % 100)),
                ..job(key, CIRCUITS[kind], level, partitions)
            };
            let needs = footprint(10 + 25 * kind as u64, 1 + 4 * kind as u64);
            run.arrive(at, key, new, needs);
            if rng.next_u64() % 10 == 0 {
                run.cancel(at + seconds(rng.next_u64() % 60), key);
            }
        }
        run.run();
        let ends = ends(&run);
        assert_eq!(ends.len() as u64, jobs, "every job ended");
        let completed = ends.values().filter(|s| **s == JobState::Completed).count();
        assert!(completed > 600, "{completed} completed");
        let totals = run.scheduler.totals;
        assert_eq!(totals.completed + totals.failed + totals.cancelled, jobs);
        // Nothing is left but idle parameters.
        for circuit in CIRCUITS {
            run.scheduler.evict(id(circuit));
        }
        drop(run.scheduler.take_effects());
        let report = run.scheduler.report(run.now);
        assert_eq!(report.host_memory.used, 0);
        assert_eq!((report.queued_bytes, report.running.len()), (0, 0));
        assert!(
            run.scheduler
                .levels
                .iter()
                .all(|l| l.opened == 0 && l.jobs.is_empty())
        );
        assert!(run.scheduler.deadlines.is_empty() && run.scheduler.ready.is_empty());
    }
}
