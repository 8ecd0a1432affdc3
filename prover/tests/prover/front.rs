//! The prover's front: what it refuses, that it verifies, how the two halves work together.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use blstrs::Scalar;
use cuzk_circuit::{
    Assignment, Bitmap, CompiledCircuit, Densities, synthesize, synthesize_into,
    testing::RandomCircuit, witness,
};
use cuzk_prover::{
    Backend, Cancel, Device, DeviceError, Failed, Job, Maker, Output, Params, ProveError, Prover,
    Running, create_proof_batch, timeline::Timeline,
};
use ff::Field;

use crate::support::{cpu, example, ours, reference_params, rng};

#[test]
fn cuda_without_a_device_is_a_typed_error() {
    assert!(matches!(
        Prover::new(Device::Cuda(vec![99])),
        Err(DeviceError::NoCuda { .. })
    ));
}

#[test]
fn the_back_end_says_what_it_is() {
    assert!(cpu().backend().starts_with("cpu ("));
}

#[test]
fn a_witness_that_violates_a_constraint_yields_an_error_and_no_proof() {
    let mut assignment = example().assignment();
    assignment.a[5] += Scalar::ONE;
    let outcome = cpu().prove_random(&example().params, assignment, &mut rng(1));
    assert!(
        matches!(outcome, Err(ProveError::Invalid { .. })),
        "{outcome:?}"
    );
}

#[test]
fn parameters_of_another_circuit_are_refused_at_the_start() {
    let params = &example().params;
    let base = &example().circuit;
    for circuit in [
        RandomCircuit {
            inputs: 4,
            ..base.clone()
        },
        RandomCircuit {
            constraints: 39,
            ..base.clone()
        },
        RandomCircuit {
            constraints: 100,
            ..base.clone()
        },
        RandomCircuit {
            b_density: 0.0,
            ..base.clone()
        },
    ] {
        let assignment = synthesize(circuit).unwrap();
        let outcome = cpu().start_random(params, assignment, &mut rng(1));
        assert!(
            matches!(outcome, Err(ProveError::Mismatch { .. })),
            "{outcome:?}"
        );
    }
}

#[test]
fn assignments_that_contradict_themselves_are_refused() {
    let break_it: [fn(&mut Assignment); 5] = [
        |assignment| assignment.a.truncate(3),
        |assignment| assignment.b.push(Scalar::ZERO),
        |assignment| assignment.constraints += 1,
        |assignment| assignment.witness.inputs[0] = Scalar::ZERO,
        |assignment| {
            let mut densities = Densities::clone(&assignment.densities);
            densities.b_aux = Bitmap::new();
            assignment.densities = Arc::new(densities);
        },
    ];
    for (i, break_it) in break_it.iter().enumerate() {
        let mut assignment = example().assignment();
        break_it(&mut assignment);
        let outcome = cpu().prove_random(&example().params, assignment, &mut rng(1));
        assert!(
            matches!(outcome, Err(ProveError::Assignment { .. })),
            "{i}: {outcome:?}"
        );
    }
    let empty = cpu().prove_random(&example().params, Assignment::default(), &mut rng(1));
    assert!(matches!(empty, Err(ProveError::Assignment { .. })));
}

#[test]
fn witnesses_and_compiled_circuits_that_do_not_fit_are_refused() {
    let circuit = &example().circuit;
    let compiled = |circuit: &RandomCircuit| {
        Arc::new(CompiledCircuit::record("example", circuit.clone()).unwrap())
    };
    let start = |compiled, break_it: fn(&mut cuzk_circuit::Witness)| {
        let mut witness = witness(circuit.clone()).unwrap();
        break_it(&mut witness);
        let (params, one) = (&example().params, Scalar::ONE);
        cpu().start_compiled(params, &compiled, witness, one, one)
    };
    let break_it: [fn(&mut cuzk_circuit::Witness); 3] = [
        |witness| witness.inputs.truncate(1),
        |witness| witness.aux.push(Scalar::ONE),
        |witness| witness.inputs[0] = Scalar::ZERO,
    ];
    for (i, break_it) in break_it.into_iter().enumerate() {
        let outcome = start(compiled(circuit), break_it);
        assert!(
            matches!(outcome, Err(ProveError::Assignment { .. })),
            "{i}: {outcome:?}"
        );
    }
    let other = RandomCircuit {
        constraints: circuit.constraints + 100,
        ..circuit.clone()
    };
    assert!(start(compiled(&other), |_| ()).is_err());
    assert!(start(compiled(circuit), |_| ()).is_ok());
}

