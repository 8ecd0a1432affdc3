//! The GPU back end over the emulator: the CPU's proofs byte for byte, whatever the memory plan.

mod points;

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_circuit::{CompiledCircuit, synthesize, testing::RandomCircuit, witness};
use cuzk_kernels::runtime::{EmulatedRuntime, Runtime};
use cuzk_prover::gpu::Gpu;
use cuzk_prover::gpu::plan::{BaseSet, BaseSets, Choices};
use cuzk_prover::{Device, Params, ProveError, Prover, generate_random_parameters};
use ff::Field;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

/// Enough device memory for the small circuits here.
const MEMORY: u64 = 1 << 30;

fn circuit(seed: u64, constraints: usize, bits: f64, b_density: f64) -> RandomCircuit {
    RandomCircuit {
        bit_share: bits,
        b_density,
        ..RandomCircuit::new(constraints, 3, seed)
    }
}

fn params(circuit: &RandomCircuit, rng: &mut ChaCha20Rng) -> Arc<Params> {
    Arc::new(generate_random_parameters(circuit.clone(), rng).unwrap())
}

#[test]
fn proofs_are_the_cpus_byte_for_byte() {
    let seed = 11;
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let device = EmulatedRuntime::new(MEMORY);
    let gpu = Prover::with_backend(Gpu::new(vec![Arc::new(device.clone())], None));
    let cpu = Prover::new(Device::Cpu).unwrap();
    for (constraints, bits, b_density) in [(1, 0.5, 1.0), (61, 0.9, 0.5), (62, 0.0, 1.0)] {
        let circuit = circuit(seed, constraints, bits, b_density);
        let params = params(&circuit, &mut rng);
        for _ in 0..2 {
            let (r, s) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
            let assignment = synthesize(circuit.clone()).unwrap();
            let expected = cpu.prove(&params, assignment.clone(), r, s).unwrap();
            let found = gpu.prove(&params, assignment, r, s).unwrap();
            assert_eq!(
                found.proof.to_bytes(),
                expected.proof.to_bytes(),
                "seed {seed}, {constraints} rows"
            );
        }
    }
    drop(gpu);
    assert_eq!(device.reserved(), 0, "device memory leaked");
}

#[test]
fn a_compiled_circuit_gives_the_same_proof_as_synthesis_on_both_back_ends() {
    let seed = 14;
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let device = EmulatedRuntime::new(MEMORY);
    let gpu = Prover::with_backend(Gpu::new(vec![Arc::new(device.clone())], None));
    let cpu = Prover::new(Device::Cpu).unwrap();
    for (constraints, bits, b_density) in [(1, 0.5, 1.0), (60, 0.9, 0.5), (70, 0.0, 1.0)] {
        let circuit = circuit(seed, constraints, bits, b_density);
        let params = params(&circuit, &mut rng);
        let compiled = Arc::new(CompiledCircuit::record("random", circuit.clone()).unwrap());
        for value_seed in 0..2 {
            let mut circuit = circuit.clone();
            circuit.value_seed = value_seed;
            let (r, s) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
            let assignment = synthesize(circuit.clone()).unwrap();
            let expected = cpu.prove(&params, assignment, r, s).unwrap();
            for prover in [&cpu, &gpu] {
                let values = witness(circuit.clone()).unwrap();
                let found = prover
                    .start_compiled(&params, &compiled, values.clone(), r, s)
                    .and_then(|pending| pending.finish())
                    .unwrap();
                let case = format!("seed {seed}, {constraints} rows, {}", prover.backend());
                assert_eq!(found.proof.to_bytes(), expected.proof.to_bytes(), "{case}");
                assert_eq!(found.assignment.witness, values, "{case}");
            }
        }
    }
    drop(gpu);
    assert_eq!(device.reserved(), 0, "device memory leaked");
}

/// A circuit with enough private variables for several blocks, its parameters and a compiled form.
fn example(seed: u64) -> (RandomCircuit, Arc<Params>, Arc<CompiledCircuit>) {
    let circuit = circuit(seed, 140, 0.6, 0.7);
    let params = params(&circuit, &mut ChaCha20Rng::seed_from_u64(seed));
    let compiled = CompiledCircuit::record("random", circuit.clone()).unwrap();
    (circuit, params, Arc::new(compiled))
}

#[test]
fn every_memory_plan_gives_the_same_proof() {
    let seed = 15;
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let (circuit, params, compiled) = example(seed);
    let (r, s) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
    let assignment = synthesize(circuit.clone()).unwrap();
    let cpu = Prover::new(Device::Cpu).unwrap();
    let expected = cpu.prove(&params, assignment.clone(), r, s).unwrap();
    let some = BaseSets::NONE.with(BaseSet::H).with(BaseSet::BG1);
    let choices = |resident, rows, h_pieces, variable_pieces| Choices {
        resident: Some(resident),
        rows: Some(rows),
        h_pieces: Some(h_pieces),
        variable_pieces: Some(variable_pieces),
        lanes: Some(1),
    };
    let plans = [
        choices(BaseSets::NONE, 0, 1, 1),
        choices(BaseSets::ALL, 0, 3, 2),
        choices(BaseSets::ALL, 1, 2, 1),
        choices(BaseSets::NONE, 2, 2, 2),
        choices(some, 3, 1, 2),
    ];
    for (k, choices) in plans.into_iter().enumerate() {
        let device = EmulatedRuntime::new(MEMORY);
        let runtime: Arc<dyn Runtime> = Arc::new(device.clone());
        let prover = Prover::with_backend(Gpu::with_choices(vec![runtime], None, choices));
        let found = if k % 2 == 0 {
            prover.prove(&params, assignment.clone(), r, s).unwrap()
        } else {
            let values = witness(circuit.clone()).unwrap();
            let pending = prover.start_compiled(&params, &compiled, values, r, s);
            pending.unwrap().finish().unwrap()
        };
        assert_eq!(found.retries, [], "{choices:?}");
        let (found, expected) = (found.proof.to_bytes(), expected.proof.to_bytes());
        assert_eq!(found, expected, "seed {seed}, {choices:?}");
        drop(prover);
        assert_eq!(device.reserved(), 0, "{choices:?}: device memory leaked");
    }
}

