//! The GPU back end: everything after synthesis on one of some devices, through their runtimes.

use std::sync::Arc;

use cuzk_circuit::{Assignment, CompiledCircuit};
use cuzk_kernels::runtime::Runtime;

use super::device::Device;
use super::plan::{Choices, Plan, Shape};
use crate::{
    Backend, Params, ProveError,
    backend::{Background, Failed, Job, Maker, Running},
};

/// Proofs on the devices behind one or more runtimes. Each proof goes to the device with the fewest
/// proofs in flight; a device that fails is taken out of use.
pub struct Gpu {
    devices: Vec<Arc<Device>>,
}

impl Gpu {
    /// A back end on these devices; on each, at most `limit` bytes of memory are taken.
    pub fn new(runtimes: Vec<Arc<dyn Runtime>>, limit: Option<u64>) -> Self {
        Self::with_choices(runtimes, limit, Choices::default())
    }

    /// [`Gpu::new`] with less choice for the planner: for tests and measurements.
    pub fn with_choices(
        runtimes: Vec<Arc<dyn Runtime>>,
        limit: Option<u64>,
        choices: Choices,
    ) -> Self {
        let devices = runtimes.into_iter().enumerate();
        Gpu {
            devices: devices
                .map(|(number, runtime)| Arc::new(Device::new(number, runtime, limit, choices)))
                .collect(),
        }
    }

    /// Proofs in flight on each device; `None` for one that was taken out of use.
    pub fn loads(&self) -> Vec<Option<usize>> {
        let load = |device: &Arc<Device>| (!device.is_broken()).then(|| device.load());
        self.devices.iter().map(load).collect()
    }

    fn usable(&self) -> impl Iterator<Item = &Arc<Device>> {
        self.devices.iter().filter(|device| !device.is_broken())
    }
}

impl Backend for Gpu {
    fn describe(&self) -> String {
        let names: Vec<String> = self.devices.iter().map(|device| device.name()).collect();
        names.join(", ")
    }

    fn start(&self, job: Job) -> Result<Box<dyn Running>, Box<Failed>> {
        let allowed = |device: &&Arc<Device>| !job.avoid.contains(&device.number);
        let device = self
            .usable()
            .filter(allowed)
            .min_by_key(|device| device.load());
        let Some(device) = device else {
            let backend = "gpu".to_owned();
            return Err(Failed::before(job, ProveError::NoDevice { backend }));
        };
        let flight = device.enter_flight();
        let maker = Maker {
            name: device.name(),
            number: device.number,
        };
        Background::start("cuzk-gpu", maker, job, move |job| {
            let flight = flight;
            flight.device().prove(job)
        })
    }

    fn distrust(&self, number: usize) {
        if let Some(device) = self.devices.get(number) {
            device.count_failure();
        }
    }

    fn plans(
        &self,
        params: &Params,
        assignment: &Assignment,
        circuit: Option<&CompiledCircuit>,
    ) -> Result<Vec<(String, Plan)>, ProveError> {
        let shape = Shape::new(params, assignment, circuit);
        self.usable()
            .map(|device| Ok((device.name(), device.plan(&shape)?)))
            .collect()
    }
}
