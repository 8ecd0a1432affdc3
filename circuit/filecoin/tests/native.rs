//! Native witness generators against synthesis of the same circuits, bit for bit.

mod common;

use common::fixture;
use cuzk_circuit::{Assignment, Witness};
use cuzk_filecoin::fabricate::{Options, fabricate};
use cuzk_filecoin::seal::{SealOptions, seal, window_of};
use cuzk_filecoin::{CircuitId, ProofKind, ProofRequest, Request, SectorSize, WitnessPath};

/// Compares the native witness of a partition with direct synthesis; returns the native one.
fn compare(request: &Request, k: usize) -> Witness {
    let mut native = Witness::default();
    let path = request.witness_into(k, &mut native).unwrap();
    assert_eq!(path, WitnessPath::Native);
    let mut direct = Assignment::default();
    request
        .circuit(k)
        .unwrap()
        .assignment_into(&mut direct)
        .unwrap();
    let expected = &direct.witness;
    let context = format!("{}, partition {k}", request.circuit_id());
    assert_eq!(native.inputs, expected.inputs, "{context}");
    assert_eq!(native.aux.len(), expected.aux.len(), "{context}");
    let differ = (0..native.aux.len()).find(|&i| native.aux.get(i) != expected.aux.get(i));
    assert_eq!(
        differ, None,
        "{context}: first private variable that differs"
    );
    assert!(
        native == *expected,
        "{context}: the same values in another form"
    );
    native
}

fn fabricated(kind: ProofKind, size: SectorSize) -> Request {
    let made = fabricate(kind, size, &Options::default()).unwrap();
    Request::parse(&ProofRequest::from(made)).unwrap()
}

#[test]
fn native_witnesses_of_a_sealed_sector_equal_synthesis_for_every_kind() {
    for kind in ProofKind::ALL {
        let request = Request::parse(&fixture().request(kind)).unwrap();
        let witness = compare(&request, 0);
        assert_eq!(witness.inputs[1..], request.public_inputs(0).unwrap());
    }
}

#[test]
fn native_witnesses_of_fabricated_sectors_equal_synthesis_for_every_kind() {
    for kind in ProofKind::ALL {
        compare(&fabricated(kind, SectorSize::Kib2), 0);
    }
}

#[test]
fn native_witnesses_equal_synthesis_in_trees_of_trees() {
    compare(&fabricated(ProofKind::Winning, SectorSize::Gib32), 0);
    compare(&fabricated(ProofKind::Winning, SectorSize::Gib64), 0);
}

#[test]
fn a_window_of_two_sectors_fills_both_slots() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = SealOptions::new(SectorSize::Kib2);
    options.sector_number = 7;
    let other = seal(&dir.path().join("7"), options).unwrap();
    let wire = window_of(&[&fixture().sector, &other], 0).unwrap();
    compare(&Request::parse(&wire).unwrap(), 0);
}

#[test]
fn a_witness_does_not_depend_on_the_number_of_threads_or_on_what_the_memory_held() {
    let request = Request::parse(&fixture().request(ProofKind::Update)).unwrap();
    let mut first = Witness::default();
    request.witness_into(0, &mut first).unwrap();
    let mut again = first.clone();
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let result = pool
            .unwrap()
            .install(|| request.witness_into(0, &mut again));
        assert_eq!(result.unwrap(), WitnessPath::Native);
        assert!(again == first, "{threads} threads");
    }
}

#[test]
fn a_partition_that_does_not_exist_leaves_the_memory_empty_or_untouched() {
    let request = Request::parse(&fixture().request(ProofKind::Winning)).unwrap();
    let mut arena = Witness::default();
    assert!(request.witness_into(1, &mut arena).is_err());
    assert_eq!(arena, Witness::default());
}

/// Larger sectors, by the names in `CUZK_CIRCUITS` (default: all kinds at 8 MiB).
#[test]
#[ignore = "takes minutes and, at 32 GiB, 16 GiB of memory"]
fn native_witnesses_equal_synthesis_at_larger_sizes() {
    let names = std::env::var("CUZK_CIRCUITS");
    let names = names.unwrap_or_else(|_| "porep-8m,winning-8m,wpost-8m,snap-8m".to_owned());
    for name in names.split(',') {
        let id: CircuitId = name.parse().unwrap();
        let request = fabricated(id.kind, id.size);
        compare(&request, request.partitions() - 1);
    }
}