#[test]
fn batches_need_one_r_and_one_s_for_each_circuit() {
    let circuits = vec![example().circuit.clone(); 2];
    let outcome = create_proof_batch(
        circuits,
        &example().params,
        vec![Scalar::ONE; 2],
        vec![Scalar::ONE],
    );
    assert!(matches!(
        outcome,
        Err(ProveError::BatchLength {
            what: "s",
            expected: 2,
            found: 1
        })
    ));
}

#[test]
fn the_next_circuit_is_synthesised_into_the_memory_of_the_last() {
    let example = example();
    let prover = cpu();
    let mut arena = example.assignment();
    for value_seed in 0..4 {
        let finished = prover
            .prove_random(&example.params, arena, &mut rng(value_seed))
            .unwrap();
        arena = finished.assignment;
        let room = arena.a.capacity();
        let circuit = RandomCircuit {
            value_seed,
            ..example.circuit.clone()
        };
        synthesize_into(circuit.clone(), &mut arena).unwrap();
        assert_eq!(arena, synthesize(circuit).unwrap());
        assert_eq!(arena.a.capacity(), room);
    }
}

#[test]
fn several_proofs_are_in_flight_and_finish_in_any_order() {
    let example = example();
    let prover = cpu();
    let start = |seed| prover.start_random(&example.params, example.assignment(), &mut rng(seed));
    let (first, second, third) = (start(1).unwrap(), start(2).unwrap(), start(3).unwrap());
    let expected = first.finish().unwrap().proof;
    assert_ne!(
        third.finish().unwrap().proof,
        second.finish().unwrap().proof
    );
    let again = prover
        .prove_random(&example.params, example.assignment(), &mut rng(1))
        .unwrap();
    assert_eq!(again.proof, expected);
}

#[test]
fn mapped_parameters_are_decoded_when_the_first_proof_needs_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuit.params");
    std::fs::write(&path, &example().file).unwrap();
    let params = Arc::new(Params::map(&path).unwrap());
    assert!(params.h().is_empty());
    assert_eq!(params.raw().unwrap().h.len(), 96 * params.counts().h);
    let finished = cpu()
        .prove_random(&params, example().assignment(), &mut rng(1))
        .unwrap();
    assert_eq!(finished.proof, example().proof);
    assert_eq!(params.h(), example().params.h());
}

#[test]
fn the_timeline_explains_a_proof() {
    let circuit = RandomCircuit::new(2000, 3, 9);
    let params = ours(&reference_params(&circuit));
    let timeline = Timeline::new();
    let assignment = timeline.span("synthesis").child("synthesize");
    let synthesised = synthesize(circuit).unwrap();
    drop(assignment);
    let pending = cpu()
        .start_on(
            timeline.clone(),
            &params,
            synthesised,
            Scalar::from(2),
            Scalar::from(3),
        )
        .unwrap();
    pending.finish().unwrap();
    let report = timeline.report();
    let row = |name: &str| report.rows.iter().find(|row| row.name == name).unwrap();
    for name in [
        "start", "quotient", "msm h", "msm l", "msm a", "msm b_g1", "msm b_g2", "verify",
    ] {
        assert_eq!(row(name).count, 1, "{name}");
    }
    let cpu = row("cpu");
    assert!(cpu.unexplained.unwrap() < 0.2 * cpu.wall + 0.05, "{report}");
}

/// The only device of a scripted back end.
fn scripted() -> Maker {
    Maker {
        name: "scripted".to_owned(),
        number: 0,
    }
}

/// A back end that hands a job to a function when it is finished.
struct Scripted<F>(F);

struct ScriptedRun<F>(F, Job);

impl<F> Backend for Scripted<F>
where
    F: Fn(Job) -> Result<Output, Box<Failed>> + Clone + Send + Sync + 'static,
{
    fn describe(&self) -> String {
        "scripted".to_owned()
    }

    fn start(&self, job: Job) -> Result<Box<dyn Running>, Box<Failed>> {
        Ok(Box::new(ScriptedRun(self.0.clone(), job)))
    }
}

