//! Groth16 over BLS12-381: parameters, proofs, verification.

mod backend;
mod cpu;
mod device;
mod error;
mod functions;
pub mod msm;
pub mod ntt;
pub mod params;
mod proof;
mod prover;
pub mod quotient;
pub mod setup;
pub mod timeline;
mod verify;
mod verifying_key;

pub use backend::{Backend, Cancel, Job, Output, Running, Sums};
pub use device::{Device, DeviceError};
pub use error::ProveError;
pub use functions::{
    create_proof, create_proof_batch, create_random_proof, create_random_proof_batch,
    prepare_verifying_key, prove_from_assignments, synthesize_circuits_batch, verify_proof,
    verify_proofs_batch,
};
pub use params::{Counts, Params, ParamsError, PointFault, Points, RawSections, SubgroupCheck};
pub use proof::{Proof, ProofError};
pub use prover::{Finished, PendingProof, Prover};
pub use verify::{PreparedVerifyingKey, VerifyError};
pub use verifying_key::VerifyingKey;
