//! Multi-scalar multiplication on a device: sequences of the kernels of `cuzk_kernels::msm`.
//!
//! [`Plan`] chooses the window width and says how much memory is needed; [`Sorted`] sorts scalars by
//! bucket once for any number of base sets ([`Sorted::sum`]). [`Selection`] splits compact scalars into
//! the ones, whose points are only added ([`sum_of_points`]), and the others, which are sorted with a map
//! to their bases. All device memory comes from an arena; results come back as blstrs' points.

mod curve;
mod lists;
mod plan;
mod selected;
mod sorted;

pub use curve::{GpuCurve, Pairs};
pub use lists::{Lists, State};
pub use plan::{MAX_BITS, MIN_BITS, Plan};
pub use selected::{
    Bitmaps, Selection, ones_per_sum, sum_of_ones, sum_of_points, sum_of_points_bytes,
};
pub use sorted::{Scalars, Sorted};

use bytemuck::Pod;
use cuzk_kernels::runtime::{Runtime, RuntimeError};
use cuzk_kernels::{Element, GlobalMut};

/// Why a multi-scalar multiplication was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MsmError {
    /// The device failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The arena cannot be made small enough.
    #[error("MSM: {needed} bytes of device memory needed, {limit} allowed")]
    Memory {
        /// The least that would do.
        needed: u64,
        /// The limit that was given.
        limit: u64,
    },
    /// Too many points for one call, or a window width that does not exist.
    #[error(
        "MSM: {points} points with windows of {bits} bits; fewer than 2^29 points, 2 to 23 bits"
    )]
    Size {
        /// Number of points.
        points: usize,
        /// Window width.
        bits: u32,
    },
    /// Compact scalars contradict themselves.
    #[error("compact scalars: {expected} values, but the bitmap marks {found}")]
    Others {
        /// Number of values.
        expected: u32,
        /// Bits set in the bitmap.
        found: u32,
    },
}

/// Copies a device array to `out`.
fn download<T: Element + Pod>(
    runtime: &std::sync::Arc<dyn Runtime>,
    array: GlobalMut<T>,
    out: &mut [T],
) -> Result<(), MsmError> {
    Ok(runtime.download(array.address(), bytemuck::cast_slice_mut(out))?)
}

#[cfg(test)]
mod tests;
