//! The daemon's life: starting, configuration, guards, sockets, draining, signals, kill -9.

#![cfg(feature = "serve")]

mod common;

use common::*;
use cuzk_filecoin::ProofKind;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};
use tonic::{Code, Request};

const SIGTERM: i32 = 15;

/// Runs the command to its end: exit code, standard output, standard error.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(CUZK)
        .args(arguments)
        .env("FIL_PROOFS_PARAMETER_CACHE", params_dir())
        .env_remove("RUST_LOG")
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// A daemon that must not start: what it says.
fn refuses(start: Start) -> String {
    let output = start.command().stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn wrong_configurations_are_refused_by_line_and_key() {
    let file = scratch().join("wrong.toml");
    let name = file.to_str().unwrap();
    for (text, expected) in [
        (
            "[daemon]\nlissten = []\n",
            "line 2: daemon.lissten: unknown field",
        ),
        (
            "[memory]\nhost = \"50 gigs\"\n",
            "line 2: memory.host: expected \"auto\" or a size",
        ),
        ("[store]\n\nkeep_for = 1.5\n", "line 3: store.keep_for: "),
    ] {
        std::fs::write(&file, text).unwrap();
        for arguments in [&["config", "check", name][..], &["serve", "--config", name]] {
            let (code, _, message) = run(arguments);
            assert_eq!(code, Some(1));
            assert!(
                message.contains(&format!("{name}: {expected}")),
                "{message}"
            );
        }
    }
}

#[test]
fn the_example_is_a_configuration_and_overrides_show() {
    let (code, example, _) = run(&["config", "example"]);
    assert_eq!(code, Some(0));
    let file = scratch().join("example.toml");
    std::fs::write(&file, example).unwrap();
    let name = file.to_str().unwrap();
    assert_eq!(run(&["config", "check", name]).0, Some(0));
    let set = "queue.max_jobs=7";
    let (_, shown, _) = run(&["config", "show", "--config", name, "--set", set]);
    assert!(shown.contains("max_jobs = 7"), "{shown}");
}

#[test]
fn other_machines_are_not_let_in_by_default() {
    let message = refuses(Start::new("open").listen("0.0.0.0:0"));
    assert!(
        message.contains("daemon.listen: 0.0.0.0:0 can be reached"),
        "{message}"
    );
    let message = refuses(Start::new("open").status_listen("0.0.0.0:0"));
    assert!(message.contains("daemon.status_listen"), "{message}");
}

#[tokio::test]
async fn a_token_is_asked_for_over_tcp() {
    let token = scratch().join("token");
    std::fs::write(&token, "open-sesame\n").unwrap();
    let token = token.to_str().unwrap();
    let set = format!("daemon.token_file={token}");
    // With a token, any address may be listened on.
    let daemon = Start::new("token-state")
        .with(&["--set", &set])
        .listen("0.0.0.0:0")
        .run();
    let port = daemon.grpc.rsplit_once(':').unwrap().1;
    let address = format!("127.0.0.1:{port}");
    let mut client = connect(&format!("http://{address}")).await;
    let refused = client
        .get_status(rpc::GetStatusRequest {})
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    for (shown, right) in [("open-sesame", true), ("open-sesam", false)] {
        let mut request = Request::new(rpc::GetStatusRequest {});
        let value = format!("Bearer {shown}").parse().unwrap();
        request.metadata_mut().insert("authorization", value);
        assert_eq!(client.get_status(request).await.is_ok(), right);
    }
    let (code, _, message) = run(&["status", "--addr", &address]);
    assert!(
        code == Some(1) && message.contains("UNAUTHENTICATED"),
        "{message}"
    );
    let (code, ..) = run(&["status", "--addr", &address, "--token-file", token]);
    assert_eq!(code, Some(0));

    assert_eq!(daemon.get("/healthz").0, 200);
    assert_eq!(daemon.get("/").0, 200);
    assert_eq!(daemon.get("/status").0, 401);
    let header = "Authorization: Bearer open-sesame\r\n";
    assert_eq!(http_get(&daemon.http, "/status", header).0, 200);
    assert!(!daemon.log().contains("open-sesame"));
}

/// A certificate for `name` signed by `issuer`, and its key, PEM.
fn certificate(name: &str, issuer: &rcgen::Issuer<'_, rcgen::KeyPair>) -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    (certificate.pem(), key.serialize_pem())
}

#[tokio::test]
async fn clients_with_certificates_are_served_over_tls_and_others_are_not() {
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let ca = authority.self_signed(&key).unwrap().pem();
    let issuer = rcgen::Issuer::new(authority, key);
    let (server, server_key) = certificate("localhost", &issuer);
    let (own, own_key) = certificate("client", &issuer);
    let folder = scratch().join("tls");
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let ca_file = write("ca.pem", &ca);
    let (own_file, own_key_file) = (write("own.pem", &own), write("own.key", &own_key));
    let sets = [
        format!("daemon.tls.certificate={}", write("server.pem", &server)),
        format!("daemon.tls.key={}", write("server.key", &server_key)),
        format!("daemon.tls.client_ca={ca_file}"),
    ];
    let mut start = Start::new("tls-state").listen("0.0.0.0:0");
    for set in &sets {
        start = start.with(&["--set", set]);
    }
    let daemon = start.run();
    let url = format!(
        "https://localhost:{}",
        daemon.grpc.rsplit_once(':').unwrap().1
    );
    let with = |tls: ClientTlsConfig| {
        let url = url.clone();
        async move {
            let tls = tls.ca_certificate(Certificate::from_pem(&ca));
            let channel = Channel::from_shared(url).unwrap().tls_config(tls).unwrap();
            let mut client = Client::new(channel.connect_lazy());
            client.get_status(rpc::GetStatusRequest {}).await
        }
    };
    let identity = Identity::from_pem(&own, &own_key);
    with.clone()(ClientTlsConfig::new().identity(identity))
        .await
        .unwrap();
    with(ClientTlsConfig::new()).await.unwrap_err();

    let tls = [
        "--ca",
        &ca_file,
        "--certificate",
        &own_file,
        "--key",
        &own_key_file,
    ];
    let arguments = [&["status", "--addr", &url][..], &tls].concat();
    let (code, _, message) = run(&arguments);
    assert_eq!(code, Some(0), "{message}");
    assert_eq!(
        run(&["status", "--addr", &url, "--ca", &ca_file]).0,
        Some(1)
    );
}

#[tokio::test]
async fn unix_sockets_are_served_and_replaced_after_a_crash() {
    use std::os::unix::fs::PermissionsExt;
    let path = scratch().join("cuzk.sock");
    let address = format!("unix://{}", path.display());
    let start = || {
        let set = "daemon.socket_mode=0600";
        Start::new("socket").listen(&address).with(&["--set", set])
    };
    let first = start().run();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut client = connect(&address).await;
    client.get_status(rpc::GetStatusRequest {}).await.unwrap();
    let message = refuses(Start::new("socket-2").listen(&address));
    assert!(message.contains("another process listens"), "{message}");
    drop(first);
    assert!(path.exists(), "a killed daemon leaves its socket");
    let mut second = start().run();
    let (code, ..) = run(&["status", "--addr", &address]);
    assert_eq!(code, Some(0));
    second.signal(SIGTERM);
    assert!(second.ended(Duration::from_secs(20)).success());
    assert!(!path.exists(), "a daemon that ends removes its socket");
}

#[tokio::test]
async fn a_second_signal_ends_the_daemon_at_once() {
    let mut daemon = Start::new("twice").run();
    let mut client = daemon.client().await;
    for seed in 121..126 {
        client
            .submit_proof(message(ProofKind::Winning, seed))
            .await
            .unwrap();
    }
    daemon.signal(SIGTERM);
    while daemon.get("/readyz").1 != "draining\n" {
        std::thread::sleep(Duration::from_millis(5));
    }
    daemon.signal(SIGTERM);
    let status = daemon.ended(Duration::from_secs(3));
    assert_eq!(status.code(), Some(1));
    assert!(daemon.log().contains("second signal"), "{}", daemon.log());
}

#[tokio::test]
async fn systemd_is_told_of_readiness_life_and_end() {
    let path = scratch().join("notify.sock");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut daemon = Start::new("notify")
        .with(&["--set", "params.preload=wpost-2k"])
        .variable("NOTIFY_SOCKET", path.to_str().unwrap())
        .variable("WATCHDOG_USEC", "200000")
        .run();
    let wait_for = |wanted: &str| {
        let mut buffer = [0; 4096];
        loop {
            let length = socket.recv(&mut buffer).unwrap();
            let text = std::str::from_utf8(&buffer[..length]).unwrap();
            if text.lines().any(|line| line == wanted) {
                return;
            }
        }
    };
    wait_for("READY=1");
    wait_for("WATCHDOG=1");
    wait_for("WATCHDOG=1");
    daemon.signal(SIGTERM);
    wait_for("STOPPING=1");
    assert!(daemon.ended(Duration::from_secs(20)).success());
}

#[tokio::test]
async fn the_command_is_a_client() {
    let daemon = Start::new("client").run();
    let at = ["--addr", &daemon.grpc];
    let input = scratch().join("client.json");
    let input = input.to_str().unwrap();
    let proof = scratch().join("client.proof");
    let ok = |arguments: &[&str]| {
        let (code, printed, message) = run(&[arguments, &at].concat());
        assert_eq!(code, Some(0), "{arguments:?}: {message}{}", daemon.log());
        printed
    };
    let json = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&ok(&[arguments, &["--json"]].concat())).unwrap()
    };
    run(&["sector", "fabricate", "--kind", "window", "--out", input]);
    let submit = [
        "submit",
        "--input",
        input,
        "--request-id",
        "mine",
        "--priority",
        "low",
    ];
    let job = json(&submit)["job"].as_str().unwrap().to_owned();
    let out = proof.to_str().unwrap();
    let done = json(&["await", &job, "--timeout", "60", "--out", out]);
    assert_eq!(done["proof_bytes"], 192);
    assert_eq!(std::fs::read(&proof).unwrap().len(), 192);
    let again = json(&[&submit[..], &["--wait"]].concat());
    assert_eq!(again["job"], job.as_str());
    assert_eq!(
        run(&["verify", "--input", input, "--proof", out]).0,
        Some(0)
    );
    assert_eq!(json(&["cancel", &job])["was_running"], false);
    assert_eq!(json(&["preload", "wpost-2k"])["circuit"], "wpost-2k");
    assert_eq!(json(&["evict", "wpost-2k"])["circuit"], "wpost-2k");
    assert_eq!(json(&["status"])["total_proofs_completed"], 1);
    assert!(ok(&["status"]).contains("WINDOW_POST_PARTITION"));
    assert!(ok(&["metrics"]).contains("cuzk_jobs_total{state=\"completed\"} 1"));

    let bench = [
        "bench",
        "pipeline",
        "--count",
        "4",
        "--concurrency",
        "2",
        "--mix",
        "wpost-2k=3,winning-2k=1",
    ];
    let report = json(&bench);
    assert_eq!(report["completed"], 4, "{report}");
    assert!(report["proofs_per_hour"].as_f64().unwrap() > 0.0);
    assert!(
        report["latency_seconds"]["winning-2k"]["p99"]
            .as_f64()
            .unwrap()
            > 0.0
    );

    let (code, _, message) = run(&["await", "nothing", "--addr", &daemon.grpc]);
    assert!(code == Some(1) && message.contains("UNKNOWN"), "{message}");
    let (code, _, message) = run(&["status", "--addr", "127.0.0.1:1"]);
    assert!(
        code == Some(1) && message.contains("127.0.0.1:1"),
        "{message}"
    );
}

#[test]
fn a_plan_is_made_for_a_machine_that_is_not_there() {
    let machine = ["plan", "--devices", "2", "--cores", "32", "--json"];
    let (code, printed, message) = run(&[&machine[..], &["--jobs", "porep-32g=4"]].concat());
    assert_eq!(code, Some(0), "{message}");
    let plan: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(plan["completed"], 4, "{plan}");
    assert!(plan["host_peak_bytes"].as_u64() <= plan["host_limit_bytes"].as_u64());
    let small = ["--jobs", "wpost-32g=1", "--host-memory", "16GiB"];
    let (code, _, message) = run(&[&machine[..], &small].concat());
    assert!(
        code == Some(1) && message.contains("wpost-32g needs"),
        "{message}"
    );
}
