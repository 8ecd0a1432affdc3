//! The arithmetic alone: loops of dependent operations that touch memory only at their ends.

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_field::{FixedFr, Fp, Fr, casts};
use cuzk_kernels::fields::throughput::{
    TABLE, bench_fp_mul, bench_fp_sqr, bench_fr_mul, bench_fr_mul_fixed, bench_fr_sqr,
};
use cuzk_kernels::runtime::{DeviceBuffer, Runtime};
use cuzk_kernels::{Global, GlobalMut, Launch};
use ff::Field;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::{MeasureError, Measured, device_time};

/// Blocks a multiprocessor, 128 threads each.
const BLOCKS: u32 = 16;
/// Wide multiply-adds of an operation; a low product counts half.
const FR_MUL: f64 = 112.0;
const FR_FIXED: f64 = 93.0;
const FP_MUL: f64 = 298.0;
const FP_SQR: f64 = 231.0;

/// Fr and Fp products and squares, Fr products by a fixed factor.
///
/// # Errors
/// When the device fails.
pub fn field(
    runtime: &Arc<dyn Runtime>,
    iterations: u32,
    repetitions: usize,
) -> Result<Vec<Measured>, MeasureError> {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let fr: Vec<Scalar> = (0..TABLE).map(|_| Scalar::random(&mut rng)).collect();
    // Any integer below the modulus, which is above 2^380, is the Montgomery form of some element.
    let limbs = |rng: &mut ChaCha20Rng| std::array::from_fn(|i| rng.next_u32() >> (4 * (i / 11)));
    let fp: Vec<Fp> = (0..TABLE)
        .map(|_| Fp::from_limbs(limbs(&mut rng)))
        .collect();
    let fixed: Vec<FixedFr> = fr
        .iter()
        .map(|&x| super::super::twiddles::fixed(x))
        .collect();
    let fr = DeviceBuffer::from_slice(runtime, casts::from_blst::<Fr>(&fr))?;
    let fp = DeviceBuffer::from_slice(runtime, &fp)?;
    let fixed = DeviceBuffer::from_slice(runtime, &fixed)?;
    let blocks = BLOCKS.min(iterations) * runtime.multiprocessors();
    let threads = blocks * bench_fr_mul::THREADS;
    let out_fr = DeviceBuffer::<Fr>::new(runtime, threads as usize)?;
    let out_fp = DeviceBuffer::<Fp>::new(runtime, threads as usize)?;
    let row = |work: &str, wide: f64, launch: Launch| {
        let seconds = device_time(runtime, repetitions, 1, || runtime.launch(&launch))?;
        let operations = f64::from(threads) * f64::from(iterations);
        Ok(Measured {
            work: work.to_owned(),
            log2: None,
            seconds,
            operations,
            wide: wide * operations,
            bytes: 0.0,
        })
    };
    let fr_chain = |launch: fn(u32, u32, Global<Fr>, GlobalMut<Fr>) -> Launch| {
        launch(blocks, iterations, fr.global(), out_fr.global_mut())
    };
    let fp_chain = |launch: fn(u32, u32, Global<Fp>, GlobalMut<Fp>) -> Launch| {
        launch(blocks, iterations, fp.global(), out_fp.global_mut())
    };
    let by_fixed = bench_fr_mul_fixed::launch(
        blocks,
        iterations,
        fixed.global(),
        fr.global(),
        out_fr.global_mut(),
    );
    [
        row("Fr mul", FR_MUL, fr_chain(bench_fr_mul::launch)),
        row("Fr mul, fixed factor", FR_FIXED, by_fixed),
        row("Fr sqr", FR_MUL, fr_chain(bench_fr_sqr::launch)),
        row("Fp mul", FP_MUL, fp_chain(bench_fp_mul::launch)),
        row("Fp sqr", FP_SQR, fp_chain(bench_fp_sqr::launch)),
    ]
    .into_iter()
    .collect()
}
