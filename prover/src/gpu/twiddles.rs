//! The tables of a transform on a device: roots of unity and twiddle factors, in the kernels' order.

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_field::{FixedFr, Fr, casts};
use cuzk_kernels::Global;
use cuzk_kernels::ntt::{Columns, ROOTS_LOG2};
use cuzk_kernels::runtime::{DeviceBuffer, Runtime, RuntimeError};
use ff::Field;
use rayon::prelude::*;

use super::ntt::Direction;
use crate::ntt::{NttError, root_of_unity};

/// Entries that one task makes.
const CHUNK: usize = 1 << 10;

/// A table in device memory: entries of 64 bytes as four planes of 16-byte words.
pub(super) struct Planes(DeviceBuffer<[u32; 4]>);

impl Planes {
    /// The address that the kernels take.
    pub(super) fn global(&self) -> Global<FixedFr> {
        self.0.global().cast()
    }

    /// `entry(i)` for i < len.
    fn new(
        runtime: &Arc<dyn Runtime>,
        len: usize,
        entry: impl Fn(u32) -> Scalar + Sync,
    ) -> Result<Self, RuntimeError> {
        let mut words = vec![[0u32; 4]; 4 * len];
        let (low, high) = words.split_at_mut(2 * len);
        let ((a, b), (c, d)) = (low.split_at_mut(len), high.split_at_mut(len));
        (
            a.par_chunks_mut(CHUNK),
            b.par_chunks_mut(CHUNK),
            c.par_chunks_mut(CHUNK),
            d.par_chunks_mut(CHUNK),
        )
            .into_par_iter()
            .enumerate()
            .for_each(|(chunk, (a, b, c, d))| {
                for k in 0..a.len() {
                    let factor = fixed(entry((chunk * CHUNK + k) as u32));
                    let half = |limbs: &[u32; 8], at: usize| std::array::from_fn(|i| limbs[at + i]);
                    (a[k], b[k]) = (half(factor.value(), 0), half(factor.value(), 4));
                    (c[k], d[k]) = (half(factor.quotient(), 0), half(factor.quotient(), 4));
                }
            });
        DeviceBuffer::from_slice(runtime, &words).map(Planes)
    }
}

/// The factors between a pass and the rest of its transform.
pub(super) struct Twiddles {
    near: Planes,
    far: Option<Planes>,
}

impl Twiddles {
    /// The factors of a pass over blocks of 2^`block` elements, each times `scale`; on the coset or not.
    pub(super) fn new(
        runtime: &Arc<dyn Runtime>,
        columns: Columns,
        block: u32,
        direction: Direction,
        coset: bool,
        scale: Scalar,
    ) -> Result<Self, super::ntt::TransformError> {
        // Exponents of the 2N-th root: (2c + 1)·f on the coset, 2c·f otherwise.
        let powers = Powers::new(block + 1, direction)?;
        let reversed = |row: u32| u64::from(row.reverse_bits() >> (32 - columns.stages));
        let odd = u64::from(coset);
        let near = Planes::new(runtime, columns.near_len() as usize, |entry| {
            let (column, row) = columns.near_entry(entry);
            powers.get((2 * u64::from(column) + odd) * reversed(row)) * scale
        })?;
        let far = (columns.near < columns.distance)
            .then(|| {
                Planes::new(runtime, columns.far_len() as usize, |entry| {
                    let (column, row) = columns.far_entry(entry);
                    powers.get((u64::from(column) << (columns.near + 1)) * reversed(row))
                })
            })
            .transpose()?;
        Ok(Twiddles { near, far })
    }

    /// How many tables, each of which takes a product.
    pub(super) fn tables(&self) -> u8 {
        1 + u8::from(self.far.is_some())
    }

    /// The near and the far table's addresses.
    pub(super) fn addresses(&self) -> (Global<FixedFr>, Global<FixedFr>) {
        let none = Global::at_address(0);
        (
            self.near.global(),
            self.far.as_ref().map_or(none, Planes::global),
        )
    }
}

/// The roots inside of tiles; see [`ROOTS_LOG2`].
pub(super) fn tile_roots(
    runtime: &Arc<dyn Runtime>,
    direction: Direction,
) -> Result<Planes, super::ntt::TransformError> {
    let powers = Powers::new(ROOTS_LOG2, direction)?;
    let roots = Planes::new(runtime, 1 << ROOTS_LOG2, |entry| {
        match entry.checked_ilog2() {
            // w_(2^t)^i with t − 1 the entry's logarithm
            Some(half) => powers.get(u64::from(entry - (1 << half)) << (ROOTS_LOG2 - 1 - half)),
            None => Scalar::ONE,
        }
    })?;
    Ok(roots)
}

/// w^0 to w^(len − 1) times `scale`, for w of order 2^`order`.
pub(super) fn powers(
    runtime: &Arc<dyn Runtime>,
    order: u32,
    direction: Direction,
    len: usize,
    scale: Scalar,
) -> Result<DeviceBuffer<FixedFr>, super::ntt::TransformError> {
    let powers = Powers::new(order, direction)?;
    let table: Vec<FixedFr> = (0..len as u64)
        .map(|i| fixed(powers.get(i) * scale))
        .collect();
    Ok(DeviceBuffer::from_slice(runtime, &table)?)
}

/// Any power of a root of unity by one product.
struct Powers {
    order: u32,
    low_log2: u32,
    low: Vec<Scalar>,
    high: Vec<Scalar>,
}

impl Powers {
    fn new(order: u32, direction: Direction) -> Result<Self, NttError> {
        let w = root(order, direction)?;
        let low_log2 = order.div_ceil(2);
        let powers = |w: Scalar, log2: u32| {
            std::iter::successors(Some(Scalar::ONE), |x| Some(x * w))
                .take(1 << log2)
                .collect()
        };
        Ok(Powers {
            order,
            low_log2,
            low: powers(w, low_log2),
            high: powers(w.pow_vartime([1u64 << low_log2]), order - low_log2),
        })
    }

    fn get(&self, exponent: u64) -> Scalar {
        let exponent = (exponent & ((1 << self.order) - 1)) as usize;
        self.low[exponent & ((1 << self.low_log2) - 1)] * self.high[exponent >> self.low_log2]
    }
}

/// w_n for n = 2^`log2`, or its inverse.
fn root(log2: u32, direction: Direction) -> Result<Scalar, NttError> {
    let w = root_of_unity(log2)?;
    Ok(match direction {
        Direction::Forward => w,
        // w^(n − 1)
        Direction::Inverse => w.pow_vartime([(1u64 << log2) - 1]),
    })
}

/// A factor for repeated multiplication.
pub(super) fn fixed(factor: Scalar) -> FixedFr {
    FixedFr::new(&casts::from_blst::<Fr>(&[factor])[0])
}
