//! One pass of a transform: column transforms in shared memory, with twiddle factors.

use cuzk_field::{FixedFr, Fr};

use super::butterfly::{self, Roots, Rows};
use super::layout::Columns;
use crate::{Cache, Global, GlobalMut, Gpu, Planes, kernel};

/// The arguments of a pass.
struct Pass {
    columns: Columns,
    /// log2 of N, the block that the columns belong to.
    block: u32,
    from: Global<Fr>,
    factor: Global<Fr>,
    to: GlobalMut<Fr>,
    roots: Roots,
    near: Global<FixedFr>,
    far: Global<FixedFr>,
}

/// A pass as one thread of one block sees it.
#[derive(Clone, Copy)]
struct Place<G> {
    gpu: G,
    columns: Columns,
    tile: Planes<Fr>,
    near: Global<FixedFr>,
    far: Global<FixedFr>,
    /// The thread's group of rows, and its column in the tile.
    group: u32,
    column: u32,
    /// The tile's first element in the array.
    base: usize,
    /// The number of the tile in its block of N elements.
    tile_in_block: u32,
}

impl<G: Gpu> Place<G> {
    #[inline(always)]
    fn new(gpu: G, pass: &Pass) -> Self {
        let columns = pass.columns;
        let (group, column) = columns.thread_place(gpu.thread());
        let block = gpu.block();
        let (base, tile_in_block) = if columns.contiguous() {
            ((block as usize) << columns.tile, 0)
        } else {
            let tiles = columns.distance - columns.columns();
            let tile_in_block = block & ((1 << tiles) - 1);
            let outer = (block >> tiles) as usize;
            let first = (tile_in_block << columns.columns()) as usize;
            ((outer << pass.block) + first, tile_in_block)
        };
        Place {
            gpu,
            columns,
            tile: Planes::new(gpu, 0, 1 << columns.tile),
            near: pass.near,
            far: pass.far,
            group,
            column,
            base,
            tile_in_block,
        }
    }

    /// The thread's rows of a step with rows h apart.
    #[inline(always)]
    fn rows(self, log2_h: u32) -> Rows<G> {
        let low = self.group & ((1 << log2_h) - 1);
        Rows {
            gpu: self.gpu,
            tile: self.tile,
            columns: self.columns,
            column: self.column,
            first: ((self.group >> log2_h) << (log2_h + 2)) + low,
            log2_h,
        }
    }

    /// Index in the array.
    #[inline(always)]
    fn in_array(self, row: u32, column: u32) -> usize {
        if self.columns.contiguous() {
            self.base + ((column as usize) << self.columns.stages) + row as usize
        } else {
            self.base + ((row as usize) << self.columns.distance) + column as usize
        }
    }

    /// Row and column of the thread's jth element next to the twiddle factors: the four rows of a step with
    /// h = 1, or, where that would scatter the accesses of a warp, the order of the array.
    #[inline(always)]
    fn outer_place(self, j: u32) -> (u32, u32) {
        if self.columns.contiguous() {
            let i = self.gpu.thread() + (j << (self.columns.tile - 2));
            let stages = self.columns.stages;
            (i & ((1 << stages) - 1), i >> stages)
        } else {
            (4 * self.group + j, self.column)
        }
    }

    /// A barrier where outer places are not the thread's own rows.
    #[inline(always)]
    fn outer_barrier(self) {
        if self.columns.contiguous() {
            self.gpu.barrier();
        }
    }

    /// x, below 2p, times the twiddle factor of the jth outer place.
    #[inline(always)]
    fn twiddle(self, j: u32, row: u32, x: Fr) -> Fr {
        let (gpu, columns) = (self.gpu, self.columns);
        let entry = if columns.contiguous() {
            row
        } else {
            let tile = self.tile_in_block & ((1 << (columns.near - columns.columns())) - 1);
            (tile << columns.tile) + (j << (columns.tile - 2)) + gpu.thread()
        };
        let len = columns.near_len() as usize;
        let near = self.near.load_plane_read_only(gpu, len, entry as usize);
        let x = near.mul_lazy(&x);
        if self.far.address() == 0 {
            return x.canonical();
        }
        let far = self.tile_in_block >> (columns.near - columns.columns());
        let entry = (far << columns.stages) + (j << (columns.stages - 2)) + self.group;
        let len = columns.far_len() as usize;
        self.far
            .load_plane_read_only(gpu, len, entry as usize)
            .mul(&x)
    }

