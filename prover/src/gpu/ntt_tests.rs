//! Transforms and the quotient on the emulator against the CPU's and the naive transform.

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_field::{Fr, casts};
use cuzk_kernels::runtime::{DeviceBuffer, EmulatedRuntime, Runtime};
use ff::Field;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

use super::ntt::{At, Direction, Layout, Transform, TransformError};
use super::quotient::Quotient;
use crate::ntt::{Domain, root_of_unity};

fn emulator() -> Arc<dyn Runtime> {
    Arc::new(EmulatedRuntime::new(1 << 32))
}

fn upload(runtime: &Arc<dyn Runtime>, values: &[Scalar]) -> DeviceBuffer<Fr> {
    DeviceBuffer::from_slice(runtime, casts::from_blst(values)).unwrap()
}

fn download(buffer: &DeviceBuffer<Fr>) -> Vec<Scalar> {
    casts::to_blst(&buffer.to_vec().unwrap()).to_vec()
}

fn random(seed: u64, n: usize) -> Vec<Scalar> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    (0..n).map(|_| Scalar::random(&mut rng)).collect()
}

fn reversed(values: &[Scalar], log2: u32) -> Vec<Scalar> {
    let index = |i: usize| {
        if log2 == 0 {
            0
        } else {
            i.reverse_bits() >> (usize::BITS - log2)
        }
    };
    (0..values.len()).map(|i| values[index(i)]).collect()
}

/// Value of the polynomial at point i.
fn naive(coefficients: &[Scalar], log2: u32, direction: Direction, at: At, i: usize) -> Scalar {
    let mut point = match at {
        At::Roots => root_of_unity(log2).unwrap().pow_vartime([i as u64]),
        At::OddRoots => root_of_unity(log2 + 1)
            .unwrap()
            .pow_vartime([2 * i as u64 + 1]),
    };
    if direction == Direction::Inverse {
        point = point.invert().unwrap();
    }
    coefficients
        .iter()
        .rev()
        .fold(Scalar::ZERO, |sum, c| sum * point + c)
}

#[test]
fn every_size_and_kind_agrees_with_the_naive_transform_at_some_points() {
    let runtime = emulator();
    for log2 in 0..=13 {
        let n = 1usize << log2;
        let values = random(u64::from(log2), n);
        for at in [At::Roots, At::OddRoots] {
            for direction in [Direction::Forward, Direction::Inverse] {
                // Values at inverse roots are what the inverse transform computes; on the coset it
                // divides coefficients by the coset's powers instead, which the round trip checks.
                if at == At::OddRoots && direction == Direction::Inverse {
                    continue;
                }
                let transform = Transform::new(&runtime, log2, direction, at).unwrap();
                let natural = upload(&runtime, &reversed(&values, log2));
                transform
                    .dit(natural.global(), natural.global_mut())
                    .unwrap();
                let found = download(&natural);
                let step = (n / 7).max(1);
                for i in (0..n).step_by(step) {
                    let expected = naive(&values, log2, direction, at, i);
                    assert_eq!(found[i], expected, "2^{log2} {direction:?} {at:?} at {i}");
                }
                if at == At::Roots {
                    let other = upload(&runtime, &values);
                    transform.dif(other.global(), other.global_mut()).unwrap();
                    assert_eq!(
                        reversed(&download(&other), log2),
                        found,
                        "2^{log2} {direction:?}"
                    );
                }
            }
        }
    }
}

