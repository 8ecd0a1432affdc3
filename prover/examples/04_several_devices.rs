//! Spreads a batch of proofs over all devices. Without CUDA devices it runs on two emulated ones, whose kernels
//! the CPU executes: slowly, but the same way.
use std::{collections::BTreeMap, error::Error, sync::Arc};

use cuzk_circuit::{Assignment, synthesize, testing::RandomCircuit};
use cuzk_kernels::runtime::{EmulatedRuntime, Runtime};
use cuzk_prover::{Device, PendingProof, Prover, generate_random_parameters, gpu::Gpu};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

const PROOFS: u64 = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let rng = &mut ChaCha20Rng::from_entropy();
    let (prover, rows) = match Prover::new(Device::Cuda(Vec::new())) {
        Ok(prover) => (prover, 20_000),
        Err(reason) => {
            println!("{reason}: emulated devices instead");
            let device = || Arc::new(EmulatedRuntime::new(1 << 30)) as Arc<dyn Runtime>;
            let gpu = Gpu::new(vec![device(), device()], None);
            (Prover::with_backend(gpu), 12)
        }
    };
    let circuit = |value_seed| RandomCircuit {
        value_seed,
        ..RandomCircuit::new(rows, 2, 1)
    };
    let params = Arc::new(generate_random_parameters(circuit(0), rng)?);

    // Each proof goes to the device with the fewest in flight; a device that fails is taken out of use and
    // its proofs go to the others.
    let witnesses: Vec<Assignment> = (1..=PROOFS)
        .map(|seed| synthesize(circuit(seed)))
        .collect::<Result<_, _>>()?;
    let pending: Vec<PendingProof> = witnesses
        .into_iter()
        .map(|assignment| prover.start_random(&params, assignment, rng))
        .collect::<Result<_, _>>()?;

    let mut made_by: BTreeMap<String, usize> = BTreeMap::new();
    for proof in pending {
        *made_by.entry(proof.finish()?.backend).or_default() += 1;
    }
    println!("{made_by:#?}");
    Ok(())
}
