//! Why a command failed.

use std::path::{Path, PathBuf};

/// Why a command failed. The message names the file or field, what was found and what was expected.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be used.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// An input file is wrong, or Filecoin's own code refused it.
    #[error(transparent)]
    Request(#[from] cuzk_filecoin::RequestError),
    /// An input file is wrong.
    #[error("{path}: {source}", path = path.display())]
    Input {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        source: cuzk_filecoin::RequestError,
    },
    /// A test sector could not be made.
    #[error(transparent)]
    Fabricate(#[from] cuzk_filecoin::fabricate::FabricateError),
    /// A circuit could not be synthesised.
    #[error(transparent)]
    Circuit(#[from] cuzk_circuit::CircuitError),
    /// A circuit could not be compiled.
    #[error(transparent)]
    Compiled(#[from] cuzk_circuit::CompiledError),
    /// The parameters are for tests, the circuit is for production.
    #[error(
        "{circuit}: the parameters in {dir} were made for tests: whoever made them can forge proofs; --allow-test-parameters proves with them", dir = dir.display()
    )]
    TestParameters {
        /// The circuit.
        circuit: cuzk_filecoin::CircuitId,
        /// The folder of the parameters.
        dir: PathBuf,
    },
    /// Filecoin's own verifier refused what was proved.
    #[error("Filecoin's own verifier refused the proof of {circuit}")]
    Refused {
        /// The circuit.
        circuit: cuzk_filecoin::CircuitId,
    },
    /// Two ways of synthesis disagree.
    #[error("the path '{path}' yields other values than direct synthesis")]
    Differs {
        /// The path.
        path: &'static str,
    },
    /// Parameters are wrong or could not be made.
    #[error(transparent)]
    Params(#[from] cuzk_prover::ParamsError),
    /// Parameters could not be made.
    #[error(transparent)]
    Setup(#[from] cuzk_prover::setup::SetupError),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] cuzk_prover::DeviceError),
    /// A CUDA device or its driver failed.
    #[error(transparent)]
    Runtime(#[from] cuzk_prover::gpu::RuntimeError),
    /// A CUDA device computes wrongly.
    #[error("device {ordinal}: {source}")]
    Selftest {
        /// Which one.
        ordinal: usize,
        /// What it got wrong.
        source: cuzk_prover::gpu::selftest::SelftestError,
    },
    /// Something could not be measured, or came out wrong.
    #[error(transparent)]
    Measure(#[from] cuzk_prover::gpu::measure::MeasureError),
    /// The proof was not made.
    #[error(transparent)]
    Prove(#[from] cuzk_prover::ProveError),
    /// Proof bytes are wrong.
    #[error("{path}: {source}", path = path.display())]
    Proof {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: cuzk_prover::ProofError,
    },
    /// Verification could not be done.
    #[error(transparent)]
    Verify(#[from] cuzk_prover::VerifyError),
    /// A proof was checked and is wrong.
    #[error("{path}: the proof is not valid (our verifier: {ours}, Filecoin's: {official})", path = path.display())]
    NotValid {
        /// The proof file.
        path: PathBuf,
        /// What our verifier says.
        ours: bool,
        /// What Filecoin's verifier says.
        official: bool,
    },
    /// The synthesised public inputs are not those that the verifier computes.
    #[error(
        "partition {partition}: the circuit's public inputs differ from the verifier's at input {input}"
    )]
    PublicInputs {
        /// Which partition.
        partition: usize,
        /// The first input that differs, counted from 0 without the constant one.
        input: usize,
    },
    /// The daemon's configuration is wrong.
    #[cfg(feature = "serve")]
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    /// The daemon did not start, or ended early.
    #[cfg(feature = "serve")]
    #[error(transparent)]
    Serve(#[from] crate::serve::ServeError),
    /// There is no prediction.
    #[cfg(feature = "serve")]
    #[error(transparent)]
    Plan(#[from] cuzk_engine::plan::PlanError),
    /// A daemon could not be asked, or refused.
    #[cfg(feature = "serve")]
    #[error(transparent)]
    Client(#[from] crate::client::ClientError),
    /// A proof took too much time besides the device's own.
    #[error("{found:.2} ms a proof besides the device's own time, {limit:.2} ms allowed")]
    Overhead {
        /// The median in milliseconds.
        found: f64,
        /// The limit in milliseconds.
        limit: f64,
    },
    /// An option's value is wrong in a way that only the command can tell.
    #[error("--{option}: expected {expected}, found {found}")]
    Option {
        /// Which option.
        option: &'static str,
        /// What it takes.
        expected: String,
        /// What was given.
        found: String,
    },
}

impl Error {
    /// An error of the file system at a path.
    pub fn file(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
        move |source| Error::File {
            path: path.to_owned(),
            source,
        }
    }

    /// An error in an input file.
    pub fn input(path: &Path) -> impl Fn(cuzk_filecoin::RequestError) -> Error + '_ {
        move |source| Error::Input {
            path: path.to_owned(),
            source,
        }
    }
}
