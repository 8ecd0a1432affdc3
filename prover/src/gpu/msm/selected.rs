//! Sums of points without multiplications: the ones of compact scalars.

use cuzk_field::curve::{Affine, Xyzz};
use cuzk_kernels::msm::rounds::msm_row_scan;
use cuzk_kernels::msm::select::{SELECT_BITS, msm_even_lists, msm_select_count, msm_select_write};
use cuzk_kernels::runtime::Arena;
use cuzk_kernels::{Global, GlobalMut};
use group::Group;

use super::curve::GpuCurve;
use super::lists::{Lists, Rounds, Totals, rounds_until, totals};
use super::{MsmError, download};

/// Most lists that the ones are divided into.
const LISTS: u32 = 4096;
/// Blocks that add up the lists' sums.
const LINES: u32 = 16;
/// Fewest points that are added up at once.
const FEWEST: u32 = 1 << 8;
/// Points of a list that are left for the last step.
const REST: u32 = 8;

/// Bitmaps of compact scalars on the device, as groups of four 32-bit words, lowest bit first.
#[derive(Clone, Copy, Debug)]
pub struct Bitmaps {
    /// Number of variables.
    pub len: u32,
    /// Values of the variables that are bits.
    pub bits: Global<[u32; 4]>,
    /// Variables that are neither 0 nor 1.
    pub others: Global<[u32; 4]>,
    /// Variables that have a base; without it, all have.
    pub density: Option<Global<[u32; 4]>>,
}

/// Which bases the ones and the others belong to. Its arrays stay taken from the arena.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    /// Bases of the ones.
    pub ones: GlobalMut<u32>,
    /// Number of ones that have a base.
    pub ones_len: u32,
    /// The base of each of the others, or `NO_BASE`.
    pub map: GlobalMut<u32>,
    /// Number of others.
    pub others_len: u32,
}

impl Selection {
    /// Lists ones and others. `others` is their number, known to whoever made the scalars. Waits for the
    /// device once.
    ///
    /// # Errors
    /// When the device fails, the arena is too small, or the bitmap holds another number of others.
    pub fn new(arena: &mut Arena, bitmaps: Bitmaps, others: u32) -> Result<Self, MsmError> {
        let blocks = bitmaps.len.div_ceil(SELECT_BITS);
        let runtime = arena.runtime().clone();
        let ones = arena.take::<u32>(bitmaps.len as usize)?;
        let map = arena.take::<u32>(others as usize)?;
        if blocks == 0 {
            return Ok(Selection {
                ones,
                ones_len: 0,
                map,
                others_len: 0,
            });
        }
        let mark = arena.mark();
        let counts = arena.take::<u32>(3 * blocks as usize)?;
        let sums = arena.take::<u32>(3)?;
        let masked = bitmaps.density.is_some().into();
        let density = bitmaps.density.unwrap_or(Global::at_address(0));
        let Bitmaps {
            len,
            bits,
            others: other,
            ..
        } = bitmaps;
        runtime.launch(&msm_select_count::launch(
            blocks, len, bits, other, masked, density, counts,
        ))?;
        runtime.launch(&msm_row_scan::launch(3, blocks, counts, sums))?;
        let mut found = [0u32; 3];
        download(&runtime, sums, &mut found)?;
        if found[1] != others {
            return Err(MsmError::Others {
                expected: others,
                found: found[1],
            });
        }
        runtime.launch(&msm_select_write::launch(
            blocks,
            len,
            bits,
            other,
            masked,
            density,
            counts.read(),
            ones,
            map,
        ))?;
        arena.rewind(mark);
        Ok(Selection {
            ones,
            ones_len: found[0],
            map,
            others_len: others,
        })
    }

    /// Arena bytes that [`new`](Self::new) takes for `len` variables, `others` of them not bits.
    pub fn bytes(len: u32, others: u32) -> u64 {
        let blocks = len.div_ceil(SELECT_BITS) as usize;
        Arena::bytes::<u32>(len as usize)
            + Arena::bytes::<u32>(others as usize)
            + Arena::bytes::<u32>(3 * blocks)
            + Arena::bytes::<u32>(3)
    }
}

