//! Hostile and mistaken requests: each is refused with an error that names what is wrong.

mod common;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::fixture;
use cuzk_filecoin::{C1Origin, ProofKind, ProofRequest, Request, SectorSize};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore as _, SeedableRng as _};
use serde_json::{Value, json};

/// The sealed sector's C1 as a document to spoil.
fn c1() -> Value {
    serde_json::from_slice(fixture().sector.c1()).unwrap()
}

/// Asserts that the error of `result` contains all `words`.
fn refused(what: &str, result: Result<Request, cuzk_filecoin::RequestError>, words: &[&str]) {
    let error = match result {
        Ok(_) => panic!("{what}: accepted"),
        Err(error) => error.to_string(),
    };
    for word in words {
        assert!(
            error.contains(word),
            "{what}: {error:?} does not name {word:?}"
        );
    }
}

/// Spoils a C1 at a JSON pointer and asserts the refusal.
fn spoiled(pointer: &str, value: Value, words: &[&str]) {
    let mut document = c1();
    *document
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("no {pointer}")) = value;
    let bytes = serde_json::to_vec(&document).unwrap();
    refused(pointer, Request::from_c1(&bytes), words);
}

const PROOFS: &str = "/vanilla_proofs/StackedDrg2KiBV1";

/// A value inside the first challenge.
fn first(path: &str) -> String {
    format!("{PROOFS}/0/0/{path}")
}

#[test]
fn what_is_not_json_or_not_base64_is_refused_with_its_place() {
    for bytes in [
        &b""[..],
        b"hello",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"3",
        b"{}",
    ] {
        refused("not a C1", Request::from_c1(bytes), &["line", "column"]);
        refused(
            "not a file",
            Request::from_file_bytes(bytes),
            &["line", "column"],
        );
    }
    let wrap = |inner: &str, size: u64| {
        let wrapper = json!({"SectorNum": 1, "Phase1Out": inner, "SectorSize": size});
        Request::from_c1(&serde_json::to_vec(&wrapper).unwrap())
    };
    refused(
        "base64",
        wrap("a*b=", 2048),
        &["Phase1Out", "base64", "offset 1"],
    );
    refused(
        "inner",
        wrap(&STANDARD.encode("nothing"), 2048),
        &["Phase1Out", "JSON", "line 1"],
    );
    let inner = STANDARD.encode(fixture().sector.c1());
    refused(
        "odd size",
        wrap(&inner, 3000),
        &["SectorSize", "3000", "2KiB"],
    );
    refused("other size", wrap(&inner, 8 << 20), &["2KiB", "8MiB"]);
    let mut trailing = fixture().sector.c1().to_vec();
    trailing.extend_from_slice(b" x");
    refused("trailing", Request::from_c1(&trailing), &["trailing"]);
}

#[test]
fn a_c1_of_another_size_type_miner_or_sector_is_refused() {
    spoiled(
        "/registered_proof",
        json!("StackedDrg8MiBV1_1"),
        &["vanilla_proofs", "8MiB", "2KiB"],
    );
    spoiled(
        "/registered_proof",
        json!("StackedDrg1KiBV1"),
        &["unknown variant"],
    );
    let ni = json!("StackedDrg2KiBV1_2_Feat_NonInteractivePoRep");
    spoiled("/registered_proof", ni, &["partitions", "1", "13"]);
    let sector = &fixture().sector;
    let of = |miner_id, sector_number| {
        let origin = C1Origin {
            miner_id,
            sector_number,
        };
        Request::from_c1_of(&sector.c1_wrapped().unwrap(), origin)
    };
    refused("miner", of(1001, 1), &["replica_id", "miner 1001"]);
    refused(
        "sector",
        of(1000, 2),
        &["SectorNum", "found 1", "expected 2"],
    );
    let mut wire = fixture().request(ProofKind::Porep);
    wire.registered_proof = 6;
    refused(
        "type and size",
        Request::parse(&wire),
        &["registered_proof", "8MiB", "2KiB"],
    );
    wire.registered_proof = 10;
    refused(
        "type and file",
        Request::parse(&wire),
        &["SyntheticPoRep", "StackedDrg2KiBV1_1"],
    );
    wire.registered_proof = 20;
    refused(
        "no type",
        Request::parse(&wire),
        &["registered_proof", "20", "0 to 19"],
    );
    wire.registered_proof = 0;
    wire.sector_size = 1 << 35;
    refused("size", Request::parse(&wire), &["32GiB", "2KiB"]);
    refused(
        "nothing",
        Request::parse(&ProofRequest::new(ProofKind::Porep)),
        &["vanilla_proof"],
    );
}

