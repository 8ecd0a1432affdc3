//! The points of parameters by a device.

use super::{
    SetupError,
    sections::{Multiples, Part, Sections},
    waste::{Secret, ToxicWaste},
};
use crate::{
    Counts,
    gpu::{
        Runtime,
        fixed_base::{FixedBase, FixedBaseCurve},
    },
};
use blstrs::{G1Affine, G2Affine};
use cuzk_field::{Affine, G1, G2, casts};
use cuzk_kernels::runtime::{DeviceBuffer, RuntimeError};
use std::sync::Arc;

/// Tables of both generators on a device.
pub(super) struct OnDevice {
    runtime: Arc<dyn Runtime>,
    pub(super) g1: FixedBase<G1>,
    pub(super) g2: FixedBase<G2>,
    block: usize,
}

impl OnDevice {
    pub(super) fn new(
        runtime: &Arc<dyn Runtime>,
        waste: &ToxicWaste,
        counts: &Counts,
    ) -> Result<Self, RuntimeError> {
        let g1_points = counts.h + counts.l + counts.a + counts.b;
        let g1 = FixedBase::new(runtime, &waste.g1, g1_points)?;
        let g2 = FixedBase::new(runtime, &waste.g2, counts.b)?;
        Ok(Self {
            runtime: runtime.clone(),
            block: g1.block().min(g2.block()),
            g1,
            g2,
        })
    }

    /// Computes the points of a part into `out`.
    pub(super) fn fill<C: FixedBaseCurve>(
        &self,
        sections: &Sections<'_>,
        part: Part,
        table: &FixedBase<C>,
        out: &DeviceBuffer<Affine<C>>,
    ) -> Result<(), RuntimeError> {
        let mut at = 0;
        sections.scalars(part, self.block, &mut |scalars| {
            table.multiply(scalars, out.global_mut().offset(at))?;
            at += scalars.len();
            Ok::<(), RuntimeError>(())
        })?;
        self.runtime.synchronize()
    }

    fn to_host<C: FixedBaseCurve>(
        &self,
        table: &FixedBase<C>,
        scalars: &Secret,
    ) -> Result<Vec<Affine<C>>, RuntimeError> {
        let out = DeviceBuffer::new(&self.runtime, scalars.len())?;
        table.multiply(scalars, out.global_mut())?;
        out.to_vec()
    }
}

impl Multiples for OnDevice {
    fn block(&self) -> usize {
        self.block
    }

    fn g1(&mut self, scalars: &Secret) -> Result<Vec<G1Affine>, SetupError> {
        Ok(casts::to_blst(&self.to_host(&self.g1, scalars)?).to_vec())
    }

    fn g2(&mut self, scalars: &Secret) -> Result<Vec<G2Affine>, SetupError> {
        Ok(casts::to_blst(&self.to_host(&self.g2, scalars)?).to_vec())
    }
}
