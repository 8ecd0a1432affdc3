//! Replays the fuzz targets' committed corpus: malformed and valid inputs, none of which may panic.

#[path = "common/replay.rs"]
mod replay;

use std::panic::catch_unwind;
use std::path::Path;

/// Runs every file of one corpus; returns how many there were.
fn each(corpus: &str, run: fn(&[u8])) -> usize {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(corpus);
    let mut count = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let data = std::fs::read(&path).unwrap();
        assert!(catch_unwind(|| run(&data)).is_ok(), "{}", path.display());
        count += 1;
    }
    count
}

#[test]
fn request_files_of_the_corpus_never_panic() {
    assert!(each("file", replay::file) >= 15);
}

#[test]
fn vanilla_proofs_of_the_corpus_never_panic() {
    assert!(each("vanilla", replay::vanilla) >= 15);
}
