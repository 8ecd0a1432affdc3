//! `cuzk bench pipeline`: a stream of jobs through a running daemon, as its clients see it.

use super::commands::bytes;
use super::{Client, ClientError, connect, message, of_request};
use crate::arguments::daemon::BenchPipeline;
use crate::error::Error;
use crate::output::Output;
use crate::rpc;
use cuzk_filecoin::fabricate::{Options, fabricate};
use cuzk_filecoin::{CircuitId, ProofRequest};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};
use rpc::await_proof_response::Status as Ended;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Runs a client's work on this thread.
pub fn block_on<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::file(std::path::Path::new("the runtime")))?
        .block_on(work)
}

/// Runs the command.
pub fn run(arguments: &BenchPipeline, output: &Output) -> Result<(), Error> {
    let progress = output.progress("making the inputs");
    let inputs = inputs(arguments)?;
    drop(progress);
    let report = block_on(measure(arguments, &inputs, output))?;
    output.result(&report.value(), &report.text());
    Ok(())
}

/// A job's name in the report, and its message without a request id.
type Input = (String, rpc::SubmitProofRequest);

/// One input for each circuit or file, in the order in which jobs take them.
fn inputs(arguments: &BenchPipeline) -> Result<Vec<Input>, Error> {
    if !arguments.input.is_empty() {
        let read = |path: &std::path::PathBuf| {
            let bytes = std::fs::read(path).map_err(Error::file(path))?;
            let name = path.file_name().unwrap_or(path.as_os_str());
            Ok((name.to_string_lossy().into_owned(), message(bytes)))
        };
        return arguments.input.iter().map(read).collect();
    }
    let mix = match arguments.mix.as_slice() {
        [] => vec![(
            CircuitId::new(arguments.circuit.kind, arguments.circuit.sector_size),
            1,
        )],
        mix => mix.to_vec(),
    };
    let options = Options {
        seed: arguments.seed,
        ..Options::default()
    };
    let mut inputs = Vec::new();
    for (circuit, share) in mix {
        let request = ProofRequest::from(fabricate(circuit.kind, circuit.size, &options)?);
        let message = of_request(request);
        inputs.extend(std::iter::repeat_n((circuit.to_string(), message), share));
    }
    shuffle(&mut inputs, arguments.seed);
    Ok(inputs)
}

/// Spreads the circuits of a mix.
fn shuffle(inputs: &mut [Input], seed: u64) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    for i in (1..inputs.len()).rev() {
        let j = rng.next_u64() % (i as u64 + 1);
        inputs.swap(i, j as usize);
    }
}

/// One finished job.
struct Done {
    input: String,
    /// From the call to the answer.
    latency: Duration,
    answer: rpc::AwaitProofResponse,
}

async fn measure(
    arguments: &BenchPipeline,
    inputs: &[Input],
    output: &Output,
) -> Result<Report, Error> {
    let client = connect(&arguments.connection).await?;
    let before = Gauges::read(&mut client.clone()).await?;
    let permits = Arc::new(Semaphore::new(arguments.concurrency));
    let bar = output.bar(arguments.count as u64, "proofs");
    let mut jobs = JoinSet::new();
    let start = Instant::now();
    // Ids of one run must not meet those of another.
    let run = rand_core::OsRng.next_u64();
    for (number, (name, message)) in (0..arguments.count).zip(inputs.iter().cycle()) {
        if let Some(rate) = arguments.rate {
            let due = Duration::from_secs_f64(number as f64 * 60.0 / rate.max(1e-6));
            tokio::time::sleep_until((start + due).into()).await;
        }
        let Ok(permit) = permits.clone().acquire_owned().await else {
            break;
        };
        let request = rpc::SubmitProofRequest {
            request_id: format!("bench-{run:016x}-{number}"),
            ..message.clone()
        };
        let (client, name, bar) = (client.clone(), name.clone(), bar.clone());
        jobs.spawn(async move {
            let done = prove(client, name, request).await;
            drop(permit);
            bar.inc(1);
            done
        });
    }
    let mut done = Vec::with_capacity(arguments.count);
    while let Some(job) = jobs.join_next().await {
        // A panicking task would be an error of this command; its job is missing from the report.
        if let Ok(job) = job {
            done.push(job?);
        }
    }
    bar.finish_and_clear();
    let wall = start.elapsed();
    let after = Gauges::read(&mut client.clone()).await?;
    Ok(Report {
        done,
        wall,
        before,
        after,
    })
}

