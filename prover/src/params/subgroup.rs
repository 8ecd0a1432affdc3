//! Checks that many curve points are all in the subgroup of prime order.
//!
//! One check by the endomorphism costs about as much as 160 additions. Long runs are therefore thrown
//! into random buckets and only the buckets' sums are checked. Let a point's error be its component
//! outside of the subgroup. Place all points but one with a non-zero error: the last one makes every
//! bucket's error vanish for at most one choice of its bucket. So a round with 2^k buckets misses a
//! bad point with probability at most 2^-k, whatever the points are, and independent rounds whose k
//! add up to 42 or more miss it with probability at most 2^-42. The random choices are drawn afresh
//! for each check, so that nobody can prepare points for them.

use blstrs::{G1Affine, G2Affine};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;

use super::point::{BLOCK, Encoded};
use crate::msm::{Buckets, Curve, G1, G2, merge};

/// The rounds that may be chosen: binary logarithm of the number of buckets, number of rounds.
const PLANS: [(u32, u64); 3] = [(9, 5), (11, 4), (14, 3)];
/// The cost of one check in additions.
const CHECK_COST: usize = 160;
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

/// A group whose points can be summed in buckets.
pub(crate) trait Summed: Encoded {
    /// The group's arithmetic.
    type Group: Curve<Affine = Self>;
}

impl Summed for G1Affine {
    type Group = G1;
}

impl Summed for G2Affine {
    type Group = G2;
}

/// A point of several runs: the run and the position in it.
pub(super) type At = (usize, usize);

/// Returns a point outside of the subgroup, if one of the runs has any.
pub(super) fn find_outside<P: Summed>(runs: &[&[P]], seed: [u8; 32]) -> Option<At> {
    let points = runs.iter().map(|run| run.len()).sum::<usize>();
    let cost = |(log2, rounds): (u32, u64)| rounds as usize * ((CHECK_COST << log2) + points);
    let plan = PLANS.into_iter().min_by_key(|plan| cost(*plan));
    match plan {
        Some((log2, rounds)) if cost((log2, rounds)) < CHECK_COST * points => {
            (0..rounds).find_map(|round| find_by_sums(runs, &Placement { seed, round, log2 }))
        }
        _ => find_one_by_one(runs),
    }
}

/// Checks point by point; returns the first point outside.
fn find_one_by_one<P: Encoded>(runs: &[&[P]]) -> Option<At> {
    runs.iter().enumerate().find_map(|(run, points)| {
        let at = points
            .par_iter()
            .position_first(|point| !point.in_subgroup())?;
        Some((run, at))
    })
}

/// The random buckets of one round.
struct Placement {
    seed: [u8; 32],
    round: u64,
    log2: u32,
}

impl Placement {
    /// The buckets of the points of a block, in order.
    fn buckets(&self, run: usize, block: usize) -> impl Iterator<Item = u32> + use<> {
        let mut rng = ChaCha8Rng::from_seed(self.seed);
        rng.set_stream((self.round << 56) | ((run as u64) << 48) | block as u64);
        let mask = (1 << self.log2) - 1;
        std::iter::repeat_with(move || rng.next_u32() & mask)
    }
}

/// One round of random sums; when a sum is outside, its points are checked one by one.
fn find_by_sums<P: Summed>(runs: &[&[P]], placement: &Placement) -> Option<At> {
    let task = BLOCK * BLOCKS_PER_TASK;
    let tasks: Vec<(usize, usize, &[P])> = runs
        .iter()
        .enumerate()
        .flat_map(|(run, points)| {
            points
                .chunks(task)
                .enumerate()
                .map(move |(i, points)| (run, i * BLOCKS_PER_TASK, points))
        })
        .collect();
    let sums = tasks
        .into_par_iter()
        .map(|(run, first_block, points)| {
            let mut buckets = Buckets::<P::Group>::new(1 << placement.log2);
            for (i, points) in points.chunks(BLOCK).enumerate() {
                for (bucket, point) in placement.buckets(run, first_block + i).zip(points) {
                    buckets.add(bucket, P::Group::load(point));
                }
            }
            buckets.finish()
        })
        .reduce_with(|mut left, right| {
            merge::<P::Group>(&mut left, &right);
            left
        })?;
    let outside = |sum| !P::Group::store(sum).in_subgroup();
    let bucket = sums.par_iter().position_first(outside)? as u32;
    runs.iter().enumerate().find_map(|(run, points)| {
        let at = find_in_bucket(points, bucket, |block| placement.buckets(run, block))?;
        Some((run, at))
    })
}

