//! The official verifiers' verdicts on window proofs, with parameters in a folder of the test's own.

mod common;

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;

use bellperson::groth16::{Parameters, create_random_proof, generate_random_parameters};
use blstrs::Bls12;
use common::fixture;
use cuzk_filecoin::{
    CircuitId, Circuits, FilecoinCircuit, ProofKind, ProofRequest, Request, SectorSize, params_dir,
};
use filecoin_proofs::constants::SectorShapeBase;
use filecoin_proofs::{PoStConfig, PoStType, PrivateReplicaInfo, generate_single_vanilla_proof};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;
use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_post::fallback::{FallbackPoStCircuit, PublicParams, generate_leaf_challenge};

const VARIABLE: &str = "FIL_PROOFS_PARAMETER_CACHE";
const WINDOW: CircuitId = CircuitId::new(ProofKind::Window, SectorSize::Kib2);

/// storage-proofs reads its settings once a process, so the test runs itself in a process of its own
/// that has them from the start.
#[test]
fn window_proofs_are_accepted_by_the_official_verifier_and_changed_ones_are_not() {
    if std::env::var_os("CUZK_VERIFY_TEST").is_some() {
        return verify_window_proofs();
    }
    let dir = tempfile::tempdir().unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .arg("window_proofs_are_accepted_by_the_official_verifier_and_changed_ones_are_not")
        .env("CUZK_VERIFY_TEST", "1")
        .env(VARIABLE, dir.path())
        .status()
        .unwrap();
    assert!(status.success());
}

fn verify_window_proofs() {
    let dir = params_dir().unwrap();
    assert_eq!(dir, Path::new(&std::env::var_os(VARIABLE).unwrap()));
    let request = Request::parse(&fixture().request(ProofKind::Window)).unwrap();
    let error = request.verify(&[1; 192]).unwrap_err().to_string();
    assert!(
        error.contains(&WINDOW.params_file_stem().unwrap()[4..]),
        "{error}"
    );

    let params = write_params(&dir);
    check(&request, &params);
    // The rule of the first networks depends on the partition, which `verify_window_post` is not told.
    let old = Request::parse(&old_rule_request()).unwrap();
    assert!(old.verify_vanilla().unwrap());
    check(&old, &params);
}

/// Proves a request and asserts the verdicts on the proof and on spoiled copies of it.
fn check(request: &Request, params: &Parameters<Bls12>) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let circuit = window_circuit(request.circuit(0).unwrap());
    let proof = create_random_proof(circuit, params, &mut rng).unwrap();
    let mut bytes = [0; 192];
    proof.write(&mut bytes[..]).unwrap();
    let bytes = request.assemble(&[bytes]).unwrap();
    assert!(request.verify(&bytes).unwrap());
    for at in [0, 47, 48, 100, 150, 191] {
        let mut spoiled = bytes.clone();
        spoiled[at] ^= 1;
        assert!(!request.verify(&spoiled).unwrap_or(false), "byte {at}");
    }
}

/// Only this circuit is compiled for bellperson.
fn window_circuit(circuit: FilecoinCircuit) -> FallbackPoStCircuit<SectorShapeBase> {
    match circuit {
        FilecoinCircuit::Base(Circuits::Post(circuit)) => circuit,
        _ => panic!("not a 2 KiB space-time circuit"),
    }
}

/// Generates parameters and puts all three files where the verifiers look for them.
fn write_params(dir: &Path) -> Parameters<Bls12> {
    let mut rng = ChaCha20Rng::seed_from_u64(0);
    let blank = window_circuit(WINDOW.blank_circuit().unwrap());
    let params: Parameters<Bls12> = generate_random_parameters(blank, &mut rng).unwrap();
    let create = |extension| {
        let path = WINDOW.params_path(dir, extension).unwrap();
        BufWriter::new(File::create(path).unwrap())
    };
    params.vk.write(create("vk")).unwrap();
    params.write(create("params")).unwrap();
    WINDOW.write_meta(dir).unwrap();
    params
}

/// The sealed sector as the first of partition 1 under the first challenge rule.
fn old_rule_request() -> ProofRequest {
    let sector = &fixture().sector;
    let config = PoStConfig {
        sector_size: 2048.into(),
        challenge_count: 10,
        sector_count: 2,
        typ: PoStType::Window,
        priority: false,
        api_version: ApiVersion::V1_0_0,
    };
    let params = PublicParams {
        sector_size: 2048,
        challenge_count: 10,
        sector_count: 2,
        api_version: config.api_version,
    };
    let randomness = [5; 32];
    let challenges: Vec<u64> = (0..10)
        .map(|n| {
            let domain = filecoin_proofs::as_safe_commitment(&randomness, "randomness").unwrap();
            generate_leaf_challenge::<filecoin_hashers::poseidon::PoseidonDomain>(
                &params,
                domain,
                1,
                2 * 10 + n,
            )
        })
        .collect();
    let replica = PrivateReplicaInfo::<SectorShapeBase>::new(
        sector.dir().join("sealed"),
        sector.comm_r(),
        sector.dir().join("cache"),
    )
    .unwrap();
    let proof = generate_single_vanilla_proof(&config, 1.into(), &replica, &challenges).unwrap();
    ProofRequest {
        sector_size: 2048,
        randomness: randomness.to_vec(),
        partition_index: 1,
        vanilla_proofs: vec![bincode::serialize(&proof).unwrap()],
        ..ProofRequest::new(ProofKind::Window)
    }
}
