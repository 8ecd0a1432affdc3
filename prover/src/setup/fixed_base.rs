//! Many multiples of one point: tables of the base, batched affine additions.

use super::waste::Secret;
use crate::msm::{
    batch::{BATCH, Batch},
    buckets::prefetch,
    curve::{Curve, Point},
    digits::{Recoded, Windows},
};
use cuzk_circuit::Scalar;
use group::Curve as _;
use rayon::prelude::*;

/// Scalars whose results one task builds up together, window by window, so that a window's table
/// stays in the cache while it is used.
const RUN: usize = 1 << 13;
/// Windows wider than this have tables beyond the last-level cache.
const MAX_BITS: usize = 17;

/// For each window of c bits, the multiples 1·B, 2·B, … of its base B = 2^(ic)·G, as many as a
/// signed digit can ask for.
pub(super) struct FixedBase<C: Curve> {
    windows: Windows,
    tables: Vec<Vec<Point<C::Field>>>,
}

impl<C: Curve> FixedBase<C> {
    /// Tables that suit about `multiples` multiplications of `base`.
    pub(super) fn new(base: &C::Projective, multiples: usize) -> Self {
        let windows = best_windows(multiples);
        let step = 1u64 << windows.bits;
        let bases: Vec<C::Projective> =
            std::iter::successors(Some(*base), |base| Some(*base * Scalar::from(step)))
                .take(windows.count)
                .collect();
        let tables = bases
            .par_iter()
            .enumerate()
            .map(|(i, base)| multiples_of::<C>(base, windows.largest(i)))
            .collect();
        Self { windows, tables }
    }

    /// `scalars[i] · base` for all i, in parallel.
    pub(super) fn multiply(&self, scalars: &Secret) -> Vec<C::Affine> {
        scalars
            .par_chunks(RUN)
            .flat_map_iter(|run| self.multiply_run(run))
            .collect()
    }

    fn multiply_run(&self, scalars: &[Scalar]) -> Vec<C::Affine> {
        let recoded: Vec<Recoded> = scalars.iter().map(Recoded::new).collect();
        let mut sums = vec![Point::IDENTITY; scalars.len()];
        let mut batch = Batch::new();
        for (i, table) in self.tables.iter().enumerate() {
            for (block, recoded) in recoded.chunks(BATCH).enumerate() {
                self.add_window(i, table, recoded, block * BATCH, &mut batch, &mut sums);
            }
        }
        sums.iter().map(C::store).collect()
    }

    /// Adds the digits of window `i` of up to [`BATCH`] scalars to the sums from slot `first` on.
    fn add_window(
        &self,
        i: usize,
        table: &[Point<C::Field>],
        recoded: &[Recoded],
        first: usize,
        batch: &mut Batch<C::Field>,
        sums: &mut [Point<C::Field>],
    ) {
        let mut digits = [(0u32, false); BATCH];
        for (digit, recoded) in digits.iter_mut().zip(recoded) {
            *digit = recoded.digit(&self.windows, i);
            if digit.0 != 0 {
                prefetch(&table[digit.0 as usize - 1]);
            }
        }
        for (slot, (magnitude, negative)) in (first..).zip(&digits[..recoded.len()]) {
            if *magnitude == 0 {
                continue;
            }
            let point = table[*magnitude as usize - 1].negated_if(*negative);
            if sums[slot].is_identity() {
                sums[slot] = point;
            } else {
                batch.push(slot as u32, point);
            }
        }
        batch.flush(sums);
    }
}

/// The window width with the fewest additions, tables included.
fn best_windows(multiples: usize) -> Windows {
    let cost = |windows: &Windows| windows.count * (multiples + (1 << (windows.bits - 1)));
    (2..=MAX_BITS)
        .map(Windows::new)
        .min_by_key(cost)
        .unwrap_or(Windows::new(2))
}

/// The table of `cuzk_kernels::fixed_base` for `windows` windows of `bits` bits: window after window,
/// 2^(bits−1) multiples each.
pub(crate) fn table_of_multiples<C: Curve>(
    base: &C::Projective,
    bits: u32,
    windows: u32,
) -> Vec<C::Affine> {
    let step = Scalar::from(1u64 << bits);
    let bases: Vec<C::Projective> = std::iter::successors(Some(*base), |base| Some(*base * step))
        .take(windows as usize)
        .collect();
    let parts: Vec<Vec<C::Affine>> = bases
        .par_iter()
        .map(|base| {
            let multiples = multiples_of::<C>(base, 1 << (bits - 1));
            multiples.iter().map(C::store).collect()
        })
        .collect();
    parts.concat()
}

/// 1·B … count·B, doubling the list again and again: the second half is the first half plus its
/// last entry, added in batches.
fn multiples_of<C: Curve>(base: &C::Projective, count: usize) -> Vec<Point<C::Field>> {
    let mut multiples = Vec::with_capacity(count);
    multiples.push(C::load(&base.to_affine()));
    let mut batch = Batch::new();
    while multiples.len() < count {
        let known = multiples.len();
        let last = multiples[known - 1];
        let more = known.min(count - known);
        multiples.extend_from_within(..more);
        for slot in known..known + more {
            batch.push(slot as u32, last);
            if batch.is_full() {
                batch.flush(&mut multiples);
            }
        }
        batch.flush(&mut multiples);
    }
    multiples
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msm::curve::{G1, G2};
    use ff::Field;
    use group::Group;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn scalars(rng: &mut ChaCha20Rng, n: usize) -> Vec<Scalar> {
        let mut scalars = vec![Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(2)];
        scalars.extend((0..n).map(|_| Scalar::random(&mut *rng)));
        scalars
    }

    fn check<C: Curve>(rng: &mut ChaCha20Rng, n: usize, expected_use: usize)
    where
        C::Affine: PartialEq + std::fmt::Debug,
    {
        let base = C::Projective::random(&mut *rng);
        let scalars = scalars(rng, n);
        let expected: Vec<C::Affine> = scalars.iter().map(|k| (base * k).to_affine()).collect();
        let table = FixedBase::<C>::new(&base, expected_use);
        assert_eq!(table.multiply(&Secret(scalars)), expected);
    }

    #[test]
    fn multiples_equal_those_of_double_and_add() {
        let mut rng = ChaCha20Rng::seed_from_u64(21);
        check::<G1>(&mut rng, 0, 0);
        check::<G1>(&mut rng, 100, 100);
        check::<G1>(&mut rng, 300, 100_000);
        check::<G2>(&mut rng, 50, 50);
        check::<G2>(&mut rng, 100, 3_000);
    }
}
