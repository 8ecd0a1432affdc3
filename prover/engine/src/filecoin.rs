//! The real work: Filecoin's circuits on the provers of `cuzk-prover`. The only module that calls either.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
};

use cuzk_circuit::{Assignment, CompiledCircuit, Scalar, Witness};
use cuzk_filecoin::{CircuitId, ProofRequest, Request, RequestError, SectorSize};
use cuzk_kernels::runtime::RuntimeError;
use cuzk_prover::{Device, DeviceError, Params, PendingProof, ProveError, Prover, cuda};
use ff::Field;
use rand_core::OsRng;

use crate::{
    Budget, EngineConfig, EngineError,
    executor::{
        CancelToken, DeviceSpec, Diagnosis, Executor, Footprint, Loaded, Parsed, PartitionProof,
        TaskError,
    },
    memory::host_limit,
};

/// Filecoin's proofs on this machine's devices.
pub struct Filecoin {
    params_dir: PathBuf,
    devices: Vec<(DeviceSpec, Prover)>,
    footprints: Mutex<HashMap<CircuitId, Footprint>>,
    arenas: Mutex<Vec<Assignment>>,
    arena_bytes: u64,
    on_cpu: bool,
    compile: bool,
    allow_test_parameters: bool,
    /// Held while a circuit is recorded: one at a time, for each takes a core.
    recording: Arc<Mutex<()>>,
}

/// A circuit's parameters and, as soon as it is there, the compiled circuit.
#[derive(Clone)]
pub struct Parameters {
    params: Arc<Params>,
    compiled: Arc<OnceLock<Arc<CompiledCircuit>>>,
}

/// What a proof is made from.
pub struct Synthesis {
    assignment: Assignment,
    /// With it, A and B are evaluated by the back end.
    compiled: Option<Arc<CompiledCircuit>>,
}

impl Filecoin {
    /// Opens the devices of a configuration. A twentieth of the host memory may be kept for the next
    /// syntheses. Compiled circuits that are wanted and not beside the parameters are recorded in the
    /// background, by a thread that nobody waits for.
    ///
    /// # Errors
    /// A device that was asked for by name cannot be used, or the parameter folder is not the one from
    /// which the official verifiers read their keys.
    pub fn open(config: &EngineConfig) -> Result<Self, EngineError> {
        let expected = cuzk_filecoin::params_dir()?;
        let params_dir = &config.params_dir;
        if !same_folder(&expected, params_dir) {
            let found = params_dir.clone();
            return Err(EngineError::ParamsDir { expected, found });
        }
        let devices = open_devices(&config.device, config.device_memory)?;
        let on_cpu = devices
            .iter()
            .any(|(spec, _)| spec.ordinal.is_none() && !spec.fallback);
        Ok(Self {
            params_dir: params_dir.clone(),
            devices,
            footprints: Mutex::default(),
            arenas: Mutex::default(),
            arena_bytes: host_limit(config.host_memory) / 20,
            on_cpu,
            compile: config.compile_circuits,
            allow_test_parameters: config.allow_test_parameters,
            recording: Arc::default(),
        })
    }

    fn path(&self, circuit: CircuitId, extension: &str) -> Result<PathBuf, String> {
        let path = circuit.params_path(&self.params_dir, extension);
        path.map_err(|error| error.to_string())
    }

    /// Refuses parameters for tests where they do not belong.
    fn check_origin(&self, circuit: CircuitId) -> Result<(), String> {
        check_origin(circuit, &self.params_dir, self.allow_test_parameters)
    }

    fn arena(&self) -> Assignment {
        lock(&self.arenas).pop().unwrap_or_default()
    }

    /// Whether there is a file of the compiled circuit.
    fn is_compiled(&self, circuit: CircuitId) -> bool {
        self.compile && self.path(circuit, COMPILED).is_ok_and(|path| path.exists())
    }

    /// The compiled circuit from its file. Where the file is bad the circuit is recorded at once, for
    /// the footprint counts on it; where there is none, in the background.
    fn compiled(
        &self,
        circuit: CircuitId,
    ) -> Result<Arc<OnceLock<Arc<CompiledCircuit>>>, TaskError> {
        let slot = Arc::new(OnceLock::new());
        if !self.compile {
            return Ok(slot);
        }
        let path = self
            .path(circuit, COMPILED)
            .map_err(TaskError::Parameters)?;
        if path.exists() {
            let compiled = record(circuit, &path).map_err(TaskError::Parameters)?;
            slot.get_or_init(|| Arc::new(compiled));
            return Ok(slot);
        }
        let (later, one_at_a_time) = (Arc::clone(&slot), Arc::clone(&self.recording));
        let thread = thread::Builder::new().name("cuzk-record".to_owned());
        let spawned = thread.spawn(move || {
            let _turn = lock(&one_at_a_time);
            match record(circuit, &path) {
                Ok(compiled) => {
                    later.get_or_init(|| Arc::new(compiled));
                }
                Err(error) => tracing::warn!(%circuit, error, "not compiled"),
            }
        });
        if let Err(error) = spawned {
            tracing::warn!(%circuit, %error, "no thread to compile the circuit");
        }
        Ok(slot)
    }