/// Σ base over `count` indices. Waits for the device.
///
/// # Errors
/// When the device fails or the arena has less than [`sum_of_points_bytes`].
pub fn sum_of_points<C: GpuCurve>(
    arena: &mut Arena,
    indices: Global<u32>,
    count: u32,
    bases: Global<Affine<C>>,
) -> Result<C::Host, MsmError> {
    if count == 0 {
        return Ok(C::Host::identity());
    }
    let mark = arena.mark();
    let count_lists = list_count(count);
    let totals = list_totals(count);
    let sums: u64 = totals.iter().map(|&t| u64::from(t)).sum();
    let mut rounds = Rounds::<C>::new(arena, bases, sums, totals[0].into())?;
    let starts = arena.take::<u32>(count_lists as usize)?;
    let lens = arena.take::<u32>(count_lists as usize)?;
    let runtime = arena.runtime().clone();
    runtime.launch(&msm_even_lists::launch(
        count_lists.div_ceil(msm_even_lists::THREADS),
        count,
        count_lists,
        starts,
        lens,
    ))?;
    let lists = Lists {
        count: count_lists,
        shift: 31,
        stride: 0,
        references: indices,
        starts: starts.read(),
        lens: lens.read(),
    };
    let [scanned, _] = lists.count(arena)?;
    let needed = rounds_until(count.div_ceil(count_lists), REST).max(1);
    let state = rounds.run(arena, lists, scanned, &totals, needed)?;
    let list_sums = arena.take(count_lists as usize)?;
    let lines = LINES.min(count_lists);
    let results = arena.take::<Xyzz<C>>(lines as usize)?;
    runtime.launch(&C::finish(
        &state,
        rounds.bases(),
        rounds.partial(),
        list_sums,
    ))?;
    let line = count_lists / lines;
    runtime.launch(&C::lines(
        lines,
        [line, line],
        true,
        list_sums.read(),
        results,
    ))?;
    let mut points = vec![Xyzz::<C>::IDENTITY; lines as usize];
    download(&runtime, results, &mut points)?;
    arena.rewind(mark);
    Ok(points.iter().map(C::to_host).sum())
}

/// [`sum_of_points`] in as many steps as the arena's free memory demands.
///
/// # Errors
/// When the device fails or the arena has not even memory for a few points.
pub fn sum_of_ones<C: GpuCurve>(
    arena: &mut Arena,
    indices: Global<u32>,
    count: u32,
    bases: Global<Affine<C>>,
) -> Result<C::Host, MsmError> {
    let (sms, left) = (arena.runtime().multiprocessors(), arena.left());
    let (mut sum, mut first) = (C::Host::identity(), 0);
    while first < count {
        let rest = count - first;
        let step = ones_per_sum::<C>(rest, sms, left).ok_or_else(|| MsmError::Memory {
            needed: sum_of_points_bytes::<C>(FEWEST.min(rest), sms),
            limit: left,
        })?;
        sum += sum_of_points(arena, indices.offset(first as usize), step, bases)?;
        first += step;
    }
    Ok(sum)
}

/// How many of `count` points can be added up at once within `memory` bytes; none if hardly any.
pub fn ones_per_sum<C: GpuCurve>(count: u32, multiprocessors: u32, memory: u64) -> Option<u32> {
    let mut step = count;
    while sum_of_points_bytes::<C>(step, multiprocessors) > memory {
        if step <= FEWEST {
            return None;
        }
        step = step.div_ceil(2);
    }
    Some(step)
}

/// Arena bytes that [`sum_of_points`] takes for `count` indices.
pub fn sum_of_points_bytes<C: GpuCurve>(count: u32, multiprocessors: u32) -> u64 {
    let lists = list_count(count);
    let totals = list_totals(count);
    let sums: u64 = totals.iter().map(|&t| u64::from(t)).sum();
    Rounds::<C>::bytes(sums, totals[0].into(), multiprocessors)
        + 2 * Arena::bytes::<u32>(lists as usize)
        + Lists::count_bytes(lists.into())
        + Rounds::<C>::run_bytes(lists.into())
        + Arena::bytes::<Xyzz<C>>(lists as usize)
        + Arena::bytes::<Xyzz<C>>(LINES as usize)
}

/// A power of two: enough lists that their last steps run side by side.
fn list_count(count: u32) -> u32 {
    (count / REST).max(1).next_power_of_two().min(LISTS)
}

fn list_totals(count: u32) -> Totals {
    let lists = list_count(count);
    let run = count.div_ceil(lists);
    let full = count / run;
    totals(&[(run, full), (count - full * run, 1)])
}
