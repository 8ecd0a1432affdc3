//! Buckets of affine points: accumulation in batches, and the weighted sum of all buckets.

use super::{
    batch::{BATCH, Batch},
    coordinate::Coordinate,
    curve::{Curve, Point},
};
use group::Group;

/// Lanes that walk through the buckets side by side in [`Buckets::weighted_sums`]: enough to
/// spread an inversion thin, few enough that joining them costs next to nothing.
const LANES: usize = 512;

/// Sums of points, one a slot; the identity at first.
pub(crate) struct Buckets<C: Curve> {
    sums: Vec<Point<C::Field>>,
    /// One bit a slot: a point has come to it.
    filled: Vec<u64>,
    /// One bit a slot: its next addition waits in `batch`.
    pending: Vec<u64>,
    batch: Batch<C::Field>,
    /// Points whose slot was pending when they came.
    deferred: Vec<(u32, Point<C::Field>)>,
}

impl<C: Curve> Buckets<C> {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            sums: vec![Point::IDENTITY; slots],
            filled: vec![0; slots.div_ceil(64)],
            pending: vec![0; slots.div_ceil(64)],
            batch: Batch::new(),
            deferred: Vec::new(),
        }
    }

    /// Adds `point` to `slot`, sooner or later.
    #[inline(always)]
    pub(crate) fn add(&mut self, slot: u32, point: Point<C::Field>) {
        let (word, bit) = (slot as usize / 64, 1 << (slot % 64));
        if self.pending[word] & bit != 0 {
            return self.defer(slot, point);
        }
        let sum = &mut self.sums[slot as usize];
        if self.filled[word] & bit == 0 {
            self.filled[word] |= bit;
            *sum = point;
            return;
        }
        prefetch(sum);
        self.pending[word] |= bit;
        self.batch.push(slot, point);
        if self.batch.is_full() {
            self.flush();
        }
    }

    fn defer(&mut self, slot: u32, point: Point<C::Field>) {
        self.deferred.push((slot, point));
        if self.deferred.len() >= BATCH {
            self.settle();
        }
    }

    fn flush(&mut self) {
        for &slot in self.batch.slots() {
            self.pending[slot as usize / 64] = 0;
        }
        self.batch.flush(&mut self.sums);
    }

    /// Adds up the deferred points of each slot as a tree, then adds the results to the slots.
    /// However unevenly the points fall, every level of the tree is one or a few full batches.
    fn settle(&mut self) {
        self.flush();
        let mut deferred = std::mem::take(&mut self.deferred);
        deferred.sort_unstable_by_key(|(slot, _)| *slot);
        let mut slots: Vec<u32> = deferred.iter().map(|(slot, _)| *slot).collect();
        let mut points: Vec<_> = deferred.drain(..).map(|(_, point)| point).collect();
        while slots.windows(2).any(|pair| pair[0] == pair[1]) {
            self.pair_up(&mut slots, &mut points);
        }
        self.deferred = deferred;
        for (slot, point) in slots.into_iter().zip(points) {
            self.add(slot, point);
        }
        self.flush();
    }

    /// One level of the tree: neighbours of the same slot become their sum.
    fn pair_up(&mut self, slots: &mut Vec<u32>, points: &mut Vec<Point<C::Field>>) {
        let mut kept = Vec::with_capacity(slots.len());
        let mut i = 0;
        while i < slots.len() {
            kept.push(i);
            if i + 1 < slots.len() && slots[i] == slots[i + 1] {
                self.batch.push(i as u32, points[i + 1]);
                i += 1;
            }
            i += 1;
        }
        self.batch.flush(points);
        *slots = kept.iter().map(|&i| slots[i]).collect();
        *points = kept.iter().map(|&i| points[i]).collect();
    }

    /// The sums, with nothing waiting any more.
    pub(crate) fn finish(mut self) -> Vec<Point<C::Field>> {
        self.settle();
        self.sums
    }
}