    /// The rows of the outermost step, h = M/4, from the array to the tile; times `factor` if there is one.
    #[inline(always)]
    fn read_rows(self, from: Global<Fr>, factor: Global<Fr>) {
        let gpu = self.gpu;
        let log2_h = self.columns.stages - 2;
        let mut q = 0;
        if factor.address() == 0 {
            while q < 4 {
                let row = self.group + (q << log2_h);
                let x = from.load_with(gpu, self.in_array(row, self.column), Cache::Streaming);
                self.tile.store(gpu, self.columns.slot(row, self.column), x);
                q += 1;
            }
            return;
        }
        while q < 4 {
            let row = self.group + (q << log2_h);
            let index = self.in_array(row, self.column);
            let x = from.load_with(gpu, index, Cache::Streaming);
            let x = x.mul(&factor.load_with(gpu, index, Cache::Streaming));
            self.tile.store(gpu, self.columns.slot(row, self.column), x);
            q += 1;
        }
    }

    /// The rows of the outermost step from the tile to the array.
    #[inline(always)]
    fn write_rows(self, to: GlobalMut<Fr>) {
        let gpu = self.gpu;
        let log2_h = self.columns.stages - 2;
        let mut q = 0;
        while q < 4 {
            let row = self.group + (q << log2_h);
            let x = self.tile.load(gpu, self.columns.slot(row, self.column));
            to.store_with(gpu, self.in_array(row, self.column), x, Cache::Streaming);
            q += 1;
        }
    }

    /// From the array through the twiddle factors to the tile.
    #[inline(always)]
    fn read_outer(self, from: Global<Fr>) {
        let mut j = 0;
        while j < 4 {
            let (row, column) = self.outer_place(j);
            let index = self.in_array(row, column);
            let mut x = from.load_with(self.gpu, index, Cache::Streaming);
            if self.near.address() != 0 {
                x = self.twiddle(j, row, x);
            }
            self.tile.store(self.gpu, self.columns.slot(row, column), x);
            j += 1;
        }
    }

    /// From the tile through the twiddle factors to the array.
    #[inline(always)]
    fn write_outer(self, to: GlobalMut<Fr>) {
        let mut j = 0;
        while j < 4 {
            let (row, column) = self.outer_place(j);
            let mut x = self.tile.load(self.gpu, self.columns.slot(row, column));
            if self.near.address() != 0 {
                x = self.twiddle(j, row, x);
            }
            to.store_with(self.gpu, self.in_array(row, column), x, Cache::Streaming);
            j += 1;
        }
    }
}

/// Between two steps each thread writes its rows, all wait, and each reads its next rows: a thread's rows
/// are its own until the barrier after the next step.
#[inline(always)]
fn dif<G: Gpu>(gpu: G, pass: Pass) {
    let (place, roots) = (Place::new(gpu, &pass), pass.roots);
    place.read_rows(pass.from, pass.factor);
    let mut log2_h = pass.columns.stages - 2;
    if pass.columns.stages & 1 == 1 {
        butterfly::dif_half(roots, place.rows(log2_h));
        gpu.barrier();
        log2_h -= 1;
    }
    while log2_h > 0 {
        butterfly::dif(roots, place.rows(log2_h));
        gpu.barrier();
        log2_h -= 2;
    }
    let unreduced = pass.near.address() != 0;
    butterfly::dif_last(roots, unreduced, place.rows(0));
    place.outer_barrier();
    place.write_outer(pass.to);
}

