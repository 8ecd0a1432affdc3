//! `cuzk verify`: a proof against its input file, by two verifiers.

use super::{open_request, params_dir};
use crate::{arguments::Verify, error::Error, output::Output};
use cuzk_prover::{Proof, VerifyingKey, prepare_verifying_key};
use rand_core::OsRng;
use serde_json::json;
use std::time::Instant;

/// Runs the command.
pub fn run(arguments: &Verify, output: &Output) -> Result<(), Error> {
    let dir = params_dir(arguments.params_dir.as_deref())?;
    let progress = output.progress("reading the input");
    let request = open_request(&arguments.input, arguments.miner)?;
    let id = request.circuit_id();
    let path = &arguments.proof;
    let bytes = std::fs::read(path).map_err(Error::file(path))?;
    let proofs =
        Proof::many_from_bytes(&bytes, request.partitions()).map_err(|source| Error::Proof {
            path: path.clone(),
            source,
        })?;

    progress.now("verifying");
    let start = Instant::now();
    let key = prepare_verifying_key(&VerifyingKey::read(id.params_path(&dir, "vk")?)?);
    let inputs: Vec<_> = (0..request.partitions())
        .map(|k| request.public_inputs(k))
        .collect::<Result<_, _>>()?;
    let ours = key.verify_batch(&mut OsRng, &proofs, &inputs)?;
    let ours_seconds = start.elapsed().as_secs_f64();

    progress.now("verifying with Filecoin's own code");
    let start = Instant::now();
    let official = request.verify(&bytes)?;
    let official_seconds = start.elapsed().as_secs_f64();
    drop(progress);
    if !(ours && official) {
        return Err(Error::NotValid {
            path: path.clone(),
            ours,
            official,
        });
    }
    let value = json!({
        "verified": ours, "official": official, "circuit": id.to_string(), "proof_bytes": bytes.len(),
        "seconds": {"ours": ours_seconds, "official": official_seconds},
    });
    output.result(
        &value,
        &format!("{}: valid ({id}, {} bytes)", path.display(), bytes.len()),
    );
    Ok(())
}
