//! The two groups behind one interface: coordinates for the affine formulas, blstrs' types outside.

use super::coordinate::Coordinate;
use blst::{blst_fp, blst_fp2};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use group::Curve as Normalize;

/// An affine point (x, y); the identity is (0, 0), as blst encodes it in memory.
#[derive(Clone, Copy, Default)]
pub(crate) struct Point<F> {
    pub(crate) x: F,
    pub(crate) y: F,
}

impl<F: Coordinate> Point<F> {
    pub(crate) const IDENTITY: Self = Self {
        x: F::ZERO,
        y: F::ZERO,
    };

    #[inline(always)]
    pub(crate) fn is_identity(&self) -> bool {
        // No point of either curve has x = y = 0.
        self.x.is_zero() && self.y.is_zero()
    }

    #[inline(always)]
    pub(crate) fn equals(&self, rhs: &Self) -> bool {
        self.x.equals(&rhs.x) && self.y.equals(&rhs.y)
    }

    #[inline(always)]
    pub(crate) fn negated_if(&self, negate: bool) -> Self {
        Self {
            x: self.x,
            y: self.y.negated_if(negate),
        }
    }
}

/// G1 or G2.
pub(crate) trait Curve: Send + Sync + 'static {
    type Field: Coordinate;
    type Affine: Copy + Send + Sync + Default + Into<Self::Projective>;
    type Projective: Normalize<AffineRepr = Self::Affine, Scalar = Scalar> + From<Self::Affine>;

    fn load(point: &Self::Affine) -> Point<Self::Field>;
    fn store(point: &Point<Self::Field>) -> Self::Affine;

    /// The affine form of a point.
    #[cfg(test)]
    fn from_projective(point: &Self::Projective) -> Self::Affine {
        point.to_affine()
    }

    fn project(point: &Point<Self::Field>) -> Self::Projective {
        Self::store(point).into()
    }
}

/// The group over Fp.
pub(crate) struct G1;
/// The group over Fp2.
pub(crate) struct G2;

macro_rules! curve {
    ($group:ty, $field:ty, $affine:ty, $projective:ty) => {
        impl Curve for $group {
            type Field = $field;
            type Affine = $affine;
            type Projective = $projective;

            #[inline(always)]
            fn load(point: &$affine) -> Point<$field> {
                let raw = point.as_ref();
                Point { x: raw.x, y: raw.y }
            }

            #[inline(always)]
            fn store(point: &Point<$field>) -> $affine {
                let mut affine = <$affine>::default();
                let raw = affine.as_mut();
                raw.x = point.x;
                raw.y = point.y;
                affine
            }
        }
    };
}

curve!(G1, blst_fp, G1Affine, G1Projective);
curve!(G2, blst_fp2, G2Affine, G2Projective);
