//! The command as its users run it: exit codes, JSON, and the message for each kind of bad input.

use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const SEED: &str = "0707070707070707070707070707070707070707070707070707070707070707";

/// What a run of the command left behind.
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Run {
    /// The one JSON object of a run that went well.
    fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// Asserts exit code 1 and one line on standard error that has every one of `parts`.
    fn fails_with(&self, parts: &[&str]) {
        assert_eq!(self.code, Some(1), "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        assert!(self.stderr.starts_with("cuzk: "), "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in {}", self.stderr);
        }
    }
}

/// Runs the command in `folder` with the parameter files of `params`.
fn cuzk(folder: &Path, params: &Path, arguments: &[&str]) -> Run {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_cuzk"))
        .args(arguments)
        .current_dir(folder)
        .env("FIL_PROOFS_PARAMETER_CACHE", params)
        .env_remove("RUST_LOG")
        .output()
        .unwrap();
    Run {
        code: status.code(),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

/// A sealed sector's input file, its parameters and its proof, made once by the main path.
struct Proved {
    folder: PathBuf,
    sealed: Value,
    made: Value,
    proved: Value,
}

impl Proved {
    fn params_dir(&self) -> PathBuf {
        self.folder.join("params")
    }

    fn params_file(&self) -> PathBuf {
        file_of(ProofKind::Winning, &self.params_dir())
    }

    fn run(&self, arguments: &[&str]) -> Run {
        cuzk(&self.folder, &self.params_dir(), arguments)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.join(name), bytes).unwrap();
    }

    fn proof(&self) -> Vec<u8> {
        std::fs::read(self.folder.join("input.proof")).unwrap()
    }
}

/// Where the 2 KiB parameters of a kind are looked for.
fn file_of(kind: ProofKind, folder: &Path) -> PathBuf {
    CircuitId::new(kind, SectorSize::Kib2)
        .params_path(folder, "params")
        .unwrap()
}

fn proved() -> &'static Proved {
    static PROVED: OnceLock<Proved> = OnceLock::new();
    PROVED.get_or_init(|| {
        // Cargo's own folder for integration tests, emptied first: a static is never dropped.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuzk-cli");
        let _ = std::fs::remove_dir_all(&folder);
        let params = folder.join("params");
        std::fs::create_dir_all(&params).unwrap();
        let run = |line: &str| {
            let words: Vec<_> = line.split_whitespace().collect();
            cuzk(&folder, &params, &words).json()
        };
        let sealed = run("sector seal --kind winning --out input.json --json");
        let made = run(&format!(
            "params generate --kind winning --seed {SEED} --json"
        ));
        let proved = run(
            "prove --input input.json --device cpu --out input.proof --trace trace.json --json",
        );
        Proved {
            sealed,
            made,
            proved,
            folder,
        }
    })
}

#[test]
fn a_sealed_sector_is_proved_and_verified_with_json_all_the_way() {
    let proved = proved();
    assert_eq!(proved.sealed["circuit"], "winning-2k");
    assert_eq!(proved.made["made"], true);
    assert_eq!(proved.proved["proof_bytes"], 192);
    assert_eq!(proved.proof().len(), 192);
    let run = proved.run(&[
        "verify",
        "--input",
        "input.json",
        "--proof",
        "input.proof",
        "--json",
    ]);
    let verified = run.json();
    assert_eq!(verified["verified"], true);
    assert_eq!(verified["official"], true);
}

#[test]
fn a_circuit_is_compiled_by_the_first_proof_and_evaluated_by_the_next() {
    let proved = proved();
    assert_eq!(proved.proved["synthesis"], "direct");
    assert_eq!(proved.proved["recording"], true);
    let other = tempfile::tempdir().unwrap();
    let copied = |extension: &str| {
        let file = proved.params_file().with_extension(extension);
        let copy = other.path().join(file.file_name().unwrap());
        std::fs::copy(&file, &copy).unwrap();
        copy
    };
    copied("params");
    let compiled = copied("compiled");
    let good = std::fs::read(&compiled).unwrap();
    let prove = |more: &str| {
        let line = format!("prove --input input.json --device cpu --json {more}");
        let words: Vec<_> = line.split_whitespace().collect();
        cuzk(&proved.folder, other.path(), &words)
    };
    let second = prove("--out second.proof").json();
    assert_eq!(second["synthesis"], "compiled");
    assert_eq!(second["witness"], "native");
    assert_eq!(second["recording"], false);
    let verified = proved.run(&[
        "verify",
        "--input",
        "input.json",
        "--proof",
        "second.proof",
        "--json",
    ]);
    assert_eq!(verified.json()["official"], true);
    assert_eq!(prove("--direct").json()["synthesis"], "direct");

    let mut bad = good.clone();
    bad[1000] ^= 1;
    std::fs::write(&compiled, bad).unwrap();
    let third = prove("");
    assert_eq!(third.json()["synthesis"], "direct");
    assert!(
        third.stderr.contains("the compiled circuit is not used"),
        "{}",
        third.stderr
    );
    assert_eq!(std::fs::read(&compiled).unwrap(), good, "recorded anew");
}

