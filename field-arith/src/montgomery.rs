//! Prime field elements in Montgomery form, over any [`FieldParams`] and limb count.

use core::fmt;
use core::marker::PhantomData;

use crate::backend::{Backend, Native};
use crate::ops::DivisionSteps;
use crate::params::{FieldParams, TwoAdicParams};
use crate::wide::Wide;

/// The residue x, held as xR mod p in `N` little-endian 32-bit limbs.
///
/// Range: every operation takes and returns values in [0, [`BOUND`](FieldParams::BOUND)), that is
/// [0, 2p) for a lazy field and [0, p) otherwise, unless its documentation says otherwise.
/// [`canonical`](Self::canonical) brings a value into [0, p). `==` compares residues, not limbs.
///
/// In memory it is what blst calls `blst_fp` / `blst_fr`, provided that it is canonical.
#[derive(Clone, Copy)]
#[cfg_attr(target_arch = "nvptx64", repr(C, align(16)))]
#[cfg_attr(not(target_arch = "nvptx64"), repr(C, align(8)))]
pub struct Mont<P: FieldParams<N>, const N: usize> {
    limbs: [u32; N],
    field: PhantomData<P>,
}

// SAFETY: N is even, so the limbs fill the struct and leave no padding; all bit patterns are
// plain integers. An instance is `Copy` and holds no pointers.
unsafe impl<P: FieldParams<N>, const N: usize> bytemuck::Zeroable for Mont<P, N> {}
// SAFETY: as above. `Shape::OK` refuses limb counts that would leave padding.
unsafe impl<P: FieldParams<N>, const N: usize> bytemuck::Pod for Mont<P, N> {}

/// Compile-time check of a limb count.
struct Shape<const N: usize>;
impl<const N: usize> Shape<N> {
    const OK: () = assert!(N & 3 == 0 && N <= 16);
}

#[inline(always)]
fn select<const N: usize>(mask: u32, yes: &[u32; N], no: &[u32; N]) -> [u32; N] {
    if mask != 0 { *yes } else { *no }
}

impl<P: FieldParams<N>, const N: usize> Mont<P, N> {
    /// 0.
    pub const ZERO: Self = Self::from_limbs([0; N]);
    /// 1, i.e. R mod p.
    pub const ONE: Self = Self::from_limbs(P::R);
    /// p in plain limbs.
    pub const MODULUS: [u32; N] = P::MODULUS;

    /// The element whose Montgomery form is `limbs`; below [`FieldParams::BOUND`].
    #[inline(always)]
    pub const fn from_limbs(limbs: [u32; N]) -> Self {
        const { Shape::<N>::OK };
        Self {
            limbs,
            field: PhantomData,
        }
    }

    /// Limbs of the Montgomery form, not necessarily canonical.
    #[inline(always)]
    pub const fn limbs(&self) -> &[u32; N] {
        &self.limbs
    }
}

