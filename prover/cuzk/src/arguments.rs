//! What the command line accepts.

#[cfg(feature = "serve")]
pub mod daemon;
mod kernels;

pub use kernels::{BenchKernels, KernelWork};

use clap::{Args, Parser, Subcommand};
use cuzk_filecoin::{ProofKind, SectorSize};
use cuzk_prover::Device;
use std::path::PathBuf;

/// Groth16 proofs for Filecoin: from a C1 file or vanilla proofs to verified proof bytes.
#[derive(Parser)]
#[command(
    name = "cuzk",
    version,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage."
)]
pub struct Arguments {
    /// Print one JSON object on standard output instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Log more: -v info, -vv debug, -vvv trace (RUST_LOG takes precedence)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Prove an input file and verify the proof before it is written
    Prove(Prove),
    /// Verify a proof with our verifier and with Filecoin's own
    Verify(Verify),
    /// Make, describe or check Groth16 parameter files
    #[command(subcommand)]
    Params(Params),
    /// Make test sectors and their input files
    #[command(subcommand)]
    Sector(Sector),
    /// Show and test CUDA devices
    #[command(subcommand)]
    Gpu(Gpu),
    /// Describe the circuits
    #[command(subcommand)]
    Circuit(Circuits),
    /// Measure one part of the work
    #[command(subcommand)]
    Bench(Bench),
    /// Run the daemon: gRPC service cuzk.v1.ProvingEngine, status over HTTP
    #[cfg(feature = "serve")]
    Serve(daemon::Serve),
    /// Predict a machine's throughput, latencies and memory by the daemon's own scheduler
    #[cfg(feature = "serve")]
    Plan(daemon::Plan),
    /// Check or show the daemon's configuration
    #[cfg(feature = "serve")]
    #[command(subcommand)]
    Config(daemon::Config),
    #[cfg(feature = "serve")]
    #[command(flatten)]
    Client(daemon::Client),
}

#[derive(Args)]
pub struct Prove {
    /// C1 JSON (bare or wrapped by SectorNum/Phase1Out/SectorSize), or a request file with vanilla proofs
    #[arg(long, visible_alias = "c1", value_name = "FILE")]
    pub input: PathBuf,
    /// The miner's actor id, e.g. 1000 for f01000: a C1 file's replica id must then be of this miner
    #[arg(long, value_name = "ID")]
    pub miner: Option<u64>,
    /// Where the proof bytes go: 192 a partition, in partition order
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Where to prove: auto, cpu, cuda or cuda:0,1
    #[arg(long, default_value = "auto")]
    pub device: Device,
    #[command(flatten)]
    pub memory: Memory,
    /// Print how the devices' memory is used, what is streamed and the expected time, before the first proof
    #[arg(long)]
    pub plan: bool,
    /// Folder of the parameter files [default: FIL_PROOFS_PARAMETER_CACHE or /var/tmp/filecoin-proof-parameters]
    #[arg(long, value_name = "DIR")]
    pub params_dir: Option<PathBuf>,
    /// Synthesise the whole circuit instead of evaluating its compiled form
    #[arg(long)]
    pub direct: bool,
    /// Write the timeline as a Chrome/Perfetto trace
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Prove production circuits (512 MiB sectors and larger) with parameters made for tests, too
    #[arg(long)]
    pub allow_test_parameters: bool,
}

#[derive(Args)]
pub struct Verify {
    /// The input file that was proved
    #[arg(long, visible_alias = "c1", value_name = "FILE")]
    pub input: PathBuf,
    /// The miner's actor id, e.g. 1000 for f01000: a C1 file's replica id must then be of this miner
    #[arg(long, value_name = "ID")]
    pub miner: Option<u64>,
    /// The proof bytes
    #[arg(long, value_name = "FILE")]
    pub proof: PathBuf,
    /// Folder of the parameter files
    #[arg(long, value_name = "DIR")]
    pub params_dir: Option<PathBuf>,
}

