//! Views of blstrs' values as ours and back, without a copy.
//!
//! Both sides are the same integers in Montgomery form with the same R, least significant limb
//! first, and the affine identity is (0, 0) on both. blst wants canonical values: cast back only
//! what is in [0, p).

use core::mem::{align_of, size_of};

use crate::{Fr, G1Affine, G2Affine};

/// A type of ours with a bit-identical counterpart in blstrs.
pub trait Counterpart: bytemuck::Pod {
    /// The counterpart.
    type Blst: Copy;
}

impl Counterpart for Fr {
    type Blst = blstrs::Scalar;
}
impl Counterpart for G1Affine {
    type Blst = blstrs::G1Affine;
}
impl Counterpart for G2Affine {
    type Blst = blstrs::G2Affine;
}

struct Layout<T: Counterpart>(core::marker::PhantomData<T>);
impl<T: Counterpart> Layout<T> {
    const SAME: () =
        assert!(size_of::<T>() == size_of::<T::Blst>() && align_of::<T>() == align_of::<T::Blst>());
}

/// blstrs' values as ours.
pub fn from_blst<T: Counterpart>(values: &[T::Blst]) -> &[T] {
    const { Layout::<T>::SAME };
    // SAFETY: size and alignment agree, blst's types are plain limbs without padding, and every
    // bit pattern is a valid `T`.
    unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// Our values as blstrs'; they must be canonical for blst to compute with them.
pub fn to_blst<T: Counterpart>(values: &[T]) -> &[T::Blst] {
    const { Layout::<T>::SAME };
    // SAFETY: size and alignment agree, and blst's types are plain limbs: any bit pattern is
    // initialised memory of that type.
    unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// blstrs' values as ours, for writing in place; leave only canonical ones.
pub fn from_blst_mut<T: Counterpart>(values: &mut [T::Blst]) -> &mut [T] {
    const { Layout::<T>::SAME };
    // SAFETY: as in `from_blst` and `to_blst`; the borrow is exclusive.
    unsafe { core::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) }
}
