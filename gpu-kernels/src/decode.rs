//! Points from the bytes of parameter files: decoded and checked.
//!
//! A fault is reported as the least index of a bad point, by an atomic minimum over what `fault` holds
//! before; the host decodes that point again to say what is wrong with it.

use cuzk_field::bls12_381::encoding::Uncompressed;
use cuzk_field::bls12_381::endomorphism::Subgroup;
use cuzk_field::curve::Affine;
use cuzk_field::{G1, G2};

use crate::msm::points::DeviceCurve;
use crate::{AtomicOp, Global, GlobalMut, Gpu, kernel};

/// 16-byte words of an encoded coordinate.
pub const COORDINATE_WORDS: u32 = 3;

/// Coordinate `k` of the encodings.
#[inline(always)]
fn coordinate<G: Gpu>(gpu: G, bytes: Global<[u32; 4]>, k: usize) -> [u32; 12] {
    let first = COORDINATE_WORDS as usize * k;
    let a = bytes.load(gpu, first);
    let b = bytes.load(gpu, first + 1);
    let c = bytes.load(gpu, first + 2);
    [
        a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3], c[0], c[1], c[2], c[3],
    ]
}

/// Stores the point, or reports its index; an identity counts as a fault, because no file may hold one.
#[inline(always)]
fn keep<C: DeviceCurve, E, G: Gpu>(
    gpu: G,
    i: usize,
    point: Result<Affine<C>, E>,
    points: GlobalMut<Affine<C>>,
    fault: GlobalMut<u32>,
) {
    match point {
        Ok(point) if !point.is_identity() => points.store(gpu, i, point),
        _ => {
            fault.atomic(gpu, AtomicOp::Min, 0, i as u32);
        }
    }
}

#[inline(always)]
fn check<C: DeviceCurve + Subgroup, G: Gpu>(
    gpu: G,
    n: u32,
    points: Global<Affine<C>>,
    fault: GlobalMut<u32>,
) {
    let i = gpu.index();
    if i < n as usize && !C::contains(&points.load(gpu, i)) {
        fault.atomic(gpu, AtomicOp::Min, 0, i as u32);
    }
}

kernel! {
    /// `points[i]` from its 96 bytes, six words of `bytes`, (x, y; big-endian, uncompressed) for i < n, canonical,
    /// in Montgomery form. `fault` becomes the least index whose bytes are not a finite point of the curve.
    ///
    /// One thread a point. Bound by memory: 96 bytes read, 96 written.
    pub fn decode_points_g1(gpu, n: u32, bytes: Global<[u32; 4]>, points: GlobalMut<Affine<G1>>,
        fault: GlobalMut<u32>)
    limits { threads: 128, min_blocks: 4, registers: 128, shared: 0 }
    {
        let i = gpu.index();
        if i < n as usize {
            let words = [coordinate(gpu, bytes, 2 * i), coordinate(gpu, bytes, 2 * i + 1)];
            keep(gpu, i, G1::decode(&words), points, fault);
        }
    }

    /// As `decode_points_g1`, on G2: 192 bytes a point (x.c1, x.c0, y.c1, y.c0).
    pub fn decode_points_g2(gpu, n: u32, bytes: Global<[u32; 4]>, points: GlobalMut<Affine<G2>>,
        fault: GlobalMut<u32>)
    limits { threads: 128, min_blocks: 2, registers: 255, shared: 0 }
    {
        let i = gpu.index();
        if i < n as usize {
            let words = [
                coordinate(gpu, bytes, 4 * i),
                coordinate(gpu, bytes, 4 * i + 1),
                coordinate(gpu, bytes, 4 * i + 2),
                coordinate(gpu, bytes, 4 * i + 3),
            ];
            keep(gpu, i, G2::decode(&words), points, fault);
        }
    }

    /// `fault` becomes the least index i < n of a point of the curve outside of the subgroup of prime order.
    ///
    /// One thread a point. Bound by multiplications: 126 doublings and 16 additions.
    pub fn check_subgroup_g1(gpu, n: u32, points: Global<Affine<G1>>, fault: GlobalMut<u32>)
    limits { threads: 128, min_blocks: 2, registers: 255, shared: 0 }
    {
        check(gpu, n, points, fault);
    }

    /// As `check_subgroup_g1`, on G2: 63 doublings and 5 additions, whose operands
    /// do not fit the registers.
    pub fn check_subgroup_g2(gpu, n: u32, points: Global<Affine<G2>>, fault: GlobalMut<u32>)
    limits { threads: 128, min_blocks: 2, registers: 255, shared: 0, spills: 2176, stack: 384 }
    {
        check(gpu, n, points, fault);
    }
}