/// The circuit that a command is about.
#[derive(Args, Clone)]
pub struct Circuit {
    /// porep, winning, window or update
    #[arg(long, default_value = "porep")]
    pub kind: ProofKind,
    /// 2KiB, 8MiB, 512MiB, 32GiB or 64GiB
    #[arg(long, default_value = "2KiB")]
    pub sector_size: SectorSize,
}

#[derive(Subcommand)]
pub enum Params {
    /// Make parameters for tests and private networks (whoever makes them can forge proofs)
    Generate(Generate),
    /// Print a parameter file's key, counts and sizes
    Info(ParamsFile),
    /// Read a parameter file completely: sizes, encodings, curve and subgroup of every point
    Check(ParamsFile),
}

#[derive(Args)]
pub struct Generate {
    #[command(flatten)]
    pub circuit: Circuit,
    /// Folder for the .params, .vk and .meta files
    #[arg(long, value_name = "DIR")]
    pub params_dir: Option<PathBuf>,
    /// Do nothing when the file is there and well-formed
    #[arg(long)]
    pub if_missing: bool,
    /// 64 hexadecimal digits: the same seed gives the same file [default: the system's randomness]
    #[arg(long, value_name = "HEX")]
    pub seed: Option<String>,
    /// Where to compute: auto, cpu, cuda or cuda:0; the file does not depend on it
    #[arg(long, default_value = "auto")]
    pub device: Device,
    /// The circuit compiled with C; recorded and kept there if it is missing [default: recorded for a CUDA device]
    #[arg(long, value_name = "FILE")]
    pub circuit_file: Option<PathBuf>,
}

#[derive(Args)]
pub struct ParamsFile {
    /// A .params file
    pub file: PathBuf,
}

#[derive(Subcommand)]
pub enum Sector {
    /// Really seal a small sector and write its input file
    Seal(Seal),
    /// Make satisfying test data of any sector size in seconds, without sealing
    Fabricate(Fabricate),
}

#[derive(Args)]
pub struct Seal {
    #[command(flatten)]
    pub circuit: Circuit,
    /// The input file for `cuzk prove`
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Keep the sealed sector here [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
}

#[derive(Args)]
pub struct Fabricate {
    #[command(flatten)]
    pub circuit: Circuit,
    /// The input file for `cuzk prove`
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// The same seed gives the same sector
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Subcommand)]
pub enum Gpu {
    /// List the devices that the driver shows
    Info,
    /// Check primitives, field axioms, transforms and sums on every device against the CPU
    Selftest,
}

#[derive(Subcommand)]
pub enum Circuits {
    /// Count a circuit: constraints, variables, coefficients, templates, and the share of each part
    Info(CircuitInfo),
}

#[derive(Args)]
pub struct CircuitInfo {
    #[command(flatten)]
    pub circuit: Circuit,
    /// Write the shares as a treemap, one HTML file without further parts
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Subcommand)]
pub enum Bench {
    /// Time circuit synthesis alone on all its paths: direct, compiled, native, cuda
    Synth(BenchSynth),
    /// Time whole proofs of a synthetic circuit, without synthesis
    Groth16(BenchGroth16),
    /// Send a stream of jobs through a daemon: proofs per hour, latencies, device busy share
    #[cfg(feature = "serve")]
    Pipeline(daemon::BenchPipeline),
    /// Fabricate a sector, make its parameters on the device, prove all partitions and verify them
    Full(BenchFull),
    /// Time field arithmetic, transforms, the quotient and sums on a CUDA device, with resident data
    Kernels(BenchKernels),
}

