//! Sequences of GPU kernels, generic over the runtime: a card or the emulator.

pub mod msm;
pub mod ntt;
pub mod quotient;

#[cfg(test)]
mod ntt_tests;
