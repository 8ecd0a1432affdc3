//! Our kernels and sppark's, one after the other on the same device and the same inputs.
//!
//! `peer-kernels [LARGEST] [OUT.json]`: sizes up to 2^LARGEST (24). Results of both sides are compared where
//! they are the same function; a time is the median over repetitions, sppark's sums take their best width.

mod sppark;

use blstrs::Scalar;
use cuzk_field::curve::Affine;
use cuzk_field::{Fr, G1, G2, casts};
use cuzk_kernels::Global;
use cuzk_kernels::runtime::{DeviceBuffer, Runtime};
use cuzk_prover::cuda::CudaRuntime;
use cuzk_prover::gpu::measure::{self, Kind, Limits, Measured, Selection};
use cuzk_prover::gpu::msm::GpuCurve;
use cuzk_prover::gpu::ntt::{At, Direction, Transform};
use cuzk_prover::gpu::quotient::Quotient;
use ff::Field;
use group::{Curve, Group, GroupEncoding};
use serde_json::{Value, json};
use sppark::{Loop, Order};
use std::error::Error;
use std::sync::Arc;

type Outcome<T> = Result<T, Box<dyn Error>>;

const REPETITIONS: usize = 9;
/// Largest arrays that are compared element by element.
const COMPARED_LOG2: u32 = 22;
const ITERATIONS: u32 = 2000;
const BLOCKS: u32 = 16;

struct Bench {
    runtime: Arc<dyn Runtime>,
    limits: Limits,
    rows: Vec<Value>,
}

impl Bench {
    fn row(&mut self, ours: &Measured, peer: f64, note: &str) {
        let (bound, multiplier) = ours.bound(&self.limits);
        let size = ours.log2.map_or(String::new(), |log2| format!("2^{log2}"));
        println!(
            "{:<22} {size:>5} {:>11.4} {:>11.4} {:>7.2} {:>5.0} % {:<10} {note}",
            ours.work,
            1e3 * peer,
            1e3 * ours.seconds,
            peer / ours.seconds,
            100.0 * bound / ours.seconds,
            if multiplier { "multiplier" } else { "memory" },
        );
        self.rows.push(json!({
            "work": ours.work, "log2": ours.log2, "sppark_seconds": peer, "seconds": ours.seconds,
            "ratio": peer / ours.seconds, "bound_seconds": bound, "note": note,
        }));
    }

    fn field(&mut self) -> Outcome<()> {
        let ours = measure::field(&self.runtime, ITERATIONS, REPETITIONS)?;
        let blocks = BLOCKS * self.runtime.multiprocessors();
        for (name, operation) in [
            ("Fr mul", Loop::FrMul),
            ("Fp mul", Loop::FpMul),
            ("Fp sqr", Loop::FpSqr),
        ] {
            let words = sppark::element_bytes(operation) / 4;
            let table = vec![0x0123_4567u32; 1024 * words];
            let table = DeviceBuffer::from_slice(&self.runtime, &table)?;
            let out = DeviceBuffer::<u32>::new(&self.runtime, blocks as usize * 128 * words)?;
            self.runtime.synchronize()?;
            let times = (0..REPETITIONS).map(|_| {
                let (out, table) = (out.global().address(), table.global().address());
                sppark::field(operation, out, table, blocks, ITERATIONS)
            });
            let peer = median(times.collect::<Result<_, _>>()?);
            let Some(ours) = ours.iter().find(|row| row.work == name) else {
                continue;
            };
            self.row(ours, peer, "");
        }
        Ok(())
    }

    fn transforms(&mut self, log2: u32) -> Outcome<()> {
        let values = measure::random_scalars(1 << log2);
        let data = DeviceBuffer::from_slice(&self.runtime, casts::from_blst::<Fr>(&values))?;
        let ours = DeviceBuffer::from_slice(&self.runtime, casts::from_blst::<Fr>(&values))?;
        drop(values);
        self.runtime.synchronize()?;
        sppark::transform(
            data.global_mut(),
            log2,
            Order::NaturalToReversed,
            (false, false),
            1,
        )?;
        Transform::new(&self.runtime, log2, Direction::Forward, At::Roots)?
            .dif(ours.global(), ours.global_mut())?;
        if log2 <= COMPARED_LOG2 && data.to_vec()? != ours.to_vec()? {
            return Err(format!("the transforms of 2^{log2} differ").into());
        }
        for (kind, order, inverse, coset, note) in [
            (
                Kind::Forward,
                Order::Natural,
                false,
                false,
                "sppark natural to natural",
            ),
            (Kind::Forward, Order::NaturalToReversed, false, false, ""),
            (Kind::Inverse, Order::NaturalToReversed, true, false, ""),
            (Kind::Coset, Order::ReversedToNatural, false, true, ""),
            (
                Kind::InverseCoset,
                Order::Natural,
                true,
                true,
                "sppark natural to natural",
            ),
        ] {
            let count = REPETITIONS as u32 + 1;
            let times = sppark::transform(data.global_mut(), log2, order, (inverse, coset), count)?;
            let ours = measure::transform(&self.runtime, log2, kind, None, REPETITIONS)?;
            self.row(&ours, median(times), note);
        }
        Ok(())
    }

