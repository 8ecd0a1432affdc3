//! Running commands from the repository's root.

use std::path::PathBuf;
use std::process::Command;

/// What a job returns; the message is printed by `main`.
pub type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The workspace's root folder.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// A command in the repository's root.
pub fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// The cargo that runs this task.
pub fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    command(&program, arguments)
}

/// Runs a command with inherited output; a non-zero status is an error that names the command.
pub fn run(command: &mut Command) -> Outcome {
    let status = command
        .status()
        .map_err(|e| format!("{}: {e}", line(command)))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{} ended with {status}", line(command)).into())
    }
}

/// Runs a command and returns its standard output; standard error is inherited.
pub fn output(command: &mut Command) -> Result<String, Box<dyn std::error::Error>> {
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|e| format!("{}: {e}", line(command)))?;
    if !output.status.success() {
        return Err(format!("{} ended with {}", line(command), output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|a| a.to_string_lossy().into_owned()));
    words.join(" ")
}
