//! Sequences of GPU kernels, generic over the runtime: a card or the emulator.

mod backend;
mod decode;
pub mod evaluate;
pub(crate) mod fixed_base;
pub mod measure;
pub mod msm;
pub mod ntt;
mod proof;
pub mod quotient;
mod resident;
pub mod selftest;
mod twiddles;

pub use backend::Gpu;
pub use cuzk_kernels::runtime::{Runtime, RuntimeError};

#[cfg(test)]
mod evaluate_tests;
#[cfg(test)]
mod ntt_tests;
