//! Prefix counts over the bitmap of the values that are not bits.
use crate::msm::{SCAN_BYTES, block_scan};
use crate::{Global, GlobalMut, Gpu, kernel};

/// Values of a group: each has one rank.
pub const GROUP: u32 = 128;
/// Groups of a block.
pub const BLOCK_GROUPS: u32 = 256;

#[inline(always)]
fn count<G: Gpu>(gpu: G, groups: u32, others: Global<[u32; 4]>) -> u32 {
    let group = gpu.index();
    if group >= groups as usize {
        return 0;
    }
    let words = others.load(gpu, group);
    words[0].count_ones() + words[1].count_ones() + words[2].count_ones() + words[3].count_ones()
}

kernel! {
    /// `counts[block]` is the number of set bits of the block's 256 groups of `others`, bitmaps of 128
    /// bits; bits beyond the last value are 0. Grid: ⌈groups / 256⌉. Bound by the read of the bitmap.
    pub fn evaluate_rank_count(gpu, groups: u32, others: Global<[u32; 4]>, counts: GlobalMut<u32>)
    limits { threads: BLOCK_GROUPS, min_blocks: 8, registers: 32, shared: SCAN_BYTES }
    {
        let (_, total) = block_scan(gpu, 0, count(gpu, groups, others));
        if gpu.thread() == 0 {
            counts.store(gpu, gpu.block() as usize, total);
        }
    }

    /// `ranks[g]` is the number of set bits before group g; `before[block]` is that number for the block's
    /// first group. Grid and bound as for `evaluate_rank_count`.
    pub fn evaluate_rank_write(gpu, groups: u32, others: Global<[u32; 4]>, before: Global<u32>,
        ranks: GlobalMut<u32>)
    limits { threads: BLOCK_GROUPS, min_blocks: 8, registers: 32, shared: SCAN_BYTES }
    {
        let (own, _) = block_scan(gpu, 0, count(gpu, groups, others));
        let group = gpu.index();
        if group < groups as usize {
            ranks.store(gpu, group, before.load(gpu, gpu.block() as usize) + own);
        }
    }
}
