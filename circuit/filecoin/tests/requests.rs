//! Requests about really sealed sectors: circuits, public inputs, counts and formats.

mod common;

use common::fixture;
use cuzk_circuit::Shape;
use cuzk_filecoin::seal::{SealOptions, seal, window_of};
use cuzk_filecoin::{
    C1Origin, CircuitId, ProofKind, ProofRequest, Request, SealVariant, SectorSize,
};

/// Constraints, inputs (with the one), aux, and the dense variables of a and b, of the 2 KiB circuits.
fn known_counts(kind: ProofKind) -> [usize; 5] {
    match kind {
        ProofKind::Porep => [2_687_921, 40, 2_685_673, 2_674_948, 685_522],
        ProofKind::Winning => [90_750, 133, 91_674, 69_433, 66_793],
        ProofKind::Window => [21_866, 23, 22_128, 16_793, 16_029],
        ProofKind::Update => [1_705_039, 5, 1_703_569, 1_697_194, 444_404],
    }
}

fn counts(shape: &Shape) -> [usize; 5] {
    [
        shape.constraints,
        shape.inputs,
        shape.aux,
        shape.inputs + shape.a_aux,
        shape.b_inputs + shape.b_aux,
    ]
}

#[test]
fn a_sealed_sector_satisfies_the_circuit_of_every_kind_with_the_official_public_inputs() {
    for kind in ProofKind::ALL {
        let request = Request::parse(&fixture().request(kind)).unwrap();
        assert_eq!(request.circuit_id(), CircuitId::new(kind, SectorSize::Kib2));
        assert_eq!(request.partitions(), 1);
        assert!(request.verify_vanilla().unwrap(), "{kind}");
        let circuit = request.circuit(0).unwrap();
        circuit.clone().check().unwrap();
        let witness = circuit.witness().unwrap();
        assert_eq!(
            witness.inputs[1..],
            request.public_inputs(0).unwrap(),
            "{kind}"
        );
    }
}

#[test]
fn blank_circuits_have_the_known_counts() {
    for kind in ProofKind::ALL {
        let id = CircuitId::new(kind, SectorSize::Kib2);
        let shape = id.blank_circuit().unwrap().shape().unwrap();
        assert_eq!(counts(&shape), known_counts(kind), "{id}");
    }
    let id = CircuitId::new(ProofKind::Winning, SectorSize::Gib32);
    let shape = id.blank_circuit().unwrap().shape().unwrap();
    assert_eq!(
        counts(&shape),
        [370_590, 133, 375_210, 284_329, 272_185],
        "{id}"
    );
}

#[test]
fn a_c1_file_is_read_bare_and_wrapped_and_as_storage_proofs_writes_it() {
    let sector = &fixture().sector;
    let wrapped = sector.c1_wrapped().unwrap();
    let origin = C1Origin {
        miner_id: 1000,
        sector_number: 1,
    };
    let inputs = Request::from_c1(sector.c1())
        .unwrap()
        .public_inputs(0)
        .unwrap();
    for request in [
        Request::from_c1(&wrapped),
        Request::from_c1_of(&wrapped, origin),
        Request::from_c1_of(sector.c1(), origin),
        Request::from_file_bytes(&wrapped),
        Request::from_file_bytes(sector.c1()),
    ] {
        let request = request.unwrap();
        assert_eq!(request.kind(), ProofKind::Porep);
        assert_eq!(request.public_inputs(0).unwrap(), inputs);
    }
    let official: filecoin_proofs_api::seal::SealCommitPhase1Output =
        serde_json::from_slice(sector.c1()).unwrap();
    assert_eq!(official.comm_r, sector.comm_r());
    assert_eq!(serde_json::to_vec(&official).unwrap(), sector.c1());
}

#[test]
fn requests_of_every_kind_survive_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let files = fixture().sector.write_requests(dir.path()).unwrap();
    assert_eq!(files.len(), 4);
    for (kind, path) in files {
        let read = ProofRequest::from_json(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(read, fixture().request(kind));
        assert_eq!(Request::open(&path).unwrap().kind(), kind);
    }
    assert!(Request::open(&dir.path().join("c1.json")).is_ok());
}

