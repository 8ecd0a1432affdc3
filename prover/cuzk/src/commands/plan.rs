//! `cuzk plan`: what a machine would do that one does not have.

use crate::arguments::daemon::Plan;
use crate::error::Error;
use crate::output::Output;
use cuzk_engine::plan::{Machine, Model, PlanJob, Prediction, predict};
use serde_json::json;
use std::time::Duration;

/// Runs the command.
pub fn run(arguments: &Plan, output: &Output) -> Result<(), Error> {
    let mut machine = match arguments.devices {
        0 => Machine::cpu(arguments.cores, arguments.host_memory.0),
        count => Machine::gpus(
            count,
            arguments.device_memory.0,
            arguments.cores,
            arguments.host_memory.0,
        ),
    };
    if let Some(count) = arguments.partitions_in_flight {
        machine.partitions_in_flight = count;
    }
    let model = model(arguments);
    let jobs = jobs(arguments);
    let prediction = predict(&machine, &jobs, &model)?;
    output.result(&value(&prediction), &text(&prediction));
    Ok(())
}

/// The published numbers, with measured ones in the place of those that were given.
fn model(arguments: &Plan) -> Model {
    let mut model = Model::published();
    for numbers in model.circuits.values_mut() {
        if let Some(seconds) = arguments.synthesis_seconds {
            numbers.synthesis = Duration::from_secs_f64(seconds.max(0.0));
        }
        if let Some(seconds) = arguments.prove_seconds {
            numbers.prove = Duration::from_secs_f64(seconds.max(0.0));
        }
    }
    model
}

/// All at once, or each circuit's jobs spread over the time that the rate gives them.
fn jobs(arguments: &Plan) -> Vec<PlanJob> {
    let total: usize = arguments.jobs.iter().map(|(_, count)| count).sum();
    let mut jobs = Vec::new();
    for (circuit, count) in &arguments.jobs {
        match arguments.rate {
            None => jobs.extend(PlanJob::burst(*circuit, *count)),
            Some(rate) => {
                let all = 3600.0 * total as f64 / rate.max(1e-3);
                let distance = Duration::from_secs_f64(all / *count as f64);
                let count = u32::try_from(*count).unwrap_or(u32::MAX);
                jobs.extend(PlanJob::every(*circuit, distance, count));
            }
        }
    }
    jobs
}

fn value(p: &Prediction) -> serde_json::Value {
    json!({
        "completed": p.completed, "makespan_seconds": p.makespan.as_secs_f64(),
        "proofs_per_hour": p.proofs_per_hour,
        "latency_seconds": {
            "p50": p.latency_median.as_secs_f64(), "p90": p.latency_p90.as_secs_f64(),
            "p99": p.latency_p99.as_secs_f64(), "max": p.latency_max.as_secs_f64(),
        },
        "host_peak_bytes": p.host_peak, "host_limit_bytes": p.host_limit,
        "device_busy_share": p.device_busy, "cores_busy_share": p.cores_busy,
        "parameter_loads": p.loads, "device_loads": p.device_loads,
    })
}

fn text(p: &Prediction) -> String {
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    let busy: Vec<String> = p
        .device_busy
        .iter()
        .map(|share| format!("{:.0} %", 100.0 * share))
        .collect();
    format!(
        "{:.1} proofs per hour ({} in {:.0} s)\nlatency (s): p50 {:.1}, p90 {:.1}, p99 {:.1}, max {:.1}\n\
         host memory: {:.1} of {:.1} GiB at most\nbusy: devices {}, cores {:.0} %\n\
         parameters loaded {} times, moved to a device {} times",
        p.proofs_per_hour,
        p.completed,
        p.makespan.as_secs_f64(),
        p.latency_median.as_secs_f64(),
        p.latency_p90.as_secs_f64(),
        p.latency_p99.as_secs_f64(),
        p.latency_max.as_secs_f64(),
        gib(p.host_peak),
        gib(p.host_limit),
        busy.join(", "),
        100.0 * p.cores_busy,
        p.loads,
        p.device_loads,
    )
}
