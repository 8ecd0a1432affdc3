//! Proves on a CUDA device if there is one, else on the CPU, and says which it was and what failed on the way.
use std::{error::Error, sync::Arc};

use cuzk_circuit::{synthesize, testing::RandomCircuit};
use cuzk_prover::{Device, Prover, generate_random_parameters};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

fn main() -> Result<(), Box<dyn Error>> {
    let rng = &mut ChaCha20Rng::from_entropy();
    let circuit = RandomCircuit::new(20_000, 4, 1);
    let params = Arc::new(generate_random_parameters(circuit.clone(), rng)?);

    // `auto` never fails for lack of a device; `Device::Cuda` would.
    let prover = Prover::new(Device::Auto)?;
    println!("devices: {}", prover.backend());

    let finished = prover.prove_random(&params, synthesize(circuit)?, rng)?;

    // A device that fails, panics or computes wrongly costs time, not the proof: it is made on another
    // device or on the CPU. `finish` verified it in any case.
    println!("made by {}", finished.backend);
    for retry in &finished.retries {
        println!("  after {} failed: {}", retry.backend, retry.reason);
    }
    println!("{}", finished.timeline.report());
    Ok(())
}
