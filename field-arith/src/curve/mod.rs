//! Short Weierstrass curves y^2 = x^3 + b over any coordinate field.

mod affine;
mod xyzz;

pub use affine::Affine;
pub use xyzz::Xyzz;

use crate::ops::FieldOps;

/// A curve y^2 = x^3 + b.
pub trait Curve: Copy + Send + Sync + core::fmt::Debug + PartialEq + 'static {
    /// Field of the coordinates.
    type Base: FieldOps;
    /// Name of the curve in messages.
    const NAME: &'static str;
    /// b.
    const B: Self::Base;
}
