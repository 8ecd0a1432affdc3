//! Many additions of affine points at once, with shared inversions.
//!
//! Pair i of a launch gives `partial[first + i] = left + right`. Thread t of block b works on the pairs
//! b·128·per + 128·k + t for k < per, so that neighbouring threads touch neighbouring indices. Three
//! launches: products of the slopes' denominators, inverses of the products, additions (Montgomery's
//! trick: three multiplications a pair instead of an inversion, so that a pair costs 5M + 1S).
//!
//! Equal points take the tangent's denominator; where no slope exists (an operand is the identity, or
//! the points are opposite) the denominator is replaced by 1 and the result is chosen directly.
use cuzk_field::bls12_381::Fp2;
use cuzk_field::curve::Affine;
use cuzk_field::ops::{FieldOps, Multiplier, PerThread};
use cuzk_field::{Fp, G1, G2};

use super::points::{DeviceCurve, Points};
use crate::{Element, Global, GlobalMut, Gpu, kernel};

/// Threads of a block of pairs.
pub const PAIR_THREADS: u32 = 128;

/// How a pair is added.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Different x.
    Chord,
    /// Equal points.
    Tangent,
    /// The left operand is the identity.
    Right,
    /// The right operand is the identity.
    Left,
    /// Opposite points.
    Identity,
}

/// A launch's pairs.
#[derive(Clone, Copy)]
struct Batch<C: DeviceCurve> {
    /// Number of pairs.
    pairs: u32,
    /// Index of the thread's first pair.
    first: u32,
    /// Number of the thread's pairs.
    steps: u32,
    list: Global<[u32; 2]>,
    points: Points<C>,
    /// For each pair, the product of the thread's denominators before it; planes.
    prefix: GlobalMut<C::Base>,
}

impl<C: DeviceCurve> Batch<C> {
    #[inline(always)]
    fn new<G: Gpu>(
        gpu: G,
        pairs: u32,
        per: u32,
        list: Global<[u32; 2]>,
        points: Points<C>,
        prefix: GlobalMut<C::Base>,
    ) -> Self {
        let first = gpu.block() * PAIR_THREADS * per + gpu.thread();
        let steps = if first < pairs {
            (pairs - first).div_ceil(PAIR_THREADS).min(per)
        } else {
            0
        };
        Self {
            pairs,
            first,
            steps,
            list,
            points,
            prefix,
        }
    }

    #[inline(always)]
    fn index(self, k: u32) -> usize {
        (self.first + k * PAIR_THREADS) as usize
    }

    /// The slope's denominator, not zero, and the kind of the pair.
    #[inline(always)]
    fn denominator<G: Gpu>(
        self,
        gpu: G,
        [left, right]: [u32; 2],
        x1: &C::Base,
        x2: &C::Base,
    ) -> (C::Base, Kind) {
        let dx = x2.sub(x1);
        if !(dx.is_zero() | x1.is_raw_zero() | x2.is_raw_zero()) {
            return (dx, Kind::Chord);
        }
        let one = <C::Base as FieldOps>::ONE;
        let y1 = self.points.y(gpu, left);
        let y2 = self.points.y(gpu, right);
        if x1.is_raw_zero() && y1.is_raw_zero() {
            return (one, Kind::Right);
        }
        if x2.is_raw_zero() && y2.is_raw_zero() {
            return (one, Kind::Left);
        }
        if !dx.is_zero() {
            return (dx, Kind::Chord);
        }
        let sum = y1.add(&y2);
        if sum.is_zero() {
            (one, Kind::Identity)
        } else {
            (sum, Kind::Tangent)
        }
    }

    #[inline(always)]
    fn pair_denominator<G: Gpu>(self, gpu: G, i: usize) -> C::Base {
        let pair = self.list.load(gpu, i);
        let (x1, x2) = (self.points.x(gpu, pair[0]), self.points.x(gpu, pair[1]));
        self.denominator(gpu, pair, &x1, &x2).0
    }

