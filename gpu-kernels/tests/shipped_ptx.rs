//! The PTX that ships, executed on the CPU: what reaches a card is tested as it is.
use std::sync::Arc;

use cuzk_field::axioms::{check, samples};
use cuzk_field::{FixedFr, Fp, Fp2, Fr};
use cuzk_kernels::Interpreter;
use cuzk_kernels::examples::block_sum;
use cuzk_kernels::fields::{FieldKernels, RuntimeMachine};
use cuzk_kernels::primitives::check_primitives;
use cuzk_kernels::runtime::{DeviceBuffer, Runtime};

const SEED: u64 = 0x5eed_0f1e_1d5a_0002;

fn axioms_hold<F: FieldKernels>(random: usize) {
    let mut machine = RuntimeMachine::<F>::new(Arc::new(Interpreter::new().unwrap()));
    if let Err(violation) = check(&mut machine, &samples(SEED, random)) {
        panic!("seed {SEED:#x}: {violation}");
    }
}

#[test]
fn the_shipped_fp_kernels_obey_the_field_axioms() {
    axioms_hold::<Fp>(4);
}

#[test]
fn the_shipped_fr_kernels_obey_the_field_axioms() {
    axioms_hold::<Fr>(4);
}

#[test]
fn the_shipped_fp2_kernels_multiply_and_add_like_the_field() {
    use cuzk_field::axioms::{CpuMachine, FieldMachine, Operation};
    let values: Vec<Fp2> = samples(SEED, 8);
    let other: Vec<Fp2> = values.iter().rev().copied().collect();
    let mut shipped = RuntimeMachine::<Fp2>::new(Arc::new(Interpreter::new().unwrap()));
    for operation in [
        Operation::Add,
        Operation::Sub,
        Operation::Mul,
        Operation::MulKaratsuba,
        Operation::Sqr,
    ] {
        let found = shipped.run(operation, &values, &other).unwrap();
        let expected = CpuMachine::new().run(operation, &values, &other).unwrap();
        assert!(found == expected, "{operation:?}, seed {SEED:#x}");
    }
}

#[test]
fn the_shipped_primitives_give_every_known_answer() {
    let runtime: Arc<dyn Runtime> = Arc::new(Interpreter::new().unwrap());
    check_primitives(&runtime).unwrap();
}

#[test]
fn the_shipped_block_sum_adds_every_element() {
    let runtime: Arc<dyn Runtime> = Arc::new(Interpreter::new().unwrap());
    let values: Vec<u32> = (0..300u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    let x = DeviceBuffer::from_slice(&runtime, &values).unwrap();
    let sums = DeviceBuffer::<u32>::new(&runtime, 2).unwrap();
    runtime
        .launch(&block_sum::launch(2, 300, x.global(), sums.global_mut()))
        .unwrap();
    let expected = |part: &[u32]| part.iter().fold(0u32, |a, b| a.wrapping_add(*b));
    assert_eq!(
        sums.to_vec().unwrap(),
        [expected(&values[..256]), expected(&values[256..])]
    );
}

#[test]
fn the_shipped_small_transform_evaluates_a_polynomial() {
    use cuzk_kernels::ntt::ntt_dif_small;
    let runtime: Arc<dyn Runtime> = Arc::new(Interpreter::new().unwrap());
    let n = 8usize;
    let values: Vec<Fr> = samples(SEED, n).into_iter().take(n).collect();
    // w of order 8, by squaring the root of order 2^32
    let root = (0..Fr::TWO_ADICITY - 3).fold(Fr::ROOT_OF_UNITY, |w, _| w.sqr());
    let powers = |w: Fr| (0..n).scan(Fr::ONE, move |p, _| Some(std::mem::replace(p, p.mul(&w))));
    let table: Vec<FixedFr> = powers(root).map(|w| FixedFr::new(&w)).collect();
    let data = DeviceBuffer::from_slice(&runtime, &values).unwrap();
    let roots = DeviceBuffer::from_slice(&runtime, &table).unwrap();
    let launch = ntt_dif_small::launch(1, 3, 0, data.global_mut(), roots.global(), roots.global());
    runtime.launch(&launch).unwrap();
    let found = data.to_vec().unwrap();
    for (i, point) in powers(root).enumerate() {
        let value = values
            .iter()
            .rev()
            .fold(Fr::ZERO, |sum, c| sum.mul(&point).add(c));
        // bit-reversed order
        let place = (i as u32).reverse_bits() as usize >> 29;
        assert!(found[place] == value, "point {i}, seed {SEED:#x}");
    }
}
