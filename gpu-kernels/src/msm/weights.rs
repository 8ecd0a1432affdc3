//! Sums of points, plain or weighted by position, down to one point a block.
//!
//! A block sums a line of XYZZ points in 64 runs of consecutive points, last point first. S is a run's sum
//! so far, and T += S before each point, so that T = Σ (i − start)·P_i at the end. Then T += (start +
//! bias)·S by doubling S, and the block adds up its T. T of a step needs only S of the step before, so
//! each run has two threads that take the two additions of a step together. S and T stay in shared
//! memory and all of this is one loop around one addition, which keeps registers and code small.
use cuzk_field::curve::Xyzz;
use cuzk_field::{G1, G2, Multiplier, PerThread};

use super::points::{Coordinates, DeviceCurve, Slot};
use crate::{Global, GlobalMut, Gpu, kernel};

/// Runs of a line.
const RUNS: u32 = 64;
/// Threads of a block: the first half adds to T, the second to S.
pub const LINE_THREADS: u32 = 2 * RUNS;

/// Shared memory of a block for points of `bytes` bytes.
const fn line_shared(bytes: u32) -> u32 {
    3 * RUNS * bytes
}

const T: u32 = 0;
/// S before even steps; S before odd steps is the next slot.
const S: u32 = 1;

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
fn line_sum<C: DeviceCurve, M: Multiplier<C::Base>, G: Gpu>(
    m: &M,
    gpu: G,
    line: Global<Xyzz<C>>,
    count: u32,
    bias: u32,
    plain: bool,
    out: GlobalMut<Xyzz<C>>,
) {
    let slot = |slot, run| Slot::<C, G>::new(gpu, RUNS, 3, slot, run);
    let (sums, own) = (gpu.thread() >= RUNS, gpu.thread() % RUNS);
    slot(if sums { S } else { T }, own).clear();
    gpu.barrier();
    let run = count.div_ceil(RUNS);
    let start = count.min(own * run);
    let end = count.min(start + run);
    let factor = if plain { 1 } else { start + bias };
    let bits = if plain {
        1
    } else {
        32 - (count + bias).leading_zeros()
    };
    let mut step = 0;
    while step < run + bits + RUNS.ilog2() {
        let old = slot(S + step % 2, own);
        let mut operand = Operand {
            gpu,
            slot: old,
            line,
            index: u32::MAX,
        };
        let mut target = slot(T, own);
        let active;
        if step >= run + bits {
            let reach = RUNS >> (step - run - bits + 1);
            operand.slot = slot(T, (own + reach) % RUNS);
            active = !sums && own < reach;
        } else if sums {
            target = slot(S + (step + 1) % 2, own);
            target.copy(old);
            active = step >= run || step < end - start;
            if step < run {
                operand.index = end.wrapping_sub(1 + step);
            }
        } else if step < run {
            active = !plain && step < end - start;
        } else {
            active = factor >> (step - run) & 1 != 0;
        }
        if active {
            target.add(m, &operand);
        }
        gpu.barrier();
        step += 1;
    }
    if gpu.thread() == 0 {
        out.store(gpu, gpu.block() as usize, slot(T, 0).load().canonical());
    }
}

/// The block's line: lines of `rows` and of `columns` points alternate. Rows weigh by index, columns by
/// index + 1.
#[inline(always)]
fn block_line<C: DeviceCurve, M: Multiplier<C::Base>, G: Gpu>(
    m: &M,
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
    line_sum(
        m,
        gpu,
        sums.offset(origin),
        count,
        kind,
        plain != 0,
        results,
    );
}

kernel! {
    /// `results[b]` = Σ weight_i·P_i over line b of G1 points, canonical. Lines of `rows` and `columns`
    /// points alternate in `sums`; weights are i in the even lines, i + 1 in the odd ones, or all 1 where
    /// `plain` is not 0. Grid: lines. Bound by the latency of about points/64 + log2 points + 6
    /// additions.
    pub fn msm_lines_g1(gpu, rows: u32, columns: u32, plain: u32, sums: Global<Xyzz<G1>>,
        results: GlobalMut<Xyzz<G1>>)
    limits { threads: LINE_THREADS, min_blocks: 1, registers: 255, shared: line_shared(192) }
    {
        block_line(&PerThread, gpu, rows, columns, plain, sums, results);
    }

    /// As `msm_lines_g1`, on G2.
    pub fn msm_lines_g2(gpu, rows: u32, columns: u32, plain: u32, sums: Global<Xyzz<G2>>,
        results: GlobalMut<Xyzz<G2>>)
    limits { threads: LINE_THREADS, min_blocks: 1, registers: 255, shared: line_shared(384), spills: 32, stack: 16 }
    {
        block_line(&PerThread, gpu, rows, columns, plain, sums, results);
    }
}
