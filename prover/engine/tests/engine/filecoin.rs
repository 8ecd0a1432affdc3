//! Real proofs of small sectors, from clients' bytes to the official verifier.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use cuzk_engine::{
    Engine, EngineConfig, EngineError, JobId, JobResult, JobState, Priority, Submission,
    SubmitError, Tier, Waited,
};
use cuzk_filecoin::{
    CircuitId, ProofKind, ProofRequest, Request, SectorSize,
    seal::{SealOptions, SealedSector, seal},
};
use cuzk_prover::{
    Device, Params,
    setup::{ToxicWaste, generate_file},
};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;

const VARIABLE: &str = "FIL_PROOFS_PARAMETER_CACHE";
const NAME: &str = "filecoin::space_time_proofs_of_real_sectors_pass_the_official_verifier";

/// storage-proofs reads its settings once a process, so the test runs itself in a process of its own
/// that has them from the start.
#[test]
fn space_time_proofs_of_real_sectors_pass_the_official_verifier() {
    if std::env::var_os("CUZK_ENGINE_FILECOIN_TEST").is_some() {
        return prove_space_time();
    }
    let parameters = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("engine-parameters");
    let status = Command::new(std::env::current_exe().unwrap())
        .args([NAME, "--exact", "--nocapture"])
        .env("CUZK_ENGINE_FILECOIN_TEST", "1")
        .env(VARIABLE, parameters)
        .status()
        .unwrap();
    assert!(status.success());
}

fn prove_space_time() {
    let parameters = cuzk_filecoin::params_dir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let sectors = [1, 2].map(|number| sealed(folder.path(), number));
    for kind in [ProofKind::Window, ProofKind::Winning] {
        make_parameters(&parameters, kind);
    }
    let config = |dir: &Path| EngineConfig {
        device: Device::Cpu,
        state_dir: Some(state.clone()),
        preload: vec![CircuitId::new(ProofKind::Winning, SectorSize::Kib2)],
        ..EngineConfig::new(dir)
    };
    let elsewhere = Engine::open(config(folder.path())).map(|_| ());
    assert!(matches!(elsewhere, Err(EngineError::ParamsDir { .. })));

    let engine = Engine::open(config(&parameters)).unwrap();
    let porep = sectors[0].request(ProofKind::Porep).unwrap();
    let error = engine.submit(Submission::new(porep)).unwrap_err();
    assert!(matches!(&error, SubmitError::Parameters { .. }), "{error}");
    assert!(error.to_string().contains("stacked-proof-of-replication"));

    let mut jobs = Vec::new();
    for (sector, name) in sectors.iter().zip(["a", "b"]) {
        for kind in [ProofKind::Window, ProofKind::Winning] {
            let request = sector.request(kind).unwrap();
            let id = format!("{kind}-{name}");
            let submission = Submission::new(request.clone()).with_id(id);
            jobs.push((request, engine.submit(submission).unwrap().job));
        }
    }
    for (request, job) in &jobs {
        check(request, &done(&engine, job));
    }
    let status = engine.status();
    assert_eq!(status.parameters.len(), 2);
    for parameters in &status.parameters {
        assert_eq!((parameters.tier, parameters.users), (Tier::Hot, 0));
        assert!(parameters.bytes > 1_000_000);
    }
    refuse_what_is_false(&engine, &sectors[0]);
    wait_for_compiled(&parameters);
    drop(engine);

    // After a restart the results are served, and the compiled circuits are used.
    let engine = Engine::open(config(&parameters)).unwrap();
    for (request, job) in &jobs {
        check(request, &done(&engine, job));
    }
    let window = sectors[1].request(ProofKind::Window).unwrap();
    let again = engine.submit(Submission::new(window.clone())).unwrap();
    check(&window, &done(&engine, &again.job));
    let status = engine.status();
    assert!(
        status
            .parameters
            .iter()
            .all(|parameters| parameters.compiled)
    );
    assert_eq!((status.totals.completed, status.totals.retries), (1, 0));
}

fn sealed(folder: &Path, sector_number: u64) -> SealedSector {
    let options = SealOptions {
        sector_number,
        seed: sector_number,
        ..SealOptions::new(SectorSize::Kib2)
    };
    seal(&folder.join(sector_number.to_string()), options).unwrap()
}

/// Makes a circuit's parameter files, unless they are there from an earlier run.
fn make_parameters(dir: &Path, kind: ProofKind) {
    let id = CircuitId::new(kind, SectorSize::Kib2);
    let path = id.params_path(dir, "params").unwrap();
    if !path.exists() {
        std::fs::create_dir_all(dir).unwrap();
        let waste = ToxicWaste::random(ChaCha20Rng::seed_from_u64(5));
        generate_file(id.blank_circuit().unwrap(), &waste, &path, &mut |_| ()).unwrap();
    }
    let vk = id.params_path(dir, "vk").unwrap();
    Params::map(&path).unwrap().vk().write(vk).unwrap();
    id.write_meta(dir).unwrap();
}

fn done(engine: &Engine, job: &JobId) -> JobResult {
    match engine.wait_blocking(job, Some(Duration::from_secs(300))) {
        Waited::Done(result) => (*result).clone(),
        other => panic!("{job}: {other:?}"),
    }
}

fn check(request: &ProofRequest, result: &JobResult) {
    assert_eq!(result.state, JobState::Completed, "{}", result.message);
    let request = Request::parse(request).unwrap();
    assert_eq!(result.circuit_id(), Some(request.circuit_id()));
    assert!(request.verify(&result.proof).unwrap());
    assert!(result.times.gpu_compute > Duration::ZERO);
    assert!(result.times.synthesis > Duration::ZERO);
    assert!(result.times.total >= result.times.queue_wait);
}

/// A request that cannot be read, and one whose vanilla proof is false in a way that only hashing finds.
fn refuse_what_is_false(engine: &Engine, sector: &SealedSector) {
    let request = sector.request(ProofKind::Window).unwrap();
    let mut cut = request.clone();
    cut.vanilla_proofs[0].truncate(100);
    let submission = Submission {
        priority: Some(Priority::Low),
        ..Submission::new(cut)
    };
    let result = done(engine, &engine.submit(submission).unwrap().job);
    assert_eq!(result.state, JobState::Failed);
    assert!(
        result.message.contains("vanilla_proofs[0]"),
        "{}",
        result.message
    );

    let job = engine
        .submit(Submission::new(falsified(&request)))
        .unwrap()
        .job;
    let result = done(engine, &job);
    assert_eq!(result.state, JobState::Failed);
    // The native witness generator finds it already; a constraint system does not.
    let message = &result.message;
    assert!(message.starts_with("partition 0 of 1"), "{message}");
    assert_eq!(engine.status().failures.len(), 2);
}

/// The request with one bit of a hash changed.
fn falsified(request: &ProofRequest) -> ProofRequest {
    for place in (0..request.vanilla_proofs[0].len()).rev() {
        let mut changed = request.clone();
        changed.vanilla_proofs[0][place] ^= 1;
        let parsed = Request::parse(&changed);
        if parsed.is_ok_and(|parsed| matches!(parsed.verify_vanilla(), Ok(false))) {
            return changed;
        }
    }
    panic!("no bit of the request matters");
}

fn wait_for_compiled(dir: &Path) {
    let until = Instant::now() + Duration::from_secs(120);
    for kind in [ProofKind::Window, ProofKind::Winning] {
        let id = CircuitId::new(kind, SectorSize::Kib2);
        let path = id.params_path(dir, "compiled").unwrap();
        while !path.exists() {
            assert!(Instant::now() < until, "{} does not appear", path.display());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
