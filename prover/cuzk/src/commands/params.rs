//! `cuzk params`: making, describing and checking parameter files.

use super::params_dir;
use crate::arguments::{Generate, Params as Arguments, ParamsFile};
use crate::{error::Error, output::Output};
use cuzk_circuit::{CompiledCircuit, Origin};
use cuzk_filecoin::CircuitId;
use cuzk_prover::cuda::{self, CudaRuntime};
use cuzk_prover::gpu::Runtime;
use cuzk_prover::{Device, Params, setup};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Runs the command.
pub fn run(arguments: &Arguments, output: &Output) -> Result<(), Error> {
    match arguments {
        Arguments::Generate(generate) => run_generate(generate, output),
        Arguments::Info(file) => run_info(file, output),
        Arguments::Check(file) => run_check(file, output),
    }
}

fn run_generate(arguments: &Generate, output: &Output) -> Result<(), Error> {
    let dir = params_dir(arguments.params_dir.as_deref())?;
    let id = CircuitId::new(arguments.circuit.kind, arguments.circuit.sector_size);
    let path = id.params_path(&dir, "params")?;
    if arguments.if_missing && well_formed(id, &dir)? {
        let value = json!({"circuit": id.to_string(), "file": path, "made": false});
        output.result(&value, &format!("{} is there", path.display()));
        return Ok(());
    }
    std::fs::create_dir_all(&dir).map_err(Error::file(&dir))?;
    let progress = output.progress(format!("making parameters of {id} for tests"));
    let start = Instant::now();
    let waste = setup::ToxicWaste::random(rng(arguments.seed.as_deref())?);
    let mut tell = |p: setup::Progress| {
        progress.now(format!(
            "making parameters of {id} for tests: {} %",
            100 * p.done / p.total.max(1)
        ));
    };
    let device = generate(arguments, id, &waste, &path, &mut tell)?;
    let params = Params::map(&path)?;
    params.vk().write(id.params_path(&dir, "vk")?)?;
    id.write_test_meta(&dir)?;
    let seconds = start.elapsed().as_secs_f64();
    drop(progress);
    let value = json!({
        "circuit": id.to_string(), "file": path, "made": true, "bytes": params.counts().file_bytes(),
        "seconds": seconds, "device": device,
    });
    let text = format!(
        "made parameters of {id} in {seconds:.1} s on {device}: {}\nfor tests and private networks only: whoever made them can forge proofs",
        path.display()
    );
    output.result(&value, &text);
    Ok(())
}

/// Makes the file on the device that was asked for; answers which one it was.
fn generate(
    arguments: &Generate,
    id: CircuitId,
    waste: &setup::ToxicWaste,
    path: &Path,
    tell: &mut dyn FnMut(setup::Progress),
) -> Result<String, Error> {
    let runtime = runtime(&arguments.device)?;
    let file = arguments.circuit_file.as_deref();
    if runtime.is_none() && file.is_none() {
        setup::generate_file(id.blank_circuit()?, waste, path, tell)?;
    } else {
        let circuit = compiled(id, file)?;
        setup::generate_file_from(&circuit, waste, runtime.as_ref(), path, tell)?;
    }
    Ok(runtime.map_or("cpu".to_owned(), |runtime| runtime.name()))
}

/// The device, or none for the host.
fn runtime(device: &Device) -> Result<Option<Arc<dyn Runtime>>, Error> {
    let open = |ordinal| CudaRuntime::new(ordinal).map(|r| Some(Arc::new(r) as Arc<dyn Runtime>));
    Ok(match device {
        Device::Cpu => None,
        Device::Auto if cuda::device_count().is_err() => None,
        Device::Auto => open(0)?,
        Device::Cuda(ordinals) => open(ordinals.first().copied().unwrap_or(0))?,
    })
}

/// The circuit compiled with C, from its file where there is one.
pub fn compiled(id: CircuitId, file: Option<&Path>) -> Result<CompiledCircuit, Error> {
    let identity = id.to_string();
    let blank = id.blank_circuit()?;
    let Some(path) = file else {
        return Ok(CompiledCircuit::record_with_c(identity, blank)?);
    };
    let (circuit, origin) = CompiledCircuit::open_or_record_with_c(path, &identity, blank)?;
    if let Origin::Recorded { saved, .. } = origin {
        saved?;
    }
    Ok(circuit)
}

/// Whether all three files are there and the parameters' sizes are consistent.
fn well_formed(id: CircuitId, dir: &Path) -> Result<bool, Error> {
    for extension in ["params", "vk", "meta"] {
        if !id.params_path(dir, extension)?.exists() {
            return Ok(false);
        }
    }
    Ok(Params::map(id.params_path(dir, "params")?).is_ok())
}

fn rng(seed: Option<&str>) -> Result<ChaCha20Rng, Error> {
    let Some(text) = seed else {
        return Ok(ChaCha20Rng::from_entropy());
    };
    let wrong = || Error::Option {
        option: "seed",
        expected: "64 hexadecimal digits".into(),
        found: format!("{} characters", text.len()),
    };
    if text.len() != 64 || !text.is_ascii() {
        return Err(wrong());
    }
    let mut bytes = [0; 32];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| wrong())?;
    }
    Ok(ChaCha20Rng::from_seed(bytes))
}

fn describe(params: &Params) -> Value {
    let counts = params.counts();
    json!({
        "file": params.name(), "bytes": counts.file_bytes(), "domain_log2": counts.domain_log2(),
        "inputs": counts.inputs, "h": counts.h, "l": counts.l, "a": counts.a, "b": counts.b,
    })
}

fn text(params: &Params) -> String {
    let c = params.counts();
    format!(
        "{}\n{:>14} bytes\n{:>14} domain 2^{}\n{:>14} inputs (with the constant one)\n{:>14} points of h\n{:>14} points of l\n{:>14} points of a\n{:>14} points of b (in G1 and in G2)",
        params.name(),
        c.file_bytes(),
        c.h + 1,
        c.domain_log2(),
        c.inputs,
        c.h,
        c.l,
        c.a,
        c.b
    )
}

fn run_info(arguments: &ParamsFile, output: &Output) -> Result<(), Error> {
    let params = Params::map(&arguments.file)?;
    output.result(&describe(&params), &text(&params));
    Ok(())
}

fn run_check(arguments: &ParamsFile, output: &Output) -> Result<(), Error> {
    let progress = output.progress(format!(
        "checking every point of {}",
        arguments.file.display()
    ));
    let start = Instant::now();
    let params = Params::open(&arguments.file)?;
    let seconds = start.elapsed().as_secs_f64();
    drop(progress);
    let mut value = describe(&params);
    value["checked_seconds"] = json!(seconds);
    output.result(
        &value,
        &format!(
            "{}\nevery point is on the curve and in the subgroup ({seconds:.1} s)",
            text(&params)
        ),
    );
    Ok(())
}
