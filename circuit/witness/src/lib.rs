//! Native witness generators: the values of a circuit's variables straight from its private
//! inputs, without a constraint system.
//!
//! Each generator mirrors one gadget: it appends exactly the values that the gadget allocates, in
//! its order, to a [`Witness`] in compact form. Bits are computed as words and appended as words.
//! What a gadget folds away because it is constant is folded away here, too, so the result equals
//! that of synthesis bit for bit.
//!
//! | module | mirrors |
//! | --- | --- |
//! | [`word`] | `UInt32`: rotations, xor, ch, maj, sums of 32 boolean views |
//! | [`sha256`] | SHA-256 over such words |
//! | [`Poseidon`] | the Poseidon circuit of Filecoin's parameters ("legacy" in neptune) |
//! | [`tree`] | bit decomposition, insertion, selection, Merkle paths |
//! | [`porep`], [`post`], [`update`] | Filecoin's circuits, composed of these |
//!
//! Values depend on the private inputs alone, not on the number of threads.

#![forbid(unsafe_code)]

mod error;
mod poseidon;
mod product;

pub mod porep;
pub mod post;
pub mod sha256;
pub mod tree;
pub mod update;
pub mod word;

pub use cuzk_circuit::{Scalar, Witness};
pub use error::WitnessError;
pub use poseidon::{Poseidon, Poseidons};
