//! Field and curve arithmetic on 32-bit limbs, one source for GPU kernels and host code.
//!
//! | module | contents |
//! | --- | --- |
//! | [`bls12_381`] | the curve's constants and the types [`Fp`], [`Fr`], [`G1Affine`], … |
//! | [`montgomery`] | [`Mont`](montgomery::Mont): prime field elements over any modulus |
//! | [`fp2`] | the quadratic extension over any of them |
//! | [`wide`] | products before reduction |
//! | [`fixed`] | multiplication by fixed factors |
//! | [`curve`] | affine and XYZZ points over any coordinate field |
//! | [`ops`] | what curve formulas and kernels ask of a field |
//! | `axioms` | the field axioms, over any machine that computes on arrays |
//! | [`params`] | how all constants follow from a modulus |
//! | [`backend`] | the interface to limb arithmetic, with `portable` and `ptx` behind it |
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch))]
// the device's compiler may know lints that the oldest supported one does not
#![allow(unknown_lints)]

#[cfg(not(target_arch = "nvptx64"))]
extern crate alloc;

#[cfg(not(target_arch = "nvptx64"))]
pub mod axioms;
pub mod backend;
pub mod bls12_381;
#[cfg(feature = "blstrs")]
pub mod casts;
pub mod curve;
pub mod fixed;
pub mod fp2;
mod inv;
pub mod montgomery;
pub mod ops;
pub mod params;
pub mod portable;
#[cfg(target_arch = "nvptx64")]
pub mod ptx;
pub mod wide;

pub use bls12_381::{FixedFr, Fp, Fp2, Fr, G1, G1Affine, G1Xyzz, G2, G2Affine, G2Xyzz};
pub use curve::{Affine, Curve, Xyzz};
pub use ops::{Called, FieldOps, Karatsuba, Multiplier, PerThread};
