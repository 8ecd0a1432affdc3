//! With the same parameters, r and s, our proofs are bellperson's, byte for byte.

use bellperson::groth16 as reference;
use blstrs::{Bls12, Scalar};
use cuzk_circuit::{synthesize, testing::RandomCircuit};
use cuzk_prover::{
    Params, create_proof, create_proof_batch, create_random_proof, create_random_proof_batch,
    prove_from_assignments, synthesize_circuits_batch,
};
use ff::Field;
use rand_core::RngCore;

use crate::support::{
    cpu, example, ours, proof_bytes, reference_bytes, reference_params, rng, to_reference,
};

/// Proves the circuit with random r and s, and with r = s = 0, by both provers.
fn assert_same_proofs(circuit: &RandomCircuit) {
    let params = reference_params(circuit);
    let our_params = ours(&params);
    let mut bytes = Vec::new();
    our_params.write_to(&mut bytes).unwrap();
    assert_eq!(bytes, reference_bytes(&params), "{circuit:?}");

    let pvk = reference::prepare_verifying_key(&params.vk);
    let mut rng = rng(circuit.seed + 1);
    let random = (Scalar::random(&mut rng), Scalar::random(&mut rng));
    for (r, s) in [random, (Scalar::ZERO, Scalar::ZERO)] {
        let expected =
            reference::create_proof::<Bls12, _, _>(circuit.clone(), &params, r, s).unwrap();
        let assignment = synthesize(circuit.clone()).unwrap();
        let finished = cpu()
            .prove(&our_params, assignment, r, s)
            .unwrap_or_else(|e| panic!("{circuit:?}: {e}"));
        assert_eq!(
            finished.proof.to_bytes()[..],
            proof_bytes(&expected),
            "{circuit:?}"
        );
        let proof = to_reference(&finished.proof);
        assert!(reference::verify_proof(&pvk, &proof, &finished.public_inputs).unwrap());
    }
}

#[test]
fn proofs_of_the_smallest_circuits_are_the_same() {
    for constraints in 1..12 {
        assert_same_proofs(&RandomCircuit::new(
            constraints,
            constraints % 3,
            100 + constraints as u64,
        ));
    }
}

#[test]
fn proofs_at_and_just_above_powers_of_two_are_the_same() {
    for log2 in [4, 5, 6, 8, 10] {
        for rows in [(1 << log2) - 1, 1 << log2, (1 << log2) + 1] {
            let inputs = 1 + log2 % 4;
            assert_same_proofs(&RandomCircuit::new(rows - inputs - 1, inputs, rows as u64));
        }
    }
}

#[test]
fn proofs_over_all_densities_are_the_same() {
    // Without B, a circuit whose witness is not all bits may leave a variable unconstrained, for
    // which no parameters exist.
    let shares = [
        (0.0, 1.0),
        (0.05, 0.0),
        (0.05, 0.9),
        (0.5, 0.0),
        (0.5, 1.0),
        (1.0, 0.0),
        (1.0, 0.9),
    ];
    for (seed, (b_density, bit_share)) in (200..).zip(shares) {
        let circuit = RandomCircuit {
            b_density,
            bit_share,
            ..RandomCircuit::new(150, 4, seed)
        };
        assert_same_proofs(&circuit);
    }
}

#[test]
fn proofs_without_auxiliary_variables_are_the_same() {
    for (inputs, b_density) in [(1, 0.5), (5, 0.5), (5, 0.0), (40, 1.0)] {
        let circuit = RandomCircuit {
            aux: false,
            b_density,
            ..RandomCircuit::new(20, inputs, 300)
        };
        assert_same_proofs(&circuit);
    }
}

#[test]
fn proofs_with_any_number_of_inputs_are_the_same() {
    for inputs in [0, 1, 31, 64, 300] {
        assert_same_proofs(&RandomCircuit::new(60, inputs, 400 + inputs as u64));
    }
}

