//! The points of a parameter file decoded and checked on a device: the launches of `cuzk_kernels::decode`.

use std::sync::Arc;

use cuzk_field::{Affine, G1, G2};
use cuzk_kernels::decode::{
    check_subgroup_g1, check_subgroup_g2, decode_points_g1, decode_points_g2,
};
use cuzk_kernels::runtime::{DeviceBuffer, Runtime, RuntimeError};
use cuzk_kernels::{Element, Global, GlobalMut, Launch};

use super::msm::GpuCurve;

/// Points whose bytes are on the device at once: 200 MB in G1.
const BLOCK: usize = 1 << 21;

/// A curve with kernels for decoding.
pub(crate) trait DecodedCurve: GpuCurve<Base: bytemuck::Pod> {
    /// Decodes points.
    fn decode(
        n: u32,
        bytes: Global<[u32; 4]>,
        points: GlobalMut<Affine<Self>>,
        fault: GlobalMut<u32>,
    ) -> Launch;
    /// Checks the subgroup of decoded points.
    fn check(n: u32, points: Global<Affine<Self>>, fault: GlobalMut<u32>) -> Launch;
}

macro_rules! decoded_curve {
    ($curve:ty, $decode:ident, $check:ident) => {
        impl DecodedCurve for $curve {
            fn decode(
                n: u32,
                bytes: Global<[u32; 4]>,
                points: GlobalMut<Affine<Self>>,
                fault: GlobalMut<u32>,
            ) -> Launch {
                $decode::launch(n.div_ceil($decode::THREADS), n, bytes, points, fault)
            }

            fn check(n: u32, points: Global<Affine<Self>>, fault: GlobalMut<u32>) -> Launch {
                $check::launch(n.div_ceil($check::THREADS), n, points, fault)
            }
        }
    };
}

decoded_curve!(G1, decode_points_g1, check_subgroup_g1);
decoded_curve!(G2, decode_points_g2, check_subgroup_g2);

/// Decodes a section of a parameter file into device memory and checks that every point is a finite point
/// of the curve's subgroup of prime order. The inner error is the index of a bad point, the first one of
/// its block with the same kind of fault.
pub(crate) fn decode<C: DecodedCurve>(
    runtime: &Arc<dyn Runtime>,
    section: &[u8],
) -> Result<Result<DeviceBuffer<Affine<C>>, usize>, RuntimeError> {
    let bytes = <Affine<C> as Element>::BYTES as usize;
    let count = section.len() / bytes;
    let points = DeviceBuffer::<Affine<C>>::new(runtime, count)?;
    let encoded = DeviceBuffer::<[u32; 4]>::new(runtime, bytes / 16 * BLOCK.min(count))?;
    let fault = DeviceBuffer::<u32>::new(runtime, 1)?;
    for (block, section) in section.chunks(BLOCK * bytes).enumerate() {
        let n = (section.len() / bytes) as u32;
        runtime.upload(encoded.global().address(), section)?;
        fault.upload(0, &[u32::MAX])?;
        let first = block * BLOCK;
        let here = points.global_mut().offset(first);
        runtime.launch(&C::decode(n, encoded.global(), here, fault.global_mut()))?;
        let mut found = [0u32];
        fault.download(0, &mut found)?;
        if found[0] == u32::MAX {
            runtime.launch(&C::check(n, here.read(), fault.global_mut()))?;
            fault.download(0, &mut found)?;
        }
        if found[0] != u32::MAX {
            return Ok(Err(first + found[0] as usize));
        }
    }
    Ok(Ok(points))
}
