//! Scalars sorted by bucket, and the sums over any bases that belong to them.

use cuzk_field::Fr;
use cuzk_field::curve::{Affine, Xyzz};
use cuzk_kernels::msm::grid::{msm_grid_lists, msm_grid_references};
use cuzk_kernels::msm::recode::{bias, msm_recode};
use cuzk_kernels::msm::sort::{
    msm_bucket_count, msm_bucket_scan, msm_bucket_scatter, msm_partition_count, msm_partition_scan,
    msm_partition_scatter, msm_tile_numbers,
};
use cuzk_kernels::runtime::Arena;
use cuzk_kernels::{Global, GlobalMut};
use group::Group;

use super::curve::GpuCurve;
use super::lists::{Lists, Rounds, Totals, rounds_until, totals};
use super::plan::{LINE_REST, Plan};
use super::{MsmError, download};
#[cfg(test)]
use {cuzk_kernels::runtime::Runtime, std::sync::Arc};

/// The points of each window by bucket. Its arrays stay taken from the arena.
pub struct Sorted {
    plan: Plan,
    references: GlobalMut<u32>,
    starts: GlobalMut<u32>,
    lens: GlobalMut<u32>,
    /// Pairs of each round, for each group of windows.
    totals: Vec<Totals>,
}

/// Scalars on the device.
#[derive(Clone, Copy, Debug)]
pub struct Scalars {
    /// `plan.points` scalars in Montgomery form.
    pub values: Global<Fr>,
    /// Which base each scalar belongs to (`NO_BASE` for none); without a map, base i.
    pub map: Option<Global<u32>>,
}

impl Scalars {
    fn mapped(&self) -> (u32, Global<u32>) {
        (
            self.map.is_some().into(),
            self.map.unwrap_or(Global::at_address(0)),
        )
    }
}

/// Recoded scalars on the device.
#[derive(Clone, Copy)]
struct Recoded {
    limbs: GlobalMut<u32>,
    signs: GlobalMut<u32>,
}

impl Sorted {
    /// Sorts scalars by the plan. Waits for the device once.
    ///
    /// # Errors
    /// When the device fails or the arena is smaller than planned.
    pub fn new(arena: &mut Arena, plan: &Plan, scalars: Scalars) -> Result<Self, MsmError> {
        let buckets = (plan.windows() as usize) << plan.buckets();
        let mut sorted = Sorted {
            plan: *plan,
            references: arena.take(plan.windows() as usize * plan.points as usize)?,
            starts: arena.take(buckets)?,
            lens: arena.take(buckets)?,
            totals: Vec::new(),
        };
        if plan.points == 0 {
            return Ok(sorted);
        }
        let mark = arena.mark();
        let recoded = sorted.recode(arena, scalars)?;
        let mut first = 0;
        while first < plan.windows() {
            let windows = plan.sort_windows.min(plan.windows() - first);
            let mark = arena.mark();
            sorted.sort(arena, scalars, recoded, first, windows)?;
            arena.rewind(mark);
            first += windows;
        }
        sorted.count(arena)?;
        arena.rewind(mark);
        Ok(sorted)
    }

    fn recode(&self, arena: &mut Arena, scalars: Scalars) -> Result<Recoded, MsmError> {
        let n = self.plan.points;
        let recoded = Recoded {
            limbs: arena.take(8 * n as usize)?,
            signs: arena.take(n.div_ceil(32) as usize)?,
        };
        let constant = arena.take::<u32>(8)?;
        let runtime = arena.runtime();
        runtime.upload(
            constant.address(),
            bytemuck::cast_slice(&bias(self.plan.bits)),
        )?;
        let (mapped, map) = scalars.mapped();
        runtime.launch(&msm_recode::launch(
            n.div_ceil(msm_recode::THREADS),
            n,
            scalars.values,
            mapped,
            map,
            constant.read().cast(),
            recoded.limbs,
            recoded.signs,
        ))?;
        Ok(recoded)
    }

