//! What is on a device, who works with it and who waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use super::device::Device;
use super::evaluate::CircuitTables;
use super::lane::Lane;
use super::plan::{Blocks, Plan};
use super::resident::Resident;
use crate::{Params, backend::Job};

/// The state of a device.
#[derive(Default)]
pub struct Pool {
    /// Proofs that wait, in order of arrival.
    pub queue: VecDeque<u64>,
    /// The number of the next proof that waits.
    pub next: u64,
    /// What stays for the circuits that were proved last; the proofs at work use the one at the end.
    pub kept: Vec<Kept>,
    /// Lanes that nobody uses.
    pub idle: Vec<Lane>,
    /// Device memory of each lane in use.
    pub busy: Vec<u64>,
    /// How many may work at once by the plan of those that do.
    pub lanes: u32,
}

/// What all proofs of one circuit use.
#[derive(Clone)]
pub struct Kept {
    /// Its parameters.
    pub resident: Arc<Resident>,
    /// The tables that A and B are evaluated from.
    pub circuit: Option<Arc<CircuitTables>>,
}

impl Kept {
    /// Whether a job of these parameters finds all that it needs by the plan.
    pub fn serves(&self, job: &Job, plan: &Plan) -> bool {
        let circuit = match (&self.circuit, &job.circuit) {
            (Some(tables), Some(circuit)) if plan.circuit_bytes > 0 => tables.is_for(circuit),
            _ => plan.circuit_bytes == 0,
        };
        self.resident.sets() == plan.resident && circuit
    }

    fn bytes(&self) -> u64 {
        self.resident.bytes() + self.circuit.as_ref().map_or(0, |tables| tables.bytes())
    }
}

impl Pool {
    /// Where the parameters are among those that are kept.
    pub fn position(&self, params: &Arc<Params>) -> Option<usize> {
        self.kept
            .iter()
            .position(|kept| kept.resident.is_for(params))
    }

    /// Takes parameters out.
    pub fn take(&mut self, params: &Arc<Params>) -> Option<Kept> {
        self.position(params).map(|at| self.kept.remove(at))
    }

    /// Releases parameters that nobody holds any more.
    pub fn forget_unwanted(&mut self) {
        if self.busy.is_empty() {
            self.kept.retain(|kept| kept.resident.is_wanted());
        }
    }

    /// Device memory of the lanes at work.
    pub fn busy_bytes(&self) -> u64 {
        self.busy.iter().sum()
    }

    /// Device memory of what is kept for other parameters.
    pub fn kept_bytes_besides(&self, params: &Arc<Params>) -> u64 {
        let others = self
            .kept
            .iter()
            .filter(|kept| !kept.resident.is_for(params));
        others.map(Kept::bytes).sum()
    }

    /// All device memory that proofs hold.
    pub fn bytes(&self) -> u64 {
        self.kept.iter().map(Kept::bytes).sum::<u64>()
            + self.idle.iter().map(Lane::bytes).sum::<u64>()
            + self.busy_bytes()
    }

    /// Releases what no proof uses at this moment.
    pub fn clear(&mut self) {
        self.idle.clear();
        self.kept.clear();
    }
}

/// A proof that is counted as in flight as long as this lives.
pub struct InFlight(Arc<Device>);

impl InFlight {
    /// Counts one more.
    pub fn new(device: &Arc<Device>) -> Self {
        device.in_flight.fetch_add(1, SeqCst);
        InFlight(Arc::clone(device))
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, SeqCst);
    }
}

/// The right to work on a lane. When it is dropped before [`Entry::leave`], because the proof failed or
/// panicked, the lane's memory is released and nothing of it is used again.
pub struct Entry<'a> {
    /// Where.
    pub device: &'a Device,
    /// What the circuit's proofs share.
    pub kept: Kept,
    /// The private variables, as the plan counted them.
    pub blocks: Blocks,
    /// How to make the proof.
    pub plan: Plan,
    /// Device memory of the lane.
    pub bytes: u64,
    /// The lane.
    pub lane: Option<Lane>,
}

impl Entry<'_> {
    /// Hands the lane back for the next proof.
    pub fn leave(mut self) {
        let lane = self.lane.take();
        self.close(lane);
    }

    fn close(&mut self, lane: Option<Lane>) {
        let mut pool = self.device.pool();
        if let Some(at) = pool.busy.iter().position(|&bytes| bytes == self.bytes) {
            pool.busy.swap_remove(at);
        }
        pool.idle.extend(lane);
        // Closed: a second time changes nothing.
        self.bytes = u64::MAX;
        drop(pool);
        self.device.changed.notify_all();
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        // A lane that is still here is not trusted any more; its memory goes before others count on it.
        drop(self.lane.take());
        self.close(None);
    }
}
