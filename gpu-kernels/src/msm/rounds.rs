//! The sums of many lists at once: who is added to whom in each round.
//!
//! A round adds neighbours: the sums of a list's pairs come first in the next round's list, an unpaired
//! last element behind them. After r rounds a list of len elements has ⌈len/2^r⌉. Where the pairs of
//! list b begin in a round follows from the lengths alone (`offsets`); the unpaired element is kept by
//! reference (`tails`), so nothing is copied.
//!
//! The elements of list b at the start are `references[(b >> shift)·stride + starts[b] + k]`.
use cuzk_field::curve::{Affine, Xyzz};
use cuzk_field::{G1, G2, Multiplier, PerThread};

use super::points::{DeviceCurve, Points, Referenced, Slot};
use super::sort::last_not_above;
use super::{MAX_ROUNDS, PARTIAL, SCAN_BYTES, block_scan};
use crate::{Global, GlobalMut, Gpu, Shared, kernel};

/// Lists that one thread counts.
const LISTS_PER_THREAD: u32 = 8;
/// Lists that one block counts.
pub const LISTS_PER_BLOCK: u32 = 256 * LISTS_PER_THREAD;
/// Threads of a block that finishes lists.
const FINISH_THREADS: u32 = 128;

/// Length of a list of `len` elements at the start of `round`.
#[inline(always)]
pub fn round_len(len: u32, round: u32) -> u32 {
    if round == 0 || len == 0 {
        len
    } else {
        ((len - 1) >> round) + 1
    }
}

/// Lists in the state before some round.
#[derive(Clone, Copy)]
pub(crate) struct Lists {
    pub round: u32,
    pub shift: u32,
    pub stride: u64,
    pub references: Global<u32>,
    pub starts: Global<u32>,
    /// Where the previous round's pairs of each list begin.
    pub before: Global<u32>,
    /// Partial sum of the previous round's first pair.
    pub partial: u32,
    pub tails: Global<u32>,
}

impl Lists {
    /// Element k of list `list`, which had `len` elements at the start.
    #[inline(always)]
    pub fn element<G: Gpu>(self, gpu: G, list: u32, len: u32, k: u32) -> u32 {
        let b = list as usize;
        if self.round == 0 {
            let region = (list >> self.shift) as usize * self.stride as usize;
            return self
                .references
                .load(gpu, region + (self.starts.load(gpu, b) + k) as usize);
        }
        if k < round_len(len, self.round - 1) / 2 {
            PARTIAL | (self.partial + self.before.load(gpu, b) + k)
        } else {
            self.tails.load(gpu, b)
        }
    }
}

