//! The daemon's configuration: a TOML file, then `CUZK_…` variables, then flags; the last one wins.

mod overrides;
mod value;

pub use overrides::Override;
pub use value::{Budget, Bytes, Span};

use crate::net::Address;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The documented example, which says what every key means and holds the defaults.
pub const EXAMPLE: &str = include_str!("../../cuzk.example.toml");

/// Everything that can be configured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where the daemon listens and how it stops.
    pub daemon: Daemon,
    /// Which devices prove.
    pub devices: Devices,
    /// Where the parameters are and which are loaded at start.
    pub params: Params,
    /// How much memory may be used.
    pub memory: Memory,
    /// How much may wait, and in which order.
    pub queue: Queue,
    /// How much is done at a time.
    pub pipeline: Pipeline,
    /// Where jobs and results are journaled and how long results are kept.
    pub store: Store,
}

/// `[daemon]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Daemon {
    /// gRPC: `host:port` and `unix:///path`.
    pub listen: Vec<Address>,
    /// HTTP: status, metrics, health and the live page; empty for none.
    pub status_listen: Vec<Address>,
    /// Permissions of unix sockets, octal.
    pub socket_mode: SocketMode,
    /// How long running jobs may take to finish after SIGTERM.
    pub drain_timeout: Span,
    /// Connections at a time on each listener.
    pub max_connections: u32,
    /// Bytes of request messages being received at a time, over all connections.
    pub max_receiving: Bytes,
    /// A file with the token that TCP clients must show; empty for none.
    pub token_file: PathBuf,
    /// Certificates.
    pub tls: Tls,
}

impl Default for Daemon {
    fn default() -> Self {
        Daemon {
            listen: vec![Address::Tcp("127.0.0.1:9820".to_owned())],
            status_listen: vec![Address::Tcp("127.0.0.1:9821".to_owned())],
            socket_mode: SocketMode(0o660),
            drain_timeout: Span(std::time::Duration::from_secs(600)),
            max_connections: 1024,
            max_receiving: Bytes(2 << 30),
            token_file: PathBuf::new(),
            tls: Tls::default(),
        }
    }
}

/// `[daemon.tls]`; all empty for plain text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// PEM: the server's certificate and its chain.
    pub certificate: PathBuf,
    /// PEM: the certificate's key.
    pub key: PathBuf,
    /// PEM: who signs the clients' certificates; empty where clients need none.
    pub client_ca: PathBuf,
}

impl Tls {
    /// Whether TLS is on.
    pub fn is_on(&self) -> bool {
        !self.certificate.as_os_str().is_empty()
    }
}

/// `[devices]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Devices {
    /// `auto`, `cpu`, `cuda` or `cuda:0,1`.
    pub r#use: DeviceName,
}

impl Default for Devices {
    fn default() -> Self {
        Devices {
            r#use: DeviceName("auto".to_owned()),
        }
    }
}

/// `[params]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The folder of the parameter files; empty for Filecoin's own rule.
    pub directory: PathBuf,
    /// Circuits whose parameters are loaded at start.
    pub preload: Vec<CircuitName>,
    /// Whether parameters made for tests serve circuits of production, too.
    pub allow_test: bool,
}

/// `[memory]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// Of the host.
    pub host: Budget,
    /// Of each device.
    pub device: Budget,
}

impl Default for Memory {
    fn default() -> Self {
        Memory {
            host: Budget::Auto,
            device: Budget::Auto,
        }
    }
}

/// `[queue]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Queue {
    /// Jobs that wait or run at a time.
    pub max_jobs: u32,
    /// Bytes of their inputs.
    pub max_bytes: Bytes,
    /// After this long a lower priority gets a turn.
    pub ageing: Span,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            max_jobs: 10_000,
            max_bytes: Bytes(16 << 30),
            ageing: Span(std::time::Duration::from_secs(60)),
        }
    }
}

/// `[pipeline]`; zero leaves a number to the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pipeline {
    /// Partitions that each device has started at once.
    pub partitions_in_flight: u32,
    /// Partitions synthesised at once.
    pub synthesis_workers: u32,
    /// Synthesised partitions that wait for a device.
    pub synthesised_ahead: u32,
    /// Whether circuits are compiled when that saves synthesis.
    pub compile_circuits: bool,
}

impl Default for Pipeline {
    fn default() -> Self {
        Pipeline {
            partitions_in_flight: 0,
            synthesis_workers: 0,
            synthesised_ahead: 0,
            compile_circuits: true,
        }
    }
}

/// `[store]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Store {
    /// The folder of the journal and of the inputs of jobs.
    pub directory: PathBuf,
    /// Results kept.
    pub keep_results: u32,
    /// How long a result is kept.
    pub keep_for: Span,
    /// Bytes of results kept.
    pub keep_bytes: Bytes,
}

impl Default for Store {
    fn default() -> Self {
        Store {
            directory: PathBuf::from("/var/lib/cuzk"),
            keep_results: 20_000,
            keep_for: Span(std::time::Duration::from_secs(86_400)),
            keep_bytes: Bytes(256 << 20),
        }
    }
}

