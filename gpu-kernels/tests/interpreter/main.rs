//! The PTX that ships, executed on the CPU: what reaches a card is tested as it is.
mod machine;
mod parse;
mod runtime;

use std::sync::Arc;

use cuzk_field::axioms::{check, samples};
use cuzk_field::{Fp, Fp2, Fr};
use cuzk_kernels::examples::block_sum;
use cuzk_kernels::fields::{FieldKernels, RuntimeMachine};
use cuzk_kernels::primitives::check_primitives;
use cuzk_kernels::runtime::{DeviceBuffer, Runtime};

use runtime::Interpreter;

const SEED: u64 = 0x5eed_0f1e_1d5a_0002;

fn axioms_hold<F: FieldKernels>(random: usize) {
    let mut machine = RuntimeMachine::<F>::new(Arc::new(Interpreter::new()));
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
    let mut shipped = RuntimeMachine::<Fp2>::new(Arc::new(Interpreter::new()));
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
    let runtime: Arc<dyn Runtime> = Arc::new(Interpreter::new());
    check_primitives(&runtime).unwrap();
}

#[test]
fn the_shipped_block_sum_adds_every_element() {
    let runtime: Arc<dyn Runtime> = Arc::new(Interpreter::new());
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
