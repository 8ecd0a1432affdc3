//! Points in device memory, addressed by references.
use cuzk_field::curve::{Affine, Curve, Xyzz};
use cuzk_field::ops::{FieldOps, Multiplier};

use super::{INDEX, NEGATIVE, PARTIAL};
use crate::{Element, Global, Gpu, Planes};

/// The coordinate field of a curve whose points lie in device memory.
pub trait DeviceCurve: Curve<Base: Element> {}
impl<C: Curve<Base: Element>> DeviceCurve for C {}

/// The two arrays that references point to.
#[derive(Clone, Copy)]
pub struct Points<C: DeviceCurve> {
    /// Bases.
    pub bases: Global<Affine<C>>,
    /// Partial sums.
    pub partial: Global<Affine<C>>,
}

impl<C: DeviceCurve> Points<C> {
    /// Where the coordinates of a referenced point lie: x, then y.
    #[inline(always)]
    fn place(self, reference: u32) -> Global<C::Base> {
        let array = if reference & PARTIAL != 0 {
            self.partial
        } else {
            self.bases
        };
        array.offset((reference & INDEX) as usize).cast()
    }
    /// The x coordinate.
    #[inline(always)]
    pub fn x<G: Gpu>(self, gpu: G, reference: u32) -> C::Base {
        self.place(reference).load(gpu, 0)
    }
    /// The y coordinate of the point as it enters.
    #[inline(always)]
    pub fn y<G: Gpu>(self, gpu: G, reference: u32) -> C::Base {
        let y = self.place(reference).load(gpu, 1);
        if reference & NEGATIVE != 0 {
            y.neg()
        } else {
            y
        }
    }
}

/// A point in memory whose coordinates are read one at a time.
pub(crate) trait Coordinates<C: Curve> {
    /// Coordinate k of (X, Y, ZZ, ZZZ).
    fn coordinate(&self, k: u32) -> C::Base;
}

/// A referenced point with ZZ = ZZZ = 1, or 0 for the identity.
#[derive(Clone, Copy)]
pub(crate) struct Referenced<C: DeviceCurve, G: Gpu> {
    pub gpu: G,
    pub points: Points<C>,
    pub reference: u32,
}

impl<C: DeviceCurve, G: Gpu> Coordinates<C> for Referenced<C, G> {
    #[inline(always)]
    fn coordinate(&self, k: u32) -> C::Base {
        match k {
            X => self.points.x(self.gpu, self.reference),
            Y => self.points.y(self.gpu, self.reference),
            _ => {
                let x = self.points.x(self.gpu, self.reference);
                if x.is_raw_zero() && self.points.y(self.gpu, self.reference).is_raw_zero() {
                    <C::Base as FieldOps>::ZERO
                } else {
                    <C::Base as FieldOps>::ONE
                }
            }
        }
    }
}

const X: u32 = 0;
const Y: u32 = 1;
const ZZ: u32 = 2;
const ZZZ: u32 = 3;

/// An XYZZ point of a thread in shared memory. Additions read and write its coordinates one at a time,
/// because two points do not fit the registers.
#[derive(Clone, Copy)]
pub(crate) struct Slot<C: DeviceCurve, G: Gpu> {
    gpu: G,
    planes: Planes<C::Base>,
    /// Index of X; the others follow, `step` apart.
    first: u32,
    step: u32,
}

impl<C: DeviceCurve, G: Gpu> Coordinates<C> for Slot<C, G> {
    #[inline(always)]
    fn coordinate(&self, k: u32) -> C::Base {
        self.planes.load(self.gpu, self.first + k * self.step)
    }
}

