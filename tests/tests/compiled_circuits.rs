//! Compiled circuits of every Filecoin proof kind against direct synthesis.

use cuzk_circuit::{CompiledCircuit, check, shape, synthesize, witness};
use cuzk_filecoin::fabricate::{Options, fabricate};
use cuzk_filecoin::{CircuitId, ProofKind, Request, SectorSize};

#[test]
fn compiled_circuits_of_all_kinds_equal_direct_synthesis() {
    for kind in [
        ProofKind::Window,
        ProofKind::Winning,
        ProofKind::Update,
        ProofKind::Porep,
    ] {
        let size = SectorSize::Kib2;
        let id = CircuitId { kind, size };
        let blank = || id.blank_circuit().expect("blank circuit");
        let compiled = CompiledCircuit::record(id.to_string(), blank()).expect("recorded");
        let mut counts = shape(blank()).expect("shape");
        counts.nonzeros[2] = 0;
        assert_eq!(*compiled.shape(), counts, "{id}");
        for seed in [1, 2] {
            let options = Options {
                seed,
                ..Options::default()
            };
            let sector = fabricate(kind, size, &options).expect("sector");
            let request = Request::parse(&sector.into()).expect("request");
            let circuit = request.circuit(0).expect("circuit");
            let values = witness(circuit.clone()).expect("witness");
            let assignment = compiled.assignment(values).expect("assignment");
            let direct = synthesize(circuit.clone()).expect("synthesis");
            assert!(assignment == direct, "{id}, seed {seed}: values differ");
            if kind == ProofKind::Window {
                check(circuit).expect("satisfied");
            }
        }
    }
}
