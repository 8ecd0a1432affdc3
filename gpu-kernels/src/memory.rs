//! Typed views of device memory: global buffers and the block's shared memory.
//!
//! The accessors are safe functions although the device does not check bounds: launching is where the
//! promise is made that buffers are long enough, and the emulator checks it for every kernel in tests.
use core::marker::PhantomData;

use crate::{AtomicOp, Cache, Element, Gpu, Sink, Source};

/// An array of `T` in global memory that the kernel only reads. The value is the device address.
#[repr(transparent)]
pub struct Global<T> {
    address: u64,
    element: PhantomData<*const T>,
}

/// An array of `T` in global memory that the kernel reads and writes. The value is the device address.
#[repr(transparent)]
pub struct GlobalMut<T> {
    address: u64,
    element: PhantomData<*mut T>,
}

macro_rules! common {
    ($name:ident) => {
        impl<T> Clone for $name<T> {
            #[inline(always)]
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $name<T> {}
        // SAFETY: the value is a number; accesses go through a `Gpu`, which each thread has its own of.
        unsafe impl<T> Send for $name<T> {}
        // SAFETY: as for `Send`.
        unsafe impl<T> Sync for $name<T> {}

        impl<T> core::fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{:#x}", self.address)
            }
        }

        impl<T: Element> $name<T> {
            /// The array that starts at a device address.
            #[inline(always)]
            pub const fn at_address(address: u64) -> Self {
                Self {
                    address,
                    element: PhantomData,
                }
            }
            /// The device address of element 0.
            #[inline(always)]
            pub const fn address(self) -> u64 {
                self.address
            }
            /// The array that starts at element `index` of this one.
            #[inline(always)]
            pub fn offset(self, index: usize) -> Self {
                Self::at_address(
                    self.address
                        .wrapping_add((index as u64).wrapping_mul(T::BYTES as u64)),
                )
            }
            /// The same bytes as an array of another type.
            #[inline(always)]
            pub const fn cast<U: Element>(self) -> $name<U> {
                $name::at_address(self.address)
            }
            /// Element `index`, default caching.
            #[inline(always)]
            pub fn load<G: Gpu>(self, gpu: G, index: usize) -> T {
                self.load_with(gpu, index, Cache::Default)
            }
            /// Element `index` with a cache policy.
            #[inline(always)]
            pub fn load_with<G: Gpu>(self, gpu: G, index: usize, cache: Cache) -> T {
                T::read(
                    GlobalPlace {
                        gpu,
                        address: self.offset(index).address,
                        cache,
                    },
                    0,
                )
            }
            /// Brings the first line of element `index` to L2.
            #[inline(always)]
            pub fn prefetch<G: Gpu>(self, gpu: G, index: usize) {
                gpu.global_prefetch(self.offset(index).address)
            }
            /// Element `index` of an array that is kept as planes of `len` 16-byte words: word k of
            /// element i lies at word `k·len + i`. Neighbouring threads then touch neighbouring words.
            #[inline(always)]
            pub fn load_plane<G: Gpu>(self, gpu: G, len: usize, index: usize) -> T {
                T::read(GlobalPlanePlace::new(gpu, self.address, len, index), 0)
            }
        }
    };
}
common!(Global);
common!(GlobalMut);

impl<T: Element> Global<T> {
    /// Element `index` through the read-only path: nobody writes it during this launch.
    #[inline(always)]
    pub fn load_read_only<G: Gpu>(self, gpu: G, index: usize) -> T {
        self.load_with(gpu, index, Cache::ReadOnly)
    }
    /// [`load_plane`](Self::load_plane) through the read-only path.
    #[inline(always)]
    pub fn load_plane_read_only<G: Gpu>(self, gpu: G, len: usize, index: usize) -> T {
        let mut place = GlobalPlanePlace::new(gpu, self.address, len, index);
        place.cache = Cache::ReadOnly;
        T::read(place, 0)
    }
}

impl<T: Element> GlobalMut<T> {
    /// The same array for reading only.
    #[inline(always)]
    pub const fn read(self) -> Global<T> {
        Global::at_address(self.address)
    }
    /// Writes element `index`, default caching.
    #[inline(always)]
    pub fn store<G: Gpu>(self, gpu: G, index: usize, value: T) {
        self.store_with(gpu, index, value, Cache::Default)
    }
    /// Writes element `index` with a cache policy.
    #[inline(always)]
    pub fn store_with<G: Gpu>(self, gpu: G, index: usize, value: T, cache: Cache) {
        value.write(
            GlobalPlace {
                gpu,
                address: self.offset(index).address,
                cache,
            },
            0,
        )
    }
    /// Writes element `index` of an array kept as planes; see [`load_plane`](Self::load_plane).
    #[inline(always)]
    pub fn store_plane<G: Gpu>(self, gpu: G, len: usize, index: usize, value: T) {
        value.write(GlobalPlanePlace::new(gpu, self.address, len, index), 0)
    }
}