impl<C: DeviceCurve, G: Gpu> Slot<C, G> {
    /// Point `slot` of thread `thread`, of `slots` points for each of the block's `threads` threads.
    #[inline(always)]
    pub fn new(gpu: G, threads: u32, slots: u32, slot: u32, thread: u32) -> Self {
        let planes = Planes::new(gpu, 0, 4 * slots * threads);
        Self {
            gpu,
            planes,
            first: 4 * slot * threads + thread,
            step: threads,
        }
    }
    #[inline(always)]
    fn set(self, k: u32, value: C::Base) {
        self.planes
            .store(self.gpu, self.first + k * self.step, value);
    }
    /// Makes it the identity.
    #[inline(always)]
    pub fn clear(self) {
        let zero = <C::Base as FieldOps>::ZERO;
        self.set(X, zero);
        self.set(Y, zero);
        self.set(ZZ, zero);
        self.set(ZZZ, zero);
    }
    /// Makes it another slot's point.
    #[inline(always)]
    pub fn copy(self, other: Self) {
        self.set(X, other.coordinate(X));
        self.set(Y, other.coordinate(Y));
        self.set(ZZ, other.coordinate(ZZ));
        self.set(ZZZ, other.coordinate(ZZZ));
    }
    /// The point.
    #[inline(always)]
    pub fn load(self) -> Xyzz<C> {
        Xyzz {
            x: self.coordinate(X),
            y: self.coordinate(Y),
            zz: self.coordinate(ZZ),
            zzz: self.coordinate(ZZZ),
        }
    }

    /// self += point, every case; `point` may be this slot.
    #[inline(always)]
    pub fn add<M: Multiplier<C::Base>>(self, m: &M, point: &impl Coordinates<C>) {
        let zz2 = point.coordinate(ZZ);
        if zz2.is_zero() {
            return;
        }
        let zz = self.coordinate(ZZ);
        if zz.is_zero() {
            self.set(X, point.coordinate(X));
            self.set(Y, point.coordinate(Y));
            self.set(ZZ, zz2);
            self.set(ZZZ, point.coordinate(ZZZ));
            return;
        }
        // both over the common denominators; each coordinate is read before it is overwritten
        let x2 = m.mul(&point.coordinate(X), &zz);
        self.set(ZZ, m.mul(&zz, &zz2));
        let x = m.mul(&self.coordinate(X), &zz2);
        self.set(X, x);
        let dx = x2.sub(&x);
        let zzz2 = point.coordinate(ZZZ);
        let zzz = self.coordinate(ZZZ);
        let y2 = m.mul(&point.coordinate(Y), &zzz);
        self.set(ZZZ, m.mul(&zzz, &zzz2));
        let y = m.mul(&self.coordinate(Y), &zzz2);
        self.set(Y, y);
        let dy = y2.sub(&y);
        self.finish(m, dx, dy);
    }

    /// self += (x, y), every case but the identity, whose coordinates do not exist.
    #[inline(always)]
    pub fn add_affine<M: Multiplier<C::Base>>(self, m: &M, x: &C::Base, y: &C::Base) {
        let zz = self.coordinate(ZZ);
        if zz.is_zero() {
            self.set(X, *x);
            self.set(Y, *y);
            self.set(ZZ, <C::Base as FieldOps>::ONE);
            self.set(ZZZ, <C::Base as FieldOps>::ONE);
            return;
        }
        let dx = m.mul(x, &zz).sub(&self.coordinate(X));
        let dy = m.mul(y, &self.coordinate(ZZZ)).sub(&self.coordinate(Y));
        self.finish(m, dx, dy);
    }

    /// The end of an addition over a common denominator, dx and dy being the differences of the
    /// numerators. Equal points take their tangent instead; opposite points end with ZZ = 0.
    #[inline(always)]
    fn finish<M: Multiplier<C::Base>>(self, m: &M, mut dx: C::Base, mut dy: C::Base) {
        let equal = dx.is_zero() && dy.is_zero();
        if equal {
            let xx = m.sqr(&self.coordinate(X));
            dx = self.coordinate(Y).double();
            dy = xx.double().add(&xx);
        }
        let pp = m.sqr(&dx);
        self.set(ZZ, m.mul(&self.coordinate(ZZ), &pp));
        let ppp = m.mul(&dx, &pp);
        self.set(ZZZ, m.mul(&self.coordinate(ZZZ), &ppp));
        let q = m.mul(&self.coordinate(X), &pp);
        let low = m.mul(&self.coordinate(Y), &ppp);
        let rr = m.sqr(&dy);
        let rr = if equal { rr } else { rr.sub(&ppp) };
        let x = rr.sub(&q).sub(&q);
        self.set(X, x);
        self.set(Y, m.mul(&dy, &q.sub(&x)).sub(&low));
    }
}
