//! `cuzk bench full`: one whole proof of a fabricated sector, from its input to Filecoin's own verifier, with
//! parameters that are made on the device.

use super::counters;
use crate::arguments::BenchFull;
use crate::commands::{check_folder, params, params_dir, write_file};
use crate::{error::Error, output::Output, output::Progress};
use cuzk_circuit::{CompiledCircuit, Witness};
use cuzk_filecoin::fabricate::{self, fabricate};
use cuzk_filecoin::{CircuitId, ProofRequest, Request};
use cuzk_prover::cuda::{self, CudaRuntime};
use cuzk_prover::gpu::Runtime;
use cuzk_prover::setup::{self, ToxicWaste};
use cuzk_prover::timeline::{Report, Timeline};
use cuzk_prover::{Device, Params, PendingProof, Prover};
use ff::Field;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Runs the command.
pub fn run(arguments: &BenchFull, output: &Output) -> Result<(), Error> {
    let folder = folder(arguments)?;
    let dir = params_dir(Some(&folder))?;
    std::fs::create_dir_all(&dir).map_err(Error::file(&dir))?;
    if let Some(path) = &arguments.trace {
        check_folder(path)?;
    }
    let outcome = measure(arguments, &dir, output);
    if arguments.params_dir.is_none() {
        // A leftover folder is no reason to lose the results.
        let _ = std::fs::remove_dir_all(&dir);
    }
    outcome
}

/// The folder of the verifying key. Its name is the same after this process has replaced itself.
fn folder(arguments: &BenchFull) -> Result<std::path::PathBuf, Error> {
    Ok(match &arguments.params_dir {
        Some(dir) => dir.clone(),
        None => std::env::temp_dir().join(format!("cuzk-bench-full-{}", std::process::id())),
    })
}

fn measure(arguments: &BenchFull, dir: &Path, output: &Output) -> Result<(), Error> {
    let id = CircuitId::new(arguments.circuit.kind, arguments.circuit.sector_size);
    let progress = output.progress(format!("fabricating a sector for {id}"));
    let before = Timeline::new();
    let bench = Bench::prepare(arguments, id, dir, &before, &progress)?;
    let partitions = bench.request.partitions();
    let count = arguments
        .partitions
        .map_or(partitions, |n| n.min(partitions));

    // The first proofs on each device make its parameters and its working memory and are not counted.
    progress.now("making the parameters on the device");
    let warm = Timeline::new();
    bench.prove(&warm, &vec![0; bench.in_flight], bench.in_flight, &|_| ())?;
    let setup_peak = counters::peak_resident();

    let (timeline, start, cpu) = (Timeline::new(), Instant::now(), counters::cpu_time());
    let order: Vec<usize> = (0..count).collect();
    let proofs = bench.prove(&timeline, &order, bench.in_flight, &|k| {
        progress.now(format!("proving {id}, partition {} of {count}", k + 1));
    })?;
    let proved = start.elapsed().as_secs_f64();
    let official = match count == partitions {
        true => Some(
            timeline
                .span("verify_seal and the like")
                .time("official", || {
                    bench.request.verify(&bench.request.assemble(&proofs)?)
                })?,
        ),
        false => None,
    };
    let wall = start.elapsed().as_secs_f64();
    let core_seconds = (counters::cpu_time() - cpu).as_secs_f64();
    drop(progress);
    if official == Some(false) {
        return Err(Error::Refused { circuit: id });
    }
    if let Some(path) = &arguments.trace {
        write_file(path, timeline.chrome_trace().as_bytes())?;
    }
    let memory = memory(&arguments.device, bench.devices);
    let (first, last, report) = (before.report(), warm.report(), timeline.report());
    let value = json!({
        "circuit": id.to_string(), "backend": bench.prover.backend(), "devices": bench.devices,
        "partitions": count, "in_flight": bench.in_flight, "seconds": wall,
        "seconds_a_partition": proved / count as f64, "official_verifier": official,
        "core_seconds": core_seconds, "host_peak_bytes": counters::peak_resident(),
        "host_peak_bytes_of_setup": setup_peak, "device_memory": memory,
        "preparation": first.rows, "first_proof": last.rows, "timeline": report.rows,
    });
    let text = format!(
        "preparation\n{first}\nparameters and first proofs\n{last}\n{count} of {partitions} partitions\n{report}\n{}",
        summary(&value, &report)
    );
    output.result(&value, &text);
    Ok(())
}

/// What stays the same from proof to proof.
struct Bench {
    request: Request,
    compiled: Arc<CompiledCircuit>,
    params: Arc<Params>,
    prover: Prover,
    devices: usize,
    in_flight: usize,
    seed: u64,
}

