//! The daemon as the contract's clients use it: four kinds, ids, deadlines, cancellation, hostile messages, status.

#![cfg(feature = "serve")]

mod common;

use common::*;
use cuzk_filecoin::ProofKind;
use std::io::Write;
use std::process::Child;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tonic::{Code, Request};

/// The daemon of this file's tests; cargo ends it with the test process, and its drop never runs.
fn daemon() -> &'static Daemon {
    static DAEMON: OnceLock<(Daemon, Child)> = OnceLock::new();
    let (daemon, _) = DAEMON.get_or_init(|| {
        let daemon = Start::new("daemon").run();
        let guard = end_with_this_process(&daemon);
        (daemon, guard)
    });
    daemon
}

/// A shell that waits for this process and then kills the daemon.
fn end_with_this_process(daemon: &Daemon) -> Child {
    let script = format!(
        "while kill -0 {} 2>/dev/null; do sleep 0.2; done; kill -9 {}",
        std::process::id(),
        daemon.child.id()
    );
    let quiet = std::process::Stdio::null;
    std::process::Command::new("sh")
        .args(["-c", &script])
        .stdin(quiet())
        .stdout(quiet())
        .stderr(quiet())
        .spawn()
        .unwrap()
}

async fn completes(client: &mut Client, job: &str) -> Vec<u8> {
    let request = rpc::AwaitProofRequest {
        job_id: job.to_owned(),
        timeout_ms: 60_000,
    };
    let answer = client.await_proof(request).await.unwrap().into_inner();
    assert_eq!(answer.status(), Ended::Completed, "{answer:?}");
    answer.proof
}

async fn state_of(client: &mut Client, job: &str, timeout_ms: u64) -> Ended {
    let request = rpc::AwaitProofRequest {
        job_id: job.to_owned(),
        timeout_ms,
    };
    client
        .await_proof(request)
        .await
        .unwrap()
        .into_inner()
        .status()
}

async fn submit(client: &mut Client, message: rpc::SubmitProofRequest) -> String {
    client
        .submit_proof(message)
        .await
        .unwrap()
        .into_inner()
        .job_id
}

async fn cancel(client: &mut Client, job: &str) -> bool {
    let request = rpc::CancelProofRequest {
        job_id: job.to_owned(),
    };
    client
        .cancel_proof(request)
        .await
        .unwrap()
        .into_inner()
        .was_running
}

#[tokio::test]
async fn winning_and_window_proofs_are_made_in_one_call_and_verify() {
    let mut client = daemon().client().await;
    for (kind, seed) in [(ProofKind::Winning, 11), (ProofKind::Window, 12)] {
        let request = prove_request(named(&message(kind, seed), &format!("{kind}-1000-{seed}")));
        let result = client.prove(request).await.unwrap().into_inner().result;
        let result = result.expect("the contract promises a result");
        assert_eq!(result.status(), Ended::Completed, "{result:?}");
        assert_eq!(result.proof.len(), 192);
        assert!(result.total_ms > 0 && result.error_message.is_empty());
        verify(kind, seed, &result.proof);
    }
}

#[tokio::test]
async fn proofs_of_replication_and_updates_are_accepted_and_cancelled_while_they_wait() {
    let mut client = daemon().client().await;
    // Something of higher priority for the one device.
    let first = submit(&mut client, message(ProofKind::Window, 21)).await;
    for (kind, seed) in [(ProofKind::Porep, 22), (ProofKind::Update, 23)] {
        let low = rpc::SubmitProofRequest {
            priority: rpc::Priority::Low as i32,
            ..named(&message(kind, seed), &format!("{kind}-1000-{seed}"))
        };
        let job = submit(&mut client, low).await;
        cancel(&mut client, &job).await;
        assert_eq!(state_of(&mut client, &job, 1000).await, Ended::Cancelled);
        // Once ended, it cannot be cancelled again.
        assert!(!cancel(&mut client, &job).await);
    }
    completes(&mut client, &first).await;
}

#[tokio::test]
async fn the_same_request_id_is_the_same_job_and_another_request_is_a_conflict() {
    let mut client = daemon().client().await;
    let request = named(&message(ProofKind::Window, 31), "window-1000-31");
    let first = submit(&mut client, request.clone()).await;
    // While it waits or runs, by either call.
    assert_eq!(submit(&mut client, request.clone()).await, first);
    let joined = client.prove(prove_request(request.clone())).await.unwrap();
    let joined = joined.into_inner().result.unwrap();
    assert_eq!(joined.job_id, first);
    // And when it has ended: the proof is the same one, byte for byte.
    assert_eq!(submit(&mut client, request.clone()).await, first);
    assert_eq!(completes(&mut client, &first).await, joined.proof);
    let other = named(&message(ProofKind::Window, 32), "window-1000-31");
    let refused = client.submit_proof(other.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists, "{refused:?}");
    let refused = client.prove(prove_request(other)).await.unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists, "{refused:?}");
}

