//! Multiplication by a fixed operand (Shoup's trick): twiddle factors.
//!
//! For a factor w, keep also q_w = ⌊wR/p⌋. Then wx - ⌊q_w x / R⌋ p is wx mod p up to one p, with
//! only the low halves of two products and the high half of one. On eight limbs that is 86 wide and 14 low
//! multiplications for BLS12-381's r, against 112 wide ones of a Montgomery multiplication.
//!
//! V. Shoup's NTL; Harvey, "Faster arithmetic for number-theoretic transforms", 2014. The high half
//! is computed without the columns below N - 2, which lowers the quotient by at most one when its
//! fraction is below 2^-29.

use crate::backend::{FixedBackend, Native};
use crate::montgomery::Mont;
use crate::params::{FieldParams, negated_inverse_wide};

/// A factor w < p with its quotient ⌊wR/p⌋. Not in Montgomery form: the product with an element in
/// Montgomery form is in Montgomery form.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(target_arch = "nvptx64", repr(C, align(16)))]
#[cfg_attr(not(target_arch = "nvptx64"), repr(C, align(8)))]
pub struct Fixed<P: FieldParams<N>, const N: usize> {
    /// w as an integer.
    value: [u32; N],
    /// ⌊wR/p⌋.
    quotient: [u32; N],
    field: core::marker::PhantomData<P>,
}

// SAFETY: two limb arrays without padding (`Mont` checks N).
unsafe impl<P: FieldParams<N>, const N: usize> bytemuck::Zeroable for Fixed<P, N> {}
// SAFETY: as above.
unsafe impl<P: FieldParams<N>, const N: usize> bytemuck::Pod for Fixed<P, N> {}

struct Inverse<P, const N: usize>(core::marker::PhantomData<P>);
impl<P: FieldParams<N>, const N: usize> Inverse<P, N> {
    /// -p^-1 mod R.
    const NEGATED: [u32; N] = negated_inverse_wide(&P::MODULUS);
}

impl<P: FieldParams<N>, const N: usize> Fixed<P, N>
where
    Native: FixedBackend<N>,
{
    /// Prepares a factor. With m = wR mod p, its Montgomery form, wR - m is a multiple of p, so that
    /// ⌊wR/p⌋ = (wR - m)/p = -m/p mod R.
    #[inline(always)]
    pub fn new(w: &Mont<P, N>) -> Self {
        let m = w.canonical();
        Self::from_parts(
            m.to_integer(),
            Native::mul_low(m.limbs(), &Inverse::<P, N>::NEGATED),
        )
    }

    /// From limbs that [`value`](Self::value) and [`quotient`](Self::quotient) gave.
    #[inline(always)]
    pub const fn from_parts(value: [u32; N], quotient: [u32; N]) -> Self {
        Self {
            value,
            quotient,
            field: core::marker::PhantomData,
        }
    }

    /// w as an integer below p.
    #[inline(always)]
    pub const fn value(&self) -> &[u32; N] {
        &self.value
    }

    /// ⌊wR/p⌋.
    #[inline(always)]
    pub const fn quotient(&self) -> &[u32; N] {
        &self.quotient
    }

    /// wx in [0, 2p), for x below 2p.
    #[inline(always)]
    pub fn mul_lazy(&self, x: &Mont<P, N>) -> Mont<P, N> {
        Mont::from_limbs(Native::mul_fixed::<P>(
            &self.value,
            &self.quotient,
            x.limbs(),
        ))
    }

    /// wx in the field's range, for x below 2p.
    #[inline(always)]
    pub fn mul(&self, x: &Mont<P, N>) -> Mont<P, N> {
        let product = self.mul_lazy(x);
        if P::LAZY {
            product
        } else {
            product.canonical()
        }
    }
}
