//! One pass of a transform: column transforms in shared memory, with twiddle factors.

use cuzk_field::{FixedFr, Fr};

use super::{LOW_LOG2, TILE_LOG2};
use crate::{Cache, Global, GlobalMut, Gpu, Planes, kernel};

/// Threads of a block; each holds four elements.
const THREADS: u32 = 256;
const TILE: u32 = 1 << TILE_LOG2;
const SHARED: u32 = TILE * 32;

/// Where a pass stands in its transform; all fields but the last are the same for all threads.
#[derive(Clone, Copy)]
struct Place {
    /// log2 of the transform's size.
    log2: u32,
    /// Stages that come before this pass in decimation in frequency.
    start: u32,
    /// Stages of this pass: M = 2^stages rows.
    stages: u32,
    /// log2 of the number of columns in a tile.
    columns: u32,
    /// log2 of D, the distance between rows.
    distance: u32,
    /// The block's number.
    block: u32,
}

impl Place {
    #[inline(always)]
    fn new<G: Gpu>(gpu: G, log2: u32, start: u32, stages: u32) -> Self {
        Place {
            log2,
            start,
            stages,
            columns: TILE_LOG2 - stages,
            distance: log2 - start - stages,
            block: gpu.block(),
        }
    }

    /// Row and column in the tile of the thread's jth element, such that neighbouring threads touch
    /// neighbouring memory.
    #[inline(always)]
    fn in_tile<G: Gpu>(self, gpu: G, j: u32) -> (u32, u32) {
        let i = gpu.thread() + THREADS * j;
        if self.distance == 0 {
            (i & ((1 << self.stages) - 1), i >> self.stages)
        } else {
            (i >> self.columns, i & ((1 << self.columns) - 1))
        }
    }

    /// Index in the whole array, and the column c in its block of N elements.
    #[inline(always)]
    fn in_array(self, row: u32, column: u32) -> (usize, u32) {
        if self.distance == 0 {
            let outer = (self.block << self.columns) + column;
            return (((outer as usize) << self.stages) + row as usize, 0);
        }
        let blocks = self.distance - self.columns;
        let outer = self.block >> blocks;
        let c = ((self.block & ((1 << blocks) - 1)) << self.columns) + column;
        let base = (outer as usize) << (self.log2 - self.start);
        (base + c as usize + ((row as usize) << self.distance), c)
    }

    /// Position in shared memory.
    #[inline(always)]
    fn slot(self, row: u32, column: u32) -> u32 {
        (row << self.columns) + column
    }
}

/// The tables of a transform. Entries are fixed factors of 64 bytes.
#[derive(Clone, Copy)]
struct Tables {
    /// w_1024^i for i < 512.
    inner: Global<FixedFr>,
    /// Direct: w^e of the pass's own order for every exponent e. Otherwise w^(4096·i).
    high: Global<FixedFr>,
    /// w^i for i < 4096.
    low: Global<FixedFr>,
    /// 1: `high` is direct.
    direct: u32,
    /// 1: coset.
    coset: u32,
}

impl Tables {
    /// x times the twiddle factor of column c and row `row`.
    #[inline(always)]
    fn twiddle<G: Gpu>(self, gpu: G, place: Place, row: u32, c: u32, x: Fr) -> Fr {
        let f = row.reverse_bits() >> (32 - place.stages);
        let e = if self.coset != 0 {
            (2 * c + 1) * f
        } else {
            c * f
        };
        if self.direct != 0 {
            return self.high.load_read_only(gpu, e as usize).mul(&x);
        }
        let low = self
            .low
            .load_read_only(gpu, (e & ((1 << LOW_LOG2) - 1)) as usize);
        let high = self.high.load_read_only(gpu, (e >> LOW_LOG2) as usize);
        high.mul(&low.mul_lazy(&x))
    }

    /// w_(4h)^i of a radix-4 step over rows that are h apart.
    #[inline(always)]
    fn root<G: Gpu>(self, gpu: G, i: u32, log2_h: u32) -> FixedFr {
        self.inner
            .load_read_only(gpu, (i << (TILE_LOG2 - 2 - log2_h)) as usize)
    }
}

