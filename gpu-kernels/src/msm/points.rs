//! Points in device memory, addressed by references.
use cuzk_field::curve::{Affine, Curve, Xyzz};
use cuzk_field::ops::FieldOps;

use super::{INDEX, NEGATIVE, PARTIAL};
use crate::{Element, Global, Gpu};

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

impl<C: DeviceCurve> Points<C>
{
    /// Where the coordinates of a referenced point lie: x, then y.
    #[inline(always)]
    fn place(self, reference: u32) -> Global<C::Base> {
        let array = if reference & PARTIAL != 0 { self.partial } else { self.bases };
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
        if reference & NEGATIVE != 0 { y.neg() } else { y }
    }
    /// The point as it enters.
    #[inline(always)]
    pub fn get<G: Gpu>(self, gpu: G, reference: u32) -> Affine<C> {
        Affine { x: self.x(gpu, reference), y: self.y(gpu, reference) }
    }
}

/// A point in memory whose coordinates are read one at a time.
pub(crate) trait Coordinates<C: Curve> {
    /// Coordinate k of (X, Y, ZZ, ZZZ).
    fn coordinate(&self, k: u32) -> C::Base;
}

/// sum += point, every case, reading the point's coordinates when they are needed: a second point does
/// not fit the registers beside the first.
#[inline(always)]
pub(crate) fn add_from<C: Curve>(sum: &mut Xyzz<C>, point: &impl Coordinates<C>) {
    let zz = point.coordinate(2);
    if zz.is_zero() {
        return;
    }
    if sum.zz.is_zero() {
        *sum = Xyzz { x: point.coordinate(0), y: point.coordinate(1), zz, zzz: point.coordinate(3) };
        return;
    }
    let x2 = point.coordinate(0).mul(&sum.zz);
    sum.x = sum.x.mul(&zz);
    sum.zz = sum.zz.mul(&zz);
    let dx = x2.sub(&sum.x);
    let y2 = point.coordinate(1).mul(&sum.zzz);
    let zzz = point.coordinate(3);
    sum.y = sum.y.mul(&zzz);
    sum.zzz = sum.zzz.mul(&zzz);
    let dy = y2.sub(&sum.y);
    finish(sum, dx, dy);
}

/// The end of an addition over a common denominator, dx and dy being the differences of the
/// numerators. Equal points take their tangent instead; opposite points end with ZZ = 0.
#[inline(always)]
fn finish<C: Curve>(sum: &mut Xyzz<C>, mut dx: C::Base, mut dy: C::Base) {
    let equal = dx.is_zero() && dy.is_zero();
    if equal {
        let xx = sum.x.sqr();
        dx = sum.y.double();
        dy = xx.double().add(&xx);
    }
    let pp = dx.sqr();
    let q = sum.x.mul(&pp);
    sum.zz = sum.zz.mul(&pp);
    let ppp = dx.mul(&pp);
    sum.zzz = sum.zzz.mul(&ppp);
    sum.y = sum.y.mul(&ppp);
    let rr = dy.sqr();
    let rr = if equal { rr } else { rr.sub(&ppp) };
    sum.x = rr.sub(&q).sub(&q);
    sum.y = dy.mul(&q.sub(&sum.x)).sub(&sum.y);
}