    /// Sorts the windows from `first` on.
    fn sort(
        &self,
        arena: &mut Arena,
        scalars: Scalars,
        recoded: Recoded,
        first: u32,
        windows: u32,
    ) -> Result<(), MsmError> {
        let runtime = arena.runtime().clone();
        let (plan, levels) = (&self.plan, self.plan.levels());
        let (n, bits, low, upper) = (plan.points, plan.bits, levels.low, levels.upper);
        let tiles = n.div_ceil(levels.tile);
        let at = (first as usize) << plan.buckets();
        let (bucket_starts, bucket_lens) = (self.starts.offset(at), self.lens.offset(at));
        let counts = arena.take::<u32>(((windows * tiles) as usize) << upper)?;
        let mut second = None;
        let (mut starts, mut lens) = (bucket_starts, bucket_lens);
        if low > 0 {
            let partitions = (windows as usize) << upper;
            starts = arena.take(partitions)?;
            lens = arena.take(partitions)?;
            second = Some(arena.take::<[u32; 2]>(windows as usize * n as usize)?);
        }
        let entries = second.unwrap_or(GlobalMut::at_address(0));
        runtime.launch(&msm_partition_count::launch(
            (tiles, windows),
            n,
            bits,
            low,
            upper,
            levels.tile,
            first,
            recoded.limbs.read(),
            recoded.signs.read(),
            counts,
        ))?;
        runtime.launch(&msm_partition_scan::launch(
            windows, tiles, upper, counts, starts, lens,
        ))?;
        let (mapped, map) = scalars.mapped();
        runtime.launch(&msm_partition_scatter::launch(
            (tiles, windows),
            n,
            bits,
            low,
            upper,
            levels.tile,
            first,
            recoded.limbs.read(),
            recoded.signs.read(),
            mapped,
            map,
            counts.read(),
            starts.read(),
            self.references,
            entries,
        ))?;
        if low > 0 {
            let partitions = Partitions {
                starts,
                lens,
                entries,
            };
            self.sort_partitions(arena, partitions, first, windows)?;
        }
        Ok(())
    }

    /// The second level for the windows from `first` on.
    fn sort_partitions(
        &self,
        arena: &mut Arena,
        partitions: Partitions,
        first: u32,
        windows: u32,
    ) -> Result<(), MsmError> {
        let runtime = arena.runtime().clone();
        let (plan, levels) = (&self.plan, self.plan.levels());
        let (n, low, upper, tile) = (plan.points, levels.low, levels.upper, levels.second_tile);
        let count = windows << upper;
        let Partitions {
            starts,
            lens,
            entries,
        } = partitions;
        let at = (first as usize) << plan.buckets();
        let (bucket_starts, bucket_lens) = (self.starts.offset(at), self.lens.offset(at));
        let references = self.references.offset(first as usize * n as usize);
        let tile_starts = arena.take::<u32>(count as usize + 1)?;
        let tiles = plan.second_tiles(windows);
        let counts = arena.take::<u32>(tiles << low)?;
        runtime.launch(&msm_tile_numbers::launch(
            1,
            count,
            tile,
            lens.read(),
            tile_starts,
        ))?;
        let tile_starts = tile_starts.read();
        runtime.launch(&msm_bucket_count::launch(
            tiles as u32,
            n,
            count,
            low,
            upper,
            tile,
            tile_starts,
            starts.read(),
            lens.read(),
            entries.read(),
            counts,
        ))?;
        runtime.launch(&msm_bucket_scan::launch(
            count,
            low,
            tile_starts,
            starts.read(),
            counts,
            bucket_starts,
            bucket_lens,
        ))?;
        runtime.launch(&msm_bucket_scatter::launch(
            tiles as u32,
            n,
            count,
            low,
            upper,
            tile,
            tile_starts,
            starts.read(),
            lens.read(),
            entries.read(),
            counts.read(),
            bucket_starts.read(),
            references,
        ))?;
        Ok(())
    }

    /// Reads how many pairs each round of each group of windows has.
    fn count(&mut self, arena: &mut Arena) -> Result<(), MsmError> {
        let groups: Vec<_> = self.groups().collect();
        let arrays = groups
            .iter()
            .map(|&(first, windows)| Ok(self.buckets(first, windows).count(arena)?[1]))
            .collect::<Result<Vec<_>, MsmError>>()?;
        for array in arrays {
            let mut totals = Totals::default();
            download(arena.runtime(), array, &mut totals)?;
            self.totals.push(totals);
        }
        Ok(())
    }

    /// (first window, number of windows) of the groups that are summed together.
    fn groups(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let (together, windows) = (self.plan.sum_windows, self.plan.windows());
        (0..windows)
            .step_by(together as usize)
            .map(move |first| (first, together.min(windows - first)))
    }

    /// The references of one bucket.
    #[cfg(test)]
    pub(super) fn bucket(
        &self,
        runtime: &Arc<dyn Runtime>,
        window: usize,
        bucket: usize,
    ) -> Vec<u32> {
        let read = |array: GlobalMut<u32>, len: u32| {
            let mut out = vec![0; len as usize];
            download(runtime, array, &mut out).unwrap();
            out
        };
        let at = (window << self.plan.buckets()) + bucket;
        let (start, len) = (
            read(self.starts.offset(at), 1)[0],
            read(self.lens.offset(at), 1)[0],
        );
        let first = window * self.plan.points as usize + start as usize;
        read(self.references.offset(first), len)
    }

    fn buckets(&self, first: u32, windows: u32) -> Lists {
        let buckets = self.plan.buckets();
        let n = self.plan.points as usize;
        Lists {
            count: windows << buckets,
            shift: buckets,
            stride: n as u64,
            references: self.references.offset(first as usize * n).read(),
            starts: self.starts.offset((first as usize) << buckets).read(),
            lens: self.lens.offset((first as usize) << buckets).read(),
        }
    }

