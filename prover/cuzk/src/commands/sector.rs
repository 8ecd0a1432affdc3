//! `cuzk sector`: test sectors and their input files.

use super::write_file;
use crate::arguments::{Fabricate, Seal, Sector};
use crate::{error::Error, output::Output};
use cuzk_filecoin::fabricate::{Options, fabricate};
use cuzk_filecoin::seal::{SealOptions, seal};
use cuzk_filecoin::{CircuitId, ProofKind, ProofRequest};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

/// Runs the command.
pub fn run(arguments: &Sector, output: &Output) -> Result<(), Error> {
    match arguments {
        Sector::Seal(seal) => run_seal(seal, output),
        Sector::Fabricate(fabricate) => run_fabricate(fabricate, output),
    }
}

fn run_fabricate(arguments: &Fabricate, output: &Output) -> Result<(), Error> {
    let (kind, size) = (arguments.circuit.kind, arguments.circuit.sector_size);
    let progress = output.progress(format!("fabricating {}", CircuitId::new(kind, size)));
    let start = Instant::now();
    let options = Options {
        seed: arguments.seed,
        ..Options::default()
    };
    let request = ProofRequest::from(fabricate(kind, size, &options)?);
    let seconds = start.elapsed().as_secs_f64();
    write_request(&request, &arguments.out)?;
    drop(progress);
    report(
        output,
        "fabricated",
        CircuitId::new(kind, size),
        &arguments.out,
        seconds,
    );
    Ok(())
}

fn run_seal(arguments: &Seal, output: &Output) -> Result<(), Error> {
    let (kind, size) = (arguments.circuit.kind, arguments.circuit.sector_size);
    let progress = output.progress(format!("sealing a {size} sector"));
    let start = Instant::now();
    let temporary = tempfile::tempdir().map_err(Error::file(Path::new("a temporary folder")))?;
    let folder = arguments.folder.as_deref().unwrap_or(temporary.path());
    let request = seal(folder, SealOptions::new(size))?.request(kind)?;
    let seconds = start.elapsed().as_secs_f64();
    write_request(&request, &arguments.out)?;
    drop(progress);
    report(
        output,
        "sealed",
        CircuitId::new(kind, size),
        &arguments.out,
        seconds,
    );
    Ok(())
}

/// Proofs of replication are written as their C1 JSON, the others as a request file.
fn write_request(request: &ProofRequest, path: &Path) -> Result<(), Error> {
    match request.kind {
        ProofKind::Porep => write_file(path, &request.vanilla_proof),
        _ => write_file(path, &request.to_json()?),
    }
}

fn report(output: &Output, done: &str, id: CircuitId, path: &Path, seconds: f64) {
    let value = json!({"circuit": id.to_string(), "file": path, "seconds": seconds});
    output.result(
        &value,
        &format!("{done} {id} in {seconds:.2} s: {}", path.display()),
    );
}
