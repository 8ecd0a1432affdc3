//! Points in XYZZ coordinates: x = X/ZZ, y = Y/ZZZ with ZZ^3 = ZZZ^2.
//!
//! Formulas: Explicit-Formulas Database, short Weierstrass "xyzz" with a = 0
//! (madd-2008-s, add-2008-s, dbl-2008-s-1). Addition and doubling share their last part: with
//! (P, R) = (U2 - U1, S2 - S1) or, for equal points, (2Y, 3X^2),
//! X3 = R^2 - \[P^3\] - 2 U1 P^2, Y3 = R (U1 P^2 - X3) - S1 P^3, where the term in brackets is
//! absent when doubling. Opposite points need no case of their own: P = 0 makes ZZ zero.

use super::{Affine, Curve};
use crate::ops::{FieldOps, Multiplier, PerThread};

/// A point with two denominators; the identity has ZZ = 0 mod p, other coordinates arbitrary.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Xyzz<C: Curve> {
    /// X.
    pub x: C::Base,
    /// Y.
    pub y: C::Base,
    /// ZZ.
    pub zz: C::Base,
    /// ZZZ.
    pub zzz: C::Base,
}

// SAFETY: four elements of one plain type without padding.
unsafe impl<C: Curve> bytemuck::Zeroable for Xyzz<C> {}
// SAFETY: as above.
unsafe impl<C: Curve> bytemuck::Pod for Xyzz<C> {}