async fn prove(
    mut client: Client,
    input: String,
    submit: rpc::SubmitProofRequest,
) -> Result<Done, ClientError> {
    let start = Instant::now();
    let request = rpc::ProveRequest {
        submit: Some(submit),
    };
    let answer = client.prove(request).await?.into_inner().result;
    Ok(Done {
        input,
        latency: start.elapsed(),
        answer: answer.ok_or(ClientError::Incomplete("result"))?,
    })
}

/// The daemon's own numbers, before and after.
struct Gauges {
    devices: f64,
    busy_seconds: f64,
    resident: f64,
    host_peak: f64,
    retries: f64,
}

impl Gauges {
    async fn read(client: &mut Client) -> Result<Self, ClientError> {
        let answer = client.get_metrics(rpc::GetMetricsRequest {}).await?;
        Self::parse(&answer.into_inner().prometheus_text)
    }

    fn parse(text: &str) -> Result<Self, ClientError> {
        let values = |name: &str| -> Vec<f64> {
            text.lines()
                .filter_map(|line| {
                    let rest = line.strip_prefix(name)?;
                    rest.starts_with(['{', ' ']).then_some(())?;
                    rest.rsplit(' ').next()?.parse().ok()
                })
                .collect()
        };
        let busy = values("cuzk_device_busy_seconds_total");
        let one = |name: &'static str| {
            values(name)
                .first()
                .copied()
                .ok_or(ClientError::Incomplete(name))
        };
        Ok(Gauges {
            devices: busy.len() as f64,
            busy_seconds: busy.iter().sum(),
            resident: one("process_peak_resident_memory_bytes")?,
            host_peak: one("cuzk_host_memory_peak_bytes")?,
            retries: one("cuzk_retries_total")?,
        })
    }
}

struct Report {
    done: Vec<Done>,
    wall: Duration,
    before: Gauges,
    after: Gauges,
}

/// Where the time of jobs went, in seconds, summed over jobs.
#[derive(Default)]
struct Parts {
    queue: f64,
    parameters: f64,
    synthesis: f64,
    proof: f64,
    total: f64,
}

impl Parts {
    fn unexplained(&self) -> f64 {
        self.total - self.queue - self.parameters - self.synthesis - self.proof
    }
}

impl Report {
    fn completed(&self) -> impl Iterator<Item = &Done> {
        self.done
            .iter()
            .filter(|done| done.answer.status() == Ended::Completed)
    }

    fn per_hour(&self) -> f64 {
        self.completed().count() as f64 * 3600.0 / self.wall.as_secs_f64().max(1e-9)
    }

    /// The share of the time in which devices had work, on average.
    fn busy_share(&self) -> f64 {
        let busy = self.after.busy_seconds - self.before.busy_seconds;
        busy / (self.wall.as_secs_f64() * self.after.devices.max(1.0)).max(1e-9)
    }

    /// Latencies in seconds of all completed jobs and of each input's, sorted.
    fn latencies(&self) -> BTreeMap<&str, Vec<f64>> {
        let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for done in self.completed() {
            let seconds = done.latency.as_secs_f64();
            all.entry("all").or_default().push(seconds);
            all.entry(&done.input).or_default().push(seconds);
        }
        for values in all.values_mut() {
            values.sort_by(f64::total_cmp);
        }
        all
    }

    fn parts(&self) -> Parts {
        let mut parts = Parts::default();
        let seconds = |milliseconds: u64| milliseconds as f64 / 1000.0;
        for Done { answer, .. } in self.completed() {
            parts.queue += seconds(answer.queue_wait_ms);
            parts.parameters += seconds(answer.srs_load_ms);
            parts.synthesis += seconds(answer.synthesis_ms);
            parts.proof += seconds(answer.gpu_compute_ms);
            parts.total += seconds(answer.total_ms);
        }
        parts
    }

