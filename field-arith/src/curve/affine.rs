//! Affine points; the identity is (0, 0), as in blst's raw encoding.

use super::Curve;
use crate::ops::FieldOps;

/// The point (x, y), or the identity when all limbs of both coordinates are zero.
///
/// Coordinates of a point that is not the identity may be lazy, but never spell the
/// representative (0, 0), which is not on the curve.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Affine<C: Curve> {
    /// x coordinate.
    pub x: C::Base,
    /// y coordinate.
    pub y: C::Base,
}

// SAFETY: two elements of one plain type without padding.
unsafe impl<C: Curve> bytemuck::Zeroable for Affine<C> {}
// SAFETY: as above.
unsafe impl<C: Curve> bytemuck::Pod for Affine<C> {}

impl<C: Curve> Affine<C> {
    /// The point at infinity.
    pub const IDENTITY: Self = Self {
        x: <C::Base as FieldOps>::ZERO,
        y: <C::Base as FieldOps>::ZERO,
    };

    /// Limb-wise read.
    ///
    /// # Safety
    /// `p` is valid for reads and aligned for `Self`.
    #[inline(always)]
    pub unsafe fn load(p: *const Self) -> Self {
        // SAFETY: fields of a readable, aligned struct.
        unsafe {
            Self {
                x: C::Base::load(&raw const (*p).x),
                y: C::Base::load(&raw const (*p).y),
            }
        }
    }

    /// Limb-wise write.
    ///
    /// # Safety
    /// `p` is valid for writes and aligned for `Self`.
    #[inline(always)]
    pub unsafe fn store(&self, p: *mut Self) {
        // SAFETY: fields of a writable, aligned struct.
        unsafe {
            self.x.store(&raw mut (*p).x);
            self.y.store(&raw mut (*p).y);
        }
    }

    /// Whether this is the point at infinity.
    #[inline(always)]
    pub fn is_identity(&self) -> bool {
        self.x.is_raw_zero() && self.y.is_raw_zero()
    }

    /// -self.
    #[inline(always)]
    pub fn neg(&self) -> Self {
        Self {
            x: self.x,
            y: self.y.neg(),
        }
    }

    /// -self if `negative`, else self: a selection, not a branch.
    #[inline(always)]
    pub fn neg_if(&self, negative: bool) -> Self {
        let y = self.y.neg();
        Self {
            x: self.x,
            y: if negative { y } else { self.y },
        }
    }

    /// The same point with coordinates in [0, p).
    #[inline(always)]
    pub fn canonical(&self) -> Self {
        Self {
            x: self.x.canonical(),
            y: self.y.canonical(),
        }
    }

    /// y^2 = x^3 + b, or the identity.
    #[inline(always)]
    pub fn is_on_curve(&self) -> bool {
        let right = self.x.sqr().mul(&self.x).add(&C::B);
        self.is_identity() || self.y.sqr().sub(&right).is_zero()
    }
}

impl<C: Curve> PartialEq for Affine<C> {
    fn eq(&self, o: &Self) -> bool {
        self.x == o.x && self.y == o.y
    }
}

impl<C: Curve> Eq for Affine<C> {}
