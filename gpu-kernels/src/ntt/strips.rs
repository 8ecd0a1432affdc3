//! Stages of a transform over an array that the device sees a strip of columns at a time.

use cuzk_field::{FixedFr, Fr};

use crate::{Global, GlobalMut, Gpu, kernel};

/// Entries of the low table of roots, as a power of two.
pub const LOW_LOG2: u32 = 12;

/// A butterfly: the positions of its operands in the strip, and the exponent of its factor.
#[derive(Clone, Copy)]
struct Butterfly {
    upper: usize,
    lower: usize,
    exponent: u32,
}

/// Where a strip lies in the array of 2^log2 elements in 2^rows rows.
#[derive(Clone, Copy)]
struct Strip {
    log2: u32,
    rows: u32,
    columns: u32,
    first: u32,
}

impl Strip {
    /// The thread's butterfly in a stage, or none beyond the last column.
    #[inline(always)]
    fn butterfly<G: Gpu>(self, gpu: G, stage: u32, coset: u32) -> Option<Butterfly> {
        let column = gpu.index() as u32;
        if column >= self.columns {
            return None;
        }
        let half = 1u32 << (self.rows - 1 - stage);
        let row = gpu.block_y() & (half - 1);
        let upper = ((gpu.block_y() - row) << 1) + row;
        let index = (row << (self.log2 - self.rows)) + self.first + column;
        let exponent = if coset != 0 { 2 * index + 1 } else { index };
        let columns = self.columns as usize;
        Some(Butterfly {
            upper: upper as usize * columns + column as usize,
            lower: (upper + half) as usize * columns + column as usize,
            exponent: exponent << stage,
        })
    }
}

/// x times w^exponent from the tables of w's powers.
#[inline(always)]
fn times_root<G: Gpu>(gpu: G, high: Global<FixedFr>, low: Global<FixedFr>, e: u32, x: Fr) -> Fr {
    let near = low.load_read_only(gpu, (e & ((1 << LOW_LOG2) - 1)) as usize);
    let far = high.load_read_only(gpu, (e >> LOW_LOG2) as usize);
    far.mul(&near.mul_lazy(&x))
}

kernel! {
    /// Stage `stage` of decimation in frequency of 2^log2 elements, for the columns `first` to
    /// `first + columns` of the array seen as 2^rows rows, `stage < rows`. `values` holds these columns of
    /// all rows, row by row. The rest of the transform after stage `rows − 1` is 2^rows transforms of one
    /// row each.
    ///
    /// Grid: a thread a column, and 2^(rows − 1) in the second dimension. `high` and `low` hold w^(4096·i)
    /// and w^i (i < 4096) of the n-th root w, or of the 2n-th root with `coset` 1.
    /// Bound by memory: 64 bytes an element and stage; in practice by the bus that brings the strip.
    pub fn ntt_strip_dif(gpu, log2: u32, rows: u32, stage: u32, coset: u32, columns: u32, first: u32,
        values: GlobalMut<Fr>, high: Global<FixedFr>, low: Global<FixedFr>)
    limits { threads: 256, min_blocks: 3, registers: 80, shared: 0 }
    {
        let strip = Strip { log2, rows, columns, first };
        if let Some(at) = strip.butterfly(gpu, stage, coset) {
            let (u, v) = (values.load(gpu, at.upper), values.load(gpu, at.lower));
            values.store(gpu, at.upper, u.add(&v));
            values.store(gpu, at.lower, times_root(gpu, high, low, at.exponent, u.sub(&v)));
        }
    }

    /// Stage `stage` of decimation in time with the arguments of
    /// [`ntt_strip_dif`](super::ntt_strip_dif): with inverse roots it undoes it, up to a factor 2. It comes
    /// after the transforms of one row each, from `stage` `rows − 1` down to 0.
    pub fn ntt_strip_dit(gpu, log2: u32, rows: u32, stage: u32, coset: u32, columns: u32, first: u32,
        values: GlobalMut<Fr>, high: Global<FixedFr>, low: Global<FixedFr>)
    limits { threads: 256, min_blocks: 3, registers: 80, shared: 0 }
    {
        let strip = Strip { log2, rows, columns, first };
        if let Some(at) = strip.butterfly(gpu, stage, coset) {
            let v = times_root(gpu, high, low, at.exponent, values.load(gpu, at.lower));
            let u = values.load(gpu, at.upper);
            values.store(gpu, at.upper, u.add(&v));
            values.store(gpu, at.lower, u.sub(&v));
        }
    }
}
