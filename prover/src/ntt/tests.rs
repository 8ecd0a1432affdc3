//! Transforms against a naive evaluation, round trips, and refused sizes.

use super::*;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

fn random(rng: &mut ChaCha20Rng, n: usize) -> Vec<Scalar> {
    (0..n).map(|_| Scalar::random(&mut *rng)).collect()
}

fn evaluate_at(coefficients: &[Scalar], x: Scalar) -> Scalar {
    coefficients
        .iter()
        .rev()
        .fold(Scalar::ZERO, |value, c| value * x + c)
}

/// The points in natural order.
fn points(domain: &Domain, points: Points) -> Vec<Scalar> {
    let first = match points {
        Points::Subgroup => Scalar::ONE,
        Points::Coset => Scalar::MULTIPLICATIVE_GENERATOR,
    };
    std::iter::successors(Some(first), |x| Some(x * domain.root()))
        .take(domain.len())
        .collect()
}

#[test]
fn small_domains_equal_the_naive_evaluation() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    for log2 in 0..=9 {
        let domain = Domain::new(log2).unwrap();
        let coefficients = random(&mut rng, domain.len());
        for kind in [Points::Subgroup, Points::Coset] {
            let expected: Vec<Scalar> = points(&domain, kind)
                .into_iter()
                .map(|x| evaluate_at(&coefficients, x))
                .collect();
            let mut values = coefficients.clone();
            domain.evaluate(&mut values, kind).unwrap();
            assert_eq!(values, expected, "2^{log2} {kind:?}");
            domain.interpolate(&mut values, kind).unwrap();
            assert_eq!(values, coefficients, "2^{log2} {kind:?}");
        }
    }
}

#[test]
fn domains_beyond_one_block_equal_the_naive_evaluation_at_some_points() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    for log2 in [12, 13, 14, 15, 18] {
        let domain = Domain::new(log2).unwrap();
        let coefficients = random(&mut rng, domain.len());
        for kind in [Points::Subgroup, Points::Coset] {
            let points = points(&domain, kind);
            let mut values = coefficients.clone();
            domain.evaluate(&mut values, kind).unwrap();
            for i in [0, 1, 2, 77, domain.len() / 2, domain.len() - 1] {
                let expected = evaluate_at(&coefficients, points[i]);
                assert_eq!(values[i], expected, "2^{log2} {kind:?} point {i}");
            }
            domain.interpolate(&mut values, kind).unwrap();
            assert!(values == coefficients, "2^{log2} {kind:?}");
        }
    }
}

#[test]
fn two_passes_over_columns_equal_one_after_the_other() {
    // Two passes are needed from 2^23 on; here the plan is cut by hand.
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let domain = Domain::new(16).unwrap();
    let coefficients = random(&mut rng, domain.len());
    let twiddles = domain.twiddles.forward(Points::Coset);
    let mut whole = coefficients.clone();
    Plan::new(16).forward(&mut whole, &twiddles);
    let plan = Plan::with_columns(16, vec![(0, 1), (1, 2)]);
    let mut cut = coefficients.clone();
    plan.forward(&mut cut, &twiddles);
    assert!(whole == cut);
    plan.inverse(&mut cut, &domain.twiddles.inverse(Points::Coset));
    cut.iter_mut().for_each(|x| *x *= domain.len_inverse());
    assert!(cut == coefficients);
}

#[test]
fn the_smallest_sufficient_domain_is_chosen() {
    for (len, log2) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (1025, 11)] {
        assert_eq!(Domain::for_len(len).unwrap().log2(), log2, "{len}");
    }
}

#[test]
fn sizes_beyond_the_field_and_wrong_lengths_are_refused() {
    assert_eq!(
        Domain::new(33).unwrap_err(),
        NttError::TooLarge { log2: 33 }
    );
    assert_eq!(
        Domain::for_len((1 << 32) + 1).unwrap_err(),
        NttError::TooLarge { log2: 33 }
    );
    let domain = Domain::new(3).unwrap();
    assert_eq!(
        domain.evaluate(&mut [Scalar::ONE; 7], Points::Subgroup),
        Err(NttError::Length {
            expected: 8,
            found: 7
        })
    );
}
