//! An executor without proofs: what a request asks for is what happens.

use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cuzk_engine::{
    CancelToken, DeviceSpec, Diagnosis, Engine, EngineConfig, Executor, Footprint, Loaded, Parsed,
    PartitionProof, Submission, TaskError,
};
use cuzk_filecoin::{CircuitId, ProofKind, ProofRequest, RequestError, SectorSize};

/// What is to happen in a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Succeed,
    PanicInParse,
    PanicInSynthesis,
    PanicInProve,
    PanicInAssemble,
    Fault,
    FaultOnce,
    Malformed,
}

const ACTS: [Act; 8] = [
    Act::Succeed,
    Act::PanicInParse,
    Act::PanicInSynthesis,
    Act::PanicInProve,
    Act::PanicInAssemble,
    Act::Fault,
    Act::FaultOnce,
    Act::Malformed,
];

/// A request of `partitions` partitions that are the job number `n`.
pub fn request(n: u64, partitions: u32, act: Act) -> ProofRequest {
    ProofRequest {
        sector_size: SectorSize::Kib2.bytes(),
        sector_number: n,
        partition_index: partitions,
        miner_id: ACTS.iter().position(|a| *a == act).unwrap() as u64,
        ..ProofRequest::new(ProofKind::Porep)
    }
}

pub fn submission(n: u64, partitions: u32, act: Act) -> Submission {
    Submission::new(request(n, partitions, act)).with_id(format!("request {n}"))
}

/// The proof of a mock job.
pub fn proof(n: u64, partitions: u32) -> Vec<u8> {
    (0..partitions)
        .flat_map(|k| partition_proof(n, k as usize))
        .collect()
}

fn partition_proof(n: u64, k: usize) -> PartitionProof {
    let mut proof = [k as u8; 192];
    proof[..8].copy_from_slice(&n.to_le_bytes());
    proof
}

/// A gate that holds proofs up until it is opened.
#[derive(Default)]
pub struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    pub fn set(&self, open: bool) {
        *self.open.lock().unwrap() = open;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let open = self.open.lock().unwrap();
        drop(self.changed.wait_while(open, |open| !*open).unwrap());
    }
}

/// The executor; clones share their counters.
#[derive(Clone)]
pub struct Mock {
    pub gate: Arc<Gate>,
    pub proved: Arc<AtomicU64>,
    pub loads: Arc<AtomicU64>,
    pub pause: Duration,
    faults: Arc<Mutex<HashMap<u64, u32>>>,
}

#[derive(Clone, Copy, Debug)]
pub struct MockRequest {
    n: u64,
    act: Act,
}

impl Mock {
    pub fn new() -> Self {
        let mock = Self::closed();
        mock.gate.set(true);
        mock
    }

    /// One whose proofs wait for the gate.
    pub fn closed() -> Self {
        Self {
            gate: Arc::default(),
            proved: Arc::default(),
            loads: Arc::default(),
            pause: Duration::ZERO,
            faults: Arc::default(),
        }
    }
}

impl Executor for Mock {
    type Request = MockRequest;
    type Parameters = ();
    type Synthesis = (MockRequest, usize);

    fn devices(&self) -> Vec<DeviceSpec> {
        let device = |name: &str, fallback: bool| DeviceSpec {
            ordinal: (!fallback).then_some(0),
            name: name.to_owned(),
            memory: 1 << 30,
            fallback,
        };
        vec![device("mock gpu", false), device("mock cpu", true)]
    }

    fn identify(&self, request: &ProofRequest) -> Result<CircuitId, RequestError> {
        Ok(CircuitId::new(request.kind, SectorSize::Kib2))
    }

    fn footprint(&self, circuit: CircuitId) -> Result<Footprint, String> {
        match circuit.kind {
            ProofKind::Update => Err("there is no such file".to_owned()),
            ProofKind::Window => Ok(Footprint {
                parameters: 1 << 40,
                ..Footprint::default()
            }),
            _ => Ok(Footprint {
                parameters: 1000,
                partition: 100,
                fallback: 10,
                device_parameters: 1000,
            }),
        }
    }

    fn parse(&self, request: &ProofRequest) -> Result<Parsed<MockRequest>, TaskError> {
        let act = ACTS[request.miner_id as usize];
        match act {
            Act::PanicInParse => panic!("parse panicked"),
            Act::Malformed => return Err(TaskError::Request("field x: found y".to_owned())),
            _ => {}
        }
        Ok(Parsed {
            request: MockRequest {
                n: request.sector_number,
                act,
            },
            partitions: request.partition_index as usize,
        })
    }

    fn load(&self, _circuit: CircuitId) -> Result<Loaded<()>, TaskError> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        Ok(Loaded {
            parameters: (),
            compiled: false,
        })
    }

    fn synthesise(
        &self,
        request: &MockRequest,
        k: usize,
        _parameters: &(),
        _cancel: &CancelToken,
    ) -> Result<(MockRequest, usize), TaskError> {
        if request.act == Act::PanicInSynthesis {
            panic!("synthesis panicked");
        }
        Ok((*request, k))
    }

    fn prove(
        &self,
        device: usize,
        _parameters: &(),
        (request, k): (MockRequest, usize),
        _cancel: &CancelToken,
    ) -> Result<PartitionProof, TaskError> {
        self.gate.pass();
        std::thread::sleep(self.pause);
        match request.act {
            Act::PanicInProve => panic!("prove panicked"),
            Act::Fault => {
                return Err(TaskError::Device(format!("fault on device {device}")));
            }
            Act::FaultOnce => {
                let mut faults = self.faults.lock().unwrap();
                let count = faults.entry(request.n).or_default();
                *count += 1;
                if *count == 1 {
                    return Err(TaskError::Device("fault".to_owned()));
                }
            }
            _ => {}
        }
        self.proved.fetch_add(1, Ordering::Relaxed);
        Ok(partition_proof(request.n, k))
    }

    fn diagnose(&self, _request: &MockRequest, _k: usize, error: &TaskError) -> Diagnosis {
        Diagnosis {
            message: error.to_string(),
            retry: true,
        }
    }

    fn assemble(
        &self,
        request: &MockRequest,
        proofs: &[PartitionProof],
    ) -> Result<Vec<u8>, TaskError> {
        if request.act == Act::PanicInAssemble {
            panic!("assembly panicked");
        }
        Ok(proofs.concat())
    }
}

/// A configuration for the mock.
pub fn config(state: Option<&Path>) -> EngineConfig {
    EngineConfig {
        state_dir: state.map(Path::to_owned),
        host_memory: cuzk_engine::Budget::Bytes(100_000),
        disk_reserve: 0,
        ..EngineConfig::new("unused")
    }
}

pub fn engine(mock: &Mock, state: Option<&Path>) -> Engine<Mock> {
    Engine::with_executor(config(state), mock.clone()).expect("the engine opens")
}