impl<C: Curve> Xyzz<C> {
    /// The point at infinity, all limbs zero.
    pub const IDENTITY: Self = Self {
        x: <C::Base as FieldOps>::ZERO,
        y: <C::Base as FieldOps>::ZERO,
        zz: <C::Base as FieldOps>::ZERO,
        zzz: <C::Base as FieldOps>::ZERO,
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
                zz: C::Base::load(&raw const (*p).zz),
                zzz: C::Base::load(&raw const (*p).zzz),
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
            self.zz.store(&raw mut (*p).zz);
            self.zzz.store(&raw mut (*p).zzz);
        }
    }

    /// Whether this is the point at infinity.
    #[inline(always)]
    pub fn is_identity(&self) -> bool {
        self.zz.is_zero()
    }

    /// From an affine point.
    #[inline(always)]
    pub fn from_affine(p: &Affine<C>) -> Self {
        let one = if p.is_identity() {
            C::Base::ZERO
        } else {
            C::Base::ONE
        };
        Self {
            x: p.x,
            y: p.y,
            zz: one,
            zzz: one,
        }
    }

    /// To an affine point with coordinates in [0, p); one inversion.
    #[inline(always)]
    pub fn to_affine(&self) -> Affine<C> {
        if self.is_identity() {
            return Affine::IDENTITY;
        }
        // 1/ZZ = (ZZ/ZZZ)^2, because ZZ^3 = ZZZ^2
        let zzz_inverse = self.zzz.invert();
        let z_inverse = zzz_inverse.mul(&self.zz);
        Affine {
            x: self.x.mul(&z_inverse.sqr()),
            y: self.y.mul(&zzz_inverse),
        }
        .canonical()
    }

    /// The same coordinates in [0, p).
    #[inline(always)]
    pub fn canonical(&self) -> Self {
        Self {
            x: self.x.canonical(),
            y: self.y.canonical(),
            zz: self.zz.canonical(),
            zzz: self.zzz.canonical(),
        }
    }

    /// -self.
    #[inline(always)]
    pub fn neg(&self) -> Self {
        Self {
            y: self.y.neg(),
            ..*self
        }
    }

    /// self += p, every case: 8M + 2S, 8M + 3S if the points are equal.
    #[inline(always)]
    pub fn add_affine(&mut self, p: &Affine<C>) {
        self.add_affine_with(&PerThread, p);
    }

    /// [`add_affine`](Self::add_affine) with a given multiplier.
    #[inline(always)]
    pub fn add_affine_with<M: Multiplier<C::Base>>(&mut self, m: &M, p: &Affine<C>) {
        if p.is_identity() {
            return;
        }
        if self.is_identity() {
            *self = Self::from_affine(p);
            return;
        }
        let mut dx = m.mul(&p.x, &self.zz).sub(&self.x);
        let mut dy = m.mul(&p.y, &self.zzz).sub(&self.y);
        let equal = dx.is_zero() && dy.is_zero();
        if equal {
            (dx, dy) = self.tangent(m);
        }
        self.finish(m, dx, dy, equal);
    }

    /// self += p for a `p` that is neither the identity nor equal to self; otherwise leaves self
    /// as it is and returns false. Opposite points and an identity in self are handled.
    #[inline(always)]
    #[must_use]
    pub fn add_affine_distinct<M: Multiplier<C::Base>>(&mut self, m: &M, p: &Affine<C>) -> bool {
        if self.is_identity() {
            *self = Self::from_affine(p);
            return true;
        }
        let dx = m.mul(&p.x, &self.zz).sub(&self.x);
        let dy = m.mul(&p.y, &self.zzz).sub(&self.y);
        if p.is_identity() || (dx.is_zero() && dy.is_zero()) {
            return false;
        }
        self.finish(m, dx, dy, false);
        true
    }

    /// self += o, every case: 12M + 2S, 12M + 3S if the points are equal.
    #[inline(always)]
    pub fn add(&mut self, o: &Self) {
        self.add_with(&PerThread, o);
    }

    /// [`add`](Self::add) with a given multiplier.
    #[inline(always)]
    pub fn add_with<M: Multiplier<C::Base>>(&mut self, m: &M, o: &Self) {
        if o.is_identity() {
            return;
        }
        if self.is_identity() {
            *self = *o;
            return;
        }
        let x2 = m.mul(&o.x, &self.zz);
        let y2 = m.mul(&o.y, &self.zzz);
        // self over the common denominators
        self.x = m.mul(&self.x, &o.zz);
        self.y = m.mul(&self.y, &o.zzz);
        self.zz = m.mul(&self.zz, &o.zz);
        self.zzz = m.mul(&self.zzz, &o.zzz);
        let mut dx = x2.sub(&self.x);
        let mut dy = y2.sub(&self.y);
        let equal = dx.is_zero() && dy.is_zero();
        if equal {
            (dx, dy) = self.tangent(m);
        }
        self.finish(m, dx, dy, equal);
    }

    /// self *= 2: 6M + 3S. No case is exceptional (there are no points of order 2 when a = 0 and
    /// -b is not a cube; a point with Y = 0 would give ZZ = 0, rightly).
    #[inline(always)]
    pub fn double(&mut self) {
        self.double_with(&PerThread);
    }

    /// [`double`](Self::double) with a given multiplier.
    #[inline(always)]
    pub fn double_with<M: Multiplier<C::Base>>(&mut self, m: &M) {
        let (dx, dy) = self.tangent(m);
        self.finish(m, dx, dy, true);
    }

    /// (2Y, 3X^2).
    #[inline(always)]
    fn tangent<M: Multiplier<C::Base>>(&self, m: &M) -> (C::Base, C::Base) {
        let xx = m.sqr(&self.x);
        (self.y.double(), xx.double().add(&xx))
    }

    /// The common last part, see the head of this file; `dx`, `dy` are P and R.
    #[inline(always)]
    fn finish<M: Multiplier<C::Base>>(&mut self, m: &M, dx: C::Base, dy: C::Base, doubling: bool) {
        let pp = m.sqr(&dx);
        let ppp = m.mul(&dx, &pp);
        let q = m.mul(&self.x, &pp);
        self.zz = m.mul(&self.zz, &pp);
        self.zzz = m.mul(&self.zzz, &ppp);
        let rr = m.sqr(&dy);
        let rr = if doubling { rr } else { rr.sub(&ppp) };
        let x = rr.sub(&q).sub(&q);
        self.y = m.mul_sub_mul(&dy, &q.sub(&x), &self.y, &ppp);
        self.x = x;
    }

    /// The points are equal (as points, whatever the denominators).
    #[inline(always)]
    pub fn is_same_point(&self, o: &Self) -> bool {
        if self.is_identity() || o.is_identity() {
            return self.is_identity() && o.is_identity();
        }
        self.x.mul(&o.zz).sub(&o.x.mul(&self.zz)).is_zero()
            && self.y.mul(&o.zzz).sub(&o.y.mul(&self.zzz)).is_zero()
    }
}
