//! `cuzk bench`: measures one part of the work at a time.

pub mod allocations;
mod compare;
mod counters;
mod full;
mod groth16;
mod kernels;
mod synth;

use crate::{arguments::Bench, error::Error, output::Output};

/// Runs the command.
pub fn run(arguments: &Bench, output: &Output) -> Result<(), Error> {
    match arguments {
        Bench::Synth(arguments) => synth::run(arguments, output),
        Bench::Groth16(arguments) => groth16::run(arguments, output),
        #[cfg(feature = "serve")]
        Bench::Pipeline(arguments) => crate::client::pipeline::run(arguments, output),
        Bench::Full(arguments) => full::run(arguments, output),
        Bench::Kernels(arguments) => kernels::run(arguments, output),
    }
}

/// The middle value, the upper one of two; 0 without values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
