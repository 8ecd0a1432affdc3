//! Proves that one knows a cube root of a public number, and verifies the proof.
use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::Scalar;
use cuzk_prover::{create_random_proof, generate_random_parameters, verify_proof};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use std::{error::Error, sync::Arc};

/// x · x · x = y for a private x and a public y.
#[derive(Clone)]
struct CubeRoot {
    x: Option<Scalar>,
}

impl Circuit<Scalar> for CubeRoot {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let value = || self.x.ok_or(SynthesisError::AssignmentMissing);
        let x = cs.alloc(|| "x", value)?;
        let x2 = cs.alloc(|| "x2", || value().map(|x| x * x))?;
        let y = cs.alloc_input(|| "y", || value().map(|x| x * x * x))?;
        cs.enforce(|| "square", |lc| lc + x, |lc| lc + x, |lc| lc + x2);
        cs.enforce(|| "cube", |lc| lc + x2, |lc| lc + x, |lc| lc + y);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let rng = &mut ChaCha20Rng::from_entropy();
    let params = Arc::new(generate_random_parameters(CubeRoot { x: None }, rng)?);
    let x = Some(Scalar::from(3));
    let proof = create_random_proof(CubeRoot { x }, &params, rng)?;
    let valid = verify_proof(params.prepared_vk(), &proof, &[Scalar::from(27)])?;
    println!("{} bytes, valid for 27: {valid}", proof.to_bytes().len());
    assert!(valid && !verify_proof(params.prepared_vk(), &proof, &[Scalar::from(28)])?);
    Ok(())
}
