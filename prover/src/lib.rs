//! Groth16 over BLS12-381: parameters, proofs and verification, on the CPU and on CUDA devices.
//!
//! Circuits are bellpepper's, curve types are blstrs', files and proofs are bellperson's, byte for
//! byte. Every proof is verified before it is returned; nothing panics across the interface.
//!
//! ```
//! use std::sync::Arc;
//!
//! use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
//! use blstrs::Scalar;
//! use cuzk_prover::{Device, Prover, generate_random_parameters};
//! use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
//!
//! /// "I know a square root of the public number."
//! #[derive(Clone)]
//! struct Root(Option<Scalar>);
//!
//! impl Circuit<Scalar> for Root {
//!     fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
//!         let value = || self.0.ok_or(SynthesisError::AssignmentMissing);
//!         let x = cs.alloc(|| "root", value)?;
//!         let square = cs.alloc_input(|| "square", || value().map(|x| x * x))?;
//!         cs.enforce(|| "x * x", |lc| lc + x, |lc| lc + x, |lc| lc + square);
//!         Ok(())
//!     }
//! }
//!
//! let rng = &mut ChaCha20Rng::from_entropy();
//! let params = Arc::new(generate_random_parameters(Root(None), rng)?);
//! let prover = Prover::new(Device::Auto)?;
//! let assignment = cuzk_circuit::synthesize(Root(Some(Scalar::from(7))))?;
//! let finished = prover.prove_random(&params, assignment, rng)?;
//! assert_eq!(finished.public_inputs, [Scalar::from(49)]);
//! assert!(params.prepared_vk().verify(&finished.proof, &[Scalar::from(49)])?);
//! println!("{} proved it:\n{}", prover.backend(), finished.timeline.report());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The parts
//!
//! - [`Params`], [`VerifyingKey`], [`Proof`]: what is stored, with strict readers of untrusted bytes.
//! - [`Prover`] makes proofs in two steps, [`Prover::start`] and [`PendingProof::finish`], so that the
//!   next circuit can be synthesised while the device works. A [`Backend`] does the work.
//! - [`PreparedVerifyingKey`] verifies, one proof or many at once.
//! - [`timeline`] says where the time went.
//! - [`setup`] generates parameters for tests and private networks.
//! - [`msm`], [`mod@quotient`], [`ntt`] are the mathematics on the CPU.
//! - Functions under the names that bellperson's users know, such as [`create_random_proof`].

mod backend;
mod cpu;
pub mod cuda;
mod device;
mod error;
mod functions;
pub mod gpu;
pub mod msm;
pub mod ntt;
pub mod params;
mod pending;
mod proof;
mod prover;
pub mod quotient;
pub mod setup;
pub mod timeline;
mod verify;
mod verifying_key;

pub use backend::{Backend, Cancel, Failed, Job, Maker, Output, Running, Sums};
pub use device::{Device, DeviceError};
pub use error::ProveError;
pub use functions::{
    create_proof, create_proof_batch, create_random_proof, create_random_proof_batch,
    generate_random_parameters, prepare_verifying_key, prove_from_assignments,
    synthesize_circuits_batch, verify_proof, verify_proofs_batch,
};
pub use params::{Counts, Params, ParamsError, PointFault, Points, RawSections, SubgroupCheck};
pub use pending::{Finished, PendingProof, Retry};
pub use proof::{Proof, ProofError};
pub use prover::Prover;
pub use verify::{PreparedVerifyingKey, VerifyError};
pub use verifying_key::VerifyingKey;
