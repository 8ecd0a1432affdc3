//! Proofs of Filecoin's smaller circuits, byte for byte bellperson's. The example `whole_proof` does the same for
//! the two circuits that take minutes.

use cuzk_filecoin::seal::{SealOptions, seal};
use cuzk_filecoin::{CircuitId, ProofKind, Request, SectorSize};
use cuzk_prover::setup::{ToxicWaste, generate_file};
use cuzk_tests::prove_both;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

#[test]
fn proofs_of_space_time_are_bellpersons_byte_for_byte() {
    let folder = tempfile::tempdir().expect("folder");
    let options = SealOptions::new(SectorSize::Kib2);
    let sealed = seal(&folder.path().join("sector"), options).expect("sealed");
    for kind in [ProofKind::Winning, ProofKind::Window] {
        let id = CircuitId::new(kind, SectorSize::Kib2);
        let path = id.params_path(folder.path(), "params").expect("path");
        let waste = ToxicWaste::random(ChaCha20Rng::seed_from_u64(5));
        let blank = id.blank_circuit().expect("blank circuit");
        generate_file(blank, &waste, &path, &mut |_| ()).expect("parameters");
        let request = sealed.request(kind).expect("request");
        let both = prove_both(&Request::parse(&request).expect("parsed"), &path).expect("proofs");
        assert!(both.ours == both.peers, "{id}: the proofs differ");
    }
}
