//! Times the evaluation of a compiled circuit on a CUDA device, and checks it against the CPU's.
//!
//! `cargo bench -p cuzk-prover --bench device_evaluate -- FILE IDENTITY [RUNS]`: FILE is a compiled circuit such
//! as `cuzk prove` keeps beside the parameters, IDENTITY its name in the file. The witness is made up, 1.3 % of
//! it other than 0 and 1: once in stretches, as hashes of field elements are, once anywhere. A time is the
//! device's from the first launch to the end of the last, the median over the runs.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use blstrs::Scalar;
use cuzk_circuit::{Assignment, CompactScalars, CompiledCircuit, Witness};
use cuzk_kernels::runtime::Runtime;
use cuzk_prover::cuda::CudaRuntime;
use cuzk_prover::gpu::evaluate::Evaluator;
use ff::Field;
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Of this many private variables, [`OTHERS`] are neither 0 nor 1.
const STRETCH: usize = 10_000;
const OTHERS: usize = 130;

fn main() -> Outcome<()> {
    // cargo passes `--bench`.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let [file, identity, rest @ ..] = arguments.as_slice() else {
        println!("device_evaluate: FILE IDENTITY [RUNS]");
        return Ok(());
    };
    let runs = rest.first().map_or(Ok(9), |text| text.parse())?;
    let start = Instant::now();
    let compiled = Arc::new(CompiledCircuit::open(file, identity)?);
    println!(
        "{identity}: opened in {:.3} s",
        start.elapsed().as_secs_f64()
    );
    println!("{:?}\n{:?}", compiled.shape(), compiled.size());
    let runtime: Arc<dyn Runtime> = Arc::new(CudaRuntime::new(0)?);
    println!("{}", runtime.name());
    let start = Instant::now();
    let mut evaluator = Evaluator::new(&runtime, &compiled)?;
    runtime.synchronize()?;
    println!(
        "tables: {:.1} MB on the device in {:.3} s",
        evaluator.table_bytes() as f64 / 1e6,
        start.elapsed().as_secs_f64()
    );
    for scattered in [false, true] {
        println!(
            "others {}",
            if scattered {
                "anywhere"
            } else {
                "in stretches"
            }
        );
        let witness = witness(&compiled, scattered);
        measure(&mut evaluator, &compiled, witness, runs)?;
    }
    Ok(())
}

fn witness(compiled: &CompiledCircuit, scattered: bool) -> Witness {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let (inputs, len) = (compiled.shape().inputs, compiled.shape().aux);
    let mut witness = Witness {
        inputs: (0..inputs).map(|_| Scalar::random(&mut rng)).collect(),
        aux: CompactScalars::with_capacity(len, len / STRETCH * OTHERS + OTHERS),
    };
    witness.inputs[0] = Scalar::ONE;
    for at in (0..len).step_by(STRETCH) {
        let end = len.min(at + STRETCH);
        let others = OTHERS.min(end - at);
        let gap = if scattered {
            (end - at) / others - 1
        } else {
            0
        };
        let bits = end - at - others * (1 + gap);
        push_bits(&mut witness.aux, &mut rng, bits);
        for _ in 0..others {
            push_bits(&mut witness.aux, &mut rng, gap);
            witness.aux.push(Scalar::from(2 + rng.next_u64()).square());
        }
    }
    witness
}

fn push_bits(aux: &mut CompactScalars, rng: &mut ChaCha20Rng, mut count: usize) {
    while count > 0 {
        let some = count.min(64);
        aux.push_bits(rng.next_u64(), some);
        count -= some;
    }
}

fn measure(
    evaluator: &mut Evaluator,
    compiled: &CompiledCircuit,
    witness: Witness,
    runs: usize,
) -> Outcome<()> {
    let mut times = Vec::new();
    let mut uploads = Vec::new();
    for _ in 0..=runs {
        let start = Instant::now();
        let time = evaluator.run(&witness)?;
        uploads.push(start.elapsed().saturating_sub(time));
        times.push(time);
    }
    // The first one warms up.
    let [(time, best), (upload, _)] = [times, uploads].map(|mut times| {
        times.remove(0);
        times.sort();
        (times[times.len() / 2].as_secs_f64(), times[0].as_secs_f64())
    });
    println!(
        "  witness copied in {:.2} ms, evaluated in {:.2} ms (best {:.2}): {:.2} G rows/s, {:.0} GB/s written",
        1e3 * upload,
        1e3 * time,
        1e3 * best,
        compiled.shape().constraints as f64 / time / 1e9,
        64.0 * compiled.shape().rows().next_power_of_two() as f64 / time / 1e9
    );
    let mut expected = Assignment {
        witness,
        ..Assignment::default()
    };
    let start = Instant::now();
    compiled.evaluate_into(&mut expected)?;
    println!(
        "  on the cpu, into fresh memory: {:.3} s",
        start.elapsed().as_secs_f64()
    );
    if !evaluator.holds(false, &expected.a)? || !evaluator.holds(true, &expected.b)? {
        return Err("the device yields other values than the cpu".into());
    }
    println!(
        "  all {} values of each side are the cpu's",
        expected.rows()
    );
    Ok(())
}
