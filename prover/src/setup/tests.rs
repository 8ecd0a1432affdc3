//! Generated parameters against bellperson's, byte for byte.

use super::*;
use crate::{Device, Prover, gpu::Gpu};
use bellpepper_core::{ConstraintSystem, Index, SynthesisError, Variable};
use bellperson::groth16::{Parameters, generate_parameters, generate_random_parameters};
use blstrs::Bls12;
use cuzk_circuit::testing::RandomCircuit;
use cuzk_kernels::runtime::EmulatedRuntime;
use ff::Field;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

fn waste(seed: u64) -> ToxicWaste {
    ToxicWaste::random(ChaCha20Rng::seed_from_u64(seed))
}

fn bellperson_bytes<C: Circuit<Scalar>>(circuit: C, waste: &ToxicWaste) -> Vec<u8> {
    let parameters: Parameters<Bls12> = generate_parameters(
        circuit,
        waste.g1,
        waste.g2,
        waste.alpha,
        waste.beta,
        waste.gamma,
        waste.delta,
        waste.tau,
    )
    .unwrap();
    let mut bytes = Vec::new();
    parameters.write(&mut bytes).unwrap();
    bytes
}

fn own_bytes<C: Circuit<Scalar> + Clone>(circuit: C, waste: &ToxicWaste) -> Vec<u8> {
    let mut bytes = Vec::new();
    generate(circuit, waste)
        .unwrap()
        .write_to(&mut bytes)
        .unwrap();
    bytes
}

#[test]
fn parameters_equal_those_of_bellperson_byte_for_byte() {
    for (seed, (constraints, inputs)) in [
        (1, 0),
        (2, 1),
        (7, 3),
        (63, 0),
        (64, 0),
        (300, 10),
        (1000, 23),
    ]
    .into_iter()
    .enumerate()
    {
        let seed = seed as u64;
        let mut circuit = RandomCircuit::new(constraints, inputs, seed);
        circuit.b_density = [0.5, 0.1, 1.0][seed as usize % 3];
        let waste = waste(seed);
        assert!(
            own_bytes(circuit.clone(), &waste) == bellperson_bytes(circuit, &waste),
            "seed {seed}: {constraints} constraints, {inputs} inputs"
        );
    }
}

#[test]
fn equal_random_numbers_give_the_parameters_that_bellperson_draws() {
    let circuit = RandomCircuit::new(40, 2, 9);
    let parameters: Parameters<Bls12> =
        generate_random_parameters(circuit.clone(), &mut ChaCha20Rng::seed_from_u64(9)).unwrap();
    let mut expected = Vec::new();
    parameters.write(&mut expected).unwrap();
    assert!(own_bytes(circuit, &waste(9)) == expected);
}

#[test]
fn a_circuit_without_private_variables_has_the_same_parameters() {
    let mut circuit = RandomCircuit::new(20, 4, 77);
    circuit.aux = false;
    let waste = waste(77);
    assert!(own_bytes(circuit.clone(), &waste) == bellperson_bytes(circuit, &waste));
}

#[test]
fn the_streamed_file_equals_the_parameters_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit.params");
    let circuit = RandomCircuit::new(200, 3, 5);
    let waste = waste(5);
    let mut last = None;
    generate_file(circuit.clone(), &waste, &path, &mut |progress| {
        last = Some(progress);
    })
    .unwrap();
    assert!(std::fs::read(&path).unwrap() == own_bytes(circuit, &waste));
    let last = last.unwrap();
    assert_eq!(last.done, last.total);
    assert!(Params::open(&path).is_ok());
}

/// One constraint, and a private variable that occurs in none.
#[derive(Clone)]
struct Loose;

impl Circuit<Scalar> for Loose {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let used = cs.alloc(|| "used", || Err(SynthesisError::AssignmentMissing))?;
        cs.alloc(|| "loose", || Err(SynthesisError::AssignmentMissing))?;
        cs.enforce(|| "used", |lc| lc + used, |lc| lc + used, |lc| lc + used);
        Ok(())
    }
}

#[test]
fn an_unconstrained_private_variable_is_named() {
    assert!(matches!(
        generate(Loose, &waste(1)),
        Err(SetupError::Unconstrained { index: 1 })
    ));
}

