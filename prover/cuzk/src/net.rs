//! Addresses of the daemon, as its configuration and its clients write them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The largest message in either direction, in bytes.
pub const MESSAGE_LIMIT: usize = 256 << 20;

/// Where a daemon listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Address {
    /// `host:port`.
    Tcp(String),
    /// `unix:///path`.
    Unix(PathBuf),
}

impl Address {
    /// Whether only this machine's users can reach it. Names other than `localhost` are taken for other
    /// machines' addresses, whatever they stand for.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Unix(_) => true,
            Address::Tcp(address) => {
                let host = address.rsplit_once(':').map_or("", |(host, _)| host);
                let host = host.trim_start_matches('[').trim_end_matches(']');
                host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected host:port or unix:///path, found {text:?}");
        if let Some(path) = text.strip_prefix("unix:") {
            // Both spellings that gRPC knows: unix:///absolute and unix:path.
            let path = Path::new(path.strip_prefix("//").unwrap_or(path));
            return if path.file_name().is_some() {
                Ok(Address::Unix(path.to_owned()))
            } else {
                Err(wrong())
            };
        }
        let text = text
            .strip_prefix("http://")
            .or(text.strip_prefix("https://"))
            .unwrap_or(text)
            .trim_end_matches('/');
        match text.rsplit_once(':') {
            Some((host, port))
                if !host.is_empty()
                    && port.parse::<u16>().is_ok()
                    && !host.contains(['/', ' '])
                    && (host.starts_with('[') || !host.contains(':')) =>
            {
                Ok(Address::Tcp(text.to_owned()))
            }
            _ => Err(wrong()),
        }
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> String {
        address.to_string()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => f.write_str(address),
            Address::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

/// An error and what caused it, in one line.
pub fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_alike() {
        for text in [
            "127.0.0.1:9820",
            "[::1]:9820",
            "prover:1",
            "unix:///run/curio/cuzk.sock",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!(
            "unix:relative.sock".parse(),
            Ok(Address::Unix("relative.sock".into()))
        );
        assert_eq!(
            "http://127.0.0.1:9820/".parse(),
            Ok(Address::Tcp("127.0.0.1:9820".into()))
        );
    }

    #[test]
    fn what_is_no_address_is_quoted() {
        for text in [
            "",
            "9820",
            ":9820",
            "host:",
            "host:99999",
            "::1:80",
            "unix://",
            "a b:1",
            "h/p:1",
        ] {
            let message = text.parse::<Address>().unwrap_err();
            assert!(message.contains(&format!("{text:?}")), "{message}");
        }
    }
}
