//! Requests about a really sealed sector: circuits, public inputs, counts and formats.

mod common;

use common::fixture;
use cuzk_circuit::Shape;
use cuzk_filecoin::seal::{SealOptions, seal, window_of};
use cuzk_filecoin::{
    C1Origin, CircuitId, ProofKind, ProofRequest, Request, RequestError, SealVariant, SectorSize,
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
        assert_eq!(witness.inputs[1..], request.public_inputs(0).unwrap(), "{kind}");
        assert_eq!(counts(&request.circuit(0).unwrap().shape().unwrap()), known_counts(kind));
    }
}

#[test]
fn blank_circuits_have_the_known_counts() {
    for kind in ProofKind::ALL {
        let id = CircuitId::new(kind, SectorSize::Kib2);
        let shape = id.blank_circuit().unwrap().shape().unwrap();
        assert_eq!(counts(&shape), known_counts(kind), "{id}");
    }
}
