//! Sequences of GPU kernels, generic over the runtime: a card or the emulator.

mod backend;
mod clock;
mod decode;
mod device;
pub mod evaluate;
pub(crate) mod fixed_base;
mod lane;
pub mod measure;
pub mod msm;
pub mod ntt;
pub mod parts;
pub mod plan;
mod pool;
mod proof;
pub mod quotient;
mod resident;
pub mod selftest;
mod stage;
mod twiddles;
mod variables;

pub use backend::Gpu;
pub use cuzk_kernels::runtime::{Runtime, RuntimeError};

#[cfg(test)]
mod evaluate_tests;
#[cfg(test)]
mod ntt_tests;
#[cfg(test)]
mod parts_tests;
