//! Counting sort of a window's points by bucket, through shared memory.
//!
//! With 2^(c−1) buckets a window: the first level distributes by the upper bits (*partitions*), the
//! second within each partition by the `low` remaining bits. With `low` = 0 the first level is all.
//! Both levels work on tiles of positions: count in shared memory, scan over tiles, distribute by
//! cursors in shared memory. A tile has a fixed number of positions whatever the scalars are, so that
//! all points in one bucket cost what evenly spread points cost. Scalars whose digit is zero drop out.
use super::recode::Digits;
use super::{NEGATIVE, SCAN_BYTES, block_scan};
use crate::{Global, GlobalMut, Gpu, Shared, kernel};

/// Most bins of one level.
pub const MAX_BINS: u32 = 2048;
const BINS_BYTES: u32 = MAX_BINS * 4;
/// Elements that a block puts in order before it writes them.
const CHUNK: u32 = 4096;
/// Shared memory of a distribution: two arrays of bins, a chunk of (reference, key), a scan.
const SCATTER_BYTES: u32 = 2 * BINS_BYTES + CHUNK * 8 + SCAN_BYTES;
/// Key of an element that drops out.
const NO_KEY: u32 = u32::MAX;

/// Sets the block's bins.
#[inline(always)]
fn fill_bins<G: Gpu>(gpu: G, count: u32, value: impl Fn(u32) -> u32) -> Shared<u32> {
    let bins = Shared::<u32>::new(gpu, 0);
    let mut bin = gpu.thread();
    while bin < count {
        bins.store(gpu, bin, value(bin));
        bin += gpu.threads();
    }
    gpu.barrier();
    bins
}

/// Writes the block's bins to `counts[at..]`.
#[inline(always)]
fn write_bins<G: Gpu>(gpu: G, bins: Shared<u32>, count: u32, counts: GlobalMut<u32>, at: usize) {
    gpu.barrier();
    let mut bin = gpu.thread();
    while bin < count {
        counts.store(gpu, at + bin as usize, bins.load(gpu, bin));
        bin += gpu.threads();
    }
}

/// The counts of one set of tiles: tile t's count of bin b is `counts[first + t·bins + b]`.
#[derive(Clone, Copy)]
struct Tiles {
    counts: GlobalMut<u32>,
    first: usize,
    tiles: u32,
    bins: u32,
}

impl Tiles {
    /// Replaces one bin's counts by their exclusive prefix sums over the tiles; returns the total.
    #[inline(always)]
    fn scan_bin<G: Gpu>(self, gpu: G, bin: u32) -> u32 {
        let place = self.counts.offset(self.first + bin as usize);
        let step = self.bins as usize;
        let mut sum = 0u32;
        let mut tile = 0;
        while tile + 4 <= self.tiles {
            let at = tile as usize * step;
            // four loads in flight before the stores, which the compiler may not reorder
            let a = place.load(gpu, at);
            let b = place.load(gpu, at + step);
            let c = place.load(gpu, at + 2 * step);
            let d = place.load(gpu, at + 3 * step);
            place.store(gpu, at, sum);
            place.store(gpu, at + step, sum + a);
            place.store(gpu, at + 2 * step, sum + a + b);
            place.store(gpu, at + 3 * step, sum + a + b + c);
            sum += a + b + c + d;
            tile += 4;
        }
        while tile < self.tiles {
            let at = tile as usize * step;
            let a = place.load(gpu, at);
            place.store(gpu, at, sum);
            sum += a;
            tile += 1;
        }
        sum
    }

    /// Scans all bins; `starts[out + b]` becomes `origin` plus the number of elements in bins below b,
    /// and `lens[out + b]` the number in bin b.
    #[inline(always)]
    fn scan<G: Gpu>(
        self,
        gpu: G,
        origin: u32,
        starts: GlobalMut<u32>,
        lens: GlobalMut<u32>,
        out: usize,
    ) {
        let mut carry = origin;
        let mut first = 0;
        while first < self.bins {
            let bin = first + gpu.thread();
            let len = if bin < self.bins {
                self.scan_bin(gpu, bin)
            } else {
                0
            };
            let (before, total) = block_scan(gpu, 0, len);
            if bin < self.bins {
                starts.store(gpu, out + bin as usize, carry + before);
                lens.store(gpu, out + bin as usize, len);
            }
            carry += total;
            first += gpu.threads();
        }
    }
}

