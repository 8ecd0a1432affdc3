//! Replays the fuzz corpus and makes its seeds again.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use cuzk_circuit::testing::RandomCircuit;
use cuzk_prover::create_proof;

use crate::support::{ours, reference_bytes, reference_params};

#[path = "../../fuzz/checks.rs"]
mod checks;

/// Bytes of the key's fixed points.
const FIXED: usize = 864;

/// The seeds of one target by name.
type Seeds = BTreeMap<&'static str, Vec<u8>>;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target)
}

/// Every file of a target's corpus.
fn files(target: &str) -> Vec<(String, Vec<u8>)> {
    fs::read_dir(corpus(target))
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (
                entry.file_name().into_string().unwrap(),
                fs::read(entry.path()).unwrap(),
            )
        })
        .collect()
}

/// Applies a change to a copy.
fn changed(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    change(&mut bytes);
    bytes
}

fn circuit() -> RandomCircuit {
    RandomCircuit::new(3, 1, 77)
}

fn params_seeds() -> Seeds {
    let valid = reference_bytes(&reference_params(&circuit()));
    let count = |at: usize, count: u32| {
        changed(&valid, |file| {
            file[at..at + 4].copy_from_slice(&count.to_be_bytes())
        })
    };
    let h = FIXED + 4 + 2 * 96;
    BTreeMap::from([
        ("empty", Vec::new()),
        ("key-alone", valid[..h].to_vec()),
        ("cut-in-the-key", valid[..500].to_vec()),
        ("cut-in-a-count", valid[..h + 2].to_vec()),
        ("cut-in-a-point", valid[..valid.len() - 1].to_vec()),
        ("one-byte-more", changed(&valid, |file| file.push(0))),
        ("ic-count-0", count(FIXED, 0)),
        ("ic-count-max", count(FIXED, u32::MAX)),
        ("h-count-max", count(h, u32::MAX)),
        (
            "h-count-one-less",
            count(
                h,
                u32::from_be_bytes(valid[h..h + 4].try_into().unwrap()) - 1,
            ),
        ),
        (
            "flipped-coordinate",
            changed(&valid, |file| file[h + 50] ^= 4),
        ),
        ("compressed-flag", changed(&valid, |file| file[0] |= 0x80)),
        (
            "infinity",
            changed(&valid, |file| {
                file[h + 4..h + 100].fill(0);
                file[h + 4] = 0x40;
            }),
        ),
        (
            "above-the-modulus",
            changed(&valid, |file| file[h + 4..h + 52].fill(0x1f)),
        ),
        ("valid", valid),
    ])
}

fn key_seeds() -> Seeds {
    let valid = reference_bytes(&reference_params(&circuit()))[..FIXED + 4 + 2 * 96].to_vec();
    BTreeMap::from([
        ("empty", Vec::new()),
        ("fixed-points-alone", valid[..FIXED].to_vec()),
        (
            "no-inputs",
            changed(&valid[..FIXED], |key| key.extend([0; 4])),
        ),
        (
            "count-max",
            changed(&valid, |key| key[FIXED..FIXED + 4].fill(0xff)),
        ),
        ("one-byte-more", changed(&valid, |key| key.push(7))),
        ("flipped-gamma", changed(&valid, |key| key[400] ^= 1)),
        ("sign-flag", changed(&valid, |key| key[96] |= 0x20)),
        ("valid", valid),
    ])
}

fn proof_seeds() -> Seeds {
    let params = ours(&reference_params(&circuit()));
    let valid = create_proof(circuit(), &params, 5.into(), 6.into())
        .unwrap()
        .to_bytes()
        .to_vec();
    let infinity = |at: usize, size: usize| {
        changed(&valid, |proof| {
            proof[at..at + size].fill(0);
            proof[at] = 0xc0;
        })
    };
    BTreeMap::from([
        ("empty", Vec::new()),
        ("one-byte-less", valid[..191].to_vec()),
        ("one-byte-more", changed(&valid, |proof| proof.push(0))),
        ("infinite-a", infinity(0, 48)),
        ("infinite-b", infinity(48, 96)),
        ("infinite-c", infinity(144, 48)),
        (
            "uncompressed-flag",
            changed(&valid, |proof| proof[0] &= 0x7f),
        ),
        (
            "above-the-modulus",
            changed(&valid, |proof| proof[144..].fill(0xbf)),
        ),
        ("all-ones", vec![0xff; 192]),
        (
            "valid-negative-a",
            changed(&valid, |proof| proof[0] ^= 0x20),
        ),
        ("valid", valid),
    ])
}

fn assert_seeds_are_committed(target: &str, seeds: &Seeds) {
    let folder = corpus(target);
    if std::env::var_os("CUZK_WRITE_CORPUS").is_some() {
        fs::create_dir_all(&folder).unwrap();
        for (name, bytes) in seeds {
            fs::write(folder.join(name), bytes).unwrap();
        }
    }
    for (name, bytes) in seeds {
        assert_eq!(
            &fs::read(folder.join(name)).unwrap(),
            bytes,
            "{target}/{name}"
        );
    }
}

fn assert_judged_by_name(target: &str, accepts: fn(&[u8]) -> bool) {
    let files = files(target);
    assert!(!files.is_empty());
    for (name, bytes) in files {
        assert_eq!(
            accepts(&bytes),
            name.starts_with("valid"),
            "{target}/{name}"
        );
    }
}

#[test]
fn the_params_corpus_is_judged_by_its_names() {
    assert_seeds_are_committed("params", &params_seeds());
    assert_judged_by_name("params", checks::params);
}

#[test]
fn the_key_corpus_is_judged_by_its_names() {
    assert_seeds_are_committed("verifying_key", &key_seeds());
    assert_judged_by_name("verifying_key", checks::verifying_key);
}

#[test]
fn the_proof_corpus_is_judged_by_its_names() {
    assert_seeds_are_committed("proof", &proof_seeds());
    assert_judged_by_name("proof", checks::proof);
}
