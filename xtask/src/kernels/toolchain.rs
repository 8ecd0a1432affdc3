//! A compiler and the source of `core` that belongs to it.
//!
//! The CUDA target ships without a compiled `core`, so that its source is needed, and it must be the
//! compiler's own. rustup installs both where it can download; elsewhere Debian's pair is unpacked
//! into the target folder, without root.

use super::Result;
use crate::shell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The version that rustup installs.
const VERSION: &str = "1.96.0";
/// Debian's compiler, whose dependencies name the other packages.
const DEBIAN_COMPILER: &str = "rustc-web";

/// A compiler for the CUDA target.
pub struct Compiler {
    /// Path of `rustc`.
    pub rustc: PathBuf,
    /// Folder of its shared libraries, where the system would not find them.
    pub libraries: Option<PathBuf>,
    /// Folder for what it builds: two compilers would overwrite each other's output.
    pub target: PathBuf,
}

impl Compiler {
    /// Adds the environment under which cargo uses this compiler with unstable options.
    pub fn prepare(&self, command: &mut Command) {
        command
            .env("RUSTC", &self.rustc)
            .env("RUSTC_BOOTSTRAP", "1");
        command
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("RUSTC_WRAPPER");
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
    }

    /// What `rustc --version` says.
    pub fn version(&self) -> Result<String> {
        let mut command = Command::new(&self.rustc);
        self.prepare(&mut command);
        Ok(shell::output(command.arg("--version"))?.trim().to_owned())
    }
}

/// Folder of everything that this job downloads.
pub fn folder() -> PathBuf {
    shell::root().join("target/toolchain")
}

/// An installed compiler, or a freshly fetched one.
pub fn find_or_fetch() -> Result<Compiler> {
    if let Some(compiler) = of_rustup().or_else(unpacked) {
        return Ok(compiler);
    }
    eprintln!("kernels: fetching rustc {VERSION} and its core source with rustup");
    let installed = Command::new("rustup")
        .args(["toolchain", "install", VERSION, "--profile", "minimal"])
        .args(["--component", "rust-src", "--no-self-update"])
        .stdout(Stdio::null())
        .status();
    if installed.is_ok_and(|status| status.success())
        && let Some(compiler) = of_rustup()
    {
        return Ok(compiler);
    }
    eprintln!("kernels: rustup cannot; fetching Debian's {DEBIAN_COMPILER} and its source");
    fetch_debian()?;
    unpacked()
        .ok_or_else(|| "the unpacked Debian packages hold no compiler with its core source".into())
}

/// The compiler of rustup's toolchain, if it is complete.
fn of_rustup() -> Option<Compiler> {
    let output = Command::new("rustup")
        .args(["which", "rustc", "--toolchain", VERSION])
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let rustc = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    let root = rustc.parent()?.parent()?;
    (output.status.success() && has_core(root)).then_some(Compiler {
        rustc,
        libraries: None,
        target: shell::root().join("target/ptx/rustup"),
    })
}

/// The compiler of the unpacked Debian packages.
fn unpacked() -> Option<Compiler> {
    let root = folder().join("debian/usr");
    let rustc = root.join("bin/rustc");
    (rustc.is_file() && has_core(&root)).then(|| Compiler {
        rustc,
        libraries: Some(root.join("lib/x86_64-linux-gnu")),
        target: shell::root().join("target/ptx/debian"),
    })
}

fn has_core(root: &Path) -> bool {
    root.join("lib/rustlib/src/rust/library/core/src/lib.rs")
        .is_file()
}

/// Downloads and unpacks the Debian packages.
fn fetch_debian() -> Result<()> {
    let packages = folder().join("debs");
    std::fs::create_dir_all(&packages)?;
    let mut apt = Apt::default();
    let names = match debian_packages(&apt) {
        Ok(names) => names,
        Err(_) => {
            apt = Apt::with_own_lists()?;
            debian_packages(&apt)?
        }
    };
    let mut command = apt.command("apt-get");
    command.arg("download").args(&names).current_dir(&packages);
    shell::run(command.stdout(Stdio::null()))?;
    let root = folder().join("debian");
    for entry in std::fs::read_dir(&packages)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "deb") {
            shell::run(Command::new("dpkg").arg("-x").arg(&path).arg(&root))?;
        }
    }
    Ok(())
}

/// Compiler, standard library for build scripts, LLVM, and the source.
fn debian_packages(apt: &Apt) -> Result<Vec<String>> {
    let library = apt
        .dependencies("libstd-rust-web-dev")?
        .into_iter()
        .find(|name| name.starts_with("libstd-rust-web-"))
        .ok_or("Debian's package lists do not offer a compiler for the CUDA target")?;
    let llvm = apt
        .dependencies(&library)?
        .into_iter()
        .find(|name| name.starts_with("libllvm"))
        .ok_or_else(|| format!("{library} depends on no libllvm"))?;
    let fixed = [DEBIAN_COMPILER, "libstd-rust-web-dev", "rust-web-src"].map(str::to_owned);
    Ok(fixed.into_iter().chain([library, llvm]).collect())
}

/// apt with the system's package lists, or with lists of our own where those are missing.
#[derive(Default)]
struct Apt {
    options: Vec<String>,
}

impl Apt {
    fn with_own_lists() -> Result<Self> {
        let lists = folder().join("apt");
        std::fs::create_dir_all(lists.join("lists/partial"))?;
        std::fs::create_dir_all(lists.join("cache/archives/partial"))?;
        let apt = Apt {
            options: vec![
                format!("-oDir::State::Lists={}", lists.join("lists").display()),
                format!("-oDir::Cache={}", lists.join("cache").display()),
                "-oDebug::NoLocking=1".to_owned(),
            ],
        };
        shell::run(
            apt.command("apt-get")
                .args(["-qq", "update"])
                .stdout(Stdio::null()),
        )?;
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(&self.options);
        command
    }

    fn dependencies(&self, package: &str) -> Result<Vec<String>> {
        let text = shell::output(self.command("apt-cache").args(["depends", package]))?;
        Ok(text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Depends: "))
            .map(str::to_owned)
            .collect())
    }
}