#[test]
fn wrong_counts_of_partitions_challenges_layers_and_parents_are_refused() {
    spoiled(PROOFS, json!([]), &["partitions", "0", "expected 1"]);
    let one = c1().pointer(PROOFS).unwrap()[0].clone();
    spoiled(
        PROOFS,
        json!([one, one]),
        &["partitions", "2", "expected 1"],
    );
    spoiled(
        &format!("{PROOFS}/0"),
        json!([]),
        &["challenges", "0", "expected 2"],
    );
    spoiled(
        &first("labeling_proofs"),
        json!([]),
        &["[0][0].labeling_proofs", "expected 2"],
    );
    spoiled(
        &first("encoding_proof/parents"),
        json!([]),
        &["encoding_proof.parents", "37"],
    );
    spoiled(
        &first("replica_column_proofs/drg_parents"),
        json!([]),
        &["drg_parents", "expected 6"],
    );
    spoiled(
        &first("replica_column_proofs/exp_parents"),
        json!([]),
        &["exp_parents", "expected 8"],
    );
    spoiled(
        &first("replica_column_proofs/c_x/column/rows"),
        json!([]),
        &["c_x.column.rows", "2"],
    );
}

#[test]
fn malformed_inclusion_proofs_are_refused_before_they_are_used() {
    let path = first("comm_r_last_proof/data/Single/path/path");
    spoiled(
        &path,
        json!([]),
        &["comm_r_last_proof", "path levels", "expected 2"],
    );
    spoiled(
        &format!("{path}/1/hashes"),
        json!([]),
        &["siblings at path level 1", "expected 7"],
    );
    spoiled(
        &format!("{path}/0/index"),
        json!(8),
        &["position at path level 0", "below 8"],
    );
    spoiled(
        &format!("{path}/0/index"),
        json!(u64::MAX),
        &["position", "below 8"],
    );
    spoiled(
        &format!("{path}/0/hashes/3"),
        json!(vec![255; 32]),
        &["sibling", "ffff", "canonical"],
    );
    spoiled(
        &format!("{path}/0/hashes/3"),
        json!(vec![255; 31]),
        &["JSON", "length"],
    );
    spoiled(
        &first("comm_d_proofs/data/Single/leaf"),
        json!(vec![255; 32]),
        &["leaf", "canonical"],
    );
    let row = first("replica_column_proofs/drg_parents/5/column/rows/0");
    spoiled(&row, json!(vec![255; 32]), &["drg_parents[5]", "canonical"]);
}

#[test]
fn a_c1_that_contradicts_itself_is_refused() {
    spoiled("/seed", json!(vec![0; 32]), &["seed", "zero"]);
    spoiled("/seed", json!(vec![1; 32]), &["challenged node"]);
    spoiled("/comm_d", json!(vec![1; 32]), &["data tree root"]);
    spoiled("/comm_d", json!(vec![0; 32]), &["comm_d", "zero"]);
    spoiled("/comm_r", json!(vec![1; 32]), &["comm_r"]);
    spoiled("/comm_r", json!(vec![255; 32]), &["comm_r", "canonical"]);
    spoiled(
        "/replica_id",
        json!(vec![255; 32]),
        &["replica_id", "canonical"],
    );
    spoiled(
        &first("labeling_proofs/0/node"),
        json!(99),
        &["labeling_proofs[0].node", "99"],
    );
    spoiled(
        &first("labeling_proofs/1/layer_index"),
        json!(1),
        &["labeling_proofs[1].layer_index"],
    );
    let root = first("replica_column_proofs/exp_parents/2/inclusion_proof/data/Single/root");
    spoiled(&root, json!(vec![1; 32]), &["column tree root"]);
    let mut short = c1();
    short.as_object_mut().unwrap().remove("ticket");
    refused(
        "ticket",
        Request::from_c1(&serde_json::to_vec(&short).unwrap()),
        &["ticket"],
    );
}