/// The first row of the thread's radix-4 step: rows `m`, `m + h`, `m + 2h`, `m + 3h` of one column.
#[inline(always)]
fn quad<G: Gpu>(gpu: G, place: Place, log2_h: u32) -> (u32, u32, u32) {
    let (r, column) = (
        gpu.thread() >> place.columns,
        gpu.thread() & ((1 << place.columns) - 1),
    );
    let low = r & ((1 << log2_h) - 1);
    (((r >> log2_h) << (log2_h + 2)) + low, low, column)
}

/// Two stages of decimation in frequency: halves 2h, then h.
#[inline(always)]
fn dif_quad<G: Gpu>(gpu: G, tile: Planes<Fr>, place: Place, tables: Tables, log2_h: u32) {
    let (m, i, column) = quad(gpu, place, log2_h);
    let h = 1 << log2_h;
    let at = |q: u32| place.slot(m + q * h, column);
    let (x0, x1, x2, x3) = (
        tile.load(gpu, at(0)),
        tile.load(gpu, at(1)),
        tile.load(gpu, at(2)),
        tile.load(gpu, at(3)),
    );
    let (u0, v0) = (x0.add(&x2), x0.sub(&x2));
    let (u1, v1) = (x1.add(&x3), x1.sub(&x3));
    let v1 = tables.root(gpu, i + h, log2_h).mul(&v1);
    tile.store(gpu, at(0), u0.add(&u1));
    if log2_h > 0 {
        let v0 = tables.root(gpu, i, log2_h).mul(&v0);
        let w = tables.root(gpu, 2 * i, log2_h);
        tile.store(gpu, at(1), w.mul(&u0.sub(&u1)));
        tile.store(gpu, at(2), v0.add(&v1));
        tile.store(gpu, at(3), w.mul(&v0.sub(&v1)));
    } else {
        tile.store(gpu, at(1), u0.sub(&u1));
        tile.store(gpu, at(2), v0.add(&v1));
        tile.store(gpu, at(3), v0.sub(&v1));
    }
}

/// Two stages of decimation in time: halves h, then 2h.
#[inline(always)]
fn dit_quad<G: Gpu>(gpu: G, tile: Planes<Fr>, place: Place, tables: Tables, log2_h: u32) {
    let (m, i, column) = quad(gpu, place, log2_h);
    let h = 1 << log2_h;
    let at = |q: u32| place.slot(m + q * h, column);
    // Ordered so that few values live at once: a factor takes 16 registers.
    let (mut x1, mut x3) = (tile.load(gpu, at(1)), tile.load(gpu, at(3)));
    if log2_h > 0 {
        let w = tables.root(gpu, 2 * i, log2_h);
        x1 = w.mul(&x1);
        x3 = w.mul(&x3);
    }
    let x2 = tile.load(gpu, at(2));
    let (mut v0, v1) = (x2.add(&x3), x2.sub(&x3));
    let v1 = tables.root(gpu, i + h, log2_h).mul(&v1);
    if log2_h > 0 {
        v0 = tables.root(gpu, i, log2_h).mul(&v0);
    }
    let x0 = tile.load(gpu, at(0));
    let (u0, u1) = (x0.add(&x1), x0.sub(&x1));
    tile.store(gpu, at(0), u0.add(&v0));
    tile.store(gpu, at(2), u0.sub(&v0));
    tile.store(gpu, at(1), u1.add(&v1));
    tile.store(gpu, at(3), u1.sub(&v1));
}

/// The stage over neighbouring rows, for an odd number of stages. It has no factors.
#[inline(always)]
fn last_pair<G: Gpu>(gpu: G, tile: Planes<Fr>, place: Place) {
    let (mut r, column) = (
        gpu.thread() >> place.columns,
        gpu.thread() & ((1 << place.columns) - 1),
    );
    let mut j = 0;
    while j < 2 {
        let (a, b) = (place.slot(2 * r, column), place.slot(2 * r + 1, column));
        let (x, y) = (tile.load(gpu, a), tile.load(gpu, b));
        tile.store(gpu, a, x.add(&y));
        tile.store(gpu, b, x.sub(&y));
        r += 1 << (place.stages - 2);
        j += 1;
    }
}

