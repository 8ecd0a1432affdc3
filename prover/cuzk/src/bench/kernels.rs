//! `cuzk bench kernels`: field arithmetic, transforms, the quotient and sums on a card, with resident data.

use crate::arguments::{BenchKernels, KernelWork};
use crate::{error::Error, output::Output};
use cuzk_prover::cuda::CudaRuntime;
use cuzk_prover::gpu::Runtime;
use cuzk_prover::gpu::measure::{self, Selection};
use serde_json::json;
use std::sync::Arc;

/// Runs the command.
pub fn run(arguments: &BenchKernels, output: &Output) -> Result<(), Error> {
    let device = CudaRuntime::new(arguments.device)?;
    let info = device.info().clone();
    let runtime: Arc<dyn Runtime> = Arc::new(device);
    let limits = measure::limits(&runtime, 1e6 * f64::from(info.clock_mhz))?;
    let progress = output.progress("measuring");
    let rows = measure::measure(&runtime, &selection(arguments), |row| {
        progress.now(measure::line(row, &limits));
    })?;
    drop(progress);
    let title = format!(
        "cuda:{} {}, {} multiprocessors at {} MHz: {:.2} T wide multiply-adds a second, {:.2} TB/s",
        info.ordinal,
        info.name,
        info.multiprocessors,
        info.clock_mhz,
        limits.wide / 1e12,
        limits.bandwidth / 1e12
    );
    let mut lines = vec![title, measure::heading()];
    lines.extend(rows.iter().map(|row| measure::line(row, &limits)));
    let value = json!({
        "device": info.name, "multiprocessors": info.multiprocessors, "clock_mhz": info.clock_mhz,
        "wide_per_second": limits.wide, "bytes_per_second": limits.bandwidth,
        "rows": measure::json(&rows, &limits),
    });
    if let Some(path) = &arguments.out {
        std::fs::write(path, value.to_string()).map_err(Error::file(path))?;
    }
    output.result(&value, &lines.join("\n"));
    Ok(())
}

fn selection(arguments: &BenchKernels) -> Selection {
    let sizes = |work: KernelWork, usual: &[u32]| {
        if !arguments.work.is_empty() && !arguments.work.contains(&work) {
            return Vec::new();
        }
        let sizes = if arguments.log2.is_empty() {
            usual
        } else {
            arguments.log2.as_slice()
        };
        let fits = |&log2: &u32| log2 <= arguments.largest;
        sizes.iter().copied().filter(fits).collect()
    };
    Selection {
        field: arguments.work.is_empty() || arguments.work.contains(&KernelWork::Field),
        transforms: sizes(KernelWork::Ntt, &[16, 20, 24, 27]),
        layouts: arguments.layouts,
        quotients: sizes(KernelWork::Quotient, &[20, 24, 27]),
        g1: sizes(KernelWork::G1, &[16, 18, 20, 22, 24, 26]),
        g2: sizes(KernelWork::G2, &[16, 18, 20, 22]),
        compact: sizes(KernelWork::Compact, &[24]),
        repetitions: arguments.repetitions,
    }
}