/// Distributes elements `first..end` to bins: `read(i)` is (reference, key) of element i, or `NO_KEY`;
/// `bin(key)` its bin below `bins`; `cursor(bin)` the position of the bin's first element, and
/// `write(position, reference, key)` is called for each element.
///
/// A chunk is put in the order of its bins in shared memory first, so that neighbouring threads write
/// neighbouring positions.
#[inline(always)]
fn distribute<G: Gpu>(
    gpu: G,
    bins: u32,
    [first, end]: [u32; 2],
    cursor: impl Fn(u32) -> u32,
    read: impl Fn(u32) -> [u32; 2],
    bin: impl Fn(u32) -> u32,
    write: impl Fn(usize, u32, u32),
) {
    let cursors = Shared::<u32>::new(gpu, 0);
    let offsets = Shared::<u32>::new(gpu, BINS_BYTES);
    let staged = Shared::<[u32; 2]>::new(gpu, 2 * BINS_BYTES);
    let (thread, threads) = (gpu.thread(), gpu.threads());
    let mut b = thread;
    while b < bins {
        cursors.store(gpu, b, cursor(b));
        offsets.store(gpu, b, 0);
        b += threads;
    }
    let share = bins.div_ceil(threads);
    let own = bins.min(thread * share);
    let own_end = bins.min(own + share);
    let mut chunk = first;
    while chunk < end {
        let stop = end.min(chunk + CHUNK);
        gpu.barrier();
        let mut i = chunk + thread;
        while i < stop {
            let [_, key] = read(i);
            if key != NO_KEY {
                offsets.atomic_add(gpu, bin(key), 1);
            }
            i += threads;
        }
        gpu.barrier();
        let mut count = 0;
        b = own;
        while b < own_end {
            count += offsets.load(gpu, b);
            b += 1;
        }
        let (mut at, total) = block_scan(gpu, 2 * BINS_BYTES + CHUNK * 8, count);
        b = own;
        while b < own_end {
            let count = offsets.load(gpu, b);
            offsets.store(gpu, b, at);
            // from a place in the chunk to a position
            cursors.store(gpu, b, cursors.load(gpu, b).wrapping_sub(at));
            at += count;
            b += 1;
        }
        gpu.barrier();
        i = chunk + thread;
        while i < stop {
            let element = read(i);
            if element[1] != NO_KEY {
                let place = offsets.atomic_add(gpu, bin(element[1]), 1);
                staged.store(gpu, place, element);
            }
            i += threads;
        }
        gpu.barrier();
        let mut place = thread;
        while place < total {
            let [reference, key] = staged.load(gpu, place);
            let position = cursors.load(gpu, bin(key)).wrapping_add(place);
            write(position as usize, reference, key);
            place += threads;
        }
        gpu.barrier();
        b = thread;
        while b < bins {
            // the offsets have advanced to the ends of the bins
            cursors.store(
                gpu,
                b,
                cursors.load(gpu, b).wrapping_add(offsets.load(gpu, b)),
            );
            offsets.store(gpu, b, 0);
            b += threads;
        }
        chunk = stop;
    }
}

