//! Measures compiled circuits: recording, size, evaluation against direct synthesis.
//!
//! `cargo run --release -p cuzk-tests --example compiled_circuits -- [--record-only] [--repeat N] CIRCUIT…`
//! with circuits such as `porep-2k`, `winning-32g`, `wpost-2k`, `snap-32g`. Without
//! `--record-only`, one partition of a fabricated sector is synthesised both ways, interleaved,
//! and the results are compared bit for bit.

use cuzk_circuit::{Assignment, CompiledCircuit, shape, synthesize_into, witness_into};
use cuzk_filecoin::fabricate::{Options, fabricate};
use cuzk_filecoin::{CircuitId, Request};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut record_only, mut repeat, mut circuits) = (false, 3, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--record-only" => record_only = true,
            "--repeat" => repeat = arguments.next().ok_or("--repeat N")?.parse()?,
            name => circuits.push(name.parse::<CircuitId>()?),
        }
    }
    for id in circuits {
        let compiled = record(id)?;
        if !record_only {
            evaluate(id, &compiled, repeat)?;
        }
    }
    Ok(())
}

fn record(id: CircuitId) -> Result<CompiledCircuit, Box<dyn Error>> {
    println!("== {id}");
    let (counts, _) = timed("shape", || {
        shape(id.blank_circuit()?).map_err(Box::<dyn Error>::from)
    });
    let counts = counts?;
    reset_peak_memory();
    let (compiled, _) = timed("record", || {
        let circuit = id.blank_circuit()?;
        CompiledCircuit::record(id.to_string(), circuit).map_err(Box::<dyn Error>::from)
    });
    let compiled = compiled?;
    println!("  peak memory {} MiB", peak_memory()? >> 10);
    println!("  {counts:?}");
    println!("  {:?}", compiled.size());
    let mut expected = counts;
    expected.nonzeros[2] = 0;
    if *compiled.shape() != expected {
        return Err("the compiled circuit has other counts".into());
    }
    let file = std::env::temp_dir().join(format!("{id}-{}.circuit", std::process::id()));
    timed("save", || compiled.save(&file)).0?;
    let opened = timed("open", || CompiledCircuit::open(&file, &id.to_string())).0;
    std::fs::remove_file(&file)?;
    Ok(opened?)
}

fn evaluate(
    id: CircuitId,
    compiled: &CompiledCircuit,
    repeat: usize,
) -> Result<(), Box<dyn Error>> {
    let request = Request::parse(&fabricate(id.kind, id.size, &Options::default())?.into())?;
    let (mut direct, mut arena) = (Assignment::default(), Assignment::default());
    for _ in 0..repeat {
        let circuit = request.circuit(0)?;
        let (result, direct_time) = timed("direct", || synthesize_into(circuit, &mut direct));
        result?;
        let circuit = request.circuit(0)?;
        let witness = &mut arena.witness;
        let (result, witness_time) = timed("witness", || witness_into(circuit, witness));
        result?;
        let (result, time) = timed("evaluate", || compiled.evaluate_into(&mut arena));
        result?;
        println!(
            "  direct / (witness + evaluate) = {:.2}",
            direct_time / (witness_time + time)
        );
        if arena != direct {
            return Err("the compiled circuit yields other values".into());
        }
    }
    let others = direct.witness.aux.others().len();
    println!(
        "  equal bit for bit; {others} of {} values are not bits",
        direct.witness.aux.len()
    );
    Ok(())
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
