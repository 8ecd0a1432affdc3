//! `cargo xtask bundle`: a folder that checks and measures on a machine with nothing but a driver.

use crate::shell::{self, Outcome};
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const HELP: &str = "\
usage: cargo xtask bundle [--out DIR] [--only NAME]...

Builds the command and the test binaries, strips them, and writes them with run.sh to DIR
(target/bundle). `bash DIR/run.sh [OUT]` on a machine with a CUDA driver runs every check first, then
the measurements, prints one table and writes OUT/*.json and OUT/*.log (OUT is the current folder by
default). BUNDLE_LARGEST=N leaves out sizes above 2^N; BUNDLE_WORK=field,ntt,... measures only these.
--only takes the binaries of the checks by name, `cuzk` always goes along.";

/// Most that a bundle may weigh.
const LARGEST: u64 = 64 << 20;

/// Test binaries whose tests touch kernels or devices: package, target, arguments.
const TESTS: &[(&str, &str, &str)] = &[
    ("cuzk-kernels", "cuzk_kernels", ""),
    ("cuzk-kernels", "shipped_ptx", ""),
    ("cuzk-prover", "cuzk_prover", "gpu:: cuda::"),
    ("cuzk-prover", "gpu_backend", ""),
];

/// Makes the bundle.
pub fn run(arguments: &[String]) -> Outcome {
    let mut out = shell::root().join("target/bundle");
    let mut only = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match (argument.as_str(), rest.next()) {
            ("--out", Some(folder)) => out = std::path::absolute(folder)?,
            ("--only", Some(name)) => only.push(name.clone()),
            ("--help" | "-h", _) => {
                println!("{HELP}");
                return Ok(());
            }
            _ => return Err(format!("unexpected '{argument}'\n\n{HELP}").into()),
        }
    }
    let wanted = |name: &str| only.is_empty() || only.iter().any(|o| o == name);
    let tests: Vec<_> = TESTS.iter().filter(|test| wanted(test.1)).collect();
    if out.is_dir() {
        std::fs::remove_dir_all(&out)?;
    }
    std::fs::create_dir_all(&out)?;
    shell::run(&mut shell::cargo(&[
        "build",
        "--release",
        "--locked",
        "-p",
        "cuzk",
    ]))?;
    let command = shell::root().join("target/release/cuzk");
    let mut size = add(&command, &out.join("cuzk"))?;
    let built = test_binaries(&tests)?;
    let mut checks = String::new();
    for (_, name, filters) in tests {
        let from = built
            .get(*name)
            .ok_or_else(|| format!("cargo built no test binary called {name}"))?;
        size += add(from, &out.join(name))?;
        checks += &format!("check {name} ./{name} --quiet {filters}\n");
    }
    std::fs::write(out.join("run.sh"), script(&checks))?;
    println!(
        "{}: {:.1} MiB",
        out.display(),
        size as f64 / f64::from(1 << 20)
    );
    if size > LARGEST {
        return Err(format!("the bundle has {size} bytes, at most {LARGEST} are allowed").into());
    }
    Ok(())
}

/// Builds the test binaries; their paths by target name.
fn test_binaries(
    tests: &[&(&str, &str, &str)],
) -> Result<BTreeMap<String, PathBuf>, Box<dyn Error>> {
    let mut arguments = vec!["test", "--release", "--locked", "--no-run"];
    arguments.push("--message-format=json-render-diagnostics");
    let mut packages: Vec<&str> = tests.iter().map(|test| test.0).collect();
    packages.dedup();
    if packages.is_empty() {
        return Ok(BTreeMap::new());
    }
    for package in packages {
        arguments.extend(["-p", package]);
    }
    let library = |name: &str| name.starts_with("cuzk_");
    if tests.iter().any(|test| library(test.1)) {
        arguments.push("--lib");
    }
    for (_, name, _) in tests.iter().filter(|test| !library(test.1)) {
        arguments.extend(["--test", name]);
    }
    let text = shell::output(shell::cargo(&arguments).stdin(Stdio::null()))?;
    let mut built = BTreeMap::new();
    for line in text.lines() {
        let message: Value = serde_json::from_str(line)?;
        let (name, path) = (&message["target"]["name"], &message["executable"]);
        if let (Some(name), Some(path)) = (name.as_str(), path.as_str()) {
            built.insert(name.to_owned(), PathBuf::from(path));
        }
    }
    Ok(built)
}

/// Copies a program without its symbols; returns its size.
fn add(from: &Path, to: &Path) -> Result<u64, Box<dyn Error>> {
    let stripped = Command::new("strip").arg("-o").arg(to).arg(from).status();
    if !stripped.is_ok_and(|status| status.success()) {
        std::fs::copy(from, to)?;
    }
    Ok(std::fs::metadata(to)?.len())
}

/// The script: it stops at the first check that fails, before anything is measured.
fn script(checks: &str) -> String {
    format!(
        r#"#!/usr/bin/env bash
# Checks, then measures. Results go to the folder of the first argument.
set -euo pipefail
out="${{1:-.}}"
mkdir -p "$out"
out="$(cd "$out" && pwd)"
cd "$(dirname "$0")"
check() {{
    local name="$1"
    shift
    local start=$SECONDS
    if "$@" >"$out/$name.log" 2>&1; then
        echo "$name: right, $((SECONDS - start)) s"
    else
        echo "$name: FAILED"
        tail -n 20 "$out/$name.log"
        exit 1
    fi
}}
check info ./cuzk gpu info
cat "$out/info.log"
check selftest ./cuzk gpu selftest
{checks}options=(--largest "${{BUNDLE_LARGEST:-28}}")
if [ -n "${{BUNDLE_WORK:-}}" ]; then
    options+=(--work "$BUNDLE_WORK")
fi
./cuzk bench kernels "${{options[@]}}" --out "$out/kernels.json" | tee "$out/kernels.txt"
"#
    )
}
