//! Verification: across both verifiers, in batches, and of everything that is wrong.

use bellperson::groth16 as reference;
use blstrs::{Bls12, G1Affine, Scalar};
use cuzk_circuit::{synthesize, testing::RandomCircuit};
use cuzk_prover::{
    PreparedVerifyingKey, Proof, VerifyError, VerifyingKey, prepare_verifying_key, verify_proof,
    verify_proofs_batch,
};
use ff::Field;
use group::Curve;

use crate::support::{cpu, example, rng};

/// Proofs for three witnesses of the example's circuit, with their inputs.
fn batch() -> (Vec<Proof>, Vec<Vec<Scalar>>) {
    (0..3)
        .map(|value_seed| {
            let circuit = RandomCircuit {
                value_seed,
                ..example().circuit.clone()
            };
            let assignment = synthesize(circuit).unwrap();
            let finished = cpu()
                .prove_random(&example().params, assignment, &mut rng(value_seed))
                .unwrap();
            (finished.proof, finished.public_inputs)
        })
        .unzip()
}

#[test]
fn a_proof_by_bellperson_verifies() {
    let example = example();
    let proof = reference::create_random_proof::<Bls12, _, _, _>(
        example.circuit.clone(),
        &example.reference,
        &mut rng(20),
    )
    .unwrap();
    let proof = Proof {
        a: proof.a,
        b: proof.b,
        c: proof.c,
    };
    let pvk = prepare_verifying_key(example.params.vk());
    assert_eq!(verify_proof(&pvk, &proof, &example.public_inputs), Ok(true));
}

#[test]
fn a_proof_with_any_bit_flipped_is_refused() {
    let example = example();
    let bytes = example.proof.to_bytes();
    let pvk = example.params.prepared_vk();
    let mut decoded = 0;
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Ok(proof) = Proof::from_bytes(&flipped) {
            decoded += 1;
            assert_eq!(
                pvk.verify(&proof, &example.public_inputs),
                Ok(false),
                "bit {bit}"
            );
        }
    }
    assert!(
        decoded >= 3,
        "at least the three sign bits decode, found {decoded}"
    );
}

#[test]
fn every_changed_input_is_refused() {
    let example = example();
    let pvk = example.params.prepared_vk();
    for i in 0..example.public_inputs.len() {
        for change in [Scalar::ONE, -Scalar::ONE, Scalar::from(1 << 40)] {
            let mut inputs = example.public_inputs.clone();
            inputs[i] += change;
            assert_eq!(pvk.verify(&example.proof, &inputs), Ok(false), "input {i}");
        }
    }
}

#[test]
fn a_key_with_any_bit_flipped_is_refused() {
    let example = example();
    let bytes = example.params.vk().to_bytes().unwrap();
    // Each byte once, with a bit that moves, so that the test stays quick.
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        if let Ok(vk) = VerifyingKey::from_bytes("flipped", &flipped) {
            let verdict =
                PreparedVerifyingKey::new(&vk).verify(&example.proof, &example.public_inputs);
            assert_ne!(verdict, Ok(true), "byte {at}");
        }
    }
}

#[test]
fn a_key_with_any_point_replaced_is_refused() {
    let example = example();
    let other = (example.params.vk().alpha_g1 * Scalar::from(5)).to_affine();
    let change: [fn(&mut VerifyingKey, G1Affine); 5] = [
        |vk, point| vk.alpha_g1 = point,
        |vk, _| vk.beta_g2 = -vk.beta_g2,
        |vk, _| vk.gamma_g2 = vk.delta_g2,
        |vk, _| vk.delta_g2 = vk.gamma_g2,
        |vk, point| vk.ic[1] = point,
    ];
    for (i, change) in change.iter().enumerate() {
        let mut vk = example.params.vk().clone();
        change(&mut vk, other);
        let pvk = PreparedVerifyingKey::new(&vk);
        assert_eq!(
            pvk.verify(&example.proof, &example.public_inputs),
            Ok(false),
            "change {i}"
        );
    }
}

#[test]
fn the_wrong_number_of_inputs_is_an_error() {
    let example = example();
    let pvk = example.params.prepared_vk();
    let expected = example.public_inputs.len();
    for found in [0, expected - 1, expected + 1] {
        let verdict = pvk.verify(&example.proof, &vec![Scalar::ONE; found]);
        assert_eq!(verdict, Err(VerifyError::InputCount { expected, found }));
    }
}

#[test]
fn a_batch_of_valid_proofs_passes() {
    let (proofs, inputs) = batch();
    let pvk = example().params.prepared_vk();
    for n in 1..=proofs.len() {
        let verdict = verify_proofs_batch(pvk, &mut rng(30), &proofs[..n], &inputs[..n]);
        assert_eq!(verdict, Ok(true), "{n} proofs");
    }
}

#[test]
fn a_batch_with_one_wrong_proof_or_input_is_refused() {
    let (proofs, inputs) = batch();
    let pvk = example().params.prepared_vk();
    for i in 0..proofs.len() {
        let mut wrong = proofs.clone();
        wrong[i].c = -wrong[i].c;
        assert_eq!(
            pvk.verify_batch(&mut rng(31), &wrong, &inputs),
            Ok(false),
            "proof {i}"
        );
        let mut wrong = inputs.clone();
        wrong[i][1] += Scalar::ONE;
        assert_eq!(
            pvk.verify_batch(&mut rng(32), &proofs, &wrong),
            Ok(false),
            "inputs {i}"
        );
    }
}

#[test]
fn errors_of_two_proofs_that_cancel_are_refused() {
    let (mut proofs, inputs) = batch();
    let shift = example().params.vk().delta_g1;
    proofs[0].c = (shift + blstrs::G1Projective::from(proofs[0].c)).to_affine();
    proofs[1].c = (blstrs::G1Projective::from(proofs[1].c) - shift).to_affine();
    let pvk = example().params.prepared_vk();
    assert_eq!(pvk.verify_batch(&mut rng(33), &proofs, &inputs), Ok(false));
}

#[test]
fn a_batch_of_no_proofs_or_uneven_lengths_is_an_error() {
    let (proofs, inputs) = batch();
    let pvk = example().params.prepared_vk();
    assert_eq!(
        pvk.verify_batch(&mut rng(34), &[], &[]),
        Err(VerifyError::EmptyBatch)
    );
    assert_eq!(
        pvk.verify_batch(&mut rng(34), &proofs, &inputs[1..]),
        Err(VerifyError::BatchLength {
            expected: 3,
            found: 2
        })
    );
}
