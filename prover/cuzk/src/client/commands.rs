//! `cuzk submit`, `await`, `cancel`, `status`, `preload`, `evict` and `metrics`.

use super::{Client, ClientError, connect, message};
use crate::arguments::daemon::{Await, Client as Command, OfCircuit, OfDaemon, OfJob, Submit};
use crate::commands::{check_folder, write_file};
use crate::error::Error;
use crate::output::{Output, hex};
use crate::rpc;
use rpc::await_proof_response::Status as Ended;
use serde_json::{Value, json};
use std::path::Path;

/// Runs the command.
pub fn run(command: &Command, output: &Output) -> Result<(), Error> {
    super::pipeline::block_on(async {
        match command {
            Command::Submit(arguments) => submit(arguments, output).await,
            Command::Await(arguments) => wait(arguments, output).await,
            Command::Cancel(arguments) => cancel(arguments, output).await,
            Command::Status(arguments) => status(arguments, output).await,
            Command::Metrics(arguments) => metrics(arguments, output).await,
            Command::Preload(arguments) => preload(arguments, output).await,
            Command::Evict(arguments) => evict(arguments, output).await,
        }
    })
}

async fn submit(arguments: &Submit, output: &Output) -> Result<(), Error> {
    if let Some(out) = &arguments.out {
        check_folder(out)?;
    }
    let bytes = std::fs::read(&arguments.input).map_err(Error::file(&arguments.input))?;
    let mut request = message(bytes);
    request.request_id = arguments.request_id.clone();
    request.priority = arguments.priority.unwrap_or_default();
    request.miner_id = arguments.miner.unwrap_or(request.miner_id);
    request.sector_number = arguments.sector.unwrap_or(request.sector_number);
    let mut client = connect(&arguments.connection).await?;
    let progress = output.progress("submitting");
    let submitted = client
        .submit_proof(request)
        .await
        .map_err(refused)?
        .into_inner();
    if arguments.wait {
        progress.now(format!("job {}: waiting for the proof", submitted.job_id));
        let answer = await_job(&mut client, &submitted.job_id, 0).await?;
        drop(progress);
        return proof(&answer, arguments.out.as_deref(), output);
    }
    drop(progress);
    let value = json!({
        "job": submitted.job_id, "queue_position": submitted.queue_position,
        "device": submitted.assigned_gpu,
    });
    output.result(&value, &submitted.job_id);
    Ok(())
}

fn refused(status: tonic::Status) -> ClientError {
    ClientError::Refused(status)
}

async fn await_job(
    client: &mut Client,
    job: &str,
    timeout_ms: u64,
) -> Result<rpc::AwaitProofResponse, ClientError> {
    let request = rpc::AwaitProofRequest {
        job_id: job.to_owned(),
        timeout_ms,
    };
    Ok(client.await_proof(request).await?.into_inner())
}

async fn wait(arguments: &Await, output: &Output) -> Result<(), Error> {
    if let Some(out) = &arguments.out {
        check_folder(out)?;
    }
    let mut client = connect(&arguments.connection).await?;
    let progress = output.progress(format!("job {}: waiting for the proof", arguments.job));
    let timeout_ms = arguments.timeout.map_or(0, |seconds| 1000 * seconds as u64);
    let answer = await_job(&mut client, &arguments.job, timeout_ms).await?;
    drop(progress);
    proof(&answer, arguments.out.as_deref(), output)
}

