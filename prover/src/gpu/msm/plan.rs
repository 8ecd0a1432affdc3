//! Window width, tiles, and the memory that they take.

use cuzk_field::curve::Xyzz;
use cuzk_kernels::msm::grid;
use cuzk_kernels::msm::recode::{RECODED_BITS, windows};
use cuzk_kernels::runtime::Arena;

use super::MsmError;
use super::curve::GpuCurve;
use super::lists::{Lists, Rounds};

/// Narrowest windows.
pub const MIN_BITS: u32 = 2;
/// Widest windows: two levels of 2,048 bins each.
pub const MAX_BITS: u32 = 23;
/// Partial sums that references can number.
const MOST_SUMS: u64 = 1 << 30;
/// log2 of the most buckets that one level of sorting takes.
const ONE_LEVEL: u32 = 11;
/// Least positions of a tile: fewer make runs too short.
const LEAST_TILE: u32 = 1024;
/// Most positions of a tile.
const MOST_TILE: u32 = 1 << 17;
/// A round's latency in additions that the device makes meanwhile.
const ROUND_COST: f64 = 200e3;
/// What a bucket costs in additions: two in the matrix, and bookkeeping.
const BUCKET_COST: f64 = 2.4;
/// The last window's digits are below this share of their range, because scalars are below r/2.
const LAST_SHARE: f64 = 0.45;
/// Lines of the matrix of buckets are added in rounds until this many points are left.
pub(super) const LINE_REST: u32 = 8;

/// How an MSM of a given length is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Number of scalars.
    pub points: u32,
    /// Window width.
    pub bits: u32,
    /// Windows that are sorted together.
    pub sort_windows: u32,
    /// Windows whose buckets are summed together.
    pub sum_windows: u32,
    pub(super) multiprocessors: u32,
    /// log2 of the most buckets that are sorted in one level.
    pub(super) one_level: u32,
    /// Least positions of a tile.
    pub(super) least_tile: u32,
}

/// The two levels of sorting by 2^(upper + low) buckets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    pub upper: u32,
    pub low: u32,
    pub tile: u32,
    pub second_tile: u32,
}

impl Plan {
    /// The cheapest plan for `points` scalars on a device with so many multiprocessors that stays
    /// within `memory` bytes of arena for the curve `C`.
    ///
    /// # Errors
    /// When not even one window at a time fits, or there are 2²⁹ points or more.
    pub fn new<C: GpuCurve>(
        points: usize,
        multiprocessors: u32,
        memory: u64,
    ) -> Result<Self, MsmError> {
        let bits =
            (MIN_BITS..=MAX_BITS).min_by(|&a, &b| cost(points, a).total_cmp(&cost(points, b)));
        Self::with_bits::<C>(points, bits.unwrap_or(MIN_BITS), multiprocessors, memory)
    }

    /// The plan with a given window width, `MIN_BITS` to `MAX_BITS`.
    ///
    /// # Errors
    /// As for [`Plan::new`].
    pub fn with_bits<C: GpuCurve>(
        points: usize,
        bits: u32,
        multiprocessors: u32,
        memory: u64,
    ) -> Result<Self, MsmError> {
        if points >= 1 << 29 || !(MIN_BITS..=MAX_BITS).contains(&bits) {
            return Err(MsmError::Size { points, bits });
        }
        let mut plan = Plan {
            points: points as u32,
            bits,
            sort_windows: 1,
            sum_windows: 1,
            multiprocessors,
            one_level: ONE_LEVEL,
            least_tile: LEAST_TILE,
        };
        let smallest = plan.bytes::<C>();
        if smallest > memory {
            return Err(MsmError::Memory {
                needed: smallest,
                limit: memory,
            });
        }
        for together in 2..=plan.windows() {
            let wider = Plan {
                sort_windows: together,
                ..plan
            };
            if wider.bytes::<C>() <= memory {
                plan = wider;
            }
            let wider = Plan {
                sum_windows: together,
                ..plan
            };
            if wider.bytes::<C>() <= memory && wider.most_sums(together) < MOST_SUMS {
                plan = wider;
            }
        }
        Ok(plan.even())
    }

    /// Evens out the groups of windows.
    fn even(self) -> Self {
        let even = |together: u32| self.windows().div_ceil(self.windows().div_ceil(together));
        Plan {
            sort_windows: even(self.sort_windows),
            sum_windows: even(self.sum_windows),
            ..self
        }
    }

    /// Estimated time of sorting and one sum, in additions that the device makes meanwhile.
    pub fn additions(&self) -> f64 {
        let groups = f64::from(self.windows().div_ceil(self.sum_windows));
        let points = self.points as usize;
        adding(points, self.bits) + groups * rounds(points, self.bits) * ROUND_COST
    }

    /// Number of windows.
    pub fn windows(&self) -> u32 {
        windows(self.bits)
    }

    /// log2 of the buckets of a window.
    pub fn buckets(&self) -> u32 {
        self.bits - 1
    }

    /// Arena bytes for sorting and for the sums over bases on `C`.
    pub fn bytes<C: GpuCurve>(&self) -> u64 {
        self.kept_bytes() + self.sort_bytes().max(self.sum_bytes::<C>())
    }