/// Changes a request of one kind and asserts the refusal.
fn changed(kind: ProofKind, change: impl FnOnce(&mut ProofRequest), words: &[&str]) {
    let mut wire = fixture().request(kind);
    change(&mut wire);
    refused(&format!("{kind}"), Request::parse(&wire), words);
}

#[test]
fn wrong_fields_of_space_time_requests_are_refused() {
    for kind in [ProofKind::Winning, ProofKind::Window] {
        changed(
            kind,
            |r| r.randomness = vec![1; 31],
            &["randomness", "31", "32"],
        );
        changed(kind, |r| r.randomness.clear(), &["randomness", "0", "32"]);
        changed(
            kind,
            |r| r.randomness[0] ^= 1,
            &["sector 1", "challenge 0", "randomness"],
        );
        changed(
            kind,
            |r| r.vanilla_proofs.clear(),
            &["vanilla_proofs", "missing"],
        );
        changed(kind, |r| r.sector_size = 0, &["sector_size", "missing"]);
        changed(kind, |r| r.sector_size = 5, &["sector_size", "\"5\""]);
        changed(
            kind,
            |r| r.sector_size = 8 << 20,
            &["inclusion proof 0", "path levels"],
        );
        changed(
            kind,
            |r| r.sector_size = 1 << 35,
            &["inclusion proof 0", "path levels"],
        );
        changed(
            kind,
            |r| r.registered_proof = 99,
            &["registered_proof", "99"],
        );
        changed(
            kind,
            |r| {
                r.vanilla_proofs[0].pop();
            },
            &["vanilla_proofs[0]", "bincode"],
        );
        changed(
            kind,
            |r| r.vanilla_proofs[0].push(0),
            &["trailing", "vanilla_proofs[0]"],
        );
        changed(
            kind,
            |r| r.vanilla_proofs[0].clear(),
            &["vanilla_proofs[0]", "0 bytes"],
        );
    }
    changed(
        ProofKind::Winning,
        |r| r.vanilla_proofs.push(vec![]),
        &["sectors", "2", "expected 1"],
    );
    let again = |r: &mut ProofRequest| r.vanilla_proofs.push(r.vanilla_proofs[0].clone());
    changed(ProofKind::Window, again, &["sector 1 twice"]);
    let many = |r: &mut ProofRequest| r.vanilla_proofs.resize(3, vec![]);
    changed(ProofKind::Window, many, &["sectors", "3", "1 to 2"]);
    let winning = fixture().request(ProofKind::Winning).vanilla_proofs;
    changed(
        ProofKind::Window,
        |r| r.vanilla_proofs = winning,
        &["inclusion proofs", "66", "10"],
    );
    changed(
        ProofKind::Window,
        |r| r.registered_proof = 8,
        &["registered_proof", "32GiB"],
    );
}

