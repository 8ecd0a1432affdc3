//! What an engine is told when it is opened.

use std::{path::PathBuf, time::Duration};

use cuzk_filecoin::CircuitId;
use cuzk_prover::Device;

/// How much of a resource may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Budget {
    /// What the machine has, less a share for everything else: four fifths of the host memory that the machine and its control group grant,
    /// and nine tenths of each device's memory.
    #[default]
    Auto,
    /// This many bytes.
    Bytes(u64),
}

/// How much may wait. What does not fit is refused with the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// The most jobs that are accepted and not finished.
    pub jobs: usize,
    /// The most input bytes of those jobs.
    pub bytes: u64,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            jobs: 10_000,
            bytes: 16 << 30,
        }
    }
}

/// How many results are kept for clients that have not asked yet or ask again. Results that were
/// fetched go first, then the oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptResults {
    /// The most results.
    pub count: usize,
    /// The longest time.
    pub age: Duration,
    /// The most bytes of proofs and messages.
    pub bytes: u64,
}

impl Default for KeptResults {
    fn default() -> Self {
        Self {
            count: 20_000,
            age: Duration::from_secs(24 * 3600),
            bytes: 256 << 20,
        }
    }
}

/// What an engine is told when it is opened. [`EngineConfig::new`] has defaults for all of it.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The devices that prove.
    pub device: Device,
    /// The folder of the parameter files. The official verifiers read their keys from the folder of
    /// [`cuzk_filecoin::params_dir`], so that another folder is refused.
    pub params_dir: PathBuf,
    /// Where accepted jobs, their inputs and finished results are kept. Without it they are lost
    /// when the process ends.
    pub state_dir: Option<PathBuf>,
    /// Submissions are refused when less than this many bytes would stay free on the disk of
    /// `state_dir`: running jobs need some for their results.
    pub disk_reserve: u64,
    /// Host memory for parameters, witnesses and requests. A twentieth of it is for memory that waits to
    /// be used again, the rest is reserved before it is used.
    pub host_memory: Budget,
    /// Memory of each device.
    pub device_memory: Budget,
    /// Partitions that each device has started at once; 0: two on a GPU, one on the CPU.
    pub partitions_in_flight: usize,
    /// Partitions that are synthesised at once; 0: by the number of cores.
    pub synthesis_workers: usize,
    /// Partitions that may be synthesised and wait for a device; 0: as many as workers and devices.
    pub synthesised_ahead: usize,
    /// How much may wait.
    pub queue: QueueLimits,
    /// How many results are kept.
    pub results: KeptResults,
    /// A priority level that has waited this long without a partition being started gets one ahead
    /// of higher levels, so that nothing starves.
    pub ageing: Duration,
    /// Circuits whose parameters are loaded at once and kept as long as there is room.
    pub preload: Vec<CircuitId>,
    /// Whether proofs are made from compiled circuits, which are kept beside the parameters and
    /// recorded in the background where they are not there.
    pub compile_circuits: bool,
    /// Whether parameters that are marked as made for tests serve circuits of production, too: whoever
    /// made them can forge proofs, and no public network accepts theirs.
    pub allow_test_parameters: bool,
    /// How many events a slow subscriber may lag behind before it loses some.
    pub event_buffer: usize,
}

impl EngineConfig {
    /// Defaults, with parameters in `params_dir`.
    pub fn new(params_dir: impl Into<PathBuf>) -> Self {
        Self {
            device: Device::Auto,
            params_dir: params_dir.into(),
            state_dir: None,
            disk_reserve: 64 << 20,
            host_memory: Budget::Auto,
            device_memory: Budget::Auto,
            partitions_in_flight: 0,
            synthesis_workers: 0,
            synthesised_ahead: 0,
            queue: QueueLimits::default(),
            results: KeptResults::default(),
            ageing: Duration::from_secs(60),
            preload: Vec::new(),
            compile_circuits: true,
            allow_test_parameters: false,
            event_buffer: 4096,
        }
    }
}
