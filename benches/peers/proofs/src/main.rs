//! Whole proofs of one random circuit with one parameter file: ours and supraseal-c2's, in turn.
//!
//! `peer-proofs [LOG2] [BITS] [OUT.json]`: 2^LOG2 rows (18), a share BITS (0.5) of the witness is 0 or 1. Both
//! get the same assignment, r and s; both results must be the same bytes, which our verifier accepts. Times are
//! medians of the wall time from the assignment to the proof; the first proof of each side, which loads the
//! parameters, is not counted.

use blstrs::{G1Affine, G2Affine, Scalar};
use cuzk_circuit::testing::RandomCircuit;
use cuzk_circuit::{Assignment, synthesize};
use cuzk_prover::setup::{self, ToxicWaste};
use cuzk_prover::{Device, Params, Proof, Prover};
use ff::Field;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::json;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;
use supraseal_c2::SRS;

type Outcome<T> = Result<T, Box<dyn Error>>;

const REPETITIONS: usize = 5;
const INPUTS: usize = 16;

/// What supraseal writes: affine points in Montgomery form.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawProof {
    a: blst::blst_p1_affine,
    b: blst::blst_p2_affine,
    c: blst::blst_p1_affine,
}

/// The assignment as supraseal takes it.
struct Expanded {
    a: Vec<Scalar>,
    b: Vec<Scalar>,
    c: Vec<Scalar>,
    aux: Vec<Scalar>,
}

fn supraseal(
    srs: &SRS,
    assignment: &Assignment,
    full: &Expanded,
    r: Scalar,
    s: Scalar,
) -> Outcome<Vec<u8>> {
    let densities = &assignment.densities;
    let mut proofs = [RawProof::default()];
    supraseal_c2::generate_groth16_proof(
        &[full.a.as_ptr()],
        &[full.b.as_ptr()],
        &[full.c.as_ptr()],
        full.a.len(),
        &[assignment.witness.inputs.as_ptr()],
        &[full.aux.as_ptr()],
        assignment.witness.inputs.len(),
        full.aux.len(),
        densities.a_aux.words(),
        densities.b_inputs.words(),
        densities.b_aux.words(),
        densities.a_aux.count_ones(),
        densities.b_inputs.count_ones(),
        densities.b_aux.count_ones(),
        1,
        &[r],
        &[s],
        &mut proofs,
        srs,
    );
    let [RawProof { a, b, c }] = proofs;
    let proof = Proof {
        a: compressed_g1(&a)?,
        b: compressed_g2(&b)?,
        c: compressed_g1(&c)?,
    };
    Ok(proof.to_bytes().to_vec())
}

fn compressed_g1(point: &blst::blst_p1_affine) -> Outcome<G1Affine> {
    let mut bytes = [0; 48];
    // SAFETY: 48 bytes.
    unsafe { blst::blst_p1_affine_compress(bytes.as_mut_ptr(), point) };
    Option::from(G1Affine::from_compressed(&bytes)).ok_or_else(|| "not a point of G1".into())
}

fn compressed_g2(point: &blst::blst_p2_affine) -> Outcome<G2Affine> {
    let mut bytes = [0; 96];
    // SAFETY: 96 bytes.
    unsafe { blst::blst_p2_affine_compress(bytes.as_mut_ptr(), point) };
    Option::from(G2Affine::from_compressed(&bytes)).ok_or_else(|| "not a point of G2".into())
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let log2: u32 = arguments.next().map_or(Ok(18), |text| text.parse())?;
    let bits: f64 = arguments.next().map_or(Ok(0.5), |text| text.parse())?;
    let out = arguments.next();
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let circuit = RandomCircuit {
        bit_share: bits,
        b_density: 1.0,
        parts: 64,
        ..RandomCircuit::new((1usize << log2) - INPUTS - 1, INPUTS, 1)
    };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("peer.params");
    setup::generate(circuit.clone(), &ToxicWaste::random(&mut rng))?.write(&file)?;
    let assignment = synthesize(circuit)?;
    let full = Expanded {
        a: assignment.a.clone(),
        b: assignment.b.clone(),
        c: assignment
            .a
            .iter()
            .zip(&assignment.b)
            .map(|(a, b)| a * b)
            .collect(),
        aux: assignment.witness.aux.to_vec(),
    };
    let (r, s) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
    let srs = SRS::try_new(file.clone(), true).map_err(String::from)?;
    let params = Arc::new(Params::open(&file)?);
    let prover = Prover::new(Device::Auto)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for k in 0..=REPETITIONS {
        let start = Instant::now();
        let peer = supraseal(&srs, &assignment, &full, r, s)?;
        let peer_seconds = start.elapsed().as_secs_f64();
        let input = assignment.clone();
        let start = Instant::now();
        let finished = prover.start(&params, input, r, s)?.finish()?;
        let seconds = start.elapsed().as_secs_f64();
        if finished.proof.to_bytes()[..] != peer[..] {
            return Err("the proofs differ".into());
        }
        if k > 0 {
            theirs.push(peer_seconds);
            ours.push(seconds);
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (ours, theirs) = (median(ours), median(theirs));
    println!(
        "proof, 2^{log2} rows, {:.0} % of the witness 0 or 1, on {}: supraseal-c2 0.1.2 {:.1} ms, ours with verification {:.1} ms, {:.1} times",
        100.0 * bits,
        prover.backend(),
        1e3 * theirs,
        1e3 * ours,
        theirs / ours
    );
    if let Some(path) = out {
        let value = json!({
            "log2": log2, "bits": bits, "backend": prover.backend(),
            "supraseal_seconds": theirs, "seconds": ours, "ratio": theirs / ours,
        });
        std::fs::write(path, value.to_string())?;
    }
    Ok(())
}