/// A value that is kept as text and checked when it is read.
macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $check:ty) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(pub String);

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                match text.parse::<$check>() {
                    Ok(_) => Ok($name(text)),
                    Err(error) => Err(error.to_string()),
                }
            }
        }
    };
}
checked_text!(
    /// A device choice as `cuzk_prover::Device` reads it.
    DeviceName, cuzk_prover::Device
);
checked_text!(
    /// A circuit's name, such as `porep-32g`.
    CircuitName, cuzk_filecoin::CircuitId
);

/// Permission bits, written in octal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SocketMode(pub u32);

impl TryFrom<String> for SocketMode {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match u32::from_str_radix(&text, 8) {
            Ok(mode) if mode <= 0o777 => Ok(SocketMode(mode)),
            _ => Err(format!(
                "expected permissions in octal such as \"0660\", found {text:?}"
            )),
        }
    }
}

impl From<SocketMode> for String {
    fn from(mode: SocketMode) -> String {
        format!("{:04o}", mode.0)
    }
}

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line of the file is wrong.
    #[error("{}: line {line}: {key}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// The key, with its section.
        key: String,
        /// What was expected and what was found.
        message: String,
    },
    /// A variable or a flag is wrong.
    #[error("{origin}: {message}")]
    Override {
        /// The variable or the flag.
        origin: String,
        /// What was expected and what was found.
        message: String,
    },
    /// Values contradict one another.
    #[error("{key}: {message}")]
    Value {
        /// The key, with its section.
        key: &'static str,
        /// What is wrong.
        message: String,
    },
}

impl Config {
    /// Reads a file, then applies overrides in order, and checks the whole.
    ///
    /// # Errors
    /// The file cannot be read; a key is unknown or a value unparsable; values contradict one another.
    pub fn load(path: Option<&Path>, overrides: &[Override]) -> Result<Self, ConfigError> {
        let mut config = match path {
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|source| ConfigError::File {
                    path: path.to_owned(),
                    source,
                })?;
                Self::parse(&text, path)?
            }
            None => Config::default(),
        };
        for change in overrides {
            config = change.apply(config)?;
        }
        config.check()?;
        Ok(config)
    }

    /// Reads the text of a file; `path` is for messages.
    fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| {
            let at = error.span().unwrap_or(0..0);
            ConfigError::Line {
                path: path.to_owned(),
                line: line_of(text, &at),
                key: key_of(text, &at),
                message: error.message().trim().to_owned(),
            }
        })
    }

    /// The text of a file that gives this configuration.
    pub fn to_toml(&self) -> String {
        // Every type here has a TOML form.
        toml::to_string(self).unwrap_or_default()
    }

    fn check(&self) -> Result<(), ConfigError> {
        let daemon = &self.daemon;
        let wrong = |key, message: &str| {
            Err(ConfigError::Value {
                key,
                message: message.to_owned(),
            })
        };
        if daemon.listen.is_empty() {
            return wrong("daemon.listen", "at least one address is needed");
        }
        if daemon.max_connections == 0 {
            return wrong("daemon.max_connections", "at least 1 is needed");
        }
        if daemon.max_receiving.0 < crate::net::MESSAGE_LIMIT as u64 {
            return wrong("daemon.max_receiving", "one message may have 256MiB");
        }
        if self.queue.max_jobs == 0 {
            return wrong("queue.max_jobs", "at least 1 is needed");
        }
        let empty = |path: &PathBuf| path.as_os_str().is_empty();
        if empty(&daemon.tls.certificate) != empty(&daemon.tls.key) {
            return wrong("daemon.tls", "certificate and key go together");
        }
        if !daemon.tls.is_on() && !empty(&daemon.tls.client_ca) {
            return wrong("daemon.tls.client_ca", "needs certificate and key");
        }
        let guarded = !empty(&daemon.tls.client_ca) || !empty(&daemon.token_file);
        for (key, addresses) in [
            ("daemon.listen", &daemon.listen),
            ("daemon.status_listen", &daemon.status_listen),
        ] {
            if let Some(address) = addresses.iter().find(|a| !guarded && !a.is_local()) {
                return Err(ConfigError::Value {
                    key,
                    message: format!(
                        "{address} can be reached from other machines, whose users must be told apart: set daemon.tls.client_ca or daemon.token_file, or use a loopback address"
                    ),
                });
            }
        }
        Ok(())
    }
}

/// The line, counted from 1, in which a span of a text begins.
fn line_of(text: &str, at: &Range<usize>) -> usize {
    1 + text.get(..at.start).map_or(0, |t| t.matches('\n').count())
}

/// The key at or before a span: its section, a dot, and what stands before `=` in its line.
fn key_of(text: &str, at: &Range<usize>) -> String {
    let line = line_of(text, at);
    let mut section = "";
    let mut key = "";
    for content in text.lines().take(line).map(str::trim) {
        if let Some(name) = content.strip_prefix('[').filter(|_| !content.contains('=')) {
            section = name.trim_end().trim_end_matches(']').trim();
            key = "";
        } else if let Some((name, _)) = content
            .split_once('=')
            .filter(|_| !content.starts_with('#'))
        {
            key = name.trim();
        }
    }
    match (section, key) {
        ("", key) => key.to_owned(),
        (section, "") => section.to_owned(),
        (section, key) => format!("{section}.{key}"),
    }
}

#[cfg(test)]
mod tests;
