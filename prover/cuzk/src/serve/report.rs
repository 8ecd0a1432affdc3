//! The daemon's state as JSON, for `/status`.

use super::history::unix_milliseconds;
use super::{Shared, convert};
use cuzk_engine::{DeviceStatus, EngineStatus, PartitionStatus, RunningJob};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

/// Everything that the page shows; times in milliseconds unless they say seconds.
pub fn status(shared: &Shared) -> Value {
    let status = shared.engine.status();
    let process = Process::read();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "now": unix_milliseconds(SystemTime::now()),
        "uptime_seconds": status.uptime.as_secs_f64(),
        "ready": shared.is_ready(),
        "draining": shared.is_draining(),
        "memory": {
            "host": {
                "used_bytes": status.host_memory.used,
                "limit_bytes": status.host_memory.limit,
                "peak_bytes": status.host_memory.peak,
            },
            "process": {"resident_bytes": process.resident, "peak_resident_bytes": process.peak},
        },
        "synthesis": synthesis(&status),
        "pipelines": status.running.iter().map(pipeline).collect::<Vec<_>>(),
        "gpu_workers": status.devices.iter().map(|d| device(d, status.uptime)).collect::<Vec<_>>(),
        "allocations": status.parameters.iter().map(|p| json!({
            "circuit": p.circuit.to_string(), "tier": p.tier.name(), "bytes": p.bytes,
            "users": p.users, "compiled": p.compiled,
        })).collect::<Vec<_>>(),
        "queues": status.queues.iter().map(|q| json!({
            "proof_kind": convert::kind_name(q.kind), "pending": q.pending, "in_progress": q.in_progress,
        })).collect::<Vec<_>>(),
        "counters": counters(&status),
        "buffers": {"queued_input_bytes": status.queued_bytes, "results_kept": status.results_kept},
        "failures": status.failures.iter().map(|f| json!({
            "at": unix_milliseconds(f.at), "job": f.job.to_string(), "circuit": f.circuit.to_string(),
            "message": f.message,
        })).collect::<Vec<_>>(),
        "ended": shared.history.ended(),
    })
}

fn synthesis(status: &EngineStatus) -> Value {
    let running = status
        .running
        .iter()
        .flat_map(|job| &job.partitions)
        .filter(|p| p.stage == cuzk_engine::Stage::Synthesis)
        .count();
    json!({"running": running, "total_seconds": status.totals.synthesis.as_secs_f64()})
}

fn pipeline(job: &RunningJob) -> Value {
    json!({
        "job": job.job.to_string(),
        "request_id": job.request_id,
        "circuit": job.circuit.to_string(),
        "proof_kind": convert::kind_name(job.circuit.kind),
        "priority": job.priority.to_string(),
        "accepted": unix_milliseconds(job.accepted),
        "running_ms": convert::milliseconds(job.running),
        "partitions": job.partitions.iter().map(partition).collect::<Vec<_>>(),
    })
}

fn partition(partition: &PartitionStatus) -> Value {
    json!({
        "state": partition.stage.name(),
        "since_ms": convert::milliseconds(partition.since),
        "device": partition.device,
        "attempts": partition.attempts,
        "synthesis_ms": convert::milliseconds(partition.synthesis),
        "prove_ms": convert::milliseconds(partition.prove),
    })
}

fn device(device: &DeviceStatus, uptime: Duration) -> Value {
    json!({
        "ordinal": device.ordinal,
        "name": device.name,
        "fallback": device.fallback,
        "memory_total_bytes": device.memory_total,
        "memory_free_bytes": device.memory_free,
        "proving": device.proving.iter().map(|(job, kind, partition)| json!({
            "job": job.to_string(), "proof_kind": convert::kind_name(*kind), "partition": partition,
        })).collect::<Vec<_>>(),
        "proved": device.proved,
        "failed": device.failed,
        "busy_seconds": device.busy.as_secs_f64(),
        "busy_share": device.busy.as_secs_f64() / uptime.as_secs_f64().max(1e-9),
    })
}

fn counters(status: &EngineStatus) -> Value {
    let totals = &status.totals;
    let by_kind: serde_json::Map<String, Value> = status
        .queues
        .iter()
        .zip(totals.completed_by_kind)
        .map(|(queue, count)| (convert::kind_name(queue.kind).to_owned(), json!(count)))
        .collect();
    json!({
        "completed": totals.completed, "failed": totals.failed, "cancelled": totals.cancelled,
        "partitions": totals.partitions, "retries": totals.retries,
        "prove_seconds": totals.prove.as_secs_f64(), "completed_by_kind": by_kind,
    })
}

/// What the system says about this process, in bytes; 0 where it does not.
pub struct Process {
    /// In memory now.
    pub resident: u64,
    /// At most so far.
    pub peak: u64,
}

impl Process {
    /// From `/proc/self/status`.
    pub fn read() -> Self {
        let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kibibytes = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name))
                .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
                .map_or(0, |n| n * 1024)
        };
        Process {
            resident: kibibytes("VmRSS:"),
            peak: kibibytes("VmHWM:"),
        }
    }
}
