//! What survives: engines that are dropped, processes that are killed, disks that are full.

use std::{
    collections::HashSet,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::Ordering,
    time::Duration,
};

use cuzk_engine::{Engine, JobId, JobState, SubmitError, Waited};

use crate::{
    jobs::result,
    mock::{Act, Mock, config, engine, proof, submission},
};

#[test]
fn unfinished_jobs_run_again_and_finished_ones_are_served_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mock = Mock::new();
    let first = engine(&mock, Some(dir.path()));
    let done = first.submit(submission(1, 2, Act::Succeed)).unwrap().job;
    result(&first, &done);
    mock.gate.set(false);
    let jobs: Vec<JobId> = (2..=30)
        .map(|n| first.submit(submission(n, 2, Act::Succeed)).unwrap().job)
        .collect();
    // The threads end once they are through the gate; what they bring then counts for nothing.
    let gate = mock.gate.clone();
    let opener = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        gate.set(true);
    });
    drop(first);
    opener.join().unwrap();
    let before = mock.proved.load(Ordering::Relaxed);

    let second = engine(&mock, Some(dir.path()));
    assert!(matches!(second.result(&done), Waited::Done(r) if r.proof == proof(1, 2)));
    let joined = second.submit(submission(1, 2, Act::Succeed)).unwrap();
    assert!(joined.joined && joined.job == done);
    let joined = second.submit(submission(2, 2, Act::Succeed)).unwrap();
    assert!(joined.joined && joined.job == jobs[0]);
    for (n, job) in (2..).zip(&jobs) {
        let result = result(&second, job);
        assert_eq!(
            (result.state, result.proof),
            (JobState::Completed, proof(n, 2))
        );
    }
    assert_eq!(mock.proved.load(Ordering::Relaxed) - before, 58);
    let inputs = std::fs::read_dir(dir.path().join("inputs")).unwrap();
    assert_eq!(inputs.count(), 0, "no input is left of finished jobs");
}

#[test]
fn partitions_that_were_proved_before_a_restart_are_not_proved_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut mock = Mock::new();
    mock.pause = Duration::from_millis(30);
    let first = engine(&mock, Some(dir.path()));
    let job = first.submit(submission(1, 20, Act::Succeed)).unwrap().job;
    while first.status().totals.partitions < 4 {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(first);
    let proved = mock.proved.load(Ordering::Relaxed);
    mock.pause = Duration::ZERO;
    let second = engine(&mock, Some(dir.path()));
    let found = result(&second, &job);
    assert_eq!(found.proof, proof(1, 20));
    let again = mock.proved.load(Ordering::Relaxed) - proved;
    assert!((4..=16).contains(&again), "{again} of 20, {proved} before");
}

#[tokio::test]
async fn a_drain_leaves_what_is_not_started_in_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let mock = Mock::closed();
    let first = engine(&mock, Some(dir.path()));
    let jobs: Vec<JobId> = (1..=50)
        .map(|n| first.submit(submission(n, 1, Act::Succeed)).unwrap().job)
        .collect();
    while first.status().devices[0].proving.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    mock.gate.set(true);
    mock.gate.set(false);
    let gate = mock.gate.clone();
    let opener = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        gate.set(true);
    });
    let drained = first.drain(Duration::from_secs(30)).await;
    opener.join().unwrap();
    assert_eq!(drained.lost, 0);
    let finished = jobs
        .iter()
        .filter(|job| matches!(first.result(job), Waited::Done(_)));
    let finished = finished.count();
    assert_eq!(drained.checkpointed + finished, 50);
    assert!((1..50).contains(&finished), "{finished} finished");
    drop(first);
    let second = engine(&mock, Some(dir.path()));
    for job in &jobs {
        assert_eq!(result(&second, job).state, JobState::Completed);
    }
}