kernel! {
    /// Counts pairs: `sums[r·blocks + block]` is the number of pairs that the block's 2,048 lists have in
    /// round r < 32. Grid: ⌈lists / 2,048⌉.
    pub fn msm_round_count(gpu, lists: u32, lens: Global<u32>, sums: GlobalMut<u32>)
    limits { threads: 256, min_blocks: 4, registers: 64, shared: MAX_ROUNDS * 4 }
    {
        let totals = Shared::<u32>::new(gpu, 0);
        if gpu.thread() < MAX_ROUNDS {
            totals.store(gpu, gpu.thread(), 0);
        }
        gpu.barrier();
        let first = (gpu.block() * THREADS + gpu.thread()) * LISTS_PER_THREAD;
        let mut round = 0;
        while round < MAX_ROUNDS {
            let mut pairs = 0;
            let mut k = 0;
            while k < LISTS_PER_THREAD && first + k < lists {
                pairs += round_len(lens.load(gpu, (first + k) as usize), round) / 2;
                k += 1;
            }
            if gpu.ballot(pairs > 0) == 0 {
                break;
            }
            let sum = gpu.warp_sum(pairs);
            if gpu.lane() == 0 {
                totals.atomic_add(gpu, round, sum);
            }
            round += 1;
        }
        gpu.barrier();
        if gpu.thread() < MAX_ROUNDS {
            let at = gpu.thread() as usize * gpu.blocks() as usize + gpu.block() as usize;
            sums.store(gpu, at, totals.load(gpu, gpu.thread()));
        }
    }

    /// Row r of `sums` (`count` elements) becomes its exclusive prefix sums, `totals[r]` its sum.
    /// Grid: rows.
    pub fn msm_row_scan(gpu, count: u32, sums: GlobalMut<u32>, totals: GlobalMut<u32>)
    limits { threads: 1024, min_blocks: 1, registers: 64, shared: SCAN_BYTES }
    {
        let row = sums.offset(gpu.block() as usize * count as usize);
        let mut carry = 0;
        let mut first = 0;
        while first < count {
            let i = first + gpu.thread();
            let value = if i < count { row.load(gpu, i as usize) } else { 0 };
            let (before, total) = block_scan(gpu, 0, value);
            if i < count {
                row.store(gpu, i as usize, carry + before);
            }
            carry += total;
            first += THREADS;
        }
        if gpu.thread() == 0 {
            totals.store(gpu, gpu.block() as usize, carry);
        }
    }

    /// Prepares a round: where each list's pairs begin (`offsets`), and the unpaired elements (`tails`).
    /// `before` are the previous round's offsets, `partial` its first partial sum. Grid as for
    /// `msm_round_count`, whose scanned `sums` it takes.
    pub fn msm_round_offsets(gpu, lists: u32, round: u32, shift: u32, stride: u64, references: Global<u32>,
        starts: Global<u32>, lens: Global<u32>, sums: Global<u32>, before: Global<u32>, partial: u32,
        tails: GlobalMut<u32>, offsets: GlobalMut<u32>)
    limits { threads: 256, min_blocks: 4, registers: 64, shared: SCAN_BYTES }
    {
        let first = (gpu.block() * THREADS + gpu.thread()) * LISTS_PER_THREAD;
        let mut pairs = 0;
        let mut k = 0;
        while k < LISTS_PER_THREAD && first + k < lists {
            pairs += round_len(lens.load(gpu, (first + k) as usize), round) / 2;
            k += 1;
        }
        let (own, _) = block_scan(gpu, 0, pairs);
        let row = round as usize * gpu.blocks() as usize;
        let mut at = own + sums.load(gpu, row + gpu.block() as usize);
        let state = Lists { round, shift, stride, references, starts, before, partial, tails: tails.read() };
        k = 0;
        while k < LISTS_PER_THREAD && first + k < lists {
            let list = first + k;
            let len = lens.load(gpu, list as usize);
            let now = round_len(len, round);
            offsets.store(gpu, list as usize, at);
            at += now / 2;
            if now % 2 == 1 {
                tails.store(gpu, list as usize, state.element(gpu, list, len, now - 1));
            }
            k += 1;
        }
    }

    /// The operands of a round's pairs, two references a pair. A block writes `share` pairs, a multiple of
    /// 256. Grid: ⌈pairs / share⌉.
    pub fn msm_round_pairs(gpu, pairs: u32, share: u32, lists: u32, round: u32, shift: u32, stride: u64,
        references: Global<u32>, starts: Global<u32>, lens: Global<u32>, before: Global<u32>, partial: u32,
        tails: Global<u32>, offsets: Global<u32>, out: GlobalMut<[u32; 2]>)
    limits { threads: 256, min_blocks: 6, registers: 40, shared: 8 }
    {
        let first = gpu.block() * share;
        let end = pairs.min(first + share);
        let range = Shared::<u32>::new(gpu, 0);
        // the lists that the block's pairs belong to
        if gpu.thread() == 0 {
            range.store(gpu, 0, last_not_above(gpu, offsets, 0, lists, first));
        }
        if gpu.thread() == 32 {
            range.store(gpu, 1, last_not_above(gpu, offsets, 0, lists, end - 1));
        }
        gpu.barrier();
        let (low, high) = (range.load(gpu, 0), range.load(gpu, 1) + 1);
        let state = Lists { round, shift, stride, references, starts, before, partial, tails };
        let mut i = first + gpu.thread();
        while i < end {
            let list = last_not_above(gpu, offsets, low, high, i);
            let k = 2 * (i - offsets.load(gpu, list as usize));
            let len = lens.load(gpu, list as usize);
            let left = state.element(gpu, list, len, k);
            let right = state.element(gpu, list, len, k + 1);
            out.store(gpu, i as usize, [left, right]);
            i += THREADS;
        }
    }

    /// Sums what is left of each list of G1 points after `round` rounds, at least one: `sums[b]`, any
    /// representative. `before` are the last round's offsets, `first` its first partial sum. One thread
    /// a list; meant for short rests. Grid: ⌈lists / 128⌉.
    pub fn msm_finish_g1(gpu, lists: u32, round: u32, lens: Global<u32>, before: Global<u32>, first: u32,
        tails: Global<u32>, bases: Global<Affine<G1>>, partial: Global<Affine<G1>>,
        sums: GlobalMut<Xyzz<G1>>)
    limits { threads: FINISH_THREADS, min_blocks: 2, registers: 255, shared: FINISH_THREADS * 192 }
    {
        let list = gpu.index() as u32;
        if list < lists {
            let rest = Rest::load(gpu, list, round, lens, before, first, tails);
            finish(&PerThread, gpu, list, rest, Points { bases, partial }, sums);
        }
    }

    /// As `msm_finish_g1`, on G2.
    pub fn msm_finish_g2(gpu, lists: u32, round: u32, lens: Global<u32>, before: Global<u32>, first: u32,
        tails: Global<u32>, bases: Global<Affine<G2>>, partial: Global<Affine<G2>>,
        sums: GlobalMut<Xyzz<G2>>)
    limits { threads: FINISH_THREADS, min_blocks: 2, registers: 255, shared: FINISH_THREADS * 384, spills: 256, stack: 96 }
    {
        let list = gpu.index() as u32;
        if list < lists {
            let rest = Rest::load(gpu, list, round, lens, before, first, tails);
            finish(&PerThread, gpu, list, rest, Points { bases, partial }, sums);
        }
    }
}

