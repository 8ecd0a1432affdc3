//! NVIDIA's assembler and disassembler: from PyPI, or the machine's own.

use super::ptx::Module;
use super::{Result, sass, ship, toolchain};
use crate::shell;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Packages and pinned versions. The assembler belongs to the driver API version that the prover
/// uses; the disassembler has no release of that number.
const PACKAGES: &[&str] = &["nvidia-cuda-nvcc==13.0.*", "nvidia-cuda-nvdisasm==13.2.*"];

/// Where the programs are.
pub struct Tools {
    ptxas: PathBuf,
    nvdisasm: PathBuf,
    /// Version of the assembler.
    pub version: String,
}

/// Resources of one kernel as the assembler reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Registers a thread.
    pub registers: u32,
    /// Spill stores and loads, in bytes a thread.
    pub spills: u32,
    /// Stack frame in bytes.
    pub stack: u32,
    /// Static shared memory in bytes.
    pub shared: u32,
}

/// One kernel assembled by itself.
#[derive(Clone, Debug)]
pub struct Inspected {
    /// Its resources.
    pub usage: Usage,
    /// Its machine code as text.
    pub code: String,
}

/// The tools, fetched if necessary; `None`, with a line on stderr, where they are unreachable.
pub fn find_or_fetch() -> Option<Tools> {
    let folder = toolchain::folder().join("cuda");
    if let Some(tools) = in_folder(&folder.join("nvidia/cu13/bin")) {
        return Some(tools);
    }
    eprintln!("kernels: fetching ptxas and nvdisasm from PyPI");
    if let Err(error) = fetch(&folder) {
        eprintln!("kernels: {error}");
    }
    in_folder(&folder.join("nvidia/cu13/bin"))
        .or_else(|| in_folder(Path::new("/usr/local/cuda/bin")))
}

fn in_folder(folder: &Path) -> Option<Tools> {
    let (ptxas, nvdisasm) = (folder.join("ptxas"), folder.join("nvdisasm"));
    if !ptxas.is_file() || !nvdisasm.is_file() {
        return None;
    }
    let text = shell::output(Command::new(&ptxas).arg("--version")).ok()?;
    let version = text
        .lines()
        .find_map(|line| line.split(", V").nth(1))?
        .to_owned();
    Some(Tools {
        ptxas,
        nvdisasm,
        version,
    })
}

fn fetch(folder: &Path) -> Result<()> {
    let wheels = toolchain::folder().join("wheels");
    std::fs::create_dir_all(&wheels)?;
    std::fs::create_dir_all(folder)?;
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]);
    pip.arg("--dest").arg(&wheels).args(PACKAGES);
    shell::run(pip.stdout(Stdio::null()))?;
    for entry in std::fs::read_dir(&wheels)? {
        let wheel = entry?.path();
        let mut unzip = Command::new("python3");
        unzip.args(["-m", "zipfile", "-e"]).arg(&wheel).arg(folder);
        shell::run(&mut unzip)?;
    }
    make_executable(&folder.join("nvidia/cu13/bin"))
}

