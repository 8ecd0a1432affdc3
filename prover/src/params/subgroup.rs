//! Checks that many curve points are all in the subgroup of prime order.
//!
//! One check by the endomorphism costs about as much as a thousand field multiplications. For long
//! runs the points are therefore thrown into random buckets and only the sums are checked. Let a
//! point's error be its component outside of the subgroup. Place all points but one with a non-zero
//! error: the last one makes every bucket's error vanish for at most one of the `BUCKETS` choices.
//! So a round misses a bad point with probability at most 1 / `BUCKETS`, whatever the points are,
//! and `ROUNDS` independent rounds miss it with probability at most 2^-42. The random choices are
//! drawn afresh for each check, so that nobody can prepare points for them.

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use group::Group;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;

use super::{
    PointFault,
    point::{BLOCK, Encoded},
};

/// Buckets of one round.
const BUCKETS: usize = 1 << 14;
/// Rounds.
const ROUNDS: u64 = 3;
/// Runs up to this length are checked point by point, which is cheaper there.
const SMALL: usize = 4 * BUCKETS;
/// Blocks of points that share one set of buckets.
const BLOCKS_PER_TASK: usize = 64;

/// How much [`super::Params`] checks that points are in the subgroup of prime order. That they are
/// on the curve is always checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubgroupCheck {
    /// Every point of the file; long runs by random sums that miss a bad point with probability
    /// below 2^-42.
    #[default]
    Full,
    /// Only the verifying key's points; for files whose digest has been checked otherwise, or that
    /// this process has just written.
    KeyOnly,
}

/// The arithmetic that the sums need.
pub(crate) trait Sums: Encoded {
    /// The type that sums have.
    type Sum: Copy + Send + Sync;
    /// The empty sum.
    fn zero() -> Self::Sum;
    /// Adds a point to a sum.
    fn add(sum: &mut Self::Sum, point: &Self);
    /// Adds a sum to a sum.
    fn merge(sum: &mut Self::Sum, other: &Self::Sum);
    /// Whether a sum is in the subgroup of prime order.
    fn sum_in_subgroup(sum: &Self::Sum) -> bool;
}

macro_rules! impl_sums {
    ($affine:ty, $projective:ty) => {
        impl Sums for $affine {
            type Sum = $projective;

            fn zero() -> Self::Sum {
                <$projective>::identity()
            }

            fn add(sum: &mut Self::Sum, point: &Self) {
                *sum += point;
            }

            fn merge(sum: &mut Self::Sum, other: &Self::Sum) {
                *sum += other;
            }

            fn sum_in_subgroup(sum: &Self::Sum) -> bool {
                <$affine>::from(sum).in_subgroup()
            }
        }
    };
}

impl_sums!(G1Affine, G1Projective);
impl_sums!(G2Affine, G2Projective);

/// Returns the position of a point outside of the subgroup, if there is one; the first one where
/// points are checked one by one.
pub(crate) fn find_outside<P: Sums>(points: &[P], seed: [u8; 32]) -> Option<(usize, PointFault)> {
    let outside = if points.len() <= SMALL {
        first_outside(points)
    } else {
        (0..ROUNDS).find_map(|round| find_by_sums(points, &Placement { seed, round }))
    };
    outside.map(|index| (index, PointFault::OutsideSubgroup))
}

/// Checks point by point.
fn first_outside<P: Encoded>(points: &[P]) -> Option<usize> {
    points
        .par_iter()
        .position_first(|point| !point.in_subgroup())
}

/// The random buckets of one round.
struct Placement {
    seed: [u8; 32],
    round: u64,
}

impl Placement {
    /// The buckets of the points of block `block`, in order.
    fn buckets(&self, block: usize) -> impl Iterator<Item = usize> + use<> {
        let mut rng = ChaCha8Rng::from_seed(self.seed);
        rng.set_stream((self.round << 48) | block as u64);
        std::iter::repeat_with(move || rng.next_u32() as usize % BUCKETS)
    }
}

/// One round of random sums; when a sum is outside, its points are checked one by one.
fn find_by_sums<P: Sums>(points: &[P], placement: &Placement) -> Option<usize> {
    let sums = points
        .par_chunks(BLOCK * BLOCKS_PER_TASK)
        .enumerate()
        .map(|(task, points)| task_sums(points, task * BLOCKS_PER_TASK, placement))
        .reduce_with(|mut left, right| {
            left.iter_mut()
                .zip(&right)
                .for_each(|(sum, other)| P::merge(sum, other));
            left
        })?;
    let bucket = sums
        .par_iter()
        .position_first(|sum| !P::sum_in_subgroup(sum))?;
    points
        .chunks(BLOCK)
        .enumerate()
        .find_map(|(block, points)| {
            placement
                .buckets(block)
                .zip(points)
                .position(|(at, point)| at == bucket && !point.in_subgroup())
                .map(|i| block * BLOCK + i)
        })
}

/// The bucket sums of the points of one task, whose first block is `first_block`.
fn task_sums<P: Sums>(points: &[P], first_block: usize, placement: &Placement) -> Vec<P::Sum> {
    let mut sums = vec![P::zero(); BUCKETS];
    for (i, points) in points.chunks(BLOCK).enumerate() {
        for (bucket, point) in placement.buckets(first_block + i).zip(points) {
            P::add(&mut sums[bucket], point);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use blstrs::Scalar;
    use ff::Field;

    use super::*;

    /// A point of the curve outside of the subgroup.
    fn outside() -> G1Affine {
        (1u64..)
            .find_map(|x| {
                let mut bytes = [0u8; 48];
                bytes[0] = 0x80;
                bytes[40..].copy_from_slice(&x.to_be_bytes());
                let point = Option::<G1Affine>::from(G1Affine::from_compressed_unchecked(&bytes))?;
                (!point.in_subgroup()).then_some(point)
            })
            .unwrap()
    }

    /// `n` points of the subgroup, cheap to make.
    fn inside(n: usize) -> Vec<G1Affine> {
        let step = G1Affine::from(G1Projective::generator() * Scalar::ONE.double());
        let mut sum = G1Projective::generator();
        let mut points = Vec::with_capacity(n);
        for _ in 0..n {
            points.push(G1Affine::from(&sum));
            sum += &step;
        }
        points
    }

    #[test]
    fn a_short_run_names_the_first_point_outside() {
        let mut points = inside(100);
        assert_eq!(find_outside(&points, [1; 32]), None);
        points[70] = outside();
        points[31] = outside();
        assert_eq!(
            find_outside(&points, [1; 32]),
            Some((31, PointFault::OutsideSubgroup))
        );
    }

    #[test]
    fn a_long_run_of_good_points_passes_and_one_bad_point_is_named() {
        let base = inside(2000);
        let mut points: Vec<_> = base.iter().copied().cycle().take(SMALL + 777).collect();
        assert_eq!(find_outside(&points, [2; 32]), None);
        points[SMALL - 5] = outside();
        assert_eq!(
            find_outside(&points, [3; 32]),
            Some((SMALL - 5, PointFault::OutsideSubgroup))
        );
    }

    #[test]
    fn errors_that_cancel_in_a_plain_sum_are_found() {
        let base = inside(2000);
        let mut points: Vec<_> = base.iter().copied().cycle().take(SMALL + 1).collect();
        points[10] = outside();
        points[20000] = -outside();
        let found = find_outside(&points, [4; 32]).map(|(i, _)| i);
        assert!(matches!(found, Some(10 | 20000)), "{found:?}");
    }
}