    /// Keeps an assignment's memory for the next synthesis if there is room for it.
    fn keep(&self, assignment: Assignment) {
        let mut arenas = lock(&self.arenas);
        let kept: u64 = arenas.iter().map(assignment_bytes).sum();
        if kept + assignment_bytes(&assignment) <= self.arena_bytes {
            arenas.push(assignment);
        } else {
            drop(arenas);
            drop(assignment);
        }
    }
}

/// The extension of a compiled circuit beside its parameters.
const COMPILED: &str = "compiled";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses parameters in `dir` that are marked as made for tests for circuits of production, unless that is
/// allowed.
fn check_origin(circuit: CircuitId, dir: &Path, allowed: bool) -> Result<(), String> {
    if allowed || !circuit.is_for_production() {
        return Ok(());
    }
    match circuit.has_test_params(dir) {
        Ok(false) => Ok(()),
        Ok(true) => Err(format!(
            "the parameters of {circuit} in {} are marked as made for tests: whoever made them can forge proofs",
            dir.display()
        )),
        Err(error) => Err(error.to_string()),
    }
}

/// A compiled circuit from its file, or from the circuit.
fn record(circuit: CircuitId, path: &Path) -> Result<CompiledCircuit, String> {
    let text = |error: RequestError| error.to_string();
    let identity = circuit.params_file_stem().map_err(text)?;
    let blank = circuit.blank_circuit().map_err(text)?;
    let compiled = blank.compiled(path, &identity);
    let (compiled, origin) = compiled.map_err(|error| error.to_string())?;
    tracing::info!(%circuit, ?origin, "compiled circuit");
    Ok(compiled)
}

fn same_folder(a: &Path, b: &Path) -> bool {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    canonical(a) == canonical(b)
}

/// One prover for each device, and the CPU for what fails on a GPU.
fn open_devices(device: &Device, memory: Budget) -> Result<Vec<(DeviceSpec, Prover)>, DeviceError> {
    let unusable = |error: RuntimeError| DeviceError::NoCuda {
        device: device.clone(),
        reason: error.to_string(),
    };
    let limit = match memory {
        Budget::Auto => None,
        Budget::Bytes(bytes) => Some(bytes),
    };
    let ordinals = match device {
        Device::Cpu => Vec::new(),
        Device::Auto => match cuda::device_count() {
            Ok(count) => (0..count).collect(),
            Err(reason) => {
                tracing::info!(%reason, "proving on the cpu");
                Vec::new()
            }
        },
        Device::Cuda(list) if list.is_empty() => {
            (0..cuda::device_count().map_err(unusable)?).collect()
        }
        Device::Cuda(list) => list.clone(),
    };
    let mut devices = Vec::with_capacity(ordinals.len() + 1);
    for ordinal in ordinals {
        let info = cuda::DeviceInfo::query(ordinal).map_err(unusable)?;
        let backend = cuda::backend(&[ordinal], limit).map_err(unusable)?;
        let prover = Prover::with_backend(backend);
        let spec = DeviceSpec {
            ordinal: Some(ordinal),
            name: info.name,
            memory: info.memory,
            fallback: false,
        };
        devices.push((spec, prover));
    }
    let cpu = Prover::new(Device::Cpu)?;
    let spec = DeviceSpec {
        ordinal: None,
        name: cpu.backend(),
        memory: 0,
        fallback: !devices.is_empty(),
    };
    devices.push((spec, cpu));
    Ok(devices)
}

/// Bytes of an assignment: its evaluations and, at the usual share of bits, its witness.
fn assignment_bytes(assignment: &Assignment) -> u64 {
    let values = assignment.a.capacity() + assignment.b.capacity();
    (32 * values + 2 * assignment.witness.aux.len()) as u64
}

