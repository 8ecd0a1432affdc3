//! The GPU back end over the emulator: the CPU's proofs byte for byte, and typed errors after faults.

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_circuit::{CompiledCircuit, synthesize, testing::RandomCircuit, witness};
use cuzk_kernels::runtime::{Call, EmulatedRuntime, Fault, FaultyRuntime, Runtime};
use cuzk_prover::{Device, Params, ProveError, Prover, generate_random_parameters, gpu::Gpu};
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

#[test]
fn after_a_fault_comes_a_typed_error_and_then_a_right_proof() {
    let mut rng = ChaCha20Rng::seed_from_u64(12);
    let circuit = circuit(12, 20, 0.5, 0.5);
    let params = params(&circuit, &mut rng);
    let (r, s) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
    let assignment = synthesize(circuit).unwrap();
    let expected = Prover::new(Device::Cpu)
        .unwrap()
        .prove(&params, assignment.clone(), r, s)
        .unwrap();
    let faults = [
        Fault::Once(Call::Allocate, 4),
        Fault::Once(Call::Upload, 3),
        Fault::Once(Call::Launch, 30),
        Fault::Once(Call::Download, 1),
        Fault::Once(Call::Synchronize, 0),
        Fault::WrongResult(1),
    ];
    for fault in faults {
        let device = EmulatedRuntime::new(MEMORY);
        let faulty = Arc::new(FaultyRuntime::new(Arc::new(device.clone()), fault));
        let runtime: Arc<dyn Runtime> = faulty.clone();
        let prover = Prover::with_backend(Gpu::new(vec![runtime], None));
        let first = prover.prove(&params, assignment.clone(), r, s);
        assert!(faulty.struck(), "{fault:?} did not strike");
        let error = first.err();
        assert!(
            matches!(
                error,
                Some(ProveError::Backend { .. } | ProveError::Invalid { .. })
            ),
            "{fault:?}: {error:?}"
        );
        let second = prover.prove(&params, assignment.clone(), r, s).unwrap();
        assert_eq!(
            second.proof.to_bytes(),
            expected.proof.to_bytes(),
            "{fault:?}"
        );
        drop(prover);
        assert_eq!(device.reserved(), 0, "{fault:?}: device memory leaked");
    }
}

#[test]
fn too_little_device_memory_is_refused_with_the_numbers() {
    let mut rng = ChaCha20Rng::seed_from_u64(13);
    let circuit = circuit(13, 20, 0.5, 0.5);
    let params = params(&circuit, &mut rng);
    let runtime: Arc<dyn Runtime> = Arc::new(EmulatedRuntime::new(MEMORY));
    let prover = Prover::with_backend(Gpu::new(vec![runtime], Some(20_000)));
    let assignment = synthesize(circuit).unwrap();
    let error = prover
        .prove(&params, assignment, Scalar::ONE, Scalar::ONE)
        .unwrap_err();
    assert!(
        error.to_string().contains("bytes of device memory needed"),
        "{error}"
    );
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
    let outside = outside_of_subgroup();
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

/// A point of the curve that is not in the subgroup.
fn outside_of_subgroup() -> [u8; 96] {
    (1u8..)
        .find_map(|x| {
            let mut bytes = [0u8; 48];
            (bytes[0], bytes[47]) = (0x80, x);
            let point = Option::<blstrs::G1Affine>::from(
                blstrs::G1Affine::from_compressed_unchecked(&bytes),
            )?;
            (!bool::from(point.is_torsion_free())).then(|| point.to_uncompressed())
        })
        .unwrap()
}
