//! What outlives the daemon, and what it holds: jobs and results in the journal, parameters in memory.

#![cfg(feature = "serve")]

mod common;

use common::*;
use cuzk_filecoin::ProofKind;
use std::time::{Duration, Instant};
use tonic::Code;

const SIGTERM: i32 = 15;
const SIGINT: i32 = 2;

async fn all_complete(daemon: &Daemon, jobs: &[String]) -> Vec<Vec<u8>> {
    let mut client = daemon.client().await;
    let mut proofs = Vec::new();
    for job in jobs {
        let request = rpc::AwaitProofRequest {
            job_id: job.clone(),
            timeout_ms: 300_000,
        };
        let answer = client.await_proof(request).await.unwrap().into_inner();
        assert_eq!(
            answer.status(),
            Ended::Completed,
            "{answer:?}\n{}",
            daemon.log()
        );
        proofs.push(answer.proof);
    }
    proofs
}

#[tokio::test]
async fn a_signal_drains_and_waiting_clients_get_their_proofs() {
    let mut daemon = Start::new("drain").run();
    let mut client = daemon.client().await;
    let mut waiting = client.clone();
    let request = prove_request(message(ProofKind::Winning, 101));
    let running = tokio::spawn(async move { waiting.prove(request).await });
    let start = Instant::now();
    // Jobs that have not begun stay in the journal: this one's proof must have.
    while daemon.status()["pipelines"][0]["partitions"][0]["state"] != "prove" {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{}",
            daemon.status()
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    daemon.signal(SIGINT);
    let start = Instant::now();
    let refused = loop {
        match client.submit_proof(message(ProofKind::Window, 102)).await {
            Err(refused) => break refused,
            // The signal may come a little later than the call.
            Ok(_) => assert!(start.elapsed() < Duration::from_secs(5)),
        }
    };
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    let answer = running.await.unwrap().unwrap().into_inner().result.unwrap();
    assert_eq!(answer.status(), Ended::Completed, "{answer:?}");
    assert!(daemon.ended(Duration::from_secs(30)).success());
}

#[tokio::test]
async fn unfinished_jobs_outlive_the_end_of_the_drain_and_run_at_the_next_start() {
    let set = "daemon.drain_timeout=100ms";
    let mut daemon = Start::new("cut").with(&["--set", set]).run();
    let mut client = daemon.client().await;
    let mut jobs = Vec::new();
    let kinds = [ProofKind::Winning, ProofKind::Window, ProofKind::Window];
    for (seed, kind) in (111..).zip(kinds) {
        let submitted = client.submit_proof(message(kind, seed)).await;
        jobs.push(submitted.unwrap().into_inner().job_id);
    }
    daemon.signal(SIGTERM);
    daemon.ended(Duration::from_secs(30));
    let next = Start::new("cut").run();
    all_complete(&next, &jobs).await;
}

#[tokio::test]
async fn killed_daemons_lose_neither_jobs_nor_results() {
    let daemon = Start::new("killed").run();
    let mut client = daemon.client().await;
    let finished = named(&message(ProofKind::Window, 131), "window-1000-131");
    let job = client
        .submit_proof(finished.clone())
        .await
        .unwrap()
        .into_inner()
        .job_id;
    let proof = all_complete(&daemon, std::slice::from_ref(&job))
        .await
        .remove(0);
    let mut jobs = Vec::new();
    let kinds = [ProofKind::Winning, ProofKind::Window, ProofKind::Window];
    for (seed, kind) in (132..).zip(kinds) {
        let request = named(&message(kind, seed), &format!("{kind}-{seed}"));
        jobs.push(
            client
                .submit_proof(request)
                .await
                .unwrap()
                .into_inner()
                .job_id,
        );
    }
    drop(daemon);
    let next = Start::new("killed").run();
    // The finished one is served as it was, and its request is still known by its id.
    assert_eq!(
        all_complete(&next, std::slice::from_ref(&job)).await,
        [proof]
    );
    let mut client = next.client().await;
    let again = client.submit_proof(finished).await.unwrap().into_inner();
    assert_eq!(again.job_id, job);
    let proofs = all_complete(&next, &jobs).await;
    verify(ProofKind::Winning, 132, &proofs[0]);
}

#[tokio::test]
async fn parameters_are_loaded_and_evicted_by_request() {
    let daemon = Start::new("parameters").run();
    let mut client = daemon.client().await;
    let circuit_id = "wpost-2k".to_owned();
    let preload = rpc::PreloadSrsRequest {
        circuit_id: circuit_id.clone(),
    };
    let first = client
        .preload_srs(preload.clone())
        .await
        .unwrap()
        .into_inner();
    assert!(!first.already_loaded);
    assert!(
        client
            .preload_srs(preload)
            .await
            .unwrap()
            .into_inner()
            .already_loaded
    );
    let status = client.get_status(rpc::GetStatusRequest {}).await.unwrap();
    let loaded = status.into_inner().loaded_srs;
    let found = loaded.iter().find(|s| s.circuit_id == circuit_id).unwrap();
    assert!(found.size_bytes >= 11_000_000, "{found:?}");
    let evict = rpc::EvictSrsRequest { circuit_id };
    let evicted = client.evict_srs(evict.clone()).await.unwrap().into_inner();
    assert!(evicted.was_loaded && evicted.freed_bytes > 0, "{evicted:?}");
    assert!(
        !client
            .evict_srs(evict)
            .await
            .unwrap()
            .into_inner()
            .was_loaded
    );
    // Parameters that are not there are refused by name.
    let circuit_id = "porep-32g".to_owned();
    let refused = client
        .preload_srs(rpc::PreloadSrsRequest { circuit_id })
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");
    assert!(refused.message().contains("porep-32g"));
}

#[tokio::test]
async fn a_request_id_without_end_is_refused() {
    let daemon = Start::new("ids").run();
    let mut client = daemon.client().await;
    let request = named(&message(ProofKind::Window, 61), &"x".repeat(1 << 20));
    let refused = client.submit_proof(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    assert!(refused.message().contains("request id"), "{refused:?}");
}
