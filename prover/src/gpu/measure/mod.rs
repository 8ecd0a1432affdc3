//! Measurements of kernels and of their sequences on a device, with resident data: what `cuzk bench kernels`
//! prints.
//!
//! Every result is checked: transforms against a closed form at some points, the quotient up to 2^20 against
//! the host, sums against one multiplication of the generator. A time is a median over repetitions. A bound is
//! what the rate of 32-bit multiply-adds (one a lane and two clocks of a multiprocessor's 64) or the bandwidth
//! of a device copy in the same run allows, whichever is later.

mod field;
mod inputs;
mod report;
mod sums;
mod transforms;

use std::sync::Arc;
use std::time::{Duration, Instant};

use cuzk_kernels::runtime::{DeviceBuffer, Runtime, RuntimeError};

pub use field::field;
pub use inputs::{multiples, random_scalars, weighted_sum};
pub use report::{Selection, heading, json, line, measure};
pub use sums::{compact_sum, sum};
pub use transforms::{Kind, quotient, transform};

use super::msm::MsmError;
use super::ntt::TransformError;

/// Wide multiply-adds of a multiprocessor in a clock.
const WIDE_PER_CLOCK: f64 = 32.0;

/// Why something was not measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The device failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A transform could not be made.
    #[error(transparent)]
    Transform(#[from] TransformError),
    /// A sum could not be made.
    #[error(transparent)]
    Msm(#[from] MsmError),
    /// A result is wrong.
    #[error("{0}: the result is wrong")]
    Wrong(String),
}

/// What a device could do at best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// 32-bit multiply-adds with a 64-bit result, per second.
    pub wide: f64,
    /// Bytes per second that a copy reads and writes, together.
    pub bandwidth: f64,
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What was done.
    pub work: String,
    /// Binary logarithm of the number of elements, if it varies.
    pub log2: Option<u32>,
    /// Median time in seconds.
    pub seconds: f64,
    /// Operations done in that time: elements, points or products.
    pub operations: f64,
    /// Wide multiply-adds.
    pub wide: f64,
    /// Bytes to and from device memory.
    pub bytes: f64,
}

impl Measured {
    /// The time that the limits allow, and whether the multiplier sets it (or else the memory).
    pub fn bound(&self, limits: &Limits) -> (f64, bool) {
        let (multiplier, memory) = (self.wide / limits.wide, self.bytes / limits.bandwidth);
        (multiplier.max(memory), multiplier >= memory)
    }
}

/// The limits of a device of `multiprocessors` at `clock` Hz; the bandwidth is measured.
///
/// # Errors
/// When the device fails.
pub fn limits(runtime: &Arc<dyn Runtime>, clock: f64) -> Result<Limits, RuntimeError> {
    let bytes = (1u64 << 30).min(runtime.memory()?.free / 8) & !0xff;
    let from = DeviceBuffer::<u32>::new(runtime, bytes as usize / 4)?;
    let to = DeviceBuffer::<u32>::new(runtime, bytes as usize / 4)?;
    runtime.zero(from.global().address(), bytes)?;
    let seconds = device_time(runtime, 9, 1, || {
        runtime.copy(to.global().address(), from.global().address(), bytes)
    })?;
    Ok(Limits {
        wide: WIDE_PER_CLOCK * clock * f64::from(runtime.multiprocessors()),
        bandwidth: 2.0 * bytes as f64 / seconds,
    })
}

/// Median seconds of device time of one call, from `repetitions` batches of `batch` calls.
///
/// # Errors
/// When the device fails.
pub fn device_time(
    runtime: &Arc<dyn Runtime>,
    repetitions: usize,
    batch: u32,
    mut work: impl FnMut() -> Result<(), RuntimeError>,
) -> Result<f64, RuntimeError> {
    work()?;
    let mut times = Vec::with_capacity(repetitions);
    for _ in 0..repetitions {
        let from = runtime.mark()?;
        for _ in 0..batch {
            work()?;
        }
        times.push(runtime.elapsed(&from, &runtime.mark()?)? / batch);
    }
    Ok(median(times))
}

/// Median seconds of wall time of one call that ends on the host; the last result.
fn wall_time<T, E: From<RuntimeError>>(
    runtime: &Arc<dyn Runtime>,
    repetitions: usize,
    mut work: impl FnMut() -> Result<T, E>,
) -> Result<(f64, T), E> {
    let mut result = work()?;
    let mut times = Vec::with_capacity(repetitions);
    for _ in 0..repetitions {
        runtime.synchronize()?;
        let start = Instant::now();
        result = work()?;
        times.push(start.elapsed());
    }
    Ok((median(times), result))
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times
        .get(times.len() / 2)
        .map_or(0.0, Duration::as_secs_f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_kernels::runtime::EmulatedRuntime;

    #[test]
    fn everything_can_be_measured_on_the_emulator_and_is_right() {
        let device = EmulatedRuntime::new(1 << 30);
        let runtime: Arc<dyn Runtime> = Arc::new(device.clone());
        let limits = limits(&runtime, 1e9).unwrap();
        let mut rows = field(&runtime, 1, 1).unwrap();
        let selection = Selection {
            field: false,
            transforms: vec![3, 11],
            layouts: false,
            quotients: vec![4],
            g1: vec![5],
            g2: vec![4],
            compact: vec![7],
            repetitions: 1,
        };
        let mut seen = 0;
        rows.extend(measure(&runtime, &selection, |_| seen += 1).unwrap());
        assert_eq!((seen, rows.len()), (12, 17));
        for row in rows {
            let (bound, _) = row.bound(&limits);
            assert!(bound > 0.0 && row.operations > 0.0, "{row:?}");
            assert!(line(&row, &limits).split_whitespace().count() > 5);
        }
        drop(runtime);
        assert_eq!(device.reserved(), 0);
    }
}
