//! What systemd is told: readiness, the end, and signs of life (the `sd_notify` protocol).

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The service manager's socket, if this process was started by one.
pub struct Notify {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Notify {
    /// From `NOTIFY_SOCKET` and `WATCHDOG_USEC`.
    pub fn from_environment() -> Self {
        let socket = std::env::var_os("NOTIFY_SOCKET").and_then(|name| {
            let address = address(&name)?;
            Some((UnixDatagram::unbound().ok()?, address))
        });
        let watchdog = std::env::var("WATCHDOG_USEC")
            .ok()
            .and_then(|text| text.parse().ok())
            .filter(|usec| *usec > 0)
            .map(Duration::from_micros);
        Notify { socket, watchdog }
    }

    /// Sends one state. Nothing depends on its arrival.
    pub fn send(&self, state: &str) {
        if let Some((socket, address)) = &self.socket
            && let Err(error) = socket.send_to_addr(state.as_bytes(), address)
        {
            tracing::debug!("the service manager was not told {state:?}: {error}");
        }
    }

    /// How often to send `WATCHDOG=1`: twice in the time that the manager waits for it.
    pub fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|limit| limit / 2)
    }
}

/// A path, or an abstract name after `@`.
fn address(name: &OsStr) -> Option<SocketAddr> {
    match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok(),
        [b'/', ..] => SocketAddr::from_pathname(name).ok(),
        _ => None,
    }
}
