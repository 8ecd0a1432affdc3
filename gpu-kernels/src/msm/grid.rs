//! A window's buckets as a matrix of 2^(c−1−columns) rows and 2^columns columns, and its lines as lists.
use super::rounds::Lists;
use super::{PARTIAL, rounds::round_len};
use crate::{Global, GlobalMut, kernel};

/// log2 of the number of columns for 2^`buckets` buckets.
pub const fn columns(buckets: u32) -> u32 {
    buckets.div_ceil(2)
}

kernel! {
    /// References to the bucket sums after `round` rounds, when no list has more than one element:
    /// `lines[b]` for bucket b in order, and from `lines[lists]` on the same with each window's matrix
    /// transposed. An empty bucket refers to the identity. 2^buckets buckets a window. Grid:
    /// ⌈lists / 256⌉.
    pub fn msm_grid_references(gpu, lists: u32, buckets: u32, round: u32, shift: u32, stride: u64,
        references: Global<u32>, starts: Global<u32>, lens: Global<u32>, before: Global<u32>, partial: u32,
        tails: Global<u32>, lines: GlobalMut<u32>)
    limits { threads: 256, min_blocks: 6, registers: 40, shared: 0 }
    {
        let list = gpu.index() as u32;
        if list < lists {
            let state = Lists { round, shift, stride, references, starts, before, partial, tails };
            let len = lens.load(gpu, list as usize);
            let reference = if round_len(len, round) == 0 { PARTIAL } else { state.element(gpu, list, len, 0) };
            lines.store(gpu, list as usize, reference);
            let (row_bits, column_bits) = (buckets - columns(buckets), columns(buckets));
            let bucket = list & ((1 << buckets) - 1);
            let (row, column) = (bucket >> column_bits, bucket & ((1 << column_bits) - 1));
            let transposed = (list - bucket) + (column << row_bits) + row;
            lines.store(gpu, lists as usize + transposed as usize, reference);
        }
    }

    /// The lines as lists: for each window its rows, then its columns. `lists` is the number of buckets of
    /// all windows. Grid: ⌈windows·(rows + columns) / 256⌉.
    pub fn msm_grid_lists(gpu, windows: u32, buckets: u32, starts: GlobalMut<u32>, lens: GlobalMut<u32>)
    limits { threads: 256, min_blocks: 6, registers: 40, shared: 0 }
    {
        let (row_bits, column_bits) = (buckets - columns(buckets), columns(buckets));
        let (rows, columns) = (1u32 << row_bits, 1u32 << column_bits);
        let line = gpu.index() as u32;
        if line < windows * (rows + columns) {
            let window = line / (rows + columns);
            let place = line - window * (rows + columns);
            let origin = window << buckets;
            let (start, len) = if place < rows {
                (origin + (place << column_bits), columns)
            } else {
                ((windows << buckets) + origin + ((place - rows) << row_bits), rows)
            };
            starts.store(gpu, line as usize, start);
            lens.store(gpu, line as usize, len);
        }
    }
}
