//! The sequences on the emulator against blst.

use std::sync::Arc;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use cuzk_circuit::{Bitmap, CompactScalars};
use cuzk_field::casts::from_blst;
use cuzk_field::{Fr, G1, G2};
use cuzk_kernels::msm::NEGATIVE;
use cuzk_kernels::runtime::{Arena, DeviceBuffer, EmulatedRuntime, Runtime};
use ff::Field;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

use super::*;

/// Multiprocessors of the emulated device.
const SMS: u32 = 2;

fn rng(seed: u64) -> ChaCha20Rng {
    println!("seed {seed}");
    ChaCha20Rng::seed_from_u64(seed)
}

fn naive(bases: &[G1Affine], scalars: &[Scalar]) -> G1Projective {
    bases
        .iter()
        .zip(scalars)
        .map(|(base, scalar)| base * scalar)
        .sum()
}

fn arena(bytes: u64) -> Arena {
    let runtime: Arc<dyn Runtime> = Arc::new(EmulatedRuntime::new(1 << 36));
    Arena::new(&runtime, bytes).unwrap()
}

fn upload_scalars(arena: &Arena, scalars: &[Scalar]) -> DeviceBuffer<Fr> {
    DeviceBuffer::from_slice(arena.runtime(), from_blst::<Fr>(scalars)).unwrap()
}

/// The MSM on the emulator with exactly the memory that the plan asks for.
fn with_plan(bases: &[G1Affine], scalars: &[Scalar], plan: &Plan) -> G1Projective {
    let mut arena = arena(plan.bytes::<G1>());
    let bases = DeviceBuffer::from_slice(arena.runtime(), from_blst::<cuzk_field::G1Affine>(bases))
        .unwrap();
    let values = upload_scalars(&arena, scalars);
    let scalars = Scalars {
        values: values.global(),
        map: None,
    };
    let sorted = Sorted::new(&mut arena, plan, scalars).unwrap();
    sorted.sum::<G1>(&mut arena, bases.global()).unwrap()
}

fn with_bits(bases: &[G1Affine], scalars: &[Scalar], bits: u32) -> G1Projective {
    with_plan(
        bases,
        scalars,
        &Plan::with_bits::<G1>(scalars.len(), bits, SMS, u64::MAX).unwrap(),
    )
}

fn random_bases(rng: &mut ChaCha20Rng, n: usize) -> Vec<G1Affine> {
    (0..n)
        .map(|_| G1Projective::random(&mut *rng).to_affine())
        .collect()
}

fn random_scalars(rng: &mut ChaCha20Rng, n: usize) -> Vec<Scalar> {
    (0..n).map(|_| Scalar::random(&mut *rng)).collect()
}

#[test]
fn every_small_length_agrees_with_blst() {
    let mut rng = rng(1);
    let (bases, scalars) = (random_bases(&mut rng, 129), random_scalars(&mut rng, 129));
    for n in [0, 1, 2, 3, 31, 32, 33, 129] {
        assert_eq!(
            with_bits(&bases[..n], &scalars[..n], 9),
            naive(&bases[..n], &scalars[..n]),
            "n = {n}"
        );
    }
}

#[test]
fn window_widths_agree_with_blst() {
    let mut rng = rng(2);
    let (bases, scalars) = (random_bases(&mut rng, 12), random_scalars(&mut rng, 12));
    for bits in [2, 3, 5, 7, 10] {
        assert_eq!(
            with_bits(&bases, &scalars, bits),
            naive(&bases, &scalars),
            "bits = {bits}"
        );
    }
}

