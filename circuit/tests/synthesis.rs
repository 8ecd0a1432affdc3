//! Synthesis against the naive oracle and against bellperson's own constraint systems.

mod common;

use bellpepper_core::{
    Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable,
};
use common::{Oracle, Sha256, circuits};
use cuzk_circuit::testing::RandomCircuit;
use cuzk_circuit::{
    Assignment, CircuitError, ConstraintVisitor, Scalar, check, shape, stream_constraints,
    synthesize, synthesize_into, witness,
};
use ff::Field;

fn assert_matches_oracle(assignment: &Assignment, oracle: &Oracle, name: &str) {
    assert_eq!(assignment.witness.inputs, oracle.inputs, "{name}");
    assert_eq!(assignment.witness.aux.to_vec(), oracle.aux, "{name}");
    assert_eq!(assignment.a, oracle.side(0), "{name}");
    assert_eq!(assignment.b, oracle.side(1), "{name}");
    assert_eq!(assignment.rows(), oracle.rows.len(), "{name}");
    let densities = &assignment.densities;
    let (_, a_aux) = oracle.occurring(0);
    let (b_inputs, b_aux) = oracle.occurring(1);
    assert!(densities.a_aux.iter_ones().eq(a_aux), "{name}");
    assert!(densities.b_inputs.iter_ones().eq(b_inputs), "{name}");
    assert!(densities.b_aux.iter_ones().eq(b_aux), "{name}");
    assert_eq!(densities.a_aux.len(), oracle.aux.len(), "{name}");
    assert_eq!(densities.b_aux.len(), oracle.aux.len(), "{name}");
    assert_eq!(densities.b_inputs.len(), oracle.inputs.len(), "{name}");
}

#[test]
fn synthesis_equals_the_naive_oracle_for_circuits_of_many_shapes() {
    let mut arena = Assignment::default();
    for (name, circuit) in circuits() {
        let oracle = Oracle::of(circuit.clone());
        let assignment = synthesize(circuit.clone()).expect(&name);
        assert_matches_oracle(&assignment, &oracle, &name);
        synthesize_into(circuit.clone(), &mut arena).expect(&name);
        assert_eq!(arena, assignment, "reused buffers, {name}");
        assert_eq!(
            witness(circuit.clone()).expect(&name),
            assignment.witness,
            "{name}"
        );
        check(circuit).expect(&name);
    }
}

#[test]
fn shapes_equal_the_oracle_s_counts() {
    for (name, circuit) in circuits() {
        let oracle = Oracle::of(circuit.clone());
        let shape = shape(circuit).expect(&name);
        assert_eq!(shape.inputs, oracle.inputs.len(), "{name}");
        assert_eq!(shape.aux, oracle.aux.len(), "{name}");
        assert_eq!(shape.rows(), oracle.rows.len(), "{name}");
        assert_eq!(shape.a_aux, oracle.occurring(0).1.len(), "{name}");
        assert_eq!(shape.b_inputs, oracle.occurring(1).0.len(), "{name}");
        assert_eq!(shape.b_aux, oracle.occurring(1).1.len(), "{name}");
        let a = oracle.nonzeros(0) - shape.inputs as u64;
        let expected = [a, oracle.nonzeros(1), oracle.nonzeros(2)];
        assert_eq!(shape.nonzeros, expected, "{name}");
        assert!(1usize << shape.domain_log2() >= shape.rows(), "{name}");
    }
}

#[test]
fn the_witness_is_that_of_bellperson_s_witness_generator() {
    for (name, circuit) in circuits().into_iter().filter(|(_, c)| c.parts == 1) {
        let mut theirs = bellperson::util_cs::witness_cs::WitnessCS::<Scalar>::new();
        circuit.clone().synthesize(&mut theirs).expect(&name);
        let ours = witness(circuit).expect(&name);
        assert_eq!(ours.inputs, theirs.scalar_inputs(), "{name}");
        assert_eq!(ours.aux.to_vec(), theirs.scalar_aux(), "{name}");
    }
}

