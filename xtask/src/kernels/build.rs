//! Compiles `gpu-kernels` for the CUDA target.

use super::toolchain::Compiler;
use super::{Result, ship};
use crate::shell;
use std::path::PathBuf;

/// Architecture of the shipped PTX: it loads on compute capability 8.0 and up.
pub const PTX_TARGET: &str = "sm_80";

/// PTX as the compiler writes it.
pub struct Built {
    /// The text.
    pub text: String,
    /// What the compiler calls itself.
    pub compiler: String,
    /// Source files that went into it, relative to the repository's root, sorted.
    pub sources: Vec<String>,
}

/// Compiles the crate and returns its PTX.
pub fn ptx(compiler: &Compiler) -> Result<Built> {
    let mut cargo = shell::cargo(&["rustc", "--quiet", "--release", "--package", "cuzk-kernels"]);
    cargo.args(["--lib", "--crate-type", "cdylib", "-Zbuild-std=core"]);
    cargo.args(["--target", "nvptx64-nvidia-cuda", "--target-dir"]);
    cargo.arg(&compiler.target);
    // One unit and fat LTO: everything that kernels call is inlined across crates.
    for setting in [
        "lto=\"fat\"",
        "codegen-units=1",
        "panic=\"abort\"",
        "debug=false",
        "overflow-checks=false",
    ] {
        cargo.args(["--config", &format!("profile.release.{setting}")]);
    }
    cargo.args(["--", "--emit=asm"]);
    compiler.prepare(&mut cargo);
    // `true` in place of the linker: the PTX is the result. Jump threading on MIR copies barriers and
    // shuffles into both arms of a branch, which then wait for each other: it knows no convergence.
    cargo.env(
        "RUSTFLAGS",
        format!("-Ctarget-cpu={PTX_TARGET} -Clinker=true -Zmir-enable-passes=-JumpThreading"),
    );
    cargo.env_remove("CARGO_ENCODED_RUSTFLAGS");
    shell::run(&mut cargo)?;
    let folder = compiler.target.join("nvptx64-nvidia-cuda/release/deps");
    Ok(Built {
        text: std::fs::read_to_string(folder.join("cuzk_kernels.s"))?,
        compiler: compiler.version()?,
        sources: sources(&folder)?,
    })
}

/// The source files of both crates, as the compiler lists them.
fn sources(folder: &std::path::Path) -> Result<Vec<String>> {
    let mut newest: Option<(std::time::SystemTime, PathBuf)> = None;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.starts_with("cuzk_field-") && name.ends_with(".d") {
            let time = path.metadata()?.modified()?;
            if newest.as_ref().is_none_or(|(best, _)| time > *best) {
                newest = Some((time, path));
            }
        }
    }
    let (_, field) = newest.ok_or("the compiler left no list of cuzk-field's sources")?;
    let mut files = Vec::new();
    for list in [field, folder.join("cuzk_kernels.d")] {
        for line in std::fs::read_to_string(list)?.lines() {
            if let Some(file) = line.strip_suffix(".rs:") {
                files.push(format!("{file}.rs"));
            }
        }
    }
    files.sort();
    files.dedup();
    ship::relative(files)
}
