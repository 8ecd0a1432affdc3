//! `cargo xtask tidy`: rules that hold for the whole repository.

use crate::shell::{self, Outcome};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A file longer than this is no longer one room.
const LONGEST_FILE: usize = 600;
/// Folders whose code may contain `unsafe`: CUDA calls, device access, casts or foreign functions of
/// the CPU back end (blst, mmap), and foreign functions of what is measured beside ours.
const UNSAFE_FOLDERS: &[&str] = &[
    "benches/peers/",
    "circuit/src/compiled/map.rs",
    "field-arith/",
    "gpu-kernels/",
    "prover/src/cuda/",
    "prover/src/msm/",
    "prover/src/ntt/",
    "prover/src/params/",
    "prover/src/setup/",
    "prover/cuzk/src/bench/",
];
/// What a user of `cuzk-prover` must never have to compile.
const NOT_IN_PROVER: &[&str] = &[
    "filecoin-proofs",
    "storage-proofs-core",
    "tokio",
    "tonic",
    "bellperson",
];

/// Runs every rule and prints each breach.
pub fn run(_arguments: &[String]) -> Outcome {
    let mut breaches = Vec::new();
    let files = tracked_files()?;
    for path in &files {
        check_text(path, &mut breaches);
    }
    check_dependencies(&mut breaches)?;
    for breach in &breaches {
        eprintln!("tidy: {breach}");
    }
    println!(
        "tidy: {} files read, {} breaches",
        files.len(),
        breaches.len()
    );
    if breaches.is_empty() {
        Ok(())
    } else {
        Err("the tree is not tidy".into())
    }
}

fn tracked_files() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let listing = shell::output(&mut shell::command("git", &["ls-files", "--cached"]))?;
    Ok(listing
        .lines()
        .map(str::to_owned)
        .filter(|p| shell::root().join(p).is_file())
        .collect())
}

fn check_text(path: &str, breaches: &mut Vec<String>) {
    let rust = path.ends_with(".rs");
    if !(rust || path.ends_with(".md") || path.ends_with(".toml") || path.ends_with(".proto")) {
        return;
    }
    let Ok(text) = std::fs::read_to_string(shell::root().join(path)) else {
        breaches.push(format!("{path}: not UTF-8"));
        return;
    };
    // Spelled in halves so that this file does not break its own rules.
    let machine_paths = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/home", "/"),
    ];
    let unfinished = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
    ];
    for (number, line) in text.lines().enumerate() {
        for bad in machine_paths.iter().chain(&unfinished) {
            if line.contains(bad) {
                breaches.push(format!("{path}:{}: contains '{bad}'", number + 1));
            }
        }
    }
    if rust {
        check_rust(path, &text, breaches);
    }
}

fn check_rust(path: &str, text: &str, breaches: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > LONGEST_FILE {
        breaches.push(format!(
            "{path}: {lines} lines, at most {LONGEST_FILE} are one room"
        ));
    }
    let first = text.lines().find(|l| !l.starts_with("#!"));
    if !first.is_some_and(|l| l.starts_with("//!")) {
        breaches.push(format!(
            "{path}: the first line must say what the file is for (//!)"
        ));
    }
    let allowed = UNSAFE_FOLDERS
        .iter()
        .any(|f| path.starts_with(f) || path == f.trim_end_matches('/').to_owned() + ".rs");
    let word = concat!("uns", "afe {");
    if !allowed
        && text
            .lines()
            .any(|l| l.contains(word) && !l.trim_start().starts_with("//"))
    {
        breaches.push(format!(
            "{path}: unsafe code outside the folders that may hold it"
        ));
    }
}

fn check_dependencies(breaches: &mut Vec<String>) -> Outcome {
    let text = shell::output(&mut shell::cargo(&[
        "metadata",
        "--format-version=1",
        "--locked",
    ]))?;
    let metadata: Value = serde_json::from_str(&text)?;
    let packages: BTreeMap<&str, &Value> = list(&metadata["packages"])
        .iter()
        .filter_map(|p| Some((p["id"].as_str()?, p)))
        .collect();
    let edges = dependency_edges(&metadata);
    let members: BTreeSet<&str> = list(&metadata["workspace_members"])
        .iter()
        .filter_map(Value::as_str)
        .collect();

    let oldest = members
        .iter()
        .filter_map(|id| packages.get(id)?["rust_version"].as_str())
        .map(version)
        .max()
        .unwrap_or_default();
    for id in reachable(&edges, members.iter().copied()) {
        let Some(package) = packages.get(id) else {
            continue;
        };
        let name = package["name"].as_str().unwrap_or_default();
        if let Some(needs) = package["rust_version"]
            .as_str()
            .filter(|v| version(v) > oldest)
        {
            breaches.push(format!(
                "dependency {name} needs Rust {needs}, the workspace says {oldest:?}"
            ));
        }
        if compiles_cpp(package) {
            breaches.push(format!("dependency {name} compiles C++"));
        }
    }
    let prover = members.iter().find(|id| {
        packages
            .get(*id)
            .is_some_and(|p| p["name"] == "cuzk-prover")
    });
    for id in prover
        .map(|id| reachable(&edges, [*id]))
        .unwrap_or_default()
    {
        let name = packages
            .get(id)
            .and_then(|p| p["name"].as_str())
            .unwrap_or_default();
        if NOT_IN_PROVER.contains(&name) {
            breaches.push(format!("cuzk-prover depends on {name}"));
        }
    }
    Ok(())
}

/// Normal and build dependencies (what a user compiles), by package id.
fn dependency_edges(metadata: &Value) -> BTreeMap<&str, Vec<&str>> {
    let mut edges = BTreeMap::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        let Some(id) = node["id"].as_str() else {
            continue;
        };
        let targets = list(&node["deps"])
            .iter()
            .filter(|d| {
                list(&d["dep_kinds"])
                    .iter()
                    .any(|k| k["kind"] != "dev" && !foreign_target(&k["target"]))
            })
            .filter_map(|d| d["pkg"].as_str());
        edges.insert(id, targets.collect());
    }
    edges
}

fn foreign_target(target: &Value) -> bool {
    target.as_str().is_some_and(|t| {
        ["windows", "wasm", "macos", "apple", "wasi", "hermit"]
            .iter()
            .any(|w| t.contains(w))
    })
}

fn reachable<'a>(
    edges: &BTreeMap<&'a str, Vec<&'a str>>,
    from: impl IntoIterator<Item = &'a str>,
) -> BTreeSet<&'a str> {
    let mut open: Vec<&str> = from.into_iter().collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            open.extend(edges.get(id).into_iter().flatten());
        }
    }
    seen
}

fn compiles_cpp(package: &Value) -> bool {
    let script = list(&package["targets"])
        .iter()
        .find(|t| list(&t["kind"]).iter().any(|k| k == "custom-build"));
    let Some(source) = script.and_then(|t| t["src_path"].as_str()) else {
        return false;
    };
    let text = std::fs::read_to_string(Path::new(source)).unwrap_or_default();
    ["cpp(true)", "cmake::", "cxx_build"]
        .iter()
        .any(|sign| text.contains(sign))
}

fn version(text: &str) -> (u32, u32) {
    let mut parts = text.split('.').map(|p| p.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
