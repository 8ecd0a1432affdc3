//! What clients see: results, identity, limits, cancellation, failures.

use std::time::Duration;

use cuzk_engine::{
    CancelOutcome, Engine, EngineConfig, EventKind, JobId, JobResult, JobState, KeptResults,
    PreloadError, Priority, QueueLimits, Stage, SubmitError, Waited,
};
use cuzk_filecoin::{ProofKind, ProofRequest};

use crate::mock::{Act, Mock, config, engine, proof, request, submission};

const LONG: Option<Duration> = Some(Duration::from_secs(60));

pub fn result(engine: &Engine<Mock>, job: &JobId) -> JobResult {
    match engine.wait_blocking(job, LONG) {
        Waited::Done(result) => (*result).clone(),
        other => panic!("{job}: {other:?}"),
    }
}

fn with(change: impl FnOnce(&mut EngineConfig)) -> EngineConfig {
    let mut config = config(None);
    change(&mut config);
    config
}

#[test]
fn a_job_brings_one_proof_to_every_waiter_and_tells_its_stages() {
    let mock = Mock::closed();
    let engine = engine(&mock, None);
    let mut events = engine.subscribe();
    let submitted = engine.submit(submission(1, 3, Act::Succeed)).unwrap();
    assert!(!submitted.joined);
    assert_eq!(submitted.device.as_deref(), Some("mock gpu"));
    assert_eq!(engine.result(&submitted.job), Waited::Timeout);
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let (engine, job) = (engine.clone(), submitted.job.clone());
            std::thread::spawn(move || result(&engine, &job))
        })
        .collect();
    mock.gate.set(true);
    for waiter in waiters {
        let result = waiter.join().unwrap();
        assert_eq!(result.state, JobState::Completed);
        assert_eq!(result.proof, proof(1, 3));
        assert_eq!(result.request_id.as_deref(), Some("request 1"));
    }
    assert!(matches!(engine.result(&submitted.job), Waited::Done(_)));
    assert_eq!(engine.result(&JobId::new("none")), Waited::Unknown);
    let mut proved = 0;
    let last = loop {
        match events.try_recv().expect("an event").kind {
            EventKind::Partition {
                stage: Stage::Proved,
                ..
            } => proved += 1,
            EventKind::Finished { job, state } => break (job, state),
            _ => {}
        }
    };
    assert_eq!((proved, last), (3, (submitted.job, JobState::Completed)));
    let status = engine.status();
    assert_eq!((status.totals.completed, status.totals.partitions), (1, 3));
    assert_eq!((status.queued_bytes, status.running.len()), (0, 0));
    assert_eq!(status.devices[0].proved, 3);
    assert_eq!(status.results_kept, 1);
}

#[test]
fn the_same_request_joins_and_another_one_under_its_id_is_refused() {
    let mock = Mock::closed();
    let engine = engine(&mock, None);
    let first = engine.submit(submission(1, 1, Act::Succeed)).unwrap();
    let again = engine.submit(submission(1, 1, Act::Succeed)).unwrap();
    assert!(again.joined && again.job == first.job);
    let mut other = submission(1, 1, Act::Succeed);
    other.request.randomness = vec![1];
    let error = engine.submit(other.clone()).unwrap_err();
    assert!(matches!(&error, SubmitError::Conflict { job, .. } if *job == first.job));
    mock.gate.set(true);
    result(&engine, &first.job);
    let late = engine.submit(submission(1, 1, Act::Succeed)).unwrap();
    assert!(late.joined && late.job == first.job);
    assert!(matches!(
        engine.submit(other),
        Err(SubmitError::Conflict { .. })
    ));
    assert_eq!(mock.proved.load(std::sync::atomic::Ordering::Relaxed), 1);
    // Without an id every request is another job.
    let anonymous = cuzk_engine::Submission::new(request(1, 1, Act::Succeed));
    let (a, b) = (
        engine.submit(anonymous.clone()).unwrap(),
        engine.submit(anonymous).unwrap(),
    );
    assert_ne!(a.job, b.job);
}

#[test]
fn a_request_that_failed_or_was_cancelled_may_be_submitted_again() {
    let mock = Mock::new();
    let engine = engine(&mock, None);
    let failed = engine.submit(submission(1, 1, Act::Malformed)).unwrap();
    let why = result(&engine, &failed.job);
    assert_eq!(
        (why.state, why.message.as_str()),
        (JobState::Failed, "field x: found y")
    );
    let again = engine.submit(submission(1, 1, Act::Malformed)).unwrap();
    assert!(!again.joined && again.job != failed.job);
    let corrected = engine.submit(submission(1, 1, Act::Succeed));
    match corrected {
        Ok(submitted) => assert_eq!(result(&engine, &submitted.job).state, JobState::Completed),
        // The second job may still be running.
        Err(error) => assert!(matches!(error, SubmitError::Conflict { .. })),
    }
    // The old result stays under its job's name.
    assert_eq!(result(&engine, &failed.job).state, JobState::Failed);
}

