//! The sequences on the emulator against blst.

use std::sync::Arc;

use blstrs::{G1Affine, G1Projective, Scalar};
use cuzk_field::casts::from_blst;
use cuzk_field::{Fr, G1};
use cuzk_kernels::runtime::{Arena, DeviceBuffer, EmulatedRuntime, Runtime};
use ff::Field;
use group::{Curve, Group};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use super::*;

fn naive(bases: &[G1Affine], scalars: &[Scalar]) -> G1Projective {
    bases.iter().zip(scalars).map(|(base, scalar)| base * scalar).sum()
}

fn emulated(bytes: u64) -> Arena {
    let runtime: Arc<dyn Runtime> = Arc::new(EmulatedRuntime::new(1 << 32));
    Arena::new(&runtime, bytes).unwrap()
}

/// The MSM on the emulator with exactly the memory that the plan asks for.
fn on_emulator(bases: &[G1Affine], scalars: &[Scalar], bits: u32, memory: u64) -> G1Projective {
    let plan = Plan::with_bits::<G1>(scalars.len(), bits, 2, memory).unwrap();
    let mut arena = emulated(plan.bytes::<G1>());
    let points = DeviceBuffer::from_slice(arena.runtime(), from_blst::<cuzk_field::G1Affine>(bases)).unwrap();
    let values = DeviceBuffer::from_slice(arena.runtime(), from_blst::<Fr>(scalars)).unwrap();
    let scalars = Scalars { values: values.global(), map: None };
    let sorted = Sorted::new(&mut arena, &plan, scalars).unwrap();
    sorted.sum::<G1>(&mut arena, points.global()).unwrap()
}

fn random_bases(rng: &mut ChaCha20Rng, n: usize) -> Vec<G1Affine> {
    (0..n).map(|_| G1Projective::random(&mut *rng).to_affine()).collect()
}

#[test]
fn random_scalars_agree_with_blst() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let bases = random_bases(&mut rng, 100);
    let scalars: Vec<_> = (0..100).map(|_| Scalar::random(&mut rng)).collect();
    let t = std::time::Instant::now();
    assert_eq!(on_emulator(&bases, &scalars, 4, u64::MAX), naive(&bases, &scalars));
    println!("{:?}", t.elapsed());
}
