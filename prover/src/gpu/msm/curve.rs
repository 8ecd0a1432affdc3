//! What the sequences of launches need to know of a curve: its kernels and blstrs' types.

use blst::{blst_fp, blst_fp2};
use blstrs::{G1Projective, G2Projective, Scalar};
use cuzk_field::bls12_381::Fp2;
use cuzk_field::curve::{Affine, Xyzz};
use cuzk_field::{Fp, G1, G2};
use cuzk_kernels::msm::points::DeviceCurve;
use cuzk_kernels::msm::{addition, rounds, weights};
use cuzk_kernels::{Global, GlobalMut, Launch};
use group::Group;

use super::lists::State;

/// A batch of additions: `partial[first + i]` becomes the sum of pair i.
#[derive(Clone, Copy)]
pub struct Pairs<C: DeviceCurve> {
    /// Number of pairs.
    pub count: u32,
    /// Pairs of a thread.
    pub per: u32,
    /// Two references a pair.
    pub list: Global<[u32; 2]>,
    /// What plain references name.
    pub bases: Global<Affine<C>>,
    /// What references with the partial bit name.
    pub partial: GlobalMut<Affine<C>>,
    /// Where the sums go.
    pub first: u32,
    /// `count` field elements.
    pub prefix: GlobalMut<C::Base>,
    /// A field element for each thread of the grid.
    pub products: GlobalMut<C::Base>,
    /// As large as `products`.
    pub scratch: GlobalMut<C::Base>,
}

impl<C: DeviceCurve> Pairs<C> {
    /// Blocks of the forward and backward launches.
    pub fn blocks(&self) -> u32 {
        self.count.div_ceil(addition::PAIR_THREADS * self.per)
    }
    /// Products to invert.
    pub fn products(&self) -> u32 {
        self.blocks() * addition::PAIR_THREADS
    }
}

/// A curve with kernels, G1 or G2 of BLS12-381.
pub trait GpuCurve: DeviceCurve {
    /// The group on the host.
    type Host: Group<Scalar = Scalar>;

    /// The three launches of a batch; `invert_blocks` is the most blocks of the second.
    fn add(pairs: &Pairs<Self>, invert_blocks: u32) -> [Launch; 3];
    /// Sums what is left of lists of points after at least one round.
    fn finish(
        state: &State,
        bases: Global<Affine<Self>>,
        partial: Global<Affine<Self>>,
        sums: GlobalMut<Xyzz<Self>>,
    ) -> Launch;
    /// Weighted or plain sums of lines, which have `points[0]` and `points[1]` points in turn.
    fn lines(
        lines: u32,
        points: [u32; 2],
        plain: bool,
        sums: Global<Xyzz<Self>>,
        results: GlobalMut<Xyzz<Self>>,
    ) -> Launch;
    /// A point from the device.
    fn to_host(point: &Xyzz<Self>) -> Self::Host;
}

/// X·ZZ·ZZZ² and Y·ZZ³·ZZZ² are Jacobian coordinates over Z = ZZ·ZZZ.
fn jacobian<C: DeviceCurve>(point: &Xyzz<C>) -> [C::Base; 3] {
    use cuzk_field::ops::FieldOps;
    let (zz, zzz) = (point.zz, point.zzz);
    let zzz2 = zzz.sqr();
    [
        point.x.mul(&zz).mul(&zzz2).canonical(),
        point.y.mul(&zz.sqr().mul(&zz)).mul(&zzz2).canonical(),
        zz.mul(&zzz).canonical(),
    ]
}

fn host_fp(x: &Fp) -> blst_fp {
    let limbs = x.limbs();
    blst_fp {
        l: std::array::from_fn(|i| u64::from(limbs[2 * i]) | u64::from(limbs[2 * i + 1]) << 32),
    }
}

fn host_fp2(x: &Fp2) -> blst_fp2 {
    blst_fp2 {
        fp: [host_fp(&x.c0), host_fp(&x.c1)],
    }
}

macro_rules! gpu_curve {
    ($curve:ty, $host:ty, $forward:ident, $invert:ident, $backward:ident, $finish:ident, $lines:ident, $field:path) => {
        impl GpuCurve for $curve {
            type Host = $host;

            fn add(pairs: &Pairs<Self>, invert_blocks: u32) -> [Launch; 3] {
                let p = pairs;
                let blocks = p.blocks();
                let inverting = p
                    .products()
                    .div_ceil(addition::$invert::THREADS)
                    .min(invert_blocks);
                [
                    addition::$forward::launch(
                        blocks,
                        p.count,
                        p.per,
                        p.list,
                        p.bases,
                        p.partial.read(),
                        p.prefix,
                        p.products,
                    ),
                    addition::$invert::launch(inverting, p.products(), p.products, p.scratch),
                    addition::$backward::launch(
                        blocks,
                        p.count,
                        p.per,
                        p.list,
                        p.bases,
                        p.partial,
                        p.first,
                        p.prefix,
                        p.products.read(),
                    ),
                ]
            }

            fn finish(
                state: &State,
                bases: Global<Affine<Self>>,
                partial: Global<Affine<Self>>,
                sums: GlobalMut<Xyzz<Self>>,
            ) -> Launch {
                let (s, l) = (state, &state.lists);
                rounds::$finish::launch(
                    l.count.div_ceil(rounds::$finish::THREADS),
                    l.count,
                    s.round,
                    l.lens,
                    s.before.read(),
                    s.partial,
                    s.tails.read(),
                    bases,
                    partial,
                    sums,
                )
            }

            fn lines(
                lines: u32,
                [rows, columns]: [u32; 2],
                plain: bool,
                sums: Global<Xyzz<Self>>,
                results: GlobalMut<Xyzz<Self>>,
            ) -> Launch {
                weights::$lines::launch(lines, rows, columns, plain.into(), sums, results)
            }

            fn to_host(point: &Xyzz<Self>) -> Self::Host {
                let [x, y, z] = jacobian(point);
                let mut host = <$host>::identity();
                let raw = host.as_mut();
                raw.x = $field(&x);
                raw.y = $field(&y);
                raw.z = $field(&z);
                host
            }
        }
    };
}

gpu_curve!(
    G1,
    G1Projective,
    msm_forward_g1,
    msm_invert_g1,
    msm_backward_g1,
    msm_finish_g1,
    msm_lines_g1,
    host_fp
);
gpu_curve!(
    G2,
    G2Projective,
    msm_forward_g2,
    msm_invert_g2,
    msm_backward_g2,
    msm_finish_g2,
    msm_lines_g2,
    host_fp2
);