#[test]
fn the_info_of_a_circuit_adds_up_and_its_treemap_is_one_file() {
    let proved = proved();
    let run = proved.run(&[
        "circuit", "info", "--kind", "winning", "--html", "map.html", "--json",
    ]);
    let info = run.json();
    assert_eq!(info["constraints"], 90_750);
    assert_eq!(info["inputs"], 133);
    assert_eq!(info["aux"], 91_674);
    let whole = &info["components"];
    assert_eq!(whole["constraints"], info["constraints"]);
    assert_eq!(whole["aux"], info["aux"]);
    let templates = info["templates"].as_array().unwrap().iter();
    let rows = |t: &Value| t["instances"].as_u64().unwrap() * t["rows"].as_u64().unwrap();
    assert_eq!(templates.map(rows).sum::<u64>(), 90_750);
    let html = std::fs::read_to_string(proved.folder.join("map.html")).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("winning-2k"));
    assert!(!html.contains("http"), "the file fetches nothing");
}

#[test]
fn bench_synth_compares_the_paths_on_one_input() {
    let run = proved().run(&[
        "bench", "synth", "--kind", "winning", "--runs", "1", "--json",
    ]);
    let paths = &run.json()["paths"];
    for path in ["direct", "compiled", "native"] {
        assert!(
            paths[path]["wall_seconds"].as_f64().unwrap() > 0.0,
            "{path}"
        );
        assert!(
            paths[path]["host_bytes"].as_u64().unwrap() > 64 * 90_750,
            "{path}"
        );
    }
    assert!(paths.get("cuda").is_some(), "null without a device");
}

#[test]
fn a_trace_is_json_with_events() {
    let text = std::fs::read(proved().folder.join("trace.json")).unwrap();
    let trace: Value = serde_json::from_slice(&text).unwrap();
    let events = trace.as_array().or(trace["traceEvents"].as_array());
    assert!(!events.unwrap().is_empty());
}

#[test]
fn parameters_that_are_there_are_not_made_again() {
    let proved = proved();
    let changed = || {
        std::fs::metadata(proved.params_file())
            .unwrap()
            .modified()
            .unwrap()
    };
    let before = changed();
    let run = proved.run(&[
        "params",
        "generate",
        "--kind",
        "winning",
        "--if-missing",
        "--json",
    ]);
    assert_eq!(run.json()["made"], false);
    assert_eq!(changed(), before);
}

#[test]
fn wrong_usage_exits_with_2() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["prove"][..],
        &["nothing"],
        &["params", "generate", "--kind", "nothing"],
        &["prove", "--input", "x", "--device", "abacus"],
    ] {
        let run = cuzk(folder.path(), folder.path(), arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
        assert!(run.stdout.is_empty());
    }
}

#[test]
fn an_input_file_that_is_missing_or_not_json_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let prove = |name| {
        cuzk(
            folder.path(),
            folder.path(),
            &["prove", "--device", "cpu", "--input", name],
        )
    };
    prove("none.json").fails_with(&["cuzk: none.json: No such file"]);
    std::fs::write(folder.path().join("text.json"), "seven\n").unwrap();
    prove("text.json").fails_with(&["text.json", "not valid JSON", "line 1"]);
}

#[test]
fn a_failure_is_json_too_where_json_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let run = cuzk(
        folder.path(),
        folder.path(),
        &["prove", "--input", "none.json", "--json"],
    );
    run.fails_with(&["none.json"]);
    let value: Value = serde_json::from_str(&run.stdout).unwrap();
    assert!(value["error"].as_str().unwrap().contains("none.json"));
}

#[test]
fn an_empty_or_truncated_parameter_file_is_refused() {
    let proved = proved();
    let other = tempfile::tempdir().unwrap();
    let path = file_of(ProofKind::Winning, other.path());
    let name = path.file_name().unwrap().to_str().unwrap();
    let prove = || {
        cuzk(
            &proved.folder,
            other.path(),
            &["prove", "--input", "input.json", "--device", "cpu"],
        )
    };
    prove().fails_with(&[name, "No such file"]);
    std::fs::write(&path, []).unwrap();
    prove().fails_with(&[name, "empty", "expected"]);
    let bytes = std::fs::read(proved.params_file()).unwrap();
    for cut in [5000, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        prove().fails_with(&[name, "truncated at offset", "found"]);
    }
}

