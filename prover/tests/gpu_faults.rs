//! Faults and several devices, over the emulator: always the CPU's proof, byte for byte, and what failed is told.

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_circuit::{Assignment, synthesize, testing::RandomCircuit};
use cuzk_kernels::runtime::{Call, EmulatedRuntime, Fault, FaultyRuntime, Runtime};
use cuzk_prover::gpu::Gpu;
use cuzk_prover::gpu::plan::Choices;
use cuzk_prover::{Device, Finished, Params, ProveError, Prover, generate_random_parameters};
use ff::Field;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

/// Enough device memory for the small circuit here.
const MEMORY: u64 = 1 << 30;

/// A small circuit with what one needs to prove it, and the CPU's proof.
struct Example {
    params: Arc<Params>,
    assignment: Assignment,
    r: Scalar,
    s: Scalar,
    expected: [u8; 192],
}

impl Example {
    fn new(seed: u64, constraints: usize) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let circuit = RandomCircuit {
            bit_share: 0.5,
            b_density: 0.5,
            ..RandomCircuit::new(constraints, 3, seed)
        };
        let params = generate_random_parameters(circuit.clone(), &mut rng).unwrap();
        let params = Arc::new(params);
        let (r, s) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
        let assignment = synthesize(circuit).unwrap();
        let cpu = Prover::new(Device::Cpu).unwrap();
        let proof = cpu.prove(&params, assignment.clone(), r, s).unwrap().proof;
        Example {
            params,
            assignment,
            r,
            s,
            expected: proof.to_bytes(),
        }
    }

    fn prove(&self, prover: &Prover) -> Result<Finished, ProveError> {
        prover.prove(&self.params, self.assignment.clone(), self.r, self.s)
    }

    fn check(&self, finished: &Finished, case: &str) {
        assert_eq!(finished.proof.to_bytes(), self.expected, "{case}");
    }
}

fn faults() -> Vec<Fault> {
    let calls = [
        (Call::Allocate, &[0, 3, 12][..]),
        (Call::Upload, &[0, 5, 12]),
        (Call::Download, &[0, 1, 4]),
        (Call::Fill, &[0, 2]),
        (Call::Launch, &[0, 5, 60]),
        (Call::Synchronize, &[0, 1, 2]),
        (Call::Event, &[0, 4, 9]),
    ];
    let numbered = calls.into_iter().flat_map(|(call, numbers)| {
        let both = move |&n: &u64| [Fault::Once(call, n), Fault::Sticky(call, n)];
        numbers.iter().flat_map(both)
    });
    numbered.chain([0, 3].map(Fault::WrongResult)).collect()
}

#[test]
fn after_any_fault_the_proof_is_made_elsewhere_and_nothing_leaks() {
    let example = Example::new(12, 20);
    for fault in faults() {
        let device = EmulatedRuntime::new(MEMORY);
        let faulty = Arc::new(FaultyRuntime::new(Arc::new(device.clone()), fault));
        let runtime: Arc<dyn Runtime> = faulty.clone();
        let prover = Prover::with_backend(Gpu::new(vec![runtime], None));
        let first = example.prove(&prover).unwrap();
        assert!(faulty.struck(), "{fault:?} did not strike");
        example.check(&first, &format!("{fault:?}"));
        assert_eq!(first.retries.len(), 1, "{fault:?}");
        assert!(first.retries[0].backend.contains("emulator"), "{fault:?}");
        assert!(first.backend.starts_with("cpu"), "{fault:?}");
        drop(prover);
        assert_eq!(device.reserved(), 0, "{fault:?}: device memory leaked");
    }
}

#[test]
fn a_fault_that_passes_leaves_the_device_in_use_and_a_lasting_one_takes_it_out() {
    let example = Example::new(13, 20);
    for (fault, in_use) in [
        (Fault::Once(Call::Launch, 30), true),
        (Fault::WrongResult(1), true),
        (Fault::Sticky(Call::Launch, 30), false),
    ] {
        let device = EmulatedRuntime::new(MEMORY);
        let runtime: Arc<dyn Runtime> = Arc::new(FaultyRuntime::new(Arc::new(device), fault));
        let prover = Prover::with_backend(Gpu::new(vec![runtime], None));
        example.check(&example.prove(&prover).unwrap(), "first");
        let second = example.prove(&prover).unwrap();
        example.check(&second, "second");
        assert_eq!(second.backend.contains("emulator"), in_use, "{fault:?}");
        assert_eq!(second.retries.is_empty(), in_use, "{fault:?}");
    }
}