#[test]
fn the_predicted_parameter_size_is_what_bellperson_writes() {
    use rand_core::SeedableRng;
    let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(1);
    for circuit in [
        RandomCircuit::new(3, 1, 1),
        RandomCircuit::new(60, 3, 2),
        RandomCircuit::new(63, 0, 3),
    ] {
        let params = bellperson::groth16::generate_random_parameters::<blstrs::Bls12, _, _>(
            circuit.clone(),
            &mut rng,
        )
        .expect("parameters");
        let mut bytes = Vec::new();
        params.write(&mut bytes).expect("bytes");
        let predicted = shape(circuit).expect("shape").params_bytes();
        assert_eq!(predicted, bytes.len() as u64);
    }
}

#[test]
fn parallel_synthesis_does_not_depend_on_the_number_of_threads() {
    let circuit = RandomCircuit {
        parts: 13,
        ..RandomCircuit::new(2000, 31, 5)
    };
    let sequential = Oracle::of(circuit.clone());
    for threads in [1, 2, 4, 9] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.expect("thread pool");
        let assignment = pool.install(|| synthesize(circuit.clone())).expect("ok");
        assert_matches_oracle(&assignment, &sequential, &format!("{threads} threads"));
        let values = pool.install(|| witness(circuit.clone())).expect("ok");
        assert_eq!(values, assignment.witness, "{threads} threads");
    }
}

#[test]
fn a_sha256_circuit_equals_the_oracle_and_bellperson_s_counts() {
    let circuit = Sha256(vec![0xa5; 100]);
    let assignment = synthesize(circuit.clone()).expect("ok");
    assert_matches_oracle(&assignment, &Oracle::of(circuit.clone()), "sha256");
    assert_eq!(witness(circuit.clone()).expect("ok"), assignment.witness);
    let mut theirs = bellperson::util_cs::bench_cs::BenchCS::<Scalar>::new();
    circuit.clone().synthesize(&mut theirs).expect("ok");
    assert_eq!(assignment.constraints, theirs.num_constraints());
    assert_eq!(assignment.witness.inputs.len(), theirs.num_inputs());
    check(circuit).expect("satisfied");
}

/// Small circuits that misbehave in one way each.
#[derive(Clone, Copy)]
enum Bad {
    WrongProduct,
    WrongProductThenMissing,
    UnknownAux,
    UnknownInput,
    Missing,
}

impl Circuit<Scalar> for Bad {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let x = cs.alloc(|| "x", || Ok(Scalar::from(3)))?;
        let cs = &mut cs.namespace(|| "outer");
        cs.enforce(|| "fine", |lc| lc + x, |lc| lc, |lc| lc);
        let variable = match self {
            Bad::UnknownAux => Variable(Index::Aux(7)),
            Bad::UnknownInput => Variable(Index::Input(1)),
            Bad::Missing => cs.alloc(|| "y", || Err(SynthesisError::AssignmentMissing))?,
            _ => x,
        };
        let mut inner = cs.namespace(|| "inner");
        inner.enforce(
            || "square",
            |lc| lc + x,
            |lc| lc + variable,
            |lc| lc + (Scalar::from(2), x),
        );
        if matches!(self, Bad::WrongProductThenMissing) {
            inner.alloc(|| "y", || Err(SynthesisError::AssignmentMissing))?;
        }
        Ok(())
    }
}