#[test]
fn panics_and_faults_fail_their_own_job_only_and_say_why() {
    let mock = Mock::new();
    let engine = engine(&mock, None);
    let cases = [
        (Act::PanicInParse, "parse panicked"),
        (
            Act::PanicInSynthesis,
            "partition 0 of 2: a worker panicked: synthesis panicked",
        ),
        (
            Act::PanicInProve,
            "on mock cpu: a worker panicked: prove panicked; the first attempt: partition",
        ),
        (
            Act::PanicInAssemble,
            "the assembled proof: a worker panicked: assembly panicked",
        ),
        (
            Act::Fault,
            "on mock cpu: fault on device 1; the first attempt: partition",
        ),
        (Act::Malformed, "field x: found y"),
    ];
    let jobs = cases.map(|(act, words)| {
        let n = act as u64;
        let bad = engine.submit(submission(n, 2, act)).unwrap().job;
        let good = engine.submit(submission(100 + n, 2, Act::Succeed)).unwrap();
        (bad, words, good.job)
    });
    for (bad, words, good) in jobs {
        let bad = result(&engine, &bad);
        assert_eq!(bad.state, JobState::Failed);
        assert!(bad.message.contains(words), "{}", bad.message);
        assert!(bad.proof.is_empty());
        assert_eq!(result(&engine, &good).state, JobState::Completed);
    }
    let once = engine.submit(submission(50, 2, Act::FaultOnce)).unwrap();
    assert_eq!(result(&engine, &once.job).proof, proof(50, 2));
    let status = engine.status();
    assert_eq!((status.totals.failed, status.totals.completed), (6, 7));
    assert_eq!(status.failures.len(), 6);
    assert_eq!(status.host_memory.used, 1000, "the parameters alone");
}

#[test]
fn what_cannot_be_taken_is_refused_with_the_numbers() {
    let mock = Mock::closed();
    let limits = QueueLimits {
        jobs: 2,
        bytes: 1 << 20,
    };
    let engine = Engine::with_executor(with(|c| c.queue = limits), mock.clone()).unwrap();
    let refuse = |request: ProofRequest| {
        let submission = cuzk_engine::Submission::new(request);
        engine.submit(submission).unwrap_err()
    };
    let huge = refuse(ProofRequest {
        sector_size: 2048,
        ..ProofRequest::new(ProofKind::Window)
    });
    assert!(
        matches!(huge, SubmitError::NeverFits { parameters, limit, .. }
            if parameters == 1 << 40 && limit == 95_000),
        "{huge}"
    );
    let missing = refuse(ProofRequest {
        sector_size: 2048,
        ..ProofRequest::new(ProofKind::Update)
    });
    assert!(missing.to_string().contains("there is no such file"));
    let mut large = request(1, 1, Act::Succeed);
    large.vanilla_proof = vec![0; 30_000];
    let error = refuse(large);
    assert!(matches!(error, SubmitError::NeverFits { request, .. } if request > 60_000));
    let id = submission(1, 1, Act::Succeed).with_id("x".repeat(2000));
    assert!(matches!(
        engine.submit(id),
        Err(SubmitError::RequestId { found: 2000, .. })
    ));
    for n in 1..=2 {
        engine.submit(submission(n, 1, Act::Succeed)).unwrap();
    }
    let full = refuse(request(3, 1, Act::Succeed));
    assert!(
        matches!(full, SubmitError::QueueFull { jobs: 2, limit: 2 }),
        "{full}"
    );
    // A known one is no new one.
    assert!(
        engine
            .submit(submission(1, 1, Act::Succeed))
            .unwrap()
            .joined
    );
    mock.gate.set(true);
}

