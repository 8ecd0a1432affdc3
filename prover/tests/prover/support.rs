//! Circuits, parameters and conversions that the tests share.

use std::sync::{Arc, OnceLock};

use bellperson::groth16 as reference;
use blstrs::{Bls12, Scalar};
use cuzk_circuit::{Assignment, synthesize, testing::RandomCircuit};
use cuzk_prover::{Device, Params, Proof, Prover, SubgroupCheck};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

/// bellperson's parameters.
pub type Reference = reference::Parameters<Bls12>;

/// The random numbers of a test.
pub fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// Parameters that bellperson makes for a circuit.
pub fn reference_params(circuit: &RandomCircuit) -> Reference {
    let mut rng = rng(circuit.seed);
    reference::generate_random_parameters::<Bls12, _, _>(circuit.clone(), &mut rng).unwrap()
}

/// The bytes of bellperson's parameter file.
pub fn reference_bytes(params: &Reference) -> Vec<u8> {
    let mut bytes = Vec::new();
    params.write(&mut bytes).unwrap();
    bytes
}

/// bellperson's parameters, read by us.
pub fn ours(params: &Reference) -> Arc<Params> {
    let bytes = reference_bytes(params);
    Arc::new(Params::from_bytes("reference", &bytes, SubgroupCheck::Full).unwrap())
}

/// A proof in bellperson's type.
pub fn to_reference(proof: &Proof) -> reference::Proof<Bls12> {
    reference::Proof {
        a: proof.a,
        b: proof.b,
        c: proof.c,
    }
}

/// The bytes of bellperson's proof.
pub fn proof_bytes(proof: &reference::Proof<Bls12>) -> Vec<u8> {
    let mut bytes = Vec::new();
    proof.write(&mut bytes).unwrap();
    bytes
}

/// A prover on the CPU.
pub fn cpu() -> Prover {
    Prover::new(Device::Cpu).unwrap()
}

/// A small circuit with everything that one needs to prove and verify it.
pub struct Example {
    pub reference: Reference,
    pub file: Vec<u8>,
    pub params: Arc<Params>,
    pub circuit: RandomCircuit,
    pub proof: Proof,
    pub public_inputs: Vec<Scalar>,
}

impl Example {
    /// The circuit's assignment.
    pub fn assignment(&self) -> Assignment {
        synthesize(self.circuit.clone()).unwrap()
    }
}

/// One example for the whole test run.
pub fn example() -> &'static Example {
    static EXAMPLE: OnceLock<Example> = OnceLock::new();
    EXAMPLE.get_or_init(|| {
        let circuit = RandomCircuit::new(40, 3, 7);
        let reference = reference_params(&circuit);
        let params = ours(&reference);
        let assignment = synthesize(circuit.clone()).unwrap();
        let finished = cpu()
            .prove_random(&params, assignment, &mut rng(1))
            .unwrap();
        Example {
            file: reference_bytes(&reference),
            params,
            circuit,
            proof: finished.proof,
            public_inputs: finished.public_inputs,
            reference,
        }
    })
}
