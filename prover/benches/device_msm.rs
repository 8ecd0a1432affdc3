//! Times multi-scalar multiplications on a CUDA device with resident data.
//!
//! `cargo bench -p cuzk-prover --bench device_msm -- [LOG2] [profile]`: lengths 2^16 to 2^LOG2 (22) on G1 and
//! up to 2^22 on G2, several window widths each, then compact scalars. The bases are 1·G, 2·G, 3·G, …, so
//! every result is checked against one multiplication of the generator. A time is the median from the
//! first launch to the point on the host. With `profile`, each kernel's device time follows.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use blstrs::{G1Projective, Scalar};
use cuzk_field::casts::from_blst;
use cuzk_field::curve::Affine;
use cuzk_field::{Fr, G1, G2};
use cuzk_kernels::runtime::{Arena, DeviceBuffer, DeviceMemory, Mark, Runtime, RuntimeError};
use cuzk_kernels::{Global, Launch};
use cuzk_prover::cuda::CudaRuntime;
use cuzk_prover::gpu::measure::{multiples, random_scalars, weighted_sum};
use cuzk_prover::gpu::msm::{Bitmaps, GpuCurve, Plan, Scalars, Selection, Sorted, sum_of_points};
use ff::Field;
use group::Group;
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Share of the device's free memory that the arena takes, in percent.
const ARENA_SHARE: u64 = 75;

/// A runtime that can time each launch.
struct Profiler {
    inner: Arc<dyn Runtime>,
    on: AtomicBool,
    times: Mutex<BTreeMap<&'static str, (u32, Duration)>>,
}

impl Profiler {
    fn report(&self) {
        let times = std::mem::take(&mut *self.times.lock().unwrap_or_else(PoisonError::into_inner));
        let mut rows: Vec<_> = times.into_iter().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.1.1));
        for (kernel, (launches, time)) in rows {
            println!(
                "    {kernel:<24} {launches:>3} launches {:>9.3} ms",
                1e3 * time.as_secs_f64()
            );
        }
    }
}