#[tokio::test]
async fn waiting_ends_in_time_and_does_not_cancel() {
    let mut client = daemon().client().await;
    let job = submit(&mut client, message(ProofKind::Window, 41)).await;
    let start = Instant::now();
    assert_eq!(state_of(&mut client, &job, 1).await, Ended::Timeout);
    assert!(start.elapsed() < Duration::from_secs(5));
    // A caller that goes away while it waits does not matter, either.
    let mut other = client.clone();
    let name = job.clone();
    let waiting = tokio::spawn(async move { state_of(&mut other, &name, 0).await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    waiting.abort();
    completes(&mut client, &job).await;
}

#[tokio::test]
async fn jobs_that_nobody_knows_are_unknown() {
    let mut client = daemon().client().await;
    for name in ["", "none", "job-99999999", "../../etc/passwd", "\u{202e}\0"] {
        assert_eq!(state_of(&mut client, name, 10).await, Ended::Unknown);
        let request = rpc::CancelProofRequest {
            job_id: name.to_owned(),
        };
        let refused = client.cancel_proof(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound);
    }
}

#[tokio::test]
async fn a_deadline_or_a_lost_caller_cancels_its_job_unless_another_wants_it() {
    // Its own daemon: the counters must not move for other reasons.
    let daemon = Start::new("deadlines").run();
    let mut client = daemon.client().await;
    let mut late = Request::new(prove_request(message(ProofKind::Winning, 51)));
    late.set_timeout(Duration::from_millis(60));
    let refused = client.prove(late).await.unwrap_err();
    assert!(
        matches!(refused.code(), Code::DeadlineExceeded | Code::Cancelled),
        "{refused:?}"
    );
    daemon.counter_reaches("cancelled", 1).await;

    let prove = |id: &str, kind| {
        let request = prove_request(named(&message(kind, 52), id));
        let mut client = client.clone();
        tokio::spawn(async move { client.prove(request).await })
    };
    let lost = prove("lost", ProofKind::Winning);
    tokio::time::sleep(Duration::from_millis(100)).await;
    lost.abort();
    daemon.counter_reaches("cancelled", 2).await;

    let (lost, kept) = (
        prove("shared", ProofKind::Window),
        prove("shared", ProofKind::Window),
    );
    tokio::time::sleep(Duration::from_millis(100)).await;
    lost.abort();
    let answer = kept.await.unwrap().unwrap().into_inner().result.unwrap();
    assert_eq!(answer.status(), Ended::Completed, "{answer:?}");

    // A job that was submitted by itself is not the Prove call's to cancel.
    let request = named(&message(ProofKind::Window, 53), "submitted");
    let mut own = client.clone();
    let job = submit(&mut own, request.clone()).await;
    let joined = tokio::spawn(async move { client.prove(prove_request(request)).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    joined.abort();
    completes(&mut own, &job).await;
    assert_eq!(daemon.status()["counters"]["cancelled"], 2);
}

#[tokio::test]
async fn malformed_requests_are_refused_by_field_and_harm_nothing() {
    let mut client = daemon().client().await;
    let refused = client
        .prove(rpc::ProveRequest::default())
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let good = message(ProofKind::Window, 61);
    type Change = fn(&mut rpc::SubmitProofRequest);
    let changes: [(&str, Change); 5] = [
        ("proof_kind", |m| m.proof_kind = 0),
        ("proof_kind", |m| m.proof_kind = 77),
        ("priority", |m| m.priority = -3),
        ("sector_size", |m| m.sector_size = 12345),
        ("vanilla_proofs", |m| m.vanilla_proofs.clear()),
    ];
    for (field, change) in changes {
        let mut bad = good.clone();
        change(&mut bad);
        match client.submit_proof(bad).await {
            Err(refused) => {
                assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
                assert!(refused.message().contains(field), "{refused:?}");
            }
            Ok(accepted) => fails_with(&mut client, accepted.into_inner(), field).await,
        }
    }
    // What only parsing finds fails the job, not the daemon.
    let mut bad = good.clone();
    bad.vanilla_proofs[0].truncate(100);
    match client.submit_proof(bad).await {
        Err(refused) => assert_eq!(refused.code(), Code::InvalidArgument),
        Ok(accepted) => fails_with(&mut client, accepted.into_inner(), "vanilla_proofs[0]").await,
    }
    let circuit_id = "porep-33g".to_owned();
    let refused = client
        .preload_srs(rpc::PreloadSrsRequest { circuit_id })
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let job = submit(&mut client, good).await;
    completes(&mut client, &job).await;
}

async fn fails_with(client: &mut Client, accepted: rpc::SubmitProofResponse, part: &str) {
    let request = rpc::AwaitProofRequest {
        job_id: accepted.job_id,
        timeout_ms: 60_000,
    };
    let answer = client.await_proof(request).await.unwrap().into_inner();
    assert_eq!(answer.status(), Ended::Failed, "{answer:?}");
    assert!(answer.error_message.contains(part), "{answer:?}");
    assert!(answer.proof.is_empty());
}

#[tokio::test]
async fn a_message_may_have_256_mebibytes_and_no_more() {
    let mut client = daemon().client().await;
    let with_bytes = |count| rpc::SubmitProofRequest {
        proof_kind: 1,
        sector_size: 2048,
        vanilla_proof: vec![b' '; count],
        ..Default::default()
    };
    // It is no C1 file, but it arrives.
    match client.submit_proof(with_bytes((256 << 20) - 64)).await {
        Err(refused) => assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}"),
        Ok(accepted) => fails_with(&mut client, accepted.into_inner(), "JSON").await,
    }
    let refused = client
        .submit_proof(with_bytes(256 << 20))
        .await
        .unwrap_err();
    assert!(
        matches!(refused.code(), Code::OutOfRange | Code::ResourceExhausted),
        "{refused:?}"
    );
    client.get_status(rpc::GetStatusRequest {}).await.unwrap();
}

#[tokio::test]
async fn noise_and_idle_connections_are_survived() {
    let daemon = daemon();
    let mut idle = Vec::new();
    for noise in [
        &b""[..],
        b"GET / HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\x01\x05\0\0\0\x01",
        &[0x16, 3, 1, 2, 0, 1, 0],
        &[0; 4096],
    ] {
        for address in [&daemon.grpc, &daemon.http] {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            let _ = stream.write_all(noise);
            idle.push(stream);
        }
    }
    let mut client = daemon.client().await;
    client.get_status(rpc::GetStatusRequest {}).await.unwrap();
    assert_eq!(daemon.get("/healthz").0, 200);
    assert_eq!(daemon.get("/../../etc/passwd").0, 404);
    drop(idle);
}

#[tokio::test]
async fn status_names_every_kind_and_counts_what_is_under_way() {
    let mut client = daemon().client().await;
    let job = submit(&mut client, message(ProofKind::Window, 71)).await;
    let status = client.get_status(rpc::GetStatusRequest {}).await.unwrap();
    let status = status.into_inner();
    let mut kinds: Vec<_> = status
        .queues
        .iter()
        .map(|q| q.proof_kind.as_str())
        .collect();
    kinds.sort_unstable();
    let expected = [
        "POREP_SEAL_COMMIT",
        "SNAP_DEALS_UPDATE",
        "WINDOW_POST_PARTITION",
        "WINNING_POST",
    ];
    assert_eq!(kinds, expected);
    let under_way: u32 = status
        .queues
        .iter()
        .map(|q| q.pending + q.in_progress)
        .sum();
    assert!(under_way >= 1, "{status:?}");
    completes(&mut client, &job).await;
}

#[tokio::test]
async fn status_calls_are_quick_while_proofs_are_made() {
    let daemon = daemon();
    let mut client = daemon.client().await;
    let mut jobs = Vec::new();
    for seed in 81..84 {
        jobs.push(submit(&mut client, message(ProofKind::Winning, seed)).await);
    }
    let mut times = Vec::new();
    for _ in 0..100 {
        let start = Instant::now();
        client.get_status(rpc::GetStatusRequest {}).await.unwrap();
        times.push(start.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    times.sort_unstable();
    println!("status calls: median {:?}, p99 {:?}", times[50], times[98]);
    assert!(times[50] < Duration::from_millis(50), "{times:?}");
    for job in jobs {
        cancel(&mut client, &job).await;
    }
}

#[tokio::test]
async fn http_tells_status_metrics_health_and_shows_a_page_of_its_own() {
    let daemon = daemon();
    assert_eq!(daemon.get("/healthz"), (200, "ok\n".to_owned()));
    let start = Instant::now();
    while daemon.get("/readyz").0 != 200 {
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    let status = daemon.status();
    for key in [
        "uptime_seconds",
        "memory",
        "synthesis",
        "pipelines",
        "gpu_workers",
        "allocations",
        "counters",
        "buffers",
        "queues",
        "failures",
    ] {
        assert!(!status[key].is_null(), "{key} is missing from {status}");
    }
    let (code, timeline) = daemon.get("/timeline");
    assert_eq!(code, 200);
    assert!(timeline.starts_with("{\"spans\":["));

    let (code, page) = daemon.get("/");
    assert_eq!(code, 200);
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        let found = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!found.contains(outside), "the page refers to {outside}");
    }
    assert!(!page.contains("innerHTML"));

    let (code, text) = daemon.get("/metrics");
    assert_eq!(code, 200);
    let mut client = daemon.client().await;
    let by_grpc = client.get_metrics(rpc::GetMetricsRequest {}).await.unwrap();
    let by_grpc = by_grpc.into_inner().prometheus_text;
    let names = |text: &str| {
        let lines = text.lines().filter(|l| l.starts_with("# TYPE"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(&text), names(&by_grpc));
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}
