//! `cuzk serve` and `cuzk config`.

use super::params_dir;
use crate::arguments::daemon::{Config as ConfigCommand, ConfigSource, Serve};
use crate::config::{Config, ConfigError, EXAMPLE, Override};
use crate::{error::Error, output::Output};
use serde_json::json;

/// Runs the daemon.
pub fn run(arguments: &Serve, output: &Output) -> Result<(), Error> {
    let flags = [
        ("listen", "daemon.listen", &arguments.listen),
        (
            "status-listen",
            "daemon.status_listen",
            &arguments.status_listen,
        ),
        ("device", "devices.use", &arguments.device),
        ("params-dir", "params.directory", &arguments.params_dir),
        ("state-dir", "store.directory", &arguments.state_dir),
    ];
    let mut config = load(&arguments.config, |overrides| {
        for (flag, key, value) in flags {
            overrides.extend(value.iter().map(|text| Override::flag(flag, key, text)));
        }
    })?;
    let wanted = &config.params.directory;
    let dir = params_dir(Some(wanted.as_path()).filter(|d| !d.as_os_str().is_empty()))?;
    config.params.directory = dir.clone();
    tracing::info!("configuration:\n{}", config.to_toml());
    crate::serve::run(&config, &dir, |line| {
        output.result(&json!({"listening": line}), line);
    })?;
    Ok(())
}

/// The configuration of a file, the environment, `more`, and `--set`, in this order.
fn load(
    source: &ConfigSource,
    more: impl FnOnce(&mut Vec<Override>),
) -> Result<Config, ConfigError> {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut overrides = Override::from_environment(variables)?;
    more(&mut overrides);
    for text in &source.set {
        overrides.push(Override::assignment(text)?);
    }
    Config::load(source.config.as_deref(), &overrides)
}

/// Runs `cuzk config`.
pub fn run_config(command: &ConfigCommand, output: &Output) -> Result<(), Error> {
    match command {
        ConfigCommand::Check { file } => {
            Config::load(Some(file), &[])?;
            let text = format!("{}: all right", file.display());
            output.result(&json!({"file": file, "valid": true}), &text);
        }
        ConfigCommand::Show(source) => {
            let config = load(source, |_| {})?;
            let value = serde_json::to_value(&config).unwrap_or_default();
            output.result(&value, config.to_toml().trim_end());
        }
        ConfigCommand::Example => {
            output.result(&json!({"toml": EXAMPLE}), EXAMPLE.trim_end());
        }
    }
    Ok(())
}