#[test]
fn check_names_the_first_unsatisfied_constraint_by_its_path_and_values() {
    for bad in [Bad::WrongProduct, Bad::WrongProductThenMissing] {
        match check(bad) {
            Err(CircuitError::Unsatisfied { row, path, a, b, c }) => {
                assert_eq!((row, path.as_str()), (1, "outer/inner/square"));
                let values = [3, 3, 6].map(Scalar::from);
                assert_eq!([*a, *b, *c], values);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_reference_to_a_variable_that_does_not_exist_is_a_typed_error() {
    for (bad, kind, index) in [
        (Bad::UnknownAux, "auxiliary", 7),
        (Bad::UnknownInput, "input", 1),
    ] {
        let mut arena = Assignment::default();
        let results = [
            synthesize_into(bad, &mut arena),
            check(bad),
            shape(bad).map(drop),
        ];
        for result in results {
            match result {
                Err(CircuitError::UnknownVariable {
                    row,
                    kind: found_kind,
                    index: found_index,
                    allocated: 1,
                }) => assert_eq!((row, found_kind, found_index), (1, kind, index)),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(arena, Assignment::default(), "nothing is left behind");
    }
}

#[test]
fn a_missing_value_is_reported_and_the_buffers_stay_usable() {
    let mut arena = synthesize(RandomCircuit::new(50, 2, 1)).expect("ok");
    let result = synthesize_into(Bad::Missing, &mut arena);
    assert!(matches!(
        result,
        Err(CircuitError::Synthesis(SynthesisError::AssignmentMissing))
    ));
    assert!(witness(Bad::Missing).is_err());
    assert_eq!(arena, Assignment::default());
    let circuit = RandomCircuit::new(70, 3, 2);
    synthesize_into(circuit.clone(), &mut arena).expect("ok");
    assert_eq!(arena, synthesize(circuit).expect("ok"));
}

#[test]
fn shared_densities_survive_the_reuse_of_an_arena() {
    let circuit = RandomCircuit::new(80, 3, 3);
    let mut arena = synthesize(circuit).expect("ok");
    let densities = arena.densities.clone();
    let copy = (*densities).clone();
    synthesize_into(RandomCircuit::new(33, 1, 4), &mut arena).expect("ok");
    assert_eq!(*densities, copy);
}

#[test]
fn the_stream_shows_every_variable_and_row_in_order() {
    #[derive(Default)]
    struct Collect {
        inputs: usize,
        aux: usize,
        rows: Vec<common::Row>,
    }
    impl ConstraintVisitor for Collect {
        fn alloc_input(&mut self, index: usize) {
            assert_eq!(index, self.inputs);
            self.inputs += 1;
        }
        fn alloc_aux(&mut self, index: usize) {
            assert_eq!(index, self.aux);
            self.aux += 1;
        }
        fn row(
            &mut self,
            a: &LinearCombination<Scalar>,
            b: &LinearCombination<Scalar>,
            c: &LinearCombination<Scalar>,
        ) {
            self.rows.push([a.clone(), b.clone(), c.clone()]);
        }
    }
    for (name, circuit) in circuits() {
        let oracle = Oracle::of(circuit.clone());
        let mut collect = Collect::default();
        stream_constraints(circuit, &mut collect).expect(&name);
        assert_eq!(collect.inputs, oracle.inputs.len(), "{name}");
        assert_eq!(collect.aux, oracle.aux.len(), "{name}");
        assert!(collect.rows == oracle.rows, "{name}");
    }
}

/// Writes part of its witness in place, as witness-aware gadgets do.
#[derive(Clone)]
struct InPlace;

impl Circuit<Scalar> for InPlace {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let values: Vec<Scalar> = [0, 1, 5, 1, 0, 9].map(Scalar::from).to_vec();
        cs.alloc(|| "before", || Ok(Scalar::from(4)))?;
        if cs.is_witness_generator() {
            cs.allocate_empty(6, 0).0.copy_from_slice(&values);
            assert_eq!(cs.aux_slice()[1..], values);
            cs.extend_aux(&values[1..3]);
            cs.allocate_empty(0, 1).1[0] = Scalar::from(8);
            assert_eq!(cs.inputs_slice(), [1, 8].map(Scalar::from));
            cs.get_root().allocate_empty_aux(1)[0] = Scalar::from(2);
        } else {
            for value in values.iter().chain(&values[1..3]) {
                cs.alloc(|| "value", || Ok(*value))?;
            }
            cs.alloc_input(|| "input", || Ok(Scalar::from(8)))?;
            cs.alloc(|| "last", || Ok(Scalar::from(2)))?;
        }
        Ok(())
    }
}

#[test]
fn gadgets_may_write_their_witness_in_place() {
    let direct = synthesize(InPlace).expect("ok");
    assert_eq!(witness(InPlace).expect("ok"), direct.witness);
    assert_eq!(
        direct.witness.aux.get(9),
        Some(Scalar::ONE + Scalar::ONE),
        "nine values stand before the last one"
    );
    assert_eq!(Scalar::ZERO, direct.b[0]);
}