#[test]
fn cancelled_jobs_end_at_once_whether_they_run_or_wait() {
    let mock = Mock::closed();
    let engine = engine(&mock, None);
    let running = engine.submit(submission(1, 40, Act::Succeed)).unwrap().job;
    while engine.status().devices[0].proving.is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let waiting: Vec<JobId> = (2..30)
        .map(|n| engine.submit(submission(n, 1, Act::Succeed)).unwrap().job)
        .collect();
    let outcome = |was_running, was_finished| {
        Some(CancelOutcome {
            was_running,
            was_finished,
        })
    };
    assert_eq!(engine.cancel(&running), outcome(true, false));
    assert_eq!(engine.cancel(&running), outcome(false, true));
    assert_eq!(engine.cancel(&waiting[27]), outcome(false, false));
    assert_eq!(engine.cancel(&JobId::new("none")), None);
    for job in [&running, &waiting[27]] {
        assert_eq!(result(&engine, job).state, JobState::Cancelled);
    }
    mock.gate.set(true);
    for job in &waiting[..27] {
        assert_eq!(result(&engine, job).state, JobState::Completed);
    }
    assert_eq!(engine.status().totals.cancelled, 2);
    assert_eq!(engine.status().host_memory.used, 1000);
}

#[test]
fn a_job_past_its_deadline_is_cancelled() {
    let mock = Mock::closed();
    let engine = engine(&mock, None);
    let mut late = submission(1, 1, Act::Succeed);
    late.deadline = Some(Duration::from_millis(50));
    let job = engine.submit(late).unwrap().job;
    let result = result(&engine, &job);
    assert_eq!(
        (result.state, result.message.as_str()),
        (JobState::Cancelled, "the deadline passed")
    );
    mock.gate.set(true);
}

#[test]
fn results_expire_by_count_and_their_requests_are_proved_anew() {
    let kept = KeptResults {
        count: 2,
        ..KeptResults::default()
    };
    let engine = Engine::with_executor(with(|c| c.results = kept), Mock::new()).unwrap();
    let jobs: Vec<JobId> = (1..=4)
        .map(|n| {
            let job = engine.submit(submission(n, 1, Act::Succeed)).unwrap().job;
            result(&engine, &job);
            job
        })
        .collect();
    assert_eq!(engine.result(&jobs[0]), Waited::Unknown);
    assert!(matches!(engine.result(&jobs[3]), Waited::Done(_)));
    assert!(
        !engine
            .submit(submission(1, 1, Act::Succeed))
            .unwrap()
            .joined
    );
    assert!(
        engine
            .submit(submission(4, 1, Act::Succeed))
            .unwrap()
            .joined
    );
}

#[test]
fn the_priority_is_the_kinds_unless_the_client_names_one() {
    let mock = Mock::closed();
    let engine = engine(&mock, None);
    let mut low = submission(1, 1, Act::Succeed);
    low.priority = Some(Priority::Low);
    engine.submit(low).unwrap();
    engine.submit(submission(2, 1, Act::Succeed)).unwrap();
    while engine.status().running.len() < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let running = engine.status().running;
    assert_eq!(running[0].priority, Priority::Low);
    assert_eq!(running[1].priority, Priority::Normal);
    mock.gate.set(true);
}

#[tokio::test]
async fn waiting_preloading_and_draining_are_async() {
    let mock = Mock::closed();
    let engine = engine(&mock, None);
    let circuit = "porep-2k".parse().unwrap();
    let preloaded = engine.preload(circuit).await.unwrap();
    assert!(!preloaded.already_loaded);
    assert!(engine.preload(circuit).await.unwrap().already_loaded);
    let evicted = engine.evict(circuit);
    assert_eq!((evicted.was_loaded, evicted.freed_bytes), (true, 1000));
    assert!(!engine.preload(circuit).await.unwrap().already_loaded);
    let missing = engine.preload("snap-2k".parse().unwrap()).await;
    assert!(matches!(missing, Err(PreloadError::Parameters { .. })));
    let huge = engine.preload("wpost-2k".parse().unwrap()).await;
    assert!(matches!(huge, Err(PreloadError::NeverFits { .. })));

    let job = engine.submit(submission(1, 1, Act::Succeed)).unwrap().job;
    let short = Some(Duration::from_millis(20));
    assert_eq!(engine.wait(&job, short).await, Waited::Timeout);
    let opener = mock.gate.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        opener.set(true);
    });
    let waited = engine.wait(&job, None).await;
    assert!(matches!(waited, Waited::Done(r) if r.state == JobState::Completed));

    mock.gate.set(false);
    let stuck = engine.submit(submission(2, 1, Act::Succeed)).unwrap().job;
    let drained = engine.drain(Duration::from_millis(50)).await;
    assert_eq!((drained.lost, drained.checkpointed), (1, 0));
    let waited = engine.wait(&stuck, None).await;
    assert!(matches!(waited, Waited::Done(r) if r.message.contains("shutting down")));
    let refused = engine.submit(submission(3, 1, Act::Succeed));
    assert!(matches!(refused, Err(SubmitError::Draining)));
    mock.gate.set(true);
}
