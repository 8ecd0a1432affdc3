//! A daemon in a process of its own, with 2 KiB parameters, for the tests that are its clients.

#![allow(dead_code, reason = "every test file uses its own part")]

use cuzk_filecoin::fabricate::{Options, fabricate};
use cuzk_filecoin::{CircuitId, ProofKind, ProofRequest, SectorSize};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tonic::transport::{Channel, Endpoint};

/// The service as its `.proto` defines it.
#[allow(missing_docs)]
pub mod rpc {
    tonic::include_proto!("cuzk.v1");
}

#[allow(unused_imports, reason = "every test file uses its own part")]
pub use rpc::await_proof_response::Status as Ended;
pub type Client = rpc::proving_engine_client::ProvingEngineClient<Channel>;

/// The command under test.
pub const CUZK: &str = env!("CARGO_BIN_EXE_cuzk");

/// A folder of this test program, emptied when it is first asked for.
pub fn scratch() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let program = std::env::current_exe().unwrap();
        let name = program.file_name().unwrap().to_str().unwrap();
        let name = name.rsplit_once('-').map_or(name, |(name, _)| name);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    })
}

/// Parameters of the small circuits, made once and kept under `target/`.
pub fn params_dir() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("daemon-parameters");
        std::fs::create_dir_all(&folder).unwrap();
        for kind in ["winning", "window"] {
            let made = Command::new(CUZK)
                .args(["params", "generate", "--if-missing", "--json"])
                .args(["--kind", kind, "--seed", &"07".repeat(32)])
                .env("FIL_PROOFS_PARAMETER_CACHE", &folder)
                .output()
                .unwrap();
            assert!(
                made.status.success(),
                "{}",
                String::from_utf8_lossy(&made.stderr)
            );
        }
        for kind in [ProofKind::Porep, ProofKind::Update] {
            hollow_params(kind, &folder);
        }
        folder
    })
}

/// A parameter file of the right shape whose points are holes: enough to accept a job, not to prove it.
/// Real ones have a gigabyte.
fn hollow_params(kind: ProofKind, folder: &Path) {
    let path = |kind, extension| {
        CircuitId::new(kind, SectorSize::Kib2)
            .params_path(folder, extension)
            .unwrap()
    };
    // Inputs with the constant one, and the lengths of h, l, a and b.
    let (inputs, counts): (u32, [u32; 4]) = match kind {
        ProofKind::Porep => (40, [(1 << 22) - 1, 2_685_673, 2_674_948, 685_522]),
        _ => (5, [(1 << 21) - 1, 1_703_569, 1_697_194, 444_404]),
    };
    let real = std::fs::read(path(ProofKind::Winning, "params")).unwrap();
    let mut head = real[..864].to_vec();
    head.extend(inputs.to_be_bytes());
    head.extend(&real[868..868 + 96 * inputs as usize]);
    std::fs::write(path(kind, "vk"), &head).unwrap();
    std::fs::write(path(kind, "meta"), b"{\"sector_size\":2048}").unwrap();
    let target = path(kind, "params");
    let file = std::fs::File::create(&target).unwrap();
    use std::os::unix::fs::FileExt;
    file.write_all_at(&head, 0).unwrap();
    let mut at = head.len() as u64;
    let [h, l, a, b] = counts;
    for (count, size) in [(h, 96), (l, 96), (a, 96), (b, 96), (b, 192)] {
        file.write_all_at(&count.to_be_bytes(), at).unwrap();
        at += 4 + u64::from(count) * size;
    }
    file.set_len(at).unwrap();
}

/// A running daemon; killed when dropped.
pub struct Daemon {
    pub child: Child,
    pub grpc: String,
    pub http: String,
    log: PathBuf,
}

/// What a daemon is started with.
pub struct Start {
    arguments: Vec<String>,
    listen: String,
    status_listen: String,
    variables: Vec<(String, String)>,
    state: PathBuf,
}

impl Start {
    /// On free ports of the loopback device, with a journal in `state` below the scratch folder.
    pub fn new(state: &str) -> Self {
        let state = scratch().join(state);
        let arguments = [
            "serve",
            "--json",
            "--device",
            "cpu",
            "--set",
            "pipeline.compile_circuits=false",
        ];
        Start {
            arguments: arguments.map(str::to_owned).to_vec(),
            listen: "127.0.0.1:0".to_owned(),
            status_listen: "127.0.0.1:0".to_owned(),
            variables: Vec::new(),
            state,
        }
    }

    /// At another address for gRPC.
    pub fn listen(self, address: &str) -> Self {
        Start {
            listen: address.to_owned(),
            ..self
        }
    }

    /// At another address for HTTP.
    pub fn status_listen(self, address: &str) -> Self {
        Start {
            status_listen: address.to_owned(),
            ..self
        }
    }