/// Checks the points of a run that fell into a bucket; returns the first one outside.
fn find_in_bucket<P: Encoded, I: Iterator<Item = u32>>(
    points: &[P],
    bucket: u32,
    buckets: impl Fn(usize) -> I,
) -> Option<usize> {
    points
        .chunks(BLOCK)
        .enumerate()
        .find_map(|(block, points)| {
            buckets(block)
                .zip(points)
                .position(|(at, point)| at == bucket && !point.in_subgroup())
                .map(|i| block * BLOCK + i)
        })
}

#[cfg(test)]
mod tests {
    use blstrs::{G1Projective, G2Projective, Scalar};
    use group::{Curve as _, Group};

    use super::*;

    /// Enough points for the plans with 2^9 and with 2^11 buckets.
    const LONG: [usize; 2] = [20_000, 1_000_000];

    /// A point of the curve outside of the subgroup.
    fn outside() -> G1Affine {
        (1u8..)
            .find_map(|x| {
                let mut bytes = [0u8; 48];
                (bytes[0], bytes[47]) = (0x80, x);
                let point = Option::<G1Affine>::from(G1Affine::from_compressed_unchecked(&bytes))?;
                (!point.in_subgroup()).then_some(point)
            })
            .unwrap()
    }

    /// `n` points of the subgroup, the first of them all different.
    fn inside(n: usize) -> Vec<G1Affine> {
        let step = G1Affine::from(G1Projective::generator() * Scalar::from(2));
        let mut sum = G1Projective::generator();
        let mut points = Vec::with_capacity(2000);
        for _ in 0..2000.min(n) {
            points.push(sum.to_affine());
            sum += &step;
        }
        points.into_iter().cycle().take(n).collect()
    }

    #[test]
    fn a_short_run_names_the_first_point_outside() {
        let mut points = inside(100);
        assert_eq!(find_outside(&[&points], [1; 32]), None);
        points[70] = outside();
        points[31] = outside();
        assert_eq!(
            find_outside(&[&inside(3)[..], &points], [1; 32]),
            Some((1, 31))
        );
    }

    #[test]
    fn good_points_pass_and_one_bad_point_is_named_however_long_the_run() {
        for n in LONG {
            let mut points = inside(n);
            assert_eq!(
                find_outside(&[&points[..n / 3], &points[n / 3..]], [2; 32]),
                None
            );
            points[n - 5] = outside();
            let found = find_outside(&[&points[..n / 3], &points[n / 3..]], [3; 32]);
            assert_eq!(found, Some((1, n - 5 - n / 3)));
        }
    }

    #[test]
    fn errors_that_cancel_in_a_plain_sum_are_found() {
        let mut points = inside(LONG[0]);
        points[10] = outside();
        points[15_000] = -outside();
        let found = find_outside(&[&points], [4; 32]);
        assert!(matches!(found, Some((0, 10 | 15_000))), "{found:?}");
    }

    #[test]
    fn no_points_are_all_inside() {
        assert_eq!(find_outside::<G1Affine>(&[], [5; 32]), None);
        assert_eq!(find_outside::<G1Affine>(&[&[]], [5; 32]), None);
    }

    #[test]
    fn points_of_g2_are_summed_as_well() {
        let base = G2Projective::generator();
        let points: Vec<_> = (1..=50u64)
            .map(|k| (base * Scalar::from(k)).to_affine())
            .collect();
        let points: Vec<G2Affine> = points.into_iter().cycle().take(LONG[0]).collect();
        assert_eq!(find_outside(&[&points], [6; 32]), None);
    }
}
