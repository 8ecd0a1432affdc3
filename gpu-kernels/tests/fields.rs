//! Field kernels under the emulator: the axioms, and the throughput loops against plain loops.
use std::sync::Arc;

use cuzk_field::axioms::{check, samples};
use cuzk_field::{FixedFr, Fp, Fp2, Fr, G1Affine, G1Xyzz};
use cuzk_kernels::fields::{FieldKernels, RuntimeMachine, throughput};
use cuzk_kernels::runtime::{EmulatedRuntime, Runtime};
use cuzk_kernels::{Emulator, KernelArgument};

const SEED: u64 = 0x5eed_0f1e_1d5a_0001;

fn axioms_hold<F: FieldKernels>() {
    let runtime: Arc<dyn Runtime> = Arc::new(EmulatedRuntime::new(1 << 24));
    let mut machine = RuntimeMachine::<F>::new(runtime);
    if let Err(violation) = check(&mut machine, &samples(SEED, 6)) {
        panic!("seed {SEED:#x}: {violation}");
    }
}

#[test]
fn fp_kernels_obey_the_field_axioms() {
    axioms_hold::<Fp>();
}

#[test]
fn fr_kernels_obey_the_field_axioms() {
    axioms_hold::<Fr>();
}

#[test]
fn fp2_kernels_obey_the_field_axioms() {
    axioms_hold::<Fp2>();
}

#[test]
fn throughput_loops_compute_what_a_plain_loop_does() {
    let mut emulator = Emulator::new();
    let table: Vec<Fr> = samples::<Fr>(SEED, throughput::TABLE)
        .into_iter()
        .take(throughput::TABLE)
        .collect();
    let fixed: Vec<FixedFr> = table.iter().map(FixedFr::new).collect();
    let (x, w) = (emulator.upload(&table), emulator.upload(&fixed));
    let z = emulator.alloc::<Fr>(128);
    emulator
        .run(&throughput::bench_fr_mul::launch(
            1,
            3,
            x.global(),
            z.global_mut(),
        ))
        .unwrap();
    let chained = emulator.download(&z).unwrap();
    emulator
        .run(&throughput::bench_fr_mul_fixed::launch(
            1,
            3,
            w.global(),
            x.global(),
            z.global_mut(),
        ))
        .unwrap();
    let with_fixed = emulator.download(&z).unwrap();
    for i in 0..128 {
        let (a, b) = (table[i + 1], table[i]);
        assert!(chained[i] == a.mul(&b).mul(&b).mul(&b), "element {i}");
        assert!(with_fixed[i] == b.mul(&b).mul(&b).mul(&b), "element {i}");
    }
}

#[test]
fn point_sums_agree_for_both_multiplications() {
    use blstrs::{G1Affine as Point, G1Projective};
    use group::{Group, prime::PrimeCurveAffine};
    let point = |k: u32| -> G1Affine {
        let affine =
            Point::from(G1Projective::generator() * blstrs::Scalar::from(u64::from(k) + 1));
        assert!(!bool::from(affine.is_identity()));
        bytemuck::cast(raw(&affine))
    };
    let mut emulator = Emulator::new();
    let points = emulator.upload(&(0..4).map(point).collect::<Vec<_>>());
    let z = emulator.alloc::<G1Xyzz>(128);
    emulator
        .run(&throughput::bench_g1_sum::launch(
            1,
            4,
            3,
            points.global(),
            z.global_mut(),
        ))
        .unwrap();
    let plain = emulator.download(&z).unwrap();
    let launch =
        throughput::bench_g1_sum_karatsuba::launch(1, 4, 3, points.global(), z.global_mut());
    assert_eq!(launch.arguments[0], 4u32.pack());
    emulator.run(&launch).unwrap();
    let other = emulator.download(&z).unwrap();
    assert!(plain.iter().zip(&other).all(|(a, b)| a.is_same_point(b)));
}

/// The coordinates' Montgomery limbs.
fn raw(point: &blstrs::G1Affine) -> [u64; 12] {
    let raw: &blst::blst_p1_affine = point.as_ref();
    let mut limbs = [0; 12];
    limbs[..6].copy_from_slice(&raw.x.l);
    limbs[6..].copy_from_slice(&raw.y.l);
    limbs
}