/// Zero, one, minus one, both sides of r/2, small, a power of two; points at infinity, equal points and
/// opposite points that share buckets.
#[test]
fn edge_scalars_and_exceptional_points_agree_with_blst() {
    let mut rng = rng(3);
    let half = Scalar::from(2).invert().unwrap();
    let values = [
        Scalar::ZERO,
        Scalar::ONE,
        -Scalar::ONE,
        half,
        half - Scalar::ONE,
        -half,
        Scalar::from(3),
        Scalar::from(1 << 33),
        Scalar::random(&mut rng),
    ];
    let points = random_bases(&mut rng, 2);
    let kinds = [
        G1Affine::identity(),
        points[0],
        -points[0],
        points[0],
        points[1],
        G1Affine::identity(),
    ];
    let scalars: Vec<_> = values.iter().flat_map(|value| [*value; 6]).collect();
    let bases: Vec<_> = values.iter().flat_map(|_| kinds).collect();
    assert_eq!(with_bits(&bases, &scalars, 6), naive(&bases, &scalars));
    let identities = vec![G1Affine::identity(); 40];
    assert_eq!(
        with_bits(&identities, &scalars[..40], 6),
        G1Projective::identity()
    );
}

#[test]
fn all_points_in_one_bucket_agree_with_blst() {
    let mut rng = rng(4);
    let bases = random_bases(&mut rng, 150);
    let equal = vec![Scalar::random(&mut rng); 150];
    assert_eq!(with_bits(&bases, &equal, 8), naive(&bases, &equal));
    let ones = vec![Scalar::ONE; 150];
    assert_eq!(with_bits(&bases, &ones, 8), naive(&bases, &ones));
}

#[test]
fn groups_of_windows_and_reused_memory_give_the_same_sum() {
    let mut rng = rng(5);
    let (bases, scalars) = (random_bases(&mut rng, 20), random_scalars(&mut rng, 20));
    let whole = Plan::with_bits::<G1>(20, 8, SMS, u64::MAX).unwrap();
    let plan = Plan {
        sort_windows: 13,
        sum_windows: 9,
        ..whole
    };
    let mut arena = arena(plan.bytes::<G1>());
    let values = upload_scalars(&arena, &scalars);
    let points =
        DeviceBuffer::from_slice(arena.runtime(), from_blst::<cuzk_field::G1Affine>(&bases))
            .unwrap();
    for _ in 0..3 {
        arena.reset();
        let scalars = Scalars {
            values: values.global(),
            map: None,
        };
        let sorted = Sorted::new(&mut arena, &plan, scalars).unwrap();
        let sum = sorted.sum::<G1>(&mut arena, points.global()).unwrap();
        assert_eq!(sum, naive(&bases, &scalars_of(&values)));
    }
}

fn scalars_of(values: &DeviceBuffer<Fr>) -> Vec<Scalar> {
    cuzk_field::casts::to_blst(&values.to_vec().unwrap()).to_vec()
}

#[test]
fn base_sets_on_both_curves_share_sorted_scalars() {
    let mut rng = rng(6);
    let (bases, scalars) = (random_bases(&mut rng, 24), random_scalars(&mut rng, 24));
    let mut second: Vec<G2Affine> = (0..24)
        .map(|_| G2Projective::random(&mut rng).to_affine())
        .collect();
    second[7] = second[3];
    second[11] = G2Affine::identity();
    let plan = Plan::with_bits::<G2>(24, 8, SMS, u64::MAX).unwrap();
    let mut arena = arena(plan.bytes::<G2>());
    let values = upload_scalars(&arena, &scalars);
    let sorted = Sorted::new(
        &mut arena,
        &plan,
        Scalars {
            values: values.global(),
            map: None,
        },
    )
    .unwrap();
    let first =
        DeviceBuffer::from_slice(arena.runtime(), from_blst::<cuzk_field::G1Affine>(&bases))
            .unwrap();
    assert_eq!(
        sorted.sum::<G1>(&mut arena, first.global()).unwrap(),
        naive(&bases, &scalars)
    );
    let device =
        DeviceBuffer::from_slice(arena.runtime(), from_blst::<cuzk_field::G2Affine>(&second))
            .unwrap();
    let expected: G2Projective = second
        .iter()
        .zip(&scalars)
        .map(|(base, scalar)| base * scalar)
        .sum();
    assert_eq!(
        sorted.sum::<G2>(&mut arena, device.global()).unwrap(),
        expected
    );
}

