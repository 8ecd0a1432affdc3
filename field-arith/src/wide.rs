//! Products before reduction, so that sums of products are reduced once.

use crate::backend::{Backend, Native};
use crate::montgomery::Mont;
use crate::params::FieldParams;

/// An integer below R^2, to be reduced to [`Mont`].
///
/// [`reduce`](Self::reduce) gives less than 2p for integers below pR.
#[derive(Clone, Copy, Debug)]
pub struct Wide<P: FieldParams<N>, const N: usize> {
    low: [u32; N],
    high: [u32; N],
    field: core::marker::PhantomData<P>,
}

impl<P: FieldParams<N>, const N: usize> Wide<P, N>
where
    Native: Backend<N>,
{
    #[inline(always)]
    fn new(low: [u32; N], high: [u32; N]) -> Self {
        Self {
            low,
            high,
            field: core::marker::PhantomData,
        }
    }

    /// The product of the two representatives.
    #[inline(always)]
    pub fn product(a: &Mont<P, N>, b: &Mont<P, N>) -> Self {
        let (low, high) = Native::mul_wide(a.limbs(), b.limbs());
        Self::new(low, high)
    }

    /// The square of the representative.
    #[inline(always)]
    pub fn square(a: &Mont<P, N>) -> Self {
        let (low, high) = Native::sqr_wide(a.limbs());
        Self::new(low, high)
    }

    /// self + o, which must be below R^2.
    #[inline(always)]
    pub fn add(&self, o: &Self) -> Self {
        let (low, carry) = Native::add_carry(&self.low, &o.low, 0);
        let (high, _) = Native::add_carry(&self.high, &o.high, carry);
        Self::new(low, high)
    }

    /// self - o for o <= self.
    #[inline(always)]
    pub fn sub(&self, o: &Self) -> Self {
        self.sub_borrow(o).0
    }

    /// self - o, plus pR if that is negative, for operands that differ by at most pR.
    #[inline(always)]
    pub fn sub_mod(&self, o: &Self) -> Self {
        let (difference, borrow) = self.sub_borrow(o);
        let high = Native::add(&difference.high, &Native::masked(&P::MODULUS, borrow));
        Self::new(difference.low, high)
    }

    #[inline(always)]
    fn sub_borrow(&self, o: &Self) -> (Self, u32) {
        let (low, borrow) = Native::sub_with_borrow(&self.low, &o.low, 0);
        let (high, borrow) = Native::sub_with_borrow(&self.high, &o.high, borrow);
        (Self::new(low, high), borrow)
    }

    /// self / R mod p: below self/R + p, as a representative that may exceed the field's bound.
    #[inline(always)]
    pub fn reduce(&self) -> Mont<P, N> {
        Mont::from_limbs(Native::mont_reduce::<P>(&self.low, &self.high))
    }
}
