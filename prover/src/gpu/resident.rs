//! Parameters in device memory.

use std::sync::{Arc, Weak};

use cuzk_field::{G1Affine, G2Affine, casts};
use cuzk_kernels::runtime::{DeviceBuffer, Runtime, RuntimeError};

use crate::{
    Params, ParamsError, SubgroupCheck,
    setup::{DevicePoints, SetupError},
    timeline::Span,
};

/// The points of one circuit's parameters on one device, affine, in Montgomery form.
pub struct Resident {
    params: Weak<Params>,
    bytes: u64,
    /// See [`crate::Points::h`].
    pub h: DeviceBuffer<G1Affine>,
    /// See [`crate::Points::l`].
    pub l: DeviceBuffer<G1Affine>,
    /// See [`crate::Points::a`].
    pub a: DeviceBuffer<G1Affine>,
    /// See [`crate::Points::b_g1`].
    pub b_g1: DeviceBuffer<G1Affine>,
    /// See [`crate::Points::b_g2`].
    pub b_g2: DeviceBuffer<G2Affine>,
}

/// Why parameters are not on the device.
#[derive(Debug, thiserror::Error)]
pub enum ResidentError {
    /// The parameters are bad.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// The parameters could not be made on the device.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The device failed or has no room.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl Resident {
    /// Decodes and checks the points, unless that is done, and copies them to the device; the points of
    /// [`crate::setup::prepare`] are made there.
    ///
    /// # Errors
    /// When a point is bad or cannot be made, or the device fails or has no room.
    pub fn new(
        runtime: &Arc<dyn Runtime>,
        params: &Arc<Params>,
        span: &Span,
    ) -> Result<Self, ResidentError> {
        let counts = params.counts();
        let g1_points = counts.h + counts.l + counts.a + counts.b;
        let bytes = 96 * g1_points as u64 + 192 * counts.b as u64;
        let params_here = Arc::downgrade(params);
        if let Some(generator) = params.generator() {
            let DevicePoints {
                h,
                l,
                a,
                b_g1,
                b_g2,
            } = generator.on_device(runtime, span)?;
            return Ok(Resident {
                params: params_here,
                bytes,
                h,
                l,
                a,
                b_g1,
                b_g2,
            });
        }
        let points = span.time("decode and check", || params.decode(SubgroupCheck::Full))?;
        let _upload = span.child("upload");
        let g1 = |points: &[blstrs::G1Affine]| {
            DeviceBuffer::from_slice(runtime, casts::from_blst::<G1Affine>(points))
        };
        Ok(Resident {
            params: params_here,
            bytes,
            h: g1(&points.h)?,
            l: g1(&points.l)?,
            a: g1(&points.a)?,
            b_g1: g1(&points.b_g1)?,
            b_g2: DeviceBuffer::from_slice(runtime, casts::from_blst::<G2Affine>(&points.b_g2))?,
        })
    }

    /// Whether these are the points of `params`.
    pub fn is_for(&self, params: &Arc<Params>) -> bool {
        std::ptr::eq(self.params.as_ptr(), Arc::as_ptr(params))
    }

    /// Device memory that the points take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