kernel! {
    /// First level, counting. Grid: (tiles, windows from `first_window` on). Tile t of window w counts
    /// its `tile` scalars' partitions to `counts[(w·tiles + t)·2^upper + partition]`, where a bucket's
    /// partition is its index without the `low` lower bits.
    ///
    /// Bound by memory: 4 to 8 bytes a scalar and window.
    pub fn msm_partition_count(gpu, n: u32, bits: u32, low: u32, upper: u32, tile: u32, first_window: u32,
        recoded: Global<u32>, signs: Global<u32>, counts: GlobalMut<u32>)
    limits { threads: 256, min_blocks: 6, registers: 40, shared: BINS_BYTES }
    {
        let digits = Digits { n, bits, recoded, signs };
        let bins = fill_bins(gpu, 1 << upper, |_| 0);
        let window = gpu.block_y();
        let first = gpu.block() * tile;
        let end = n.min(first + tile);
        let mut i = first + gpu.thread();
        while i < end {
            let (digit, _) = digits.digit(gpu, first_window + window, i);
            if digit != 0 {
                bins.atomic_add(gpu, (digit - 1) >> low, 1);
            }
            i += THREADS;
        }
        let at = (window as usize * gpu.blocks() as usize + gpu.block() as usize) << upper;
        write_bins(gpu, bins, 1 << upper, counts, at);
    }

    /// First level, scan. Grid: windows. Counts become each tile's offsets within the partition;
    /// `starts` and `lens` (2^upper a window) describe the partitions, relative to the window.
    pub fn msm_partition_scan(gpu, tiles: u32, upper: u32, counts: GlobalMut<u32>,
        starts: GlobalMut<u32>, lens: GlobalMut<u32>)
    limits { threads: 256, min_blocks: 4, registers: 64, shared: SCAN_BYTES }
    {
        let window = gpu.block() as usize;
        let first = (window * tiles as usize) << upper;
        let set = Tiles { counts, first, tiles, bins: 1 << upper };
        set.scan(gpu, 0, starts, lens, window << upper);
    }

    /// First level, distribution. Grid as for `msm_partition_count`. With `low` = 0 the references go
    /// to `references[(first_window + w)·n + …]`; otherwise (reference, lower bits of the bucket) goes to
    /// `entries[w·n + …]`. The reference's index is `map[i]` if `mapped` is not 0, else i.
    ///
    /// Bound by memory: 4 to 8 bytes read, 4 or 8 written a scalar and window.
    pub fn msm_partition_scatter(gpu, n: u32, bits: u32, low: u32, upper: u32, tile: u32, first_window: u32,
        recoded: Global<u32>, signs: Global<u32>, mapped: u32, map: Global<u32>, counts: Global<u32>,
        starts: Global<u32>, references: GlobalMut<u32>, entries: GlobalMut<[u32; 2]>)
    limits { threads: 256, min_blocks: 4, registers: 64, shared: SCATTER_BYTES }
    {
        let digits = Digits { n, bits, recoded, signs };
        let window = gpu.block_y();
        let at = (window as usize * gpu.blocks() as usize + gpu.block() as usize) << upper;
        let origin = (window as usize) << upper;
        let references = references.offset((first_window + window) as usize * n as usize);
        let entries = entries.offset(window as usize * n as usize);
        let first = gpu.block() * tile;
        distribute(
            gpu,
            1 << upper,
            [first, n.min(first + tile)],
            |bin| counts.load(gpu, at + bin as usize) + starts.load(gpu, origin + bin as usize),
            |i| {
                let (digit, negative) = digits.digit(gpu, first_window + window, i);
                let index = if mapped != 0 { map.load(gpu, i as usize) } else { i };
                [if negative { index | NEGATIVE } else { index }, digit.wrapping_sub(1)]
            },
            |bucket| bucket >> low,
            |position, reference, bucket| {
                if low == 0 {
                    references.store(gpu, position, reference);
                } else {
                    entries.store(gpu, position, [reference, bucket & ((1 << low) - 1)]);
                }
            },
        );
    }

    /// Numbers the second level's tiles: `tile_starts[p]` is the number of tiles of the partitions
    /// before p, `tile_starts[partitions]` that of all. Grid: 1.
    pub fn msm_tile_numbers(gpu, partitions: u32, tile: u32, lens: Global<u32>, tile_starts: GlobalMut<u32>)
    limits { threads: 1024, min_blocks: 1, registers: 64, shared: SCAN_BYTES }
    {
        let mut carry = 0;
        let mut first = 0;
        while first < partitions {
            let partition = first + gpu.thread();
            let inside = partition < partitions;
            let tiles = if inside { lens.load(gpu, partition as usize).div_ceil(tile) } else { 0 };
            let (before, total) = block_scan(gpu, 0, tiles);
            if inside {
                tile_starts.store(gpu, partition as usize, carry + before);
            }
            carry += total;
            first += THREADS;
        }
        if gpu.thread() == 0 {
            tile_starts.store(gpu, partitions as usize, carry);
        }
    }

    /// Second level, counting. Grid: at least the number of tiles. Tile t counts the lower bits of its
    /// entries to `counts[t·2^low + …]`.
    pub fn msm_bucket_count(gpu, n: u32, partitions: u32, low: u32, upper: u32, tile: u32,
        tile_starts: Global<u32>, starts: Global<u32>, lens: Global<u32>, entries: Global<[u32; 2]>,
        counts: GlobalMut<u32>)
    limits { threads: 256, min_blocks: 6, registers: 40, shared: BINS_BYTES }
    {
        let range = TileRange::find(gpu, partitions, upper, n, tile, tile_starts, starts, lens);
        if range.first < range.end {
            let bins = fill_bins(gpu, 1 << low, |_| 0);
            let mut i = range.first + gpu.thread();
            while i < range.end {
                bins.atomic_add(gpu, entries.load(gpu, range.origin + i as usize)[1], 1);
                i += THREADS;
            }
            write_bins(gpu, bins, 1 << low, counts, (gpu.block() as usize) << low);
        }
    }

    /// Second level, scan. Grid: partitions. Counts become each tile's offsets within the bucket;
    /// `bucket_starts` and `bucket_lens` describe the buckets, relative to the window.
    pub fn msm_bucket_scan(gpu, low: u32, tile_starts: Global<u32>, starts: Global<u32>,
        counts: GlobalMut<u32>, bucket_starts: GlobalMut<u32>, bucket_lens: GlobalMut<u32>)
    limits { threads: 256, min_blocks: 4, registers: 64, shared: SCAN_BYTES }
    {
        let partition = gpu.block() as usize;
        let first_tile = tile_starts.load(gpu, partition);
        let tiles = tile_starts.load(gpu, partition + 1) - first_tile;
        let set = Tiles { counts, first: (first_tile as usize) << low, tiles, bins: 1 << low };
        set.scan(gpu, starts.load(gpu, partition), bucket_starts, bucket_lens, partition << low);
    }

    /// Second level, distribution: `references[w·n + …]` receives the references in the order of their
    /// buckets. `references` and `bucket_starts` begin at the first window of `entries`.
    pub fn msm_bucket_scatter(gpu, n: u32, partitions: u32, low: u32, upper: u32, tile: u32,
        tile_starts: Global<u32>, starts: Global<u32>, lens: Global<u32>, entries: Global<[u32; 2]>,
        counts: Global<u32>, bucket_starts: Global<u32>, references: GlobalMut<u32>)
    limits { threads: 256, min_blocks: 4, registers: 64, shared: SCATTER_BYTES }
    {
        let range = TileRange::find(gpu, partitions, upper, n, tile, tile_starts, starts, lens);
        if range.first < range.end {
            let at = (gpu.block() as usize) << low;
            let buckets = (range.partition as usize) << low;
            distribute(
                gpu,
                1 << low,
                [range.first, range.end],
                |bin| {
                    let start = bucket_starts.load(gpu, buckets + bin as usize);
                    counts.load(gpu, at + bin as usize) + start
                },
                |i| entries.load(gpu, range.origin + i as usize),
                |bin| bin,
                |position, reference, _| references.store(gpu, range.origin + position, reference),
            );
        }
    }
}

