//! Text, JSON, progress and logs: everything the command prints.

use crate::error::Error;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::time::Duration;

/// How results are printed.
pub struct Output {
    json: bool,
}

impl Output {
    /// JSON or text on standard output; progress and logs go to standard error.
    pub fn new(json: bool) -> Self {
        Output { json }
    }

    /// Prints the result: `value` as one JSON line, or `text`.
    pub fn result(&self, value: &Value, text: &str) {
        if self.json {
            print_line(&value.to_string());
        } else {
            print_line(text);
        }
    }

    /// Prints something that is told before the result: on standard error if the result is JSON.
    pub fn note(&self, text: &str) {
        if self.json {
            eprintln!("{text}");
        } else {
            println!("{text}");
        }
    }

    /// Prints a failure on standard error (and as JSON on standard output when asked for).
    pub fn failure(&self, error: &Error) {
        if self.json {
            print_line(&json!({"error": error.to_string()}).to_string());
        }
        eprintln!("cuzk: {error}");
    }

    /// A spinner for work above a second; silent where standard error is no terminal.
    pub fn progress(&self, message: impl Into<String>) -> Progress {
        let message = message.into();
        tracing::info!("{message}");
        if self.json || !std::io::stderr().is_terminal() {
            return Progress(ProgressBar::hidden());
        }
        let style = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]");
        let bar = ProgressBar::new_spinner().with_message(message);
        let bar = style.map_or(bar.clone(), |s| bar.with_style(s));
        bar.enable_steady_tick(Duration::from_millis(120));
        Progress(bar)
    }

    /// A bar for work of a known amount; silent where standard error is no terminal.
    #[cfg(feature = "serve")]
    pub fn bar(&self, total: u64, of: &str) -> ProgressBar {
        if self.json || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let style =
            ProgressStyle::with_template("{bar:40} {pos} of {len} {msg} [{elapsed}, {eta} left]");
        let bar = ProgressBar::new(total).with_message(of.to_owned());
        style.map_or(bar.clone(), |s| bar.with_style(s))
    }
}

/// Prints a line; whoever closed the pipe does not want it.
fn print_line(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Bytes for people: two hexadecimal digits each.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Removes its line when dropped.
pub struct Progress(ProgressBar);

impl Progress {
    /// Says what is being done now.
    pub fn now(&self, message: impl Into<String>) {
        let message = message.into();
        tracing::info!("{message}");
        self.0.set_message(message);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Logs to standard error: warnings, or more with -v; `RUST_LOG` overrides.
pub fn start_log(verbose: u8) {
    let level = ["warn", "info", "debug", "trace"][usize::from(verbose.min(3))];
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
}
