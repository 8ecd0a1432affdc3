//! Fabricated sectors before the official verifiers, and what must not pass there.

use super::*;

const SMALL: [SectorSize; 2] = [SectorSize::Kib2, SectorSize::Mib8];

fn options(seed: u64) -> Options {
    Options {
        seed,
        ..Options::default()
    }
}

#[test]
fn the_official_vanilla_verifiers_accept_every_kind_of_fabricated_sector() {
    for size in SMALL {
        for kind in ProofKind::ALL {
            for seed in 0..3 {
                let fabricated = fabricate(kind, size, &options(seed)).unwrap();
                assert!(
                    fabricated.is_accepted().unwrap(),
                    "{kind} {size}, seed {seed}"
                );
            }
        }
    }
}

#[test]
fn the_official_vanilla_verifiers_accept_small_parts_of_production_sectors() {
    for size in [SectorSize::Mib512, SectorSize::Gib32, SectorSize::Gib64] {
        assert!(
            winning(size, &options(1)).unwrap().is_accepted().unwrap(),
            "winning {size}"
        );
        let few = Options {
            window_sectors: Some(2),
            ..options(2)
        };
        let sectors = window(size, &few).unwrap();
        assert_eq!(sectors.vanilla_proofs.len(), 2);
        assert!(sectors.is_accepted().unwrap(), "window {size}");
    }
}

#[test]
fn equal_options_give_equal_bytes_and_another_seed_gives_others() {
    let porep = |seed| porep(SectorSize::Kib2, &options(seed)).unwrap().c1;
    assert_eq!(porep(5), porep(5));
    assert_ne!(porep(5), porep(6));
    let post = |seed| {
        window(SectorSize::Mib8, &options(seed))
            .unwrap()
            .vanilla_proofs
    };
    assert_eq!(post(5), post(5));
    assert_ne!(post(5), post(6));
    let update = |seed| {
        update(SectorSize::Mib8, &options(seed))
            .unwrap()
            .vanilla_proofs
    };
    assert_eq!(update(5), update(5));
    assert_ne!(update(5), update(6));
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
    assert!(sectors.is_accepted().unwrap());
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
    assert!(!post.is_accepted().unwrap_or(false));
    let mut update = update(SectorSize::Mib8, &options(1)).unwrap();
    update.comm_d_new[0] ^= 1;
    assert!(!update.is_accepted().unwrap());
    let mut porep = porep(SectorSize::Kib2, &options(1)).unwrap();
    let mut output: serde_json::Value = serde_json::from_slice(&porep.c1).unwrap();
    output["seed"][0] = (1 ^ output["seed"][0].as_u64().unwrap()).into();
    porep.c1 = serde_json::to_vec(&output).unwrap();
    assert!(!porep.is_accepted().unwrap());
}

#[test]
fn the_wrapped_c1_holds_the_sector_number_and_size_and_the_bare_c1_in_base64() {
    use base64::Engine as _;
    let porep = porep(
        SectorSize::Kib2,
        &Options {
            sector: 77,
            ..options(1)
        },
    )
    .unwrap();
    let wrapped: serde_json::Value = serde_json::from_slice(&porep.wrapped().unwrap()).unwrap();
    assert_eq!(wrapped["SectorNum"], 77);
    assert_eq!(wrapped["SectorSize"], 2048);
    let inner = wrapped["Phase1Out"].as_str().unwrap();
    assert_eq!(
        base64::engine::general_purpose::STANDARD
            .decode(inner)
            .unwrap(),
        porep.c1
    );
    assert_eq!(wrapped.as_object().unwrap().len(), 3);
}
