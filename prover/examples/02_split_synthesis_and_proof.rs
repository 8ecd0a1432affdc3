//! Synthesises the next circuit while the device proves the last one, reuses its memory, verifies
//! all proofs as one batch and prints where the time went.
use std::{error::Error, sync::Arc};

use cuzk_circuit::{Assignment, synthesize_into, testing::RandomCircuit};
use cuzk_prover::{
    Device, Finished, PendingProof, Prover, generate_random_parameters, timeline::Timeline,
};
use ff::Field;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

/// Circuits of the same shape with different witnesses.
fn circuit(value_seed: u64) -> RandomCircuit {
    RandomCircuit {
        value_seed,
        ..RandomCircuit::new(20_000, 4, 1)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let rng = &mut ChaCha20Rng::from_entropy();
    let params = Arc::new(generate_random_parameters(circuit(0), rng)?);
    let prover = Prover::new(Device::Auto)?;
    let timeline = Timeline::new();

    let (mut proofs, mut inputs) = (Vec::new(), Vec::new());
    let mut keep = |finished: Finished| {
        proofs.push(finished.proof);
        inputs.push(finished.public_inputs);
        finished.assignment
    };
    let mut pending: Option<PendingProof> = None;
    let mut spare = Assignment::default();
    for value_seed in 1..=4 {
        // The device works on the last circuit while this one is synthesised.
        let synthesis = timeline.span("synthesis");
        synthesize_into(circuit(value_seed), &mut spare)?;
        drop(synthesis);

        // `start` returns as soon as the device has what it needs.
        let (r, s) = (Field::random(&mut *rng), Field::random(&mut *rng));
        let started = prover.start_on(timeline.clone(), &params, spare, r, s)?;

        // `finish` verifies the proof and hands the memory back for the circuit after the next.
        spare = match pending.replace(started) {
            Some(last) => keep(last.finish()?),
            None => Assignment::default(),
        };
    }
    if let Some(last) = pending {
        keep(last.finish()?);
    }

    let valid = params.prepared_vk().verify_batch(rng, &proofs, &inputs)?;
    println!(
        "{}: {} proofs, all valid: {valid}\n",
        prover.backend(),
        proofs.len()
    );
    println!("{}", timeline.report());
    Ok(())
}
