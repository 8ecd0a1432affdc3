//! Fabricated sectors before the official verifiers and in the circuits, and what must not pass there.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::official::accepts;
use super::*;
use crate::Request;

fn options(seed: u64) -> Options {
    Options {
        seed,
        ..Options::default()
    }
}

#[test]
fn the_official_vanilla_verifiers_accept_small_sectors_of_every_kind() {
    for size in [SectorSize::Kib2, SectorSize::Mib8] {
        for kind in ProofKind::ALL {
            for seed in 0..2 {
                let fabricated = fabricate(kind, size, &options(seed)).unwrap();
                assert!(accepts(&fabricated), "{kind} {size}, seed {seed}");
            }
        }
    }
}

#[test]
fn the_official_vanilla_verifiers_accept_production_sectors() {
    for size in [SectorSize::Mib512, SectorSize::Gib32, SectorSize::Gib64] {
        let winning = Fabricated::Post(winning(size, &options(1)).unwrap());
        assert!(accepts(&winning), "winning {size}");
        let few = Options {
            window_sectors: Some(2),
            ..options(2)
        };
        let window = Fabricated::Post(window(size, &few).unwrap());
        assert!(accepts(&window), "window {size}");
    }
    let porep = Fabricated::Porep(porep(SectorSize::Gib64, &options(3)).unwrap());
    assert!(accepts(&porep));
}

fn satisfies_its_circuit(kind: ProofKind, size: SectorSize) {
    let fabricated = fabricate(kind, size, &options(4)).unwrap();
    let request = Request::parse(&fabricated.into()).unwrap();
    assert!(request.verify_vanilla().unwrap(), "{kind} {size}");
    if let Err(error) = cuzk_circuit::check(request.circuit(0).unwrap()) {
        panic!("{kind} {size}: {error}");
    }
}

#[test]
fn a_small_fabricated_sector_of_every_kind_satisfies_its_circuit() {
    for kind in ProofKind::ALL {
        satisfies_its_circuit(kind, SectorSize::Kib2);
    }
}

#[test]
fn fabricated_winning_sectors_satisfy_the_circuit_of_every_tree_shape() {
    for size in [SectorSize::Mib8, SectorSize::Gib32, SectorSize::Gib64] {
        satisfies_its_circuit(ProofKind::Winning, size);
    }
}

#[test]
fn equal_options_give_equal_bytes_and_another_seed_gives_others() {
    for kind in ProofKind::ALL {
        let request =
            |seed| ProofRequest::from(fabricate(kind, SectorSize::Kib2, &options(seed)).unwrap());
        assert_eq!(request(5), request(5), "{kind}");
        assert_ne!(request(5), request(6), "{kind}");
    }
}

#[test]
fn the_sectors_of_a_window_partition_differ() {
    let sectors = window(SectorSize::Mib8, &options(3)).unwrap().sectors;
    assert_eq!(sectors.len(), window_sectors(SectorSize::Mib8));
    assert_eq!(sectors[1].number, sectors[0].number + 1);
    assert_ne!(sectors[0].comm_r, sectors[1].comm_r);
}

#[test]
fn a_later_window_partition_is_accepted_under_its_own_index() {
    let later = Options {
        window_partition: 4,
        window_sectors: Some(1),
        ..options(9)
    };
    let sectors = window(SectorSize::Kib2, &later).unwrap();
    assert_eq!(sectors.partition, 4);
    assert!(accepts(&Fabricated::Post(sectors)));
}

#[test]
fn an_impossible_number_of_window_sectors_is_refused() {
    for count in [0, window_sectors(SectorSize::Kib2) + 1] {
        let wrong = Options {
            window_sectors: Some(count),
            ..options(0)
        };
        assert!(matches!(
            window(SectorSize::Kib2, &wrong),
            Err(FabricateError::Option {
                option: "window sectors",
                ..
            })
        ));
    }
}

#[test]
fn a_changed_commitment_or_randomness_is_not_accepted() {
    let mut post = winning(SectorSize::Mib8, &options(1)).unwrap();
    post.randomness[0] ^= 1;
    assert!(!accepts(&Fabricated::Post(post)));
    let mut update = update(SectorSize::Kib2, &options(1)).unwrap();
    update.comm_d_new[0] ^= 1;
    assert!(!accepts(&Fabricated::Update(update)));
    let mut porep = porep(SectorSize::Kib2, &options(1)).unwrap();
    porep.seed[0] ^= 1;
    let mut output: serde_json::Value = serde_json::from_slice(&porep.c1).unwrap();
    output["seed"][0] = porep.seed[0].into();
    porep.c1 = serde_json::to_vec(&output).unwrap();
    assert!(!accepts(&Fabricated::Porep(porep)));
}

#[test]
fn the_wrapped_c1_holds_the_sector_number_and_size_and_the_bare_c1_in_base64() {
    let numbered = Options {
        sector: 77,
        ..options(1)
    };
    let porep = porep(SectorSize::Kib2, &numbered).unwrap();
    let wrapped: serde_json::Value = serde_json::from_slice(&porep.wrapped()).unwrap();
    assert_eq!(wrapped["SectorNum"], 77);
    assert_eq!(wrapped["SectorSize"], 2048);
    let inner = wrapped["Phase1Out"].as_str().unwrap();
    assert_eq!(STANDARD.decode(inner).unwrap(), porep.c1);
    assert_eq!(wrapped.as_object().unwrap().len(), 3);
}
