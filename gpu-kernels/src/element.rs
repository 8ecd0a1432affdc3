//! Types that kernels move between memory and registers.
//!
//! Elements are read and written limb by limb in 16-byte vectors: a copy through memory of a large
//! struct would become a loop over bytes, and a limb array that is indexed at run time would go to
//! local memory.

use cuzk_field::fixed::Fixed;
use cuzk_field::fp2::Quadratic;
use cuzk_field::montgomery::Mont;
use cuzk_field::params::FieldParams;
use cuzk_field::{Affine, Curve, Xyzz};

/// Where an element is read from: a place in memory with byte offsets relative to it.
pub trait Source: Copy {
    /// 16 bytes at `offset`.
    fn word_16(self, offset: u32) -> [u32; 4];
    /// 8 bytes at `offset`.
    fn word_8(self, offset: u32) -> [u32; 2];
    /// 4 bytes at `offset`.
    fn word_4(self, offset: u32) -> u32;
    /// 2 bytes at `offset`.
    fn word_2(self, offset: u32) -> u16;
    /// The byte at `offset`.
    fn word_1(self, offset: u32) -> u8;
}

/// Where an element is written to.
pub trait Sink: Copy {
    /// 16 bytes to `offset`.
    fn put_16(self, offset: u32, value: [u32; 4]);
    /// 8 bytes to `offset`.
    fn put_8(self, offset: u32, value: [u32; 2]);
    /// 4 bytes to `offset`.
    fn put_4(self, offset: u32, value: u32);
    /// 2 bytes to `offset`.
    fn put_2(self, offset: u32, value: u16);
    /// A byte to `offset`.
    fn put_1(self, offset: u32, value: u8);
}

/// A value of fixed size and layout that lies in device memory as it lies in the host's.
pub trait Element: Copy + 'static {
    /// Size in bytes; arrays have no padding between elements.
    const BYTES: u32;
    /// Reads the element that starts at `offset` of `source`.
    fn read<S: Source>(source: S, offset: u32) -> Self;
    /// Writes the element to `offset` of `sink`.
    fn write<S: Sink>(self, sink: S, offset: u32);
}

impl Element for u8 {
    const BYTES: u32 = 1;
    #[inline(always)]
    fn read<S: Source>(source: S, offset: u32) -> Self {
        source.word_1(offset)
    }
    #[inline(always)]
    fn write<S: Sink>(self, sink: S, offset: u32) {
        sink.put_1(offset, self)
    }
}

impl Element for u16 {
    const BYTES: u32 = 2;
    #[inline(always)]
    fn read<S: Source>(source: S, offset: u32) -> Self {
        source.word_2(offset)
    }
    #[inline(always)]
    fn write<S: Sink>(self, sink: S, offset: u32) {
        sink.put_2(offset, self)
    }
}

impl Element for u32 {
    const BYTES: u32 = 4;
    #[inline(always)]
    fn read<S: Source>(source: S, offset: u32) -> Self {
        source.word_4(offset)
    }
    #[inline(always)]
    fn write<S: Sink>(self, sink: S, offset: u32) {
        sink.put_4(offset, self)
    }
}

impl Element for u64 {
    const BYTES: u32 = 8;
    #[inline(always)]
    fn read<S: Source>(source: S, offset: u32) -> Self {
        let [low, high] = source.word_8(offset);
        (high as u64) << 32 | low as u64
    }
    #[inline(always)]
    fn write<S: Sink>(self, sink: S, offset: u32) {
        sink.put_8(offset, [self as u32, (self >> 32) as u32])
    }
}

impl Element for [u32; 2] {
    const BYTES: u32 = 8;
    #[inline(always)]
    fn read<S: Source>(source: S, offset: u32) -> Self {
        source.word_8(offset)
    }
    #[inline(always)]
    fn write<S: Sink>(self, sink: S, offset: u32) {
        sink.put_8(offset, self)
    }
}

impl Element for [u32; 4] {
    const BYTES: u32 = 16;
    #[inline(always)]
    fn read<S: Source>(source: S, offset: u32) -> Self {
        source.word_16(offset)
    }
    #[inline(always)]
    fn write<S: Sink>(self, sink: S, offset: u32) {
        sink.put_16(offset, self)
    }
}

/// Eight 32-bit limbs from two 16-byte words.
#[inline(always)]
pub fn read_limbs_8<S: Source>(source: S, offset: u32) -> [u32; 8] {
    let a = source.word_16(offset);
    let b = source.word_16(offset + 16);
    [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]]
}

/// Eight 32-bit limbs to two 16-byte words.
#[inline(always)]
pub fn write_limbs_8<S: Sink>(limbs: &[u32; 8], sink: S, offset: u32) {
    let l = limbs;
    sink.put_16(offset, [l[0], l[1], l[2], l[3]]);
    sink.put_16(offset + 16, [l[4], l[5], l[6], l[7]]);
}

/// Twelve 32-bit limbs from three 16-byte words.
#[inline(always)]
pub fn read_limbs_12<S: Source>(source: S, offset: u32) -> [u32; 12] {
    let a = source.word_16(offset);
    let b = source.word_16(offset + 16);
    let c = source.word_16(offset + 32);
    [
        a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3], c[0], c[1], c[2], c[3],
    ]
}

