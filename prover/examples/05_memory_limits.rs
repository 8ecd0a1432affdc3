//! Proves within ever less device memory: the plan says what stays on the device and what is streamed, the proof
//! is the same. Without a CUDA device it runs on an emulated one.
use std::{error::Error, sync::Arc, time::Instant};

use blstrs::Scalar;
use cuzk_circuit::{synthesize, testing::RandomCircuit};
use cuzk_kernels::runtime::EmulatedRuntime;
use cuzk_prover::{Device, ProveError, Prover, generate_random_parameters, gpu::Gpu};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

fn main() -> Result<(), Box<dyn Error>> {
    let rng = &mut ChaCha20Rng::from_entropy();
    let real = Prover::new(Device::Cuda(Vec::new())).is_ok();
    let circuit = RandomCircuit::new(if real { 1 << 18 } else { 20 }, 2, 1);
    let params = Arc::new(generate_random_parameters(circuit.clone(), rng)?);
    let assignment = synthesize(circuit)?;
    let prover = |limit| -> Result<Prover, Box<dyn Error>> {
        if real {
            return Ok(Prover::with_memory_limit(Device::Cuda(Vec::new()), limit)?);
        }
        let device = Arc::new(EmulatedRuntime::new(1 << 30));
        Ok(Prover::with_backend(Gpu::new(vec![device], limit)))
    };

    // What cannot fit is an error before any work is done, and says how much would do.
    let (r, s) = (Scalar::from(11), Scalar::from(12));
    let refused = prover(Some(1000))?.prove(&params, assignment.clone(), r, s);
    let Err(ProveError::DeviceMemory { needed, .. }) = refused else {
        return Err("1,000 bytes were enough".into());
    };

    let mut proofs = Vec::new();
    for limit in [None, Some(2 * needed), Some(needed)] {
        let prover = prover(limit)?;
        for (device, plan) in prover.plans(&params, &assignment, None)? {
            println!("{device}\n{plan}");
        }
        let start = Instant::now();
        let finished = prover.prove(&params, assignment.clone(), r, s)?;
        println!("made by {} in {:?}\n", finished.backend, start.elapsed());
        proofs.push(finished.proof.to_bytes());
    }
    assert!(proofs.iter().all(|proof| *proof == proofs[0]));
    println!("the same proof each time");
    Ok(())
}
