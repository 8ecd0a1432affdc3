//! The quadratic extension F(i) with i^2 = -1, over any prime field with p = 3 mod 4.

use crate::backend::{Backend, Native};
use crate::montgomery::Mont;
use crate::ops::{DivisionSteps, FieldOps};
use crate::params::FieldParams;
use crate::wide::Wide;

/// c0 + c1 i, both coefficients in the ranges of their field.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Quadratic<P: FieldParams<N>, const N: usize> {
    /// Real part.
    pub c0: Mont<P, N>,
    /// Coefficient of i.
    pub c1: Mont<P, N>,
}

// SAFETY: two elements of one plain type without padding.
unsafe impl<P: FieldParams<N>, const N: usize> bytemuck::Zeroable for Quadratic<P, N> {}
// SAFETY: as above.
unsafe impl<P: FieldParams<N>, const N: usize> bytemuck::Pod for Quadratic<P, N> {}

impl<P: FieldParams<N>, const N: usize> Quadratic<P, N> {
    /// 0.
    pub const ZERO: Self = Self::new(Mont::ZERO, Mont::ZERO);
    /// 1.
    pub const ONE: Self = Self::new(Mont::ONE, Mont::ZERO);

    /// c0 + c1 i.
    #[inline(always)]
    pub const fn new(c0: Mont<P, N>, c1: Mont<P, N>) -> Self {
        Self { c0, c1 }
    }
}

impl<P: FieldParams<N>, const N: usize> Quadratic<P, N>
where
    Native: Backend<N>,
    Mont<P, N>: DivisionSteps,
{
    /// c0 - c1 i, which is also the p-th power (Frobenius).
    #[inline(always)]
    pub fn conjugate(&self) -> Self {
        Self::new(self.c0, self.c1.neg())
    }

    /// self k for k in the base field.
    #[inline(always)]
    pub fn scale(&self, k: &Mont<P, N>) -> Self {
        Self::new(self.c0.mul(k), self.c1.mul(k))
    }

    /// c0^2 + c1^2.
    #[inline(always)]
    pub fn norm(&self) -> Mont<P, N> {
        self.c0.mul_add_mul(&self.c0, &self.c1, &self.c1)
    }
}

impl<P: FieldParams<N>, const N: usize> FieldOps for Quadratic<P, N>
where
    Native: Backend<N>,
    Mont<P, N>: DivisionSteps,
{
    const ZERO: Self = Self::ZERO;
    const ONE: Self = Self::ONE;

    #[inline(always)]
    fn add(&self, o: &Self) -> Self {
        Self::new(self.c0.add(&o.c0), self.c1.add(&o.c1))
    }
    #[inline(always)]
    fn sub(&self, o: &Self) -> Self {
        Self::new(self.c0.sub(&o.c0), self.c1.sub(&o.c1))
    }
    #[inline(always)]
    fn neg(&self) -> Self {
        Self::new(self.c0.neg(), self.c1.neg())
    }
    #[inline(always)]
    fn double(&self) -> Self {
        Self::new(self.c0.double(), self.c1.double())
    }

    /// (a0 b0 - a1 b1) + (a0 b1 + a1 b0) i: four products, two reductions.
    #[inline(always)]
    fn mul(&self, o: &Self) -> Self {
        Self::new(
            self.c0.mul_sub_mul(&o.c0, &self.c1, &o.c1),
            self.c0.mul_add_mul(&o.c1, &self.c1, &o.c0),
        )
    }

    /// Three products, two reductions: with t0 = a0 b0, t1 = a1 b1 and
    /// t2 = (a0 + a1)(b0 + b1), the sums unreduced, (t0 - t1) + (t2 - t0 - t1) i. Ranges for lazy
    /// fields: t0, t1 < 4p^2 < pR, t2 < 16p^2 < R^2, t2 - t0 - t1 < 8p^2.
    #[inline(always)]
    fn mul_karatsuba(&self, o: &Self) -> Self {
        if !P::LAZY {
            return self.mul(o);
        }
        let t0 = Wide::product(&self.c0, &o.c0);
        let t1 = Wide::product(&self.c1, &o.c1);
        let sum = self.c0.add_unreduced(&self.c1);
        let t2 = Wide::product(&sum, &o.c0.add_unreduced(&o.c1));
        let c1 = t2.sub(&t0.add(&t1)).reduce();
        let c1 = if P::DOT2_CLOSED {
            c1
        } else {
            Mont::bounded(c1.limbs())
        };
        Self::new(t0.sub_mod(&t1).reduce(), c1)
    }

    /// (a0 + a1)(a0 - a1) + 2 a0 a1 i: two products. With 8p <= R the sum and the doubling need no
    /// reduction: 4p 2p / R + p < 2p.
    #[inline(always)]
    fn sqr(&self) -> Self {
        let difference = self.c0.sub(&self.c1);
        if P::LAZY && P::DOT2_CLOSED {
            let sum = self.c0.add_unreduced(&self.c1);
            let twice = self.c0.add_unreduced(&self.c0);
            Self::new(sum.mul(&difference), twice.mul(&self.c1))
        } else {
            let sum = self.c0.add(&self.c1);
            Self::new(sum.mul(&difference), self.c0.double().mul(&self.c1))
        }
    }

    #[inline(always)]
    fn mul_sub_mul(&self, b: &Self, c: &Self, d: &Self) -> Self {
        self.mul(b).sub(&c.mul(d))
    }

    /// conjugate / norm.
    #[inline(always)]
    fn invert(&self) -> Self {
        self.conjugate().scale(&self.norm().invert()).canonical()
    }
    #[inline(always)]
    fn is_zero(&self) -> bool {
        self.c0.is_zero() && self.c1.is_zero()
    }
    #[inline(always)]
    fn is_raw_zero(&self) -> bool {
        self.c0.is_raw_zero() && self.c1.is_raw_zero()
    }
    #[inline(always)]
    fn canonical(&self) -> Self {
        Self::new(self.c0.canonical(), self.c1.canonical())
    }
    #[inline(always)]
    unsafe fn load(p: *const Self) -> Self {
        // SAFETY: fields of a readable, aligned struct.
        unsafe {
            Self::new(
                Mont::load(&raw const (*p).c0),
                Mont::load(&raw const (*p).c1),
            )
        }
    }
    #[inline(always)]
    unsafe fn store(&self, p: *mut Self) {
        // SAFETY: fields of a writable, aligned struct.
        unsafe {
            self.c0.store(&raw mut (*p).c0);
            self.c1.store(&raw mut (*p).c1);
        }
    }
}

impl<P: FieldParams<N>, const N: usize> PartialEq for Quadratic<P, N>
where
    Native: Backend<N>,
{
    #[inline(always)]
    fn eq(&self, o: &Self) -> bool {
        self.c0 == o.c0 && self.c1 == o.c1
    }
}

impl<P: FieldParams<N>, const N: usize> Eq for Quadratic<P, N> where Native: Backend<N> {}
