//! `cargo xtask test`: every check that CI runs, in the order that fails soonest.

use crate::shell::{self, Outcome};
use std::time::Instant;

type Step = (&'static str, fn() -> Outcome);

const STEPS: &[Step] = &[
    ("fmt", || {
        shell::run(&mut shell::cargo(&["fmt", "--all", "--check"]))
    }),
    ("tidy", || crate::tidy::run(&[])),
    ("kernels", || crate::kernels::run(&["--check".to_owned()])),
    ("clippy", || {
        shell::run(&mut shell::cargo(&[
            "clippy",
            "--release",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ]))
    }),
    ("doc", || {
        shell::run(
            shell::cargo(&["doc", "--release", "--workspace", "--no-deps", "--locked"])
                .env("RUSTDOCFLAGS", "-D warnings"),
        )
    }),
    ("test", || {
        shell::run(&mut shell::cargo(&[
            "test",
            "--release",
            "--workspace",
            "--locked",
        ]))
    }),
    ("demo", || crate::demo::run(&[])),
];

/// Runs all steps, or the one named by `--only`, and prints a table of times.
pub fn run(arguments: &[String]) -> Outcome {
    let names: Vec<&str> = STEPS.iter().map(|s| s.0).collect();
    let only = match arguments {
        [] => None,
        [flag, name] if flag == "--only" && names.contains(&name.as_str()) => Some(name.as_str()),
        _ => return Err(format!("usage: cargo xtask test [--only {}]", names.join("|")).into()),
    };
    let mut times = Vec::new();
    for (name, step) in STEPS.iter().filter(|s| only.is_none_or(|o| o == s.0)) {
        println!("== {name}");
        let start = Instant::now();
        step().map_err(|e| format!("step {name}: {e}"))?;
        times.push((name, start.elapsed().as_secs_f64()));
    }
    println!("\n{:<10} {:>8}", "step", "seconds");
    for (name, seconds) in &times {
        println!("{name:<10} {seconds:>8.1}");
    }
    println!("{} passed, 0 failed", times.len());
    Ok(())
}