impl GlobalMut<u32> {
    /// Atomic read-modify-write of element `index`; returns the old value.
    #[inline(always)]
    pub fn atomic<G: Gpu>(self, gpu: G, op: AtomicOp, index: usize, value: u32) -> u32 {
        gpu.global_atomic_4(op, self.offset(index).address, value)
    }
    /// Atomic wrapping addition to element `index`; returns the old value.
    #[inline(always)]
    pub fn atomic_add<G: Gpu>(self, gpu: G, index: usize, value: u32) -> u32 {
        self.atomic(gpu, AtomicOp::Add, index, value)
    }
    /// Stores `value` if element `index` is `expected`; returns the old value.
    #[inline(always)]
    pub fn compare_swap<G: Gpu>(self, gpu: G, index: usize, expected: u32, value: u32) -> u32 {
        gpu.global_compare_swap_4(self.offset(index).address, expected, value)
    }
}

impl GlobalMut<u64> {
    /// Atomic read-modify-write of element `index`; returns the old value.
    #[inline(always)]
    pub fn atomic<G: Gpu>(self, gpu: G, op: AtomicOp, index: usize, value: u64) -> u64 {
        gpu.global_atomic_8(op, self.offset(index).address, value)
    }
}

/// An array of `T` in the block's shared memory, elements one after the other.
pub struct Shared<T> {
    address: u32,
    element: PhantomData<T>,
}

/// An array of `T` in the block's shared memory, kept as planes of 16-byte words: word k of element i
/// lies at word `k·len + i`. Neighbouring threads then touch neighbouring 16-byte words, which is free
/// of bank conflicts.
pub struct Planes<T> {
    address: u32,
    len: u32,
    element: PhantomData<T>,
}

impl<T> Clone for Shared<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<T> {}
impl<T> Clone for Planes<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Planes<T> {}

impl<T: Element> Shared<T> {
    /// The array that starts `offset` bytes into the block's shared memory. `offset` is a multiple of
    /// the element's alignment (16 for field elements).
    #[inline(always)]
    pub fn new<G: Gpu>(gpu: G, offset: u32) -> Self {
        Self {
            address: gpu.shared_base() + offset,
            element: PhantomData,
        }
    }
    /// Element `index`.
    #[inline(always)]
    pub fn load<G: Gpu>(self, gpu: G, index: u32) -> T {
        T::read(
            SharedPlace {
                gpu,
                address: self.address + index * T::BYTES,
            },
            0,
        )
    }
    /// Writes element `index`.
    #[inline(always)]
    pub fn store<G: Gpu>(self, gpu: G, index: u32, value: T) {
        value.write(
            SharedPlace {
                gpu,
                address: self.address + index * T::BYTES,
            },
            0,
        )
    }
}

impl Shared<u32> {
    /// Atomic read-modify-write of element `index`; returns the old value.
    #[inline(always)]
    pub fn atomic<G: Gpu>(self, gpu: G, op: AtomicOp, index: u32, value: u32) -> u32 {
        gpu.shared_atomic_4(op, self.address + index * 4, value)
    }
    /// Atomic wrapping addition to element `index`; returns the old value.
    #[inline(always)]
    pub fn atomic_add<G: Gpu>(self, gpu: G, index: u32, value: u32) -> u32 {
        self.atomic(gpu, AtomicOp::Add, index, value)
    }
    /// Stores `value` if element `index` is `expected`; returns the old value.
    #[inline(always)]
    pub fn compare_swap<G: Gpu>(self, gpu: G, index: u32, expected: u32, value: u32) -> u32 {
        gpu.shared_compare_swap_4(self.address + index * 4, expected, value)
    }
}

impl<T: Element> Planes<T> {
    /// The array of `len` elements that starts `offset` bytes into the block's shared memory; `offset`
    /// is a multiple of 16. It takes `len · T::BYTES` bytes.
    #[inline(always)]
    pub fn new<G: Gpu>(gpu: G, offset: u32, len: u32) -> Self {
        Self {
            address: gpu.shared_base() + offset,
            len,
            element: PhantomData,
        }
    }
    /// Element `index`.
    #[inline(always)]
    pub fn load<G: Gpu>(self, gpu: G, index: u32) -> T {
        T::read(
            PlanePlace {
                gpu,
                address: self.address + index * 16,
                len: self.len,
            },
            0,
        )
    }
    /// Writes element `index`.
    #[inline(always)]
    pub fn store<G: Gpu>(self, gpu: G, index: u32, value: T) {
        value.write(
            PlanePlace {
                gpu,
                address: self.address + index * 16,
                len: self.len,
            },
            0,
        )
    }
}