impl<P: FieldParams<N>, const N: usize> Mont<P, N>
where
    Native: Backend<N>,
{
    /// Limb-wise read: 16-byte accesses on the device, never a byte loop.
    ///
    /// # Safety
    /// `p` is valid for reads and aligned for `Self`.
    #[inline(always)]
    pub unsafe fn load(p: *const Self) -> Self {
        // SAFETY: passed on from the caller.
        Self::from_limbs(unsafe { Native::load(p.cast()) })
    }

    /// Limb-wise write: 16-byte accesses on the device, never a byte loop.
    ///
    /// # Safety
    /// `p` is valid for writes and aligned for `Self`.
    #[inline(always)]
    pub unsafe fn store(&self, p: *mut Self) {
        // SAFETY: passed on from the caller.
        unsafe { Native::store(&self.limbs, p.cast()) }
    }

    /// The same residue in [0, p), from any value below 2p.
    #[inline(always)]
    pub fn canonical(&self) -> Self {
        let (less, borrow) = Native::sub(&self.limbs, &P::MODULUS);
        Self::from_limbs(select(borrow, &self.limbs, &less))
    }

    /// From [0, 2 BOUND) to [0, BOUND) by one conditional subtraction.
    #[inline(always)]
    pub(crate) fn bounded(limbs: &[u32; N]) -> Self {
        let (less, borrow) = Native::sub(limbs, &P::BOUND);
        Self::from_limbs(select(borrow, limbs, &less))
    }

    /// self + o.
    #[inline(always)]
    pub fn add(&self, o: &Self) -> Self {
        Self::bounded(&Native::add(&self.limbs, &o.limbs))
    }

    /// self + o without reduction: the sum of the two representatives, which must be below R.
    #[inline(always)]
    pub fn add_unreduced(&self, o: &Self) -> Self {
        Self::from_limbs(Native::add(&self.limbs, &o.limbs))
    }

    /// self - o.
    #[inline(always)]
    pub fn sub(&self, o: &Self) -> Self {
        let (less, borrow) = Native::sub(&self.limbs, &o.limbs);
        let wrapped = Native::add(&less, &P::BOUND);
        Self::from_limbs(select(borrow, &wrapped, &less))
    }

    /// self - o + BOUND, a representative of the difference in (0, 2 BOUND), which must not exceed R:
    /// without a selection.
    #[inline(always)]
    pub fn sub_unreduced(&self, o: &Self) -> Self {
        let (less, _) = Native::sub(&self.limbs, &o.limbs);
        Self::from_limbs(Native::add(&less, &P::BOUND))
    }

    /// -self.
    #[inline(always)]
    pub fn neg(&self) -> Self {
        Self::ZERO.sub(self)
    }

    /// BOUND - self, a representative of -self in (0, BOUND] without a branch or a selection.
    #[inline(always)]
    pub fn neg_unreduced(&self) -> Self {
        Self::from_limbs(Native::sub(&P::BOUND, &self.limbs).0)
    }

    /// 2 self.
    #[inline(always)]
    pub fn double(&self) -> Self {
        self.add(self)
    }

    /// self * o.
    #[inline(always)]
    pub fn mul(&self, o: &Self) -> Self {
        let product = self.mul_lazy(o);
        if P::LAZY {
            product
        } else {
            product.canonical()
        }
    }

    /// self * o in [0, 2p). Not lazy fields: `self` in [0, p), `o` any value below R. Lazy fields:
    /// the product of the two representatives at most 4p^2, or 8p^2 if
    /// [`DOT2_CLOSED`](FieldParams::DOT2_CLOSED).
    #[inline(always)]
    pub fn mul_lazy(&self, o: &Self) -> Self {
        Self::from_limbs(Native::mont_mul::<P>(&self.limbs, &o.limbs))
    }

    /// self * o by Karatsuba's method where that takes fewer multiplications (twelve limbs: 252
    /// wide ones instead of 300), for more additions and more registers than [`mul`](Self::mul).
    #[inline(always)]
    pub fn mul_karatsuba(&self, o: &Self) -> Self {
        let product = Wide::product(self, o).reduce();
        if P::LAZY {
            product
        } else {
            product.canonical()
        }
    }

    /// self^2.
    #[inline(always)]
    pub fn sqr(&self) -> Self {
        let square = Self::from_limbs(Native::mont_sqr::<P>(&self.limbs));
        if P::LAZY { square } else { square.canonical() }
    }

    /// self * b + c * d with one reduction; `c` may be BOUND itself.
    #[inline(always)]
    pub fn mul_add_mul(&self, b: &Self, c: &Self, d: &Self) -> Self {
        let sum = Native::mont_dot2::<P>(&self.limbs, &b.limbs, &c.limbs, &d.limbs);
        if P::LAZY && P::DOT2_CLOSED {
            Self::from_limbs(sum)
        } else {
            // below 3p for lazy fields, 2p for the others
            Self::bounded(&sum)
        }
    }

    /// self * b - c * d with one reduction.
    #[inline(always)]
    pub fn mul_sub_mul(&self, b: &Self, c: &Self, d: &Self) -> Self {
        self.mul_add_mul(b, &c.neg_unreduced(), d)
    }

    /// The residue is 0.
    #[inline(always)]
    pub fn is_zero(&self) -> bool {
        Native::is_zero(&self.limbs) || (P::LAZY && Native::equal(&self.limbs, &P::MODULUS))
    }

    /// All limbs are 0: the representative is 0, not merely the residue.
    #[inline(always)]
    pub fn is_raw_zero(&self) -> bool {
        Native::is_zero(&self.limbs)
    }

    /// Leaves Montgomery form: the integer in [0, p).
    #[inline(always)]
    pub fn to_integer(&self) -> [u32; N] {
        Self::from_limbs(Native::mont_reduce::<P>(&self.limbs, &[0; N]))
            .canonical()
            .limbs
    }

    /// Enters Montgomery form; any integer below R, taken mod p.
    #[inline(always)]
    pub fn from_integer(n: &[u32; N]) -> Self {
        let x = Self::from_limbs(Native::mont_mul::<P>(&P::R2, n));
        if P::LAZY { x } else { x.canonical() }
    }

    /// The integer is below p.
    #[inline(always)]
    pub fn is_canonical_integer(n: &[u32; N]) -> bool {
        Native::sub(n, &P::MODULUS).1 != 0
    }

    /// From a small integer.
    #[inline(always)]
    pub fn from_u32(k: u32) -> Self {
        let mut n = [0; N];
        n[0] = k;
        Self::from_integer(&n)
    }

    /// 1/self in [0, p); 0 for 0. Constant time: about the cost of 60 multiplications a lane, so
    /// share one inversion among many elements (Montgomery's trick).
    #[inline(always)]
    pub fn invert(&self) -> Self
    where
        Self: DivisionSteps,
    {
        self.invert_by_division_steps()
    }

    /// self^e for a public exponent (variable time), most significant bit first.
    pub fn pow_vartime(&self, e: &[u32]) -> Self {
        let mut x = Self::ONE;
        for &word in e.iter().rev() {
            for bit in (0..32).rev() {
                x = x.sqr();
                if (word >> bit) & 1 == 1 {
                    x = x.mul(self);
                }
            }
        }
        x
    }
}

impl<P: TwoAdicParams<N>, const N: usize> Mont<P, N> {
    /// Generator of the multiplicative group.
    pub const GENERATOR: Self = Self::from_limbs(P::GENERATOR_MONT);
    /// Largest s with 2^s dividing p - 1.
    pub const TWO_ADICITY: u32 = P::TWO_ADICITY;
    /// Primitive 2^s-th root of unity: GENERATOR^((p-1)/2^s).
    pub const ROOT_OF_UNITY: Self = Self::from_limbs(P::ROOT_OF_UNITY);
}

impl<P: FieldParams<N>, const N: usize> PartialEq for Mont<P, N>
where
    Native: Backend<N>,
{
    #[inline(always)]
    fn eq(&self, o: &Self) -> bool {
        Native::equal(&self.canonical().limbs, &o.canonical().limbs)
    }
}

impl<P: FieldParams<N>, const N: usize> Eq for Mont<P, N> where Native: Backend<N> {}

impl<P: FieldParams<N>, const N: usize> fmt::Debug for Mont<P, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(0x", P::NAME)?;
        for limb in self.limbs.iter().rev() {
            write!(f, "{limb:08x}")?;
        }
        write!(f, " / R)")
    }
}
