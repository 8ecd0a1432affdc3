//! The quotient on a domain whose arrays do not fit the device.
//!
//! The array of n elements is seen as 2^k rows. The outer k stages of a transform join elements of the
//! same column, so they run on strips of columns (`cuzk_kernels::ntt::ntt_strip_dif`); what is left are 2^k
//! transforms of one row each, which are ordinary transforms of n/2^k elements, on the roots of unity and
//! on the coset alike. Arrays stay in host memory between four walks over them:
//!
//! 1. strips of a, b and c = a·b: outer stages of the inverse transforms;
//! 2. rows: the rest of the inverse transforms, and the inner stages of a's and b's forward transforms on
//!    the coset;
//! 3. strips: the outer stages of those, d = a·b, and the outer stages of d's inverse transform;
//! 4. rows: the rest of d's inverse transform and h = (c − d)/2, which is handed on row by row.
//!
//! Row q ends as the coefficients h_i with i = i'·2^k + (q with its k bits reversed), in order of i'.
//! 9·n elements go to the device and 7·n come back.

use std::sync::Arc;

use blstrs::Scalar;
use bytemuck::Zeroable;
use cuzk_field::{FixedFr, Fr, casts};
use cuzk_kernels::ntt::{LOW_LOG2, ntt_multiply, ntt_quotient, ntt_strip_dif, ntt_strip_dit};
use cuzk_kernels::runtime::{Arena, DeviceBuffer, Runtime, RuntimeError};
use cuzk_kernels::{Element, GlobalMut, Launch};
use ff::{Field, PrimeField};

use super::ntt::{At, Direction, Transform, TransformError};
use super::twiddles::{fixed, powers};

/// The quotient of systems on one domain in 2^k parts.
pub struct PartedQuotient {
    runtime: Arc<dyn Runtime>,
    log2: u32,
    rows: u32,
    to_coefficients: Parted,
    to_coset: Parted,
    from_coset: Parted,
    /// 1/(2n).
    scale: DeviceBuffer<FixedFr>,
}

/// One transform: the inner one of each row, and the roots of the outer stages.
struct Parted {
    inner: Transform,
    coset: bool,
    high: DeviceBuffer<FixedFr>,
    low: DeviceBuffer<FixedFr>,
}

/// The arrays between the walks, n elements each, kept from one proof to the next.
#[derive(Default)]
pub struct HostArrays {
    a: Vec<Fr>,
    b: Vec<Fr>,
    c: Vec<Fr>,
}

impl HostArrays {
    fn resize(&mut self, n: usize) {
        for array in [&mut self.a, &mut self.b, &mut self.c] {
            array.resize(n, Fr::zeroed());
        }
    }
}

/// Bytes of the arena that walks over strips of so many columns take.
pub fn strip_bytes(rows: u32, columns: usize) -> u64 {
    3 * Arena::bytes::<Fr>(columns << rows)
}

/// Device memory of the tables for 2^`log2` elements in 2^`rows` rows.
pub fn table_bytes(log2: u32, rows: u32) -> u64 {
    let inner = super::quotient::table_bytes(log2 - rows);
    let outer =
        |coset: u32| 64 * ((1u64 << (log2 + coset).saturating_sub(LOW_LOG2)) + (1 << LOW_LOG2));
    inner + outer(0) + 2 * outer(1)
}

impl Parted {
    fn new(
        runtime: &Arc<dyn Runtime>,
        log2: u32,
        rows: u32,
        direction: Direction,
        at: At,
        scale: Scalar,
    ) -> Result<Self, TransformError> {
        let coset = at == At::OddRoots;
        let order = log2 + u32::from(coset);
        let far = order.saturating_sub(LOW_LOG2);
        let inner = match at {
            At::Roots => Transform::new(runtime, log2 - rows, direction, at)?,
            At::OddRoots => Transform::scaled_on_coset(runtime, log2 - rows, direction, scale)?,
        };
        Ok(Parted {
            inner,
            coset,
            high: powers(runtime, far, direction, 1 << far, Scalar::ONE)?,
            low: powers(runtime, order, direction, 1 << LOW_LOG2, Scalar::ONE)?,
        })
    }
}

type StripLaunch = fn(
    (u32, u32),
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    GlobalMut<Fr>,
    cuzk_kernels::Global<FixedFr>,
    cuzk_kernels::Global<FixedFr>,
) -> Launch;

