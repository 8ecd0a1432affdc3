//! Many multiples of one point, for parameters: a table of the point's multiples for each window.
//!
//! Scalars are recoded by [`msm_recode`](crate::msm::recode::msm_recode). With windows of c bits, entry
//! m − 1 of window w's part of the table is m·2^(cw) times the point, for m up to 2^(c−1); the parts are
//! 2^(c−1) entries apart, and the last may end with the largest digit that occurs. A multiple is then one
//! addition a window, in XYZZ coordinates, and one shared inversion. Three launches:
//!
//! 1. `fixed_base_sum_*`: the sums, and the products of a thread's denominators;
//! 2. `msm_invert_*` of [`crate::msm::addition`]: the products' inverses;
//! 3. `fixed_base_affine_*`: affine coordinates.
//!
//! Thread t of block b works on the scalars b·128·per + 128·k + t for k < per, as the batched additions do.

use cuzk_field::bls12_381::Fp2;
use cuzk_field::curve::{Affine, Xyzz};
use cuzk_field::ops::{FieldOps, Multiplier, PerThread};
use cuzk_field::{Fp, G1, G2};

use crate::msm::points::{DeviceCurve, Slot};
use crate::msm::recode::{Digits, windows};
use crate::{Global, GlobalMut, Gpu, kernel};

/// Threads of a block.
pub const FIXED_BASE_THREADS: u32 = 128;

/// The denominators of a launch's points, in planes.
#[derive(Clone, Copy)]
struct Denominators<C: DeviceCurve> {
    /// Number of points.
    count: usize,
    /// ZZ of each point.
    zz: GlobalMut<C::Base>,
    /// ZZZ of each point; 1 for the identity, whose ZZ is 0.
    zzz: GlobalMut<C::Base>,
    /// The product of the ZZZ of the thread's points before it.
    prefix: GlobalMut<C::Base>,
    /// The product of each thread's ZZZ; after the second launch its inverse.
    products: GlobalMut<C::Base>,
}

/// The thread's first scalar and its number of scalars.
#[inline(always)]
fn share<G: Gpu>(gpu: G, count: u32, per: u32) -> (u32, u32) {
    let first = gpu.block() * FIXED_BASE_THREADS * per + gpu.thread();
    if first >= count {
        return (first, 0);
    }
    (first, (count - first).div_ceil(FIXED_BASE_THREADS).min(per))
}

/// The table entry of a digit that is not zero, and whether it enters negated.
#[inline(always)]
fn entry<C: DeviceCurve, G: Gpu>(
    gpu: G,
    digits: Digits,
    window: u32,
    i: u32,
    table: Global<Affine<C>>,
) -> Option<(Global<C::Base>, bool)> {
    let (magnitude, negative) = digits.digit(gpu, window, i);
    if magnitude == 0 {
        return None;
    }
    let entry = ((window as usize) << (digits.bits - 1)) + magnitude as usize - 1;
    Some((table.offset(entry).cast(), negative))
}

/// Where sums are made.
trait Accumulator<C: DeviceCurve>: Copy {
    /// The multiple that scalar `i` names.
    fn multiple<G: Gpu>(self, gpu: G, digits: Digits, i: u32, table: Global<Affine<C>>) -> Xyzz<C>;
}

/// In registers.
#[derive(Clone, Copy)]
struct Registers;

impl<C: DeviceCurve> Accumulator<C> for Registers {
    #[inline(always)]
    fn multiple<G: Gpu>(self, gpu: G, digits: Digits, i: u32, table: Global<Affine<C>>) -> Xyzz<C> {
        let mut sum = Xyzz::IDENTITY;
        let mut window = 0;
        while window < windows(digits.bits) {
            // Equal points do not meet: the lower digits' multiple is below 2/3 of 2^(cw) in magnitude,
            // and no sum is near the group's order.
            if let Some((place, negative)) = entry::<C, G>(gpu, digits, window, i, table) {
                let (x, y) = (place.load(gpu, 0), place.load(gpu, 1));
                let point = Affine { x, y }.neg_if(negative);
                let _distinct = sum.add_affine_distinct(&PerThread, &point);
            }
            window += 1;
        }
        sum
    }
}

/// In shared memory, because a point of G2 does not fit the registers.
#[derive(Clone, Copy)]
struct InShared;

