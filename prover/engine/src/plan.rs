//! What a machine would do that one does not have: the real scheduler under a simulated clock.
//!
//! ```
//! use std::time::Duration;
//!
//! use cuzk_engine::plan::{Machine, Model, PlanJob, predict};
//!
//! let machine = Machine::gpus(2, 140 << 30, 32, 128 << 30);
//! let jobs = PlanJob::burst("porep-32g".parse()?, 4);
//! let prediction = predict(&machine, &jobs, &Model::published())?;
//! assert_eq!(prediction.completed, 4);
//! assert!(prediction.host_peak <= prediction.host_limit);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, SystemTime},
};

use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};
use thiserror::Error;

use crate::{
    DeviceSpec, Footprint, JobId, JobState, Priority,
    memory::Pool,
    scheduler::{NewJob, Outcome, REQUEST_FACTOR, Scheduler, Settings, Task},
    simulation::{Simulated, Simulation, Tag, World, success},
};

/// The machine of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its devices.
    pub devices: Vec<DeviceSpec>,
    /// Its cores.
    pub cores: usize,
    /// Host memory that the engine may use, in bytes.
    pub host_memory: u64,
    /// Partitions that each device has started at once.
    pub partitions_in_flight: usize,
    /// See [`crate::EngineConfig::ageing`].
    pub ageing: Duration,
}

impl Machine {
    /// A machine with equal GPUs of `device_memory` bytes each.
    pub fn gpus(count: usize, device_memory: u64, cores: usize, host_memory: u64) -> Self {
        let device = |ordinal| DeviceSpec {
            ordinal: Some(ordinal),
            name: format!("gpu {ordinal}"),
            memory: device_memory,
            fallback: false,
        };
        Self {
            devices: (0..count).map(device).collect(),
            cores,
            host_memory,
            partitions_in_flight: 2,
            ageing: Duration::from_secs(60),
        }
    }

    /// A machine without GPUs.
    pub fn cpu(cores: usize, host_memory: u64) -> Self {
        let device = DeviceSpec {
            ordinal: None,
            name: format!("cpu ({cores} threads)"),
            memory: 0,
            fallback: false,
        };
        Self {
            devices: vec![device],
            partitions_in_flight: 1,
            ..Self::gpus(0, 0, cores, host_memory)
        }
    }

    fn settings(&self) -> Settings {
        let on_gpu = self.devices.iter().any(|device| device.ordinal.is_some());
        let synthesis_workers = if on_gpu {
            self.cores.saturating_sub(1).clamp(1, 16)
        } else {
            1
        };
        Settings {
            synthesis_workers,
            ahead: synthesis_workers + self.devices.len(),
            device_slots: self.partitions_in_flight.max(1),
            ageing: self.ageing,
            device_limits: self.devices.iter().map(|d| d.memory / 10 * 9).collect(),
        }
    }
}

/// What a circuit takes in time and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitModel {
    /// Its memory.
    pub footprint: Footprint,
    /// Partitions of a job.
    pub partitions: usize,
    /// Bytes of a job's input.
    pub input_bytes: u64,
    /// Reading a job's input.
    pub parse: Duration,
    /// Loading the parameters into host memory.
    pub load: Duration,
    /// Moving them to a device that has others.
    pub device_load: Duration,
    /// One core's time for a partition's synthesis.
    pub synthesis: Duration,
    /// A device's time for a partition.
    pub prove: Duration,
    /// Joining the proofs and checking the whole.
    pub assemble: Duration,
}

/// What circuits take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// By circuit.
    pub circuits: BTreeMap<CircuitId, CircuitModel>,
}