#[test]
fn wrong_fields_of_update_requests_are_refused() {
    let kind = ProofKind::Update;
    changed(kind, |r| r.comm_r_old.clear(), &["comm_r_old", "missing"]);
    changed(
        kind,
        |r| {
            r.comm_d_new.pop();
        },
        &["comm_d_new", "31", "32"],
    );
    changed(
        kind,
        |r| r.comm_r_new = vec![0; 32],
        &["comm_r_new", "zero"],
    );
    changed(
        kind,
        |r| r.comm_r_new = vec![255; 32],
        &["comm_r_new", "canonical"],
    );
    changed(
        kind,
        |r| r.comm_r_new[0] ^= 1,
        &["challenge 0", "challenged node"],
    );
    changed(kind, |r| r.comm_r_old[0] ^= 1, &["comm_r_old"]);
    changed(kind, |r| r.comm_d_new[0] ^= 1, &["comm_d_new"]);
    let again = |r: &mut ProofRequest| r.vanilla_proofs.push(r.vanilla_proofs[0].clone());
    changed(kind, again, &["partitions", "2", "expected 1"]);
    changed(
        kind,
        |r| r.vanilla_proofs[0].push(0),
        &["trailing", "PartitionProof"],
    );
    changed(
        kind,
        |r| r.vanilla_proofs[0].truncate(40),
        &["bincode", "40 bytes"],
    );
    changed(kind, |r| r.sector_size = 1 << 29, &["partitions", "16"]);
    // The first list's length: more elements than memory holds.
    let huge = |r: &mut ProofRequest| r.vanilla_proofs[0][32..40].fill(0xff);
    changed(kind, huge, &["vanilla_proofs[0]", "PartitionProof"]);
}

#[test]
fn request_files_with_unknown_fields_names_or_encodings_are_refused() {
    let file = |document: Value| Request::from_file_bytes(&serde_json::to_vec(&document).unwrap());
    refused("kind", file(json!({"kind": "porop"})), &["kind", "porop"]);
    refused("type", file(json!({"kind": 3})), &["line 1"]);
    refused(
        "field",
        file(json!({"kind": "update", "comm_x": ""})),
        &["comm_x"],
    );
    let size = json!({"kind": "window", "sector_size": "32GB"});
    refused("size", file(size), &["sector_size", "32GB"]);
    let proofs = json!({"kind": "window", "vanilla_proofs": ["", "?"]});
    refused("base64", file(proofs), &["vanilla_proofs[1]", "base64"]);
    let missing = std::path::Path::new("no/such/file.json");
    refused("missing", Request::open(missing), &["no/such/file.json"]);
}

#[test]
fn spoiled_bytes_never_panic_and_what_is_accepted_has_a_circuit() {
    let seed = 20_261_130;
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    for kind in ProofKind::ALL {
        let rounds = if kind == ProofKind::Porep { 60 } else { 400 };
        for round in 0..rounds {
            let mut wire = fixture().request(kind);
            if kind == ProofKind::Porep {
                wire.vanilla_proof = fixture().sector.c1().to_vec();
                spoil(&mut wire.vanilla_proof, &mut rng);
            } else {
                spoil(&mut wire.vanilla_proofs[0], &mut rng);
            }
            let outcome = std::panic::catch_unwind(|| {
                let Ok(request) = Request::parse(&wire) else {
                    return;
                };
                request.circuit(0).unwrap();
                request.public_inputs(0).unwrap();
            });
            assert!(outcome.is_ok(), "{kind}, seed {seed}, round {round}");
        }
    }
}

/// Flips a few bits, overwrites a few bytes, or cuts the end off.
fn spoil(bytes: &mut Vec<u8>, rng: &mut ChaCha20Rng) {
    for _ in 0..1 + rng.next_u32() % 3 {
        let at = rng.next_u64() as usize % bytes.len();
        match rng.next_u32() % 8 {
            0..=3 => bytes[at] ^= 1 << (rng.next_u32() % 8),
            4..=6 => bytes[at] = rng.next_u32() as u8,
            _ => bytes.truncate(at.max(1)),
        }
    }
}

#[test]
fn every_size_is_refused_for_a_proof_of_another_size() {
    for kind in [ProofKind::Winning, ProofKind::Window, ProofKind::Update] {
        for size in SectorSize::ALL
            .into_iter()
            .filter(|&size| size != SectorSize::Kib2)
        {
            changed(kind, |r| r.sector_size = size.bytes(), &["expected"]);
        }
    }
}