/// Writes or prints the proof of a job that ended, or fails with why there is none.
fn proof(
    answer: &rpc::AwaitProofResponse,
    out: Option<&Path>,
    output: &Output,
) -> Result<(), Error> {
    if answer.status() != Ended::Completed {
        let how = answer.status().as_str_name();
        return Err(Error::from(ClientError::NoProof {
            job: answer.job_id.clone(),
            how,
            message: answer.error_message.clone(),
        }));
    }
    if let Some(out) = out {
        write_file(out, &answer.proof)?;
    }
    let value = json!({
        "job": answer.job_id, "proof_bytes": answer.proof.len(),
        "proof": out.is_none().then(|| hex(&answer.proof)),
        "queue_wait_ms": answer.queue_wait_ms, "srs_load_ms": answer.srs_load_ms,
        "synthesis_ms": answer.synthesis_ms, "gpu_compute_ms": answer.gpu_compute_ms,
        "total_ms": answer.total_ms,
    });
    let target = out.map_or_else(|| hex(&answer.proof), |p| p.display().to_string());
    let text = format!(
        "job {}: {} bytes in {:.2} s (queue {:.2}, parameters {:.2}, synthesis {:.2}, proof {:.2})\n{target}",
        answer.job_id,
        answer.proof.len(),
        seconds(answer.total_ms),
        seconds(answer.queue_wait_ms),
        seconds(answer.srs_load_ms),
        seconds(answer.synthesis_ms),
        seconds(answer.gpu_compute_ms),
    );
    output.result(&value, &text);
    Ok(())
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

async fn cancel(arguments: &OfJob, output: &Output) -> Result<(), Error> {
    let mut client = connect(&arguments.connection).await?;
    let request = rpc::CancelProofRequest {
        job_id: arguments.job.clone(),
    };
    let answer = client
        .cancel_proof(request)
        .await
        .map_err(refused)?
        .into_inner();
    let text = if answer.was_running {
        "cancelled while it ran"
    } else {
        "it did not run"
    };
    output.result(
        &json!({"job": arguments.job, "was_running": answer.was_running}),
        text,
    );
    Ok(())
}

async fn preload(arguments: &OfCircuit, output: &Output) -> Result<(), Error> {
    let mut client = connect(&arguments.connection).await?;
    let circuit_id = arguments.circuit.to_string();
    let progress = output.progress(format!("loading the parameters of {circuit_id}"));
    let request = rpc::PreloadSrsRequest {
        circuit_id: circuit_id.clone(),
    };
    let answer = client
        .preload_srs(request)
        .await
        .map_err(refused)?
        .into_inner();
    drop(progress);
    let text = if answer.already_loaded {
        format!("{circuit_id}: was loaded")
    } else {
        format!(
            "{circuit_id}: loaded in {:.2} s",
            seconds(answer.load_time_ms)
        )
    };
    let value = json!({
        "circuit": circuit_id, "already_loaded": answer.already_loaded,
        "load_time_ms": answer.load_time_ms,
    });
    output.result(&value, &text);
    Ok(())
}

async fn evict(arguments: &OfCircuit, output: &Output) -> Result<(), Error> {
    let mut client = connect(&arguments.connection).await?;
    let circuit_id = arguments.circuit.to_string();
    let request = rpc::EvictSrsRequest {
        circuit_id: circuit_id.clone(),
    };
    let answer = client
        .evict_srs(request)
        .await
        .map_err(refused)?
        .into_inner();
    let text = if answer.was_loaded {
        format!("{circuit_id}: {} freed", bytes(answer.freed_bytes))
    } else {
        format!("{circuit_id}: was not loaded")
    };
    let value = json!({
        "circuit": circuit_id, "was_loaded": answer.was_loaded, "freed_bytes": answer.freed_bytes,
    });
    output.result(&value, &text);
    Ok(())
}

async fn metrics(arguments: &OfDaemon, output: &Output) -> Result<(), Error> {
    let mut client = connect(&arguments.connection).await?;
    let answer = client
        .get_metrics(rpc::GetMetricsRequest {})
        .await
        .map_err(refused)?
        .into_inner();
    output.result(
        &json!({"prometheus_text": answer.prometheus_text}),
        answer.prometheus_text.trim_end(),
    );
    Ok(())
}

async fn status(arguments: &OfDaemon, output: &Output) -> Result<(), Error> {
    let mut client = connect(&arguments.connection).await?;
    let status = client
        .get_status(rpc::GetStatusRequest {})
        .await
        .map_err(refused)?
        .into_inner();
    output.result(&status_value(&status), &status_text(&status));
    Ok(())
}

fn status_value(status: &rpc::GetStatusResponse) -> Value {
    json!({
        "gpus": status.gpus.iter().map(|gpu| json!({
            "ordinal": gpu.ordinal, "name": gpu.name, "vram_total_bytes": gpu.vram_total_bytes,
            "vram_free_bytes": gpu.vram_free_bytes, "current_job_id": gpu.current_job_id,
            "current_proof_kind": gpu.current_proof_kind,
        })).collect::<Vec<_>>(),
        "loaded_srs": status.loaded_srs.iter().map(|srs| json!({
            "circuit_id": srs.circuit_id, "tier": srs.tier().as_str_name(),
            "size_bytes": srs.size_bytes, "ref_count": srs.ref_count,
        })).collect::<Vec<_>>(),
        "queues": status.queues.iter().map(|queue| json!({
            "proof_kind": queue.proof_kind, "pending": queue.pending, "in_progress": queue.in_progress,
        })).collect::<Vec<_>>(),
        "total_proofs_completed": status.total_proofs_completed,
        "total_proofs_failed": status.total_proofs_failed,
        "uptime_seconds": status.uptime_seconds,
        "pinned_memory_bytes": status.pinned_memory_bytes,
        "pinned_memory_limit_bytes": status.pinned_memory_limit_bytes,
    })
}

fn status_text(status: &rpc::GetStatusResponse) -> String {
    let mut lines = vec![
        format!(
            "up {} s, {} completed, {} failed, memory {} of {}",
            status.uptime_seconds,
            status.total_proofs_completed,
            status.total_proofs_failed,
            bytes(status.pinned_memory_bytes),
            bytes(status.pinned_memory_limit_bytes)
        ),
        format!("{:<24} {:>8} {:>8}", "queue", "waiting", "running"),
    ];
    lines.extend(status.queues.iter().map(|queue| {
        format!(
            "{:<24} {:>8} {:>8}",
            queue.proof_kind, queue.pending, queue.in_progress
        )
    }));
    if !status.gpus.is_empty() {
        lines.push(format!(
            "{:<24} {:>12} {:>12}  job",
            "device", "memory", "free"
        ));
    }
    lines.extend(status.gpus.iter().map(|gpu| {
        format!(
            "{:<24} {:>12} {:>12}  {}",
            format!("cuda:{} {}", gpu.ordinal, gpu.name),
            bytes(gpu.vram_total_bytes),
            bytes(gpu.vram_free_bytes),
            if gpu.current_job_id.is_empty() {
                "-"
            } else {
                &gpu.current_job_id
            }
        )
    }));
    if !status.loaded_srs.is_empty() {
        lines.push(format!(
            "{:<24} {:>12} {:>6} {:>6}",
            "parameters", "size", "tier", "users"
        ));
    }
    lines.extend(status.loaded_srs.iter().map(|srs| {
        format!(
            "{:<24} {:>12} {:>6} {:>6}",
            srs.circuit_id,
            bytes(srs.size_bytes),
            srs.tier().as_str_name().to_lowercase(),
            srs.ref_count
        )
    }));
    lines.join("\n")
}

/// A size for people.
pub fn bytes(count: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0);
    format!("{value:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_for_people() {
        for (count, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (47_373_928_632, "44.1 GiB"),
            (u64::MAX, "16777216.0 TiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }
}
