//! Times the generators of single gadgets.
//!
//! `cargo bench -p cuzk-witness --bench traces`. One thread; each line gives the best of several
//! rounds.

use cuzk_circuit::{Bitmap, CompactScalars};
use cuzk_witness::sha256::sha256;
use cuzk_witness::tree::Hasher;
use cuzk_witness::word::Word;
use cuzk_witness::{Poseidon, Scalar};
use ff::Field;
use filecoin_hashers::{POSEIDON_CONSTANTS_2, POSEIDON_CONSTANTS_8, POSEIDON_CONSTANTS_11};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::hint::black_box;
use std::time::Instant;

/// Rounds of which the best counts.
const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    for poseidon in [
        Poseidon::from(&*POSEIDON_CONSTANTS_2),
        Poseidon::from(&*POSEIDON_CONSTANTS_8),
        Poseidon::from(&*POSEIDON_CONSTANTS_11),
    ] {
        let mut preimage: Vec<_> = (0..poseidon.arity())
            .map(|_| Scalar::random(&mut rng))
            .collect();
        let name = format!("Poseidon of {}", poseidon.arity());
        measure(&name, 1000, |aux| {
            preimage[0] = poseidon.hash(&preimage, aux)?;
            Ok(())
        })?;
    }
    measure("SHA-256 of a label, 20 blocks", 100, |aux| {
        let mut message: Vec<Word> = (0..312).map(|i| Word::variable(i * 0x9e37_79b9)).collect();
        let mut bits = Bitmap::new();
        black_box(sha256(&mut message, &mut bits));
        aux.append_bits(&bits);
        Ok(())
    })?;
    let nodes = [Scalar::random(&mut rng), Scalar::random(&mut rng)];
    measure("SHA-256 of two nodes, 2 blocks", 1000, |aux| {
        black_box(Hasher::Sha256.hash(&nodes, aux)?);
        Ok(())
    })?;
    Ok(())
}

/// Runs `generate` many times into the same memory.
fn measure(
    name: &str,
    repeat: usize,
    mut generate: impl FnMut(&mut CompactScalars) -> Result<(), cuzk_witness::WitnessError>,
) -> Result<(), cuzk_witness::WitnessError> {
    let mut aux = CompactScalars::new();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        aux.clear();
        let start = Instant::now();
        for _ in 0..repeat {
            generate(&mut aux)?;
        }
        best = best.min(start.elapsed().as_secs_f64() / repeat as f64);
    }
    let values = aux.len() / repeat;
    println!(
        "{name:32} {:9.2} µs {values:8} values {:6.2} ns a value",
        best * 1e6,
        best * 1e9 / values as f64
    );
    Ok(())
}
