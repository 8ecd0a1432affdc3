//! Fabricates test sectors, puts them before the official vanilla verifiers and prints what that took.
//!
//! `cargo run --release -p cuzk-filecoin --example fabricated_sectors -- [--circuits] [SIZE]...` does all four kinds
//! at each size (default: 2KiB and 8MiB; a full window partition at 32GiB takes half a core-minute).
//! With `--circuits` it also checks every constraint of the first partition.

use std::error::Error;
use std::time::Instant;

use cuzk_filecoin::fabricate::{Options, fabricate};
use cuzk_filecoin::{ProofKind, ProofRequest, Request, SectorSize};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut sizes, mut circuits) = (Vec::new(), false);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--circuits" => circuits = true,
            size => sizes.push(size.parse()?),
        }
    }
    if sizes.is_empty() {
        sizes = vec![SectorSize::Kib2, SectorSize::Mib8];
    }
    println!(
        "| kind | sector | partitions | vanilla bytes | fabricate | parse | verify | constraints |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for size in sizes {
        for kind in ProofKind::ALL {
            measure(kind, size, circuits)?;
        }
    }
    println!("Seconds of wall time (CPU time of all threads in brackets).");
    println!("Peak resident memory: {}.", peak_memory());
    Ok(())
}

fn measure(kind: ProofKind, size: SectorSize, circuits: bool) -> Result<(), Box<dyn Error>> {
    let (made, fabricate_time) = timed(|| fabricate(kind, size, &Options::default()))?;
    let wire = ProofRequest::from(made);
    let bytes = wire.vanilla_proof.len() + wire.vanilla_proofs.iter().map(Vec::len).sum::<usize>();
    let (request, parse_time) = timed(|| Request::parse(&wire))?;
    let (accepted, verify_time) = timed(|| request.verify_vanilla())?;
    if !accepted {
        return Err(format!("{kind} {size}: the official verifier refuses the sector").into());
    }
    let check_time = match circuits {
        true => timed(|| Ok::<_, Box<dyn Error>>(cuzk_circuit::check(request.circuit(0)?)?))?.1,
        false => "not checked".to_owned(),
    };
    println!(
        "| {kind} | {size} | {} | {bytes} | {fabricate_time} | {parse_time} | {verify_time} | {check_time} |",
        request.partitions()
    );
    Ok(())
}

/// Runs `work` and says how long it took.
fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, String), E> {
    let (wall, cpu) = (Instant::now(), cpu_seconds());
    let value = work()?;
    Ok((
        value,
        format!(
            "{:.2} ({:.2})",
            wall.elapsed().as_secs_f64(),
            cpu_seconds() - cpu
        ),
    ))
}

/// CPU seconds of this process so far; 0 where the system has no `/proc`.
fn cpu_seconds() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in brackets: state is field 3, user and system time are fields 14 and 15.
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = after_name
        .split(' ')
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_PER_SECOND
}

/// The largest amount of memory that this process had resident, as the system writes it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.map_or("unknown".to_owned(), |peak| peak.trim().to_owned())
}