impl Model {
    /// The circuits of 32 GiB sectors with their published counts, and rough times for one large GPU.
    /// Where measured times are at hand, put them in the place of these.
    pub fn published() -> Self {
        let row = |kind, aux: u64, domain: u64, file: u64, partitions, input, seconds: [u64; 2]| {
            let [synthesis, prove] = seconds;
            let model = CircuitModel {
                footprint: Footprint {
                    parameters: file,
                    partition: (8 << 20) + 64 * domain + 2 * aux,
                    fallback: 96 * domain + 16 * aux,
                    device_parameters: file,
                },
                partitions,
                input_bytes: input,
                parse: Duration::from_nanos(20 * input),
                load: Duration::from_nanos(file),
                device_load: Duration::from_nanos(file / 40),
                synthesis: Duration::from_millis(synthesis),
                prove: Duration::from_millis(prove),
                assemble: Duration::from_millis(10),
            };
            (CircuitId::new(kind, SectorSize::Gib32), model)
        };
        let circuits = BTreeMap::from([
            row(
                ProofKind::Porep,
                130_169_893,
                1 << 27,
                47_373_928_632,
                10,
                67_000_000,
                [80_000, 1_000],
            ),
            row(
                ProofKind::Window,
                126_902_376,
                1 << 27,
                60_780_374_232,
                1,
                80_000_000,
                [80_000, 1_500],
            ),
            row(
                ProofKind::Winning,
                375_210,
                1 << 19,
                192_050_232,
                1,
                300_000,
                [240, 20],
            ),
            row(
                ProofKind::Update,
                80_978_488,
                1 << 27,
                34_453_501_368,
                16,
                30_000_000,
                [50_000, 800],
            ),
        ]);
        Self { circuits }
    }
}

/// A job of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanJob {
    /// Its circuit.
    pub circuit: CircuitId,
    /// Its level; by kind if none is given.
    pub priority: Option<Priority>,
    /// When it arrives.
    pub arrival: Duration,
}

impl PlanJob {
    /// As many jobs of one circuit, all there at once.
    pub fn burst(circuit: CircuitId, count: usize) -> Vec<Self> {
        let job = Self {
            circuit,
            priority: None,
            arrival: Duration::ZERO,
        };
        vec![job; count]
    }

    /// As many jobs of one circuit, one after the other at equal distances.
    pub fn every(circuit: CircuitId, distance: Duration, count: u32) -> Vec<Self> {
        let job = |i| Self {
            circuit,
            priority: None,
            arrival: distance * i,
        };
        (0..count).map(job).collect()
    }
}

/// Why there is no prediction.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// The model says nothing about a circuit.
    #[error("the model has no numbers for {circuit}")]
    Unknown {
        /// The circuit.
        circuit: CircuitId,
    },
    /// A job can never have the memory that it needs.
    #[error("{circuit} needs {needed} bytes of host memory, the machine grants {limit}")]
    NeverFits {
        /// The circuit.
        circuit: CircuitId,
        /// What it needs.
        needed: u64,
        /// What there is.
        limit: u64,
    },
    /// There is no device that proves.
    #[error("the machine has no device")]
    NoDevice,
}

/// What would happen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Jobs with a proof.
    pub completed: usize,
    /// From the first arrival to the last proof.
    pub makespan: Duration,
    /// Jobs an hour, over the makespan.
    pub proofs_per_hour: f64,
    /// From a job's arrival to its proof: the median.
    pub latency_median: Duration,
    /// The time that nine in ten stay below.
    pub latency_p90: Duration,
    /// The time that 99 in a hundred stay below.
    pub latency_p99: Duration,
    /// The longest.
    pub latency_max: Duration,
    /// The most host memory that was reserved, in bytes.
    pub host_peak: u64,
    /// The most that may be.
    pub host_limit: u64,
    /// The share of the makespan in which each device had a partition.
    pub device_busy: Vec<f64>,
    /// The cores' share of the makespan that went into synthesis.
    pub cores_busy: f64,
    /// How often parameters were loaded into host memory.
    pub loads: u64,
    /// How often a device took other parameters.
    pub device_loads: u64,
}

/// Predicts what `machine` makes of `jobs`.
///
/// # Errors
/// The model lacks a circuit, or a job does not fit the machine.
pub fn predict(
    machine: &Machine,
    jobs: &[PlanJob],
    model: &Model,
) -> Result<Prediction, PlanError> {
    if machine.devices.iter().all(|device| device.fallback) {
        return Err(PlanError::NoDevice);
    }
    let pool = Pool::new(machine.host_memory);
    let settings = machine.settings();
    let devices = machine.devices.clone();
    let world = Predicted {
        model,
        free_at: vec![Duration::ZERO; devices.len()],
        holds: vec![None; devices.len()],
        loads: 0,
        device_loads: 0,
        arrivals: HashMap::new(),
    };
    let mut run = Simulation::new(Scheduler::new(settings, pool.clone(), devices), world);
    for (index, job) in jobs.iter().enumerate() {
        let numbers = numbers(model, job.circuit, pool.limit())?;
        let key = index as u64 + 1;
        run.world.arrivals.insert(key, job.arrival);
        run.arrive(
            job.arrival,
            key,
            new_job(key, job, numbers),
            numbers.footprint,
        );
    }
    run.run();
    Ok(summary(machine, jobs, &run, &pool))
}