/// Signed digits of a scalar by the definition, lowest window first.
fn digits(scalar: &Scalar, bits: u32) -> Vec<i64> {
    let half = -Scalar::from(2).invert().unwrap();
    let bytes = |x: &Scalar| x.to_bytes_be();
    let negative = bytes(scalar) > bytes(&half);
    let value = if negative { -scalar } else { *scalar }.to_bytes_le();
    let mut carry = 0;
    let windows = 255u32.div_ceil(bits);
    (0..windows)
        .map(|window| {
            let mut digit = carry;
            for bit in 0..bits {
                let at = (window * bits + bit) as usize;
                if at < 256 {
                    digit += i64::from(value[at / 8] >> (at % 8) & 1) << bit;
                }
            }
            carry = i64::from(digit >= 1 << (bits - 1) && window + 1 < windows);
            digit -= carry << bits;
            if negative { -digit } else { digit }
        })
        .collect()
}

/// The references of one bucket, sorted.
fn expected_bucket(digits: &[Vec<i64>], window: usize, bucket: usize) -> Vec<u32> {
    let mut expected: Vec<u32> = digits
        .iter()
        .enumerate()
        .filter(|(_, d)| d[window].unsigned_abs() as usize == bucket + 1)
        .map(|(i, d)| {
            if d[window] < 0 {
                i as u32 | NEGATIVE
            } else {
                i as u32
            }
        })
        .collect();
    expected.sort_unstable();
    expected
}

/// Sorts `n` scalars, many of them equal, in two levels with tiles of at least `least_tile`.
fn check_sorting(n: usize, least_tile: u32) {
    let mut rng = rng(7);
    let mut scalars = random_scalars(&mut rng, n);
    let repeated = scalars[0];
    scalars[n / 7..n / 2].fill(repeated);
    let whole = Plan::with_bits::<G1>(n, 9, SMS, u64::MAX).unwrap();
    let plan = Plan {
        sort_windows: 5,
        one_level: 4,
        least_tile,
        ..whole
    };
    let mut arena = arena(plan.kept_bytes() + plan.sort_bytes());
    let values = upload_scalars(&arena, &scalars);
    let scalars_on_device = Scalars {
        values: values.global(),
        map: None,
    };
    let sorted = Sorted::new(&mut arena, &plan, scalars_on_device).unwrap();
    let digits: Vec<_> = scalars.iter().map(|scalar| digits(scalar, 9)).collect();
    for window in 0..plan.windows() as usize {
        for bucket in 0..256 {
            let mut found = sorted.bucket(arena.runtime(), window, bucket);
            found.sort_unstable();
            let expected = expected_bucket(&digits, window, bucket);
            assert_eq!(found, expected, "window {window}, bucket {bucket}");
        }
    }
}

#[test]
fn sorting_in_two_levels_puts_each_point_in_its_bucket() {
    check_sorting(700, 96);
}

#[test]
fn sorting_tiles_of_more_than_a_chunk_puts_each_point_in_its_bucket() {
    check_sorting(4500, 4500);
}

fn words(bitmap: &Bitmap) -> Vec<[u32; 4]> {
    let mut words: Vec<u32> = bitmap
        .words()
        .iter()
        .flat_map(|&w| [w as u32, (w >> 32) as u32])
        .collect();
    words.resize(bitmap.len().div_ceil(128) * 4, 0);
    words.chunks(4).map(|w| [w[0], w[1], w[2], w[3]]).collect()
}

