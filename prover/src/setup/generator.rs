//! Parameters whose points are made where they are used.

use super::{
    SetupError, compiled,
    device::OnDevice,
    points,
    qap::Evaluations,
    sections::{Part, Sections},
    waste::ToxicWaste,
};
use crate::{Counts, Points, VerifyingKey, gpu::Runtime, timeline::Span};
use cuzk_circuit::CompiledCircuit;
use cuzk_field::{G1Affine, G2Affine};
use cuzk_kernels::runtime::DeviceBuffer;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The secrets and the circuit behind parameters.
pub(crate) struct Generator {
    circuit: Arc<CompiledCircuit>,
    waste: ToxicWaste,
    /// The points of the inputs.
    inputs: Points,
    evaluations: Mutex<Kept>,
}

/// The polynomials at τ: kept until their first use, then as long as somebody uses them.
struct Kept {
    first: Option<Arc<Evaluations>>,
    last: Weak<Evaluations>,
}

/// The points of all parts in device memory.
pub(crate) struct DevicePoints {
    pub(crate) h: DeviceBuffer<G1Affine>,
    pub(crate) l: DeviceBuffer<G1Affine>,
    pub(crate) a: DeviceBuffer<G1Affine>,
    pub(crate) b_g1: DeviceBuffer<G1Affine>,
    pub(crate) b_g2: DeviceBuffer<G2Affine>,
}

impl Generator {
    pub(super) fn new(
        circuit: Arc<CompiledCircuit>,
        waste: ToxicWaste,
    ) -> Result<(Self, VerifyingKey, Counts), SetupError> {
        waste.check()?;
        let evaluations = Arc::new(compiled::evaluate(&circuit, &waste)?);
        let sections = Sections::new(&waste, &evaluations)?;
        let (key, counts) = (sections.verifying_key(), sections.counts());
        let inputs = sections.input_points();
        let kept = Kept {
            last: Arc::downgrade(&evaluations),
            first: Some(evaluations),
        };
        let generator = Self {
            circuit,
            waste,
            inputs,
            evaluations: Mutex::new(kept),
        };
        Ok((generator, key, counts))
    }

    /// The points of a and b that belong to inputs.
    pub(crate) fn inputs(&self) -> &Points {
        &self.inputs
    }

    /// All points, on the host.
    pub(crate) fn on_host(&self) -> Result<Points, SetupError> {
        let evaluations = self.evaluations()?;
        points(&Sections::new(&self.waste, &evaluations)?)
    }

    /// All points, in the memory of a device.
    pub(crate) fn on_device(
        &self,
        runtime: &Arc<dyn Runtime>,
        span: &Span,
    ) -> Result<DevicePoints, SetupError> {
        let evaluations = span.time("polynomials at tau", || self.evaluations())?;
        let sections = span.time("check", || Sections::new(&self.waste, &evaluations))?;
        let counts = sections.counts();
        let memory = span.child("memory");
        let out = DevicePoints {
            h: DeviceBuffer::new(runtime, counts.h)?,
            l: DeviceBuffer::new(runtime, counts.l)?,
            a: DeviceBuffer::new(runtime, counts.a)?,
            b_g1: DeviceBuffer::new(runtime, counts.b)?,
            b_g2: DeviceBuffer::new(runtime, counts.b)?,
        };
        drop(memory);
        let tables = span.child("tables");
        let device = OnDevice::new(runtime, &self.waste, &counts)?;
        drop(tables);
        let parts = [
            (Part::H, "h", &out.h),
            (Part::L, "l", &out.l),
            (Part::A, "a", &out.a),
            (Part::BG1, "b g1", &out.b_g1),
        ];
        for (part, name, buffer) in parts {
            let _part = span.child(name);
            device.fill(&sections, part, &device.g1, buffer)?;
        }
        let part = span.child("b g2");
        device.fill(&sections, Part::BG2, &device.g2, &out.b_g2)?;
        drop(part);
        span.time("release", || drop((device, evaluations)));
        Ok(out)
    }

    fn evaluations(&self) -> Result<Arc<Evaluations>, SetupError> {
        let mut kept = self
            .evaluations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(evaluations) = kept.first.take().or_else(|| kept.last.upgrade()) {
            return Ok(evaluations);
        }
        let evaluations = Arc::new(compiled::evaluate(&self.circuit, &self.waste)?);
        kept.last = Arc::downgrade(&evaluations);
        Ok(evaluations)
    }
}