impl PartedQuotient {
    /// Prepares the domain of 2^`log2` points in 2^`rows` parts; `rows` is at least 1 and below `log2`.
    ///
    /// # Errors
    /// When the domain does not exist or is too large, or the device fails.
    pub fn new(runtime: &Arc<dyn Runtime>, log2: u32, rows: u32) -> Result<Self, TransformError> {
        let inverse = Scalar::TWO_INV.pow_vartime([u64::from(log2)]);
        let scale = fixed(inverse * Scalar::TWO_INV);
        let parted = |direction, at, scale| Parted::new(runtime, log2, rows, direction, at, scale);
        Ok(PartedQuotient {
            runtime: runtime.clone(),
            log2,
            rows,
            to_coefficients: parted(Direction::Inverse, At::Roots, Scalar::ONE)?,
            to_coset: parted(Direction::Forward, At::OddRoots, inverse)?,
            from_coset: parted(Direction::Inverse, At::OddRoots, Scalar::ONE)?,
            scale: DeviceBuffer::from_slice(runtime, &[scale])?,
        })
    }

    /// Binary logarithms of the domain's size and of the number of parts.
    pub fn size(&self) -> (u32, u32) {
        (self.log2, self.rows)
    }

    /// Elements of a part.
    pub fn part_len(&self) -> usize {
        1 << (self.log2 - self.rows)
    }

    /// The first coefficient of part q; the others follow at distances of 2^k.
    pub fn first_coefficient(&self, part: usize) -> usize {
        part.reverse_bits() >> (usize::BITS - self.rows)
    }

    /// The first three walks: `sources` are the values of A and B, at most n each; `columns` is the width of
    /// the strips, a power of two. `go_on` is asked between steps.
    ///
    /// # Errors
    /// When the device fails, the arena has less than [`strip_bytes`], or `go_on` says no.
    pub fn walk<E: From<RuntimeError>>(
        &self,
        arena: &mut Arena,
        sources: [&[Scalar]; 2],
        host: &mut HostArrays,
        columns: usize,
        go_on: impl Fn() -> Result<(), E>,
    ) -> Result<(), E> {
        host.resize(1 << self.log2);
        let columns = columns.min(self.part_len());
        for first in (0..self.part_len()).step_by(columns) {
            go_on()?;
            self.outer_inverse(arena, sources, host, first, columns)?;
        }
        for part in 0..1 << self.rows {
            go_on()?;
            self.inner(arena, host, part)?;
        }
        for first in (0..self.part_len()).step_by(columns) {
            go_on()?;
            self.outer_coset(arena, host, first, columns)?;
        }
        Ok(())
    }

    /// Part q of the quotient's coefficients. Takes three parts from the arena, of which the one that is
    /// returned comes first.
    ///
    /// # Errors
    /// When the device fails or the arena is full.
    pub fn part(
        &self,
        arena: &mut Arena,
        host: &HostArrays,
        part: usize,
    ) -> Result<GlobalMut<Fr>, RuntimeError> {
        let len = self.part_len();
        let h = arena.take::<Fr>(len)?;
        let mark = arena.mark();
        let (c, d) = (arena.take::<Fr>(len)?, arena.take::<Fr>(len)?);
        let range = part * len..(part + 1) * len;
        upload(&*self.runtime, c, &host.c[range.clone()])?;
        upload(&*self.runtime, d, &host.a[range])?;
        self.from_coset.inner.dif(d.read(), d)?;
        let scale = self.scale.global();
        let log2 = self.log2 - self.rows;
        let blocks = (len as u32).div_ceil(ntt_quotient::THREADS);
        self.runtime.launch(&ntt_quotient::launch(
            blocks,
            log2,
            scale,
            c.read(),
            d.read(),
            h,
        ))?;
        arena.rewind(mark);
        Ok(h)
    }

    /// First walk, one strip.
    fn outer_inverse(
        &self,
        arena: &mut Arena,
        sources: [&[Scalar]; 2],
        host: &mut HostArrays,
        first: usize,
        columns: usize,
    ) -> Result<(), RuntimeError> {
        let mark = arena.mark();
        let count = columns << self.rows;
        let [a, b, c] = [arena.take(count)?, arena.take(count)?, arena.take(count)?];
        for (strip, source) in [a, b].into_iter().zip(sources) {
            self.upload_strip(strip, casts::from_blst::<Fr>(source), first, columns)?;
        }
        let blocks = (count as u32).div_ceil(ntt_multiply::THREADS);
        let product = ntt_multiply::launch(blocks, count as u32, a.read(), b.read(), c);
        self.runtime.launch(&product)?;
        for strip in [a, b, c] {
            self.dif(&self.to_coefficients, strip, first, columns)?;
        }
        for (strip, array) in [(a, &mut host.a), (b, &mut host.b), (c, &mut host.c)] {
            self.download_strip(strip, array, first, columns)?;
        }
        arena.rewind(mark);
        Ok(())
    }

