//! Compiled circuits against direct synthesis, their files, and the changes they must see.

mod common;

use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
use common::{Oracle, Sha256, circuits};
use cuzk_circuit::testing::{RandomCircuit, RepeatedCircuit};
use cuzk_circuit::{CompiledCircuit, CompiledError, Origin, Scalar, shape, synthesize, witness};
use std::path::PathBuf;

fn assert_equals_direct<C: Circuit<Scalar> + Clone>(name: &str, circuit: C) -> CompiledCircuit {
    let compiled = CompiledCircuit::record(name, circuit.clone()).expect(name);
    let direct = synthesize(circuit.clone()).expect(name);
    let values = witness(circuit.clone()).expect(name);
    let assignment = compiled.assignment(values).expect(name);
    assert!(assignment == direct, "{name}: values or densities differ");
    compiled.replay(circuit.clone()).expect(name);
    let mut expected = shape(circuit.clone()).expect(name);
    let with_c = CompiledCircuit::record_with_c(name, circuit.clone()).expect(name);
    assert_eq!(*with_c.shape(), expected, "{name}: counts with C");
    with_c.replay(circuit.clone()).expect(name);
    let values = witness(circuit).expect(name);
    let assignment = with_c.assignment(values).expect(name);
    assert!(assignment == direct, "{name}: values differ with C");
    expected.nonzeros[2] = 0;
    assert_eq!(*compiled.shape(), expected, "{name}");
    compiled
}

fn repeated(rows: usize, repetitions: usize, namespaces: bool, seed: u64) -> RepeatedCircuit {
    RepeatedCircuit {
        block: RandomCircuit::new(rows, 2, seed),
        repetitions,
        namespaces,
        altered: None,
    }
}

#[test]
fn evaluation_equals_direct_synthesis_for_circuits_of_many_shapes() {
    for (name, circuit) in circuits() {
        assert_equals_direct(&name, circuit);
    }
}

#[test]
fn one_compiled_circuit_serves_every_witness_and_its_buffers_are_reused() {
    let circuit = repeated(300, 6, true, 9);
    let compiled = CompiledCircuit::record("repeated", circuit.clone()).expect("ok");
    let mut arena = cuzk_circuit::Assignment::default();
    for value_seed in 0..5 {
        let mut circuit = circuit.clone();
        circuit.block.value_seed = value_seed;
        circuit.block.bit_share = 0.5;
        cuzk_circuit::witness_into(circuit.clone(), &mut arena.witness).expect("ok");
        compiled.evaluate_into(&mut arena).expect("ok");
        assert!(
            arena == synthesize(circuit).expect("ok"),
            "values {value_seed}"
        );
    }
}

#[test]
fn repeated_blocks_are_stored_once_with_and_without_namespaces() {
    for seed in 0..6 {
        for namespaces in [true, false] {
            let name = format!("seed {seed}, namespaces {namespaces}");
            let circuit = repeated(700, 40, namespaces, seed);
            let compiled = assert_equals_direct(&name, circuit);
            let [a, b, _] = compiled.shape().nonzeros;
            let stored = compiled.size().template_terms as u64;
            assert!(stored * 5 < a + b, "{name}: {:?}", compiled.size());
        }
    }
}

#[test]
fn one_coefficient_changed_in_one_repetition_is_seen() {
    let mut seen = 0;
    for seed in 0..12u64 {
        let plain = repeated(200, 8, seed % 2 == 0, seed);
        let mut altered = plain.clone();
        altered.altered = Some((5, 40 + 17 * seed as usize));
        let compiled = CompiledCircuit::record("plain", plain.clone()).expect("ok");
        let (x, y) = (Oracle::of(plain.clone()), Oracle::of(altered.clone()));
        let differs = |side: &[_; 3], other: &[_; 3]| side[0] != other[0] || side[1] != other[1];
        let Some(row) = (0..x.rows.len()).find(|&k| differs(&x.rows[k], &y.rows[k])) else {
            compiled.replay(altered).expect("nothing was altered");
            continue;
        };
        seen += 1;
        match compiled.replay(altered.clone()) {
            Err(CompiledError::Differs { row: found }) => assert_eq!(found, row, "seed {seed}"),
            other => panic!("seed {seed}: {other:?}"),
        }
        let with_c = CompiledCircuit::record_with_c("plain", plain).expect("ok");
        match with_c.replay(altered.clone()) {
            Err(CompiledError::Differs { row: found }) => assert!(found <= row, "seed {seed}"),
            other => panic!("seed {seed}: {other:?}"),
        }
        let with_change = assert_equals_direct(&format!("altered {seed}"), altered);
        assert_ne!(with_change.digest(), compiled.digest(), "seed {seed}");
    }
    assert!(seen >= 6, "only {seen} alterations took effect");
}

