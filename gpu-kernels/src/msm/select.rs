//! Points picked by bitmaps: the ones among compact scalars, the others, densities.
//!
//! Bit i of three bitmaps speaks of variable i: whether its value is neither 0 nor 1 (`others`), its
//! value if it is a bit (`bits`), and whether it has a base (`density`; without one, all have). Bases are
//! numbered by the set bits of the density. Bitmaps are 32-bit words, lowest bit first, in groups of four
//! words.
use super::NO_BASE;
use super::{SCAN_BYTES, block_scan};
use crate::{Global, GlobalMut, Gpu, kernel};

/// Variables of one block.
pub const SELECT_BITS: u32 = 256 * 128;

/// A thread's 128 variables.
#[derive(Clone, Copy)]
struct Part {
    ones: [u32; 4],
    others: [u32; 4],
    dense: [u32; 4],
}

#[inline(always)]
fn count_ones(words: &[u32; 4]) -> u32 {
    words[0].count_ones() + words[1].count_ones() + words[2].count_ones() + words[3].count_ones()
}

impl Part {
    #[inline(always)]
    fn load<G: Gpu>(
        gpu: G,
        n: u32,
        bits: Global<[u32; 4]>,
        others: Global<[u32; 4]>,
        masked: u32,
        density: Global<[u32; 4]>,
    ) -> Self {
        let place = gpu.index();
        let first = place as u32 * 128;
        if first >= n {
            return Self {
                ones: [0; 4],
                others: [0; 4],
                dense: [0; 4],
            };
        }
        let inside = [
            inside(n, first),
            inside(n, first + 32),
            inside(n, first + 64),
            inside(n, first + 96),
        ];
        let dense = if masked != 0 {
            and(density.load(gpu, place), inside)
        } else {
            inside
        };
        let other = and(others.load(gpu, place), inside);
        let bit = and(bits.load(gpu, place), dense);
        let ones = [
            bit[0] & !other[0],
            bit[1] & !other[1],
            bit[2] & !other[2],
            bit[3] & !other[3],
        ];
        Self {
            ones,
            others: other,
            dense,
        }
    }
}

/// Mask of the word whose first bit is `first`: bits below n.
#[inline(always)]
fn inside(n: u32, first: u32) -> u32 {
    if first + 32 <= n {
        u32::MAX
    } else if first >= n {
        0
    } else {
        (1 << (n - first)) - 1
    }
}

#[inline(always)]
fn and(a: [u32; 4], b: [u32; 4]) -> [u32; 4] {
    [a[0] & b[0], a[1] & b[1], a[2] & b[2], a[3] & b[3]]
}

/// Where a thread's next elements go.
#[derive(Clone, Copy)]
struct Cursor {
    ones: u32,
    others: u32,
    base: u32,
}

#[inline(always)]
fn write_word<G: Gpu>(
    gpu: G,
    cursor: Cursor,
    [ones, others, dense]: [u32; 3],
    indices: GlobalMut<u32>,
    map: GlobalMut<u32>,
) -> Cursor {
    let mut at = cursor;
    let mut left = ones | others;
    while left != 0 {
        let bit = left & left.wrapping_neg();
        let rank = cursor.base + (dense & (bit - 1)).count_ones();
        if others & bit != 0 {
            map.store(
                gpu,
                at.others as usize,
                if dense & bit != 0 { rank } else { NO_BASE },
            );
            at.others += 1;
        } else {
            indices.store(gpu, at.ones as usize, rank);
            at.ones += 1;
        }
        left ^= bit;
    }
    at.base += dense.count_ones();
    at
}

kernel! {
    /// Counts, for each block of 32,768 variables, ones with a base (`counts[block]`), others (row 1 of
    /// `counts`) and bases (row 2). `density` is read where `masked` is not 0. Grid: ⌈n / 32,768⌉.
    pub fn msm_select_count(gpu, n: u32, bits: Global<[u32; 4]>, others: Global<[u32; 4]>, masked: u32,
        density: Global<[u32; 4]>, counts: GlobalMut<u32>)
    limits { threads: 256, min_blocks: 4, registers: 64, shared: SCAN_BYTES }
    {
        let part = Part::load(gpu, n, bits, others, masked, density);
        let (_, ones) = block_scan(gpu, 0, count_ones(&part.ones));
        let (_, other) = block_scan(gpu, 0, count_ones(&part.others));
        let (_, dense) = block_scan(gpu, 0, count_ones(&part.dense));
        if gpu.thread() == 0 {
            let (block, blocks) = (gpu.block() as usize, gpu.blocks() as usize);
            counts.store(gpu, block, ones);
            counts.store(gpu, blocks + block, other);
            counts.store(gpu, 2 * blocks + block, dense);
        }
    }

    /// Lists the bases of the ones (`indices`) and, for each of the others in order, its base or
    /// `NO_BASE` (`map`). `counts` are scanned along their rows. Grid as for `msm_select_count`.
    pub fn msm_select_write(gpu, n: u32, bits: Global<[u32; 4]>, others: Global<[u32; 4]>, masked: u32,
        density: Global<[u32; 4]>, counts: Global<u32>, indices: GlobalMut<u32>, map: GlobalMut<u32>)
    limits { threads: 256, min_blocks: 4, registers: 64, shared: SCAN_BYTES }
    {
        let part = Part::load(gpu, n, bits, others, masked, density);
        let (block, blocks) = (gpu.block() as usize, gpu.blocks() as usize);
        let (ones, _) = block_scan(gpu, 0, count_ones(&part.ones));
        let (other, _) = block_scan(gpu, 0, count_ones(&part.others));
        let (dense, _) = block_scan(gpu, 0, count_ones(&part.dense));
        let mut cursor = Cursor {
            ones: ones + counts.load(gpu, block),
            others: other + counts.load(gpu, blocks + block),
            base: dense + counts.load(gpu, 2 * blocks + block),
        };
        cursor = write_word(gpu, cursor, [part.ones[0], part.others[0], part.dense[0]], indices, map);
        cursor = write_word(gpu, cursor, [part.ones[1], part.others[1], part.dense[1]], indices, map);
        cursor = write_word(gpu, cursor, [part.ones[2], part.others[2], part.dense[2]], indices, map);
        write_word(gpu, cursor, [part.ones[3], part.others[3], part.dense[3]], indices, map);
    }

    /// Divides `total` elements into `lists` runs of equal length but for the last. Grid:
    /// ⌈lists / 256⌉.
    pub fn msm_even_lists(gpu, total: u32, lists: u32, starts: GlobalMut<u32>, lens: GlobalMut<u32>)
    limits { threads: 256, min_blocks: 4, registers: 64, shared: 0 }
    {
        let list = gpu.index() as u32;
        if list < lists {
            let run = total.div_ceil(lists);
            let start = total.min(list * run);
            starts.store(gpu, list as usize, start);
            lens.store(gpu, list as usize, run.min(total - start));
        }
    }
}
