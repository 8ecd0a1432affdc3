//! Plans over many shapes and limits, by arithmetic alone.

use super::*;

const GIB: u64 = 1 << 30;
/// Multiprocessors of an H200 and of a small card.
const SMS: [u32; 2] = [132, 30];

fn shape(log2: u32, others: f64, b: f64, compiled: bool) -> Shape {
    let n = 1usize << log2;
    let aux = n - n / 32;
    let share = |share: f64| (aux as f64 * share) as usize;
    let counts = Counts {
        inputs: 40,
        h: n - 1,
        l: aux,
        a: aux + 40,
        b: share(b) + 40,
    };
    let total = Position {
        variables: aux,
        others: share(others),
        ones: share((1.0 - others) / 2.0),
        a: aux,
        b: share(b),
    };
    Shape {
        counts,
        blocks: Blocks::even(total),
        evaluation: compiled.then_some(Evaluation {
            tables: 60 << 20,
            scratch: 4 << 20,
        }),
        device_only: BaseSets::NONE,
    }
}

fn room(sms: u32, bytes: u64) -> Room {
    Room {
        multiprocessors: sms,
        bytes,
    }
}

#[test]
fn every_limit_from_four_gib_works_for_every_shape_and_is_kept() {
    for log2 in 22..=27 {
        for (others, b, compiled) in [(0.013, 0.25, true), (0.5, 0.7, false), (1.0, 1.0, true)] {
            let shape = shape(log2, others, b, compiled);
            for (gib, sms) in [4, 5, 8, 16, 24, 48, 141]
                .into_iter()
                .flat_map(|gib| SMS.map(|sms| (gib, sms)))
            {
                let plan = Plan::new(&shape, room(sms, gib * GIB)).unwrap();
                let case = format!("2^{log2}, {others} others, {b} in b\n{plan}");
                assert!(plan.bytes() <= gib * GIB, "{case}");
                assert!(plan.arena_bytes <= plan.most_arena_bytes(), "{case}");
                assert!(plan.seconds.is_finite() && plan.seconds > 0.0, "{case}");
            }
        }
    }
}

#[test]
fn more_memory_is_never_slower_by_more_than_a_lane_is_worth() {
    let shape = shape(27, 0.013, 0.25, true);
    let mut last = f64::INFINITY;
    for gib in [4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 141] {
        let plan = Plan::new(&shape, room(132, gib * GIB)).unwrap();
        assert!(plan.seconds <= 1.06 * last, "{gib} GiB\n{plan}");
        last = plan.seconds;
    }
    let whole = Plan::new(&shape, room(132, 141 * GIB)).unwrap();
    assert_eq!(whole.resident, BaseSets::ALL);
    assert_eq!((whole.h.rows, whole.streamed_bytes), (0, 0));
    assert_eq!(whole.lanes, 2, "{whole}");
}

#[test]
fn what_cannot_fit_says_how_much_would() {
    let shape = shape(22, 0.5, 0.5, false);
    let error = Plan::new(&shape, room(132, 1 << 20)).unwrap_err();
    assert_eq!(error.limit, 1 << 20);
    assert!(
        error.needed > error.limit && error.needed < 4 * GIB,
        "{error}"
    );
    assert!(Plan::new(&shape, room(132, error.needed)).is_ok());
}

#[test]
fn sets_without_a_copy_on_the_host_stay_on_the_device_or_are_refused() {
    let mut shape = shape(24, 0.5, 0.5, false);
    shape.device_only = BaseSets::ALL;
    let bytes = BaseSets::ALL.bytes(&shape.counts);
    let error = Plan::new(&shape, room(132, bytes - 1)).unwrap_err();
    assert!(error.needed > bytes, "{error}");
    let tight = Plan::new(&shape, room(132, bytes + GIB)).unwrap();
    assert_eq!(tight.resident, BaseSets::ALL, "{tight}");
    assert!(tight.h.rows > 0, "{tight}");
}

#[test]
fn chunks_cover_all_variables_without_gaps() {
    let blocks = Blocks::even(Position {
        variables: 100_001,
        others: 777,
        ones: 50_000,
        a: 90_000,
        b: 3,
    });
    for size in [1, 2, 7, blocks.count(), blocks.count() + 5] {
        let mut at = Position::default();
        for chunk in blocks.chunks(size) {
            assert_eq!(chunk.start, at);
            assert!(chunk.start.variables.is_multiple_of(GROUP));
            at = chunk.end;
        }
        assert_eq!(at, blocks.total());
    }
    assert_eq!(Blocks::even(Position::default()).chunks(1).count(), 1);
}

#[test]
fn a_plan_tells_bytes_passes_and_time() {
    let shape = shape(27, 0.013, 0.25, true);
    let text = Plan::new(&shape, room(132, 8 * GIB)).unwrap().to_string();
    for part in [
        "8.00 GiB allowed",
        "streamed",
        "parts",
        "windows of",
        "s a proof",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}