/// All tiles, with one table of twiddle factors and with two, on a size that the layout would not choose.
#[test]
fn every_layout_gives_the_same_transform() {
    let runtime = emulator();
    for (log2, tile, direct) in [
        (11, 8, 0),
        (12, 9, 20),
        (12, 9, 0),
        (13, 10, 12),
        (14, 10, 20),
        (17, 8, 9),
    ] {
        let layout = Layout { tile, direct };
        let values = random(u64::from(log2), 1 << log2);
        for at in [At::Roots, At::OddRoots] {
            let make =
                |direction| Transform::with_layout(&runtime, log2, direction, at, layout).unwrap();
            let natural = upload(&runtime, &reversed(&values, log2));
            make(Direction::Forward)
                .dit(natural.global(), natural.global_mut())
                .unwrap();
            let found = download(&natural);
            for i in [0, 1, (1 << log2) / 3, (1 << log2) - 1] {
                let expected = naive(&values, log2, Direction::Forward, at, i);
                assert_eq!(found[i], expected, "2^{log2} {layout:?} {at:?} at {i}");
            }
            make(Direction::Inverse)
                .dif(natural.global(), natural.global_mut())
                .unwrap();
            let size = Scalar::from(1 << log2);
            let expected: Vec<Scalar> = values.iter().map(|x| x * size).collect();
            let found = reversed(&download(&natural), log2);
            assert!(found == expected, "2^{log2} {layout:?} {at:?}");
        }
    }
    let layout = Layout { tile: 7, direct: 0 };
    let error = Transform::with_layout(&runtime, 11, Direction::Forward, At::Roots, layout).err();
    assert_eq!(error, Some(TransformError::Tile { log2: 7 }));
}

#[test]
fn two_arrays_and_products_are_transformed_in_the_same_launches() {
    let runtime = emulator();
    for log2 in [3, 11] {
        let n = 1usize << log2;
        let (a, b) = (random(300, n), random(301, n));
        let transform = Transform::new(&runtime, log2, Direction::Forward, At::Roots).unwrap();
        let alone = |values: &[Scalar]| {
            let buffer = upload(&runtime, values);
            transform.dif(buffer.global(), buffer.global_mut()).unwrap();
            download(&buffer)
        };
        let product: Vec<Scalar> = a.iter().zip(&b).map(|(x, y)| x * y).collect();
        let [on_a, on_b] = [&a, &b].map(|values| upload(&runtime, values));
        let on_c = upload(&runtime, &vec![Scalar::ZERO; n]);
        transform
            .dif_of_product(on_a.global(), on_b.global(), on_c.global_mut())
            .unwrap();
        transform
            .dif_both(on_a.global_mut(), on_b.global_mut())
            .unwrap();
        assert!(download(&on_a) == alone(&a), "2^{log2}");
        assert!(download(&on_b) == alone(&b), "2^{log2}");
        assert!(download(&on_c) == alone(&product), "2^{log2}");
    }
}

#[test]
fn the_inverse_undoes_the_forward_transform_up_to_the_size() {
    let runtime = emulator();
    for log2 in [0, 1, 5, 10, 11, 14] {
        let n = 1usize << log2;
        let values = random(100 + u64::from(log2), n);
        for at in [At::Roots, At::OddRoots] {
            let forward = Transform::new(&runtime, log2, Direction::Forward, at).unwrap();
            let inverse = Transform::new(&runtime, log2, Direction::Inverse, at).unwrap();
            let from = upload(&runtime, &values);
            let to = upload(&runtime, &vec![Scalar::ZERO; n]);
            forward.dit(from.global(), to.global_mut()).unwrap();
            inverse.dif(to.global(), to.global_mut()).unwrap();
            let size = Scalar::from(n as u64);
            let expected: Vec<Scalar> = values.iter().map(|x| x * size).collect();
            assert_eq!(download(&to), expected, "2^{log2} {at:?}");
            assert_eq!(download(&from), values, "the source is left alone");
        }
    }
}

#[test]
fn the_quotient_is_the_cpus() {
    let runtime = emulator();
    for log2 in [0, 1, 3, 9, 11] {
        let n = 1usize << log2;
        let (a, b) = (random(200, n), random(201, n));
        let mut expected_a = a.clone();
        let mut expected_b = b.clone();
        let domain = Domain::new(log2).unwrap();
        let expected =
            crate::quotient::quotient(&domain, &mut expected_a, &mut expected_b).unwrap();
        let [a, b] = [a, b].map(|values| upload(&runtime, &values));
        let c = upload(&runtime, &random(202, n));
        let quotient = Quotient::new(&runtime, log2).unwrap();
        quotient
            .run(a.global_mut(), b.global_mut(), c.global_mut())
            .unwrap();
        assert_eq!(download(&b), expected, "2^{log2}");
    }
}

#[test]
fn a_domain_that_does_not_exist_is_refused() {
    let error = Transform::new(&emulator(), 30, Direction::Forward, At::Roots).err();
    assert!(
        matches!(error, Some(TransformError::Domain(_))),
        "{error:?}"
    );
}
