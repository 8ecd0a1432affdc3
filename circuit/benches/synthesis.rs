//! Times direct synthesis, witness generation and compiled evaluation on the same circuits.
//!
//! `cargo bench -p cuzk-circuit --bench synthesis [-- --repeat N]`. Circuits: SHA-256 over 16 KiB
//! and random ones, repeated and not. Each line gives the medians of interleaved runs in
//! nanoseconds a row; results are compared bit for bit.

use bellpepper_core::boolean::{AllocatedBit, Boolean};
use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
use cuzk_circuit::testing::{RandomCircuit, RepeatedCircuit};
use cuzk_circuit::{Assignment, CompiledCircuit, Scalar, synthesize_into, witness_into};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--repeat");
    let repeat = match arguments.nth(1) {
        Some(number) => number.parse()?,
        None => 5,
    };
    println!(
        "{:24} {:>9} {:>8} {:>8} {:>8} {:>8}   size",
        "ns a row", "rows", "record", "direct", "witness", "evaluate"
    );
    measure("sha256 of 16 KiB", Sha256(vec![0x3c; 1 << 14]), repeat)?;
    measure("random", RandomCircuit::new(1 << 18, 10, 1), repeat)?;
    for namespaces in [true, false] {
        let circuit = RepeatedCircuit {
            block: RandomCircuit::new(1 << 10, 1, 2),
            repetitions: 256,
            namespaces,
            altered: None,
        };
        let name = match namespaces {
            true => "repeated, namespaces",
            false => "repeated, no namespaces",
        };
        measure(name, circuit, repeat)?;
    }
    Ok(())
}

fn measure<C>(name: &str, circuit: C, repeat: usize) -> Result<(), Box<dyn Error>>
where
    C: Circuit<Scalar> + Clone,
{
    let start = Instant::now();
    let compiled = CompiledCircuit::record(name, circuit.clone())?;
    let record = start.elapsed();
    let (mut direct, mut arena) = (Assignment::default(), Assignment::default());
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..repeat.max(1) {
        let copy = circuit.clone();
        let start = Instant::now();
        synthesize_into(copy, &mut direct)?;
        times[0].push(start.elapsed());
        let copy = circuit.clone();
        let start = Instant::now();
        witness_into(copy, &mut arena.witness)?;
        times[1].push(start.elapsed());
        let start = Instant::now();
        compiled.evaluate_into(&mut arena)?;
        times[2].push(start.elapsed());
        if arena != direct {
            return Err(format!("{name}: the compiled circuit yields other values").into());
        }
    }
    let rows = direct.constraints;
    let per_row = |time: std::time::Duration| time.as_nanos() as f64 / rows as f64;
    let [direct, witness, evaluate] = times.map(|mut times| {
        times.sort();
        per_row(times[times.len() / 2])
    });
    println!(
        "{name:24} {rows:>9} {:>8.1} {direct:>8.1} {witness:>8.1} {evaluate:>8.1}   {:?}",
        per_row(record),
        compiled.size()
    );
    Ok(())
}

#[derive(Clone)]
struct Sha256(Vec<u8>);

impl Circuit<Scalar> for Sha256 {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut bits = Vec::with_capacity(self.0.len() * 8);
        for (i, byte) in self.0.iter().enumerate() {
            for k in (0..8).rev() {
                let name = || format!("bit {i}.{k}");
                let bit = AllocatedBit::alloc(cs.namespace(name), Some(byte >> k & 1 == 1))?;
                bits.push(Boolean::from(bit));
            }
        }
        let hash = bellperson::gadgets::sha256::sha256(cs.namespace(|| "hash"), &bits)?;
        bellperson::gadgets::multipack::pack_into_inputs(cs.namespace(|| "pack"), &hash)
    }
}
