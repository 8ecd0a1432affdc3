//! Evaluation on the emulator against direct synthesis.

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_circuit::testing::{RandomCircuit, RepeatedCircuit};
use cuzk_circuit::{CompiledCircuit, synthesize};
use cuzk_kernels::runtime::{EmulatedRuntime, Runtime};
use ff::Field;

use super::evaluate::Evaluator;

use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};

/// Compares a and b of the device with those of direct synthesis.
fn assert_equals_direct<C: Circuit<Scalar> + Clone>(name: &str, circuit: C) {
    let compiled = Arc::new(CompiledCircuit::record(name, circuit.clone()).unwrap());
    let direct = synthesize(circuit).unwrap();
    let runtime: Arc<dyn Runtime> = Arc::new(EmulatedRuntime::new(1 << 30));
    let mut evaluator = Evaluator::new(&runtime, &compiled).unwrap();
    assert!(
        !evaluator.holds(false, &direct.a).unwrap(),
        "{name}: nothing was run"
    );
    evaluator.run(&direct.witness).unwrap();
    assert!(evaluator.holds(false, &direct.a).unwrap(), "{name}: A·w");
    assert!(evaluator.holds(true, &direct.b).unwrap(), "{name}: B·w");
    let mut wrong = direct.b;
    wrong[0] += Scalar::ONE;
    assert!(!evaluator.holds(true, &wrong).unwrap(), "{name}");
}

#[test]
fn random_circuits_evaluate_as_in_direct_synthesis() {
    for (k, constraints) in [0, 1, 31, 32, 33, 127, 128, 129, 400]
        .into_iter()
        .enumerate()
    {
        let seed = k as u64;
        let circuit = RandomCircuit {
            bit_share: [0.0, 0.5, 0.99, 1.0][k % 4],
            b_density: [1.0, 0.3, 0.0][k % 3],
            ..RandomCircuit::new(constraints, [0, 1, 40][k % 3], seed)
        };
        assert_equals_direct(&format!("{circuit:?}"), circuit);
    }
}

#[test]
fn repeated_blocks_evaluate_as_in_direct_synthesis() {
    for namespaces in [true, false] {
        let circuit = RepeatedCircuit {
            block: RandomCircuit {
                bit_share: 0.9,
                ..RandomCircuit::new(70, 2, 5)
            },
            repetitions: 5,
            namespaces,
            altered: Some((3, 40)),
        };
        assert_equals_direct(&format!("namespaces {namespaces}"), circuit);
    }
}

/// Rows of many terms: bits and others with coefficients ±2^k beyond all limits, and other ones.
#[derive(Clone)]
struct LongRows {
    terms: usize,
}

impl Circuit<Scalar> for LongRows {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut variables = Vec::new();
        for k in 0..self.terms {
            let value = match k % 5 {
                0 => Scalar::from(k as u64 * k as u64).square(),
                other => Scalar::from(other as u64 & 1),
            };
            variables.push(cs.alloc(|| format!("x {k}"), || Ok(value))?);
        }
        let coefficient = |k: usize, row: usize| match (k + row) % 4 {
            0 => -Scalar::from(2).pow_vartime([(k % 256) as u64]),
            1 => Scalar::from(1 << (k % 41)),
            2 => Scalar::from(3 + k as u64),
            _ => -Scalar::ONE,
        };
        for row in 0..7 {
            let terms = self.terms * (row + 1) / 7;
            let sum = |lc| {
                let terms = variables[..terms].iter().enumerate();
                terms.fold(lc, |lc, (k, x)| lc + (coefficient(k, row), *x))
            };
            cs.enforce(
                || format!("row {row}"),
                sum,
                |lc| sum(lc) + CS::one(),
                |lc| lc,
            );
            cs.enforce(
                || format!("short {row}"),
                |lc| lc + variables[row],
                |lc| lc,
                |lc| lc,
            );
        }
        Ok(())
    }
}

#[test]
fn long_rows_and_all_kinds_of_coefficients_evaluate_as_in_direct_synthesis() {
    for terms in [7, 8, 9, 63, 300] {
        assert_equals_direct(&format!("{terms} terms"), LongRows { terms });
    }
}
