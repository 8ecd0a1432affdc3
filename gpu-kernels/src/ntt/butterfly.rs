//! Radix-4 steps: two radix-2 stages on four rows h apart.
//!
//! Values are in [0, p). A sum or difference that is multiplied next stays in [0, 2p), which saves its
//! correction.

use cuzk_field::{FixedFr, Fr};

use super::ROOTS_LOG2;
use super::layout::Columns;
use crate::{Global, Gpu, Planes};

/// Four elements of a column in shared memory: rows m, m + h, m + 2h, m + 3h. Between barriers they are
/// one thread's own.
#[derive(Clone, Copy)]
pub struct Rows<G> {
    /// The thread.
    pub gpu: G,
    /// The tile.
    pub tile: Planes<Fr>,
    /// The shape of the pass.
    pub columns: Columns,
    /// The column.
    pub column: u32,
    /// m.
    pub first: u32,
    /// log2 of h.
    pub log2_h: u32,
}

impl<G: Gpu> Rows<G> {
    /// m mod h, the index of the step's factors.
    #[inline(always)]
    fn index(self) -> u32 {
        self.first & ((1 << self.log2_h) - 1)
    }

    #[inline(always)]
    fn slot(self, q: u32) -> u32 {
        let row = self.first + (q << self.log2_h);
        self.columns.slot(row, self.column)
    }

    #[inline(always)]
    fn get(self, q: u32) -> Fr {
        self.tile.load(self.gpu, self.slot(q))
    }

    #[inline(always)]
    fn put(self, q: u32, x: Fr) {
        self.tile.store(self.gpu, self.slot(q), x)
    }
}

/// Roots of unity of the orders that occur in a tile, in planes; see [`ROOTS_LOG2`].
#[derive(Clone, Copy)]
pub struct Roots(pub Global<FixedFr>);

impl Roots {
    /// w^i for w of order 2^`order`, i below half of it.
    #[inline(always)]
    fn get<G: Gpu>(self, gpu: G, order: u32, i: u32) -> FixedFr {
        let entry = (1 << (order - 1)) + i;
        self.0
            .load_plane_read_only(gpu, 1 << ROOTS_LOG2, entry as usize)
    }
}

// The order of loads and stores keeps few values alive at once: a factor takes sixteen registers, its
// product about as many more.

/// Decimation in frequency, halves 2h then h, for h above 1.
#[inline(always)]
pub fn dif<G: Gpu>(roots: Roots, rows: Rows<G>) {
    let (gpu, i, order) = (rows.gpu, rows.index(), rows.log2_h + 2);
    let (x1, x3) = (rows.get(1), rows.get(3));
    let (u1, v1) = (x1.add(&x3), x1.sub_unreduced(&x3));
    let (x0, x2) = (rows.get(0), rows.get(2));
    let (u0, v0) = (x0.add(&x2), x0.sub_unreduced(&x2));
    rows.put(0, u0.add(&u1));
    // Waits in shared memory for its factor.
    rows.put(1, u0.sub_unreduced(&u1));
    let v1 = roots.get(gpu, order, i + (1 << rows.log2_h)).mul(&v1);
    let v0 = roots.get(gpu, order, i).mul(&v0);
    rows.put(2, v0.add(&v1));
    let v = v0.sub_unreduced(&v1);
    let w = roots.get(gpu, order - 1, i);
    rows.put(1, w.mul(&rows.get(1)));
    rows.put(3, w.mul(&v));
}

/// The last two stages of decimation in frequency: h = 1. Results are below 2p if `unreduced`.
#[inline(always)]
pub fn dif_last<G: Gpu>(roots: Roots, unreduced: bool, rows: Rows<G>) {
    let (x1, x3) = (rows.get(1), rows.get(3));
    let (u1, v1) = (x1.add(&x3), x1.sub_unreduced(&x3));
    let v1 = roots.get(rows.gpu, 2, 1).mul(&v1);
    let (x0, x2) = (rows.get(0), rows.get(2));
    let (u0, v0) = (x0.add(&x2), x0.sub(&x2));
    if unreduced {
        rows.put(0, u0.add_unreduced(&u1));
        rows.put(1, u0.sub_unreduced(&u1));
        rows.put(2, v0.add_unreduced(&v1));
        rows.put(3, v0.sub_unreduced(&v1));
    } else {
        rows.put(0, u0.add(&u1));
        rows.put(1, u0.sub(&u1));
        rows.put(2, v0.add(&v1));
        rows.put(3, v0.sub(&v1));
    }
}

/// The first stage of an odd number in decimation in frequency: halves 2h only.
#[inline(always)]
pub fn dif_half<G: Gpu>(roots: Roots, rows: Rows<G>) {
    let mut q = 0;
    while q < 2 {
        let (a, b) = (rows.get(q), rows.get(q + 2));
        rows.put(q, a.add(&b));
        let w = roots.get(rows.gpu, rows.log2_h + 2, rows.index() + (q << rows.log2_h));
        rows.put(q + 2, w.mul(&a.sub_unreduced(&b)));
        q += 1;
    }
}

/// The first two stages of decimation in time: h = 1.
#[inline(always)]
pub fn dit_first<G: Gpu>(roots: Roots, rows: Rows<G>) {
    let (x2, x3) = (rows.get(2), rows.get(3));
    let (v0, v1) = (x2.add(&x3), x2.sub_unreduced(&x3));
    let v1 = roots.get(rows.gpu, 2, 1).mul(&v1);
    let (x0, x1) = (rows.get(0), rows.get(1));
    let (u0, u1) = (x0.add(&x1), x0.sub(&x1));
    rows.put(0, u0.add(&v0));
    rows.put(1, u1.add(&v1));
    rows.put(2, u0.sub(&v0));
    rows.put(3, u1.sub(&v1));
}

/// Decimation in time, halves h then 2h, for h above 1.
#[inline(always)]
pub fn dit<G: Gpu>(roots: Roots, rows: Rows<G>) {
    let (gpu, i, order) = (rows.gpu, rows.index(), rows.log2_h + 2);
    let w = roots.get(gpu, order - 1, i);
    let x3 = w.mul(&rows.get(3));
    let x1 = w.mul(&rows.get(1));
    let x2 = rows.get(2);
    let (v0, v1) = (x2.add_unreduced(&x3), x2.sub_unreduced(&x3));
    let v1 = roots.get(gpu, order, i + (1 << rows.log2_h)).mul(&v1);
    let v0 = roots.get(gpu, order, i).mul(&v0);
    let x0 = rows.get(0);
    let (u0, u1) = (x0.add(&x1), x0.sub(&x1));
    rows.put(0, u0.add(&v0));
    rows.put(2, u0.sub(&v0));
    rows.put(1, u1.add(&v1));
    rows.put(3, u1.sub(&v1));
}

/// The last stage of an odd number in decimation in time: halves 2h only.
#[inline(always)]
pub fn dit_half<G: Gpu>(roots: Roots, rows: Rows<G>) {
    let mut q = 0;
    while q < 2 {
        let w = roots.get(rows.gpu, rows.log2_h + 2, rows.index() + (q << rows.log2_h));
        let (a, b) = (rows.get(q), w.mul(&rows.get(q + 2)));
        rows.put(q, a.add(&b));
        rows.put(q + 2, a.sub(&b));
        q += 1;
    }
}