    /// Second walk, one row.
    fn inner(
        &self,
        arena: &mut Arena,
        host: &mut HostArrays,
        part: usize,
    ) -> Result<(), RuntimeError> {
        let mark = arena.mark();
        let len = self.part_len();
        let range = part * len..(part + 1) * len;
        let row = arena.take::<Fr>(len)?;
        for (array, to_coset) in [
            (&mut host.a, true),
            (&mut host.b, true),
            (&mut host.c, false),
        ] {
            let values = &mut array[range.clone()];
            upload(&*self.runtime, row, values)?;
            self.to_coefficients.inner.dif(row.read(), row)?;
            if to_coset {
                self.to_coset.inner.dit(row.read(), row)?;
            }
            let values = bytemuck::cast_slice_mut(values);
            self.runtime.download(row.address(), values)?;
        }
        arena.rewind(mark);
        Ok(())
    }

    /// Third walk, one strip; d takes a's place.
    fn outer_coset(
        &self,
        arena: &mut Arena,
        host: &mut HostArrays,
        first: usize,
        columns: usize,
    ) -> Result<(), RuntimeError> {
        let mark = arena.mark();
        let count = columns << self.rows;
        let [a, b] = [arena.take::<Fr>(count)?, arena.take::<Fr>(count)?];
        for (strip, array) in [(a, &host.a), (b, &host.b)] {
            self.upload_strip(strip, array, first, columns)?;
            self.dit(&self.to_coset, strip, first, columns)?;
        }
        let blocks = (count as u32).div_ceil(ntt_multiply::THREADS);
        let product = ntt_multiply::launch(blocks, count as u32, a.read(), b.read(), a);
        self.runtime.launch(&product)?;
        self.dif(&self.from_coset, a, first, columns)?;
        self.download_strip(a, &mut host.a, first, columns)?;
        arena.rewind(mark);
        Ok(())
    }

    fn dif(
        &self,
        transform: &Parted,
        strip: GlobalMut<Fr>,
        first: usize,
        columns: usize,
    ) -> Result<(), RuntimeError> {
        (0..self.rows).try_for_each(|stage| {
            self.stage(
                ntt_strip_dif::launch,
                transform,
                strip,
                stage,
                first,
                columns,
            )
        })
    }

    fn dit(
        &self,
        transform: &Parted,
        strip: GlobalMut<Fr>,
        first: usize,
        columns: usize,
    ) -> Result<(), RuntimeError> {
        (0..self.rows).rev().try_for_each(|stage| {
            self.stage(
                ntt_strip_dit::launch,
                transform,
                strip,
                stage,
                first,
                columns,
            )
        })
    }

    fn stage(
        &self,
        launch: StripLaunch,
        transform: &Parted,
        strip: GlobalMut<Fr>,
        stage: u32,
        first: usize,
        columns: usize,
    ) -> Result<(), RuntimeError> {
        let blocks = (columns as u32).div_ceil(ntt_strip_dif::THREADS);
        self.runtime.launch(&launch(
            (blocks, 1 << (self.rows - 1)),
            self.log2,
            self.rows,
            stage,
            transform.coset.into(),
            columns as u32,
            first as u32,
            strip,
            transform.high.global(),
            transform.low.global(),
        ))
    }

    /// Columns of all rows; zeros beyond the end of `values`.
    fn upload_strip(
        &self,
        strip: GlobalMut<Fr>,
        values: &[Fr],
        first: usize,
        columns: usize,
    ) -> Result<(), RuntimeError> {
        for row in 0..1 << self.rows {
            let start = row * self.part_len() + first;
            let there = values.len().saturating_sub(start).min(columns);
            let place = strip.offset(row * columns);
            if there > 0 {
                upload(&*self.runtime, place, &values[start..start + there])?;
            }
            if there < columns {
                let rest = u64::from(Fr::BYTES) * (columns - there) as u64;
                self.runtime.zero(place.offset(there).address(), rest)?;
            }
        }
        Ok(())
    }

    fn download_strip(
        &self,
        strip: GlobalMut<Fr>,
        array: &mut [Fr],
        first: usize,
        columns: usize,
    ) -> Result<(), RuntimeError> {
        for row in 0..1 << self.rows {
            let start = row * self.part_len() + first;
            let out = bytemuck::cast_slice_mut(&mut array[start..start + columns]);
            self.runtime
                .download(strip.offset(row * columns).address(), out)?;
        }
        Ok(())
    }
}

fn upload(runtime: &dyn Runtime, to: GlobalMut<Fr>, values: &[Fr]) -> Result<(), RuntimeError> {
    runtime.upload(to.address(), bytemuck::cast_slice(values))
}