/// Unpacking by `zipfile` loses the mode bits.
fn make_executable(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    for entry in std::fs::read_dir(folder)? {
        std::fs::set_permissions(entry?.path(), std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Assembles PTX for one architecture; returns the cubin and the assembler's report.
pub fn assemble(tools: &Tools, ptx: &str, arch: &str, name: &str) -> Result<(Vec<u8>, String)> {
    let folder = shell::root().join("target/ptx");
    let stem = format!("{}-{name}-{arch}", std::process::id());
    let source = folder.join(format!("{stem}.ptx"));
    let object = folder.join(format!("{stem}.cubin"));
    std::fs::write(&source, ptx)?;
    let output = Command::new(&tools.ptxas)
        .args(["-v", &format!("-arch={arch}")])
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .output()?;
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(format!("ptxas refused {}:\n{log}", source.display()).into());
    }
    let cubin = std::fs::read(&object)?;
    std::fs::remove_file(&source)?;
    std::fs::remove_file(&object)?;
    Ok((cubin, log))
}

/// Assembles every kernel by itself, on all processors, and disassembles it. What did not change
/// since the last run comes from a cache in the target folder.
pub fn inspect(tools: &Tools, module: &Module, arch: &str) -> Result<BTreeMap<String, Inspected>> {
    let cache = shell::root().join("target/ptx/cache");
    std::fs::create_dir_all(&cache)?;
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    let failure = Mutex::new(None);
    let worker = || {
        while let Some(kernel) = module.kernels.get(next.fetch_add(1, Ordering::Relaxed)) {
            match inspect_one(tools, module, &kernel.name, arch, &cache) {
                Ok(one) => {
                    lock(&done).insert(kernel.name.clone(), one);
                }
                Err(error) => *lock(&failure) = Some(error.to_string()),
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        (0..threads).for_each(|_| {
            scope.spawn(worker);
        });
    });
    match lock(&failure).take() {
        Some(error) => Err(error.into()),
        None => Ok(std::mem::take(&mut *lock(&done))),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Separates report and machine code in a file of the cache.
const SEPARATOR: &str = "\n==== machine code ====\n";

fn inspect_one(
    tools: &Tools,
    module: &Module,
    kernel: &str,
    arch: &str,
    cache: &Path,
) -> Result<Inspected> {
    let ptx = module.select(|name| name == kernel).text();
    let key = ship::hex(&Sha256::digest(format!("{}\n{arch}\n{ptx}", tools.version)));
    let file = cache.join(format!("{kernel}-{arch}-{}", &key[..24]));
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(_) => {
            let (cubin, log) = assemble(tools, &ptx, arch, kernel)?;
            let code = disassemble(tools, &cubin, kernel)?;
            let text = format!("{log}{SEPARATOR}{code}");
            forget_older(cache, &format!("{kernel}-{arch}-"))?;
            std::fs::write(&file, &text)?;
            text
        }
    };
    let (log, code) = text.split_once(SEPARATOR).unwrap_or((&text, ""));
    let usage = usage(log)
        .remove(kernel)
        .ok_or_else(|| format!("the assembler says nothing about {kernel}"))?;
    Ok(Inspected {
        usage,
        code: code.to_owned(),
    })
}

/// Removes what the cache holds of earlier versions of a kernel.
fn forget_older(cache: &Path, prefix: &str) -> Result<()> {
    for entry in std::fs::read_dir(cache)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name
            .strip_prefix(prefix)
            .is_some_and(|rest| !rest.contains('-'))
        {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Reads what `ptxas -v` says about each kernel.
fn usage(log: &str) -> BTreeMap<String, Usage> {
    let mut all = BTreeMap::new();
    let mut name = String::new();
    let mut current = Usage::default();
    for line in log.lines() {
        if let Some(rest) = line.split("Compiling entry function '").nth(1) {
            name = rest.split('\'').next().unwrap_or_default().to_owned();
            current = Usage::default();
        } else if line.contains("bytes stack frame") {
            current.stack = before(line, " bytes stack frame");
            current.spills =
                before(line, " bytes spill stores") + before(line, " bytes spill loads");
        } else if line.contains("Used ") && line.contains(" registers") {
            current.registers = before(line, " registers");
            current.shared = before(line, " bytes smem");
            all.insert(std::mem::take(&mut name), current);
        }
    }
    all
}

/// The number in front of `label`, 0 if there is none.
fn before(line: &str, label: &str) -> u32 {
    let Some(at) = line.find(label) else { return 0 };
    line[..at]
        .rsplit(|c: char| !c.is_ascii_digit())
        .next()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

/// Machine code of a cubin's only kernel.
fn disassemble(tools: &Tools, cubin: &[u8], kernel: &str) -> Result<String> {
    let file = shell::root().join(format!("target/ptx/{}-{kernel}.cubin", std::process::id()));
    std::fs::write(&file, cubin)?;
    let text = shell::output(Command::new(&tools.nvdisasm).arg("-c").arg(&file));
    std::fs::remove_file(&file)?;
    Ok(sass::function(&text?, kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_read_from_the_assemblers_report() {
        let log = "\
ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for a
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 26 registers, used 1 barriers, 16 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Function properties for b
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 130 registers, used 0 barriers
";
        let all = usage(log);
        let a = Usage {
            registers: 26,
            spills: 20,
            stack: 16,
            shared: 1024,
        };
        assert_eq!(all["a"], a);
        assert_eq!(
            all["b"],
            Usage {
                registers: 130,
                ..Usage::default()
            }
        );
    }
}