#[test]
fn every_memory_limit_gives_the_same_proof_and_is_kept() {
    let seed = 16;
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let (circuit, params, _) = example(seed);
    let (r, s) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
    let assignment = synthesize(circuit).unwrap();
    let cpu = Prover::new(Device::Cpu).unwrap();
    let expected = cpu.prove(&params, assignment.clone(), r, s).unwrap();
    let on = |device: &EmulatedRuntime, limit| {
        let runtime: Arc<dyn Runtime> = Arc::new(device.clone());
        Prover::with_backend(Gpu::new(vec![runtime], Some(limit)))
    };
    let device = EmulatedRuntime::new(MEMORY);
    let error = on(&device, 20_000).prove(&params, assignment.clone(), r, s);
    let Err(ProveError::DeviceMemory { needed, limit, .. }) = error else {
        panic!("{error:?}");
    };
    assert_eq!(limit, 20_000);
    assert_eq!(device.most_reserved(), 0, "work began");
    for limit in [needed, needed + needed / 8, 2 * needed] {
        let device = EmulatedRuntime::new(MEMORY);
        let prover = on(&device, limit);
        let plans = prover.plans(&params, &assignment, None).unwrap();
        let (_, plan) = &plans[0];
        assert!(plan.bytes() <= limit, "{plan}");
        let found = prover.prove(&params, assignment.clone(), r, s).unwrap();
        assert_eq!(found.retries, [], "{plan}");
        let (found, expected) = (found.proof.to_bytes(), expected.proof.to_bytes());
        assert_eq!(found, expected, "seed {seed}\n{plan}");
        assert!(device.most_reserved() <= limit, "{plan}");
    }
}

#[test]
fn a_device_that_others_fill_is_used_as_far_as_there_is_room() {
    let (circuit, params, _) = example(17);
    let device = EmulatedRuntime::new(6 << 20);
    let taken = device.allocate(4 << 20).unwrap();
    let runtime: Arc<dyn Runtime> = Arc::new(device.clone());
    let prover = Prover::with_backend(Gpu::new(vec![runtime], None));
    let assignment = synthesize(circuit).unwrap();
    let finished = prover.prove(&params, assignment, Scalar::ONE, Scalar::ONE);
    assert_eq!(finished.unwrap().retries, []);
    drop(prover);
    device.release(taken);
    assert_eq!(device.reserved(), 0);
}

/// A parameter file whose points the device decodes.
fn mapped(bytes: &[u8]) -> (tempfile::TempDir, Arc<Params>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.params");
    std::fs::write(&path, bytes).unwrap();
    let params = Arc::new(Params::map(&path).unwrap());
    (folder, params)
}

#[test]
fn mapped_files_are_decoded_on_the_device_and_bad_points_named() {
    let mut rng = ChaCha20Rng::seed_from_u64(15);
    let circuit = circuit(15, 20, 0.5, 0.5);
    let params = params(&circuit, &mut rng);
    let mut bytes = Vec::new();
    params.write_to(&mut bytes).unwrap();
    let (r, s) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
    let assignment = synthesize(circuit).unwrap();
    let device = || -> Arc<dyn Runtime> { Arc::new(EmulatedRuntime::new(MEMORY)) };
    let prover = Prover::with_backend(Gpu::new(vec![device()], None));
    let expected = prover.prove(&params, assignment.clone(), r, s).unwrap();

    let (_folder, good) = mapped(&bytes);
    let found = prover.prove(&good, assignment.clone(), r, s).unwrap();
    assert_eq!(found.proof, expected.proof);
    assert!(good.h().is_empty(), "the host decoded the points");

    // The last point of h and the first of b in G2, found from the counts.
    let counts = params.counts();
    let b_g2 = bytes.len() - 192 * counts.b;
    let h_end = bytes.len()
        - (4 + 192 * counts.b)
        - (4 + 96 * counts.b)
        - (4 + 96 * counts.a)
        - (4 + 96 * counts.l);
    let outside = points::outside_of_subgroup();
    let last_h = format!("h[{}]", counts.h - 1);
    for (at, patch, parts) in [
        (
            h_end - 1,
            vec![bytes[h_end - 1] ^ 1],
            [last_h.as_str(), "no point of the curve"],
        ),
        (
            h_end - 96,
            outside.to_vec(),
            [last_h.as_str(), "outside of the prime-order subgroup"],
        ),
        (b_g2, vec![bytes[b_g2] | 0x80], ["b_g2[0]", "flag bits"]),
    ] {
        let mut bad = bytes.clone();
        bad[at..at + patch.len()].copy_from_slice(&patch);
        let (_folder, bad) = mapped(&bad);
        let error = prover.prove(&bad, assignment.clone(), r, s).unwrap_err();
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}
