//! The `cuzk` command: from a Filecoin C1 file or vanilla proofs to a verified Groth16 proof.

mod arguments;
mod bench;
#[cfg(feature = "serve")]
mod client;
mod commands;
#[cfg(feature = "serve")]
mod config;
mod error;
#[cfg(feature = "serve")]
mod net;
mod output;
#[cfg(feature = "serve")]
mod rpc;
#[cfg(feature = "serve")]
mod serve;
mod treemap;

use clap::Parser;
use std::process::ExitCode;

/// Counts allocations for `cuzk bench`; otherwise it is the system's allocator.
#[global_allocator]
static ALLOCATOR: bench::allocations::Counting = bench::allocations::Counting;

fn main() -> ExitCode {
    // clap prints usage errors itself and exits with 2.
    let arguments = arguments::Arguments::parse();
    output::start_log(arguments.verbose);
    let output = output::Output::new(arguments.json);
    match commands::run(arguments, &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output.failure(&error);
            ExitCode::FAILURE
        }
    }
}