/// The circuit that the fields name, without a look at the proofs where the size is given.
fn identify(request: &ProofRequest) -> Result<CircuitId, RequestError> {
    if request.sector_size == 0 {
        return Ok(Request::parse(request)?.circuit_id());
    }
    let size = SectorSize::from_bytes(request.sector_size).map_err(|source| {
        let field = "sector_size";
        RequestError::Name { field, source }
    })?;
    Ok(CircuitId::new(request.kind, size))
}

impl Executor for Filecoin {
    type Request = Request;
    type Parameters = Parameters;
    type Synthesis = Synthesis;

    fn devices(&self) -> Vec<DeviceSpec> {
        self.devices.iter().map(|(spec, _)| spec.clone()).collect()
    }

    fn identify(&self, request: &ProofRequest) -> Result<CircuitId, RequestError> {
        identify(request)
    }

    fn footprint(&self, circuit: CircuitId) -> Result<Footprint, String> {
        if let Some(found) = lock(&self.footprints).get(&circuit) {
            return Ok(*found);
        }
        self.check_origin(circuit)?;
        let path = self.path(circuit, "params")?;
        let params = Params::map(path).map_err(|error| error.to_string())?;
        let found = footprint(&params, self.on_cpu, self.is_compiled(circuit));
        lock(&self.footprints).insert(circuit, found);
        Ok(found)
    }

    fn parse(&self, request: &ProofRequest) -> Result<Parsed<Request>, TaskError> {
        let wrong = |error: RequestError| TaskError::Request(error.to_string());
        let parsed = Request::parse(request).map_err(wrong)?;
        parsed
            .expect_circuit(identify(request).map_err(wrong)?)
            .map_err(wrong)?;
        Ok(Parsed {
            partitions: parsed.partitions(),
            request: parsed,
        })
    }

    fn load(&self, circuit: CircuitId) -> Result<Loaded<Parameters>, TaskError> {
        // The files may have been replaced since the job was admitted.
        self.check_origin(circuit).map_err(TaskError::Parameters)?;
        let path = self
            .path(circuit, "params")
            .map_err(TaskError::Parameters)?;
        let params = if self.on_cpu {
            Params::open(path)
        } else {
            Params::map(path)
        };
        let params = params.map_err(|error| TaskError::Parameters(error.to_string()))?;
        let compiled = self.compiled(circuit)?;
        Ok(Loaded {
            compiled: compiled.get().is_some(),
            parameters: Parameters {
                params: Arc::new(params),
                compiled,
            },
        })
    }

    fn synthesise(
        &self,
        request: &Request,
        k: usize,
        parameters: &Parameters,
        cancel: &CancelToken,
    ) -> Result<Synthesis, TaskError> {
        if cancel.is_cancelled() {
            return Err(TaskError::Cancelled);
        }
        let mut assignment = self.arena();
        let compiled = parameters.compiled.get().cloned();
        if compiled.is_some() {
            let made = request.witness_into(k, &mut assignment.witness);
            made.map_err(|error| wrong(&error))?;
        } else {
            let circuit = request.circuit(k).map_err(|error| wrong(&error))?;
            let made = circuit.assignment_into(&mut assignment);
            made.map_err(|error| wrong(&error))?;
        }
        let expected = request.public_inputs(k).map_err(|error| wrong(&error))?;
        check_inputs(&assignment.witness, &expected)?;
        Ok(Synthesis {
            assignment,
            compiled,
        })
    }

    fn prove(
        &self,
        device: usize,
        parameters: &Parameters,
        synthesis: Synthesis,
        cancel: &CancelToken,
    ) -> Result<PartitionProof, TaskError> {
        let Some((_, prover)) = self.devices.get(device) else {
            return Err(TaskError::Device(format!("there is no device {device}")));
        };
        if cancel.is_cancelled() {
            return Err(TaskError::Cancelled);
        }
        let (r, s) = (Field::random(OsRng), Field::random(OsRng));
        let Parameters { params, .. } = parameters;
        let Synthesis {
            assignment,
            compiled,
        } = synthesis;
        let pending = match &compiled {
            Some(circuit) => prover.start_compiled(params, circuit, assignment.witness, r, s),
            None => prover.start(params, assignment, r, s),
        };
        let finished = pending
            .and_then(PendingProof::finish)
            .map_err(|error| task_error(&error))?;
        let proof = finished.proof.to_bytes();
        self.keep(finished.assignment);
        Ok(proof)
    }

