//! Many multiples of one point on a device: the launches of `cuzk_kernels::fixed_base`.

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_field::casts;
use cuzk_field::{Affine, Fr, G1, G2};
use cuzk_kernels::fixed_base::{
    FIXED_BASE_THREADS, fixed_base_affine_g1, fixed_base_affine_g2, fixed_base_sum_g1,
    fixed_base_sum_g2,
};
use cuzk_kernels::msm::addition::{msm_invert_g1, msm_invert_g2};
use cuzk_kernels::msm::recode::{self, msm_recode};
use cuzk_kernels::runtime::{DeviceBuffer, Runtime, RuntimeError};
use cuzk_kernels::{Global, GlobalMut, Launch};

use super::msm::GpuCurve;
use crate::msm::curve::Curve;
use crate::setup::table_of_multiples;

/// Scalars that are multiplied together: enough to fill the largest device, 2.2 GB of scratch in G2.
const BLOCK: usize = 1 << 21;
/// Points of a thread: its share of an inversion against threads that idle at the end.
const PER_THREAD: u32 = 16;
/// Widest windows: their tables of G1 take 0.6 GB.
const MAX_BITS: u32 = 20;
/// What a point of a table costs, in additions on the device.
const TABLE_COST: u64 = 64;

/// A curve with kernels for multiples of one point.
pub(crate) trait FixedBaseCurve: GpuCurve<Base: bytemuck::Pod> {
    /// The same curve on the host.
    type Cpu: Curve<Projective = Self::Host>;

    /// A point of the host's as the device sees it.
    fn from_host(points: &[<Self::Cpu as Curve>::Affine]) -> &[Affine<Self>];
    /// The three launches.
    fn launches(work: &Work<Self>, multiprocessors: u32) -> [Launch; 3];
}

/// One block of multiples, see `cuzk_kernels::fixed_base`.
pub(crate) struct Work<C: GpuCurve> {
    count: u32,
    bits: u32,
    recoded: Global<u32>,
    signs: Global<u32>,
    table: Global<Affine<C>>,
    out: GlobalMut<Affine<C>>,
    zz: GlobalMut<C::Base>,
    zzz: GlobalMut<C::Base>,
    prefix: GlobalMut<C::Base>,
    products: GlobalMut<C::Base>,
    scratch: GlobalMut<C::Base>,
}

macro_rules! fixed_base_curve {
    ($curve:ty, $cpu:ty, $sum:ident, $invert:ident, $affine:ident) => {
        impl FixedBaseCurve for $curve {
            type Cpu = $cpu;

            fn from_host(points: &[<$cpu as Curve>::Affine]) -> &[Affine<Self>] {
                casts::from_blst::<Affine<Self>>(points)
            }

            fn launches(w: &Work<Self>, multiprocessors: u32) -> [Launch; 3] {
                let blocks = blocks(w.count);
                let products = blocks * FIXED_BASE_THREADS;
                let inverting = products.div_ceil($invert::THREADS).min(multiprocessors);
                let (count, per) = (w.count, PER_THREAD);
                [
                    $sum::launch(
                        blocks, count, per, w.bits, w.recoded, w.signs, w.table, w.out, w.zz,
                        w.zzz, w.prefix, w.products,
                    ),
                    $invert::launch(inverting, products, w.products, w.scratch),
                    $affine::launch(blocks, count, per, w.out, w.zz, w.zzz, w.prefix, w.products),
                ]
            }
        }
    };
}

fixed_base_curve!(
    G1,
    crate::msm::G1,
    fixed_base_sum_g1,
    msm_invert_g1,
    fixed_base_affine_g1
);
fixed_base_curve!(
    G2,
    crate::msm::G2,
    fixed_base_sum_g2,
    msm_invert_g2,
    fixed_base_affine_g2
);

fn blocks(count: u32) -> u32 {
    count.div_ceil(FIXED_BASE_THREADS * PER_THREAD)
}

/// The table of one point on a device, with memory for one block of scalars.
pub(crate) struct FixedBase<C: FixedBaseCurve> {
    runtime: Arc<dyn Runtime>,
    bits: u32,
    table: DeviceBuffer<Affine<C>>,
    bias: DeviceBuffer<[u32; 4]>,
    block: usize,
    scalars: DeviceBuffer<Fr>,
    recoded: DeviceBuffer<u32>,
    signs: DeviceBuffer<u32>,
    /// ZZ, ZZZ, prefix products.
    denominators: [DeviceBuffer<C::Base>; 3],
    products: [DeviceBuffer<C::Base>; 2],
}

