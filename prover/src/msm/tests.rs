//! Multi-scalar multiplication against a naive sum, over lengths and edge cases.

use super::*;
use ff::Field;
use group::{Curve as _, Group};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

fn naive<C: Curve>(bases: &[C::Affine], scalars: &[Scalar]) -> C::Projective {
    bases
        .iter()
        .zip(scalars)
        .fold(C::Projective::identity(), |sum, (base, scalar)| {
            sum + (*base).into() * *scalar
        })
}

/// Points with repetitions, opposites and identities among them.
fn mixed_points<C: Curve>(rng: &mut ChaCha20Rng, n: usize) -> Vec<C::Affine>
where
    C::Projective: group::Curve<AffineRepr = C::Affine>,
{
    let mut points: Vec<C::Affine> = Vec::with_capacity(n);
    for _ in 0..n {
        let earlier = points
            .get(rng.next_u32() as usize % points.len().max(1))
            .copied();
        points.push(match (rng.next_u32() % 8, earlier) {
            (0, _) => C::Affine::default(),
            (1, Some(point)) => point,
            (2, Some(point)) => (-point.into()).to_affine(),
            _ => C::Projective::random(&mut *rng).to_affine(),
        });
    }
    points
}

fn mixed_scalars(rng: &mut ChaCha20Rng, n: usize) -> Vec<Scalar> {
    (0..n)
        .map(|_| match rng.next_u32() % 10 {
            0 => Scalar::ZERO,
            1 | 2 => Scalar::ONE,
            3 => -Scalar::ONE,
            4 => Scalar::from(2).invert().unwrap(),
            5 => Scalar::from(u64::from(rng.next_u32() % 3)),
            _ => Scalar::random(&mut *rng),
        })
        .collect()
}

#[test]
fn every_length_up_to_300_equals_the_naive_sum() {
    let mut rng = ChaCha20Rng::seed_from_u64(11);
    let bases = mixed_points::<G1>(&mut rng, 300);
    let scalars = mixed_scalars(&mut rng, 300);
    let mut expected = G1Projective::identity();
    for n in 0..=300 {
        assert_eq!(g1(&bases[..n], &scalars[..n]), expected, "{n} points");
        let compact = CompactScalars::from(&scalars[..n]);
        assert_eq!(g1_compact(&bases, &compact, None), expected, "{n} points");
        if n < 300 {
            expected += bases[n] * scalars[n];
        }
    }
}

#[test]
fn g2_equals_the_naive_sum() {
    let mut rng = ChaCha20Rng::seed_from_u64(12);
    for n in [0, 1, 2, 3, 17, 64, 150] {
        let bases = mixed_points::<G2>(&mut rng, n);
        let scalars = mixed_scalars(&mut rng, n);
        let expected = naive::<G2>(&bases, &scalars);
        assert_eq!(g2(&bases, &scalars), expected, "{n} points");
        let compact = CompactScalars::from(scalars.as_slice());
        assert_eq!(g2_compact(&bases, &compact, None), expected, "{n} points");
    }
}

#[test]
fn long_inputs_equal_the_sum_computed_with_known_logarithms() {
    let mut rng = ChaCha20Rng::seed_from_u64(13);
    for n in [5_000, 70_000] {
        // Pᵢ = (i + 1)·G, so the sum is (Σ kᵢ·(i + 1))·G.
        let generator = G1Projective::generator();
        let points: Vec<G1Projective> =
            std::iter::successors(Some(generator), |p| Some(p + generator))
                .take(n)
                .collect();
        let mut bases = vec![G1Affine::default(); n];
        G1Projective::batch_normalize(&points, &mut bases);
        let scalars: Vec<Scalar> = (0..n).map(|_| Scalar::random(&mut rng)).collect();
        let logarithm = scalars
            .iter()
            .zip(1u64..)
            .fold(Scalar::ZERO, |sum, (k, i)| sum + k * Scalar::from(i));
        assert_eq!(g1(&bases, &scalars), generator * logarithm, "{n} points");
    }
}

#[test]
fn all_points_in_one_bucket_are_summed_exactly() {
    let mut rng = ChaCha20Rng::seed_from_u64(14);
    for scalar in [Scalar::ONE, -Scalar::ONE, Scalar::random(&mut rng)] {
        for point in [G1Projective::generator(), G1Projective::random(&mut rng)] {
            let n = 5_000;
            let bases = vec![point.to_affine(); n];
            let scalars = vec![scalar; n];
            let expected = point * (scalar * Scalar::from(n as u64));
            assert_eq!(g1(&bases, &scalars), expected);
            let compact = CompactScalars::from(scalars.as_slice());
            assert_eq!(g1_compact(&bases, &compact, None), expected);
        }
    }
}

#[test]
fn opposite_points_cancel_and_identities_do_not_matter() {
    let point = G1Projective::generator().to_affine();
    let bases: Vec<G1Affine> = (0..3_000)
        .map(|i| match i % 3 {
            0 => point,
            1 => -point,
            _ => G1Affine::default(),
        })
        .collect();
    let scalars = vec![Scalar::from(77); bases.len()];
    assert!(bool::from(g1(&bases, &scalars).is_identity()));
    let ones = CompactScalars::from(vec![Scalar::ONE; bases.len()].as_slice());
    assert!(bool::from(g1_compact(&bases, &ones, None).is_identity()));
}

#[test]
fn only_dense_scalars_consume_bases() {
    for seed in 0..20u64 {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let n = rng.next_u32() as usize % 700;
        let scalars = mixed_scalars(&mut rng, n);
        let density: Bitmap = (0..n).map(|_| rng.next_u32() % 3 != 0).collect();
        let bases = mixed_points::<G1>(&mut rng, density.count_ones());
        let dense: Vec<Scalar> = density.iter_ones().map(|i| scalars[i]).collect();
        let expected = naive::<G1>(&bases, &dense);
        let compact = CompactScalars::from(scalars.as_slice());
        assert_eq!(
            g1_compact(&bases, &compact, Some(&density)),
            expected,
            "seed {seed}"
        );
    }
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let mut rng = ChaCha20Rng::seed_from_u64(15);
    let bases = mixed_points::<G1>(&mut rng, 3_000);
    let scalars = mixed_scalars(&mut rng, 3_000);
    let expected = naive::<G1>(&bases, &scalars);
    for threads in [1, 3, 7, 16] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        assert_eq!(
            pool.install(|| g1(&bases, &scalars)),
            expected,
            "{threads} threads"
        );
    }
}
