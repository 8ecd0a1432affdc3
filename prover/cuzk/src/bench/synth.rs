//! `cuzk bench synth`: circuit synthesis alone, phase by phase, on every path.

use super::allocations::{self, Allocations};
use super::counters::{Counters, Counts, cpu_time, peak_resident};
use super::{compare, median};
use crate::arguments::BenchSynth;
use crate::commands::compiled::Place;
use crate::{commands, error::Error, output::Output};
use cuzk_circuit::{Assignment, CompiledCircuit, Witness};
use cuzk_filecoin::fabricate::{Options, fabricate};
use cuzk_filecoin::{CircuitId, FilecoinCircuit, ProofRequest, Request, WitnessPath};
use cuzk_prover::cuda::{CudaRuntime, device_count};
use cuzk_prover::gpu::{Runtime, evaluate::Evaluator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Instant;

/// One phase of one run. Times in seconds.
#[derive(Clone, Copy, Debug, Serialize)]
struct Phase {
    name: &'static str,
    wall: f64,
    cpu: f64,
    allocations: Allocations,
    counters: Counts,
}

/// The paths from a parsed request to A·w and B·w, and the phases that each consists of.
const PATHS: [(&str, &[&str]); 4] = [
    ("direct", &["circuit", "synthesis"]),
    ("compiled", &["circuit", "witness", "evaluation"]),
    ("native", &["native witness", "evaluation"]),
    ("cuda", &["native witness", "device evaluation"]),
];

/// What the runs share.
struct Bench {
    input: Vec<u8>,
    /// Names of the paths to run.
    paths: Vec<String>,
    compiled: Arc<CompiledCircuit>,
    device: Option<Evaluator>,
    direct: Assignment,
    /// The witness of the generic path.
    witness: Witness,
    /// The native witness and what is evaluated from it.
    evaluated: Assignment,
}

/// Runs the command.
pub fn run(arguments: &BenchSynth, output: &Output) -> Result<(), Error> {
    let progress = output.progress("preparing the input");
    let input = input(arguments)?;
    if let Some(name) = &arguments.compare {
        progress.now(format!("running this build and '{name}' in turn"));
        let ratio = compare::against(name, arguments)?;
        drop(progress);
        output.result(&json!(ratio), &ratio.to_string());
        return Ok(());
    }
    let id = Request::from_file_bytes(&input)?.circuit_id();
    progress.now(format!("compiling {id}"));
    let place = Place::beside_params(id, &commands::params_dir(None)?)?;
    let compiled = match place.open() {
        Some(compiled) => compiled,
        None => Arc::new(place.record()?),
    };
    let mut bench = Bench {
        input,
        paths: arguments.paths.clone(),
        device: device(&compiled)?,
        compiled,
        direct: Assignment::default(),
        witness: Witness::default(),
        evaluated: Assignment::default(),
    };
    let mut runs = Vec::with_capacity(arguments.runs);
    for k in 0..=arguments.runs {
        progress.now(format!("run {k} of {}", arguments.runs));
        let phases = bench.measure()?;
        // The first run warms caches and arenas, and shows that all paths agree; it is not counted.
        if k == 0 {
            bench.check()?;
        } else {
            runs.push(phases);
        }
    }
    drop(progress);
    let report = Report {
        id,
        rows: bench.evaluated.rows(),
        device: bench.device.as_ref().map(Evaluator::name),
        runs,
    };
    let value = report.summary(&bench);
    if let Some(name) = &arguments.save {
        compare::save(name, &value)?;
    }
    output.result(&value, &report.table(&bench));
    Ok(())
}

/// The circuit on the first CUDA device; none where there is no device.
fn device(compiled: &Arc<CompiledCircuit>) -> Result<Option<Evaluator>, Error> {
    if !device_count().is_ok_and(|count| count > 0) {
        return Ok(None);
    }
    let runtime: Arc<dyn Runtime> = Arc::new(CudaRuntime::new(0)?);
    Ok(Some(Evaluator::new(&runtime, compiled)?))
}

/// The bytes of an input file: the one given, or a fabricated one.
fn input(arguments: &BenchSynth) -> Result<Vec<u8>, Error> {
    if let Some(path) = &arguments.c1 {
        commands::open_request(path, None)?;
        return std::fs::read(path).map_err(Error::file(path));
    }
    let (kind, size) = (arguments.circuit.kind, arguments.circuit.sector_size);
    let options = Options {
        window_sectors: Some(1),
        ..Options::default()
    };
    Ok(ProofRequest::from(fabricate(kind, size, &options)?).to_json()?)
}

fn phase<T>(name: &'static str, work: impl FnOnce() -> T) -> (T, Phase) {
    let mut counters = Counters::start();
    let (wall, cpu) = (Instant::now(), cpu_time());
    let (value, allocations) = allocations::measure(work);
    let (wall, cpu) = (
        wall.elapsed().as_secs_f64(),
        (cpu_time() - cpu).as_secs_f64(),
    );
    (
        value,
        Phase {
            name,
            wall,
            cpu,
            allocations,
            counters: counters.read(),
        },
    )
}

impl Bench {
    /// Whether one of the paths to run has this phase.
    fn wants(&self, phase: &str) -> bool {
        let chosen = |name: &str| self.paths.is_empty() || self.paths.iter().any(|p| p == name);
        PATHS
            .iter()
            .any(|(name, phases)| chosen(name) && phases.contains(&phase))
    }

    /// One run: the phases of the first partition, those of all paths in turn.
    fn measure(&mut self) -> Result<Vec<Phase>, Error> {
        let (request, parse) = phase("parse", || Request::from_file_bytes(&self.input));
        let request = request?;
        let mut phases = vec![parse];
        if self.wants("circuit") {
            let (circuit, build) = phase("circuit", || request.circuit(0));
            phases.push(build);
            self.measure_circuit(circuit?, &mut phases)?;
        }
        let values = &mut self.evaluated.witness;
        let (path, native) = phase("native witness", || request.witness_into(0, values));
        if path? == WitnessPath::Native && self.wants(native.name) {
            phases.push(native);
        }
        if self.wants("evaluation") {
            let evaluate = || self.compiled.evaluate_into(&mut self.evaluated);
            let (done, evaluation) = phase("evaluation", evaluate);
            done?;
            phases.push(evaluation);
        }
        if self.wants("device evaluation")
            && let Some(device) = &mut self.device
        {
            let evaluate = || device.run(&self.evaluated.witness);
            let (done, evaluation) = phase("device evaluation", evaluate);
            done?;
            phases.push(evaluation);
        }
        Ok(phases)
    }

    /// The phases that start from the circuit.
    fn measure_circuit(
        &mut self,
        circuit: FilecoinCircuit,
        phases: &mut Vec<Phase>,
    ) -> Result<(), Error> {
        let again = circuit.clone();
        if self.wants("witness") {
            let (done, witness) = phase("witness", || circuit.witness_into(&mut self.witness));
            done?;
            phases.push(witness);
        }
        if self.wants("synthesis") {
            let (done, direct) = phase("synthesis", || again.assignment_into(&mut self.direct));
            done?;
            phases.push(direct);
        }
        Ok(())
    }

    /// Compares what the paths have made, with each other where direct synthesis was not to run.
    fn check(&mut self) -> Result<(), Error> {
        let differs = |path| Err(Error::Differs { path });
        if !self.wants("evaluation") {
            self.compiled.evaluate_into(&mut self.evaluated)?;
        }
        if self.wants("witness") && self.witness != self.evaluated.witness {
            return differs("compiled");
        }
        if self.wants("synthesis") && self.evaluated != self.direct {
            return differs("native");
        }
        let Some(device) = self
            .device
            .as_ref()
            .filter(|_| self.wants("device evaluation"))
        else {
            return Ok(());
        };
        let (a, b) = (&self.evaluated.a, &self.evaluated.b);
        match device.holds(false, a)? && device.holds(true, b)? {
            true => Ok(()),
            false => differs("cuda"),
        }
    }

    /// Host and device memory that a partition takes on a path, in bytes.
    fn memory(&self, path: &str) -> (u64, u64) {
        let witness = witness_bytes(&self.evaluated.witness);
        let evaluations = 64 * self.evaluated.rows() as u64;
        match path {
            "cuda" => (witness, self.device.as_ref().map_or(0, Evaluator::bytes)),
            _ => (witness + evaluations, 0),
        }
    }
}

/// Bytes of a witness in compact form.
fn witness_bytes(witness: &Witness) -> u64 {
    let words = witness.aux.bits().words().len() as u64;
    let values = witness.inputs.len() + witness.aux.others().len();
    // Two bitmaps and a rank for each pair of words.
    20 * words + 32 * values as u64
}

struct Report {
    id: CircuitId,
    rows: usize,
    device: Option<String>,
    runs: Vec<Vec<Phase>>,
}

impl Report {
    /// The phases of the last run.
    fn last(&self) -> &[Phase] {
        self.runs.last().map_or(&[], Vec::as_slice)
    }

    fn median_of(&self, name: &str, value: impl Fn(&Phase) -> f64) -> Option<f64> {
        let of_run = |run: &Vec<Phase>| run.iter().find(|x| x.name == name).map(&value);
        let values: Vec<f64> = self.runs.iter().filter_map(of_run).collect();
        (!values.is_empty()).then(|| median(values))
    }

    /// The sum over the phases of a path; none where one of them did not run.
    fn path(&self, phases: &[&str], value: impl Fn(&Phase) -> f64) -> Option<f64> {
        phases.iter().map(|name| self.median_of(name, &value)).sum()
    }

    fn summary(&self, bench: &Bench) -> Value {
        let phases: Vec<Value> = self
            .last()
            .iter()
            .map(|last| {
                json!({
                    "name": last.name,
                    "wall_seconds": self.median_of(last.name, |x| x.wall),
                    "cpu_seconds": self.median_of(last.name, |x| x.cpu),
                    "allocations": last.allocations,
                    "counters": last.counters,
                })
            })
            .collect();
        let direct = self.path(PATHS[0].1, |x| x.wall);
        let mut paths = Map::new();
        for (name, phases) in PATHS {
            let (host, device) = bench.memory(name);
            let wall = self.path(phases, |x| x.wall);
            let path = wall.map(|wall| {
                json!({
                    "wall_seconds": wall, "cpu_seconds": self.path(phases, |x| x.cpu),
                    "host_bytes": host, "device_bytes": device,
                    "times_faster_than_direct": direct.map(|direct| direct / wall),
                })
            });
            paths.insert(name.into(), json!(path));
        }
        json!({
            "circuit": self.id.to_string(), "rows": self.rows, "runs": self.runs.len(),
            "phases": phases, "paths": paths, "device": self.device,
            "rows_per_second": direct.map(|direct| self.rows as f64 / direct),
            "peak_resident_bytes": peak_resident(),
        })
    }

    fn table(&self, bench: &Bench) -> String {
        let (id, rows, runs) = (self.id, self.rows, self.runs.len());
        let mut text = format!("{id}: {rows} rows, median of {runs} runs\n");
        text += &format!(
            "{:<18} {:>9} {:>9} {:>12} {:>12} {:>12} {:>14} {:>12} {:>12}\n",
            "phase",
            "wall s",
            "cpu s",
            "allocations",
            "MB in all",
            "MB at once",
            "instructions",
            "br. misses",
            "cache misses"
        );
        let count = |value: Option<u64>| value.map_or("-".to_owned(), |v| v.to_string());
        for phase in self.last() {
            text += &format!(
                "{:<18} {:>9.4} {:>9.4} {:>12} {:>12.1} {:>12.1} {:>14} {:>12} {:>12}\n",
                phase.name,
                self.median_of(phase.name, |x| x.wall).unwrap_or_default(),
                self.median_of(phase.name, |x| x.cpu).unwrap_or_default(),
                phase.allocations.count,
                phase.allocations.bytes as f64 / 1e6,
                phase.allocations.peak as f64 / 1e6,
                count(phase.counters.instructions),
                count(phase.counters.branch_misses),
                count(phase.counters.cache_misses),
            );
        }
        text += &format!(
            "\n{:<18} {:>9} {:>9} {:>12} {:>12} {:>12}\n",
            "path", "wall s", "cpu s", "host MB", "device MB", "x direct"
        );
        let direct = self.path(PATHS[0].1, |x| x.wall);
        for (name, phases) in PATHS {
            let (Some(wall), Some(cpu)) =
                (self.path(phases, |x| x.wall), self.path(phases, |x| x.cpu))
            else {
                text += &format!("{name:<18} {:>9}\n", "-");
                continue;
            };
            let (host, device) = bench.memory(name);
            text += &format!(
                "{name:<18} {wall:>9.4} {cpu:>9.4} {:>12.1} {:>12.1} {:>12}\n",
                host as f64 / 1e6,
                device as f64 / 1e6,
                direct.map_or("-".to_owned(), |direct| format!("{:.2}", direct / wall))
            );
        }
        text += "all of them yield the same values";
        if let Some(peak) = peak_resident() {
            text += &format!("; at most {:.1} MB resident", peak as f64 / 1e6);
        }
        text
    }
}
