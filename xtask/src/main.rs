//! `cargo xtask <job>`: the project's only script language, one module per job.

mod bundle;
mod demo;
mod kernels;
mod peers;
mod shell;
mod suite;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <job> [options]

  demo     seal a sector, prove it, verify it      [--kind K] [--sector-size S] [--device D] [--json]
  test     everything that CI runs                 [--only STEP]
  kernels  build, inspect and check the GPU kernels [--help]
  bundle   a folder that checks and measures on another machine [--out DIR]
  peers    builds the CUDA C++ that we compare with [--help]
  tidy     repository-wide rules

Each job prints its own help with --help.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest = arguments.get(1..).unwrap_or_default();
    let outcome = match arguments.first().map(String::as_str) {
        Some("demo") => demo::run(rest),
        Some("test") => suite::run(rest),
        Some("kernels") => kernels::run(rest),
        Some("bundle") => bundle::run(rest),
        Some("peers") => peers::run(rest),
        Some("tidy") => tidy::run(rest),
        Some("--help" | "-h") | None => {
            println!("{USAGE}");
            Ok(())
        }
        Some(other) => {
            eprintln!("xtask: no job is called '{other}'\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