fn numbers(model: &Model, circuit: CircuitId, limit: u64) -> Result<&CircuitModel, PlanError> {
    let unknown = PlanError::Unknown { circuit };
    let numbers = model.circuits.get(&circuit).ok_or(unknown)?;
    let Footprint {
        parameters,
        partition,
        ..
    } = numbers.footprint;
    let needed = parameters + partition + REQUEST_FACTOR * numbers.input_bytes;
    if needed > limit {
        return Err(PlanError::NeverFits {
            circuit,
            needed,
            limit,
        });
    }
    Ok(numbers)
}

fn new_job(key: u64, job: &PlanJob, numbers: &CircuitModel) -> NewJob<Simulated> {
    NewJob {
        name: JobId::new(key.to_string()),
        request_id: None,
        circuit: job.circuit,
        level: job.priority.unwrap_or(Priority::of(job.circuit.kind)),
        input: Tag {
            key,
            partitions: numbers.partitions,
        },
        input_bytes: numbers.input_bytes,
        accepted: SystemTime::UNIX_EPOCH,
        deadline: None,
        restored: BTreeMap::new(),
    }
}

/// The world of a plan: everything succeeds; a device makes one proof after the other.
struct Predicted<'m> {
    model: &'m Model,
    free_at: Vec<Duration>,
    holds: Vec<Option<CircuitId>>,
    loads: u64,
    device_loads: u64,
    arrivals: HashMap<u64, Duration>,
}

impl World for Predicted<'_> {
    fn perform(
        &mut self,
        now: Duration,
        circuit: CircuitId,
        task: Task<Simulated>,
    ) -> (Duration, Outcome<Simulated>) {
        let outcome = success(&task);
        let Some(numbers) = self.model.circuits.get(&circuit) else {
            return (now, outcome);
        };
        let end = match task {
            Task::Parse { .. } => now + numbers.parse,
            Task::Load => {
                self.loads += 1;
                now + numbers.load
            }
            Task::Synthesise { .. } => now + numbers.synthesis,
            Task::Prove { device, .. } => {
                let mut begin = now.max(self.free_at[device]);
                if self.holds[device] != Some(circuit) {
                    self.holds[device] = Some(circuit);
                    self.device_loads += 1;
                    begin += numbers.device_load;
                }
                self.free_at[device] = begin + numbers.prove;
                self.free_at[device]
            }
            Task::Diagnose { .. } => now,
            Task::Assemble { .. } => now + numbers.assemble,
        };
        (end, outcome)
    }
}