impl Runtime for Profiler {
    fn name(&self) -> String {
        self.inner.name()
    }
    fn multiprocessors(&self) -> u32 {
        self.inner.multiprocessors()
    }
    fn memory(&self) -> Result<DeviceMemory, RuntimeError> {
        self.inner.memory()
    }
    fn allocate(&self, bytes: u64) -> Result<u64, RuntimeError> {
        self.inner.allocate(bytes)
    }
    fn release(&self, address: u64) {
        self.inner.release(address);
    }
    fn upload(&self, address: u64, data: &[u8]) -> Result<(), RuntimeError> {
        self.inner.upload(address, data)
    }
    fn download(&self, address: u64, out: &mut [u8]) -> Result<(), RuntimeError> {
        self.inner.download(address, out)
    }
    fn zero(&self, address: u64, bytes: u64) -> Result<(), RuntimeError> {
        self.inner.zero(address, bytes)
    }
    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), RuntimeError> {
        self.inner.copy(to, from, bytes)
    }
    fn launch(&self, launch: &Launch) -> Result<(), RuntimeError> {
        if !self.on.load(Ordering::Relaxed) {
            return self.inner.launch(launch);
        }
        let from = self.inner.mark()?;
        self.inner.launch(launch)?;
        let elapsed = self.inner.elapsed(&from, &self.inner.mark()?)?;
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = times.entry(launch.kernel.name).or_default();
        *entry = (entry.0 + 1, entry.1 + elapsed);
        Ok(())
    }
    fn synchronize(&self) -> Result<(), RuntimeError> {
        self.inner.synchronize()
    }
    fn mark(&self) -> Result<Mark, RuntimeError> {
        self.inner.mark()
    }
    fn elapsed(&self, from: &Mark, to: &Mark) -> Result<Duration, RuntimeError> {
        self.inner.elapsed(from, to)
    }
    fn wait_for(&self, mark: &Mark) -> Result<(), RuntimeError> {
        self.inner.wait_for(mark)
    }
    fn fork(&self) -> Result<Arc<dyn Runtime>, RuntimeError> {
        self.inner.fork()
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

struct Bench {
    runtime: Arc<dyn Runtime>,
    profiler: Arc<Profiler>,
    profile: bool,
    arena: Arena,
    scalars: Vec<Scalar>,
    values: DeviceBuffer<Fr>,
}

impl Bench {
    fn run<C: GpuCurve>(&mut self, bases: Global<Affine<C>>, plan: &Plan) -> Outcome<C::Host> {
        self.arena.reset();
        let scalars = Scalars {
            values: self.values.global(),
            map: None,
        };
        let sorted = Sorted::new(&mut self.arena, plan, scalars)?;
        Ok(sorted.sum::<C>(&mut self.arena, bases)?)
    }

    fn profiled<T>(&mut self, work: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<()> {
        if self.profile {
            self.profiler.on.store(true, Ordering::Relaxed);
            let done = work(self);
            self.profiler.on.store(false, Ordering::Relaxed);
            done?;
            self.profiler.report();
        }
        Ok(())
    }

    /// Widths around the plan's own choice at one length.
    fn length<C: GpuCurve>(&mut self, bases: Global<Affine<C>>, log2: u32) -> Outcome<()> {
        let len = 1usize << log2;
        let expected = C::Host::generator() * weighted_sum(&self.scalars[..len], None);
        let (sms, memory) = (self.runtime.multiprocessors(), self.arena.size());
        let chosen = Plan::new::<C>(len, sms, memory)?;
        for bits in [
            chosen.bits - 2,
            chosen.bits - 1,
            chosen.bits,
            chosen.bits + 1,
        ] {
            let Ok(plan) = Plan::with_bits::<C>(len, bits, sms, memory) else {
                continue;
            };
            let mut times = Vec::new();
            for _ in 0..if log2 < 23 { 9 } else { 3 } {
                self.runtime.synchronize()?;
                let start = Instant::now();
                let sum = self.run(bases, &plan)?;
                times.push(1e3 * start.elapsed().as_secs_f64());
                if sum != expected {
                    return Err(format!("{} 2^{log2}, {bits} bits: wrong sum", C::NAME).into());
                }
            }
            let mark = if bits == chosen.bits { "chosen" } else { "" };
            let gib = plan.bytes::<C>() as f64 / f64::from(1 << 30);
            println!(
                "{} 2^{log2} {bits:>3} bits {:>10.3} ms {gib:>7.2} GiB {mark}",
                C::NAME,
                median(times)
            );
        }
        self.profiled(|bench| bench.run(bases, &chosen))
    }

    /// 98.7 % of the scalars are bits, as in a PoRep witness.
    fn compact(&mut self, bases: &DeviceBuffer<Affine<G1>>) -> Outcome<()> {
        let len = bases.len();
        let words = len.div_ceil(128);
        let (mut bits, mut others) = (vec![[0u32; 4]; words], vec![[0u32; 4]; words]);
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let (mut map, mut ones) = (Vec::new(), Scalar::ZERO);
        for i in 0..len {
            let (random, bit) = (rng.next_u32(), 1 << (i % 32));
            if random % 1000 < 13 {
                others[i / 128][i / 32 % 4] |= bit;
                map.push(i as u32);
            } else if random >> 31 == 1 {
                bits[i / 128][i / 32 % 4] |= bit;
                ones += Scalar::from(i as u64 + 1);
            }
        }
        let expected = G1Projective::generator()
            * (ones + weighted_sum(&self.scalars[..map.len()], Some(&map)));
        let bits = DeviceBuffer::from_slice(&self.runtime, &bits)?;
        let others = DeviceBuffer::from_slice(&self.runtime, &others)?;
        let bitmaps = Bitmaps {
            len: len as u32,
            bits: bits.global(),
            others: others.global(),
            density: None,
        };
        let mut times = Vec::new();
        for _ in 0..9 {
            self.runtime.synchronize()?;
            let start = Instant::now();
            let sum = self.compact_sum(bitmaps, map.len(), bases.global())?;
            times.push(1e3 * start.elapsed().as_secs_f64());
            if sum != expected {
                return Err("compact scalars: wrong sum".into());
            }
        }
        println!(
            "G1 2^{} compact, {} others {:>10.3} ms",
            len.ilog2(),
            map.len(),
            median(times)
        );
        self.profiled(|bench| bench.compact_sum(bitmaps, map.len(), bases.global()))
    }

    fn compact_sum(
        &mut self,
        bitmaps: Bitmaps,
        others: usize,
        bases: Global<Affine<G1>>,
    ) -> Outcome<G1Projective> {
        let arena = &mut self.arena;
        arena.reset();
        let selection = Selection::new(arena, bitmaps, others as u32)?;
        let sum = sum_of_points::<G1>(arena, selection.ones.read(), selection.ones_len, bases)?;
        let plan = Plan::new::<G1>(others, self.runtime.multiprocessors(), arena.left())?;
        let scalars = Scalars {
            values: self.values.global(),
            map: Some(selection.map.read()),
        };
        Ok(sum + Sorted::new(arena, &plan, scalars)?.sum::<G1>(arena, bases)?)
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let log2 = arguments
        .iter()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(22)
        .clamp(16, 28);
    let inner: Arc<dyn Runtime> = match CudaRuntime::new(0) {
        Ok(runtime) => Arc::new(runtime),
        Err(error) => {
            println!("not measured: {error}");
            return Ok(());
        }
    };
    let profiler = Arc::new(Profiler {
        inner,
        on: AtomicBool::new(false),
        times: Mutex::default(),
    });
    let runtime: Arc<dyn Runtime> = profiler.clone();
    println!(
        "{}, {} multiprocessors",
        runtime.name(),
        runtime.multiprocessors()
    );
    let g1 = multiples::<G1>(&runtime, log2)?;
    let g2 = multiples::<G2>(&runtime, log2.min(22))?;
    let scalars = random_scalars(1 << log2);
    let values = DeviceBuffer::from_slice(&runtime, from_blst::<Fr>(&scalars))?;
    let arena = Arena::new(&runtime, runtime.memory()?.free / 100 * ARENA_SHARE)?;
    let profile = arguments.iter().any(|argument| argument == "profile");
    let mut bench = Bench {
        runtime,
        profiler,
        profile,
        arena,
        scalars,
        values,
    };
    for log2 in (16..=log2).step_by(2) {
        bench.length::<G1>(g1.global(), log2)?;
        if log2 <= 22 {
            bench.length::<G2>(g2.global(), log2)?;
        }
    }
    bench.compact(&g1)
}