/// The entries of the block's tile: positions `first..end` of the window that starts at `origin`.
#[derive(Clone, Copy)]
struct TileRange {
    partition: u32,
    origin: usize,
    first: u32,
    end: u32,
}

impl TileRange {
    /// Empty for blocks beyond the last tile. The same for all threads of the block.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn find<G: Gpu>(
        gpu: G,
        partitions: u32,
        upper: u32,
        n: u32,
        tile: u32,
        tile_starts: Global<u32>,
        starts: Global<u32>,
        lens: Global<u32>,
    ) -> Self {
        let number = gpu.block();
        if number >= tile_starts.load(gpu, partitions as usize) {
            return Self {
                partition: 0,
                origin: 0,
                first: 0,
                end: 0,
            };
        }
        let partition = last_not_above(gpu, tile_starts, 0, partitions, number);
        let start = starts.load(gpu, partition as usize);
        let first = start + (number - tile_starts.load(gpu, partition as usize)) * tile;
        let end = (first + tile).min(start + lens.load(gpu, partition as usize));
        Self {
            partition,
            origin: (partition >> upper) as usize * n as usize,
            first,
            end,
        }
    }
}

/// The last index in `low..high` whose element of a non-decreasing array is at most `value`; the element
/// at `low` is.
#[inline(always)]
pub(crate) fn last_not_above<G: Gpu>(
    gpu: G,
    array: Global<u32>,
    mut low: u32,
    mut high: u32,
    value: u32,
) -> u32 {
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if array.load(gpu, middle as usize) <= value {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