    /// The product of the thread's denominators; 1 if it has no pair.
    #[inline(always)]
    fn forward<G: Gpu>(self, gpu: G) -> C::Base {
        if self.steps == 0 {
            return <C::Base as FieldOps>::ONE;
        }
        let mut product = self.pair_denominator(gpu, self.index(0));
        let mut k = 1;
        while k < self.steps {
            let i = self.index(k);
            let denominator = self.pair_denominator(gpu, i);
            self.prefix
                .store_plane(gpu, self.pairs as usize, i, product);
            product = product.mul(&denominator);
            k += 1;
        }
        product
    }

    /// The additions, last pair first; `inverse` is that of the thread's product.
    #[inline(always)]
    fn backward<M: Multiplier<C::Base>, G: Gpu>(
        self,
        m: &M,
        gpu: G,
        mut inverse: C::Base,
        out: GlobalMut<Affine<C>>,
    ) {
        let mut k = self.steps;
        while k > 0 {
            k -= 1;
            let i = self.index(k);
            let pair = self.list.load(gpu, i);
            let (x1, x2) = (self.points.x(gpu, pair[0]), self.points.x(gpu, pair[1]));
            let (denominator, kind) = self.denominator(gpu, pair, &x1, &x2);
            let mut slope = inverse;
            if k > 0 {
                slope = m.mul(
                    &inverse,
                    &self.prefix.load_plane(gpu, self.pairs as usize, i),
                );
                inverse = m.mul(&inverse, &denominator);
            }
            let y1 = self.points.y(gpu, pair[0]);
            let rise = if kind == Kind::Tangent {
                let square = m.sqr(&x1);
                square.double().add(&square)
            } else {
                self.points.y(gpu, pair[1]).sub(&y1)
            };
            slope = m.mul(&slope, &rise);
            let x3 = m.sqr(&slope).sub(&x1).sub(&x2);
            let y3 = m.mul(&slope, &x1.sub(&x3)).sub(&y1);
            let place: GlobalMut<C::Base> = out.offset(i).cast();
            match kind {
                Kind::Chord | Kind::Tangent => {
                    place.store(gpu, 0, x3);
                    place.store(gpu, 1, y3);
                }
                Kind::Identity => {
                    place.store(gpu, 0, <C::Base as FieldOps>::ZERO);
                    place.store(gpu, 1, <C::Base as FieldOps>::ZERO);
                }
                Kind::Left | Kind::Right => {
                    let operand = if kind == Kind::Left { pair[0] } else { pair[1] };
                    place.store(gpu, 0, self.points.x(gpu, operand));
                    place.store(gpu, 1, self.points.y(gpu, operand));
                }
            }
        }
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn forward<C: DeviceCurve, G: Gpu>(
    gpu: G,
    pairs: u32,
    per: u32,
    list: Global<[u32; 2]>,
    bases: Global<Affine<C>>,
    partial: Global<Affine<C>>,
    prefix: GlobalMut<C::Base>,
    products: GlobalMut<C::Base>,
) {
    let batch = Batch::new(gpu, pairs, per, list, Points { bases, partial }, prefix);
    let product = batch.forward(gpu);
    products.store_plane(gpu, gpu.stride(), gpu.index(), product);
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(crate) fn backward<C: DeviceCurve, M: Multiplier<C::Base>, G: Gpu>(
    m: &M,
    gpu: G,
    pairs: u32,
    per: u32,
    list: Global<[u32; 2]>,
    bases: Global<Affine<C>>,
    partial: GlobalMut<Affine<C>>,
    first: u32,
    prefix: GlobalMut<C::Base>,
    inverses: Global<C::Base>,
) {
    let points = Points {
        bases,
        partial: partial.read(),
    };
    let batch = Batch::new(gpu, pairs, per, list, points, prefix);
    let inverse = inverses.load_plane(gpu, gpu.stride(), gpu.index());
    batch.backward(m, gpu, inverse, partial.offset(first as usize));
}

/// values[i] = 1 / values[i] for i < count, planes; a thread takes every `stride`-th value and inverts
/// their product.
#[inline(always)]
fn invert<F: FieldOps + Element, G: Gpu>(
    gpu: G,
    count: u32,
    values: GlobalMut<F>,
    scratch: GlobalMut<F>,
) {
    let count = count as usize;
    let (first, step) = (gpu.index(), gpu.stride());
    if first >= count {
        return;
    }
    let mut product = values.load_plane(gpu, count, first);
    let mut i = first + step;
    while i < count {
        scratch.store_plane(gpu, count, i, product);
        product = product.mul(&values.load_plane(gpu, count, i));
        i += step;
    }
    let mut inverse = product.invert();
    while i > first + step {
        i -= step;
        let value = values.load_plane(gpu, count, i);
        values.store_plane(
            gpu,
            count,
            i,
            inverse.mul(&scratch.load_plane(gpu, count, i)),
        );
        inverse = inverse.mul(&value);
    }
    values.store_plane(gpu, count, first, inverse);
}

kernel! {
    /// Denominators of `pairs` additions on G1 and their products. `list`: two references a pair.
    /// `prefix`: `pairs` elements in planes. `products`: one element a thread, in planes. Grid:
    /// ⌈pairs / (128·per)⌉.
    ///
    /// A pair: one multiplication, 128 bytes gathered, 48 written. Bound by gathering.
    pub fn msm_forward_g1(gpu, pairs: u32, per: u32, list: Global<[u32; 2]>, bases: Global<Affine<G1>>,
        partial: Global<Affine<G1>>, prefix: GlobalMut<Fp>, products: GlobalMut<Fp>)
    limits { threads: PAIR_THREADS, min_blocks: 6, registers: 80, shared: 0 }
    {
        forward(gpu, pairs, per, list, bases, partial, prefix, products);
    }

    /// Inverts the products; `scratch` is as large. Grid: as many blocks as multiprocessors, or fewer
    /// when that leaves threads without a product. Bound by the latency of one inversion.
    pub fn msm_invert_g1(gpu, count: u32, values: GlobalMut<Fp>, scratch: GlobalMut<Fp>)
    limits { threads: 128, min_blocks: 1, registers: 255, shared: 0 }
    {
        invert(gpu, count, values, scratch);
    }

    /// The additions: `partial[first + i]` becomes the sum of pair i. Other arguments as for
    /// `msm_forward_g1`.
    ///
    /// A pair: 4M + 1S, 240 bytes read, 96 written. Bound by multiplications.
    pub fn msm_backward_g1(gpu, pairs: u32, per: u32, list: Global<[u32; 2]>, bases: Global<Affine<G1>>,
        partial: GlobalMut<Affine<G1>>, first: u32, prefix: GlobalMut<Fp>, inverses: Global<Fp>)
    limits { threads: PAIR_THREADS, min_blocks: 4, registers: 128, shared: 0 }
    {
        backward(&PerThread, gpu, pairs, per, list, bases, partial, first, prefix, inverses);
    }

    /// As `msm_forward_g1`, on G2: 256 bytes gathered, 96 written a pair.
    pub fn msm_forward_g2(gpu, pairs: u32, per: u32, list: Global<[u32; 2]>, bases: Global<Affine<G2>>,
        partial: Global<Affine<G2>>, prefix: GlobalMut<Fp2>, products: GlobalMut<Fp2>)
    limits { threads: PAIR_THREADS, min_blocks: 3, registers: 168, shared: 0 }
    {
        forward(gpu, pairs, per, list, bases, partial, prefix, products);
    }

    /// As `msm_invert_g1`, on G2.
    pub fn msm_invert_g2(gpu, count: u32, values: GlobalMut<Fp2>, scratch: GlobalMut<Fp2>)
    limits { threads: 128, min_blocks: 1, registers: 255, shared: 0 }
    {
        invert(gpu, count, values, scratch);
    }

    /// As `msm_backward_g1`, on G2: 480 bytes read, 192 written a pair.
    pub fn msm_backward_g2(gpu, pairs: u32, per: u32, list: Global<[u32; 2]>, bases: Global<Affine<G2>>,
        partial: GlobalMut<Affine<G2>>, first: u32, prefix: GlobalMut<Fp2>, inverses: Global<Fp2>)
    limits { threads: PAIR_THREADS, min_blocks: 2, registers: 255, shared: 0 }
    {
        backward(&PerThread, gpu, pairs, per, list, bases, partial, first, prefix, inverses);
    }
}
