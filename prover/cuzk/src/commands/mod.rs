//! One module per command.

mod circuit;
pub mod compiled;
mod gpu;
pub mod params;
#[cfg(feature = "serve")]
mod plan;
mod prove;
mod sector;
#[cfg(feature = "serve")]
mod serve;
mod verify;

use crate::arguments::{Arguments, Command};
use crate::{bench, error::Error, output::Output};
use cuzk_filecoin::Request;
use std::path::{Path, PathBuf};

/// Runs the command.
pub fn run(arguments: Arguments, output: &Output) -> Result<(), Error> {
    match arguments.command {
        Command::Prove(prove) => prove::run(&prove, output),
        Command::Verify(verify) => verify::run(&verify, output),
        Command::Params(params) => params::run(&params, output),
        Command::Sector(sector) => sector::run(&sector, output),
        Command::Gpu(gpu) => gpu::run(&gpu, output),
        Command::Circuit(circuit) => circuit::run(&circuit, output),
        Command::Bench(bench) => bench::run(&bench, output),
        #[cfg(feature = "serve")]
        Command::Serve(serve) => serve::run(&serve, output),
        #[cfg(feature = "serve")]
        Command::Plan(plan) => plan::run(&plan, output),
        #[cfg(feature = "serve")]
        Command::Config(config) => serve::run_config(&config, output),
        #[cfg(feature = "serve")]
        Command::Client(command) => crate::client::run(&command, output),
    }
}

/// The folder of the parameter files. Filecoin's code reads it from the environment once a process,
/// so that another folder means another process: this one is replaced by itself.
pub fn params_dir(option: Option<&Path>) -> Result<PathBuf, Error> {
    let Some(wanted) = option else {
        return Ok(cuzk_filecoin::params_dir()?);
    };
    let wanted = std::path::absolute(wanted).map_err(Error::file(wanted))?;
    const VARIABLE: &str = "FIL_PROOFS_PARAMETER_CACHE";
    if std::env::var_os(VARIABLE).as_deref() == Some(wanted.as_os_str()) {
        return Ok(wanted);
    }
    let this = std::env::current_exe().map_err(Error::file(Path::new("the running program")))?;
    let mut again = std::process::Command::new(&this);
    again
        .args(std::env::args_os().skip(1))
        .env(VARIABLE, &wanted);
    let failure = std::os::unix::process::CommandExt::exec(&mut again);
    Err(Error::File {
        path: this,
        source: failure,
    })
}

/// Opens and checks an input file; where the miner is given, the sector must be theirs.
pub fn open_request(path: &Path, miner: Option<u64>) -> Result<Request, Error> {
    let bytes = std::fs::read(path).map_err(Error::file(path))?;
    match miner {
        Some(id) => Request::from_file_bytes_of(&bytes, id),
        None => Request::from_file_bytes(&bytes),
    }
    .map_err(Error::input(path))
}

/// Refuses a path whose folder does not exist, before any work is done for it.
pub fn check_folder(path: &Path) -> Result<(), Error> {
    let folder = folder_of(path);
    match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Error::file(folder)(
            std::io::ErrorKind::NotADirectory.into(),
        )),
        Err(error) => Err(Error::file(path)(error)),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|f| !f.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Writes a file so that a cut-off run leaves nothing that passes for it.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    use std::io::Write;
    let mut file = tempfile::NamedTempFile::new_in(folder_of(path)).map_err(Error::file(path))?;
    file.write_all(bytes)
        .and_then(|()| file.as_file().sync_all())
        .map_err(Error::file(path))?;
    file.persist(path).map_err(|e| Error::File {
        path: path.to_owned(),
        source: e.error,
    })?;
    Ok(())
}