impl<F: Fn(Job) -> Result<Output, Box<Failed>> + Send> Running for ScriptedRun<F> {
    fn is_finished(&self) -> bool {
        true
    }

    fn finish(self: Box<Self>) -> Result<Output, Box<Failed>> {
        (self.0)(self.1)
    }
}

#[test]
fn a_wrong_proof_of_a_back_end_never_leaves_the_prover() {
    let wrong = Scripted(|job: Job| {
        let mut proof = example().proof;
        proof.c = -proof.c;
        Ok(Output {
            proof,
            maker: scripted(),
            assignment: job.assignment,
        })
    });
    let prover = Prover::with_backend(wrong);
    let outcome = prover.prove_random(&example().params, example().assignment(), &mut rng(1));
    assert!(matches!(outcome, Err(ProveError::Invalid { backend }) if backend == "scripted"));
}

#[test]
fn a_proof_that_panics_on_a_device_is_made_on_the_cpu() {
    let failing = Scripted(|job: Job| {
        Err(Box::new(Failed {
            error: ProveError::WorkerPanicked {
                backend: "scripted".to_owned(),
                message: "oh".to_owned(),
            },
            maker: Some(scripted()),
            assignment: Some(job.assignment),
        }))
    });
    let start = |job: &Job| job.avoid.contains(&0);
    let prover = Prover::with_backend(Avoidable(failing, start));
    let finished = prover
        .prove_random(&example().params, example().assignment(), &mut rng(1))
        .unwrap();
    assert_eq!(finished.retries.len(), 1);
    assert_eq!(finished.retries[0].backend, "scripted");
    assert!(finished.retries[0].reason.contains("oh"));
    assert!(finished.backend.starts_with("cpu"), "{}", finished.backend);
    let report = finished.timeline.report();
    assert!(
        report.rows.iter().any(|row| row.name == "retry"),
        "{report}"
    );
}

/// A back end that has no device for some jobs.
struct Avoidable<B>(B, fn(&Job) -> bool);

impl<B: Backend> Backend for Avoidable<B> {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn start(&self, job: Job) -> Result<Box<dyn Running>, Box<Failed>> {
        if (self.1)(&job) {
            let backend = self.describe();
            return Err(Failed::before(job, ProveError::NoDevice { backend }));
        }
        self.0.start(job)
    }
}

#[test]
fn a_back_end_may_add_its_own_spans() {
    let device = Scripted(|job: Job| {
        let now = job.timeline.elapsed();
        job.timeline.record(
            Some(job.parent),
            "kernel",
            "cuda:0",
            now,
            Duration::from_millis(1),
        );
        Ok(Output {
            proof: example().proof,
            maker: scripted(),
            assignment: job.assignment,
        })
    });
    let prover = Prover::with_backend(device);
    let finished = prover
        .prove_random(&example().params, example().assignment(), &mut rng(1))
        .unwrap();
    assert!(finished.timeline.chrome_trace().contains("cuda:0"));
}

/// A back end that waits until its work is unwanted.
struct Patient(Arc<AtomicBool>);

impl Backend for Patient {
    fn describe(&self) -> String {
        "patient".to_owned()
    }

    fn start(&self, job: Job) -> Result<Box<dyn Running>, Box<Failed>> {
        let stopped = Arc::clone(&self.0);
        let cancelled: Cancel = job.cancelled;
        thread::spawn(move || {
            while !cancelled.is_cancelled() {
                thread::sleep(Duration::from_millis(1));
            }
            stopped.store(true, Ordering::SeqCst);
        });
        Ok(Box::new(Never))
    }
}

struct Never;

impl Running for Never {
    fn is_finished(&self) -> bool {
        false
    }

    fn finish(self: Box<Self>) -> Result<Output, Box<Failed>> {
        Err(ProveError::Cancelled.into())
    }
}

#[test]
fn dropping_a_pending_proof_cancels_its_work() {
    let stopped = Arc::new(AtomicBool::new(false));
    let prover = Prover::with_backend(Patient(Arc::clone(&stopped)));
    let pending = prover
        .start_random(&example().params, example().assignment(), &mut rng(1))
        .unwrap();
    assert!(!pending.is_finished());
    drop(pending);
    for _ in 0..2000 {
        if stopped.load(Ordering::SeqCst) {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("the work went on");
}