fn compact_sum(
    scalars: &CompactScalars,
    density: Option<&Bitmap>,
    bases: &[G1Affine],
) -> G1Projective {
    let others = scalars.others().len() as u32;
    let len = scalars.len() as u32;
    let plan = Plan::with_bits::<G1>(others as usize, 6, SMS, u64::MAX).unwrap();
    let sums = plan
        .bytes::<G1>()
        .max(sum_of_points_bytes::<G1>(len.max(1), SMS));
    let mut arena = arena(Selection::bytes(len, others) + sums);
    let runtime = arena.runtime().clone();
    let upload = |bitmap: &Bitmap| DeviceBuffer::from_slice(&runtime, &words(bitmap)).unwrap();
    let (bits, marks) = (upload(scalars.bits()), upload(scalars.is_other()));
    let density = density.map(upload);
    let bitmaps = Bitmaps {
        len,
        bits: bits.global(),
        others: marks.global(),
        density: density.as_ref().map(DeviceBuffer::global),
    };
    let bases =
        DeviceBuffer::from_slice(&runtime, from_blst::<cuzk_field::G1Affine>(bases)).unwrap();
    let values = upload_scalars(&arena, scalars.others());
    let selection = Selection::new(&mut arena, bitmaps, others).unwrap();
    let ones = selection.ones.read();
    let sum = sum_of_points::<G1>(&mut arena, ones, selection.ones_len, bases.global()).unwrap();
    let map = Some(selection.map.read());
    let sorted = Sorted::new(
        &mut arena,
        &plan,
        Scalars {
            values: values.global(),
            map,
        },
    )
    .unwrap();
    sum + sorted.sum::<G1>(&mut arena, bases.global()).unwrap()
}

#[test]
fn compact_scalars_with_and_without_a_density_agree_with_blst() {
    let mut rng = rng(8);
    let mut scalars = CompactScalars::default();
    let mut density = Bitmap::default();
    for _ in 0..333 {
        match rng.next_u32() % 20 {
            0 => scalars.push(Scalar::random(&mut rng)),
            k => scalars.push_bit(k % 2 == 0),
        }
        density.push(!rng.next_u32().is_multiple_of(4));
    }
    let bases = random_bases(&mut rng, 333);
    let values = scalars.to_vec();
    assert_eq!(compact_sum(&scalars, None, &bases), naive(&bases, &values));
    let dense: Vec<_> = density.iter_ones().map(|i| values[i]).collect();
    assert_eq!(
        compact_sum(&scalars, Some(&density), &bases),
        naive(&bases[..dense.len()], &dense)
    );
    let none = CompactScalars::default();
    assert_eq!(compact_sum(&none, None, &[]), G1Projective::identity());
}

#[test]
fn plans_fit_their_memory_or_say_what_they_need() {
    let free = Plan::new::<G1>(1 << 22, 132, u64::MAX).unwrap();
    let bytes = free.bytes::<G1>();
    let tight = Plan::with_bits::<G1>(1 << 22, free.bits, 132, bytes / 3).unwrap();
    assert!(tight.bytes::<G1>() <= bytes / 3 && tight.sum_windows < free.sum_windows);
    assert!(matches!(
        Plan::new::<G1>(1 << 22, 132, 1 << 20),
        Err(MsmError::Memory {
            limit: 1_048_576,
            ..
        })
    ));
    assert!(matches!(
        Plan::new::<G1>(1 << 29, 132, u64::MAX),
        Err(MsmError::Size { .. })
    ));
    assert!(matches!(
        Plan::with_bits::<G1>(5, 24, 132, u64::MAX),
        Err(MsmError::Size { .. })
    ));
}

#[test]
fn a_wrong_number_of_others_is_an_error() {
    let mut arena = arena(1 << 20);
    let runtime = arena.runtime().clone();
    let words = DeviceBuffer::from_slice(&runtime, &[[5u32, 0, 0, 0]]).unwrap();
    let bitmaps = Bitmaps {
        len: 100,
        bits: words.global(),
        others: words.global(),
        density: None,
    };
    let error = Selection::new(&mut arena, bitmaps, 3).unwrap_err();
    assert_eq!(
        error,
        MsmError::Others {
            expected: 3,
            found: 2
        }
    );
}
