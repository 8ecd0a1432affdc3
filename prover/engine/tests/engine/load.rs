//! Many clients at once.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use cuzk_engine::{JobState, Waited};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore as _, SeedableRng as _};

use crate::mock::{Act, Mock, engine, proof, submission};

#[test]
fn many_clients_that_cancel_repeat_and_fail_lose_nothing() {
    let mock = Mock::new();
    let engine = engine(&mock, None);
    let over = AtomicBool::new(false);
    let (clients, each) = (16_u64, 100_u64);
    let mut slowest = Duration::ZERO;
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut times = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let start = Instant::now();
                let status = engine.status();
                times.push(start.elapsed());
                assert!(status.host_memory.used <= status.host_memory.limit);
                std::thread::sleep(Duration::from_millis(1));
            }
            times.sort();
            times[times.len() * 99 / 100]
        });
        let clients: Vec<_> = (0..clients)
            .map(|client| {
                let engine = &engine;
                scope.spawn(move || run_client(engine, client, each))
            })
            .collect();
        let names: Vec<_> = clients
            .into_iter()
            .flat_map(|c| c.join().unwrap())
            .collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        over.store(true, Ordering::Relaxed);
        slowest = watcher.join().unwrap();
    });
    println!("99 of 100 status calls within {slowest:?}");
    let status = engine.status();
    let totals = status.totals;
    let ended = totals.completed + totals.failed + totals.cancelled;
    assert_eq!(ended, clients * each);
    assert!(totals.failed > 0 && totals.cancelled > 0);
    assert_eq!((status.host_memory.used, status.queued_bytes), (1000, 0));
}

/// One client's jobs; the names that they had.
fn run_client(
    engine: &cuzk_engine::Engine<Mock>,
    client: u64,
    each: u64,
) -> Vec<cuzk_engine::JobId> {
    let mut rng = ChaCha20Rng::seed_from_u64(client);
    let mut names = Vec::new();
    for i in 0..each {
        let n = 1000 * client + i;
        let act = match rng.next_u32() % 10 {
            0 => Act::Fault,
            1 => Act::PanicInSynthesis,
            2 | 3 => Act::FaultOnce,
            _ => Act::Succeed,
        };
        let partitions = 1 + rng.next_u32() % 4;
        let submitted = engine.submit(submission(n, partitions, act)).unwrap();
        assert!(!submitted.joined);
        if act == Act::Succeed {
            let repeated = engine.submit(submission(n, partitions, act)).unwrap();
            assert_eq!(repeated.job, submitted.job);
        }
        let cancelled = rng.next_u32().is_multiple_of(10);
        if cancelled {
            engine.cancel(&submitted.job).unwrap();
        }
        let Waited::Done(result) =
            engine.wait_blocking(&submitted.job, Some(Duration::from_secs(60)))
        else {
            panic!("job {n} has no result");
        };
        match result.state {
            JobState::Completed => assert_eq!(result.proof, proof(n, partitions)),
            JobState::Failed => assert!(act == Act::Fault || act == Act::PanicInSynthesis),
            JobState::Cancelled => assert!(cancelled),
        }
        names.push(submitted.job);
    }
    names
}