impl<C: FixedBaseCurve> FixedBase<C> {
    /// A table that suits about `multiples` multiples of `base`.
    ///
    /// # Errors
    /// When the device fails or has no room.
    pub fn new(
        runtime: &Arc<dyn Runtime>,
        base: &C::Host,
        multiples: usize,
    ) -> Result<Self, RuntimeError> {
        let bits = best_bits(multiples);
        let host = table_of_multiples::<C::Cpu>(base, bits, recode::windows(bits));
        let block = BLOCK.min(multiples.max(1));
        let elements = |count| DeviceBuffer::new(runtime, count);
        let threads = (blocks(block as u32) * FIXED_BASE_THREADS) as usize;
        let bias = recode::bias(bits);
        let [low, high] = [0, 4].map(|i| [bias[i], bias[i + 1], bias[i + 2], bias[i + 3]]);
        Ok(Self {
            runtime: runtime.clone(),
            bits,
            table: DeviceBuffer::from_slice(runtime, C::from_host(&host))?,
            bias: DeviceBuffer::from_slice(runtime, &[low, high])?,
            block,
            scalars: DeviceBuffer::new(runtime, block)?,
            recoded: DeviceBuffer::new(runtime, 8 * block)?,
            signs: DeviceBuffer::new(runtime, block.div_ceil(32))?,
            denominators: [elements(block)?, elements(block)?, elements(block)?],
            products: [elements(threads)?, elements(threads)?],
        })
    }

    /// Scalars that one call of [`multiply`](Self::multiply) takes at most.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Starts to compute `out[i] = scalars[i] · base`, affine, canonical. More scalars than a block are
    /// an error.
    ///
    /// # Errors
    /// When the device fails.
    pub fn multiply(
        &self,
        scalars: &[Scalar],
        out: GlobalMut<Affine<C>>,
    ) -> Result<(), RuntimeError> {
        if scalars.is_empty() {
            return Ok(());
        }
        self.scalars.upload(0, casts::from_blst::<Fr>(scalars))?;
        let count = scalars.len() as u32;
        let (recoded, signs) = (self.recoded.global_mut(), self.signs.global_mut());
        self.runtime.launch(&msm_recode::launch(
            count.div_ceil(msm_recode::THREADS),
            count,
            self.scalars.global(),
            0,
            signs.read(),
            self.bias.global(),
            recoded,
            signs,
        ))?;
        let [zz, zzz, prefix] = self.denominators.each_ref().map(DeviceBuffer::global_mut);
        let [products, scratch] = self.products.each_ref().map(DeviceBuffer::global_mut);
        let work = Work {
            count,
            bits: self.bits,
            recoded: recoded.read(),
            signs: signs.read(),
            table: self.table.global(),
            out,
            zz,
            zzz,
            prefix,
            products,
            scratch,
        };
        for launch in C::launches(&work, self.runtime.multiprocessors()) {
            self.runtime.launch(&launch)?;
        }
        Ok(())
    }
}

/// The window width with the least work: additions on the device and a table made on the host.
fn best_bits(multiples: usize) -> u32 {
    let cost = |bits: &u32| {
        let table = TABLE_COST << (bits - 1);
        u64::from(recode::windows(*bits)) * (multiples as u64 + table)
    };
    (2..=MAX_BITS).min_by_key(cost).unwrap_or(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_kernels::runtime::EmulatedRuntime;
    use ff::Field;
    use group::Group;
    use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

    fn check<C: FixedBaseCurve>(random: usize, expected_use: usize) {
        let seed = 41;
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let half = Scalar::from(2).invert().unwrap();
        let mut scalars = vec![Scalar::ZERO, Scalar::ONE, -Scalar::ONE, half, -half];
        scalars.push(Scalar::from(u64::MAX));
        scalars.extend((0..random).map(|_| Scalar::random(&mut rng)));
        let base = C::Host::random(&mut rng);
        let runtime: Arc<dyn Runtime> = Arc::new(EmulatedRuntime::new(1 << 30));
        let table = FixedBase::<C>::new(&runtime, &base, expected_use).unwrap();
        let out = DeviceBuffer::<Affine<C>>::new(&runtime, scalars.len()).unwrap();
        table.multiply(&scalars, out.global_mut()).unwrap();
        let expected: Vec<_> = scalars
            .iter()
            .map(|k| C::Cpu::from_projective(&(base * k)))
            .collect::<Vec<_>>();
        let found = out.to_vec().unwrap();
        let same = bytemuck::cast_slice::<_, u8>(&found)
            == bytemuck::cast_slice::<_, u8>(C::from_host(&expected));
        assert!(same, "seed {seed}, {random} scalars");
    }

    #[test]
    fn multiples_equal_blsts_at_the_edges_and_at_random() {
        check::<G1>(0, 6);
        check::<G1>(300, 400);
        check::<G1>(30, 20_000);
        check::<G2>(20, 100);
    }
}
