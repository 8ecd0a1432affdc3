//! The real work: Filecoin's circuits on the provers of `cuzk-prover`. The only module that calls either.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use cuzk_circuit::Assignment;
use cuzk_filecoin::{CircuitId, ProofRequest, Request, RequestError, SectorSize};
use cuzk_prover::{Device, DeviceError, Params, ProveError, Prover, cuda};
use ff::Field;
use rand_core::OsRng;

use crate::{
    EngineError,
    executor::{
        CancelToken, DeviceSpec, Diagnosis, Executor, Footprint, Loaded, Parsed, PartitionProof,
        TaskError,
    },
};

/// Filecoin's proofs on this machine's devices.
pub struct Filecoin {
    params_dir: PathBuf,
    devices: Vec<(DeviceSpec, Prover)>,
    footprints: Mutex<HashMap<CircuitId, Footprint>>,
    arenas: Mutex<Vec<Assignment>>,
    arena_bytes: u64,
    on_cpu: bool,
}

/// A circuit's parameters.
#[derive(Clone)]
pub struct Parameters {
    params: Arc<Params>,
}

impl Filecoin {
    /// Opens the devices. `arena_bytes` of host memory may be kept for the next syntheses.
    ///
    /// # Errors
    /// A device that was asked for by name cannot be used, or `params_dir` is not the folder from
    /// which the official verifiers read their keys.
    pub fn open(device: &Device, params_dir: &Path, arena_bytes: u64) -> Result<Self, EngineError> {
        let expected = cuzk_filecoin::params_dir()?;
        if !same_folder(&expected, params_dir) {
            let found = params_dir.to_owned();
            return Err(EngineError::ParamsDir { expected, found });
        }
        let devices = open_devices(device)?;
        let on_cpu = devices
            .iter()
            .any(|(spec, _)| spec.ordinal.is_none() && !spec.fallback);
        Ok(Self {
            params_dir: params_dir.to_owned(),
            devices,
            footprints: Mutex::default(),
            arenas: Mutex::default(),
            arena_bytes,
            on_cpu,
        })
    }

    fn params_path(&self, circuit: CircuitId) -> Result<PathBuf, String> {
        let path = circuit.params_path(&self.params_dir, "params");
        path.map_err(|error| error.to_string())
    }

    fn arena(&self) -> Assignment {
        let mut arenas = self.arenas.lock().unwrap_or_else(PoisonError::into_inner);
        arenas.pop().unwrap_or_default()
    }

    /// Keeps an assignment's memory for the next synthesis if there is room for it.
    fn keep(&self, assignment: Assignment) {
        let mut arenas = self.arenas.lock().unwrap_or_else(PoisonError::into_inner);
        let kept: u64 = arenas.iter().map(assignment_bytes).sum();
        if kept + assignment_bytes(&assignment) <= self.arena_bytes {
            arenas.push(assignment);
        } else {
            drop(arenas);
            drop(assignment);
        }
    }
}

fn same_folder(a: &Path, b: &Path) -> bool {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    canonical(a) == canonical(b)
}

