//! `cuzk bench groth16`: whole proofs of synthetic circuits on a device, without synthesis.

use crate::arguments::BenchGroth16;
use crate::{error::Error, output::Output};
use cuzk_circuit::testing::RandomCircuit;
use cuzk_circuit::{Assignment, synthesize};
use cuzk_prover::setup::{self, ToxicWaste};
use cuzk_prover::timeline::{ReportRow, Timeline};
use cuzk_prover::{Params, Prover};
use ff::Field;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Runs the command.
pub fn run(arguments: &BenchGroth16, output: &Output) -> Result<(), Error> {
    let prover = Prover::new(arguments.device.clone())?;
    let progress = output.progress("making the circuit and its parameters");
    let mut rng = ChaCha20Rng::seed_from_u64(arguments.seed);
    let (params, assignment) = prepare(arguments, &mut rng)?;
    let mut walls = Vec::with_capacity(arguments.proofs);
    let mut last = Timeline::new();
    // The first proof also brings the parameters to the device and is not counted.
    for k in 0..=arguments.proofs {
        progress.now(format!("proof {k} of {}", arguments.proofs));
        let input = assignment.clone();
        last = Timeline::new();
        let start = Instant::now();
        let (r, s) = (Field::random(&mut rng), Field::random(&mut rng));
        let finished = prover
            .start_on(last.clone(), &params, input, r, s)?
            .finish()?;
        if k > 0 {
            walls.push(start.elapsed().as_secs_f64());
        }
        drop(finished);
    }
    let pipelined = in_flight(&prover, &params, &assignment, arguments.proofs, &mut rng)?;
    drop(progress);
    walls.sort_by(f64::total_cmp);
    let median = super::median(walls.clone());
    let rows = last.report().rows;
    let counts = params.counts();
    let value = json!({
        "log2": arguments.log2, "bits": arguments.bits, "b_density": arguments.b_density,
        "points": {"h": counts.h, "l": counts.l, "a": counts.a, "b": counts.b},
        "backend": prover.backend(), "proofs": walls.len(), "median_seconds": median,
        "seconds": walls, "pipelined_seconds": pipelined, "timeline": rows,
    });
    let text = format!(
        "{}\n2^{} rows, {:.0} % of the witness 0 or 1, {} points of h, {} of l, {} of a, {} of b, on {}: median {:.1} ms a proof alone, {:.1} ms with two in flight",
        table(&rows),
        arguments.log2,
        100.0 * arguments.bits,
        counts.h,
        counts.l,
        counts.a,
        counts.b,
        prover.backend(),
        1e3 * median,
        1e3 * pipelined
    );
    output.result(&value, &text);
    Ok(())
}

/// Parameters and the assignment of a circuit that fills the domain.
fn prepare(
    arguments: &BenchGroth16,
    rng: &mut ChaCha20Rng,
) -> Result<(Arc<Params>, Assignment), Error> {
    let inputs = 16;
    let constraints = (1usize << arguments.log2) - inputs - 1;
    let circuit = RandomCircuit {
        bit_share: arguments.bits,
        b_density: arguments.b_density,
        parts: 64,
        ..RandomCircuit::new(constraints, inputs, arguments.seed)
    };
    let params = setup::generate(circuit.clone(), &ToxicWaste::random(rng))?;
    Ok((Arc::new(params), synthesize(circuit)?))
}

/// Seconds a proof when the next one is started before the last one is fetched.
fn in_flight(
    prover: &Prover,
    params: &Arc<Params>,
    assignment: &Assignment,
    proofs: usize,
    rng: &mut ChaCha20Rng,
) -> Result<f64, Error> {
    let inputs: Vec<Assignment> = (0..proofs).map(|_| assignment.clone()).collect();
    let start = Instant::now();
    let mut pending = None;
    for input in inputs {
        let (r, s) = (Field::random(&mut *rng), Field::random(&mut *rng));
        let next = prover.start(params, input, r, s)?;
        if let Some(previous) = pending.replace(next) {
            drop(previous.finish()?);
        }
    }
    if let Some(last) = pending {
        drop(last.finish()?);
    }
    Ok(start.elapsed().as_secs_f64() / proofs as f64)
}

fn table(rows: &[ReportRow]) -> String {
    let line = |row: &ReportRow| {
        format!(
            "{:indent$}{:<width$} {:>10.3} ms",
            "",
            row.name,
            1e3 * row.wall,
            indent = 2 * row.depth,
            width = 30 - 2 * row.depth
        )
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
