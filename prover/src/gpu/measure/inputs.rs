//! Inputs whose results can be checked: scalars, and points that are known multiples of the generator.

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_field::casts::{self, Counterpart};
use cuzk_field::curve::Affine;
use cuzk_kernels::runtime::{DeviceBuffer, Runtime};
use ff::Field;
use group::{Curve, Group};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use rayon::prelude::*;

use super::MeasureError;
use crate::gpu::msm::{GpuCurve, Pairs};

/// Points that the host computes; the device doubles the table from there.
const HOST_POINTS: usize = 1 << 10;
/// Scalars that one task handles.
const CHUNK: usize = 1 << 14;

/// `(i + 1)·G` for i < 2^log2, in device memory.
///
/// # Errors
/// When the device fails.
pub fn multiples<C>(
    runtime: &Arc<dyn Runtime>,
    log2: u32,
) -> Result<DeviceBuffer<Affine<C>>, MeasureError>
where
    C: GpuCurve,
    Affine<C>: Counterpart,
    C::Host: Curve<AffineRepr = <Affine<C> as Counterpart>::Blst>,
    <Affine<C> as Counterpart>::Blst: Default,
{
    let len = 1usize << log2;
    let first: Vec<C::Host> = std::iter::successors(Some(C::Host::generator()), |p| {
        Some(*p + C::Host::generator())
    })
    .take(HOST_POINTS.min(len))
    .collect();
    let mut affine = vec![Default::default(); first.len()];
    C::Host::batch_normalize(&first, &mut affine);
    let points = DeviceBuffer::<Affine<C>>::new(runtime, len)?;
    points.upload(0, casts::from_blst(&affine))?;
    let mut known = first.len();
    if known < len {
        let prefix = DeviceBuffer::<C::Base>::new(runtime, len / 2)?;
        let products = DeviceBuffer::<C::Base>::new(runtime, len / 16 + 1024)?;
        let scratch = DeviceBuffer::<C::Base>::new(runtime, len / 16 + 1024)?;
        let list = DeviceBuffer::<[u32; 2]>::new(runtime, len / 2)?;
        while known < len {
            let last = known as u32 - 1;
            let pairs: Vec<[u32; 2]> = (0..=last).map(|i| [i, last]).collect();
            list.upload(0, &pairs)?;
            let pairs = Pairs::<C> {
                count: known as u32,
                per: 8,
                list: list.global(),
                bases: points.global(),
                partial: points.global_mut(),
                first: known as u32,
                prefix: prefix.global_mut(),
                products: products.global_mut(),
                scratch: scratch.global_mut(),
            };
            for launch in C::add(&pairs, runtime.multiprocessors()) {
                runtime.launch(&launch)?;
            }
            known *= 2;
        }
        runtime.synchronize()?;
    }
    Ok(points)
}

/// Random scalars, the same in every run.
pub fn random_scalars(len: usize) -> Vec<Scalar> {
    let mut scalars = vec![Scalar::ZERO; len];
    scalars
        .par_chunks_mut(CHUNK)
        .enumerate()
        .for_each(|(seed, chunk)| {
            let mut rng = ChaCha20Rng::seed_from_u64(seed as u64);
            chunk.fill_with(|| Scalar::random(&mut rng));
        });
    scalars
}

/// u^i for i < len.
pub(super) fn powers(u: Scalar, len: usize) -> Vec<Scalar> {
    let mut values = vec![Scalar::ZERO; len];
    values
        .par_chunks_mut(CHUNK)
        .enumerate()
        .for_each(|(chunk, values)| {
            let mut x = u.pow_vartime([(chunk * CHUNK) as u64]);
            for value in values {
                *value = x;
                x *= u;
            }
        });
    values
}

/// Σ scalar_i · (base_i + 1), the discrete logarithm of a sum over [`multiples`]; base_i is i without a map.
pub fn weighted_sum(scalars: &[Scalar], map: Option<&[u32]>) -> Scalar {
    let part = |(number, chunk): (usize, &[Scalar])| {
        let first = number * CHUNK;
        let weight = |k: usize| map.map_or((first + k) as u64, |map| map[first + k].into()) + 1;
        chunk
            .iter()
            .enumerate()
            .map(|(k, s)| s * Scalar::from(weight(k)))
            .sum::<Scalar>()
    };
    scalars
        .par_chunks(CHUNK)
        .enumerate()
        .map(part)
        .reduce(|| Scalar::ZERO, |a, b| a + b)
}