/// What is left of a list: partial sums in a row, then perhaps one more element.
#[derive(Clone, Copy)]
struct Rest {
    count: u32,
    partial: u32,
    first: u32,
    tail: u32,
}

impl Rest {
    #[inline(always)]
    fn load<G: Gpu>(
        gpu: G,
        list: u32,
        round: u32,
        lens: Global<u32>,
        before: Global<u32>,
        first: u32,
        tails: Global<u32>,
    ) -> Self {
        let b = list as usize;
        let len = lens.load(gpu, b);
        let (count, partial) = (round_len(len, round), round_len(len, round - 1) / 2);
        let tail = if count > partial {
            tails.load(gpu, b)
        } else {
            0
        };
        Self {
            count,
            partial,
            first: first + before.load(gpu, b),
            tail,
        }
    }
}

#[inline(always)]
fn finish<C: DeviceCurve, M: Multiplier<C::Base>, G: Gpu>(
    m: &M,
    gpu: G,
    list: u32,
    rest: Rest,
    points: Points<C>,
    sums: GlobalMut<Xyzz<C>>,
) {
    let sum = Slot::<C, G>::new(gpu, FINISH_THREADS, 1, 0, gpu.thread());
    sum.clear();
    let mut k = 0;
    while k < rest.count {
        let reference = if k < rest.partial {
            PARTIAL | (rest.first + k)
        } else {
            rest.tail
        };
        sum.add(
            m,
            &Referenced {
                gpu,
                points,
                reference,
            },
        );
        k += 1;
    }
    sums.store(gpu, list as usize, sum.load());
}