#[derive(Args)]
pub struct BenchFull {
    #[command(flatten)]
    pub circuit: Circuit,
    /// Where to prove: auto, cpu, cuda or cuda:0,1
    #[arg(long, default_value = "auto")]
    pub device: Device,
    /// Prove only this many partitions; Filecoin's own verifier wants all
    #[arg(long, value_name = "N", value_parser = positive)]
    pub partitions: Option<usize>,
    /// Partitions that are in the works at once [default: two a device]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub in_flight: Option<usize>,
    /// The circuit compiled with C; recorded and kept there if it is missing [default: recorded anew]
    #[arg(long, value_name = "FILE")]
    pub circuit_file: Option<PathBuf>,
    /// Folder for the verifying key [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub params_dir: Option<PathBuf>,
    /// Write the timeline as a Chrome/Perfetto trace
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Determines the sector, the parameters and all randomness
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Args)]
pub struct BenchGroth16 {
    /// log2 of the number of rows
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(6..=28))]
    pub log2: u32,
    /// Share of the witness that is 0 or 1
    #[arg(long, visible_alias = "zero-one", default_value_t = 0.5)]
    pub bits: f64,
    /// Share of the variables that may occur in B
    #[arg(long, visible_alias = "density", default_value_t = 0.5)]
    pub b_density: f64,
    /// Counted proofs
    #[arg(long, default_value_t = 5, value_parser = positive)]
    pub proofs: usize,
    /// Proofs in flight at once when throughput is measured
    #[arg(long, default_value_t = 2, value_parser = positive)]
    pub batch: usize,
    /// Where to prove: auto, cpu, cuda or cuda:0,1
    #[arg(long, visible_alias = "devices", default_value = "auto")]
    pub device: Device,
    #[command(flatten)]
    pub memory: Memory,
    /// Fail when the median of what a proof takes besides the device's own time exceeds this
    #[arg(long, value_name = "MS")]
    pub overhead_limit: Option<f64>,
    /// Determines the circuit and all randomness
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// What may be taken of the devices' memory.
#[derive(Args, Clone, Copy)]
pub struct Memory {
    /// Take at most this much memory on each CUDA device, e.g. 8GiB; what does not fit is streamed
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub vram_limit: Option<u64>,
}

/// A number of bytes with an optional unit: KiB, MiB, GiB, TiB, or their first letters.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        unit => return Err(format!("unknown unit {unit:?}; KiB, MiB, GiB or TiB")),
    };
    let count: u64 = digits.parse().map_err(|error| format!("{error}"))?;
    let bytes = count.checked_mul(1 << shift);
    bytes.ok_or_else(|| "more than 64 bits can hold".into())
}

/// A count of at least one.
fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".into()),
        Ok(count) => Ok(count),
        Err(error) => Err(format!("{error}")),
    }
}

#[derive(Args)]
pub struct BenchSynth {
    /// An input file [default: a fabricated sector of --kind and --sector-size]
    #[arg(long, visible_alias = "input", value_name = "FILE", conflicts_with_all = ["kind", "sector_size"])]
    pub c1: Option<PathBuf>,
    #[command(flatten)]
    pub circuit: Circuit,
    /// Counted runs, after one warm-up
    #[arg(long, default_value_t = 5, value_parser = positive)]
    pub runs: usize,
    /// The paths to run: direct, compiled, native, cuda [default: all that there are]
    #[arg(long, value_delimiter = ',', value_name = "PATHS", value_parser = ["direct", "compiled", "native", "cuda"])]
    pub paths: Vec<String>,
    /// Keep this build's command and results under this name
    #[arg(long, value_name = "NAME")]
    pub save: Option<String>,
    /// Run interleaved with the build saved under this name and print the ratio with its spread
    #[arg(long, value_name = "NAME")]
    pub compare: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(bytes("17"), Ok(17));
        assert_eq!(bytes("4GiB"), Ok(4 << 30));
        assert_eq!(bytes("4g"), Ok(4 << 30));
        assert_eq!(bytes("512MiB"), Ok(512 << 20));
        for wrong in ["", "GiB", "4 GiB", "4XB", "-1", "17000000TiB"] {
            assert!(bytes(wrong).is_err(), "{wrong:?}");
        }
    }
}