    /// Σ scalar_i · base_i for one set of bases. Waits for the device.
    ///
    /// # Errors
    /// When the device fails or the arena is smaller than planned.
    pub fn sum<C: GpuCurve>(
        &self,
        arena: &mut Arena,
        bases: Global<Affine<C>>,
    ) -> Result<C::Host, MsmError> {
        if self.plan.points == 0 {
            return Ok(C::Host::identity());
        }
        let mut windows = Vec::new();
        for ((first, count), totals) in self.groups().zip(&self.totals) {
            let mark = arena.mark();
            windows.extend(self.sum_group(arena, bases, first, count, totals)?);
            arena.rewind(mark);
        }
        Ok(self.combine::<C>(&windows))
    }

    /// For each window of a group, the weighted row sum and the weighted column sum.
    fn sum_group<C: GpuCurve>(
        &self,
        arena: &mut Arena,
        bases: Global<Affine<C>>,
        first: u32,
        windows: u32,
        bucket_totals: &Totals,
    ) -> Result<Vec<[C::Host; 2]>, MsmError> {
        let plan = &self.plan;
        let [rows, columns] = plan.lines();
        let line_totals = totals(&[(columns, windows * rows), (rows, windows * columns)]);
        let all = |totals: &Totals| totals.iter().map(|&t| u64::from(t)).sum::<u64>();
        let most = |totals: &Totals| totals.iter().copied().max().unwrap_or(0);
        let mut rounds = Rounds::<C>::new(
            arena,
            bases,
            all(bucket_totals) + all(&line_totals),
            most(bucket_totals).max(most(&line_totals)).into(),
        )?;

        let buckets = self.buckets(first, windows);
        let [sums, _] = buckets.count(arena)?;
        let needed = bucket_totals.iter().take_while(|&&pairs| pairs > 0).count() as u32;
        let state = rounds.run(arena, buckets, sums, bucket_totals, needed)?;

        let references = arena.take::<u32>(2 * buckets.count as usize)?;
        arena.runtime().launch(&msm_grid_references::launch(
            buckets.count.div_ceil(msm_grid_references::THREADS),
            buckets.count,
            plan.buckets(),
            state.round,
            buckets.shift,
            buckets.stride,
            buckets.references,
            buckets.starts,
            buckets.lens,
            state.before.read(),
            state.partial,
            state.tails.read(),
            references,
        ))?;
        let lines = self.matrix_lines(arena, references.read(), windows)?;
        let [sums, _] = lines.count(arena)?;
        let needed = rounds_until(rows.max(columns), LINE_REST).max(1);
        let state = rounds.run(arena, lines, sums, &line_totals, needed)?;

        let line_sums = arena.take::<Xyzz<C>>(lines.count as usize)?;
        let results = arena.take::<Xyzz<C>>(2 * windows as usize)?;
        let runtime = arena.runtime();
        runtime.launch(&C::finish(
            &state,
            rounds.bases(),
            rounds.partial(),
            line_sums,
        ))?;
        runtime.launch(&C::lines(
            2 * windows,
            [rows, columns],
            false,
            line_sums.read(),
            results,
        ))?;
        let mut points = vec![Xyzz::<C>::IDENTITY; 2 * windows as usize];
        download(runtime, results, &mut points)?;
        Ok(points
            .chunks_exact(2)
            .map(|pair| [C::to_host(&pair[0]), C::to_host(&pair[1])])
            .collect())
    }

    /// Rows and columns of each window's matrix as lists.
    fn matrix_lines(
        &self,
        arena: &mut Arena,
        references: Global<u32>,
        windows: u32,
    ) -> Result<Lists, MsmError> {
        let [rows, columns] = self.plan.lines();
        let count = windows * (rows + columns);
        let (starts, lens) = (
            arena.take::<u32>(count as usize)?,
            arena.take::<u32>(count as usize)?,
        );
        arena.runtime().launch(&msm_grid_lists::launch(
            count.div_ceil(msm_grid_lists::THREADS),
            windows,
            self.plan.buckets(),
            starts,
            lens,
        ))?;
        Ok(Lists {
            count,
            shift: 31,
            stride: 0,
            references,
            starts: starts.read(),
            lens: lens.read(),
        })
    }

    /// Σ 2^(bits·w) · (columns · row sum + column sum), highest window first.
    fn combine<C: GpuCurve>(&self, windows: &[[C::Host; 2]]) -> C::Host {
        let columns = self.plan.lines()[1].ilog2();
        let doubled = |point: C::Host, times: u32| (0..times).fold(point, |p, _| p.double());
        windows
            .iter()
            .rev()
            .fold(C::Host::identity(), |sum, &[row, column]| {
                // the row sum takes part in the last doublings
                doubled(doubled(sum, self.plan.bits - columns) + row, columns) + column
            })
    }
}

/// A group of windows after the first level.
#[derive(Clone, Copy)]
struct Partitions {
    starts: GlobalMut<u32>,
    lens: GlobalMut<u32>,
    entries: GlobalMut<[u32; 2]>,
}