/// Twelve 32-bit limbs to three 16-byte words.
#[inline(always)]
pub fn write_limbs_12<S: Sink>(limbs: &[u32; 12], sink: S, offset: u32) {
    let l = limbs;
    sink.put_16(offset, [l[0], l[1], l[2], l[3]]);
    sink.put_16(offset + 16, [l[4], l[5], l[6], l[7]]);
    sink.put_16(offset + 32, [l[8], l[9], l[10], l[11]]);
}

impl<P: FieldParams<8>> Element for Mont<P, 8> {
    const BYTES: u32 = 32;
    #[inline(always)]
    fn read<S: Source>(source: S, offset: u32) -> Self {
        Self::from_limbs(read_limbs_8(source, offset))
    }
    #[inline(always)]
    fn write<S: Sink>(self, sink: S, offset: u32) {
        write_limbs_8(self.limbs(), sink, offset)
    }
}

impl<P: FieldParams<8>> Element for Fixed<P, 8> {
    const BYTES: u32 = 64;
    #[inline(always)]
    fn read<S: Source>(source: S, offset: u32) -> Self {
        Self::from_parts(
            read_limbs_8(source, offset),
            read_limbs_8(source, offset + 32),
        )
    }
    #[inline(always)]
    fn write<S: Sink>(self, sink: S, offset: u32) {
        write_limbs_8(self.value(), sink, offset);
        write_limbs_8(self.quotient(), sink, offset + 32);
    }
}

impl<P: FieldParams<12>> Element for Mont<P, 12> {
    const BYTES: u32 = 48;
    #[inline(always)]
    fn read<S: Source>(source: S, offset: u32) -> Self {
        Self::from_limbs(read_limbs_12(source, offset))
    }
    #[inline(always)]
    fn write<S: Sink>(self, sink: S, offset: u32) {
        write_limbs_12(self.limbs(), sink, offset)
    }
}

impl<P: FieldParams<N>, const N: usize> Element for Quadratic<P, N>
where
    Mont<P, N>: Element,
{
    const BYTES: u32 = 2 * <Mont<P, N> as Element>::BYTES;
    #[inline(always)]
    fn read<S: Source>(source: S, offset: u32) -> Self {
        let step = <Mont<P, N> as Element>::BYTES;
        Self::new(
            Mont::read(source, offset),
            Mont::read(source, offset + step),
        )
    }
    #[inline(always)]
    fn write<S: Sink>(self, sink: S, offset: u32) {
        let step = <Mont<P, N> as Element>::BYTES;
        Element::write(self.c0, sink, offset);
        Element::write(self.c1, sink, offset + step);
    }
}

impl<C: Curve<Base: Element>> Element for Affine<C> {
    const BYTES: u32 = 2 * <C::Base as Element>::BYTES;
    #[inline(always)]
    fn read<S: Source>(source: S, offset: u32) -> Self {
        let step = <C::Base as Element>::BYTES;
        Self {
            x: C::Base::read(source, offset),
            y: C::Base::read(source, offset + step),
        }
    }
    #[inline(always)]
    fn write<S: Sink>(self, sink: S, offset: u32) {
        let step = <C::Base as Element>::BYTES;
        Element::write(self.x, sink, offset);
        Element::write(self.y, sink, offset + step);
    }
}

impl<C: Curve<Base: Element>> Element for Xyzz<C> {
    const BYTES: u32 = 4 * <C::Base as Element>::BYTES;
    #[inline(always)]
    fn read<S: Source>(source: S, offset: u32) -> Self {
        let step = <C::Base as Element>::BYTES;
        Self {
            x: C::Base::read(source, offset),
            y: C::Base::read(source, offset + step),
            zz: C::Base::read(source, offset + 2 * step),
            zzz: C::Base::read(source, offset + 3 * step),
        }
    }
    #[inline(always)]
    fn write<S: Sink>(self, sink: S, offset: u32) {
        let step = <C::Base as Element>::BYTES;
        Element::write(self.x, sink, offset);
        Element::write(self.y, sink, offset + step);
        Element::write(self.zz, sink, offset + 2 * step);
        Element::write(self.zzz, sink, offset + 3 * step);
    }
}

/// Implements [`Element`] for a `repr(C)` struct whose fields are elements without padding.
#[macro_export]
macro_rules! element_struct {
    ($type:ty { $($field:ident: $kind:ty),+ $(,)? }) => {
        impl $crate::Element for $type {
            const BYTES: u32 = 0 $( + <$kind as $crate::Element>::BYTES )+;
            #[inline(always)]
            fn read<S: $crate::Source>(source: S, offset: u32) -> Self {
                let mut at = offset;
                $(
                    let $field = <$kind as $crate::Element>::read(source, at);
                    at += <$kind as $crate::Element>::BYTES;
                )+
                let _ = at;
                Self { $($field),+ }
            }
            #[inline(always)]
            fn write<S: $crate::Sink>(self, sink: S, offset: u32) {
                let mut at = offset;
                $(
                    <$kind as $crate::Element>::write(self.$field, sink, at);
                    at += <$kind as $crate::Element>::BYTES;
                )+
                let _ = at;
            }
        }
    };
}
