//! What the whole-pipeline tests share: one request proved by bellperson and by this prover.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bellperson::groth16::{Parameters, create_proof_batch};
use blstrs::{Bls12, Scalar};
use cuzk_filecoin::Request;
use cuzk_prover::{Device, Params, Proof, Prover};
use ff::Field;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

/// The first partition of a request, proved twice with the same parameters and blinding factors.
pub struct BothProofs {
    /// This prover's proof.
    pub ours: Vec<u8>,
    /// bellperson's.
    pub peers: Vec<u8>,
    /// From the circuit to the proof, by this prover.
    pub our_time: Duration,
    /// The same by bellperson.
    pub peer_time: Duration,
}

/// Proves on the CPU with the parameters in `path`, this prover first. Opening the parameters is not timed.
///
/// # Errors
/// What either prover reports.
pub fn prove_both(request: &Request, path: &Path) -> Result<BothProofs, Box<dyn Error>> {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let (r, s) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
    let prover = Prover::new(Device::Cpu)?;
    let params = Arc::new(Params::open(path)?);
    let start = Instant::now();
    let assignment = request.circuit(0)?.assignment()?;
    let finished = prover.prove(&params, assignment, r, s)?;
    let our_time = start.elapsed();
    let ours = finished.proof.to_bytes().to_vec();
    drop((params, finished));

    let file = std::io::BufReader::new(std::fs::File::open(path)?);
    let params = Parameters::<Bls12>::read(file, false)?;
    let start = Instant::now();
    let proofs = create_proof_batch(vec![request.circuit(0)?], &params, vec![r], vec![s])?;
    let peer_time = start.elapsed();
    let mut peers = Vec::with_capacity(Proof::BYTES);
    proofs[0].write(&mut peers)?;
    Ok(BothProofs {
        ours,
        peers,
        our_time,
        peer_time,
    })
}
