//! The scheduler under a simulated clock, with thousands of jobs.

mod chaos;

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, SystemTime},
};

use super::*;
use crate::{
    JobId, JobState, Tier,
    simulation::{Simulated, Simulation, Tag, World, success},
};
use cuzk_filecoin::CircuitId;

const CIRCUITS: [&str; 4] = ["porep-2k", "snap-2k", "wpost-2k", "winning-2k"];

fn id(name: &str) -> CircuitId {
    name.parse().unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn device(name: &str, fallback: bool) -> DeviceSpec {
    DeviceSpec {
        ordinal: (!fallback).then_some(0),
        name: name.to_owned(),
        memory: 100,
        fallback,
    }
}

fn settings() -> Settings {
    Settings {
        synthesis_workers: 2,
        ahead: 3,
        device_slots: 2,
        ageing: seconds(60),
        device_limits: vec![90; 8],
    }
}

fn footprint(parameters: u64, partition: u64) -> Footprint {
    Footprint {
        parameters,
        partition,
        fallback: 5,
        device_parameters: parameters,
    }
}

fn job(key: Key, circuit: &str, level: Priority, partitions: usize) -> NewJob<Simulated> {
    NewJob {
        name: JobId::new(key.to_string()),
        request_id: None,
        circuit: id(circuit),
        level,
        input: Tag { key, partitions },
        input_bytes: 1,
        accepted: SystemTime::UNIX_EPOCH,
        deadline: None,
        restored: BTreeMap::new(),
    }
}

/// Every task takes a fixed time; devices make one proof after the other; some proofs fail.
struct Steady {
    parse: Duration,
    load: Duration,
    synthesis: Duration,
    prove: Duration,
    free_at: HashMap<usize, Duration>,
    /// Devices whose proofs fail, with the error.
    broken: HashMap<usize, TaskError>,
    retry: bool,
    events: Vec<(Duration, EventKind)>,
}

impl Steady {
    fn new() -> Self {
        Self {
            parse: Duration::from_millis(10),
            load: seconds(1),
            synthesis: seconds(1),
            prove: seconds(1),
            free_at: HashMap::new(),
            broken: HashMap::new(),
            retry: true,
            events: Vec::new(),
        }
    }

    /// When partitions of a job got to a stage.
    fn times(&self, key: Key, stage: Stage) -> Vec<Duration> {
        let name = JobId::new(key.to_string());
        let at = |(at, event): &(Duration, EventKind)| match event {
            EventKind::Partition { job, stage: s, .. } if *job == name && *s == stage => Some(*at),
            _ => None,
        };
        self.events.iter().filter_map(at).collect()
    }

    fn loads(&self) -> usize {
        let is_load = |(_, event): &&(Duration, EventKind)| {
            matches!(
                event,
                EventKind::Parameters {
                    tier: Tier::Warm,
                    ..
                }
            )
        };
        self.events.iter().filter(is_load).count()
    }
}

impl World for Steady {
    fn perform(
        &mut self,
        now: Duration,
        _circuit: CircuitId,
        task: Task<Simulated>,
    ) -> (Duration, Outcome<Simulated>) {
        let outcome = success(&task);
        match task {
            Task::Parse { .. } => (now + self.parse, outcome),
            Task::Load => (now + self.load, outcome),
            Task::Synthesise { .. } => (now + self.synthesis, outcome),
            Task::Prove { device, .. } => {
                let free = self.free_at.entry(device).or_default();
                *free = now.max(*free) + self.prove;
                let outcome = match self.broken.get(&device) {
                    Some(error) => Outcome::Proved(Err(error.clone())),
                    None => outcome,
                };
                (*free, outcome)
            }
            Task::Diagnose { error, .. } => {
                let diagnosis = Diagnosis {
                    message: format!("looked into: {error}"),
                    retry: self.retry,
                };
                (now, Outcome::Diagnosed(diagnosis))
            }
            Task::Assemble { .. } => (now, outcome),
        }
    }

    fn observe(
        &mut self,
        now: Duration,
        _scheduler: &Scheduler<Simulated>,
        effects: &Effects<Simulated>,
    ) {
        let events = effects.events.iter().cloned();
        self.events.extend(events.map(|event| (now, event)));
    }
}

fn simulation<W: World>(limit: u64, devices: Vec<DeviceSpec>, world: W) -> Simulation<W> {
    Simulation::new(Scheduler::new(settings(), Pool::new(limit), devices), world)
}

/// The state in which each job ended; fails if one ended twice.
fn ends<W>(run: &Simulation<W>) -> BTreeMap<Key, JobState> {
    let mut ends = BTreeMap::new();
    for (_, finished) in &run.finished {
        let before = ends.insert(finished.key, finished.result.state);
        assert_eq!(before, None, "job {} ended twice", finished.key);
    }
    ends
}

fn message<W>(run: &Simulation<W>, key: Key) -> &str {
    let found = run.finished.iter().find(|(_, f)| f.key == key);
    &found.expect("the job ended").1.result.message
}

#[test]
fn partitions_of_one_job_overlap_on_host_and_device() {
    let mut run = simulation(100, vec![device("a", false)], Steady::new());
    run.arrive(
        Duration::ZERO,
        1,
        job(1, "porep-2k", Priority::Normal, 10),
        footprint(20, 5),
    );
    run.run();
    assert_eq!(ends(&run), BTreeMap::from([(1, JobState::Completed)]));
    assert_eq!(run.finished[0].1.result.proof.len(), 10 * 192);
    // Load and the first synthesis go before ten proofs; one after the other would take 22 s.
    assert!(run.now < seconds(13), "{:?}", run.now);
    let times = run.finished[0].1.result.times;
    assert_eq!(times.srs_load, seconds(1));
    assert!(times.gpu_compute >= seconds(10) && times.synthesis >= seconds(10));
}

#[test]
fn a_critical_job_overtakes_at_the_next_partition() {
    let mut run = simulation(1000, vec![device("a", false)], Steady::new());
    for key in 1..=5 {
        let normal = job(key, "porep-2k", Priority::Normal, 10);
        run.arrive(Duration::ZERO, key, normal, footprint(20, 5));
    }
    let at = Duration::from_millis(20_300);
    let critical = job(9, "winning-2k", Priority::Critical, 1);
    run.arrive(at, 9, critical, footprint(1, 1));
    run.run();
    let synthesis = run.world.times(9, Stage::Synthesis)[0];
    let prove = run.world.times(9, Stage::Prove)[0];
    // Parsing and loading take 1.01 s; then there is a worker at once, and a slot after one proof.
    assert!(
        synthesis - at <= Duration::from_millis(1_011),
        "{synthesis:?}"
    );
    let ready = synthesis + run.world.synthesis;
    assert!(prove - ready <= run.world.prove, "{prove:?}");
    assert_eq!(ends(&run).len(), 6);
}

#[test]
fn a_flood_of_critical_jobs_leaves_progress_to_every_other_level() {
    let mut run = simulation(1000, vec![device("a", false)], Steady::new());
    for (key, level) in [
        (1, Priority::Low),
        (2, Priority::Normal),
        (3, Priority::High),
    ] {
        run.arrive(
            seconds(5),
            key,
            job(key, "porep-2k", level, 3),
            footprint(20, 5),
        );
    }
    // Two critical jobs a second are twice what the device can do.
    for i in 0..2000 {
        let critical = job(100 + i, "winning-2k", Priority::Critical, 1);
        run.arrive(
            Duration::from_millis(500 * i),
            100 + i,
            critical,
            footprint(1, 1),
        );
    }
    run.run();
    assert_eq!(ends(&run).len(), 2003);
    for key in [1, 2, 3] {
        let (end, _) = run.finished.iter().find(|(_, f)| f.key == key).unwrap();
        // Three partitions, each within the ageing time of synthesis and of readiness.
        assert!(*end < seconds(5 + 3 * 140), "job {key} at {end:?}");
    }
    // The flood is served first all the same.
    let done = run.finished.iter().take_while(|(at, _)| *at < seconds(300));
    assert!(done.count() > 270);
}

#[test]
fn levels_are_served_from_the_highest_to_the_lowest() {
    let mut run = simulation(1000, vec![device("a", false)], Steady::new());
    let levels = [
        Priority::Low,
        Priority::Normal,
        Priority::High,
        Priority::Critical,
    ];
    for (i, level) in levels.into_iter().enumerate() {
        for n in 0..4 {
            let key = (4 * i + n) as u64 + 1;
            run.arrive(
                Duration::ZERO,
                key,
                job(key, "porep-2k", level, 1),
                footprint(20, 5),
            );
        }
    }
    run.run();
    let order: Vec<Key> = run.finished.iter().map(|(_, f)| f.key).collect();
    let level = |key: &Key| (key - 1) / 4;
    // The first few were started before the others had arrived.
    let late = &order[5..];
    let sorted = late
        .windows(2)
        .all(|pair| level(&pair[0]) >= level(&pair[1]));
    assert!(sorted, "{order:?}");
}

#[test]
fn circuits_that_do_not_fit_together_are_swapped_rarely() {
    let mut run = simulation(100, vec![device("a", false)], Steady::new());
    for key in 1..=40 {
        let circuit = CIRCUITS[(key % 2) as usize];
        run.arrive(
            Duration::ZERO,
            key,
            job(key, circuit, Priority::Normal, 1),
            footprint(60, 5),
        );
    }
    run.run();
    assert_eq!(ends(&run).len(), 40);
    assert!(run.world.loads() <= 4, "{} loads", run.world.loads());
}

#[test]
fn a_device_that_fails_gets_one_chance_with_each_partition() {
    let mut world = Steady::new();
    world
        .broken
        .insert(0, TaskError::Device("it is on fire".into()));
    let devices = vec![device("a", false), device("b", false), device("cpu", true)];
    let mut run = simulation(1000, devices, world);
    for key in 1..=20 {
        run.arrive(
            Duration::ZERO,
            key,
            job(key, "porep-2k", Priority::Normal, 2),
            footprint(20, 5),
        );
    }
    run.run();
    let ends = ends(&run);
    assert!(ends.values().all(|state| *state == JobState::Completed));
    let report = run.scheduler.report(run.now);
    assert!(report.devices[0].failed > 0 && report.devices[0].proved == 0);
    assert_eq!(report.totals.retries, report.devices[0].failed);
    assert_eq!(
        report.devices[2].proved, 0,
        "another gpu goes before the cpu"
    );
}

#[test]
fn without_another_device_a_failed_partition_goes_to_the_cpu() {
    let mut world = Steady::new();
    world
        .broken
        .insert(0, TaskError::Invalid("does not verify".into()));
    let devices = vec![device("a", false), device("cpu", true)];
    let mut run = simulation(100, devices, world);
    run.arrive(
        Duration::ZERO,
        1,
        job(1, "porep-2k", Priority::Normal, 3),
        footprint(20, 5),
    );
    run.run();
    assert_eq!(ends(&run), BTreeMap::from([(1, JobState::Completed)]));
    let report = run.scheduler.report(run.now);
    assert_eq!((report.devices[0].failed, report.devices[1].proved), (3, 3));
}

#[test]
fn the_cpu_gets_its_memory_even_where_there_is_little() {
    let mut world = Steady::new();
    world.broken.insert(0, TaskError::Device("lost".into()));
    let devices = vec![device("a", false), device("cpu", true)];
    // Parameters, one partition, the proof on the CPU and the request: nothing is left over.
    let mut run = simulation(20 + 5 + 5 + 3, devices.clone(), world);
    for key in 1..=3 {
        let porep = job(key, "porep-2k", Priority::Normal, 6);
        run.arrive(Duration::ZERO, key, porep, footprint(20, 5));
    }
    run.run();
    assert!(ends(&run).values().all(|end| *end == JobState::Completed));
    assert_eq!(ends(&run).len(), 3);

    let mut world = Steady::new();
    world.broken.insert(0, TaskError::Device("lost".into()));
    let mut run = simulation(20 + 5 + 4 + 3, devices, world);
    let porep = job(1, "porep-2k", Priority::Normal, 6);
    run.arrive(Duration::ZERO, 1, porep, footprint(20, 5));
    run.run();
    assert!(
        message(&run, 1).contains("not enough memory"),
        "{}",
        message(&run, 1)
    );
}

#[test]
fn a_partition_that_fails_twice_fails_its_job_with_both_findings() {
    let mut world = Steady::new();
    let broken = |text: &str| TaskError::Device(text.to_owned());
    world.broken.insert(0, broken("first fault"));
    world.broken.insert(1, broken("second fault"));
    let devices = vec![device("gpu", false), device("cpu", true)];
    let mut run = simulation(100, devices, world);
    let porep = job(1, "porep-2k", Priority::Normal, 3);
    run.arrive(Duration::ZERO, 1, porep, footprint(20, 5));
    run.run();
    assert_eq!(ends(&run), BTreeMap::from([(1, JobState::Failed)]));
    for part in [
        "of 3",
        "on cpu",
        "second fault",
        "first attempt",
        "on gpu",
        "first fault",
    ] {
        assert!(message(&run, 1).contains(part), "{}", message(&run, 1));
    }
    let left = run.scheduler.report(run.now);
    assert_eq!(left.host_memory.used, 20, "only the parameters stay");
}

#[test]
fn a_request_that_is_to_blame_is_not_tried_again() {
    let mut world = Steady::new();
    world.broken.insert(0, TaskError::Invalid("bad".into()));
    world.retry = false;
    let devices = vec![device("gpu", false), device("cpu", true)];
    let mut run = simulation(100, devices, world);
    let porep = job(1, "porep-2k", Priority::Normal, 1);
    run.arrive(Duration::ZERO, 1, porep, footprint(20, 5));
    run.run();
    assert_eq!(ends(&run), BTreeMap::from([(1, JobState::Failed)]));
    assert!(message(&run, 1).contains("partition 0 of 1 on gpu: looked into: bad"));
    assert_eq!(run.scheduler.report(run.now).totals.retries, 0);
}

#[test]
fn jobs_end_at_their_deadline() {
    let mut run = simulation(100, vec![device("a", false)], Steady::new());
    let deadline = Some(seconds(4));
    let late = NewJob {
        deadline,
        ..job(1, "porep-2k", Priority::Normal, 30)
    };
    run.arrive(Duration::ZERO, 1, late, footprint(20, 5));
    let early = NewJob {
        deadline: Some(seconds(100)),
        ..job(2, "porep-2k", Priority::Normal, 1)
    };
    run.arrive(Duration::ZERO, 2, early, footprint(20, 5));
    run.run();
    let expected = [(1, JobState::Cancelled), (2, JobState::Completed)];
    assert_eq!(ends(&run), BTreeMap::from(expected));
    assert_eq!(message(&run, 1), "the deadline passed");
    assert!(run.now < seconds(12), "{:?}", run.now);
}

#[test]
fn proofs_from_before_a_restart_are_not_made_again() {
    let mut run = simulation(100, vec![device("a", false)], Steady::new());
    let restored = [0, 2].map(|k| (k, [7; 192]));
    let some = NewJob {
        restored: restored.into(),
        ..job(1, "porep-2k", Priority::Normal, 3)
    };
    run.arrive(Duration::ZERO, 1, some, footprint(20, 5));
    let all = NewJob {
        restored: BTreeMap::from([(0, [7; 192])]),
        ..job(2, "porep-2k", Priority::Normal, 1)
    };
    run.arrive(Duration::ZERO, 2, all, footprint(20, 5));
    run.run();
    assert_eq!(ends(&run).len(), 2);
    assert_eq!(run.scheduler.report(run.now).devices[0].proved, 1);
    let (_, first) = run.finished.iter().find(|(_, f)| f.key == 1).unwrap();
    let proof = &first.result.proof;
    assert_eq!((proof[0], proof[192], proof[384]), (7, 0, 7));
}

#[test]
fn preloaded_parameters_stay_until_they_are_evicted_or_room_is_needed() {
    let mut run = simulation(100, vec![device("a", false)], Steady::new());
    let (porep, snap) = (id("porep-2k"), id("snap-2k"));
    assert_eq!(run.scheduler.preload(porep, footprint(60, 5)), (false, 0));
    run.run();
    assert_eq!(run.scheduler.preload(porep, footprint(60, 5)), (true, 0));
    assert_eq!(
        run.scheduler.preload_state(porep, 0),
        Preload::Loaded(seconds(1))
    );
    // Another circuit needs the room.
    run.arrive(
        seconds(10),
        1,
        job(1, "snap-2k", Priority::Normal, 1),
        footprint(50, 5),
    );
    run.run();
    assert_eq!(run.scheduler.preload_state(porep, 0), Preload::Waiting);
    let evicted = run.scheduler.evict(snap);
    assert_eq!((evicted.was_loaded, evicted.freed_bytes), (true, 50));
    assert!(!run.scheduler.evict(snap).was_loaded);
    drop(run.scheduler.take_effects());
    assert_eq!(run.scheduler.report(run.now).host_memory.used, 0);
}