#[test]
fn a_wrong_witness_is_an_error_after_one_more_attempt() {
    let mut example = Example::new(14, 20);
    let last = example.assignment.a.len() - 5;
    example.assignment.a[last] += Scalar::ONE;
    let runtime: Arc<dyn Runtime> = Arc::new(EmulatedRuntime::new(MEMORY));
    let prover = Prover::with_backend(Gpu::new(vec![runtime], None));
    let outcome = example.prove(&prover);
    assert!(
        matches!(outcome, Err(ProveError::Invalid { .. })),
        "{outcome:?}"
    );
}

/// Starts `count` proofs before the first is fetched.
fn batch(example: &Example, prover: &Prover, count: usize) -> Vec<Finished> {
    let start = |_| {
        let assignment = example.assignment.clone();
        prover.start(&example.params, assignment, example.r, example.s)
    };
    let pending: Vec<_> = (0..count).map(start).collect::<Result<_, _>>().unwrap();
    pending.into_iter().map(|p| p.finish().unwrap()).collect()
}

fn devices(count: usize) -> (Vec<EmulatedRuntime>, Vec<Arc<dyn Runtime>>) {
    let devices: Vec<_> = (0..count).map(|_| EmulatedRuntime::new(MEMORY)).collect();
    let runtimes = devices.iter().map(|device| Arc::new(device.clone()) as _);
    let runtimes = runtimes.collect();
    (devices, runtimes)
}

#[test]
fn batches_spread_over_all_devices() {
    let example = Example::new(15, 6);
    let (devices, runtimes) = devices(3);
    let prover = Prover::with_backend(Gpu::new(runtimes, None));
    for count in [1, 10, 30] {
        let before: Vec<u64> = devices.iter().map(EmulatedRuntime::launches).collect();
        for finished in batch(&example, &prover, count) {
            example.check(&finished, "batch");
            assert_eq!(finished.retries, []);
        }
        let working = devices.iter().zip(before);
        let working = working.filter(|(device, before)| device.launches() > *before);
        assert_eq!(working.count(), count.min(3), "{count} proofs");
    }
    drop(prover);
    assert!(devices.iter().all(|device| device.reserved() == 0));
}

#[test]
fn the_work_of_a_device_that_fails_in_the_middle_of_a_batch_goes_to_the_others() {
    let example = Example::new(16, 6);
    let (devices, mut runtimes) = devices(3);
    let fault = Fault::Sticky(Call::Launch, 700);
    runtimes[1] = Arc::new(FaultyRuntime::new(runtimes[1].clone(), fault));
    let prover = Prover::with_backend(Gpu::new(runtimes, None));
    let finished = batch(&example, &prover, 15);
    let mut retried = 0;
    for finished in &finished {
        example.check(finished, "batch");
        assert!(
            finished.backend.contains("emulator"),
            "{}",
            finished.backend
        );
        retried += finished.retries.len();
    }
    assert!(retried >= 1, "the fault did not strike");
    let after = batch(&example, &prover, 6);
    assert!(after.iter().all(|finished| finished.retries.is_empty()));
    drop(prover);
    assert!(devices.iter().all(|device| device.reserved() == 0));
}

#[test]
fn two_proofs_at_once_on_one_device_are_right() {
    let example = Example::new(17, 20);
    let device = EmulatedRuntime::new(MEMORY);
    let runtime: Arc<dyn Runtime> = Arc::new(device.clone());
    let choices = Choices {
        lanes: Some(2),
        ..Choices::default()
    };
    let prover = Prover::with_backend(Gpu::with_choices(vec![runtime], None, choices));
    for finished in batch(&example, &prover, 5) {
        example.check(&finished, "batch");
        assert_eq!(finished.retries, []);
    }
    drop(prover);
    assert_eq!(device.reserved(), 0);
}

#[test]
fn proofs_of_different_circuits_take_turns_on_a_device() {
    let examples = [Example::new(18, 6), Example::new(19, 20)];
    let runtime: Arc<dyn Runtime> = Arc::new(EmulatedRuntime::new(MEMORY));
    let prover = Prover::with_backend(Gpu::new(vec![runtime], None));
    let start = |k: usize| {
        let example = &examples[k % 2];
        let assignment = example.assignment.clone();
        prover.start(&example.params, assignment, example.r, example.s)
    };
    let pending: Vec<_> = (0..6).map(start).collect::<Result<_, _>>().unwrap();
    for (k, pending) in pending.into_iter().enumerate() {
        examples[k % 2].check(&pending.finish().unwrap(), "alternating");
    }
}