#[test]
fn zero_secrets_are_refused_by_name() {
    let circuit = RandomCircuit::new(3, 1, 1);
    let mut zero_delta = waste(1);
    zero_delta.delta = Scalar::ZERO;
    let error = generate(circuit, &zero_delta).unwrap_err();
    assert_eq!(error.to_string(), "the secret delta must not be zero");
}

#[test]
fn secrets_are_not_printed() {
    assert_eq!(format!("{:?}", waste(1)), "ToxicWaste { .. }");
}

/// Has another row each time it is synthesised.
#[derive(Clone)]
struct Unstable<'a>(&'a std::sync::atomic::AtomicUsize);

impl Circuit<Scalar> for Unstable<'_> {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let rows = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        for i in 0..rows {
            let one = Variable(Index::Input(0));
            let x = cs.alloc(|| format!("x{i}"), || Ok(Scalar::ONE))?;
            cs.enforce(
                || format!("row {i}"),
                |lc| lc + x,
                |lc| lc + one,
                |lc| lc + x,
            );
        }
        Ok(())
    }
}

#[test]
fn a_circuit_that_changes_between_syntheses_is_refused() {
    let rows = std::sync::atomic::AtomicUsize::new(0);
    assert!(matches!(
        generate(Unstable(&rows), &waste(1)),
        Err(SetupError::Unstable {
            first: 2,
            second: 3
        })
    ));
}

/// Emulated device memory.
const MEMORY: u64 = 1 << 30;

fn file_bytes(
    circuit: &CompiledCircuit,
    waste: &ToxicWaste,
    runtime: Option<&Arc<dyn Runtime>>,
) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.params");
    let mut last = None;
    generate_file_from(circuit, waste, runtime, &path, &mut |p| last = Some(p)).unwrap();
    assert!(last.is_some_and(|p| p.done == p.total), "{last:?}");
    std::fs::read(&path).unwrap()
}

#[test]
fn files_made_from_compiled_circuits_on_host_and_device_are_the_same() {
    let mut circuit = RandomCircuit::new(90, 3, 17);
    circuit.b_density = 0.4;
    let waste = waste(17);
    let expected = own_bytes(circuit.clone(), &waste);
    let compiled = CompiledCircuit::record_with_c("random", circuit).unwrap();
    assert!(file_bytes(&compiled, &waste, None) == expected, "host");
    let device = EmulatedRuntime::new(MEMORY);
    let runtime: Arc<dyn Runtime> = Arc::new(device.clone());
    assert!(
        file_bytes(&compiled, &waste, Some(&runtime)) == expected,
        "device"
    );
    assert_eq!(device.reserved(), 0, "device memory leaked");
}

#[test]
fn parameters_that_live_on_devices_prove_there_and_on_the_host() {
    let circuit = RandomCircuit::new(40, 2, 18);
    let mut rng = ChaCha20Rng::seed_from_u64(18);
    let expected = Arc::new(generate(circuit.clone(), &waste(18)).unwrap());
    let compiled = Arc::new(CompiledCircuit::record_with_c("random", circuit.clone()).unwrap());
    let params = Arc::new(prepare(compiled.clone(), waste(18)).unwrap());
    assert_eq!(params.counts(), expected.counts());
    assert_eq!(params.vk().ic, expected.vk().ic);
    let (r, s) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
    let witness = cuzk_circuit::witness(circuit.clone()).unwrap();
    let assignment = cuzk_circuit::synthesize(circuit).unwrap();
    let cpu = Prover::new(Device::Cpu).unwrap();
    let proof = cpu
        .prove(&expected, assignment.clone(), r, s)
        .unwrap()
        .proof;
    let runtime = || -> Arc<dyn Runtime> { Arc::new(EmulatedRuntime::new(MEMORY)) };
    // Each of two devices makes its own points.
    let gpu = Prover::with_backend(Gpu::new(vec![runtime(), runtime()], None));
    let pending: Vec<_> = (0..2)
        .map(|_| {
            gpu.start_compiled(&params, &compiled, witness.clone(), r, s)
                .unwrap()
        })
        .collect();
    for pending in pending {
        assert_eq!(pending.finish().unwrap().proof, proof);
    }
    assert!(params.h().is_empty(), "the host has no points");
    let on_host = cpu.prove(&params, assignment, r, s).unwrap().proof;
    assert_eq!(on_host, proof);
    assert_eq!(params.h(), expected.h());
}
