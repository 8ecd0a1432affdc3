//! Parameters in device memory.

use std::sync::{Arc, Weak};

use cuzk_field::{Affine, G1Affine, G2Affine, casts};
use cuzk_kernels::runtime::{DeviceBuffer, Runtime, RuntimeError};

use super::decode::{DecodedCurve, decode};
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
    /// Copies points that the host has decoded to the device. Otherwise those of a mapped file are decoded
    /// and checked there, and those of [`crate::setup::prepare`] are made there.
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
        if let (None, Some(raw)) = (params.decoded(), params.raw()) {
            let _decode = span.child("decode and check");
            return Ok(Resident {
                params: params_here,
                bytes,
                h: section(runtime, params, "h", raw.h)?,
                l: section(runtime, params, "l", raw.l)?,
                a: section(runtime, params, "a", raw.a)?,
                b_g1: section(runtime, params, "b_g1", raw.b_g1)?,
                b_g2: section(runtime, params, "b_g2", raw.b_g2)?,
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

/// A section of a mapped file, decoded and checked on the device.
fn section<C: DecodedCurve>(
    runtime: &Arc<dyn Runtime>,
    params: &Params,
    what: &'static str,
    bytes: &[u8],
) -> Result<DeviceBuffer<Affine<C>>, ResidentError> {
    match decode::<C>(runtime, bytes)? {
        Ok(points) => Ok(points),
        Err(index) => Err(match params.fault(what, index) {
            Some(fault) => fault.into(),
            None => {
                let message = format!("refused point {index} of {what}, which the host accepts");
                RuntimeError::device("decode", message).into()
            }
        }),
    }
}
