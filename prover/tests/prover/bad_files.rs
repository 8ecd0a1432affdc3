//! Parameter, key and proof files that must be refused, each with what, where and why.

use std::{fs, io};

use cuzk_prover::{
    Params, ParamsError, PointFault, Proof, ProofError, SubgroupCheck, VerifyingKey,
};

use crate::points::outside_of_subgroup;
use crate::support::example;

/// Bytes of the key's fixed points.
const FIXED: usize = 864;

fn open(bytes: &[u8]) -> Result<Params, ParamsError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.params");
    fs::write(&path, bytes).unwrap();
    let opened = Params::open(&path);
    let in_memory = Params::from_bytes("bad.params", bytes, SubgroupCheck::Full);
    assert_eq!(
        opened.is_ok(),
        in_memory.is_ok(),
        "the file and its bytes are judged alike"
    );
    if let Err(error) = &opened {
        assert!(error.to_string().contains("bad.params"), "{error}");
    }
    opened
}

/// The offset of the count of each section, with its name and the bytes of a point.
fn sections() -> Vec<(&'static str, usize, usize)> {
    let counts = example().params.counts();
    let mut at = FIXED;
    [
        ("ic", counts.inputs, 96),
        ("h", counts.h, 96),
        ("l", counts.l, 96),
        ("a", counts.a, 96),
        ("b_g1", counts.b, 96),
        ("b_g2", counts.b, 192),
    ]
    .map(|(name, count, size)| {
        let here = at;
        at += 4 + count * size;
        (name, here, size)
    })
    .to_vec()
}

#[test]
fn an_empty_file_is_refused() {
    assert!(matches!(open(&[]), Err(ParamsError::Empty { .. })));
    assert!(matches!(
        VerifyingKey::from_bytes("k", &[]),
        Err(ParamsError::Empty { .. })
    ));
}

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    let file = &example().file;
    let lengths = (1..file.len())
        .step_by(97)
        .chain([FIXED - 1, FIXED, FIXED + 3, file.len() - 1]);
    for length in lengths {
        match open(&file[..length]) {
            Err(ParamsError::Truncated {
                offset,
                expected,
                found,
                ..
            }) => {
                assert!(found < expected, "{length}");
                assert_eq!(offset + found, length as u64);
            }
            Err(ParamsError::WrongKind { .. }) => assert_eq!(length, sections()[1].1),
            other => panic!("{length}: {other:?}"),
        }
    }
}

