//! The device interface that kernels are generic over.

/// How a global load or store treats the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Default policy (`ld.global`, `st.global`).
    Default,
    /// Read-only path (`ld.global.nc`): nobody writes the location during the launch.
    ReadOnly,
    /// Touched once (`ld.global.cs`, `st.global.cs`): evicted first.
    Streaming,
    /// Through L2, never from a stale L1 line (`ld.relaxed.gpu`, `st.relaxed.gpu`): for values that
    /// blocks hand to each other inside one launch. The emulator counts it as an atomic access.
    Relaxed,
}

/// An atomic read-modify-write on a 32-bit or 64-bit location. All are relaxed: order them with
/// [`Gpu::fence_device`] or [`Gpu::fence_block`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    /// Wrapping addition.
    Add,
    /// Unsigned minimum.
    Min,
    /// Unsigned maximum.
    Max,
    /// Bitwise or.
    Or,
    /// Bitwise and.
    And,
    /// Exchange.
    Exchange,
}

/// One GPU thread's view of the machine.
///
/// On the device the value is zero-sized apart from the address of the block's shared memory, and
/// every method is one or a few instructions. On the host it is a handle of the emulator, which
/// stops the launch at the first access that is out of bounds, unaligned, uninitialised or racy.
///
/// Kernels use the typed wrappers [`Global`](crate::Global), [`GlobalMut`](crate::GlobalMut),
/// [`Shared`](crate::Shared) and [`Planes`](crate::Planes); the untyped accessors at the end are
/// what those are made of.
pub trait Gpu: Copy {
    /// Index of the thread in its block.
    fn thread(self) -> u32;
    /// Threads in a block.
    fn threads(self) -> u32;
    /// Index of the block in the grid, first dimension.
    fn block(self) -> u32;
    /// Index of the block in the grid, second dimension.
    fn block_y(self) -> u32;
    /// Blocks in the grid, first dimension.
    fn blocks(self) -> u32;
    /// Blocks in the grid, second dimension.
    fn blocks_y(self) -> u32;

    /// Index of the thread in its warp.
    #[inline(always)]
    fn lane(self) -> u32 {
        self.thread() & 31
    }
    /// Index of the warp in its block.
    #[inline(always)]
    fn warp(self) -> u32 {
        self.thread() >> 5
    }
    /// Index of the thread among all threads of the grid's first dimension.
    #[inline(always)]
    fn index(self) -> usize {
        self.block() as usize * self.threads() as usize + self.thread() as usize
    }
    /// Threads in the grid's first dimension: the stride of a grid-stride loop.
    #[inline(always)]
    fn stride(self) -> usize {
        self.blocks() as usize * self.threads() as usize
    }

    /// Waits for every thread of the block; orders their shared and global accesses.
    fn barrier(self);
    /// Waits for every lane of the warp; orders their shared and global accesses.
    fn warp_barrier(self);
    /// Orders this thread's earlier accesses before its later ones, as seen by its block.
    fn fence_block(self);
    /// Orders this thread's earlier accesses before its later ones, as seen by the whole device.
    fn fence_device(self);

    /// `value` of lane `source & 31`. All 32 lanes must call it together, as for every warp operation.
    fn shuffle(self, value: u32, source: u32) -> u32;
    /// `value` of lane `lane ^ mask`.
    fn shuffle_xor(self, value: u32, mask: u32) -> u32;
    /// `value` of lane `lane - delta`; the lane's own where that would be negative.
    fn shuffle_up(self, value: u32, delta: u32) -> u32;
    /// `value` of lane `lane + delta`; the lane's own where that would exceed 31.
    fn shuffle_down(self, value: u32, delta: u32) -> u32;
    /// Bit i of the result is lane i's `predicate`.
    fn ballot(self, predicate: bool) -> u32;
    /// Bit i of the result says whether lane i passed the same `value`.
    fn match_any(self, value: u32) -> u32;
    /// Wrapping sum of the 32 lanes' values.
    fn warp_sum(self, value: u32) -> u32;

