//! Parameters in device memory.

use std::sync::{Arc, Weak};

use bytemuck::Pod;
use cuzk_field::{Affine, G1Affine, G2Affine, casts};
use cuzk_kernels::Element;
use cuzk_kernels::runtime::{DeviceBuffer, Runtime, RuntimeError};

use super::decode::{DecodedCurve, decode};
use super::msm::GpuCurve;
use super::plan::{BaseSet, BaseSets};
use crate::{
    Params, ParamsError, SubgroupCheck,
    setup::{DevicePoints, SetupError},
    timeline::Span,
};

/// Base sets of one circuit's parameters on one device: affine points in Montgomery form.
pub struct Resident {
    params: Weak<Params>,
    sets: BaseSets,
    bytes: u64,
    /// See [`crate::Points::h`].
    pub h: Option<DeviceBuffer<G1Affine>>,
    /// See [`crate::Points::l`].
    pub l: Option<DeviceBuffer<G1Affine>>,
    /// See [`crate::Points::a`].
    pub a: Option<DeviceBuffer<G1Affine>>,
    /// See [`crate::Points::b_g1`].
    pub b_g1: Option<DeviceBuffer<G1Affine>>,
    /// See [`crate::Points::b_g2`].
    pub b_g2: Option<DeviceBuffer<G2Affine>>,
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
    /// Copies these sets of points that the host has decoded to the device. Otherwise those of a mapped file are
    /// decoded and checked there, and those of [`crate::setup::prepare`] are made there, all of them.
    ///
    /// # Errors
    /// When a point is bad or cannot be made, or the device fails or has no room.
    pub fn new(
        runtime: &Arc<dyn Runtime>,
        params: &Arc<Params>,
        sets: BaseSets,
        span: &Span,
    ) -> Result<Self, ResidentError> {
        if let Some(generator) = params.generator() {
            let made = generator.on_device(runtime, span)?;
            runtime.synchronize()?;
            return Ok(Self::made(params, made));
        }
        if let (None, Some(raw)) = (params.decoded(), params.raw()) {
            let _decode = span.child("decode and check");
            let g1 = |set: BaseSet, bytes: &[u8]| {
                let wanted = sets.contains(set);
                wanted
                    .then(|| section(runtime, params, set.name(), bytes))
                    .transpose()
            };
            let b_g2 = sets.contains(BaseSet::BG2);
            let resident = Resident {
                params: Arc::downgrade(params),
                sets,
                bytes: sets.bytes(&params.counts()),
                h: g1(BaseSet::H, raw.h)?,
                l: g1(BaseSet::L, raw.l)?,
                a: g1(BaseSet::A, raw.a)?,
                b_g1: g1(BaseSet::BG1, raw.b_g1)?,
                b_g2: b_g2
                    .then(|| section(runtime, params, "b_g2", raw.b_g2))
                    .transpose()?,
            };
            runtime.synchronize()?;
            return Ok(resident);
        }
        let points = span.time("decode and check", || params.decode(SubgroupCheck::Full))?;
        let _upload = span.child("upload");
        let g1 = |set: BaseSet, points: &[blstrs::G1Affine]| {
            copy(
                runtime,
                sets.contains(set),
                casts::from_blst::<G1Affine>(points),
            )
        };
        let b_g2 = casts::from_blst::<G2Affine>(&points.b_g2);
        let resident = Resident {
            params: Arc::downgrade(params),
            sets,
            bytes: sets.bytes(&params.counts()),
            h: g1(BaseSet::H, &points.h)?,
            l: g1(BaseSet::L, &points.l)?,
            a: g1(BaseSet::A, &points.a)?,
            b_g1: g1(BaseSet::BG1, &points.b_g1)?,
            b_g2: copy(runtime, sets.contains(BaseSet::BG2), b_g2)?,
        };
        // Other streams read the points from now on.
        runtime.synchronize()?;
        Ok(resident)
    }

    /// Points that were made on the device.
    fn made(params: &Arc<Params>, points: DevicePoints) -> Self {
        let DevicePoints {
            h,
            l,
            a,
            b_g1,
            b_g2,
        } = points;
        Resident {
            params: Arc::downgrade(params),
            sets: BaseSets::ALL,
            bytes: BaseSets::ALL.bytes(&params.counts()),
            h: Some(h),
            l: Some(l),
            a: Some(a),
            b_g1: Some(b_g1),
            b_g2: Some(b_g2),
        }
    }

    /// Whether these are points of `params`.
    pub fn is_for(&self, params: &Arc<Params>) -> bool {
        std::ptr::eq(self.params.as_ptr(), Arc::as_ptr(params))
    }

    /// Whether anybody holds the parameters.
    pub fn is_wanted(&self) -> bool {
        self.params.strong_count() > 0
    }

    /// The sets that are here.
    pub fn sets(&self) -> BaseSets {
        self.sets
    }

    /// Device memory that the points take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

fn copy<C: GpuCurve>(
    runtime: &Arc<dyn Runtime>,
    wanted: bool,
    points: &[Affine<C>],
) -> Result<Option<DeviceBuffer<Affine<C>>>, RuntimeError>
where
    Affine<C>: Pod + Element,
{
    wanted
        .then(|| DeviceBuffer::from_slice(runtime, points))
        .transpose()
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
