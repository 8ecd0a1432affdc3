//! Measures witness generation: native, generic and direct synthesis of the same fabricated sectors.
//!
//! `cargo run --release -p cuzk-filecoin --example native_witness -- [--repeat N] [--direct]
//! [--native-only] CIRCUIT…` with circuits such as `porep-32g`, `winning-2k`, `wpost-2k`, `snap-8m`.
//!
//! The paths take turns on partition 0 and their witnesses are compared bit for bit; each figure is
//! the path's best round but the first. With `--direct` synthesis with both evaluations joins in, which
//! at 32 GiB needs 12 GiB of memory. CPU seconds are of all threads.

use cuzk_circuit::{Assignment, Witness};
use cuzk_filecoin::fabricate::{Options, fabricate};
use cuzk_filecoin::{CircuitId, ProofRequest, Request, WitnessPath};
use std::error::Error;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let (mut repeat, mut direct, mut native_only) = (3, false, false);
    let mut circuits = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--repeat" => repeat = arguments.next().ok_or("--repeat N")?.parse()?,
            "--direct" => direct = true,
            "--native-only" => native_only = true,
            name => circuits.push(name.parse::<CircuitId>()?),
        }
    }
    println!("| circuit | private values | others | path | CPU s | wall s | times native |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for id in circuits {
        measure(id, repeat, direct, native_only)?;
    }
    println!(
        "{} threads; peak resident memory {}.",
        rayon::current_num_threads(),
        peak_memory()
    );
    Ok(())
}

/// The best CPU and wall seconds of a path so far.
struct Best(f64, f64);

impl Best {
    const fn new() -> Self {
        Self(f64::INFINITY, f64::INFINITY)
    }

    /// Runs `work`; its times count unless this is the first round of several.
    fn time<T>(&mut self, counts: bool, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let (wall, cpu) = (Instant::now(), cpu_seconds()?);
        let value = work()?;
        if counts {
            self.0 = self.0.min(cpu_seconds()? - cpu);
            self.1 = self.1.min(wall.elapsed().as_secs_f64());
        }
        Ok(value)
    }
}

fn measure(id: CircuitId, repeat: usize, direct: bool, native_only: bool) -> Outcome<()> {
    let made = fabricate(id.kind, id.size, &Options::default())?;
    let request = Request::parse(&ProofRequest::from(made))?;
    let (mut native, mut generic) = (Witness::default(), Witness::default());
    let mut assignment = Assignment::default();
    let mut best = [const { Best::new() }; 3];
    for round in 0..repeat.max(1) {
        let counts = round > 0 || repeat <= 1;
        let path = best[0].time(counts, || Ok(request.witness_into(0, &mut native)?))?;
        if path != WitnessPath::Native {
            return Err(format!("{id}: {path} witness").into());
        }
        if native_only {
            continue;
        }
        best[1].time(counts, || {
            Ok(request.circuit(0)?.witness_into(&mut generic)?)
        })?;
        if native != generic {
            return Err(format!("{id}: native and generic witness differ").into());
        }
        if direct {
            best[2].time(counts, || {
                Ok(request.circuit(0)?.assignment_into(&mut assignment)?)
            })?;
            if native != assignment.witness {
                return Err(format!("{id}: native and direct witness differ").into());
            }
        }
    }
    let (values, others) = (native.aux.len(), native.aux.others().len());
    for (name, time) in ["native", "generic", "direct"].iter().zip(&best) {
        if time.0.is_finite() {
            let ratio = time.0 / best[0].0;
            println!(
                "| {id} | {values} | {others} | {name} | {:.4} | {:.4} | {ratio:.1} |",
                time.0, time.1
            );
        }
    }
    Ok(())
}

/// Time on a CPU of all threads that live, in seconds; none of ours ends during a measurement.
fn cpu_seconds() -> Outcome<f64> {
    let mut nanoseconds = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let statistics = std::fs::read_to_string(task?.path().join("schedstat"))?;
        let running = statistics.split(' ').next().unwrap_or_default();
        nanoseconds += running.parse::<u64>()?;
    }
    Ok(nanoseconds as f64 * 1e-9)
}

/// The largest amount of memory that this process had resident, as the system writes it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.map_or("unknown".to_owned(), |peak| peak.trim().to_owned())
}
