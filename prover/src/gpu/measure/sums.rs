//! Multi-scalar multiplications over multiples of the generator.

use std::sync::Arc;

use blstrs::{G1Projective, Scalar};
use cuzk_field::curve::Affine;
use cuzk_field::{Fr, G1, casts};
use cuzk_kernels::Global;
use cuzk_kernels::runtime::{Arena, DeviceBuffer, Runtime};
use ff::Field;
use group::Group;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::{MeasureError, Measured, inputs, wall_time};
use crate::gpu::msm::{Bitmaps, GpuCurve, Plan, Scalars, Selection, Sorted, sum_of_points};

/// Wide multiply-adds of a batched affine addition in G1: five products and a square.
const ADDITION: f64 = 1726.0;
/// Share of the free memory that a sum may take, in percent.
const MEMORY_SHARE: u64 = 80;
/// Scalars of a thousand in a compact witness that are neither 0 nor 1.
const OTHERS: u32 = 13;

/// Σ scalar_i · base_i over 2^log2 random scalars; `bases` are [`inputs::multiples`].
///
/// # Errors
/// When the device fails, computes wrongly, or has too little memory.
pub fn sum<C: GpuCurve>(
    runtime: &Arc<dyn Runtime>,
    bases: Global<Affine<C>>,
    log2: u32,
    repetitions: usize,
) -> Result<Measured, MeasureError> {
    let n = 1usize << log2;
    let scalars = inputs::random_scalars(n);
    let expected = C::Host::generator() * inputs::weighted_sum(&scalars, None);
    let values = DeviceBuffer::from_slice(runtime, casts::from_blst::<Fr>(&scalars))?;
    drop(scalars);
    let memory = runtime.memory()?.free / 100 * MEMORY_SHARE;
    let plan = Plan::new::<C>(n, runtime.multiprocessors(), memory)?;
    let mut arena = Arena::new(runtime, plan.bytes::<C>())?;
    let (seconds, sum) = wall_time::<_, MeasureError>(runtime, repetitions, || {
        arena.reset();
        let scalars = Scalars {
            values: values.global(),
            map: None,
        };
        let sorted = Sorted::new(&mut arena, &plan, scalars)?;
        Ok(sorted.sum::<C>(&mut arena, bases)?)
    })?;
    let work = format!("MSM {}", C::NAME);
    if sum != expected {
        return Err(MeasureError::Wrong(format!("{work} of 2^{log2}")));
    }
    let additions = n as f64 * f64::from(plan.windows());
    // A product in Fp2 takes two of Karatsuba's three products in Fp.
    let cost = if size_of::<Affine<C>>() > size_of::<Affine<G1>>() {
        2.1 * ADDITION
    } else {
        ADDITION
    };
    Ok(Measured {
        work,
        log2: Some(log2),
        seconds,
        operations: n as f64,
        wide: cost * additions,
        bytes: additions * size_of::<Affine<C>>() as f64,
    })
}

/// The sum over 2^log2 scalars of which 98.7 % are 0 or 1, as in the witness of a proof of replication.
///
/// # Errors
/// As [`sum`].
pub fn compact_sum(
    runtime: &Arc<dyn Runtime>,
    bases: Global<Affine<G1>>,
    log2: u32,
    repetitions: usize,
) -> Result<Measured, MeasureError> {
    let len = 1usize << log2;
    let words = len.div_ceil(128);
    let (mut bits, mut others) = (vec![[0u32; 4]; words], vec![[0u32; 4]; words]);
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let (mut map, mut ones, mut points) = (Vec::new(), Scalar::ZERO, 0u32);
    for i in 0..len {
        let (random, bit) = (rng.next_u32(), 1 << (i % 32));
        if random % 1000 < OTHERS {
            others[i / 128][i / 32 % 4] |= bit;
            map.push(i as u32);
        } else if random >> 31 == 1 {
            bits[i / 128][i / 32 % 4] |= bit;
            ones += Scalar::from(i as u64 + 1);
            points += 1;
        }
    }
    let scalars = inputs::random_scalars(map.len());
    let logarithm = ones + inputs::weighted_sum(&scalars, Some(&map));
    let values = DeviceBuffer::from_slice(runtime, casts::from_blst::<Fr>(&scalars))?;
    let bits = DeviceBuffer::from_slice(runtime, &bits)?;
    let others = DeviceBuffer::from_slice(runtime, &others)?;
    let bitmaps = Bitmaps {
        len: len as u32,
        bits: bits.global(),
        others: others.global(),
        density: None,
    };
    let memory = runtime.memory()?.free / 100 * MEMORY_SHARE;
    let mut arena = Arena::new(runtime, memory)?;
    let (seconds, sum) = wall_time::<_, MeasureError>(runtime, repetitions, || {
        arena.reset();
        let selection = Selection::new(&mut arena, bitmaps, map.len() as u32)?;
        let ones =
            sum_of_points::<G1>(&mut arena, selection.ones.read(), selection.ones_len, bases)?;
        let plan = Plan::new::<G1>(map.len(), runtime.multiprocessors(), arena.left())?;
        let scalars = Scalars {
            values: values.global(),
            map: Some(selection.map.read()),
        };
        let sorted = Sorted::new(&mut arena, &plan, scalars)?;
        Ok(ones + sorted.sum::<G1>(&mut arena, bases)?)
    })?;
    if sum != G1Projective::generator() * logarithm {
        return Err(MeasureError::Wrong(format!("MSM G1 compact of 2^{log2}")));
    }
    let plan = Plan::new::<G1>(map.len(), runtime.multiprocessors(), memory)?;
    let additions = f64::from(points) + map.len() as f64 * f64::from(plan.windows());
    Ok(Measured {
        work: "MSM G1 compact".to_owned(),
        log2: Some(log2),
        seconds,
        operations: len as f64,
        wide: ADDITION * additions,
        bytes: additions * size_of::<Affine<G1>>() as f64,
    })
}
