//! Measures compiled circuits: recording, size, evaluation against direct synthesis.
//!
//! `cargo run --release -p cuzk-tests --example compiled_circuits -- [--record-only] [--counts]
//! [--with-c] [--keep FOLDER] [--low-memory] [--repeat N] CIRCUIT…` with circuits such as `porep-2k`, `winning-32g`,
//! `wpost-2k`, `snap-32g`.
//!
//! Without `--record-only`, one partition of a fabricated sector is synthesised both ways,
//! interleaved, and the results are compared bit for bit; with `--low-memory` by their hashes, so
//! that only one assignment is held at a time. `--with-c` records C, too; `--keep` keeps the files. `--counts` checks the recorded counts against a
//! count of the circuit itself.

use cuzk_circuit::{Assignment, CompiledCircuit, shape, synthesize_into, witness_into};
use cuzk_filecoin::fabricate::{self, fabricate};
use cuzk_filecoin::{CircuitId, Request};
use ff::PrimeField;
use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::time::Instant;

#[derive(Default)]
struct Options {
    record_only: bool,
    counts: bool,
    low_memory: bool,
    with_c: bool,
    keep: Option<PathBuf>,
    repeat: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options {
        repeat: 3,
        ..Options::default()
    };
    let mut circuits = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--record-only" => options.record_only = true,
            "--counts" => options.counts = true,
            "--low-memory" => options.low_memory = true,
            "--with-c" => options.with_c = true,
            "--keep" => options.keep = Some(arguments.next().ok_or("--keep FOLDER")?.into()),
            "--repeat" => options.repeat = arguments.next().ok_or("--repeat N")?.parse()?,
            name => circuits.push(name.parse::<CircuitId>()?),
        }
    }
    for id in circuits {
        let compiled = record(id, &options)?;
        if !options.record_only {
            evaluate(id, &compiled, &options)?;
        }
    }
    Ok(())
}

fn record(id: CircuitId, options: &Options) -> Result<CompiledCircuit, Box<dyn Error>> {
    println!("== {id}");
    reset_peak_memory();
    let blank = id.blank_circuit()?;
    let recorded = timed("record", || match options.with_c {
        true => CompiledCircuit::record_with_c(id.to_string(), blank),
        false => CompiledCircuit::record(id.to_string(), blank),
    });
    let recorded = recorded.0;
    let compiled = recorded?;
    println!("  peak memory {} MiB", peak_memory()? >> 10);
    println!("  {:?}", compiled.shape());
    println!("  {:?}", compiled.size());
    if options.counts {
        let blank = id.blank_circuit()?;
        let mut counts = timed("counts", || shape(blank)).0?;
        if !options.with_c {
            counts.nonzeros[2] = 0;
        }
        if *compiled.shape() != counts {
            return Err("the compiled circuit has other counts".into());
        }
    }
    let file = match &options.keep {
        Some(folder) => folder.join(format!("{id}.circuit")),
        None => std::env::temp_dir().join(format!("{id}-{}.circuit", std::process::id())),
    };
    timed("save", || compiled.save(&file)).0?;
    let opened = timed("open", || CompiledCircuit::open(&file, &id.to_string())).0;
    if options.keep.is_none() {
        std::fs::remove_file(&file)?;
    }
    Ok(opened?)
}

fn evaluate(
    id: CircuitId,
    compiled: &CompiledCircuit,
    options: &Options,
) -> Result<(), Box<dyn Error>> {
    let sector = fabricate(id.kind, id.size, &fabricate::Options::default())?;
    let request = Request::parse(&sector.into())?;
    let (mut direct, mut arena) = (Assignment::default(), Assignment::default());
    for _ in 0..options.repeat {
        let circuit = request.circuit(0)?;
        let (result, direct_time) = timed("direct", || synthesize_into(circuit, &mut direct));
        result?;
        let expected = options.low_memory.then(|| hash(&direct));
        if options.low_memory {
            direct = Assignment::default();
        }
        let circuit = request.circuit(0)?;
        let witness = &mut arena.witness;
        let (result, witness_time) = timed("witness", || witness_into(circuit, witness));
        result?;
        let (result, time) = timed("evaluate", || compiled.evaluate_into(&mut arena));
        result?;
        let ratio = direct_time / (witness_time + time);
        println!("  direct / (witness + evaluate) = {ratio:.2}");
        let equal = match expected {
            Some(expected) => hash(&arena) == expected,
            None => arena == direct,
        };
        if !equal {
            return Err("the compiled circuit yields other values".into());
        }
        if options.low_memory {
            timed("evaluate", || compiled.evaluate_into(&mut arena)).0?;
        }
    }
    let aux = &arena.witness.aux;
    println!(
        "  equal; {} of {} values are not bits",
        aux.others().len(),
        aux.len()
    );
    Ok(())
}

/// A hash of everything in an assignment.
fn hash(assignment: &Assignment) -> u64 {
    let mut state = DefaultHasher::new();
    let witness = &assignment.witness;
    for values in [&assignment.a, &assignment.b, &witness.inputs] {
        values
            .iter()
            .for_each(|value| state.write(&value.to_repr()));
    }
    witness.aux.is_other().hash(&mut state);
    witness.aux.bits().hash(&mut state);
    witness
        .aux
        .others()
        .iter()
        .for_each(|value| state.write(&value.to_repr()));
    let densities = &assignment.densities;
    let maps = (&densities.a_aux, &densities.b_inputs, &densities.b_aux);
    maps.hash(&mut state);
    assignment.constraints.hash(&mut state);
    state.finish()
}

/// Runs a step and prints wall and CPU seconds; answers the wall time.
fn timed<T>(name: &str, step: impl FnOnce() -> T) -> (T, f64) {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let result = step();
    let wall = start.elapsed().as_secs_f64();
    println!(
        "  {name:9} {wall:8.3} s wall {:8.2} s cpu",
        cpu_seconds() - cpu
    );
    (result, wall)
}

/// CPU seconds of the process, in clock ticks of 10 ms; 0 where the system does not say.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.filter_map(|t| t.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn reset_peak_memory() {
    // Not every system offers this; the peak is then that of the whole run.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Peak resident memory in KiB.
fn peak_memory() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no VmHWM")?.parse()?)
}