impl<C: DeviceCurve> Accumulator<C> for InShared {
    #[inline(always)]
    fn multiple<G: Gpu>(self, gpu: G, digits: Digits, i: u32, table: Global<Affine<C>>) -> Xyzz<C> {
        let sum = Slot::<C, G>::new(gpu, FIXED_BASE_THREADS, 1, 0, gpu.thread());
        sum.clear();
        let mut window = 0;
        while window < windows(digits.bits) {
            if let Some((place, negative)) = entry::<C, G>(gpu, digits, window, i, table) {
                let y = place.load(gpu, 1);
                let y = if negative { y.neg() } else { y };
                sum.add_affine(&PerThread, &place.load(gpu, 0), &y);
            }
            window += 1;
        }
        sum.load()
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn sums<C: DeviceCurve, A: Accumulator<C>, G: Gpu>(
    accumulator: A,
    gpu: G,
    per: u32,
    digits: Digits,
    table: Global<Affine<C>>,
    out: GlobalMut<Affine<C>>,
    d: Denominators<C>,
) {
    let (first, steps) = share(gpu, digits.n, per);
    let (thread, threads) = (gpu.index(), gpu.stride());
    let (zero, one) = (<C::Base as FieldOps>::ZERO, <C::Base as FieldOps>::ONE);
    d.products.store_plane(gpu, threads, thread, one);
    let mut k = 0;
    while k < steps {
        let i = first + k * FIXED_BASE_THREADS;
        let sum = accumulator.multiple(gpu, digits, i, table);
        let i = i as usize;
        let place: GlobalMut<C::Base> = out.offset(i).cast();
        place.store(gpu, 0, sum.x);
        place.store(gpu, 1, sum.y);
        let identity = sum.is_identity();
        let zzz = if identity { one } else { sum.zzz };
        d.zz.store_plane(gpu, d.count, i, if identity { zero } else { sum.zz });
        d.zzz.store_plane(gpu, d.count, i, zzz);
        // The product waits in memory: registers are for the sum.
        let product = d.products.load_plane(gpu, threads, thread);
        d.prefix.store_plane(gpu, d.count, i, product);
        d.products
            .store_plane(gpu, threads, thread, product.mul(&zzz));
        k += 1;
    }
}

#[inline(always)]
fn affine<C: DeviceCurve, M: Multiplier<C::Base>, G: Gpu>(
    m: &M,
    gpu: G,
    per: u32,
    out: GlobalMut<Affine<C>>,
    d: Denominators<C>,
) {
    let (first, mut k) = share(gpu, d.count as u32, per);
    let mut inverse = d.products.load_plane(gpu, gpu.stride(), gpu.index());
    while k > 0 {
        k -= 1;
        let i = (first + k * FIXED_BASE_THREADS) as usize;
        let place: GlobalMut<C::Base> = out.offset(i).cast();
        let own = m.mul(&inverse, &d.prefix.load_plane(gpu, d.count, i));
        inverse = m.mul(&inverse, &d.zzz.load_plane(gpu, d.count, i));
        // 1/ZZ = (ZZ/ZZZ)², because ZZ³ = ZZZ².
        let zz = d.zz.load_plane(gpu, d.count, i);
        let ratio = m.sqr(&m.mul(&own, &zz));
        let x = m.mul(&place.load(gpu, 0), &ratio).canonical();
        let y = m.mul(&place.load(gpu, 1), &own).canonical();
        let identity = zz.is_raw_zero();
        let zero = <C::Base as FieldOps>::ZERO;
        place.store(gpu, 0, if identity { zero } else { x });
        place.store(gpu, 1, if identity { zero } else { y });
    }
}

kernel! {
    /// Numerators of `count` multiples in `out`, their denominators in `zz` and `zzz`, the product of the
    /// denominators before each in `prefix` (`count` elements each, in planes) and of all of a thread in
    /// `products` (one element a thread, in planes). `recoded`, `signs`: the scalars, see `msm_recode`;
    /// `table`: see the module. Grid: ⌈count / (128·per)⌉.
    ///
    /// A multiple: ⌈255/bits⌉ times 8M + 2S and 96 bytes gathered. Bound by multiplications.
    pub fn fixed_base_sum_g1(gpu, count: u32, per: u32, bits: u32, recoded: Global<u32>, signs: Global<u32>,
        table: Global<Affine<G1>>, out: GlobalMut<Affine<G1>>, zz: GlobalMut<Fp>, zzz: GlobalMut<Fp>,
        prefix: GlobalMut<Fp>, products: GlobalMut<Fp>)
    limits { threads: FIXED_BASE_THREADS, min_blocks: 4, registers: 128, shared: 0, spills: 96, stack: 48 }
    {
        let digits = Digits { n: count, bits, recoded, signs };
        let d = Denominators { count: count as usize, zz, zzz, prefix, products };
        sums(Registers, gpu, per, digits, table, out, d);
    }

    /// The points of `fixed_base_sum_g1` in affine coordinates, canonical; (0, 0) is the identity.
    /// `products` holds the inverses. Grid as there. A point: 5M + 1S, 336 bytes read, 96 written.
    pub fn fixed_base_affine_g1(gpu, count: u32, per: u32, out: GlobalMut<Affine<G1>>, zz: GlobalMut<Fp>,
        zzz: GlobalMut<Fp>, prefix: GlobalMut<Fp>, products: GlobalMut<Fp>)
    limits { threads: FIXED_BASE_THREADS, min_blocks: 4, registers: 128, shared: 0 }
    {
        let d = Denominators { count: count as usize, zz, zzz, prefix, products };
        affine(&PerThread, gpu, per, out, d);
    }

    /// As `fixed_base_sum_g1`, on G2.
    pub fn fixed_base_sum_g2(gpu, count: u32, per: u32, bits: u32, recoded: Global<u32>, signs: Global<u32>,
        table: Global<Affine<G2>>, out: GlobalMut<Affine<G2>>, zz: GlobalMut<Fp2>, zzz: GlobalMut<Fp2>,
        prefix: GlobalMut<Fp2>, products: GlobalMut<Fp2>)
    limits { threads: FIXED_BASE_THREADS, min_blocks: 2, registers: 255, shared: FIXED_BASE_THREADS * 384, spills: 256, stack: 128 }
    {
        let digits = Digits { n: count, bits, recoded, signs };
        let d = Denominators { count: count as usize, zz, zzz, prefix, products };
        sums(InShared, gpu, per, digits, table, out, d);
    }

    /// As `fixed_base_affine_g1`, on G2.
    pub fn fixed_base_affine_g2(gpu, count: u32, per: u32, out: GlobalMut<Affine<G2>>, zz: GlobalMut<Fp2>,
        zzz: GlobalMut<Fp2>, prefix: GlobalMut<Fp2>, products: GlobalMut<Fp2>)
    limits { threads: FIXED_BASE_THREADS, min_blocks: 2, registers: 255, shared: 0 }
    {
        let d = Denominators { count: count as usize, zz, zzz, prefix, products };
        affine(&PerThread, gpu, per, out, d);
    }
}
