//! Known answers for the integer operations and warp operations that kernels rely on.
//!
//! Compilers for GPUs have been silently wrong about `leading_zeros`, 128-bit products and shifts by 64
//! or more; these kernels ask the device itself.

#[cfg(not(target_arch = "nvptx64"))]
mod known;
#[cfg(not(target_arch = "nvptx64"))]
pub use known::{PrimitiveError, check_primitives};

use crate::{AtomicOp, Global, GlobalMut, Shared, kernel};

/// Words that [`integer_primitives`] writes for each input.
pub const ANSWERS: usize = 50;
/// Words that [`warp_primitives`] writes for each lane.
pub const WARP_ANSWERS: usize = 12;

/// Writes results one after the other; a position is a constant, nothing is indexed at run time.
macro_rules! put {
    ($gpu:ident, $z:ident, $at:ident, $($value:expr),* $(,)?) => {
        $( $z.store($gpu, $at, ($value) as u32); $at += 1; )*
    };
}
macro_rules! put_wide {
    ($gpu:ident, $z:ident, $at:ident, $($value:expr),* $(,)?) => {
        $( { let v = ($value) as u64; put!($gpu, $z, $at, v, v >> 32); } )*
    };
}

kernel! {
    /// Every integer operation on the words `x[i] = [a, b, c, d]` and on the 64-bit values a + 2³²b and
    /// c + 2³²d; the results of input i start at `z[i · ANSWERS]`.
    pub fn integer_primitives(gpu, n: u32, x: Global<[u32; 4]>, z: GlobalMut<u32>)
    limits { threads: 32, min_blocks: 1, registers: 255, shared: 0 }
    {
        let i = gpu.index();
        if i < n as usize {
            let [a, b, c, d] = x.load(gpu, i);
            let (low, high) = (a as u64 | (b as u64) << 32, c as u64 | (d as u64) << 32);
            let (narrow, wide) = (b % 32, c % 64);
            let product = low as u128 * high as u128;
            let mut at = i * ANSWERS;
            put!(gpu, z, at, a.leading_zeros(), a.trailing_zeros(), a.count_ones(), a.reverse_bits(),
                a.swap_bytes(), a.rotate_left(narrow));
            put!(gpu, z, at, a.wrapping_mul(b), (a as u64 * b as u64) >> 32,
                (a as i32 as i64 * b as i32 as i64) >> 32);
            put!(gpu, z, at, a << narrow, a >> narrow, (a as i32) >> narrow);
            put!(gpu, z, at, low.leading_zeros(), low.trailing_zeros(), low.count_ones());
            put_wide!(gpu, z, at, product, product >> 64, (product + low as u128 + high as u128) >> 64);
            put_wide!(gpu, z, at, low << wide, low >> wide, (low as i64) >> wide, low.rotate_left(wide));
            put!(gpu, z, at, a / (b | 1), a % (b | 1));
            put_wide!(gpu, z, at, low / (high | 1), low % (high | 1));
            put!(gpu, z, at, (a as i32).wrapping_div((b | 1) as i32), (a as i32).wrapping_rem((b | 1) as i32));
            let (sum, carry) = low.overflowing_add(high);
            put_wide!(gpu, z, at, sum);
            put!(gpu, z, at, carry);
            let (difference, borrow) = low.overflowing_sub(high);
            put_wide!(gpu, z, at, difference);
            put!(gpu, z, at, borrow);
            put!(gpu, z, at, a.min(b), a.max(b), (a as i32).min(b as i32), a.saturating_sub(b), a.abs_diff(b));
            put!(gpu, z, at, low >> narrow, (low as i64) < (high as i64));
            let _ = at;
        }
    }

    /// Every warp operation, barrier and atomic once, one block of 64 threads; the results of thread t
    /// start at `z[t · WARP_ANSWERS]`. `counters` are four words: 0, 2³² − 1, 0, 7.
    pub fn warp_primitives(gpu, counters: GlobalMut<u32>, z: GlobalMut<u32>)
    limits { threads: 64, min_blocks: 1, registers: 64, shared: 264 }
    {
        let (t, lane) = (gpu.thread(), gpu.lane());
        let mut at = t as usize * WARP_ANSWERS;
        put!(gpu, z, at, gpu.shuffle(t * 10, lane + 1), gpu.shuffle_xor(t, 5), gpu.shuffle_up(t, 3),
            gpu.shuffle_down(t, 3), gpu.ballot(t % 3 == 0), gpu.match_any(lane / 8), gpu.warp_sum(t));
        let tile = Shared::<u32>::new(gpu, 0);
        tile.store(gpu, t, t * t);
        if t < 2 {
            tile.store(gpu, 64 + t, 0);
        }
        gpu.barrier();
        put!(gpu, z, at, tile.load(gpu, 63 - t));
        tile.atomic_add(gpu, 64, t);
        tile.atomic(gpu, AtomicOp::Max, 65, t);
        counters.atomic_add(gpu, 0, t);
        counters.atomic(gpu, AtomicOp::Min, 1, t + 3);
        counters.atomic(gpu, AtomicOp::Or, 2, 1 << (t % 32));
        let swapped = counters.compare_swap(gpu, 3, 7, 100);
        gpu.barrier();
        put!(gpu, z, at, tile.load(gpu, 64), tile.load(gpu, 65), gpu.threads(), gpu.ballot(swapped == 7));
        let _ = at;
    }
}
