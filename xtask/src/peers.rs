//! `cargo xtask peers`: builds the CUDA C++ that we compare with, from its crates and a compiler from PyPI.

use crate::shell::{self, Outcome};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const HELP: &str = "\
usage: cargo xtask peers [--arch sm_90] [-p PACKAGE]

Fetches nvcc and its libraries from PyPI into target/toolchain/nvcc and builds benches/peers with it, for one
architecture and one job at a time. The programs in benches/peers/target/release need a driver and nothing
else: copy them to a machine with a card.";

/// Packages of one version that unpack into one tree.
const PACKAGES: &[&str] = &[
    "nvidia-cuda-nvcc==13.0.*",
    "nvidia-nvvm==13.0.*",
    "nvidia-cuda-crt==13.0.*",
    "nvidia-cuda-runtime==13.0.*",
    "nvidia-cuda-cccl==13.0.*",
];

/// Where the static CUDA runtime is, which the peers' builds name without saying where.
const LIBRARIES: &str = "target/toolchain/nvcc/nvidia/cu13/lib";

/// Builds the peers.
pub fn run(arguments: &[String]) -> Outcome {
    let mut arch = "sm_90".to_owned();
    let mut package = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match (argument.as_str(), rest.next()) {
            ("--arch", Some(name)) => arch.clone_from(name),
            ("-p", Some(name)) => package = vec!["-p".to_owned(), name.clone()],
            ("--help" | "-h", _) => {
                println!("{HELP}");
                return Ok(());
            }
            _ => return Err(format!("unexpected '{argument}'\n\n{HELP}").into()),
        }
    }
    let nvcc = compiler(&arch)?;
    let mut cargo = shell::cargo(&["build", "--release", "--jobs", "1"]);
    cargo
        .args(&package)
        .current_dir(shell::root().join("benches/peers"))
        .env("NVCC", &nvcc)
        .env("LIBRARY_PATH", shell::root().join(LIBRARIES))
        // sppark's build asks for nvcc by name, too.
        .env("PATH", with_path(nvcc.parent().unwrap_or(Path::new("."))));
    shell::run(&mut cargo)
}

fn with_path(folder: &Path) -> std::ffi::OsString {
    let mut path = folder.as_os_str().to_owned();
    if let Some(old) = std::env::var_os("PATH") {
        path.push(":");
        path.push(old);
    }
    path
}

/// nvcc for one architecture: the peers' own builds ask for a list of others.
fn compiler(arch: &str) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let tree = shell::root().join("target/toolchain/nvcc");
    let real = tree.join("nvidia/cu13/bin/nvcc");
    if !real.is_file() {
        fetch(&tree)?;
    }
    let number = arch.trim_start_matches("sm_");
    let bin = tree.join("one-architecture/bin");
    std::fs::create_dir_all(&bin)?;
    link(
        &tree.join("nvidia/cu13/lib"),
        &tree.join("one-architecture/lib64"),
    )?;
    let wrapper = bin.join("nvcc");
    let script = format!(
        r#"#!/usr/bin/env bash
# Written by `cargo xtask peers`: replaces the architectures that were asked for by one.
arguments=()
while [ $# -gt 0 ]; do
    case "$1" in
        -gencode) shift ;;
        -arch=* | -t0) ;;
        *) arguments+=("$1") ;;
    esac
    shift
done
exec "{}" -gencode arch=compute_{number},code=sm_{number} "${{arguments[@]}}"
"#,
        real.display()
    );
    std::fs::write(&wrapper, script)?;
    executable(&wrapper)?;
    Ok(wrapper)
}

fn fetch(tree: &Path) -> Outcome {
    eprintln!("peers: fetching nvcc from PyPI");
    let wheels = tree.join("wheels");
    std::fs::create_dir_all(&wheels)?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet"])
        .args(["--disable-pip-version-check", "--no-deps", "--dest"])
        .arg(&wheels)
        .args(PACKAGES);
    shell::run(pip.stdout(Stdio::null()))?;
    for entry in std::fs::read_dir(&wheels)? {
        let mut unzip = Command::new("python3");
        unzip.args(["-m", "zipfile", "-e"]);
        shell::run(unzip.arg(entry?.path()).arg(tree))?;
    }
    let root = tree.join("nvidia/cu13");
    // nvcc looks for libraries in lib64; unpacking by `zipfile` loses the mode bits.
    link(Path::new("lib"), &root.join("lib64"))?;
    for folder in ["bin", "nvvm/bin"] {
        for entry in std::fs::read_dir(root.join(folder))? {
            executable(&entry?.path())?;
        }
    }
    Ok(())
}

fn executable(path: &Path) -> Outcome {
    use std::os::unix::fs::PermissionsExt;
    if path.is_file() {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

fn link(target: &Path, at: &Path) -> Outcome {
    if at.symlink_metadata().is_err() {
        std::os::unix::fs::symlink(target, at)?;
    }
    Ok(())
}
