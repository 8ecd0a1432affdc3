//! Sequences of GPU kernels, generic over the runtime: a card or the emulator.

mod backend;
pub mod msm;
pub mod ntt;
mod proof;
pub mod quotient;
mod resident;

pub use backend::Gpu;

#[cfg(test)]
mod ntt_tests;
