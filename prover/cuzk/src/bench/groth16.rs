//! `cuzk bench groth16`: whole proofs of synthetic circuits on a device, without synthesis.

use crate::arguments::BenchGroth16;
use crate::bench::counters::{peak_resident, resident};
use crate::{
    error::Error,
    output::{Output, Progress},
};
use cuzk_circuit::testing::RandomCircuit;
use cuzk_circuit::{Assignment, synthesize};
use cuzk_prover::setup::{self, ToxicWaste};
use cuzk_prover::timeline::{DEVICE_TRACK, ReportRow, SpanRecord, Timeline};
use cuzk_prover::{Params, PendingProof, Prover};
use ff::Field;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Moments at which resident memory is told, counted proofs divided by this.
const SAMPLES: usize = 5;

/// Runs the command.
pub fn run(arguments: &BenchGroth16, output: &Output) -> Result<(), Error> {
    let limit = arguments.memory.vram_limit;
    let prover = Prover::with_memory_limit(arguments.device.clone(), limit)?;
    let progress = output.progress("making the circuit and its parameters");
    let mut rng = ChaCha20Rng::seed_from_u64(arguments.seed);
    let (params, assignment) = prepare(arguments, &mut rng)?;
    let plans = prover.plans(&params, &assignment, None)?;
    let alone = one_by_one(arguments, &prover, &params, &assignment, &progress)?;
    progress.now(format!("{} in flight", arguments.batch));
    let pipelined = in_flight(arguments, &prover, &params, &assignment, &mut rng)?;
    drop(progress);
    let median = super::median(alone.walls.clone());
    let overhead = super::median(alone.overheads.clone());
    let rows = alone.timeline.report().rows;
    let counts = params.counts();
    let plans_value: Vec<_> = plans
        .iter()
        .map(|(device, plan)| {
            json!({"device": device, "bytes": plan.bytes(), "resident": plan.resident.to_string(),
                "parts": 1 << plan.h.rows, "h_pieces": plan.h.pieces, "chunks": plan.variables.chunks,
                "lanes": plan.lanes, "streamed_bytes": plan.streamed_bytes, "expected_seconds": plan.seconds})
        })
        .collect();
    let value = json!({
        "log2": arguments.log2, "bits": arguments.bits, "b_density": arguments.b_density,
        "points": {"h": counts.h, "l": counts.l, "a": counts.a, "b": counts.b},
        "backend": prover.backend(), "proofs": alone.walls.len(), "median_seconds": median,
        "seconds": alone.walls, "batch": arguments.batch, "pipelined_seconds": pipelined,
        "throughput_ratio": median / pipelined, "overhead_seconds": overhead, "retries": alone.retries,
        "vram_limit": limit, "plans": plans_value, "resident_bytes": alone.resident,
        "peak_resident_bytes": peak_resident(), "timeline": rows,
    });
    let plans: String = plans
        .iter()
        .map(|(device, plan)| format!("{device}\n{plan}\n\n"))
        .collect();
    let text = format!(
        "{plans}{}\n2^{} rows, {:.0} % of the witness 0 or 1, {} points of h, {} of l, {} of a, {} of b, on {}: median {:.1} ms a proof alone ({:.2} ms of it not on a device), {:.1} ms with {} in flight, {} made again elsewhere",
        table(&rows),
        arguments.log2,
        100.0 * arguments.bits,
        counts.h,
        counts.l,
        counts.a,
        counts.b,
        prover.backend(),
        1e3 * median,
        1e3 * overhead,
        1e3 * pipelined,
        arguments.batch,
        alone.retries,
    );
    output.result(&value, &text);
    match arguments.overhead_limit {
        Some(limit) if 1e3 * overhead > limit => Err(Error::Overhead {
            found: 1e3 * overhead,
            limit,
        }),
        _ => Ok(()),
    }
}

/// Proofs one after the other.
struct Alone {
    /// Seconds of each.
    walls: Vec<f64>,
    /// Seconds of each during which no device worked on it.
    overheads: Vec<f64>,
    /// Attempts that failed on a device.
    retries: usize,
    /// Resident host memory now and then.
    resident: Vec<u64>,
    /// Of the last one.
    timeline: Timeline,
}

fn one_by_one(
    arguments: &BenchGroth16,
    prover: &Prover,
    params: &Arc<Params>,
    assignment: &Assignment,
    progress: &Progress,
) -> Result<Alone, Error> {
    let mut rng = ChaCha20Rng::seed_from_u64(!arguments.seed);
    let mut alone = Alone {
        walls: Vec::with_capacity(arguments.proofs),
        overheads: Vec::with_capacity(arguments.proofs),
        retries: 0,
        resident: Vec::new(),
        timeline: Timeline::new(),
    };
    // The first proof also brings the parameters to the device and is not counted.
    for k in 0..=arguments.proofs {
        progress.now(format!("proof {k} of {}", arguments.proofs));
        let input = assignment.clone();
        let timeline = Timeline::new();
        let start = Instant::now();
        let (r, s) = (Field::random(&mut rng), Field::random(&mut rng));
        let finished = prover
            .start_on(timeline.clone(), params, input, r, s)?
            .finish()?;
        if k > 0 {
            let wall = start.elapsed().as_secs_f64();
            alone.walls.push(wall);
            alone.overheads.push(wall - on_device(&timeline.spans()));
        }
        if k % arguments.proofs.div_ceil(SAMPLES) == 0 {
            alone.resident.extend(resident());
        }
        alone.retries += finished.retries.len();
        alone.timeline = timeline;
    }
    Ok(alone)
}

/// Seconds during which a device worked.
fn on_device(spans: &[SpanRecord]) -> f64 {
    let on = spans.iter().filter(|span| span.track == DEVICE_TRACK);
    let mut intervals: Vec<_> = on
        .filter_map(|span| Some((span.start, span.start + span.duration?)))
        .collect();
    intervals.sort();
    let mut end = Duration::ZERO;
    let mut sum = Duration::ZERO;
    for (from, to) in intervals {
        sum += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    sum.as_secs_f64()
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

/// Seconds a proof when as many as `--batch` are in flight.
fn in_flight(
    arguments: &BenchGroth16,
    prover: &Prover,
    params: &Arc<Params>,
    assignment: &Assignment,
    rng: &mut ChaCha20Rng,
) -> Result<f64, Error> {
    let batch = arguments.batch;
    let mut seconds = 0.0;
    // The first round makes each lane's tables and working memory and is not counted.
    for proofs in [batch, arguments.proofs] {
        let inputs: Vec<Assignment> = (0..proofs).map(|_| assignment.clone()).collect();
        let start = Instant::now();
        let mut pending: VecDeque<PendingProof> = VecDeque::with_capacity(batch);
        for input in inputs {
            if pending.len() == batch
                && let Some(first) = pending.pop_front()
            {
                drop(first.finish()?);
            }
            let (r, s) = (Field::random(&mut *rng), Field::random(&mut *rng));
            pending.push_back(prover.start(params, input, r, s)?);
        }
        for last in pending {
            drop(last.finish()?);
        }
        seconds = start.elapsed().as_secs_f64() / proofs as f64;
    }
    Ok(seconds)
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
