//! Sums of points, plain or weighted by position, down to one point a block.
//!
//! A block of 64 threads sums a line of XYZZ points. A thread takes a run of consecutive points, last one
//! first, keeping S (the sum so far) and T += S before each point, so that T = Σ (i − start)·P_i at the
//! end. Then T += (start + bias)·S by doubling S, and the block adds up its T. S and T stay in shared
//! memory and all of this is one loop around one addition, which keeps registers and code small.
use cuzk_field::curve::Xyzz;
use cuzk_field::{G1, G2};

use super::points::{Coordinates, DeviceCurve, Slot};
use crate::{Global, GlobalMut, Gpu, kernel};

/// Threads of a block, each with a run of the line.
pub const LINE_THREADS: u32 = 64;

/// Shared memory of a block for points of `bytes` bytes.
const fn line_shared(bytes: u32) -> u32 {
    2 * LINE_THREADS * bytes
}

const S: u32 = 0;
const T: u32 = 1;

/// What is added in a step: a slot or an element of the line.
#[derive(Clone, Copy)]
struct Operand<C: DeviceCurve, G: Gpu> {
    gpu: G,
    slot: Slot<C, G>,
    line: Global<Xyzz<C>>,
    /// Index in the line; `u32::MAX` for the slot.
    index: u32,
}

impl<C: DeviceCurve, G: Gpu> Coordinates<C> for Operand<C, G> {
    #[inline(always)]
    fn coordinate(&self, k: u32) -> C::Base {
        if self.index == u32::MAX {
            self.slot.coordinate(k)
        } else {
            self.line
                .offset(self.index as usize)
                .cast::<C::Base>()
                .load(self.gpu, k as usize)
        }
    }
}

/// Σ weight_i·P_i over the line; weight_i = i + bias, or 1 for a plain sum. Thread 0 stores it.
#[inline(always)]
fn line_sum<C: DeviceCurve, G: Gpu>(
    gpu: G,
    line: Global<Xyzz<C>>,
    count: u32,
    bias: u32,
    plain: bool,
    out: GlobalMut<Xyzz<C>>,
) {
    let t = gpu.thread();
    let slot = |slot, thread| Slot::<C, G>::new(gpu, LINE_THREADS, 2, slot, thread);
    slot(S, t).clear();
    slot(T, t).clear();
    let run = count.div_ceil(LINE_THREADS);
    let start = count.min(t * run);
    let end = count.min(start + run);
    let factor = if plain { 1 } else { start + bias };
    let bits = if plain {
        1
    } else {
        32 - (count + bias).leading_zeros()
    };
    let tree = LINE_THREADS.ilog2();
    let mut step = 0;
    while step < run + bits + tree {
        let mut half = 0;
        while half < 2 {
            // T += S (or the tree's T += T'), then S += P or S += S
            let mut target = if half == 0 { T } else { S };
            let mut operand = Operand {
                gpu,
                slot: slot(S, t),
                line,
                index: u32::MAX,
            };
            let active;
            if step < run {
                active = step < end - start && (half == 1 || !plain);
                if half == 1 {
                    operand.index = end - 1 - step;
                }
            } else if step < run + bits {
                active = half == 1 || factor >> (step - run) & 1 != 0;
            } else {
                let reach = LINE_THREADS >> (step - run - bits + 1);
                target = T;
                operand.slot = slot(T, (t + reach) % LINE_THREADS);
                active = half == 0 && t < reach;
            }
            if active {
                slot(target, t).add(&operand);
            }
            half += 1;
        }
        if step + 1 >= run + bits {
            gpu.barrier();
        }
        step += 1;
    }
    if t == 0 {
        out.store(gpu, gpu.block() as usize, slot(T, 0).load().canonical());
    }
}

/// The block's line: lines of `rows` and of `columns` points alternate. Rows weigh by index, columns by
/// index + 1.
#[inline(always)]
fn block_line<C: DeviceCurve, G: Gpu>(
    gpu: G,
    rows: u32,
    columns: u32,
    plain: u32,
    sums: Global<Xyzz<C>>,
    results: GlobalMut<Xyzz<C>>,
) {
    let (window, kind) = ((gpu.block() / 2) as usize, gpu.block() % 2);
    let origin = window * (rows + columns) as usize + (kind * rows) as usize;
    let count = if kind == 0 { rows } else { columns };
    line_sum::<C, G>(gpu, sums.offset(origin), count, kind, plain != 0, results);
}

kernel! {
    /// `results[b]` = Σ weight_i·P_i over line b of G1 points, canonical. Lines of `rows` and `columns`
    /// points alternate in `sums`; weights are i in the even lines, i + 1 in the odd ones, or all 1 where
    /// `plain` is not 0. Grid: lines. Bound by the latency of about 2·(points/64 + log2 points) + 6
    /// additions.
    pub fn msm_lines_g1(gpu, rows: u32, columns: u32, plain: u32, sums: Global<Xyzz<G1>>,
        results: GlobalMut<Xyzz<G1>>)
    limits { threads: LINE_THREADS, min_blocks: 1, registers: 255, shared: line_shared(192) }
    {
        block_line(gpu, rows, columns, plain, sums, results);
    }

    /// As `msm_lines_g1`, on G2.
    pub fn msm_lines_g2(gpu, rows: u32, columns: u32, plain: u32, sums: Global<Xyzz<G2>>,
        results: GlobalMut<Xyzz<G2>>)
    limits { threads: LINE_THREADS, min_blocks: 1, registers: 255, shared: line_shared(384) }
    {
        block_line(gpu, rows, columns, plain, sums, results);
    }
}