    pub fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments
            .extend(arguments.iter().map(|s| (*s).to_owned()));
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(CUZK);
        command
            .args(&self.arguments)
            .args([
                "--listen",
                &self.listen,
                "--status-listen",
                &self.status_listen,
            ])
            .arg("--state-dir")
            .arg(&self.state)
            .env("FIL_PROOFS_PARAMETER_CACHE", params_dir())
            .env("RUST_LOG", "cuzk=info,cuzk_engine=info")
            .env_remove("NOTIFY_SOCKET")
            .envs(self.variables.iter().map(|(n, v)| (n, v)));
        command
    }

    /// Starts it and waits until it listens.
    pub fn run(self) -> Daemon {
        let log = self.state.with_extension("log");
        let file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        let mut child = self
            .command()
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut address = |what: &str| {
            let line = lines
                .next()
                .unwrap_or_else(|| panic!("{}", std::fs::read_to_string(&log).unwrap()))
                .unwrap();
            let value: Value = serde_json::from_str(&line).unwrap();
            let text = value["listening"].as_str().unwrap_or_default();
            let address = text.strip_prefix(what).unwrap_or_else(|| panic!("{line}"));
            address.trim_start_matches(" on ").to_owned()
        };
        let (grpc, http) = (address("gRPC"), address("HTTP"));
        Daemon {
            child,
            grpc,
            http,
            log,
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Daemon {
    pub async fn client(&self) -> Client {
        connect(&format!("http://{}", self.grpc)).await
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// The status code and the body of a GET request.
    pub fn get(&self, path: &str) -> (u16, String) {
        http_get(&self.http, path, "")
    }

    pub fn status(&self) -> Value {
        let (code, body) = self.get("/status");
        assert_eq!(code, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Waits until a number of the status' counters is at least `least`.
    pub async fn counter_reaches(&self, name: &str, least: u64) {
        let start = Instant::now();
        while self.status()["counters"][name].as_u64().unwrap() < least {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "{name} < {least}: {}\n{}",
                self.status(),
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub fn signal(&self, signal: i32) {
        let id = i32::try_from(self.child.id()).unwrap();
        let sent = Command::new("kill")
            .args([format!("-{signal}"), id.to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Waits for the process to end.
    pub fn ended(&mut self, within: Duration) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < within, "still runs\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

pub async fn connect(url: &str) -> Client {
    let channel = Endpoint::from_shared(url.to_owned())
        .unwrap()
        .connect()
        .await
        .unwrap();
    Client::new(channel)
        .max_decoding_message_size(256 << 20)
        .max_encoding_message_size(512 << 20)
}

pub fn http_get(address: &str, path: &str, header: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\n{header}Connection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    (
        code,
        if chunked {
            unchunk(body)
        } else {
            body.to_owned()
        },
    )
}

fn unchunk(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        whole.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    whole
}

/// A fabricated 2 KiB request as the contract's clients send it, without an id.
pub fn message(kind: ProofKind, seed: u64) -> rpc::SubmitProofRequest {
    let options = Options {
        seed,
        ..Options::default()
    };
    of_request(ProofRequest::from(
        fabricate(kind, SectorSize::Kib2, &options).unwrap(),
    ))
}

pub fn of_request(request: ProofRequest) -> rpc::SubmitProofRequest {
    let proof_kind = match request.kind {
        ProofKind::Porep => 1,
        ProofKind::Update => 2,
        ProofKind::Window => 3,
        ProofKind::Winning => 4,
    };
    rpc::SubmitProofRequest {
        request_id: String::new(),
        proof_kind,
        sector_size: request.sector_size,
        registered_proof: request.registered_proof,
        priority: 0,
        vanilla_proof: request.vanilla_proof,
        vanilla_proofs: request.vanilla_proofs,
        sector_number: request.sector_number,
        miner_id: request.miner_id,
        randomness: request.randomness,
        partition_index: request.partition_index,
        comm_r_old: request.comm_r_old,
        comm_r_new: request.comm_r_new,
        comm_d_new: request.comm_d_new,
    }
}

/// The same request under an id.
pub fn named(message: &rpc::SubmitProofRequest, id: &str) -> rpc::SubmitProofRequest {
    rpc::SubmitProofRequest {
        request_id: id.to_owned(),
        ..message.clone()
    }
}

pub fn prove_request(submit: rpc::SubmitProofRequest) -> rpc::ProveRequest {
    rpc::ProveRequest {
        submit: Some(submit),
    }
}

/// Has the command check a proof with our verifier and with Filecoin's own.
pub fn verify(kind: ProofKind, seed: u64, proof: &[u8]) {
    let folder = tempfile::tempdir_in(scratch()).unwrap();
    let (input, file) = (
        folder.path().join("input.json"),
        folder.path().join("proof"),
    );
    let options = Options {
        seed,
        ..Options::default()
    };
    let request = ProofRequest::from(fabricate(kind, SectorSize::Kib2, &options).unwrap());
    std::fs::write(&input, request.to_json().unwrap()).unwrap();
    std::fs::write(&file, proof).unwrap();
    let verified = Command::new(CUZK)
        .args(["verify", "--json", "--input"])
        .arg(&input)
        .arg("--proof")
        .arg(&file)
        .env("FIL_PROOFS_PARAMETER_CACHE", params_dir())
        .output()
        .unwrap();
    assert!(
        verified.status.success(),
        "{}",
        String::from_utf8_lossy(&verified.stderr)
    );
}
