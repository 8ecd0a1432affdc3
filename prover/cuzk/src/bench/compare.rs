//! Two builds of the command in turn: the ratio of their times, pair by pair.

use crate::{arguments::BenchSynth, error::Error};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Time of this build over time of the saved one, pair by pair.
#[derive(Debug, Serialize)]
pub struct Ratio {
    name: String,
    pairs: usize,
    median: f64,
    smallest: f64,
    largest: f64,
    /// Median processor time of one synthesis in seconds: this build, the saved one.
    cpu_seconds: [f64; 2],
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Ratio {
            name,
            pairs,
            median,
            smallest,
            largest,
            cpu_seconds: [now, saved],
        } = self;
        write!(
            f,
            "synthesis, this build over '{name}': {median:.3} (from {smallest:.3} to {largest:.3}, {pairs} pairs); \
             median processor time {now:.4} s and {saved:.4} s"
        )
    }
}

/// Saved builds lie beside the running one.
fn folder(name: &str) -> Result<PathBuf, Error> {
    let simple = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !simple || name.starts_with('.') {
        return Err(Error::Option {
            option: "save",
            expected: "letters, digits, '-', '_' and '.'".into(),
            found: name.into(),
        });
    }
    let this = this_build()?;
    Ok(this
        .parent()
        .unwrap_or(Path::new("."))
        .join("bench-saved")
        .join(name))
}

fn this_build() -> Result<PathBuf, Error> {
    std::env::current_exe().map_err(Error::file(Path::new("the running program")))
}

/// Keeps the running program and its results.
pub fn save(name: &str, results: &Value) -> Result<(), Error> {
    let folder = folder(name)?;
    std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    let program = folder.join("cuzk");
    std::fs::copy(this_build()?, &program).map_err(Error::file(&program))?;
    let file = folder.join("synth.json");
    std::fs::write(&file, format!("{results:#}\n")).map_err(Error::file(&file))
}

/// Runs this build and the saved one in turn, as many pairs as `--runs` says.
pub fn against(name: &str, arguments: &BenchSynth) -> Result<Ratio, Error> {
    let programs = [this_build()?, folder(name)?.join("cuzk")];
    let mut times = [Vec::new(), Vec::new()];
    for pair in 0..arguments.runs.max(1) {
        // Each goes first as often as second, so that drift of the machine cancels.
        for side in [pair % 2, 1 - pair % 2] {
            times[side].push(once(&programs[side], arguments)?);
        }
    }
    let mut ratios: Vec<f64> = times[0]
        .iter()
        .zip(&times[1])
        .map(|(now, saved)| now / saved)
        .collect();
    ratios.sort_by(f64::total_cmp);
    Ok(Ratio {
        name: name.into(),
        pairs: ratios.len(),
        median: ratios[ratios.len() / 2],
        smallest: ratios[0],
        largest: ratios[ratios.len() - 1],
        cpu_seconds: times.map(super::median),
    })
}

/// Processor time of one synthesis by `program`, in seconds.
fn once(program: &Path, arguments: &BenchSynth) -> Result<f64, Error> {
    let mut command = Command::new(program);
    command
        .args(["bench", "synth", "--runs", "1", "--json"])
        .stderr(Stdio::inherit());
    match &arguments.c1 {
        Some(path) => command.arg("--c1").arg(path),
        None => command
            .args(["--kind", &arguments.circuit.kind.to_string()])
            .args(["--sector-size", &arguments.circuit.sector_size.to_string()]),
    };
    let done = command.output().map_err(Error::file(program))?;
    let value: Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
    value["paths"]["direct"]["cpu_seconds"]
        .as_f64()
        .ok_or_else(|| Error::Option {
            option: "compare",
            expected: "a saved build that prints its results".into(),
            found: format!("{} ended with {}", program.display(), done.status),
        })
}