    /// Arena bytes that stay taken as long as the sorted scalars are used.
    pub fn kept_bytes(&self) -> u64 {
        let windows = self.windows() as usize;
        Arena::bytes::<u32>(windows * self.points as usize)
            + 2 * Arena::bytes::<u32>(windows << self.buckets())
    }

    pub(super) fn levels(&self) -> Levels {
        let buckets = self.buckets();
        let low = if buckets <= self.one_level {
            0
        } else {
            buckets.div_ceil(2)
        };
        // enough tiles to occupy the device a dozen times, few enough to make long runs
        let blocks = u64::from(self.multiprocessors * 12);
        let share = u64::from(self.points) * u64::from(self.sort_windows) / blocks;
        let tile = (share as u32).clamp(self.least_tile, MOST_TILE);
        Levels {
            upper: buckets - low,
            low,
            tile,
            second_tile: tile.clamp(2 * self.least_tile, MOST_TILE / 8),
        }
    }

    /// Bytes that sorting takes for a while.
    pub(super) fn sort_bytes(&self) -> u64 {
        let (points, windows) = (self.points as usize, self.sort_windows as usize);
        let levels = self.levels();
        let tiles = self.points.div_ceil(levels.tile) as usize;
        let mut bytes = Arena::bytes::<u32>(8 * points)
            + Arena::bytes::<u32>(points.div_ceil(32))
            + Arena::bytes::<u32>(8)
            + Arena::bytes::<u32>((windows * tiles) << levels.upper);
        if levels.low > 0 {
            let partitions = windows << levels.upper;
            bytes += 2 * Arena::bytes::<u32>(partitions)
                + Arena::bytes::<[u32; 2]>(windows * points)
                + Arena::bytes::<u32>(partitions + 1)
                + Arena::bytes::<u32>(self.second_tiles(self.sort_windows) << levels.low);
        }
        // each of the sum's window groups is counted after sorting
        let groups = self.windows().div_ceil(self.sum_windows);
        bytes
            + u64::from(groups) * Lists::count_bytes(u64::from(self.sum_windows) << self.buckets())
    }

    /// Most tiles of the second level.
    pub(super) fn second_tiles(&self, windows: u32) -> usize {
        let levels = self.levels();
        let full = windows as usize * self.points as usize / levels.second_tile as usize;
        full + ((windows as usize) << levels.upper)
    }

    /// Most partial sums of a group of windows.
    pub(super) fn most_sums(&self, windows: u32) -> u64 {
        u64::from(windows) * (u64::from(self.points) + (2 << self.buckets()))
    }

    /// Most pairs of one round in a group of windows.
    pub(super) fn most_pairs(&self, windows: u32) -> u64 {
        u64::from(windows) * (u64::from(self.points) / 2).max(1 << self.buckets())
    }

    /// Bytes that the sums take for a while.
    pub(super) fn sum_bytes<C: GpuCurve>(&self) -> u64 {
        let windows = self.sum_windows;
        let buckets = u64::from(windows) << self.buckets();
        let [rows, columns] = self.lines();
        let lines = u64::from(windows) * u64::from(rows + columns);
        Rounds::<C>::bytes(
            self.most_sums(windows),
            self.most_pairs(windows),
            self.multiprocessors,
        ) + Lists::count_bytes(buckets)
            + Rounds::<C>::run_bytes(buckets)
            + Arena::bytes::<u32>(2 * buckets as usize)
            + 2 * Arena::bytes::<u32>(lines as usize)
            + Lists::count_bytes(lines)
            + Rounds::<C>::run_bytes(lines)
            + Arena::bytes::<Xyzz<C>>(lines as usize)
            + Arena::bytes::<Xyzz<C>>(2 * windows as usize)
    }

    /// Rows and columns of a window's matrix of buckets.
    pub(super) fn lines(&self) -> [u32; 2] {
        let columns = grid::columns(self.buckets());
        [1 << (self.buckets() - columns), 1 << columns]
    }
}

/// Estimated time in additions, all windows summed together.
fn cost(points: usize, bits: u32) -> f64 {
    adding(points, bits) + rounds(points, bits) * ROUND_COST
}

/// Additions into buckets and of buckets.
fn adding(points: usize, bits: u32) -> f64 {
    let buckets = f64::from(1u32 << (bits - 1));
    f64::from(windows(bits)) * (points as f64 + BUCKET_COST * buckets)
}

/// Rounds of additions that wait for each other.
fn rounds(points: usize, bits: u32) -> f64 {
    let buckets = f64::from(1u32 << (bits - 1));
    let count = windows(bits);
    // the fullest bucket decides the number of rounds; the last window has fewer bits
    let last = f64::from(1u32 << (RECODED_BITS - bits * (count - 1))) * LAST_SHARE;
    let load = points as f64 / buckets.min(last.max(1.0));
    let fullest = load + 4.0 * load.sqrt() + 4.0;
    let line = f64::from(1u32 << grid::columns(bits - 1));
    fullest.log2() + (line / f64::from(LINE_REST)).log2().max(0.0) + line / 256.0
}