/// The reverse of [`dif`].
#[inline(always)]
fn dit<G: Gpu>(gpu: G, pass: Pass) {
    let (place, roots) = (Place::new(gpu, &pass), pass.roots);
    place.read_outer(pass.from);
    place.outer_barrier();
    butterfly::dit_first(roots, place.rows(0));
    let mut log2_h = 2;
    while log2_h + 2 <= pass.columns.stages {
        gpu.barrier();
        butterfly::dit(roots, place.rows(log2_h));
        log2_h += 2;
    }
    if pass.columns.stages & 1 == 1 {
        gpu.barrier();
        butterfly::dit_half(roots, place.rows(pass.columns.stages - 2));
    }
    place.write_rows(pass.to);
}

macro_rules! passes {
    ($($tile:literal: $dif:ident $dit:ident $blocks:literal;)*) => {$(
        kernel! {
            /// Decimation in frequency: `stages` stages from stage `start` on of a transform of 2^log2
            /// elements, `from` to `to`, which may be the same array; times `factor`, element by element of
            /// the input, if its address is not 0.
            ///
            /// The tile in the name is 2^10 unless it says otherwise. Stages: 2 to the tile's logarithm; a
            /// tile fits into what remains of the transform at `start`. `log2_near` is K of
            /// [`Columns`](crate::ntt::Columns), which says what `near` and `far` hold; either may be
            /// absent (address 0). `roots` as [`ROOTS_LOG2`](crate::ntt::ROOTS_LOG2) says.
            /// Grid: 2^(log2 − tile) blocks in x; block y works on the arrays `y·stride` bytes further on.
            /// Shared memory: the tile in two planes of 16-byte words, free of bank conflicts.
            /// Bound by the multiplier: one fixed multiplication an element for two stages and one or two
            /// for the pass, against 64 bytes of memory traffic.
            pub fn $dif(gpu, log2: u32, start: u32, stages: u32, log2_near: u32, stride: u64,
                from: Global<Fr>, factor: Global<Fr>, to: GlobalMut<Fr>,
                roots: Global<FixedFr>, near: Global<FixedFr>, far: Global<FixedFr>)
            limits { threads: 1 << ($tile - 2), min_blocks: $blocks, registers: 80, shared: 32 << $tile, spills: 40, stack: 8 }
            {
                let columns = Columns { tile: $tile, stages, distance: log2 - start - stages, near: log2_near };
                let skip = (stride).wrapping_mul(gpu.block_y() as u64);
                dif(gpu, Pass {
                    columns,
                    block: log2 - start,
                    from: Global::at_address(from.address().wrapping_add(skip)),
                    factor,
                    to: GlobalMut::at_address(to.address().wrapping_add(skip)),
                    roots: Roots(roots),
                    near,
                    far,
                });
            }

            /// Decimation in time: the inverse order of the pass in frequency with the same arguments; with
            /// inverse roots it undoes it, up to a factor 2^stages.
            pub fn $dit(gpu, log2: u32, start: u32, stages: u32, log2_near: u32, stride: u64,
                from: Global<Fr>, to: GlobalMut<Fr>,
                roots: Global<FixedFr>, near: Global<FixedFr>, far: Global<FixedFr>)
            limits { threads: 1 << ($tile - 2), min_blocks: $blocks, registers: 80, shared: 32 << $tile }
            {
                let columns = Columns { tile: $tile, stages, distance: log2 - start - stages, near: log2_near };
                let skip = (stride).wrapping_mul(gpu.block_y() as u64);
                dit(gpu, Pass {
                    columns,
                    block: log2 - start,
                    from: Global::at_address(from.address().wrapping_add(skip)),
                    factor: Global::at_address(0),
                    to: GlobalMut::at_address(to.address().wrapping_add(skip)),
                    roots: Roots(roots),
                    near,
                    far,
                });
            }
        }
    )*};
}

passes! {
    8: ntt_dif_pass_8 ntt_dit_pass_8 12;
    9: ntt_dif_pass_9 ntt_dit_pass_9 6;
    10: ntt_dif_pass ntt_dit_pass 3;
}