#[test]
fn proofs_of_a_larger_circuit_in_parallel_parts_are_the_same() {
    let circuit = RandomCircuit {
        parts: 3,
        ..RandomCircuit::new(4090, 5, 500)
    };
    assert_same_proofs(&circuit);
}

#[test]
fn proofs_of_random_shapes_are_the_same() {
    let mut rng = rng(600);
    for _ in 0..20 {
        let constraints = 1 + rng.next_u32() as usize % 400;
        let inputs = rng.next_u32() as usize % 20;
        let share = |x: u32| f64::from(x % 11) / 10.0;
        let circuit = RandomCircuit {
            bit_share: share(rng.next_u32()),
            b_density: 0.1 + share(rng.next_u32()),
            parts: 1 + rng.next_u32() as usize % 3,
            ..RandomCircuit::new(constraints, inputs, rng.next_u64() >> 1)
        };
        assert_same_proofs(&circuit);
    }
}

#[test]
fn the_free_functions_draw_the_same_random_numbers() {
    let example = example();
    let circuit = || example.circuit.clone();
    let expected = reference::create_random_proof::<Bls12, _, _, _>(
        circuit(),
        &example.reference,
        &mut rng(5),
    )
    .unwrap();
    let proof = create_random_proof(circuit(), &example.params, &mut rng(5)).unwrap();
    assert_eq!(proof.to_bytes()[..], proof_bytes(&expected));

    let circuits = || {
        (0..3)
            .map(|value_seed| RandomCircuit {
                value_seed,
                ..circuit()
            })
            .collect()
    };
    let expected: Vec<_> = reference::create_random_proof_batch::<Bls12, _, _, _>(
        circuits(),
        &example.reference,
        &mut rng(6),
    )
    .unwrap()
    .iter()
    .map(proof_bytes)
    .collect();
    let proofs = create_random_proof_batch(circuits(), &example.params, &mut rng(6)).unwrap();
    let proofs: Vec<_> = proofs
        .iter()
        .map(|proof| proof.to_bytes().to_vec())
        .collect();
    assert_eq!(proofs, expected);
}

#[test]
fn every_way_to_make_a_proof_makes_the_same_one() {
    let example = example();
    let (r, s) = (Scalar::from(3), Scalar::from(11));
    let circuit = || example.circuit.clone();
    let expected = create_proof(circuit(), &example.params, r, s).unwrap();
    let batch = create_proof_batch(vec![circuit(); 4], &example.params, vec![r; 4], vec![s; 4]);
    assert_eq!(batch.unwrap(), [expected; 4]);
    let assignments = synthesize_circuits_batch(vec![circuit()]).unwrap();
    let split = prove_from_assignments(assignments, &example.params, vec![r], vec![s]);
    assert_eq!(split.unwrap(), [expected]);
}

#[test]
fn files_that_either_writes_are_read_by_the_other() {
    let example = example();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit.params");
    example.params.write(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), example.file);
    let read = reference::Parameters::read(std::fs::File::open(&path).unwrap(), true).unwrap();
    assert!(read == example.reference);
    let mapped =
        reference::Parameters::<Bls12>::build_mapped_parameters(path.clone(), true).unwrap();
    assert_eq!(mapped.h.len(), example.params.counts().h);

    let back = Params::open(&path).unwrap();
    assert_eq!(back.vk(), example.params.vk());
    assert_eq!(back.b_g2(), example.params.b_g2());
    assert_eq!(back.counts().file_bytes(), example.file.len() as u64);
}

#[test]
fn a_key_file_is_the_prefix_of_the_parameter_file() {
    let example = example();
    let bytes = example.params.vk().to_bytes().unwrap();
    assert_eq!(bytes, example.file[..bytes.len()]);
    let read = reference::VerifyingKey::<Bls12>::read(&bytes[..]).unwrap();
    assert!(read == example.reference.vk);
}
