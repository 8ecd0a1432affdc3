//! The daemon under a client that is not ours: Python's grpcio, by generated stubs and by reflection.

#![cfg(feature = "serve")]

mod common;

use common::*;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of the Python client.
fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients")
}

/// What pip says when the registry is out of reach.
const UNREACHABLE: [&str; 6] = [
    "Failed to establish a new connection",
    "NewConnectionError",
    "Temporary failure in name resolution",
    "ProxyError",
    "Connection refused",
    "timed out",
];

/// An environment with the pinned packages, kept under `target/`; none where the registry cannot be reached.
fn python() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-clients");
    let python = folder.join("bin/python");
    let requirements = clients().join("requirements.txt");
    let wanted = std::fs::read_to_string(&requirements).unwrap();
    let installed = folder.join("installed.txt");
    if std::fs::read_to_string(&installed).is_ok_and(|found| found == wanted) {
        return Some(python);
    }
    let made = Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(&folder)
        .output()
        .expect("python3 runs this test's client");
    assert!(made.status.success(), "{}", text(&made));
    let pip = Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--only-binary", ":all:"])
        .args(["--retries", "1", "--disable-pip-version-check", "-r"])
        .arg(&requirements)
        .output()
        .unwrap();
    if !pip.status.success() {
        let said = text(&pip);
        assert!(UNREACHABLE.iter().any(|sign| said.contains(sign)), "{said}");
        println!("skipped: Python's package registry cannot be reached");
        return None;
    }
    std::fs::write(installed, wanted).unwrap();
    Some(python)
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn grpcio_proves_cancels_and_meets_its_deadlines() {
    let Some(python) = python() else {
        return;
    };
    let work = scratch().join("work");
    std::fs::create_dir_all(&work).unwrap();
    for kind in ["porep", "update", "window", "winning"] {
        let made = Command::new(CUZK)
            .args(["sector", "fabricate", "--kind", kind, "--out"])
            .arg(work.join(format!("{kind}.json")))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", text(&made));
    }
    let daemon = Start::new("python").run();
    let ran = Command::new(python)
        .arg(clients().join("client.py"))
        .arg(&daemon.grpc)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("proto"))
        .arg(&work)
        .output()
        .unwrap();
    let said = text(&ran);
    assert!(ran.status.success(), "{said}\n{}", daemon.log());
    assert!(said.contains("all checks passed"), "{said}");
    for kind in ["window", "winning"] {
        let verified = Command::new(CUZK)
            .args(["verify", "--input"])
            .arg(work.join(format!("{kind}.json")))
            .arg("--proof")
            .arg(work.join(format!("{kind}.proof")))
            .env("FIL_PROOFS_PARAMETER_CACHE", params_dir())
            .output()
            .unwrap();
        assert!(verified.status.success(), "{}", text(&verified));
    }
}
