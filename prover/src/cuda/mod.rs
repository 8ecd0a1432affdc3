//! CUDA devices through the driver, which is loaded at run time: the only place that speaks `cudarc`.

mod pinned;
mod runtime;

pub use runtime::{CudaRuntime, DeviceInfo};

use cudarc::driver::{CudaContext, DriverError, sys};
use cuzk_kernels::runtime::{Runtime, RuntimeError};
use std::sync::Arc;

use crate::gpu::Gpu;

/// Number of CUDA devices that the driver shows; the error says why there is none.
///
/// # Errors
/// When the driver's library is not installed, does not start, or shows no device.
pub fn device_count() -> Result<usize, RuntimeError> {
    // SAFETY: only looks for the driver's library.
    if !unsafe { sys::is_culib_present() } {
        return Err(RuntimeError::device(
            "CUDA driver",
            "libcuda is not installed",
        ));
    }
    match CudaContext::device_count().map_err(failed("cuDeviceGetCount"))? {
        count if count > 0 => Ok(count as usize),
        _ => Err(RuntimeError::device("CUDA driver", "no device is visible")),
    }
}

fn failed(call: &str) -> impl Fn(DriverError) -> RuntimeError + '_ {
    move |error| RuntimeError::device(call, error)
}

/// The back end on the devices with these ordinals, or on all of them if none is named. On each, at most
/// `limit` bytes of memory are taken.
///
/// # Errors
/// When a device cannot be used.
pub fn backend(ordinals: &[usize], limit: Option<u64>) -> Result<Gpu, RuntimeError> {
    let all: Vec<usize> = (0..device_count()?).collect();
    let chosen = if ordinals.is_empty() { &all } else { ordinals };
    let open = |&ordinal: &usize| {
        CudaRuntime::new(ordinal).map(|runtime| Arc::new(runtime) as Arc<dyn Runtime>)
    };
    let runtimes = chosen.iter().map(open).collect::<Result<_, _>>()?;
    Ok(Gpu::new(runtimes, limit))
}
