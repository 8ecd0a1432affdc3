//! `cuzk gpu`: the CUDA devices of this machine.

use crate::{arguments::Gpu, error::Error, output::Output};
use cuzk_prover::cuda::{CudaRuntime, DeviceInfo, device_count};
use cuzk_prover::gpu::Runtime;
use cuzk_prover::gpu::selftest::{Size, selftest};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// Runs the command.
pub fn run(arguments: &Gpu, output: &Output) -> Result<(), Error> {
    match arguments {
        Gpu::Info => info(output),
        Gpu::Selftest => test(output),
    }
}

fn info(output: &Output) -> Result<(), Error> {
    let devices = match device_count() {
        Ok(count) => (0..count)
            .map(DeviceInfo::query)
            .collect::<Result<Vec<_>, _>>()?,
        Err(reason) => {
            output.result(
                &json!({"devices": [], "reason": reason.to_string()}),
                &reason.to_string(),
            );
            return Ok(());
        }
    };
    let values: Vec<Value> = devices
        .iter()
        .map(|d| {
            json!({
                "ordinal": d.ordinal, "name": d.name, "memory_bytes": d.memory,
                "compute_capability": format!("{}.{}", d.capability.0, d.capability.1),
                "multiprocessors": d.multiprocessors,
            })
        })
        .collect();
    let lines: Vec<String> = devices
        .iter()
        .map(|d| {
            let (major, minor) = d.capability;
            let gib = d.memory as f64 / (1u64 << 30) as f64;
            format!(
                "cuda:{} {}, compute capability {major}.{minor}, {} multiprocessors, {gib:.1} GiB",
                d.ordinal, d.name, d.multiprocessors
            )
        })
        .collect();
    output.result(&json!({"devices": values}), &lines.join("\n"));
    Ok(())
}

fn test(output: &Output) -> Result<(), Error> {
    let mut values = Vec::new();
    let mut lines = Vec::new();
    for ordinal in 0..device_count()? {
        let progress = output.progress(format!("testing cuda:{ordinal}"));
        let start = Instant::now();
        let device = CudaRuntime::new(ordinal)?;
        let name = device.name();
        let runtime: Arc<dyn Runtime> = Arc::new(device);
        let checks =
            selftest(&runtime, Size::Full).map_err(|source| Error::Selftest { ordinal, source })?;
        let seconds = start.elapsed().as_secs_f64();
        drop(progress);
        for check in &checks {
            lines.push(format!(
                "{:<32} {:>8.3} s",
                check.name,
                check.time.as_secs_f64()
            ));
        }
        lines.push(format!("cuda:{ordinal} {name}: all right ({seconds:.2} s)"));
        values.push(
            json!({"ordinal": ordinal, "name": name, "seconds": seconds, "passed": checks.len()}),
        );
    }
    output.result(&json!({"devices": values}), &lines.join("\n"));
    Ok(())
}
