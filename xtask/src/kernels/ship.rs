//! What the crate ships: compressed PTX and cubins, with a manifest that ties them to the sources.

use super::Result;
use super::build::{Built, PTX_TARGET};
use super::cuda::{self, Tools};
use super::ptx::Module;
use super::report::{self, Row};
use crate::shell::{self, Outcome};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// Architectures that get machine code of their own, so that the driver need not compile. Code for
/// sm_80 serves every 8.x, code for sm_120 every 12.x. `gpu-kernels/src/shipped.rs` has the same list.
const CUBINS: &[&str] = &["sm_80", "sm_90", "sm_100", "sm_120"];

fn folder() -> PathBuf {
    shell::root().join("gpu-kernels/ptx")
}

/// Paths relative to the repository's root, which is where cargo runs the compiler.
pub fn relative(files: Vec<String>) -> Result<Vec<String>> {
    let root = format!("{}/", shell::root().display());
    let files: Vec<String> = files
        .iter()
        .map(|file| file.strip_prefix(&root).unwrap_or(file).to_owned())
        .collect();
    match files.iter().find(|file| file.starts_with('/')) {
        Some(outside) => Err(format!(
            "{outside} is compiled into the kernels but lies outside of the tree"
        )
        .into()),
        None => Ok(files),
    }
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Digest of the names and contents of source files.
fn digest(files: &[String]) -> Result<String> {
    let mut hash = Sha256::new();
    for file in files {
        let text =
            std::fs::read(shell::root().join(file)).map_err(|error| format!("{file}: {error}"))?;
        hash.update((file.len() as u64).to_le_bytes());
        hash.update(file);
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(&text);
    }
    Ok(hex(&hash.finalize()))
}

/// Writes PTX, cubins and manifest.
pub fn write(module: &Module, built: &Built, tools: &Tools, rows: &[Row], arch: &str) -> Outcome {
    std::fs::create_dir_all(folder())?;
    let text = module.text();
    let mut images = vec![image("kernels.ptx.z", PTX_TARGET, text.as_bytes())?];
    for (arch, cubin) in assemble_all(tools, &text) {
        images.push(image(&format!("kernels.{arch}.cubin.z"), arch, &cubin?)?);
    }
    let mut manifest = report::json(rows, arch, &built.compiler, &tools.version);
    manifest["sources"] = json!(digest(&built.sources)?);
    manifest["files"] = json!(built.sources);
    manifest["images"] = json!(images);
    put("manifest.json", format!("{manifest:#}\n").as_bytes())?;
    for image in &images {
        println!(
            "gpu-kernels/ptx/{}: {} bytes, {} compressed",
            image["file"].as_str().unwrap_or_default(),
            image["bytes"],
            image["compressed_bytes"]
        );
    }
    Ok(())
}

/// Assembles the module for every architecture at once.
fn assemble_all(
    tools: &Tools,
    ptx: &str,
) -> Vec<(&'static str, std::result::Result<Vec<u8>, String>)> {
    let assemble = |arch| {
        cuda::assemble(tools, ptx, arch, "module")
            .map(|(cubin, _)| cubin)
            .map_err(|error| error.to_string())
    };
    std::thread::scope(|scope| {
        let jobs: Vec<_> = CUBINS
            .iter()
            .map(|arch| (*arch, scope.spawn(move || assemble(arch))))
            .collect();
        jobs.into_iter()
            .map(|(arch, job)| {
                let panicked = |_| Err("the assembling thread panicked".to_owned());
                (arch, job.join().unwrap_or_else(panicked))
            })
            .collect()
    })
}

fn image(file: &str, arch: &str, bytes: &[u8]) -> Result<Value> {
    let compressed = miniz_oxide::deflate::compress_to_vec_zlib(bytes, 9);
    put(file, &compressed)?;
    Ok(json!({
        "file": file,
        "arch": arch,
        "bytes": bytes.len(),
        "compressed_bytes": compressed.len(),
        "sha256": hex(&Sha256::digest(&compressed)),
    }))
}

/// Replaces a shipped file at once, unless it is the same already.
fn put(file: &str, bytes: &[u8]) -> Result<()> {
    let path = folder().join(file);
    if std::fs::read(&path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let temporary = folder().join(format!(".{file}.{}", std::process::id()));
    std::fs::write(&temporary, bytes)?;
    Ok(std::fs::rename(&temporary, &path)?)
}

/// Compares the sources with those that the shipped files came from; returns the manifest.
pub fn check_sources() -> Result<Value> {
    let text = std::fs::read_to_string(folder().join("manifest.json"))
        .map_err(|error| format!("gpu-kernels/ptx/manifest.json: {error}"))?;
    let manifest: Value = serde_json::from_str(&text)?;
    let files: Vec<String> = strings(&manifest["files"]);
    if files.is_empty() || digest(&files)? != manifest["sources"].as_str().unwrap_or_default() {
        return Err(
            "the shipped files are not those of these sources: run `cargo xtask kernels --ship`"
                .into(),
        );
    }
    Ok(manifest)
}

/// Compares the shipped files with the sources and with their manifest.
pub fn check() -> Outcome {
    let manifest = check_sources()?;
    let images = manifest["images"].as_array().cloned().unwrap_or_default();
    for image in &images {
        let file = image["file"].as_str().unwrap_or_default();
        let bytes = std::fs::read(folder().join(file))
            .map_err(|error| format!("gpu-kernels/ptx/{file}: {error}"))?;
        if image["sha256"] != json!(hex(&Sha256::digest(&bytes))) {
            return Err(format!(
                "gpu-kernels/ptx/{file} is not the file that its manifest describes"
            )
            .into());
        }
    }
    println!(
        "kernels: {} shipped files match {} source files",
        images.len(),
        strings(&manifest["files"]).len()
    );
    Ok(())
}

fn strings(value: &Value) -> Vec<String> {
    let list = value.as_array().cloned().unwrap_or_default();
    list.iter()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