kernel! {
    /// Decimation in frequency: `stages` stages (2 to 10) from stage `start` on of transforms of 2^log2
    /// elements (log2 at least 10; at least 10 stages remain at `start`, or these are the last),
    /// `from` to `to`, which may be the same array.
    ///
    /// Grid: 2^(log2 − 10) blocks. Shared memory: the tile in two planes of 16-byte words, free of bank
    /// conflicts but for the last step. `inner` holds w_1024^i for i < 512; `high` and `low` the twiddle factors, directly by exponent in `high` if
    /// `direct` is 1; `coset` is 1 on the coset.
    /// Bound by the multiplier: at most one fixed multiplication an element for two stages and one or
    /// two for the pass, against 64 bytes of memory traffic.
    pub fn ntt_dif_pass(gpu, log2: u32, start: u32, stages: u32, coset: u32, direct: u32,
        from: Global<Fr>, to: GlobalMut<Fr>,
        inner: Global<FixedFr>, high: Global<FixedFr>, low: Global<FixedFr>)
    limits { threads: super::THREADS, min_blocks: 3, registers: 80, shared: super::SHARED }
    {
        let place = Place::new(gpu, log2, start, stages);
        let tables = Tables { inner, high, low, direct, coset };
        let tile = Planes::<Fr>::new(gpu, 0, TILE);
        let mut j = 0;
        while j < 4 {
            let (row, column) = place.in_tile(gpu, j);
            let (index, _) = place.in_array(row, column);
            tile.store(gpu, place.slot(row, column), from.load_with(gpu, index, Cache::Streaming));
            j += 1;
        }
        gpu.barrier();
        let mut left = stages;
        while left >= 2 {
            dif_quad(gpu, tile, place, tables, left - 2);
            gpu.barrier();
            left -= 2;
        }
        if left == 1 {
            last_pair(gpu, tile, place);
            gpu.barrier();
        }
        let mut j = 0;
        while j < 4 {
            let (row, column) = place.in_tile(gpu, j);
            let (index, c) = place.in_array(row, column);
            let mut x = tile.load(gpu, place.slot(row, column));
            if place.distance != 0 || coset != 0 {
                x = tables.twiddle(gpu, place, row, c, x);
            }
            to.store_with(gpu, index, x, Cache::Streaming);
            j += 1;
        }
    }

    /// Decimation in time: the inverse order of [`ntt_dif_pass`](super::ntt_dif_pass) with the same
    /// arguments; with inverse roots it undoes it, up to a factor 2^stages.
    pub fn ntt_dit_pass(gpu, log2: u32, start: u32, stages: u32, coset: u32, direct: u32,
        from: Global<Fr>, to: GlobalMut<Fr>,
        inner: Global<FixedFr>, high: Global<FixedFr>, low: Global<FixedFr>)
    limits { threads: super::THREADS, min_blocks: 3, registers: 80, shared: super::SHARED }
    {
        let place = Place::new(gpu, log2, start, stages);
        let tables = Tables { inner, high, low, direct, coset };
        let tile = Planes::<Fr>::new(gpu, 0, TILE);
        let mut j = 0;
        while j < 4 {
            let (row, column) = place.in_tile(gpu, j);
            let (index, c) = place.in_array(row, column);
            let mut x = from.load_with(gpu, index, Cache::Streaming);
            if place.distance != 0 || coset != 0 {
                x = tables.twiddle(gpu, place, row, c, x);
            }
            tile.store(gpu, place.slot(row, column), x);
            j += 1;
        }
        gpu.barrier();
        let mut log2_h = stages & 1;
        if log2_h == 1 {
            last_pair(gpu, tile, place);
            gpu.barrier();
        }
        while log2_h + 2 <= stages {
            dit_quad(gpu, tile, place, tables, log2_h);
            gpu.barrier();
            log2_h += 2;
        }
        let mut j = 0;
        while j < 4 {
            let (row, column) = place.in_tile(gpu, j);
            let (index, _) = place.in_array(row, column);
            to.store_with(gpu, index, tile.load(gpu, place.slot(row, column)), Cache::Streaming);
            j += 1;
        }
    }
}