impl Bench {
    fn prepare(
        arguments: &BenchFull,
        id: CircuitId,
        dir: &Path,
        timeline: &Timeline,
        progress: &Progress,
    ) -> Result<Self, Error> {
        let prover = Prover::new(arguments.device.clone())?;
        let devices = devices(&arguments.device);
        let options = fabricate::Options {
            seed: arguments.seed,
            ..fabricate::Options::default()
        };
        let sector = timeline
            .span("fabricate")
            .time("sector", || fabricate(id.kind, id.size, &options))?;
        let request: ProofRequest = sector.into();
        let request = timeline
            .span("parse")
            .time("request", || Request::parse(&request))?;
        progress.now(format!("compiling {id}"));
        let compiled = timeline.span("compile").time("circuit", || {
            params::compiled(id, arguments.circuit_file.as_deref())
        })?;
        let compiled = Arc::new(compiled);
        progress.now(format!("evaluating the polynomials of {id} at tau"));
        let waste = ToxicWaste::random(ChaCha20Rng::seed_from_u64(arguments.seed));
        let params = timeline.span("set up").time("polynomials at tau", || {
            setup::prepare(compiled.clone(), waste)
        })?;
        params.vk().write(id.params_path(dir, "vk")?)?;
        id.write_test_meta(dir)?;
        Ok(Bench {
            request,
            compiled,
            params: Arc::new(params),
            prover,
            devices,
            in_flight: arguments.in_flight.unwrap_or(2 * devices),
            seed: arguments.seed,
        })
    }

    /// Proves partitions in order, at most `in_flight` at once; the next witness is generated while the
    /// devices work.
    fn prove(
        &self,
        timeline: &Timeline,
        partitions: &[usize],
        in_flight: usize,
        tell: &dyn Fn(usize),
    ) -> Result<Vec<[u8; 192]>, Error> {
        let mut rng = ChaCha20Rng::seed_from_u64(self.seed);
        let mut proofs = Vec::with_capacity(partitions.len());
        let mut spare: Vec<Witness> = Vec::new();
        let mut pending: VecDeque<PendingProof> = VecDeque::new();
        for &k in partitions {
            tell(k);
            let mut witness = spare.pop().unwrap_or_default();
            let span = timeline.span("witness");
            self.request.witness_into(k, &mut witness)?;
            drop(span);
            let room = timeline.span("wait for room");
            while pending.len() >= in_flight
                && let Some(first) = pending.pop_front()
            {
                spare.push(finish(first, &mut proofs)?);
            }
            drop(room);
            let (r, s) = (Field::random(&mut rng), Field::random(&mut rng));
            pending.push_back(self.prover.start_compiled_on(
                timeline.clone(),
                &self.params,
                &self.compiled,
                witness,
                r,
                s,
            )?);
        }
        let _end = timeline.span("wait for the last");
        for last in pending {
            spare.push(finish(last, &mut proofs)?);
        }
        Ok(proofs)
    }
}

/// Waits for a proof, which is verified, and hands the witness's memory back.
fn finish(pending: PendingProof, proofs: &mut Vec<[u8; 192]>) -> Result<Witness, Error> {
    let finished = pending.finish()?;
    proofs.push(finished.proof.to_bytes());
    Ok(finished.assignment.witness)
}

/// Number of devices that will prove.
fn devices(device: &Device) -> usize {
    let all = || cuda::device_count().unwrap_or(1);
    match device {
        Device::Cpu => 1,
        Device::Auto => all(),
        Device::Cuda(ordinals) if ordinals.is_empty() => all(),
        Device::Cuda(ordinals) => ordinals.len(),
    }
}

/// Bytes in use on each CUDA device, by whomever.
fn memory(device: &Device, count: usize) -> Vec<Value> {
    let ordinals: Vec<usize> = match device {
        Device::Cpu => Vec::new(),
        Device::Cuda(ordinals) if !ordinals.is_empty() => ordinals.clone(),
        _ => (0..count).collect(),
    };
    let used = |ordinal| {
        let memory = CudaRuntime::new(ordinal).and_then(|runtime| runtime.memory());
        let memory = memory.ok()?;
        Some(
            json!({"ordinal": ordinal, "used_bytes": memory.total - memory.free,
            "total_bytes": memory.total}),
        )
    };
    ordinals.into_iter().filter_map(used).collect()
}

fn summary(value: &Value, report: &Report) -> String {
    let gib = |field: &str| value[field].as_f64().unwrap_or_default() / f64::from(1u32 << 30);
    let number = |field: &str| value[field].as_f64().unwrap_or_default();
    let official = match value["official_verifier"].as_bool() {
        Some(_) => "every proof verified, and all of them by Filecoin's own verifier",
        None => "every proof verified",
    };
    let total = report.rows.first();
    let unexplained = total.and_then(|row| row.unexplained).unwrap_or_default();
    let wall = number("seconds");
    format!(
        "{} on {}: {wall:.3} s, {:.3} s a partition; {official}\n{:.1} core-seconds; host memory at most {:.2} GiB ({:.2} GiB in setup); unexplained {:.2} %; device memory {}",
        value["circuit"].as_str().unwrap_or_default(),
        value["backend"].as_str().unwrap_or_default(),
        number("seconds_a_partition"),
        number("core_seconds"),
        gib("host_peak_bytes"),
        gib("host_peak_bytes_of_setup"),
        100.0 * unexplained / wall.max(f64::MIN_POSITIVE),
        value["device_memory"],
    )
}
