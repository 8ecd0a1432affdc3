//! Filecoin proof kinds: from a client's bytes to circuits, public inputs and official verification.
//!
//! - [`CircuitId`] names a circuit (a [`ProofKind`] at a [`SectorSize`]): its blank circuit and its
//!   parameter files.
//! - [`Request`] is a parsed and checked job: partitions, circuits, public inputs, the official
//!   verifier. [`ProofRequest`] has the fields that clients send; files are read by
//!   [`Request::open`].
//! - [`seal`] really seals small sectors, [`fabricate`] makes satisfying requests of any size.
//!
//! All inputs are untrusted: what is wrong with them is a [`RequestError`] that names the field,
//! what was found and what was expected. storage-proofs' panics are caught at its boundary.

mod c1_json;
mod circuit;
mod error;
mod guard;
mod kind;
mod merkle;
mod miner;
mod native;
mod params;
mod registered;
mod request;
mod shape;
mod synthesis;

pub mod fabricate;
pub mod seal;

pub use circuit::{Circuits, FilecoinCircuit};
pub use error::{NameError, RequestError};
pub use kind::{CircuitId, ProofKind, SectorSize};
pub use miner::prover_id;
pub use native::WitnessPath;
pub use params::params_dir;
pub use registered::SealVariant;
pub use request::{C1Origin, PARTITION_PROOF_LEN, ProofRequest, Request};
