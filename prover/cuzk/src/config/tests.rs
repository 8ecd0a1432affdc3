//! The configuration as its users write it.

use super::overrides::{all_keys, variable_of};
use super::*;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("cuzk.toml"))
}

fn refused(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn the_example_holds_the_defaults_and_names_every_key() {
    let example = parse(EXAMPLE).unwrap();
    assert_eq!(example, Config::default());
    for key in all_keys() {
        let name = key.rsplit('.').next().unwrap();
        assert!(
            EXAMPLE
                .lines()
                .any(|l| l.starts_with(&format!("{name} = "))),
            "the example does not set {key}"
        );
    }
}

#[test]
fn what_is_shown_can_be_read_again() {
    let mut config = Config::default();
    config.daemon.listen = vec!["unix:///run/cuzk.sock".to_owned().try_into().unwrap()];
    config.memory.host = Budget::Bytes(50 << 30);
    assert_eq!(parse(&config.to_toml()).unwrap(), config);
}

#[test]
fn unknown_keys_name_line_and_key() {
    let message = refused("[daemon]\n# where\nlissten = [\"127.0.0.1:1\"]\n");
    assert!(
        message.starts_with("cuzk.toml: line 3: daemon.lissten: unknown field"),
        "{message}"
    );
    let message = refused("[memory]\nhost = \"auto\"\n\n[momery]\nhost = \"auto\"\n");
    assert!(
        message.starts_with("cuzk.toml: line 4: momery: unknown field"),
        "{message}"
    );
}

#[test]
fn unparsable_values_name_line_and_key() {
    for (text, starts) in [
        (
            "[memory]\n\nhost = \"fifty GiB\"\n",
            "cuzk.toml: line 3: memory.host: expected \"auto\" or a size",
        ),
        (
            "[daemon]\ndrain_timeout = \"soon\"",
            "cuzk.toml: line 2: daemon.drain_timeout: expected a duration",
        ),
        (
            "[daemon]\nlisten = [\"nowhere\"]",
            "cuzk.toml: line 2: daemon.listen: expected host:port",
        ),
        (
            "[params]\npreload = [\n  \"porep-32g\",\n  \"porep-33g\",\n]",
            "cuzk.toml: line 2: params.preload: unknown circuit",
        ),
        (
            "[devices]\nuse = \"abacus\"",
            "cuzk.toml: line 2: devices.use: ",
        ),
        (
            "[daemon]\nsocket_mode = \"rw\"",
            "cuzk.toml: line 2: daemon.socket_mode: expected permissions",
        ),
        ("[daemon\n", "cuzk.toml: line 1: daemon: "),
    ] {
        let message = refused(text);
        assert!(message.starts_with(starts), "{message}");
    }
}

#[test]
fn variables_and_flags_override_the_file() {
    let environment = |name: &str, value: &str| {
        Override::from_environment([(name.to_owned(), value.to_owned())].into_iter())
    };
    let mut all = environment("CUZK_DAEMON_LISTEN", "127.0.0.1:1, unix:///tmp/s").unwrap();
    all.extend(environment("CUZK_QUEUE_MAX_JOBS", "7").unwrap());
    all.push(Override::flag("device", "devices.use", "cpu"));
    all.push(Override::assignment("memory.host=1GiB").unwrap());
    let config = Config::load(None, &all).unwrap();
    assert_eq!(config.daemon.listen.len(), 2);
    assert_eq!(config.queue.max_jobs, 7);
    assert_eq!(config.devices.r#use.0, "cpu");
    assert_eq!(config.memory.host, Budget::Bytes(1 << 30));

    assert_eq!(environment("CUZK_ADDR", "x").unwrap(), []);
    let message = environment("CUZK_DAEMON_LISSTEN", "x")
        .unwrap_err()
        .to_string();
    assert_eq!(message, "CUZK_DAEMON_LISSTEN: no such key");
    let wrong = Config::load(None, &environment("CUZK_QUEUE_MAX_JOBS", "many").unwrap());
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "CUZK_QUEUE_MAX_JOBS: queue.max_jobs: expected a whole number, found \"many\""
    );
    let wrong = Config::load(None, &[Override::assignment("daemon=1").unwrap()]);
    assert!(wrong.unwrap_err().to_string().contains("is a section"));
}

#[test]
fn every_key_has_its_own_variable() {
    let mut names: Vec<_> = all_keys().iter().map(|k| variable_of(k)).collect();
    names.sort();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn other_machines_need_a_certificate_or_a_token() {
    let load = |changes: &[&str]| {
        let changes: Vec<_> = changes
            .iter()
            .map(|c| Override::assignment(c).unwrap())
            .collect();
        Config::load(None, &changes)
    };
    for open in [
        "0.0.0.0:9820",
        "[::]:9820",
        "192.168.1.5:9820",
        "prover.example:9820",
    ] {
        for key in ["daemon.listen", "daemon.status_listen"] {
            let message = load(&[&format!("{key}={open}")]).unwrap_err().to_string();
            assert!(message.starts_with(&format!("{key}: {open}")), "{message}");
        }
        load(&[&format!("daemon.listen={open}"), "daemon.token_file=/t"]).unwrap();
        let mut tls = vec!["daemon.tls.certificate=/c", "daemon.tls.key=/k"];
        let listen = format!("daemon.listen={open}");
        tls.push(&listen);
        // A certificate of ours alone does not tell clients apart.
        load(&tls).unwrap_err();
        tls.push("daemon.tls.client_ca=/a");
        load(&tls).unwrap();
        load(&tls[1..]).unwrap_err();
    }
    for local in [
        "127.0.0.1:1",
        "127.8.8.8:1",
        "[::1]:1",
        "localhost:1",
        "unix:///tmp/s",
    ] {
        load(&[&format!("daemon.listen={local}")]).unwrap();
    }
}
