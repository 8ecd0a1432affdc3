//! Multi-scalar multiplication on the device: the kernels, each one step of Pippenger's method.
//!
//! 1. [`recode`]: scalars to signed digits, one bit string a scalar from which any window is cut.
//! 2. [`sort`]: for each window, the points by bucket (counting sort through shared memory, one or
//!    two levels).
//! 3. [`rounds`] and [`addition`]: the sums of many lists of points at once. Each round halves every
//!    list by adding neighbours in affine coordinates, with one inversion shared by many additions.
//! 4. [`grid`]: the buckets of a window as a matrix; its row sums and column sums are lists again, and
//!    the window's result is Σ r·row_r times the number of columns plus Σ (c+1)·column_c.
//! 5. [`weights`]: those two weighted sums, in XYZZ coordinates.
//! 6. [`select`]: points picked by bitmaps (scalars 0 and 1, densities).
//!
//! A point is named by a *reference*: bits 0–29 index, bit 30 says that the index counts partial sums
//! ([`PARTIAL`]) instead of bases, bit 31 negates ([`NEGATIVE`]). Partial sum 0 is always the identity.
pub mod addition;
pub mod grid;
pub mod points;
pub mod recode;
pub mod rounds;
pub mod select;
pub mod sort;
pub mod weights;

/// Set in a reference whose point enters negated.
pub const NEGATIVE: u32 = 1 << 31;
/// Set in a reference that names a partial sum instead of a base.
pub const PARTIAL: u32 = 1 << 30;
/// Mask of the index in a reference.
pub const INDEX: u32 = PARTIAL - 1;
/// In an index map: no base belongs to this scalar.
pub const NO_BASE: u32 = u32::MAX;
/// Rounds that any list of fewer than 2³² points needs at most.
pub const MAX_ROUNDS: u32 = 32;

use crate::{Gpu, Shared};

/// Exclusive prefix sum over the block's threads, and the total. Every thread of the block calls it;
/// it uses 33 words of shared memory from byte `offset` on and leaves them free for reuse.
#[inline(always)]
pub(crate) fn block_scan<G: Gpu>(gpu: G, offset: u32, value: u32) -> (u32, u32) {
    let warps = Shared::<u32>::new(gpu, offset);
    let lane = gpu.lane();
    let mut inclusive = value;
    let mut delta = 1;
    while delta < 32 {
        let other = gpu.shuffle_up(inclusive, delta);
        if lane >= delta {
            inclusive = inclusive.wrapping_add(other);
        }
        delta <<= 1;
    }
    if lane == 31 {
        warps.store(gpu, gpu.warp(), inclusive);
    }
    gpu.barrier();
    if gpu.warp() == 0 {
        let count = gpu.threads() / 32;
        let own = if lane < count {
            warps.load(gpu, lane)
        } else {
            0
        };
        let mut sum = own;
        let mut delta = 1;
        while delta < 32 {
            let other = gpu.shuffle_up(sum, delta);
            if lane >= delta {
                sum = sum.wrapping_add(other);
            }
            delta <<= 1;
        }
        if lane < count {
            warps.store(gpu, lane, sum.wrapping_sub(own));
        }
        if lane == 31 {
            warps.store(gpu, 32, sum);
        }
    }
    gpu.barrier();
    let before = warps.load(gpu, gpu.warp());
    let total = warps.load(gpu, 32);
    gpu.barrier();
    (before.wrapping_add(inclusive).wrapping_sub(value), total)
}

/// Bytes of shared memory that [`block_scan`] uses.
pub(crate) const SCAN_BYTES: u32 = 33 * 4;
