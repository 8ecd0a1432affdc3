//! GPU kernels in Rust: one source, compiled to PTX for the device and run by an emulator on the host.
//!
//! A kernel is a function that is generic over [`Gpu`], declared by [`kernel!`] with its launch bounds and
//! limits. In tests an [`Emulator`] runs it with real barriers and reports accesses out of bounds and
//! data races. `cargo xtask kernels` compiles the same source to PTX, which ships in this crate.
//! `docs/kernels.md` explains how to write, test and inspect one.
#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(
        abi_ptx,
        abi_unadjusted,
        asm_experimental_arch,
        link_llvm_intrinsics,
        stdarch_nvptx
    ),
    allow(internal_features)
)]

mod element;
mod gpu;
mod kernel;
mod memory;

#[cfg(target_arch = "nvptx64")]
mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub mod emulator;
#[cfg(not(target_arch = "nvptx64"))]
mod interpreter;
#[cfg(not(target_arch = "nvptx64"))]
mod launch;
#[cfg(not(target_arch = "nvptx64"))]
pub mod runtime;
#[cfg(not(target_arch = "nvptx64"))]
pub mod shipped;

pub mod decode;
pub mod evaluate;
pub mod examples;
pub mod fields;
pub mod fixed_base;
pub mod msm;
pub mod ntt;
pub mod primitives;

pub use element::{
    Element, Sink, Source, read_limbs_8, read_limbs_12, write_limbs_8, write_limbs_12,
};
pub use gpu::{AtomicOp, Cache, Gpu};
pub use memory::{Global, GlobalMut, Planes, Shared};

#[cfg(target_arch = "nvptx64")]
pub use device::Device;
#[cfg(not(target_arch = "nvptx64"))]
pub use emulator::{Buffer, Emulator, EmulatorError};
#[cfg(not(target_arch = "nvptx64"))]
pub use interpreter::Interpreter;
#[cfg(not(target_arch = "nvptx64"))]
pub use launch::{Argument, Grid, Kernel, KernelArgument, Launch};
#[cfg(not(target_arch = "nvptx64"))]
pub use shipped::{Image, ImageError, image};