#[derive(Clone, Copy)]
struct GlobalPlace<G> {
    gpu: G,
    address: u64,
    cache: Cache,
}

#[derive(Clone, Copy)]
struct GlobalPlanePlace<G> {
    gpu: G,
    address: u64,
    len: u64,
    cache: Cache,
}

impl<G> GlobalPlanePlace<G> {
    #[inline(always)]
    fn new(gpu: G, base: u64, len: usize, index: usize) -> Self {
        Self {
            gpu,
            address: base + 16 * index as u64,
            len: len as u64,
            cache: Cache::Default,
        }
    }
}

#[derive(Clone, Copy)]
struct SharedPlace<G> {
    gpu: G,
    address: u32,
}

#[derive(Clone, Copy)]
struct PlanePlace<G> {
    gpu: G,
    address: u32,
    len: u32,
}

macro_rules! place {
    ($place:ident, |$self:ident, $offset:ident| $address:expr, $loads:tt, $stores:tt $(, $cache:ident)?) => {
        place!(@source $place, |$self, $offset| $address, $loads $(, $cache)?);
        place!(@sink $place, |$self, $offset| $address, $stores $(, $cache)?);
    };
    (@source $place:ident, |$self:ident, $offset:ident| $address:expr,
     ($l16:ident $l8:ident $l4:ident $l2:ident $l1:ident) $(, $cache:ident)?) => {
        impl<G: Gpu> Source for $place<G> {
            #[inline(always)]
            fn word_16($self, $offset: u32) -> [u32; 4] {
                $self.gpu.$l16($address $(, $self.$cache)?)
            }
            #[inline(always)]
            fn word_8($self, $offset: u32) -> [u32; 2] {
                $self.gpu.$l8($address $(, $self.$cache)?)
            }
            #[inline(always)]
            fn word_4($self, $offset: u32) -> u32 {
                $self.gpu.$l4($address $(, $self.$cache)?)
            }
            #[inline(always)]
            fn word_2($self, $offset: u32) -> u16 {
                $self.gpu.$l2($address $(, $self.$cache)?)
            }
            #[inline(always)]
            fn word_1($self, $offset: u32) -> u8 {
                $self.gpu.$l1($address $(, $self.$cache)?)
            }
        }
    };
    (@sink $place:ident, |$self:ident, $offset:ident| $address:expr,
     ($s16:ident $s8:ident $s4:ident $s2:ident $s1:ident) $(, $cache:ident)?) => {
        impl<G: Gpu> Sink for $place<G> {
            #[inline(always)]
            fn put_16($self, $offset: u32, value: [u32; 4]) {
                $self.gpu.$s16($address, value $(, $self.$cache)?)
            }
            #[inline(always)]
            fn put_8($self, $offset: u32, value: [u32; 2]) {
                $self.gpu.$s8($address, value $(, $self.$cache)?)
            }
            #[inline(always)]
            fn put_4($self, $offset: u32, value: u32) {
                $self.gpu.$s4($address, value $(, $self.$cache)?)
            }
            #[inline(always)]
            fn put_2($self, $offset: u32, value: u16) {
                $self.gpu.$s2($address, value $(, $self.$cache)?)
            }
            #[inline(always)]
            fn put_1($self, $offset: u32, value: u8) {
                $self.gpu.$s1($address, value $(, $self.$cache)?)
            }
        }
    };
}

place!(GlobalPlace, |self, offset| self.address + offset as u64,
    (global_load_16 global_load_8 global_load_4 global_load_2 global_load_1),
    (global_store_16 global_store_8 global_store_4 global_store_2 global_store_1), cache);
place!(SharedPlace, |self, offset| self.address + offset,
    (shared_load_16 shared_load_8 shared_load_4 shared_load_2 shared_load_1),
    (shared_store_16 shared_store_8 shared_store_4 shared_store_2 shared_store_1));
// Planes: the 16-byte word `offset / 16` lies that many planes away.
place!(GlobalPlanePlace, |self, offset| self.address + (offset & !15) as u64 * self.len + (offset & 15) as u64,
    (global_load_16 global_load_8 global_load_4 global_load_2 global_load_1),
    (global_store_16 global_store_8 global_store_4 global_store_2 global_store_1), cache);
place!(PlanePlace, |self, offset| self.address + (offset & !15) * self.len + (offset & 15),
    (shared_load_16 shared_load_8 shared_load_4 shared_load_2 shared_load_1),
    (shared_store_16 shared_store_8 shared_store_4 shared_store_2 shared_store_1));
