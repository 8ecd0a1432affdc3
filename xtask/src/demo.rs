//! `cargo xtask demo`: the main job end to end, through the command that users run.

use crate::shell::{self, Outcome};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const HELP: &str = "\
usage: cargo xtask demo [--kind porep|winning|window|update] [--sector-size 2KiB|8MiB|...] [--device auto|cpu|cuda] [--json]

Seals (2 KiB) or fabricates (larger) a sector, writes its input file, makes the parameters once
(cached under target/), proves, and verifies the proof with our verifier and with Filecoin's own.";

/// The miner of the test sectors: with it, Filecoin's check of a proof of replication is `verify_seal`.
const MINER: &str = "1000";

struct Options {
    kind: String,
    size: String,
    device: String,
    json: bool,
}

/// Runs the job.
pub fn run(arguments: &[String]) -> Outcome {
    let Some(options) = parse(arguments)? else {
        println!("{HELP}");
        return Ok(());
    };
    let build_start = Instant::now();
    shell::run(&mut shell::cargo(&[
        "build",
        "--release",
        "--locked",
        "--package",
        "cuzk",
    ]))?;
    let build = build_start.elapsed().as_secs_f64();
    let demo = Demo::new(options)?;
    let wall = Instant::now();
    let mut steps = vec![
        ("sector", demo.sector()?),
        ("parameters", demo.parameters()?),
    ];
    steps.push(("prove", demo.prove()?));
    steps.push(("verify", demo.verify()?));
    let wall = wall.elapsed().as_secs_f64();
    report(&demo, build, wall, &steps)
}

fn parse(arguments: &[String]) -> Result<Option<Options>, Box<dyn std::error::Error>> {
    let mut options = Options {
        kind: "porep".into(),
        size: "2KiB".into(),
        device: "auto".into(),
        json: false,
    };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let mut value = || {
            rest.next()
                .cloned()
                .ok_or(format!("{flag} needs a value\n\n{HELP}"))
        };
        match flag.as_str() {
            "--kind" => options.kind = value()?,
            "--sector-size" => options.size = value()?,
            "--device" => options.device = value()?,
            "--json" => options.json = true,
            "--help" | "-h" => return Ok(None),
            other => return Err(format!("unknown option '{other}'\n\n{HELP}").into()),
        }
    }
    Ok(Some(options))
}

/// One finished step: its wall time and what the command printed as JSON.
struct Step {
    seconds: f64,
    result: Value,
}

struct Demo {
    options: Options,
    folder: PathBuf,
    parameters: PathBuf,
}

impl Demo {
    fn new(options: Options) -> Result<Self, Box<dyn std::error::Error>> {
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or(shell::root().join("target"), PathBuf::from);
        let folder = target
            .join("demo")
            .join(format!("{}-{}", options.kind, options.size));
        let parameters = target.join("demo").join("parameters");
        // A run starts from its own empty folder; only the parameters are kept.
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        std::fs::create_dir_all(&parameters)?;
        Ok(Demo {
            options,
            folder,
            parameters,
        })
    }

    fn input(&self) -> PathBuf {
        self.folder.join(if self.options.kind == "porep" {
            "c1.json"
        } else {
            "request.json"
        })
    }

    fn sector(&self) -> Result<Step, Box<dyn std::error::Error>> {
        let verb = if self.options.size.eq_ignore_ascii_case("2kib") {
            "seal"
        } else {
            "fabricate"
        };
        let (input, folder) = (self.input(), self.folder.join("sector"));
        let mut arguments = vec![
            "sector",
            verb,
            "--kind",
            &self.options.kind,
            "--sector-size",
            &self.options.size,
        ];
        let (input, folder) = (text(&input)?, text(&folder)?);
        arguments.extend(["--out", input]);
        if verb == "seal" {
            arguments.extend(["--folder", folder]);
        }
        self.cuzk(&arguments)
    }

    fn parameters(&self) -> Result<Step, Box<dyn std::error::Error>> {
        let (kind, size) = (self.options.kind.as_str(), self.options.size.as_str());
        self.cuzk(&[
            "params",
            "generate",
            "--kind",
            kind,
            "--sector-size",
            size,
            "--if-missing",
        ])
    }

    fn prove(&self) -> Result<Step, Box<dyn std::error::Error>> {
        let (input, proof) = (self.input(), self.folder.join("proof.bin"));
        let trace = self.folder.join("trace.json");
        let device = self.options.device.as_str();
        self.cuzk(&[
            "prove",
            "--miner",
            MINER,
            "--input",
            text(&input)?,
            "--out",
            text(&proof)?,
            "--device",
            device,
            "--trace",
            text(&trace)?,
        ])
    }

    fn verify(&self) -> Result<Step, Box<dyn std::error::Error>> {
        let (input, proof) = (self.input(), self.folder.join("proof.bin"));
        self.cuzk(&[
            "verify",
            "--miner",
            MINER,
            "--input",
            text(&input)?,
            "--proof",
            text(&proof)?,
        ])
    }

    /// Runs `cuzk … --json` on the demo's parameter folder.
    fn cuzk(&self, arguments: &[&str]) -> Result<Step, Box<dyn std::error::Error>> {
        let target = self
            .parameters
            .parent()
            .and_then(Path::parent)
            .unwrap_or(Path::new("target"));
        let mut command = Command::new(target.join("release").join("cuzk"));
        command
            .args(arguments)
            .arg("--json")
            .env("FIL_PROOFS_PARAMETER_CACHE", &self.parameters);
        let start = Instant::now();
        let printed = shell::output(&mut command)?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(Step {
            seconds,
            result: serde_json::from_str(&printed)?,
        })
    }
}

fn text(path: &Path) -> Result<&str, String> {
    path.to_str()
        .ok_or(format!("{} is not UTF-8", path.display()))
}

fn report(demo: &Demo, build: f64, wall: f64, steps: &[(&str, Step)]) -> Outcome {
    let verified = steps.last().map(|s| s.1.result.clone()).unwrap_or_default();
    let both = verified["verified"] == true && verified["official"] == true;
    let parts: f64 = steps.iter().map(|s| s.1.seconds).sum();
    if demo.options.json {
        let table: serde_json::Map<String, Value> = steps
            .iter()
            .map(|(name, step)| {
                (
                    (*name).to_owned(),
                    json!({"seconds": step.seconds, "result": step.result}),
                )
            })
            .collect();
        println!(
            "{}",
            json!({"verified": both, "build_seconds": build, "wall_seconds": wall, "steps": table})
        );
    } else {
        println!("{:<14} {:>9}", "step", "seconds");
        for (name, step) in steps {
            println!("{name:<14} {:>9.2}", step.seconds);
        }
        println!(
            "{:<14} {parts:>9.2}\n{:<14} {wall:>9.2}\n{:<14} {:>9.2}",
            "sum of parts",
            "wall",
            "unexplained",
            wall - parts
        );
    }
    if !both {
        return Err(format!("the proof was not verified: {verified}").into());
    }
    println!(
        "demo: verified {} {} ({} bytes; our verifier and Filecoin's own)",
        demo.options.kind, demo.options.size, verified["proof_bytes"]
    );
    Ok(())
}