#[test]
fn parameters_of_another_kind_are_refused() {
    let proved = proved();
    let other = tempfile::tempdir().unwrap();
    let path = file_of(ProofKind::Window, other.path());
    std::fs::copy(proved.params_file(), &path).unwrap();
    let at = |arguments: &[&str]| cuzk(other.path(), other.path(), arguments);
    at(&[
        "sector",
        "fabricate",
        "--kind",
        "window",
        "--out",
        "window.json",
        "--json",
    ])
    .json();
    let run = at(&["prove", "--input", "window.json", "--device", "cpu"]);
    let name = path.file_name().unwrap().to_str().unwrap();
    run.fails_with(&[name, "do not fit the circuit", "expected", "found"]);
}

#[test]
fn a_wrong_proof_file_does_not_verify() {
    let proved = proved();
    let verify =
        |input, proof| proved.run(&["verify", "--input", input, "--proof", proof, "--json"]);
    verify("input.json", "none.proof").fails_with(&["none.proof", "No such file"]);

    proved.write("short.proof", &proved.proof()[..100]);
    verify("input.json", "short.proof").fails_with(&["short.proof", "192 bytes", "found 100"]);

    for at in [0, 47, 100, 191] {
        let mut bytes = proved.proof();
        bytes[at] ^= 1;
        proved.write("flipped.proof", &bytes);
        verify("input.json", "flipped.proof").fails_with(&["flipped.proof"]);
    }

    let fabricate = "sector fabricate --kind winning --seed 9 --out other.json --json";
    let words: Vec<_> = fabricate.split_whitespace().collect();
    proved.run(&words).json();
    verify("other.json", "input.proof").fails_with(&["input.proof", "not valid"]);
}

#[test]
fn a_missing_output_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let run = cuzk(
        folder.path(),
        folder.path(),
        &[
            "sector",
            "fabricate",
            "--kind",
            "winning",
            "--out",
            "missing/input.json",
        ],
    );
    run.fails_with(&["missing/input.json", "No such file"]);

    let prove = "prove --input input.json --device cpu --out missing/input.proof";
    let words: Vec<_> = prove.split_whitespace().collect();
    proved()
        .run(&words)
        .fails_with(&["missing/input.proof", "No such file"]);
}

#[test]
fn cuda_is_refused_where_there_is_none() {
    let proved = proved();
    let devices = proved.run(&["gpu", "info", "--json"]).json();
    if !devices["devices"].as_array().unwrap().is_empty() {
        return;
    }
    proved
        .run(&["prove", "--input", "input.json", "--device", "cuda"])
        .fails_with(&["cuda"]);
}

#[test]
fn the_full_bench_ends_with_filecoins_own_verifier_and_accounts_for_its_time() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuzk-cli-full");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let line = "bench full --kind window --device cpu --circuit-file window.circuit --params-dir params --json";
    let words: Vec<_> = line.split_whitespace().collect();
    let value = cuzk(&folder, &folder.join("params"), &words).json();
    assert_eq!(value["official_verifier"], true);
    assert_eq!(value["partitions"], 1);
    let total = &value["timeline"][0];
    let (wall, rest) = (
        total["wall"].as_f64().unwrap(),
        total["unexplained"].as_f64().unwrap(),
    );
    assert!(rest < 0.05 * wall, "{rest} s of {wall} s are unexplained");
    assert!(folder.join("window.circuit").exists());
}

#[test]
fn test_parameters_are_refused_for_production_circuits_unless_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let id = CircuitId::new(ProofKind::Winning, SectorSize::Mib512);
    id.write_test_meta(folder.path()).unwrap();
    let run = |more: &[&str]| {
        let mut words = vec!["prove", "--input", "input.json", "--device", "cpu"];
        words.extend(more);
        cuzk(folder.path(), folder.path(), &words)
    };
    let line = "sector fabricate --kind winning --sector-size 512MiB --out input.json --json";
    let words: Vec<_> = line.split_whitespace().collect();
    cuzk(folder.path(), folder.path(), &words).json();
    run(&[]).fails_with(&["made for tests", "--allow-test-parameters"]);
    // Then the parameters themselves are missing.
    run(&["--allow-test-parameters"]).fails_with(&[".params"]);
}