fn summary(
    machine: &Machine,
    jobs: &[PlanJob],
    run: &Simulation<Predicted<'_>>,
    pool: &Pool,
) -> Prediction {
    let completed = run
        .finished
        .iter()
        .filter(|(_, finished)| finished.result.state == JobState::Completed);
    let mut latencies: Vec<Duration> = completed
        .map(|(at, finished)| {
            let arrival = run.world.arrivals.get(&finished.key).copied();
            at.saturating_sub(arrival.unwrap_or_default())
        })
        .collect();
    latencies.sort_unstable();
    let first = jobs.iter().map(|job| job.arrival).min().unwrap_or_default();
    let last = run.finished.iter().map(|(at, _)| *at).max();
    let makespan = last.unwrap_or_default().saturating_sub(first);
    let seconds = makespan.as_secs_f64();
    let share = |busy: Duration| {
        if seconds > 0.0 {
            busy.as_secs_f64() / seconds
        } else {
            0.0
        }
    };
    let at = |hundredths: usize| {
        let place = (latencies.len() * hundredths).div_ceil(100).max(1) - 1;
        latencies.get(place).copied().unwrap_or_default()
    };
    let report = run.scheduler.report(run.now);
    Prediction {
        completed: latencies.len(),
        makespan,
        proofs_per_hour: if seconds > 0.0 {
            latencies.len() as f64 * 3600.0 / seconds
        } else {
            0.0
        },
        latency_median: at(50),
        latency_p90: at(90),
        latency_p99: at(99),
        latency_max: at(100),
        host_peak: pool.status().peak,
        host_limit: pool.limit(),
        device_busy: report.devices.iter().map(|d| share(d.busy)).collect(),
        cores_busy: share(report.totals.synthesis) / machine.cores.max(1) as f64,
        loads: run.world.loads,
        device_loads: run.world.device_loads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> CircuitId {
        name.parse().unwrap()
    }

    /// A model in which only the device's work takes time.
    fn device_bound() -> Model {
        let mut model = Model::published();
        for numbers in model.circuits.values_mut() {
            numbers.parse = Duration::ZERO;
            numbers.load = Duration::ZERO;
            numbers.device_load = Duration::ZERO;
            numbers.synthesis = Duration::ZERO;
            numbers.assemble = Duration::ZERO;
        }
        model
    }

    #[test]
    fn work_that_only_devices_do_takes_its_sum_over_their_number() {
        for (devices, seconds) in [(1, 80), (2, 40), (8, 10)] {
            let machine = Machine::gpus(devices, 140 << 30, 32, 400 << 30);
            let jobs = PlanJob::burst(id("porep-32g"), 8);
            let found = predict(&machine, &jobs, &device_bound()).unwrap();
            assert_eq!(found.makespan, Duration::from_secs(seconds), "{devices}");
            assert!(found.device_busy.iter().all(|&busy| busy > 0.99));
        }
    }

    #[test]
    fn work_that_only_cores_do_takes_its_sum_over_the_workers() {
        let mut model = device_bound();
        let numbers = model.circuits.get_mut(&id("porep-32g")).unwrap();
        numbers.synthesis = Duration::from_secs(8);
        numbers.prove = Duration::ZERO;
        let machine = Machine::gpus(1, 140 << 30, 5, 400 << 30);
        let jobs = PlanJob::burst(id("porep-32g"), 4);
        let found = predict(&machine, &jobs, &model).unwrap();
        // 40 partitions of 8 s on 4 workers.
        assert_eq!(found.makespan, Duration::from_secs(80));
        assert!((found.cores_busy - 0.8).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn little_memory_costs_throughput_but_is_never_exceeded() {
        let jobs = PlanJob::burst(id("porep-32g"), 4);
        let run = |gib: u64| {
            let machine = Machine::gpus(1, 140 << 30, 17, gib << 30);
            predict(&machine, &jobs, &Model::published())
        };
        let (small, large) = (run(64).unwrap(), run(400).unwrap());
        assert!(small.host_peak <= 64 << 30 && large.host_peak <= 400 << 30);
        assert!(small.makespan > large.makespan * 3, "{small:?} {large:?}");
        let error = run(48).unwrap_err();
        assert!(matches!(error, PlanError::NeverFits { .. }), "{error}");
    }

    #[test]
    fn parameters_that_do_not_fit_together_are_swapped_a_few_times_not_for_each_job() {
        let mut jobs = Vec::new();
        for _ in 0..20 {
            jobs.extend(PlanJob::burst(id("porep-32g"), 1));
            jobs.extend(PlanJob::burst(id("snap-32g"), 1));
        }
        let machine = Machine::gpus(1, 140 << 30, 64, 80 << 30);
        let found = predict(&machine, &jobs, &Model::published()).unwrap();
        assert_eq!(found.completed, 40);
        assert!(found.loads <= 24, "{} loads", found.loads);
    }

    #[test]
    fn what_cannot_be_predicted_is_said() {
        let jobs = PlanJob::burst(id("porep-2k"), 1);
        let machine = Machine::cpu(2, 8 << 30);
        let error = predict(&machine, &jobs, &Model::published()).unwrap_err();
        assert!(error.to_string().contains("porep-2k"), "{error}");
        let none = Machine::gpus(0, 0, 2, 8 << 30);
        assert_eq!(
            predict(&none, &[], &Model::published()),
            Err(PlanError::NoDevice)
        );
        let empty = predict(&machine, &[], &Model::published()).unwrap();
        assert_eq!((empty.completed, empty.proofs_per_hour), (0, 0.0));
    }
}