#[test]
fn old_synthetic_and_non_interactive_seals_satisfy_the_same_circuit() {
    let dir = tempfile::tempdir().unwrap();
    for (variant, partitions) in [
        (SealVariant::V1, 1),
        (SealVariant::Synthetic, 1),
        (SealVariant::NonInteractive, 13),
    ] {
        let mut options = SealOptions::new(SectorSize::Kib2);
        options.variant = variant;
        let sector = seal(&dir.path().join(format!("{variant:?}")), options).unwrap();
        let request = Request::parse(&sector.request(ProofKind::Porep).unwrap()).unwrap();
        assert_eq!(request.partitions(), partitions, "{variant:?}");
        assert!(request.verify_vanilla().unwrap(), "{variant:?}");
        let last = partitions - 1;
        let witness = request.circuit(last).unwrap().witness().unwrap();
        assert_eq!(
            witness.inputs[1..],
            request.public_inputs(last).unwrap(),
            "{variant:?}"
        );
    }
}

#[test]
fn a_window_partition_takes_several_sectors_in_any_order_at_any_place_in_the_deadline() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = SealOptions::new(SectorSize::Kib2);
    options.sector_number = 7;
    let other = seal(&dir.path().join("7"), options).unwrap();
    let mut wire = window_of(&[&fixture().sector, &other], 3).unwrap();
    let request = Request::parse(&wire).unwrap();
    assert!(request.verify_vanilla().unwrap());
    let circuit = request.circuit(0).unwrap();
    circuit.clone().check().unwrap();
    let inputs = request.public_inputs(0).unwrap();
    assert_eq!(circuit.witness().unwrap().inputs[1..], inputs);
    wire.vanilla_proofs.reverse();
    assert_eq!(
        Request::parse(&wire).unwrap().public_inputs(0).unwrap(),
        inputs
    );
}

#[test]
fn beacon_randomness_is_accepted_with_and_without_its_two_highest_bits() {
    let mut wire = fixture().request(ProofKind::Winning);
    wire.randomness[31] |= 0xc0;
    let request = Request::parse(&wire).unwrap();
    assert!(request.verify_vanilla().unwrap());
}

#[test]
fn an_update_takes_commitments_as_cids_and_its_size_from_the_proof_type() {
    let mut wire = fixture().request(ProofKind::Update);
    let sealed = [0x01, 0x82, 0xe2, 0x03, 0x81, 0xe8, 0x02, 0x20];
    let unsealed = [0x01, 0x81, 0xe2, 0x03, 0x92, 0x20, 0x20];
    wire.comm_r_old = [&sealed[..], &wire.comm_r_old].concat();
    wire.comm_r_new = [&sealed[..], &wire.comm_r_new].concat();
    wire.comm_d_new = [&unsealed[..], &wire.comm_d_new].concat();
    wire.sector_size = 0;
    assert!(Request::parse(&wire).is_ok());
}

#[test]
fn proofs_are_joined_in_partition_order_and_counted() {
    let request = Request::from_c1(fixture().sector.c1()).unwrap();
    assert_eq!(request.proof_len(), 192);
    assert_eq!(request.assemble(&[[7; 192]]).unwrap(), [7; 192]);
    assert!(request.assemble(&[]).is_err());
    assert!(
        request
            .verify(&[0; 191])
            .unwrap_err()
            .to_string()
            .contains("expected 192")
    );
    assert!(request.circuit(1).is_err());
    assert!(request.public_inputs(usize::MAX).is_err());
    let expected = CircuitId::new(ProofKind::Porep, SectorSize::Mib8);
    let error = request.expect_circuit(expected).unwrap_err().to_string();
    assert!(
        error.contains("porep-2k") && error.contains("porep-8m"),
        "{error}"
    );
}
