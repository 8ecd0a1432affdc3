//! What curve formulas and kernels ask of a field, and who does the multiplications.

use core::fmt::Debug;

use crate::backend::{Backend, Native};
use crate::montgomery::Mont;
use crate::params::FieldParams;

/// A field as curve formulas and kernels see it: Fp, Fp2, Fr. Ranges are those of the
/// implementing type; all operations are closed over them.
pub trait FieldOps: bytemuck::Pod + PartialEq + Debug + Send + Sync {
    /// 0, all limbs zero.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// self + o.
    fn add(&self, o: &Self) -> Self;
    /// self - o.
    fn sub(&self, o: &Self) -> Self;
    /// -self.
    fn neg(&self) -> Self;
    /// 2 self.
    fn double(&self) -> Self;
    /// self * o.
    fn mul(&self, o: &Self) -> Self;
    /// self * o with fewer multiplications for more additions and registers.
    #[inline(always)]
    fn mul_karatsuba(&self, o: &Self) -> Self {
        self.mul(o)
    }
    /// self^2.
    fn sqr(&self) -> Self;
    /// self * b - c * d, with one reduction where the field can.
    fn mul_sub_mul(&self, b: &Self, c: &Self, d: &Self) -> Self;
    /// 1/self; 0 for 0. Canonical.
    fn invert(&self) -> Self;
    /// The residue is 0.
    fn is_zero(&self) -> bool;
    /// All limbs are 0.
    fn is_raw_zero(&self) -> bool;
    /// The canonical representative.
    fn canonical(&self) -> Self;
    /// Limb-wise read.
    ///
    /// # Safety
    /// `p` is valid for reads and aligned for `Self`.
    unsafe fn load(p: *const Self) -> Self;
    /// Limb-wise write.
    ///
    /// # Safety
    /// `p` is valid for writes and aligned for `Self`.
    unsafe fn store(&self, p: *mut Self);
}

/// Who multiplies: one thread for itself ([`PerThread`]), or the lanes of a warp together.
///
/// A cooperating multiplier may require that all lanes of its group make the same calls; the
/// point formulas then need operands for which no lane leaves early.
pub trait Multiplier<F: FieldOps> {
    /// a * b.
    fn mul(&self, a: &F, b: &F) -> F;
    /// a^2.
    fn sqr(&self, a: &F) -> F;
    /// a * b - c * d.
    #[inline(always)]
    fn mul_sub_mul(&self, a: &F, b: &F, c: &F, d: &F) -> F {
        let cd = self.mul(c, d);
        self.mul(a, b).sub(&cd)
    }
}

/// Each thread multiplies for itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct PerThread;

impl<F: FieldOps> Multiplier<F> for PerThread {
    #[inline(always)]
    fn mul(&self, a: &F, b: &F) -> F {
        a.mul(b)
    }
    #[inline(always)]
    fn sqr(&self, a: &F) -> F {
        a.sqr()
    }
    #[inline(always)]
    fn mul_sub_mul(&self, a: &F, b: &F, c: &F, d: &F) -> F {
        a.mul_sub_mul(b, c, d)
    }
}

/// Each thread multiplies for itself, with the fewest multiplications and the most registers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Karatsuba;

impl<F: FieldOps> Multiplier<F> for Karatsuba {
    #[inline(always)]
    fn mul(&self, a: &F, b: &F) -> F {
        a.mul_karatsuba(b)
    }
    #[inline(always)]
    fn sqr(&self, a: &F) -> F {
        a.sqr()
    }
}

/// As [`Karatsuba`], but with one copy of the code in a kernel, which is called: for formulas over
/// extension fields, whose inlined multiplications outgrow the instruction cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct Called;

/// Operands and result by value: the C ABI passes them in registers.
#[inline(never)]
#[allow(
    improper_ctypes_definitions,
    reason = "both sides are this crate's Rust code"
)]
extern "C" fn called_mul<F: FieldOps>(a: F, b: F) -> F {
    a.mul_karatsuba(&b)
}

/// See [`called_mul`].
#[inline(never)]
#[allow(
    improper_ctypes_definitions,
    reason = "both sides are this crate's Rust code"
)]
extern "C" fn called_sqr<F: FieldOps>(a: F) -> F {
    a.sqr()
}

impl<F: FieldOps> Multiplier<F> for Called {
    #[inline(always)]
    fn mul(&self, a: &F, b: &F) -> F {
        called_mul(*a, *b)
    }
    #[inline(always)]
    fn sqr(&self, a: &F) -> F {
        called_sqr(*a)
    }
}

/// Inversion by division steps, implemented once per limb count.
pub trait DivisionSteps {
    /// 1/self; 0 for 0. Canonical.
    fn invert_by_division_steps(&self) -> Self;
}

impl<P: FieldParams<N>, const N: usize> FieldOps for Mont<P, N>
where
    Native: Backend<N>,
    Self: DivisionSteps,
{
    const ZERO: Self = Self::ZERO;
    const ONE: Self = Self::ONE;
    #[inline(always)]
    fn add(&self, o: &Self) -> Self {
        self.add(o)
    }
    #[inline(always)]
    fn sub(&self, o: &Self) -> Self {
        self.sub(o)
    }
    #[inline(always)]
    fn neg(&self) -> Self {
        self.neg()
    }
    #[inline(always)]
    fn double(&self) -> Self {
        self.double()
    }
    #[inline(always)]
    fn mul(&self, o: &Self) -> Self {
        self.mul(o)
    }
    #[inline(always)]
    fn mul_karatsuba(&self, o: &Self) -> Self {
        self.mul_karatsuba(o)
    }
    #[inline(always)]
    fn sqr(&self) -> Self {
        self.sqr()
    }
    #[inline(always)]
    fn mul_sub_mul(&self, b: &Self, c: &Self, d: &Self) -> Self {
        self.mul_sub_mul(b, c, d)
    }
    #[inline(always)]
    fn invert(&self) -> Self {
        self.invert()
    }
    #[inline(always)]
    fn is_zero(&self) -> bool {
        self.is_zero()
    }
    #[inline(always)]
    fn is_raw_zero(&self) -> bool {
        self.is_raw_zero()
    }
    #[inline(always)]
    fn canonical(&self) -> Self {
        self.canonical()
    }
    #[inline(always)]
    unsafe fn load(p: *const Self) -> Self {
        // SAFETY: passed on from the caller.
        unsafe { Self::load(p) }
    }
    #[inline(always)]
    unsafe fn store(&self, p: *mut Self) {
        // SAFETY: passed on from the caller.
        unsafe { self.store(p) }
    }
}