#[test]
fn a_file_with_bytes_behind_it_is_refused() {
    let mut file = example().file.clone();
    file.push(0);
    let (found, expected) = (file.len() as u64, file.len() as u64 - 1);
    match open(&file) {
        Err(ParamsError::Oversized {
            expected: e,
            found: f,
            ..
        }) => {
            assert_eq!((e, f), (expected, found));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_changed_count_is_refused_before_any_point_is_read() {
    for (name, at, _) in sections() {
        for count in [0u32, 1, 2, 0x7fff_ffff, u32::MAX] {
            let mut file = example().file.clone();
            if file[at..at + 4] == count.to_be_bytes() {
                continue;
            }
            file[at..at + 4].copy_from_slice(&count.to_be_bytes());
            let refused = open(&file).expect_err(name);
            assert!(
                !matches!(refused, ParamsError::Point { .. }),
                "{name} {count}: {refused}"
            );
        }
    }
}

#[test]
fn counts_that_contradict_each_other_are_refused() {
    // The sizes add up, but h is one point short of a power of two less one.
    let (_, h, size) = sections()[1];
    let mut file = example().file.clone();
    let count = example().params.counts().h as u32 - 1;
    file[h..h + 4].copy_from_slice(&count.to_be_bytes());
    file.drain(h + 4..h + 4 + size);
    match open(&file) {
        Err(ParamsError::Count {
            what: "h",
            offset,
            found,
            ..
        }) => {
            assert_eq!((offset, found), (h as u64, u64::from(count)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_flipped_bit_in_any_point_is_refused_and_the_point_is_named() {
    for (name, at, size) in sections() {
        let first = at + 4;
        for (index, byte, bit) in [(0, 0, 7), (0, 0, 6), (0, 0, 5), (1, 3, 0), (1, size - 1, 4)] {
            let mut file = example().file.clone();
            let offset = first + index * size;
            file[offset + byte] ^= 1 << bit;
            match open(&file) {
                Err(ParamsError::Point {
                    what,
                    index: i,
                    offset: o,
                    found,
                    ..
                }) => {
                    assert_eq!((what, i, o), (name, index, offset as u64));
                    let flags = matches!(found, PointFault::Flags(_) | PointFault::Identity);
                    assert_eq!(flags, byte == 0, "{name}: {found}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_in_the_file_is_refused() {
    let file = &example().file;
    for at in (0..file.len()).step_by(41) {
        let mut flipped = file.clone();
        flipped[at] ^= 1 << (at % 8);
        let refused = Params::from_bytes("flipped", &flipped, SubgroupCheck::KeyOnly);
        assert!(refused.is_err(), "byte {at}");
    }
}

#[test]
fn points_at_infinity_are_refused() {
    for (name, at, size) in sections() {
        let mut file = example().file.clone();
        let point = &mut file[at + 4..at + 4 + size];
        point.fill(0);
        point[0] = 0x40;
        let found = PointFault::Identity;
        assert!(
            matches!(open(&file), Err(ParamsError::Point { what, found: f, .. }) if what == name && f == found)
        );
    }
}

#[test]
fn points_outside_of_the_subgroup_are_refused_unless_only_the_key_is_checked() {
    let outside = outside_of_subgroup();
    for (name, at, _) in sections().into_iter().take(5) {
        let mut file = example().file.clone();
        file[at + 4..at + 100].copy_from_slice(&outside);
        let refused = Params::from_bytes("f", &file, SubgroupCheck::Full);
        assert!(
            matches!(refused, Err(ParamsError::Point { what, found: PointFault::OutsideSubgroup, .. }) if what == name)
        );
        let unchecked = Params::from_bytes("f", &file, SubgroupCheck::KeyOnly);
        assert_eq!(unchecked.is_err(), name == "ic", "{name}");
    }
}

#[test]
fn a_compressed_point_in_an_uncompressed_place_is_refused() {
    let (_, at, _) = sections()[2];
    let mut file = example().file.clone();
    let compressed = example().params.l()[0].to_compressed();
    file[at + 4..at + 52].copy_from_slice(&compressed);
    assert!(matches!(
        open(&file),
        Err(ParamsError::Point {
            what: "l",
            found: PointFault::Flags(_),
            ..
        })
    ));
}

#[test]
fn files_of_another_kind_are_refused() {
    let key = example().params.vk().to_bytes().unwrap();
    assert!(matches!(open(&key), Err(ParamsError::WrongKind { .. })));
    let file = &example().file;
    assert!(matches!(
        VerifyingKey::from_bytes("circuit.params", file),
        Err(ParamsError::WrongKind { .. })
    ));
    assert!(open(&example().proof.to_bytes()).is_err());
    assert!(open(&b"{\"sector_size\":2048}".repeat(60)).is_err());
}

#[test]
fn missing_files_and_folders_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.params");
    for error in [
        Params::open(&missing).err(),
        VerifyingKey::read(&missing).err(),
    ] {
        let error = error.unwrap();
        assert!(
            matches!(&error, ParamsError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
        );
        assert!(error.to_string().contains("missing.params"));
    }
    assert!(matches!(
        Params::open(folder.path()),
        Err(ParamsError::Io { .. })
    ));
    let nowhere = folder.path().join("no/such/folder/p.params");
    assert!(matches!(
        example().params.write(&nowhere),
        Err(ParamsError::Io { .. })
    ));
    assert!(matches!(
        example().proof.write(&nowhere),
        Err(ProofError::Io { .. })
    ));
    assert!(matches!(Proof::read(&missing), Err(ProofError::Io { .. })));
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taken.params");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("inside"), b"x").unwrap();
    assert!(matches!(
        example().params.write(&path),
        Err(ParamsError::Io {
            action: "rename",
            ..
        })
    ));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_full_disk_is_an_error() {
    /// Takes so many bytes and no more.
    struct Full(usize);
    impl io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            Ok(taken)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for room in [0, 500, 5000] {
        let error = example().params.write_to(&mut Full(room)).unwrap_err();
        assert!(
            matches!(
                error,
                ParamsError::Io {
                    action: "write",
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[test]
fn proof_bytes_that_are_no_proof_are_refused() {
    let bytes = example().proof.to_bytes();
    for length in [0, 1, 191] {
        assert!(matches!(
            Proof::from_bytes(&bytes[..length]),
            Err(ProofError::Length { expected: 192, found }) if found == length
        ));
    }
    assert!(matches!(
        Proof::from_bytes(&[0; 193]),
        Err(ProofError::Length { .. })
    ));
    for (element, at, size) in [("a", 0, 48), ("b", 48, 96), ("c", 144, 48)] {
        let refused = |change: &dyn Fn(&mut [u8])| {
            let mut bytes = bytes;
            change(&mut bytes[at..at + size]);
            match Proof::from_bytes(&bytes) {
                Err(ProofError::Point {
                    element: e,
                    offset,
                    found,
                    ..
                }) => {
                    assert_eq!((e, offset), (element, at));
                    found
                }
                other => panic!("{element}: {other:?}"),
            }
        };
        let infinity = refused(&|point| {
            point.fill(0);
            point[0] = 0xc0;
        });
        assert_eq!(infinity, PointFault::Identity);
        assert!(matches!(
            refused(&|point| point[0] &= 0x7f),
            PointFault::Flags(_)
        ));
        let above_modulus = refused(&|point| point.fill(0x9f));
        assert_eq!(above_modulus, PointFault::OffCurve);
    }
}

#[test]
fn a_proof_outside_of_the_subgroup_is_refused() {
    let outside = blstrs::G1Affine::from_uncompressed_unchecked(&outside_of_subgroup()).unwrap();
    let mut bytes = example().proof.to_bytes();
    bytes[..48].copy_from_slice(&outside.to_compressed());
    assert!(matches!(
        Proof::from_bytes(&bytes),
        Err(ProofError::Point {
            element: "a",
            found: PointFault::OutsideSubgroup,
            ..
        })
    ));
}

#[test]
fn a_proof_file_is_read_back_and_a_longer_one_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("proof.bin");
    example().proof.write(&path).unwrap();
    assert_eq!(Proof::read(&path).unwrap(), example().proof);
    fs::write(&path, [0; 400]).unwrap();
    assert!(matches!(
        Proof::read(&path),
        Err(ProofError::Length { found: 400, .. })
    ));
    let two = [example().proof.to_bytes(), example().proof.to_bytes()].concat();
    assert_eq!(
        Proof::many_from_bytes(&two, 2).unwrap(),
        [example().proof; 2]
    );
    assert!(Proof::many_from_bytes(&two, 3).is_err());
}