/// Asks the processor to fetch the point: slots come in random order, and the batch that will
/// read it runs only much later.
#[inline(always)]
pub(crate) fn prefetch<F>(point: &Point<F>) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = std::ptr::from_ref(point).cast::<i8>();
        for offset in (0..size_of::<Point<F>>()).step_by(64) {
            // SAFETY: a prefetch has no effect but on caches and cannot fault; the address lies
            // within the referenced point.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(offset)) };
        }
        // SAFETY: as above; a point that starts within a line reaches into one line more.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(size_of::<Point<F>>() - 1)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = point;
}

/// Adds `others` to `sums`, slot by slot.
pub(crate) fn merge<C: Curve>(sums: &mut [Point<C::Field>], others: &[Point<C::Field>]) {
    let mut batch = Batch::new();
    for (slot, point) in others.iter().enumerate() {
        if !point.is_identity() {
            batch.push(slot as u32, *point);
            if batch.is_full() {
                batch.flush(sums);
            }
        }
    }
    batch.flush(sums);
}

/// A run of neighbouring buckets of one window, summed with running sums.
struct Lane {
    start: usize,
    end: usize,
    /// Position of the lane in its window.
    index: usize,
}

/// For each window, whose buckets have the weights 1, 2, 3, …, the weighted sum of its buckets.
/// `sums` holds the windows one after the other, `sizes[i]` buckets each.
///
/// A window is cut into lanes of L buckets. Walking down a lane k with a running sum S and a sum T
/// of the running sums gives S_k = Σ B and T_k = Σ (t + 1)·B over its buckets t, and the window
/// is Σ T_k + L · Σ k·S_k. All lanes of all windows walk together, in batched affine additions.
pub(crate) fn weighted_sums<C: Curve>(
    sums: &[Point<C::Field>],
    sizes: &[usize],
) -> Vec<C::Projective> {
    let length = (sums.len() / LANES).next_power_of_two();
    let lanes = lanes(sizes, length);
    let mut running = vec![Point::IDENTITY; lanes.len()];
    let mut totals = running.clone();
    let mut batch = Batch::new();
    for step in (0..length).rev() {
        for (slot, lane) in lanes.iter().enumerate() {
            let at = lane.start + step;
            if at < lane.end && !sums[at].is_identity() {
                push(&mut batch, slot, sums[at], &mut running);
            }
        }
        batch.flush(&mut running);
        for (slot, sum) in running.iter().enumerate() {
            if !sum.is_identity() {
                push(&mut batch, slot, *sum, &mut totals);
            }
        }
        batch.flush(&mut totals);
    }
    join_lanes::<C>(&lanes, &running, &totals, length)
}

fn push<F: Coordinate>(
    batch: &mut Batch<F>,
    slot: usize,
    point: Point<F>,
    targets: &mut [Point<F>],
) {
    if batch.is_full() {
        batch.flush(targets);
    }
    batch.push(slot as u32, point);
}

fn lanes(sizes: &[usize], length: usize) -> Vec<Lane> {
    let mut lanes = Vec::new();
    let mut offset = 0;
    for size in sizes {
        lanes.extend((0..size.div_ceil(length)).map(|index| Lane {
            start: offset + index * length,
            end: offset + ((index + 1) * length).min(*size),
            index,
        }));
        offset += size;
    }
    lanes
}

/// Σ T_k + L · Σ k·S_k for each window.
fn join_lanes<C: Curve>(
    lanes: &[Lane],
    running: &[Point<C::Field>],
    totals: &[Point<C::Field>],
    length: usize,
) -> Vec<C::Projective> {
    let mut windows = Vec::new();
    let mut suffix = C::Projective::identity();
    let mut weighted = C::Projective::identity();
    let mut total = C::Projective::identity();
    for (slot, lane) in lanes.iter().enumerate().rev() {
        total += C::project(&totals[slot]);
        if lane.index > 0 {
            suffix += C::project(&running[slot]);
            weighted += suffix;
            continue;
        }
        for _ in 0..length.trailing_zeros() {
            weighted = weighted.double();
        }
        windows.push(total + weighted);
        suffix = C::Projective::identity();
        weighted = suffix;
        total = suffix;
    }
    windows.reverse();
    windows
}
