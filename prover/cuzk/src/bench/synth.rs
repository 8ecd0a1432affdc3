//! `cuzk bench synth`: circuit synthesis alone, phase by phase.

use super::allocations::{self, Allocations};
use super::counters::{Counters, Counts, cpu_time, peak_resident};
use super::{compare, median};
use crate::arguments::BenchSynth;
use crate::{commands, error::Error, output::Output};
use cuzk_circuit::{Assignment, Witness};
use cuzk_filecoin::fabricate::{Options, fabricate};
use cuzk_filecoin::{CircuitId, ProofRequest, Request};
use serde::Serialize;
use serde_json::{Value, json};
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
    let mut arena = (Witness::default(), Assignment::default());
    let mut runs = Vec::with_capacity(arguments.runs);
    for k in 0..=arguments.runs {
        progress.now(format!("run {k} of {}", arguments.runs));
        let phases = measure(&input, &mut arena)?;
        // The first run warms caches and arenas and is not counted.
        if k > 0 {
            runs.push(phases);
        }
    }
    drop(progress);
    let id = Request::from_file_bytes(&input)?.circuit_id();
    let rows = arena.1.rows();
    let value = summary(id, rows, &runs);
    if let Some(name) = &arguments.save {
        compare::save(name, &value)?;
    }
    output.result(&value, &table(id, rows, &runs));
    Ok(())
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

/// One run: the phases of the first partition, then all of it in one go.
fn measure(input: &[u8], arena: &mut (Witness, Assignment)) -> Result<Vec<Phase>, Error> {
    let (request, parse) = phase("parse", || Request::from_file_bytes(input));
    let request = request?;
    let (circuit, build) = phase("circuit", || request.circuit(0));
    let circuit = circuit?;
    let again = circuit.clone();
    let (done, witness) = phase("witness", || circuit.witness_into(&mut arena.0));
    done?;
    let (done, direct) = phase("synthesis", || again.assignment_into(&mut arena.1));
    done?;
    Ok(vec![parse, build, witness, direct])
}

fn median_of(runs: &[Vec<Phase>], phase: usize, value: impl Fn(&Phase) -> f64) -> f64 {
    median(runs.iter().map(|run| value(&run[phase])).collect())
}

fn summary(id: CircuitId, rows: usize, runs: &[Vec<Phase>]) -> Value {
    let phases: Vec<Value> = (0..runs.first().map_or(0, Vec::len))
        .map(|p| {
            let last = runs.last().map(|run| run[p]);
            json!({
                "name": runs[0][p].name,
                "wall_seconds": median_of(runs, p, |x| x.wall),
                "cpu_seconds": median_of(runs, p, |x| x.cpu),
                "allocations": last.map(|x| x.allocations),
                "counters": last.map(|x| x.counters),
            })
        })
        .collect();
    let synthesis = median_of(runs, 3, |x| x.wall);
    json!({
        "circuit": id.to_string(), "rows": rows, "runs": runs.len(), "phases": phases,
        "evaluation_seconds": synthesis - median_of(runs, 2, |x| x.wall),
        "rows_per_second": rows as f64 / synthesis, "peak_resident_bytes": peak_resident(),
        "paths": {"direct": {"wall_seconds": synthesis, "cpu_seconds": median_of(runs, 3, |x| x.cpu)}},
    })
}

fn table(id: CircuitId, rows: usize, runs: &[Vec<Phase>]) -> String {
    let mut text = format!("{id}: {rows} rows, median of {} runs\n", runs.len());
    text += &format!(
        "{:<12} {:>9} {:>9} {:>12} {:>12} {:>12} {:>14} {:>12} {:>12}\n",
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
    let Some(last) = runs.last() else { return text };
    for (p, phase) in last.iter().enumerate() {
        text += &format!(
            "{:<12} {:>9.4} {:>9.4} {:>12} {:>12.1} {:>12.1} {:>14} {:>12} {:>12}\n",
            phase.name,
            median_of(runs, p, |x| x.wall),
            median_of(runs, p, |x| x.cpu),
            phase.allocations.count,
            phase.allocations.bytes as f64 / 1e6,
            phase.allocations.peak as f64 / 1e6,
            count(phase.counters.instructions),
            count(phase.counters.branch_misses),
            count(phase.counters.cache_misses),
        );
    }
    let synthesis = median_of(runs, 3, |x| x.wall);
    let evaluation = synthesis - median_of(runs, 2, |x| x.wall);
    text += &format!("evaluation of A and B (synthesis less witness): {evaluation:.4} s\n");
    text += &format!("{:.0} rows a second", rows as f64 / synthesis);
    if let Some(peak) = peak_resident() {
        text += &format!(", at most {:.1} MB resident", peak as f64 / 1e6);
    }
    text
}
