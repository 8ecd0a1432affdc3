//! What the daemon and the commands that talk to one accept.

use super::{Circuit, positive};
use crate::config::Bytes;
use clap::{Args, Subcommand};
use cuzk_filecoin::CircuitId;
use std::path::PathBuf;

#[derive(Args)]
pub struct Serve {
    #[command(flatten)]
    pub config: ConfigSource,
    /// gRPC addresses, host:port or unix:///path, separated by commas (daemon.listen)
    #[arg(long, value_name = "ADDRESSES")]
    pub listen: Option<String>,
    /// HTTP addresses, separated by commas; empty for none (daemon.status_listen)
    #[arg(long, value_name = "ADDRESSES")]
    pub status_listen: Option<String>,
    /// auto, cpu, cuda or cuda:0,1 (devices.use)
    #[arg(long)]
    pub device: Option<String>,
    /// Folder of the parameter files (params.directory)
    #[arg(long, value_name = "DIR")]
    pub params_dir: Option<String>,
    /// Folder of the journal (store.directory)
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<String>,
}

/// Where a configuration comes from: a file, then the environment, then flags.
#[derive(Args)]
pub struct ConfigSource {
    /// The configuration file [default: the built-in defaults, see `cuzk config example`]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Override one key: section.key=value
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

#[derive(Subcommand)]
pub enum Config {
    /// Check a configuration file: unknown keys and wrong values are named with their line
    Check {
        /// The file
        file: PathBuf,
    },
    /// Print the configuration in force: the file, CUZK_ variables and --set applied
    Show(ConfigSource),
    /// Print the documented example with all defaults
    Example,
}

#[derive(Args)]
pub struct Plan {
    /// GPUs; 0 proves on the CPU
    #[arg(long, default_value_t = 1)]
    pub devices: usize,
    /// Memory of each GPU
    #[arg(long, default_value = "140GiB")]
    pub device_memory: Bytes,
    /// Cores
    #[arg(long, default_value_t = 16, value_parser = positive)]
    pub cores: usize,
    /// Host memory that the daemon may use
    #[arg(long, default_value = "128GiB")]
    pub host_memory: Bytes,
    /// Circuits and how many jobs of each: porep-32g=100,wpost-32g=10
    #[arg(long, value_delimiter = ',', value_parser = share, default_value = "porep-32g=100")]
    pub jobs: Vec<(CircuitId, usize)>,
    /// Jobs an hour [default: all at once]
    #[arg(long, value_name = "PER_HOUR")]
    pub rate: Option<f64>,
    /// Partitions that each device has started at once [default: two on a GPU, one on the CPU]
    #[arg(long, value_parser = positive)]
    pub partitions_in_flight: Option<usize>,
    /// One core's seconds for a partition's synthesis, as measured [default: published numbers by circuit]
    #[arg(long, value_name = "SECONDS")]
    pub synthesis_seconds: Option<f64>,
    /// A device's seconds for a partition, as measured [default: published numbers by circuit]
    #[arg(long, value_name = "SECONDS")]
    pub prove_seconds: Option<f64>,
}

/// What is asked of a running daemon.
#[derive(Subcommand)]
pub enum Client {
    /// Submit an input file to a daemon
    Submit(Submit),
    /// Wait for a daemon's job and fetch its proof
    Await(Await),
    /// Cancel a daemon's job
    Cancel(OfJob),
    /// Show a daemon's devices, queues and parameters
    Status(OfDaemon),
    /// Load a circuit's parameters in a daemon
    Preload(OfCircuit),
    /// Drop a circuit's parameters from a daemon's memory
    Evict(OfCircuit),
    /// Print a daemon's metrics in Prometheus' format
    Metrics(OfDaemon),
}

/// How to reach a daemon.
#[derive(Args, Clone)]
pub struct Connection {
    /// host:port, https://host:port or unix:///path [default: CUZK_ADDR or 127.0.0.1:9820]
    #[arg(long, value_name = "ADDRESS")]
    pub addr: Option<String>,
    /// A file with the daemon's bearer token [default: CUZK_TOKEN_FILE]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Who signed the daemon's certificate, PEM
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// This client's certificate, PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,
    /// The key of this client's certificate, PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,
}

#[derive(Args)]
pub struct Submit {
    #[command(flatten)]
    pub connection: Connection,
    /// C1 JSON (bare or wrapped by SectorNum/Phase1Out/SectorSize), or a request file with vanilla proofs
    #[arg(long, visible_alias = "c1", value_name = "FILE")]
    pub input: PathBuf,
    /// The miner's actor id, e.g. 1000 for f01000
    #[arg(long, value_name = "ID")]
    pub miner: Option<u64>,
    /// The sector's number, where the input file does not state it
    #[arg(long, value_name = "NUMBER")]
    pub sector: Option<u64>,
    /// A name for the job: the same name again is the same job
    #[arg(long, value_name = "ID", default_value = "")]
    pub request_id: String,
    /// low, normal, high or critical [default: by kind]
    #[arg(long, value_parser = priority)]
    pub priority: Option<i32>,
    /// Wait for the proof
    #[arg(long)]
    pub wait: bool,
    /// Where the proof bytes go
    #[arg(long, value_name = "FILE", requires = "wait")]
    pub out: Option<PathBuf>,
}

/// The contract's number of a priority.
fn priority(text: &str) -> Result<i32, String> {
    let names = ["low", "normal", "high", "critical"];
    match (1..).zip(names).find(|(_, name)| *name == text) {
        Some((number, _)) => Ok(number),
        None => Err(format!("expected one of {}", names.join(", "))),
    }
}

#[derive(Args)]
pub struct Await {
    #[command(flatten)]
    pub connection: Connection,
    /// The job's id, as `cuzk submit` printed it
    pub job: String,
    /// Seconds to wait [default: for ever]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub timeout: Option<usize>,
    /// Where the proof bytes go
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Args)]
pub struct OfJob {
    #[command(flatten)]
    pub connection: Connection,
    /// The job's id
    pub job: String,
}