    fn quotient(&mut self, log2: u32) -> Outcome<()> {
        let n = 1usize << log2;
        let a = measure::random_scalars(n);
        let b: Vec<Scalar> = a.iter().rev().copied().collect();
        let c: Vec<Scalar> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
        let upload = |values: &[Scalar]| {
            DeviceBuffer::from_slice(&self.runtime, casts::from_blst::<Fr>(values))
        };
        // sppark's coset is that of 7.
        let z = Scalar::from(7).pow_vartime([n as u64]) - Scalar::ONE;
        let z = upload(&[Option::from(z.invert()).unwrap_or(Scalar::ZERO)])?;
        let arrays = [upload(&a)?, upload(&b)?, upload(&c)?];
        let [on_a, on_b, on_c] = [upload(&a)?, upload(&b)?, upload(&c)?];
        drop((a, b, c));
        self.runtime.synchronize()?;
        let run = || {
            let arrays = [&arrays[0], &arrays[1], &arrays[2]].map(DeviceBuffer::global_mut);
            sppark::quotient(arrays, z.global_mut(), log2)
        };
        run()?;
        Quotient::new(&self.runtime, log2)?.run(
            on_a.global_mut(),
            on_b.global_mut(),
            on_c.global_mut(),
        )?;
        if log2 <= COMPARED_LOG2 && arrays[0].to_vec()? != on_b.to_vec()? {
            return Err(format!("the quotients of 2^{log2} differ").into());
        }
        let times = (0..REPETITIONS).map(|_| run()).collect::<Result<_, _>>()?;
        drop((on_a, on_b, on_c));
        let ours = measure::quotient(&self.runtime, log2, REPETITIONS)?;
        self.row(&ours, median(times), "");
        Ok(())
    }

    fn sum<C>(&mut self, points: Global<Affine<C>>, log2: u32) -> Outcome<()>
    where
        C: GpuCurve + sppark::Group,
        C::Host: Curve,
        <C::Host as Curve>::AffineRepr: GroupEncoding,
    {
        let n = 1usize << log2;
        let scalars = measure::random_scalars(n);
        let expected = C::Host::generator() * measure::weighted_sum(&scalars, None);
        let expected = expected.to_affine().to_bytes();
        let values = DeviceBuffer::from_slice(&self.runtime, casts::from_blst::<Fr>(&scalars))?;
        drop(scalars);
        self.runtime.synchronize()?;
        let (mut best, mut width) = (f64::MAX, 0);
        let repetitions = if log2 < 24 { 3 } else { 1 };
        for bits in 10..=18 {
            for _ in 0..=repetitions {
                let start = std::time::Instant::now();
                let sum = C::sum(points.address(), n, values.global().address(), bits)?;
                let seconds = start.elapsed().as_secs_f64();
                if sum != expected.as_ref() {
                    return Err(format!("sppark's {} sum of 2^{log2} is wrong", C::NAME).into());
                }
                if seconds < best {
                    (best, width) = (seconds, bits);
                }
            }
        }
        drop(values);
        let ours = measure::sum::<C>(&self.runtime, points, log2, REPETITIONS)?;
        self.row(
            &ours,
            best,
            &format!("sppark's best of 10 to 18 bits: {width}"),
        );
        Ok(())
    }
}

fn median(mut ms: Vec<f32>) -> f64 {
    ms.sort_by(f32::total_cmp);
    ms.get(ms.len() / 2).map_or(0.0, |&ms| 1e-3 * f64::from(ms))
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let largest: u32 = arguments.next().map_or(Ok(24), |text| text.parse())?;
    let out = arguments.next();
    let device = CudaRuntime::new(0)?;
    let info = device.info().clone();
    let runtime: Arc<dyn Runtime> = Arc::new(device);
    let limits = measure::limits(&runtime, 1e6 * f64::from(info.clock_mhz))?;
    println!("{}, sppark 0.1.16", info.name);
    println!(
        "{:<22} {:>5} {:>11} {:>11} {:>7} {:>7} by",
        "work", "size", "sppark ms", "ours ms", "ratio", "bound"
    );
    let mut bench = Bench {
        runtime: runtime.clone(),
        limits,
        rows: Vec::new(),
    };
    let sizes = |sizes: &'static [u32]| sizes.iter().copied().filter(move |&log2| log2 <= largest);
    bench.field()?;
    for log2 in sizes(&[16, 20, 24, 27]) {
        bench.transforms(log2)?;
    }
    for log2 in sizes(&[20, 22, 24, 27]) {
        bench.quotient(log2)?;
    }
    let most = |sizes: &[u32]| sizes.iter().copied().filter(|&log2| log2 <= largest).max();
    const IN_G1: &[u32] = &[16, 18, 20, 22, 24, 26];
    if let Some(most) = most(IN_G1) {
        let points = measure::multiples::<G1>(&runtime, most)?;
        for log2 in sizes(IN_G1) {
            bench.sum::<G1>(points.global(), log2)?;
        }
    }
    const IN_G2: &[u32] = &[16, 18, 20, 22];
    if let Some(most) = most(IN_G2) {
        let points = measure::multiples::<G2>(&runtime, most)?;
        for log2 in sizes(IN_G2) {
            bench.sum::<G2>(points.global(), log2)?;
        }
    }
    let compact = Selection {
        compact: vec![largest.min(24)],
        repetitions: REPETITIONS,
        ..Selection::default()
    };
    for row in measure::measure(&runtime, &compact, |_| ())? {
        println!("{}", measure::line(&row, &limits));
        bench.rows.push(json!({
            "work": row.work, "log2": row.log2, "seconds": row.seconds,
            "bound_seconds": row.bound(&limits).0,
        }));
    }
    if let Some(path) = out {
        let value = json!({"device": info.name, "peer": "sppark 0.1.16", "rows": bench.rows});
        std::fs::write(path, value.to_string())?;
    }
    Ok(())
}