/// One prover for each device, and the CPU for what fails on a GPU.
fn open_devices(device: &Device) -> Result<Vec<(DeviceSpec, Prover)>, DeviceError> {
    let ordinals = match device {
        Device::Cpu => Vec::new(),
        Device::Auto => (0..cuda::device_count().unwrap_or(0)).collect(),
        Device::Cuda(list) if list.is_empty() => {
            let count = cuda::device_count().map_err(|error| DeviceError::NoCuda {
                device: device.clone(),
                reason: error.to_string(),
            })?;
            (0..count).collect()
        }
        Device::Cuda(list) => list.clone(),
    };
    let mut devices = Vec::with_capacity(ordinals.len() + 1);
    for ordinal in ordinals {
        let prover = Prover::new(Device::Cuda(vec![ordinal]))?;
        let info = cuda::DeviceInfo::query(ordinal);
        let info = info.map_err(|error| DeviceError::NoCuda {
            device: device.clone(),
            reason: error.to_string(),
        })?;
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

/// Bytes of an assignment's vectors, which are all but all of it.
fn assignment_bytes(assignment: &Assignment) -> u64 {
    32 * (assignment.a.capacity() + assignment.b.capacity()) as u64
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
    type Synthesis = Assignment;

    fn devices(&self) -> Vec<DeviceSpec> {
        self.devices.iter().map(|(spec, _)| spec.clone()).collect()
    }

    fn identify(&self, request: &ProofRequest) -> Result<CircuitId, RequestError> {
        identify(request)
    }

    fn footprint(&self, circuit: CircuitId) -> Result<Footprint, String> {
        let lock = || {
            self.footprints
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(found) = lock().get(&circuit) {
            return Ok(*found);
        }
        let path = self.params_path(circuit)?;
        let params = Params::map(path).map_err(|error| error.to_string())?;
        let found = footprint(&params, self.on_cpu);
        lock().insert(circuit, found);
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
        let path = self.params_path(circuit).map_err(TaskError::Parameters)?;
        let params = if self.on_cpu {
            Params::open(path)
        } else {
            Params::map(path)
        };
        let params = params.map_err(|error| TaskError::Parameters(error.to_string()))?;
        Ok(Loaded {
            parameters: Parameters {
                params: Arc::new(params),
            },
            compiled: false,
        })
    }

    fn synthesise(
        &self,
        request: &Request,
        k: usize,
        _parameters: &Parameters,
        cancel: &CancelToken,
    ) -> Result<Assignment, TaskError> {
        let wrong = |error: &dyn std::fmt::Display| TaskError::Request(error.to_string());
        let mut assignment = self.arena();
        let circuit = request.circuit(k).map_err(|error| wrong(&error))?;
        if cancel.is_cancelled() {
            return Err(TaskError::Cancelled);
        }
        circuit
            .assignment_into(&mut assignment)
            .map_err(|error| wrong(&error))?;
        let expected = request.public_inputs(k).map_err(|error| wrong(&error))?;
        let found = &assignment.witness.inputs[1..];
        if found != expected {
            let same = found
                .iter()
                .zip(&expected)
                .take_while(|(a, b)| a == b)
                .count();
            return Err(TaskError::Request(format!(
                "public input {same} of the circuit is not the official verifier's ({} inputs, expected {})",
                found.len(),
                expected.len()
            )));
        }
        Ok(assignment)
    }

    fn prove(
        &self,
        device: usize,
        parameters: &Parameters,
        synthesis: Assignment,
        cancel: &CancelToken,
    ) -> Result<PartitionProof, TaskError> {
        let Some((_, prover)) = self.devices.get(device) else {
            return Err(TaskError::Device(format!("there is no device {device}")));
        };
        if cancel.is_cancelled() {
            return Err(TaskError::Cancelled);
        }
        let (r, s) = (Field::random(OsRng), Field::random(OsRng));
        let pending = prover.start(&parameters.params, synthesis, r, s);
        let finished = pending
            .and_then(|pending| pending.finish())
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
fn footprint(params: &Params, on_cpu: bool) -> Footprint {
    let counts = params.counts();
    let file = counts.file_bytes();
    let domain = (counts.h + 1) as u64;
    let variables = (counts.l + counts.inputs) as u64;
    // A·w and B·w, a bit for each variable three times over, and room for other values.
    let assignment = 64 * domain + variables * 2;
    // The CPU's transforms need the quotient and two tables, its sums need buckets and sorted digits.
    let cpu_work = 96 * domain + 16 * variables;
    Footprint {
        parameters: file,
        partition: (8 << 20) + assignment + if on_cpu { cpu_work } else { 0 },
        fallback: if on_cpu { 0 } else { cpu_work },
        device_parameters: if on_cpu { 0 } else { file },
    }
}
