//! The compiled circuit that lies beside a circuit's parameters.

use crate::error::Error;
use cuzk_circuit::{CompiledCircuit, CompiledError};
use cuzk_filecoin::CircuitId;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tracing::{info, warn};

/// The extension of a compiled circuit's file.
const EXTENSION: &str = "compiled";

/// Where a circuit's compiled form is kept, and under which name.
pub struct Place {
    id: CircuitId,
    /// The file.
    pub path: PathBuf,
    identity: String,
}

impl Place {
    /// The place beside the parameters in `dir`.
    pub fn beside_params(id: CircuitId, dir: &Path) -> Result<Self, Error> {
        Ok(Place {
            id,
            path: id.params_path(dir, EXTENSION)?,
            identity: id.params_file_stem()?,
        })
    }

    /// The compiled circuit, if a good file is there. A bad one is reported and not used.
    pub fn open(&self) -> Option<Arc<CompiledCircuit>> {
        match CompiledCircuit::open(&self.path, &self.identity) {
            Ok(compiled) => Some(Arc::new(compiled)),
            Err(error) => {
                let missing = matches!(
                    &error,
                    CompiledError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound
                );
                match missing {
                    true => info!("no compiled circuit at {}", self.path.display()),
                    false => warn!("the compiled circuit is not used: {error}"),
                }
                None
            }
        }
    }

    /// Records the circuit. No file is touched.
    pub fn record(&self) -> Result<CompiledCircuit, Error> {
        // Counting costs little, and recording alone would be one more instance of every circuit.
        Ok(self.id.blank_circuit()?.surveyed(&self.identity)?.0)
    }

    /// Records the circuit on a thread of its own and saves it for the next proof.
    pub fn record_in_background(self) -> Recording {
        let path = self.path.clone();
        let work = move || {
            let blank = self.id.blank_circuit()?;
            let (_, origin) = blank.compiled(&self.path, &self.identity)?;
            match origin {
                cuzk_circuit::Origin::Recorded { saved, .. } => Ok(saved?),
                cuzk_circuit::Origin::Opened => Ok(()),
            }
        };
        let thread = thread::Builder::new().name("cuzk-record".into());
        Recording {
            thread: thread.spawn(work).map_err(Error::file(&path)),
            path,
        }
    }
}

/// A circuit that is being recorded.
pub struct Recording {
    path: PathBuf,
    thread: Result<JoinHandle<Result<(), Error>>, Error>,
}

impl Recording {
    /// Waits until the file is there. What goes wrong costs only the time of the next proof, so it is
    /// reported and is no error.
    pub fn finish(self) {
        let outcome = self.thread.and_then(|thread| {
            let panicked = |_| Err(Error::file(&self.path)(std::io::Error::other("a panic")));
            thread.join().unwrap_or_else(panicked)
        });
        match outcome {
            Ok(()) => info!("compiled circuit saved at {}", self.path.display()),
            Err(error) => warn!("the circuit was not compiled: {error}"),
        }
    }
}