#[test]
fn a_full_disk_refuses_jobs_and_lets_running_ones_finish() {
    let dir = tempfile::tempdir().unwrap();
    let mock = Mock::closed();
    let first = engine(&mock, Some(dir.path()));
    let job = first.submit(submission(1, 2, Act::Succeed)).unwrap().job;
    drop_engine(&mock, first);
    let mut full = config(Some(dir.path()));
    full.disk_reserve = u64::MAX / 2;
    let second = Engine::with_executor(full, mock.clone()).unwrap();
    let error = second.submit(submission(2, 2, Act::Succeed)).unwrap_err();
    assert!(matches!(error, SubmitError::DiskFull(_)), "{error}");
    assert!(error.to_string().contains("bytes free"), "{error}");
    assert_eq!(result(&second, &job).proof, proof(1, 2));
    assert_eq!(second.status().totals.completed, 1);
}

/// Drops an engine whose proofs are held up, and lets the threads out.
fn drop_engine(mock: &Mock, engine: Engine<Mock>) {
    let gate = mock.gate.clone();
    let opener = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        gate.set(true);
    });
    drop(engine);
    opener.join().unwrap();
}

#[test]
fn a_lost_or_spoiled_input_fails_its_job_with_a_result() {
    let dir = tempfile::tempdir().unwrap();
    let mock = Mock::closed();
    let first = engine(&mock, Some(dir.path()));
    let jobs: Vec<JobId> = (1..=3)
        .map(|n| first.submit(submission(n, 1, Act::Succeed)).unwrap().job)
        .collect();
    drop_engine(&mock, first);
    let input = |job: &JobId| dir.path().join("inputs").join(job.as_str());
    std::fs::remove_file(input(&jobs[0])).unwrap();
    std::fs::write(input(&jobs[1]), b"{").unwrap();
    let second = engine(&mock, Some(dir.path()));
    let lost = result(&second, &jobs[0]);
    assert!(lost.message.contains("the input"), "{}", lost.message);
    let spoiled = result(&second, &jobs[1]);
    assert!(spoiled.message.contains("JSON"), "{}", spoiled.message);
    assert_eq!(result(&second, &jobs[2]).state, JobState::Completed);
}

const CHILD: &str = "CUZK_ENGINE_TEST_STATE";

#[test]
fn a_killed_process_loses_no_job_and_doubles_none() {
    if let Some(dir) = std::env::var_os(CHILD) {
        return run_until_killed(&PathBuf::from(dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "a_killed_process_loses_no_job_and_doubles_none",
            "--nocapture",
        ])
        .env(CHILD, dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut accepted = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(job) = line.strip_prefix("accepted ") {
            accepted.push(JobId::new(job));
        }
        if line == "busy" {
            break;
        }
    }
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(accepted.len(), 40);
    assert_eq!(accepted.iter().collect::<HashSet<_>>().len(), 40);
    let mock = Mock::new();
    let engine = engine(&mock, Some(dir.path()));
    let served = accepted
        .iter()
        .filter(|job| matches!(engine.result(job), Waited::Done(_)));
    assert!(served.count() >= 5, "finished results are served at once");
    for (n, job) in (1..).zip(&accepted) {
        let result = result(&engine, job);
        assert_eq!(
            (result.state, result.proof),
            (JobState::Completed, proof(n, 3))
        );
        let joined = engine.submit(submission(n, 3, Act::Succeed)).unwrap();
        assert!(joined.joined && joined.job == *job);
    }
    let proved = mock.proved.load(Ordering::Relaxed);
    assert!(proved <= 35 * 3, "{proved} partitions were proved again");
}

fn run_until_killed(dir: &Path) {
    let mut mock = Mock::new();
    mock.pause = Duration::from_millis(50);
    let engine = engine(&mock, Some(dir));
    for n in 1..=40 {
        let job = engine.submit(submission(n, 3, Act::Succeed)).unwrap().job;
        println!("accepted {job}");
    }
    while engine.status().totals.completed < 5 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // Results are published after they are counted.
    std::thread::sleep(Duration::from_millis(100));
    println!("busy");
    std::thread::sleep(Duration::from_secs(60));
}