#[derive(Args)]
pub struct OfDaemon {
    #[command(flatten)]
    pub connection: Connection,
}

#[derive(Args)]
pub struct OfCircuit {
    #[command(flatten)]
    pub connection: Connection,
    /// The circuit, such as porep-32g
    pub circuit: CircuitId,
}

#[derive(Args)]
pub struct BenchPipeline {
    #[command(flatten)]
    pub connection: Connection,
    /// Jobs in all
    #[arg(long, default_value_t = 20, value_parser = positive)]
    pub count: usize,
    /// Jobs in the daemon at a time
    #[arg(long, default_value_t = 4, value_parser = positive)]
    pub concurrency: usize,
    /// Circuits and their shares: porep-32g=2,wpost-32g=1 [default: one of --kind and --sector-size]
    #[arg(long, value_delimiter = ',', value_parser = share, conflicts_with_all = ["kind", "sector_size", "input"])]
    pub mix: Vec<(CircuitId, usize)>,
    /// Input files instead of fabricated sectors, in turn
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "sector_size"])]
    pub input: Vec<PathBuf>,
    #[command(flatten)]
    pub circuit: Circuit,
    /// Jobs a minute at most [default: as fast as --concurrency allows]
    #[arg(long, value_name = "PER_MINUTE")]
    pub rate: Option<f64>,
    /// Determines the sectors and the order of the mix
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// `porep-32g=2`, or `porep-32g` for a share of 1.
fn share(text: &str) -> Result<(CircuitId, usize), String> {
    let (circuit, count) = text.split_once('=').unwrap_or((text, "1"));
    let circuit = circuit.parse().map_err(|e| format!("{e}"))?;
    Ok((circuit, positive(count)?))
}