#[test]
fn a_long_sha256_circuit_shares_its_compressions() {
    let compiled = assert_equals_direct("sha256", Sha256(vec![0x5a; 64 * 20]));
    let [a, b, _] = compiled.shape().nonzeros;
    let size = compiled.size();
    println!("{:?}\n{size:?}", compiled.shape());
    assert!(size.template_terms as u64 * 8 < a + b, "{size:?}");
}

#[test]
fn evaluation_does_not_depend_on_the_number_of_threads() {
    let circuit = repeated(900, 70, true, 3);
    let compiled = CompiledCircuit::record("repeated", circuit.clone()).expect("ok");
    let direct = synthesize(circuit.clone()).expect("ok");
    for threads in [1, 3, 8] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let values = witness(circuit.clone()).expect("ok");
        let assignment = pool.expect("pool").install(|| compiled.assignment(values));
        assert!(assignment.expect("ok") == direct, "{threads} threads");
    }
}

#[test]
fn a_witness_of_another_shape_is_refused() {
    let compiled = CompiledCircuit::record("x", RandomCircuit::new(50, 2, 1)).expect("ok");
    for (other, wrong) in [
        (RandomCircuit::new(50, 3, 1), "input"),
        (RandomCircuit::new(60, 2, 1), "auxiliary"),
    ] {
        match compiled.assignment(witness(other).expect("ok")) {
            Err(CompiledError::WrongWitness { kind, .. }) => assert_eq!(kind, wrong),
            other => panic!("{other:?}"),
        }
    }
}

/// Rows with `terms` terms each, all coefficients distinct.
#[derive(Clone)]
struct Coefficients {
    rows: u64,
    terms: u64,
}

impl Circuit<Scalar> for Coefficients {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let variables = (0..self.terms)
            .map(|k| cs.alloc(|| "x", || Ok(Scalar::from(k + 2))))
            .collect::<Result<Vec<_>, _>>()?;
        for row in 0..self.rows {
            let first = row * self.terms + 2;
            cs.enforce(
                || "row",
                |lc| {
                    let terms = variables.iter().zip(first..);
                    terms.fold(lc, |lc, (&x, k)| lc + (Scalar::from(k), x))
                },
                |lc| lc,
                |lc| lc,
            );
        }
        Ok(())
    }
}

#[test]
fn more_coefficients_than_an_id_can_number_are_spread_over_pages() {
    let circuit = Coefficients {
        rows: 300,
        terms: 700,
    };
    let compiled = assert_equals_direct("many coefficients", circuit);
    assert!(compiled.size().coefficients > 200_000);
    assert!(compiled.templates().iter().any(|t| t.page > 0));
}

#[test]
fn a_row_with_more_coefficients_than_a_page_is_a_typed_error() {
    let circuit = Coefficients {
        rows: 1,
        terms: 66_000,
    };
    assert!(matches!(
        CompiledCircuit::record("too wide", circuit),
        Err(CompiledError::TooManyCoefficients { limit: 65_536 })
    ));
}

fn saved() -> (tempfile::TempDir, PathBuf, CompiledCircuit) {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("random.circuit");
    let compiled = CompiledCircuit::record("random", repeated(150, 4, true, 2)).expect("ok");
    compiled.save(&path).expect("saved");
    (folder, path, compiled)
}

#[test]
fn a_saved_circuit_opens_and_evaluates_as_before() {
    let (folder, path, compiled) = saved();
    let opened = CompiledCircuit::open(&path, "random").expect("opened");
    assert_eq!(opened.digest(), compiled.digest());
    assert_eq!(opened.shape(), compiled.shape());
    assert_eq!(opened.size(), compiled.size());
    let bytes = std::fs::metadata(&path).expect("metadata").len();
    assert_eq!(bytes, compiled.size().file_bytes);
    let circuit = repeated(150, 4, true, 2);
    let values = witness(circuit.clone()).expect("ok");
    let direct = synthesize(circuit).expect("ok");
    assert!(opened.assignment(values).expect("ok") == direct);
    let entries = std::fs::read_dir(folder.path()).expect("folder").count();
    assert_eq!(entries, 1, "no temporary file is left");
}

