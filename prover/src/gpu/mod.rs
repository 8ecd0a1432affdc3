//! Sequences of GPU kernels, generic over the runtime: a card or the emulator.

pub mod msm;