    /// Byte address of the block's shared memory in its own address space.
    fn shared_base(self) -> u32;

    /// Reads 16 bytes of global memory; `address` is a multiple of 16.
    fn global_load_16(self, address: u64, cache: Cache) -> [u32; 4];
    /// Reads 8 bytes of global memory; `address` is a multiple of 8.
    fn global_load_8(self, address: u64, cache: Cache) -> [u32; 2];
    /// Reads 4 bytes of global memory; `address` is a multiple of 4.
    fn global_load_4(self, address: u64, cache: Cache) -> u32;
    /// Reads 2 bytes of global memory; `address` is a multiple of 2.
    fn global_load_2(self, address: u64, cache: Cache) -> u16;
    /// Reads a byte of global memory.
    fn global_load_1(self, address: u64, cache: Cache) -> u8;
    /// Writes 16 bytes of global memory; `address` is a multiple of 16.
    fn global_store_16(self, address: u64, value: [u32; 4], cache: Cache);
    /// Writes 8 bytes of global memory; `address` is a multiple of 8.
    fn global_store_8(self, address: u64, value: [u32; 2], cache: Cache);
    /// Writes 4 bytes of global memory; `address` is a multiple of 4.
    fn global_store_4(self, address: u64, value: u32, cache: Cache);
    /// Writes 2 bytes of global memory; `address` is a multiple of 2.
    fn global_store_2(self, address: u64, value: u16, cache: Cache);
    /// Writes a byte of global memory.
    fn global_store_1(self, address: u64, value: u8, cache: Cache);
    /// Brings the line that holds `address` to L2. Any address is allowed.
    fn global_prefetch(self, address: u64);
    /// Atomic on a u32 of global memory; returns the old value.
    fn global_atomic_4(self, op: AtomicOp, address: u64, value: u32) -> u32;
    /// Atomic on a u64 of global memory; returns the old value.
    fn global_atomic_8(self, op: AtomicOp, address: u64, value: u64) -> u64;
    /// Compare and swap on a u32 of global memory; returns the old value.
    fn global_compare_swap_4(self, address: u64, expected: u32, value: u32) -> u32;

    /// Reads 16 bytes of shared memory; `address` is a multiple of 16.
    fn shared_load_16(self, address: u32) -> [u32; 4];
    /// Reads 8 bytes of shared memory; `address` is a multiple of 8.
    fn shared_load_8(self, address: u32) -> [u32; 2];
    /// Reads 4 bytes of shared memory; `address` is a multiple of 4.
    fn shared_load_4(self, address: u32) -> u32;
    /// Reads 2 bytes of shared memory; `address` is a multiple of 2.
    fn shared_load_2(self, address: u32) -> u16;
    /// Reads a byte of shared memory.
    fn shared_load_1(self, address: u32) -> u8;
    /// Writes 16 bytes of shared memory; `address` is a multiple of 16.
    fn shared_store_16(self, address: u32, value: [u32; 4]);
    /// Writes 8 bytes of shared memory; `address` is a multiple of 8.
    fn shared_store_8(self, address: u32, value: [u32; 2]);
    /// Writes 4 bytes of shared memory; `address` is a multiple of 4.
    fn shared_store_4(self, address: u32, value: u32);
    /// Writes 2 bytes of shared memory; `address` is a multiple of 2.
    fn shared_store_2(self, address: u32, value: u16);
    /// Writes a byte of shared memory.
    fn shared_store_1(self, address: u32, value: u8);
    /// Atomic on a u32 of shared memory; returns the old value.
    fn shared_atomic_4(self, op: AtomicOp, address: u32, value: u32) -> u32;
    /// Compare and swap on a u32 of shared memory; returns the old value.
    fn shared_compare_swap_4(self, address: u32, expected: u32, value: u32) -> u32;
}