    fn diagnose(&self, request: &Request, k: usize, error: &TaskError) -> Diagnosis {
        if let TaskError::Request(_) | TaskError::Parameters(_) | TaskError::Cancelled = error {
            return Diagnosis {
                message: error.to_string(),
                retry: false,
            };
        }
        let checked = request
            .circuit(k)
            .map_err(|error| error.to_string())
            .and_then(|circuit| circuit.check().map_err(|error| error.to_string()));
        match checked {
            Ok(()) => Diagnosis {
                message: format!("{error}; the witness satisfies every constraint"),
                retry: true,
            },
            Err(reason) => Diagnosis {
                message: format!(
                    "{error}; the witness is wrong: {reason}; {}",
                    vanilla(request)
                ),
                retry: false,
            },
        }
    }

    fn assemble(&self, request: &Request, proofs: &[PartitionProof]) -> Result<Vec<u8>, TaskError> {
        let wrong = |error: RequestError| TaskError::Parameters(error.to_string());
        let bytes = request.assemble(proofs).map_err(wrong)?;
        if request.verify(&bytes).map_err(wrong)? {
            return Ok(bytes);
        }
        Err(TaskError::Invalid(format!(
            "the official verifier refuses the proof, though each partition verified with the parameters; {}; the .vk file may be of other parameters",
            vanilla(request)
        )))
    }
}

fn wrong(error: &dyn std::fmt::Display) -> TaskError {
    TaskError::Request(error.to_string())
}

/// Refuses a witness for other public inputs than the official verifier's.
fn check_inputs(witness: &Witness, expected: &[Scalar]) -> Result<(), TaskError> {
    let found = witness.inputs.get(1..).unwrap_or_default();
    if found == expected {
        return Ok(());
    }
    let same = found.iter().zip(expected).take_while(|(a, b)| a == b);
    Err(TaskError::Request(format!(
        "public input {} of the circuit is not the official verifier's ({} inputs, expected {})",
        same.count(),
        found.len(),
        expected.len()
    )))
}

/// The official verdict on the vanilla proofs, in words.
fn vanilla(request: &Request) -> String {
    match request.verify_vanilla() {
        Ok(true) => "the vanilla proofs verify".to_owned(),
        Ok(false) => "the vanilla proofs do not verify".to_owned(),
        Err(error) => format!("the vanilla proofs cannot be verified: {error}"),
    }
}

fn task_error(error: &ProveError) -> TaskError {
    let text = error.to_string();
    match error {
        ProveError::Invalid { .. } => TaskError::Invalid(text),
        ProveError::Cancelled => TaskError::Cancelled,
        ProveError::WorkerPanicked { .. } => TaskError::Panic(text),
        ProveError::Mismatch { .. }
        | ProveError::InfiniteDelta { .. }
        | ProveError::Params(_)
        | ProveError::Verify(_) => TaskError::Parameters(text),
        ProveError::Assignment { .. } | ProveError::Circuit(_) => TaskError::Request(text),
        _ => TaskError::Device(text),
    }
}

/// What a circuit takes, from the counts of its parameters.
fn footprint(params: &Params, on_cpu: bool, compiled: bool) -> Footprint {
    let counts = params.counts();
    let file = counts.file_bytes();
    let domain = (counts.h + 1) as u64;
    let variables = (counts.l + counts.inputs) as u64;
    // Two bits for each variable, a density bit three times over, and room for other values.
    let witness = (8 << 20) + 2 * variables;
    // A·w and B·w.
    let values = 64 * domain;
    // The CPU's transforms need the quotient and two tables, its sums need buckets and sorted digits.
    let cpu_work = 96 * domain + 16 * variables;
    let on_host = if compiled && !on_cpu { 0 } else { values };
    Footprint {
        // The compiled circuit takes far less than this share.
        parameters: file + file / 256,
        partition: witness + on_host + if on_cpu { cpu_work } else { 0 },
        fallback: if on_cpu {
            0
        } else {
            cpu_work + values - on_host
        },
        device_parameters: if on_cpu { 0 } else { file },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_filecoin::{ProofKind, SectorSize};

    #[test]
    fn parameters_for_tests_serve_no_circuit_of_production_unless_they_may() {
        let dir = tempfile::tempdir().unwrap();
        for size in [SectorSize::Kib2, SectorSize::Gib32] {
            let circuit = CircuitId::new(ProofKind::Winning, size);
            check_origin(circuit, dir.path(), false).unwrap();
            circuit.write_test_meta(dir.path()).unwrap();
            let refused = check_origin(circuit, dir.path(), false).is_err();
            assert_eq!(refused, circuit.is_for_production());
            check_origin(circuit, dir.path(), true).unwrap();
            circuit.write_meta(dir.path()).unwrap();
            check_origin(circuit, dir.path(), false).unwrap();
        }
    }
}