    fn failures(&self) -> Vec<String> {
        self.done
            .iter()
            .filter(|done| done.answer.status() != Ended::Completed)
            .map(|done| {
                let how = done.answer.status().as_str_name();
                format!("{}: {how}: {}", done.input, done.answer.error_message)
            })
            .collect()
    }

    fn value(&self) -> Value {
        let parts = self.parts();
        let latencies: serde_json::Map<String, Value> = self
            .latencies()
            .into_iter()
            .map(|(name, v)| {
                let value = json!({
                    "count": v.len(), "p50": percentile(&v, 50), "p90": percentile(&v, 90),
                    "p99": percentile(&v, 99), "max": percentile(&v, 100),
                });
                (name.to_owned(), value)
            })
            .collect();
        json!({
            "completed": self.completed().count(), "failures": self.failures(),
            "wall_seconds": self.wall.as_secs_f64(), "proofs_per_hour": self.per_hour(),
            "latency_seconds": latencies, "device_busy_share": self.busy_share(),
            "job_seconds": {
                "queue": parts.queue, "parameters": parts.parameters, "synthesis": parts.synthesis,
                "proof": parts.proof, "total": parts.total, "unexplained": parts.unexplained(),
            },
            "peak_resident_bytes": self.after.resident, "host_budget_peak_bytes": self.after.host_peak,
            "retries": self.after.retries - self.before.retries,
        })
    }

    fn text(&self) -> String {
        let parts = self.parts();
        let mut lines = vec![format!(
            "{:<24} {:>6} {:>9} {:>9} {:>9} {:>9}",
            "latency (s)", "jobs", "p50", "p90", "p99", "max"
        )];
        for (name, v) in self.latencies() {
            let [p50, p90, p99, max] = [50, 90, 99, 100].map(|p| percentile(&v, p));
            let count = v.len();
            lines.push(format!(
                "{name:<24} {count:>6} {p50:>9.3} {p90:>9.3} {p99:>9.3} {max:>9.3}"
            ));
        }
        lines.push(String::new());
        let share = |part: f64| 100.0 * part / parts.total.max(1e-9);
        for (name, part) in [
            ("waiting in the queue", parts.queue),
            ("loading parameters", parts.parameters),
            ("synthesis", parts.synthesis),
            ("proof", parts.proof),
            ("unexplained", parts.unexplained()),
        ] {
            lines.push(format!("{name:<24} {part:>9.2} s {:>6.1} %", share(part)));
        }
        lines.push(String::new());
        lines.push(format!(
            "{:.1} proofs per hour ({} in {:.1} s), devices busy {:.1} %, {} tried again",
            self.per_hour(),
            self.completed().count(),
            self.wall.as_secs_f64(),
            100.0 * self.busy_share(),
            self.after.retries - self.before.retries
        ));
        lines.push(format!(
            "peak memory: {} resident, {} of the budget",
            bytes(self.after.resident as u64),
            bytes(self.after.host_peak as u64)
        ));
        lines.extend(self.failures());
        lines.join("\n")
    }
}

/// The nearest-rank percentile of sorted values; 0 without values.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        for (percent, expected) in [
            (1, 1.0),
            (50, 5.0),
            (51, 6.0),
            (90, 9.0),
            (99, 10.0),
            (100, 10.0),
        ] {
            assert_eq!(percentile(&values, percent), expected);
        }
        assert_eq!(percentile(&[], 50), 0.0);
        assert_eq!(percentile(&[7.0], 1), 7.0);
    }

    #[test]
    fn gauges_are_read_from_the_metrics() {
        let text = "# TYPE cuzk_device_busy_seconds_total counter\n\
            cuzk_device_busy_seconds_total{device=\"0\",name=\"a b\"} 1.5\n\
            cuzk_device_busy_seconds_total{device=\"1\",name=\"c\"} 2\n\
            process_peak_resident_memory_bytes 7\ncuzk_host_memory_peak_bytes 8\ncuzk_retries_total 9\n";
        let gauges = Gauges::parse(text).unwrap();
        assert_eq!((gauges.devices, gauges.busy_seconds), (2.0, 3.5));
        assert_eq!(
            (gauges.resident, gauges.host_peak, gauges.retries),
            (7.0, 8.0, 9.0)
        );
        assert!(Gauges::parse("").is_err());
    }
}
