//! Levels of butterflies grouped into passes over memory, and spread over threads.
//!
//! The last levels of a forward transform work on blocks that fit a second-level cache and are
//! done block by block in place. The levels before them combine distant rows: a pass takes a
//! group of levels, copies a few columns of all its rows into a contiguous scratch block, does
//! all levels there and copies back. The inverse transform runs the same passes backwards.

use super::{
    butterfly,
    twiddles::{Forward, Inverse},
};
use cuzk_circuit::Scalar;
use rayon::prelude::*;

/// Levels done in place on contiguous blocks: 2^13 scalars are 256 KiB.
const BLOCK_LEVELS: usize = 13;
/// Levels of one pass over columns at most.
const COLUMN_LEVELS: usize = 9;
/// Columns copied at a time: 512 bytes of each row.
const COLUMNS: usize = 16;

/// Which levels go together.
pub(super) struct Plan {
    log2: usize,
    /// First level and number of levels of each pass over columns.
    columns: Vec<(usize, usize)>,
}

impl Plan {
    pub(super) fn new(log2: u32) -> Self {
        let log2 = log2 as usize;
        let outer = log2.saturating_sub(BLOCK_LEVELS);
        let groups = outer.div_ceil(COLUMN_LEVELS);
        let columns = (0..groups)
            .map(|group| {
                let first = outer * group / groups;
                (first, outer * (group + 1) / groups - first)
            })
            .collect();
        Self { log2, columns }
    }

    /// A plan with these passes over columns; they cover the levels that blocks leave.
    #[cfg(test)]
    pub(super) fn with_columns(log2: u32, columns: Vec<(usize, usize)>) -> Self {
        Self {
            log2: log2 as usize,
            columns,
        }
    }

    pub(super) fn forward(&self, values: &mut [Scalar], twiddles: &Forward<'_>) {
        for &(first, levels) in &self.columns {
            over_columns(values, first, levels, |index, scratch, width| {
                forward_levels(scratch, width, first, levels, index, twiddles);
            });
        }
        self.over_blocks(values, |index, block, first, levels| {
            forward_levels(block, 1, first, levels, index, twiddles);
        });
    }

    pub(super) fn inverse(&self, values: &mut [Scalar], twiddles: &Inverse<'_>) {
        self.over_blocks(values, |index, block, first, levels| {
            inverse_levels(block, 1, first, levels, index, twiddles);
        });
        for &(first, levels) in self.columns.iter().rev() {
            over_columns(values, first, levels, |index, scratch, width| {
                inverse_levels(scratch, width, first, levels, index, twiddles);
            });
        }
    }

    /// Calls `work` with each contiguous block, its first level and its number of levels.
    fn over_blocks(
        &self,
        values: &mut [Scalar],
        work: impl Fn(usize, &mut [Scalar], usize, usize) + Sync,
    ) {
        let levels = self.log2.min(BLOCK_LEVELS);
        let first = self.log2 - levels;
        values
            .par_chunks_mut(1 << levels)
            .enumerate()
            .for_each(|(index, block)| work(index, block, first, levels));
    }
}

/// Cuts each of the 2^`first` blocks into 2^`levels` rows and calls `work` with the block's index
/// and a copy of a few columns of all its rows, row after row, and their number; then copies back.
fn over_columns(
    values: &mut [Scalar],
    first: usize,
    levels: usize,
    work: impl Fn(usize, &mut [Scalar], usize) + Sync,
) {
    let block = values.len() >> first;
    let row = block >> levels;
    let strip = row
        .div_ceil(8 * rayon::current_num_threads())
        .next_multiple_of(COLUMNS);
    let mut strips: Vec<(usize, Vec<&mut [Scalar]>)> = Vec::new();
    for (index, block) in values.chunks_mut(block).enumerate() {
        let start = strips.len();
        strips.extend((0..row.div_ceil(strip)).map(|_| (index, Vec::with_capacity(1 << levels))));
        for row in block.chunks_mut(row) {
            for (part, (_, rows)) in row.chunks_mut(strip).zip(&mut strips[start..]) {
                rows.push(part);
            }
        }
    }
    strips
        .into_par_iter()
        .for_each_init(Vec::new, |scratch, (index, mut rows)| {
            over_strip(&mut rows, scratch, |scratch, width| {
                work(index, scratch, width);
            });
        });
}

fn over_strip(
    rows: &mut [&mut [Scalar]],
    scratch: &mut Vec<Scalar>,
    work: impl Fn(&mut [Scalar], usize),
) {
    let length = rows.first().map_or(0, |row| row.len());
    for start in (0..length).step_by(COLUMNS) {
        let end = (start + COLUMNS).min(length);
        scratch.clear();
        for row in rows.iter() {
            scratch.extend_from_slice(&row[start..end]);
        }
        work(scratch, end - start);
        for (row, done) in rows.iter_mut().zip(scratch.chunks(end - start)) {
            row[start..end].copy_from_slice(done);
        }
    }
}

/// `levels` levels from level `first` on, of block `index`, which is 2^`levels` rows of `width`.
fn forward_levels(
    block: &mut [Scalar],
    width: usize,
    first: usize,
    levels: usize,
    index: usize,
    twiddles: &Forward<'_>,
) {
    for level in 0..levels {
        let half = width << (levels - level - 1);
        for (k, pair) in (index << level..).zip(block.chunks_exact_mut(2 * half)) {
            let (low, high) = pair.split_at_mut(half);
            match twiddles.constant(first + level, k) {
                Some(c) => butterfly::multiply_then_add(low, high, c),
                None => butterfly::add_only(low, high),
            }
        }
    }
}

/// The inverse of [`forward_levels`] up to a factor 2^`levels`.
fn inverse_levels(
    block: &mut [Scalar],
    width: usize,
    first: usize,
    levels: usize,
    index: usize,
    twiddles: &Inverse<'_>,
) {
    for level in (0..levels).rev() {
        let half = width << (levels - level - 1);
        for (k, pair) in (index << level..).zip(block.chunks_exact_mut(2 * half)) {
            let (low, high) = pair.split_at_mut(half);
            match twiddles.negated_constant(first + level, k) {
                Some(c) => butterfly::subtract_then_multiply(low, high, c),
                None => butterfly::add_only(low, high),
            }
        }
    }
}