#[test]
fn a_missing_or_unfit_file_is_replaced_by_a_new_recording() {
    let (_folder, path, compiled) = saved();
    let open = |identity: &str| {
        let circuit = repeated(150, 4, true, 2);
        let (opened, origin) =
            CompiledCircuit::open_or_record(&path, identity, circuit).expect("compiled");
        assert_eq!(opened.digest(), compiled.digest());
        origin
    };
    assert!(matches!(open("random"), Origin::Opened));
    for identity in ["other", "random"] {
        match open(identity) {
            Origin::Recorded { reason, saved } => {
                assert!(matches!(reason, CompiledError::WrongCircuit { .. }));
                saved.expect("saved");
            }
            Origin::Opened => panic!("{identity} is not in the file"),
        }
        assert!(matches!(open(identity), Origin::Opened));
    }
    std::fs::write(&path, [7; 1000]).expect("written");
    assert!(matches!(open("random"), Origin::Recorded { .. }));
    assert!(matches!(open("random"), Origin::Opened));
}

#[test]
fn a_circuit_with_c_is_saved_whole_and_replaces_a_file_without() {
    let (_folder, path, compiled) = saved();
    assert!(!compiled.has_c() && compiled.c_ends().is_empty());
    let open = || {
        let circuit = repeated(150, 4, true, 2);
        CompiledCircuit::open_or_record_with_c(&path, "random", circuit).expect("compiled")
    };
    let (recorded, origin) = open();
    match origin {
        Origin::Recorded { reason, .. } => {
            assert!(matches!(reason, CompiledError::WithoutC { .. }), "{reason}");
        }
        Origin::Opened => panic!("the file has no C"),
    }
    let (opened, origin) = open();
    assert!(matches!(origin, Origin::Opened) && opened.has_c());
    assert_eq!(opened.digest(), recorded.digest());
    assert_eq!(opened.shape(), recorded.shape());
    assert_eq!(opened.c_ends(), recorded.c_ends());
    assert_eq!(opened.c_terms().variables, recorded.c_terms().variables);
    opened.replay(repeated(150, 4, true, 2)).expect("the same");
}

#[test]
fn a_file_of_another_circuit_is_refused_by_its_identity() {
    let (_folder, path, _) = saved();
    match CompiledCircuit::open(&path, "other") {
        Err(CompiledError::WrongCircuit {
            expected, found, ..
        }) => assert_eq!((expected.as_str(), found.as_str()), ("other", "random")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn damaged_files_are_refused_with_the_field_and_offset() {
    let (_folder, path, compiled) = saved();
    let good = std::fs::read(&path).expect("bytes");
    let fields = [
        (0, "magic"),
        (8, "version"),
        (17, "checksum"),
        (60, "checksum"),
        (190, "checksum"),
        (220, "checksum"),
        (250, "checksum"),
        (330, "digest"),
        (good.len() / 2, "digest"),
    ];
    for (offset, expected) in fields {
        let mut bad = good.clone();
        bad[offset] ^= 0x10;
        std::fs::write(&path, &bad).expect("written");
        match CompiledCircuit::open(&path, "random") {
            Err(CompiledError::Format { field, .. }) => assert_eq!(field, expected, "{offset}"),
            other => panic!("offset {offset}: {other:?}"),
        }
    }
    for len in [0, 7, 100, 247, 256, good.len() / 2, good.len() - 64] {
        std::fs::write(&path, &good[..len]).expect("written");
        assert!(
            CompiledCircuit::open(&path, "random").is_err(),
            "{len} bytes"
        );
    }
    std::fs::remove_file(&path).expect("removed");
    let missing = CompiledCircuit::open(&path, "random");
    assert!(matches!(missing, Err(CompiledError::Io { .. })));
    let nowhere = path.join("nowhere");
    assert!(matches!(
        compiled.save(&nowhere),
        Err(CompiledError::Io { .. })
    ));
}
