//! Constraint systems over `bellpepper-core` that turn any `Circuit<Scalar>` into what a
//! Groth16 prover needs.
//!
//! | function | yields |
//! | --- | --- |
//! | [`synthesize`], [`synthesize_into`] | witness, A·w, B·w, densities: an [`Assignment`] |
//! | [`witness`](fn@witness), [`witness_into`] | the values of the variables alone |
//! | [`shape`](fn@shape) | counts, without values |
//! | [`check`](fn@check) | the first constraint that does not hold, by its path |
//! | [`stream_constraints`] | every row, one at a time, without values |
//! | [`CompiledCircuit`] | A and B recorded once, evaluated for any witness |
//!
//! ```
//! use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
//! use cuzk_circuit::Scalar;
//!
//! /// Knowledge of a square root of a public number.
//! struct Root(Option<Scalar>);
//!
//! impl Circuit<Scalar> for Root {
//!     fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
//!         let root = self.0.ok_or(SynthesisError::AssignmentMissing);
//!         let x = cs.alloc(|| "root", || root)?;
//!         let square = cs.alloc_input(|| "square", || Ok(self.0.unwrap_or_default().square()))?;
//!         cs.enforce(|| "x * x", |lc| lc + x, |lc| lc + x, |lc| lc + square);
//!         Ok(())
//!     }
//! }
//! # use ff::Field;
//!
//! let assignment = cuzk_circuit::synthesize(Root(Some(Scalar::from(7))))?;
//! assert_eq!(assignment.witness.inputs, [Scalar::from(1), Scalar::from(49)]);
//! assert_eq!(assignment.a, [Scalar::from(7), Scalar::from(1), Scalar::from(49)]);
//! assert_eq!(cuzk_circuit::shape(Root(None))?.constraints, 1);
//! # Ok::<(), cuzk_circuit::CircuitError>(())
//! ```

#![deny(unsafe_code)]

mod assignment;
mod bitmap;
mod census;
mod check;
mod compact;
mod compiled;
mod error;
mod shape;
mod stream;
mod synthesis;
pub mod testing;
mod witness;

pub use assignment::{Assignment, Densities, Witness};
pub use bitmap::Bitmap;
pub use blstrs::Scalar;
pub use census::Component;
pub use check::check;
pub use compact::{Compact, CompactScalars};
pub use compiled::{
    CompiledCircuit, CompiledError, CompiledSize, INPUT, Instance, Origin, Template, TermsView,
};
pub use error::CircuitError;
pub use shape::{Shape, shape};
pub use stream::{ConstraintVisitor, stream_constraints};
pub use synthesis::{synthesize, synthesize_into};
pub use witness::{witness, witness_into};
