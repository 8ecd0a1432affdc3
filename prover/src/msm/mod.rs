//! Multi-scalar multiplication Σ kᵢ·Pᵢ on the CPU, for G1 and G2.
//!
//! Points are affine, as blstrs keeps them (Montgomery form); any of them may be the identity,
//! repeated, or the negative of another. Scalars are cut into signed windows and points are
//! summed into buckets by batched affine additions ([Pippenger], with Montgomery's trick for the
//! inversions). A compact witness is cheaper still: the points of its ones are summed directly
//! and only the values other than 0 and 1 go through buckets.
//!
//! All functions use rayon's current thread pool and are deterministic. Where lengths differ, the
//! surplus of the longer side is ignored; callers that read either from outside compare counts
//! first.
//!
//! [Pippenger]: https://doi.org/10.1137/0209022

pub(crate) mod batch;
pub(crate) mod buckets;
mod compact;
mod coordinate;
pub(crate) mod curve;
pub(crate) mod digits;
mod lanes;
mod pippenger;

/// Σ scalar · base over as many bases as there are scalars: one by one where that is faster than buckets.
pub(crate) fn few<A, P>(
    bases: &[A],
    scalars: &[blstrs::Scalar],
    many: impl Fn(&[A], &[Scalar]) -> P,
) -> P
where
    A: Sync,
    for<'a> &'a A: std::ops::Mul<&'a blstrs::Scalar, Output = P>,
    P: Send + std::iter::Sum,
{
    use rayon::prelude::*;

    const FEW: usize = 64;
    if scalars.len() > FEW {
        return many(&bases[..scalars.len()], scalars);
    }
    bases
        .par_iter()
        .zip(scalars)
        .map(|(base, scalar)| base * scalar)
        .sum()
}

#[cfg(test)]
mod tests;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
pub(crate) use buckets::{Buckets, merge};
pub(crate) use curve::{Curve, G1, G2};
use cuzk_circuit::{Bitmap, CompactScalars, Scalar};
use digits::Recoded;
use rayon::prelude::*;

/// `Σ scalars[i] · bases[i]` in G1.
pub fn g1(bases: &[G1Affine], scalars: &[Scalar]) -> G1Projective {
    full::<G1>(bases, scalars)
}

/// `Σ scalars[i] · bases[i]` in G2.
pub fn g2(bases: &[G2Affine], scalars: &[Scalar]) -> G2Projective {
    full::<G2>(bases, scalars)
}

/// `Σ scalars[i] · base` in G1 over the scalars whose density bit is set.
///
/// `bases` holds a point for each set bit only, in their order, as bellperson's parameters do;
/// without a density every scalar has its base.
pub fn g1_compact(
    bases: &[G1Affine],
    scalars: &CompactScalars,
    density: Option<&Bitmap>,
) -> G1Projective {
    compact::multiply::<G1>(bases, scalars, density)
}

/// `Σ scalars[i] · base` in G2 over the scalars whose density bit is set; see [`g1_compact`].
pub fn g2_compact(
    bases: &[G2Affine],
    scalars: &CompactScalars,
    density: Option<&Bitmap>,
) -> G2Projective {
    compact::multiply::<G2>(bases, scalars, density)
}

fn full<C: Curve>(bases: &[C::Affine], scalars: &[Scalar]) -> C::Projective {
    let scalars = &scalars[..scalars.len().min(bases.len())];
    let recoded: Vec<Recoded> = scalars.par_iter().map(Recoded::new).collect();
    pippenger::multiply::<C>(bases, &recoded)
}
