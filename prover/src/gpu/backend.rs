//! The GPU back end: everything after synthesis on one device, through its runtime.

use std::{
    error::Error,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use cuzk_kernels::runtime::{Arena, Runtime, RuntimeError};

use super::{
    evaluate::CircuitTables,
    proof::{Kept, Needs, sums},
    quotient::Quotient,
    resident::Resident,
};
use crate::{
    Backend, ProveError,
    backend::{Background, Job, Output, Running},
    timeline::Span,
};

/// Proofs on the devices behind one or more runtimes. Each proof goes to the device with the fewest
/// proofs in flight.
pub struct Gpu {
    devices: Vec<Arc<Device>>,
}

struct Device {
    runtime: Arc<dyn Runtime>,
    /// The most device memory that proofs may take, parameters included.
    limit: Option<u64>,
    in_flight: AtomicUsize,
    /// Locked while a proof is made.
    state: Mutex<State>,
}

/// What stays on the device from one proof to the next.
#[derive(Default)]
struct State {
    resident: Option<Resident>,
    tables: Option<CircuitTables>,
    quotient: Option<Quotient>,
    arena: Option<Arena>,
}

impl Gpu {
    /// A back end on these devices; on each, at most `limit` bytes of memory are taken.
    pub fn new(runtimes: Vec<Arc<dyn Runtime>>, limit: Option<u64>) -> Self {
        let device = |runtime| {
            Arc::new(Device {
                runtime,
                limit,
                in_flight: AtomicUsize::new(0),
                state: Mutex::default(),
            })
        };
        Gpu {
            devices: runtimes.into_iter().map(device).collect(),
        }
    }
}

impl Backend for Gpu {
    fn describe(&self) -> String {
        let names: Vec<String> = self
            .devices
            .iter()
            .map(|device| device.runtime.name())
            .collect();
        format!("gpu ({})", names.join(", "))
    }

    fn start(&self, job: Job) -> Result<Box<dyn Running>, ProveError> {
        let load = |device: &&Arc<Device>| device.in_flight.load(Ordering::Relaxed);
        let Some(device) = self.devices.iter().min_by_key(load).cloned() else {
            return Err(failure("gpu", "no device".into()));
        };
        device.in_flight.fetch_add(1, Ordering::Relaxed);
        let name = device.runtime.name();
        Background::start("cuzk-gpu", name, move || {
            let outcome = device.prove(job);
            device.in_flight.fetch_sub(1, Ordering::Relaxed);
            outcome
        })
    }
}

impl Device {
    fn prove(&self, job: Job) -> Result<Output, ProveError> {
        let name = self.runtime.name();
        let timeline = job.timeline.clone();
        let wait = timeline.span_in(job.parent, "wait for the device");
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        drop(wait);
        job.cancelled.check()?;
        let span = timeline.span_in(job.parent, "gpu");
        match self.run(&mut state, &job, &span) {
            Ok(sums) => {
                let proof = span.time("assemble", || {
                    sums.assemble(job.params.vk(), &job.r, &job.s)
                });
                Ok(Output {
                    proof,
                    assignment: job.assignment,
                })
            }
            Err(error) => {
                // After a fault nothing on the device is trusted: the next proof starts afresh.
                span.time("release", || *state = State::default());
                Err(match error.downcast::<ProveError>() {
                    Ok(error) => *error,
                    Err(error) => failure(&name, error),
                })
            }
        }
    }

    fn run(
        &self,
        state: &mut State,
        job: &Job,
        span: &Span,
    ) -> Result<crate::Sums, Box<dyn Error + Send + Sync>> {
        let runtime = &self.runtime;
        if !state
            .resident
            .as_ref()
            .is_some_and(|resident| resident.is_for(&job.params))
        {
            let part = span.child("parameters");
            // Room first: two sets of points may not fit.
            state.resident = None;
            state.resident = Some(Resident::new(runtime, &job.params, &part)?);
        }
        if let Some(circuit) = &job.circuit
            && state.tables.as_ref().is_none_or(|t| !t.is_for(circuit))
        {
            let part = span.child("circuit tables");
            state.tables = None;
            let tables = CircuitTables::new(runtime, circuit)?;
            part.note("bytes", tables.bytes());
            state.tables = Some(tables);
        }
        let log2 = job.params.counts().domain_log2();
        if state
            .quotient
            .as_ref()
            .is_none_or(|quotient| quotient.log2() != log2)
        {
            let _part = span.child("roots of unity");
            state.quotient = Some(Quotient::new(runtime, log2)?);
        }
        let needs = {
            let _part = span.child("plan");
            let room = self.room(state)?;
            Needs::new(
                &job.params,
                &job.assignment,
                runtime.multiprocessors(),
                room,
            )?
        };
        if state
            .arena
            .as_ref()
            .is_none_or(|arena| arena.size() < needs.bytes)
        {
            let _part = span.child("memory");
            state.arena = None;
            state.arena = Some(Arena::new(runtime, needs.bytes)?);
        }
        let (Some(resident), Some(quotient), Some(arena)) =
            (&state.resident, &state.quotient, &mut state.arena)
        else {
            return Err("the device's state was lost".into());
        };
        arena.reset();
        let kept = Kept {
            resident,
            // Tables may be those of another circuit when the job has none.
            tables: job.circuit.as_ref().and(state.tables.as_ref()),
            quotient,
        };
        sums(job, &needs, kept, arena, span)
    }

    /// Bytes that the arena may have.
    fn room(&self, state: &State) -> Result<u64, RuntimeError> {
        let memory = self.runtime.memory()?;
        let arena = state.arena.as_ref().map_or(0, Arena::size);
        // Some is left to the driver and to tables of other sizes.
        let free = (memory.free + arena) - (memory.free + arena) / 32;
        let Some(limit) = self.limit else {
            return Ok(free);
        };
        let taken = state.resident.as_ref().map_or(0, Resident::bytes)
            + state.tables.as_ref().map_or(0, CircuitTables::bytes);
        Ok(free.min(limit.saturating_sub(taken)))
    }
}

fn failure(backend: &str, source: Box<dyn Error + Send + Sync>) -> ProveError {
    ProveError::Backend {
        backend: backend.to_owned(),
        source,
    }
}
