//! Affine additions in batches that share one field inversion.
//!
//! Adding affine points costs one inversion, two multiplications and one squaring. With
//! Montgomery's trick a batch of n additions needs one inversion and 3(n − 1) multiplications
//! more, so an addition comes to 5M + 1S against 8M + 2S in extended Jacobian coordinates.

use super::{coordinate::Coordinate, curve::Point};

/// Additions per inversion: an inversion costs about 70 multiplications, and the batch's working
/// set (slots, points, partial products) stays within a second-level cache.
pub(crate) const BATCH: usize = 1024;

/// Additions `slots[i] += points[i]` waiting for their common inversion.
///
/// No slot may be pushed twice between two calls of [`Batch::flush`]; whoever pushes sees to it.
pub(crate) struct Batch<F> {
    slots: Vec<u32>,
    points: Vec<Point<F>>,
    /// For each addition the product of the denominators before it.
    products: Vec<F>,
}

impl<F: Coordinate> Batch<F> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::with_capacity(BATCH),
            points: Vec::with_capacity(BATCH),
            products: Vec::with_capacity(BATCH),
        }
    }

    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.slots.len() >= BATCH
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, slot: u32, point: Point<F>) {
        self.slots.push(slot);
        self.points.push(point);
    }

    /// The slots pushed since the last flush.
    pub(crate) fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Performs the additions on `targets`. Equal points are doubled, opposite ones give the
    /// identity, the identity is neutral on both sides.
    pub(crate) fn flush(&mut self, targets: &mut [Point<F>]) {
        let mut product = F::ONE;
        self.products.clear();
        for (&slot, point) in self.slots.iter().zip(&self.points) {
            let denominator = Denominator::new(&targets[slot as usize], point);
            self.products.push(product);
            product.mul_assign(&denominator.value);
        }
        let mut inverse = product.inverse();
        let additions = self.slots.iter().zip(&self.points).zip(&self.products);
        for ((&slot, point), before) in additions.rev() {
            let target = &mut targets[slot as usize];
            // Computed again rather than kept: memory is scarcer than a subtraction.
            let denominator = Denominator::new(target, point);
            let mut own_inverse = *before;
            own_inverse.mul_assign(&inverse);
            *target = if denominator.special {
                special_add(target, point, &own_inverse)
            } else {
                add(target, point, &own_inverse)
            };
            inverse.mul_assign(&denominator.value);
        }
        self.slots.clear();
        self.points.clear();
    }
}

/// The denominator of the slope through two points: x₂ − x₁, 2y for a doubling, and 1 where no
/// slope is needed. Never zero.
struct Denominator<F> {
    value: F,
    /// The points are equal or opposite, or one is the identity.
    special: bool,
}

impl<F: Coordinate> Denominator<F> {
    #[inline(always)]
    fn new(p: &Point<F>, q: &Point<F>) -> Self {
        let value = q.x.sub(&p.x);
        if value.is_zero() || p.is_identity() || q.is_identity() {
            Self::special(p, q)
        } else {
            Self {
                value,
                special: false,
            }
        }
    }

    #[cold]
    fn special(p: &Point<F>, q: &Point<F>) -> Self {
        let value = if p.equals(q) && !p.y.is_zero() {
            p.y.add(&p.y)
        } else {
            F::ONE
        };
        Self {
            value,
            special: true,
        }
    }
}

/// `p + q` for points with different x, given the inverse of their [`Denominator`].
#[inline(always)]
fn add<F: Coordinate>(p: &Point<F>, q: &Point<F>, inverse: &F) -> Point<F> {
    let mut slope = q.y.sub(&p.y);
    slope.mul_assign(inverse);
    chord(p, q, &slope)
}

/// `p + q` for all other pairs.
#[cold]
fn special_add<F: Coordinate>(p: &Point<F>, q: &Point<F>, inverse: &F) -> Point<F> {
    if p.is_identity() {
        return *q;
    }
    if q.is_identity() {
        return *p;
    }
    if !p.y.equals(&q.y) || p.y.is_zero() {
        return Point::IDENTITY;
    }
    let square = p.x.square();
    chord(p, q, &square.add(&square).add(&square).mul(inverse))
}

/// The third point on the line of this slope through `p` and `q`, mirrored.
#[inline(always)]
fn chord<F: Coordinate>(p: &Point<F>, q: &Point<F>, slope: &F) -> Point<F> {
    let x = slope.square().sub(&p.x).sub(&q.x);
    let mut y = p.x.sub(&x);
    y.mul_assign(slope);
    Point { x, y: y.sub(&p.y) }
}
