//! The device interface on the device: PTX instructions.
use core::arch::{asm, global_asm, nvptx};

use crate::{AtomicOp, Cache, Gpu};

// Every kernel's shared memory, sized at launch.
global_asm!(".extern .shared .align 16 .b8 cuzk_shared[];");

unsafe extern "unadjusted" {
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    fn shuffle_index(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
    fn shuffle_butterfly(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.up.i32"]
    fn shuffle_up(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.down.i32"]
    fn shuffle_down(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    fn vote_ballot(mask: u32, predicate: bool) -> u32;
    #[link_name = "llvm.nvvm.match.any.sync.i32"]
    fn match_any(mask: u32, value: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.add"]
    fn redux_add(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    fn bar_warp(mask: u32);
}

const ALL_LANES: u32 = !0;

/// The thread that runs.
#[derive(Clone, Copy)]
pub struct Device {
    shared: u32,
}

impl Device {
    /// The interface of the running thread.
    #[inline(always)]
    pub fn current() -> Self {
        let shared;
        // SAFETY: names the symbol declared above.
        unsafe {
            asm!("mov.u32 {}, cuzk_shared;", out(reg32) shared, options(pure, nomem, nostack))
        };
        Self { shared }
    }
}

/// A load of global memory under each policy.
macro_rules! global_load {
    ($cache:expr, $suffix:literal, $result:literal, [$($out:tt)*], $address:expr) => {
        // SAFETY: the launch promises that the address lies in a live buffer; alignment follows from
        // the element type.
        unsafe {
            match $cache {
                Cache::Default => asm!(concat!("ld.global.", $suffix, " ", $result, ", [{address}];"),
                    $($out)*, address = in(reg64) $address, options(pure, readonly, nostack, preserves_flags)),
                Cache::ReadOnly => asm!(concat!("ld.global.nc.", $suffix, " ", $result, ", [{address}];"),
                    $($out)*, address = in(reg64) $address, options(pure, readonly, nostack, preserves_flags)),
                Cache::Streaming => asm!(concat!("ld.global.cs.", $suffix, " ", $result, ", [{address}];"),
                    $($out)*, address = in(reg64) $address, options(pure, readonly, nostack, preserves_flags)),
                Cache::Relaxed => asm!(concat!("ld.volatile.global.", $suffix, " ", $result, ", [{address}];"),
                    $($out)*, address = in(reg64) $address, options(nostack, preserves_flags)),
            }
        }
    };
}

macro_rules! global_store {
    ($cache:expr, $suffix:literal, $operand:literal, [$($in:tt)*], $address:expr) => {
        // SAFETY: as for loads.
        unsafe {
            match $cache {
                Cache::Default | Cache::ReadOnly => asm!(
                    concat!("st.global.", $suffix, " [{address}], ", $operand, ";"),
                    $($in)*, address = in(reg64) $address, options(nostack, preserves_flags)),
                Cache::Streaming => asm!(
                    concat!("st.global.cs.", $suffix, " [{address}], ", $operand, ";"),
                    $($in)*, address = in(reg64) $address, options(nostack, preserves_flags)),
                Cache::Relaxed => asm!(
                    concat!("st.volatile.global.", $suffix, " [{address}], ", $operand, ";"),
                    $($in)*, address = in(reg64) $address, options(nostack, preserves_flags)),
            }
        }
    };
}

macro_rules! shared_load {
    ($suffix:literal, $result:literal, [$($out:tt)*], $address:expr) => {
        // SAFETY: the kernel keeps to the shared memory that it declares; the emulator checks it.
        unsafe {
            asm!(concat!("ld.shared.", $suffix, " ", $result, ", [{address}];"),
                $($out)*, address = in(reg32) $address, options(pure, readonly, nostack, preserves_flags))
        }
    };
}

macro_rules! shared_store {
    ($suffix:literal, $operand:literal, [$($in:tt)*], $address:expr) => {
        // SAFETY: as for loads.
        unsafe {
            asm!(concat!("st.shared.", $suffix, " [{address}], ", $operand, ";"),
                $($in)*, address = in(reg32) $address, options(nostack, preserves_flags))
        }
    };
}

macro_rules! atomic {
    ($space:literal, $op:expr, $address:expr, $class:ident, $value:expr, $unsigned:literal, $bits:literal, $register:ident) => {{
        let old;
        macro_rules! emit {
            ($name:literal, $kind:literal) => {
                // SAFETY: as for loads and stores.
                unsafe {
                    asm!(concat!("atom.", $space, ".", $name, ".", $kind, " {old}, [{address}], {value};"),
                        old = lateout($class) old, address = in($register) $address, value = in($class) $value,
                        options(nostack, preserves_flags))
                }
            };
        }
        match $op {
            AtomicOp::Add => emit!("add", $unsigned),
            AtomicOp::Min => emit!("min", $unsigned),
            AtomicOp::Max => emit!("max", $unsigned),
            AtomicOp::Or => emit!("or", $bits),
            AtomicOp::And => emit!("and", $bits),
            AtomicOp::Exchange => emit!("exch", $bits),
        }
        old
    }};
}

impl Gpu for Device {
    #[inline(always)]
    fn thread(self) -> u32 {
        // SAFETY: reads a special register.
        unsafe { nvptx::_thread_idx_x() as u32 }
    }
    #[inline(always)]
    fn threads(self) -> u32 {
        // SAFETY: reads a special register.
        unsafe { nvptx::_block_dim_x() as u32 }
    }
    #[inline(always)]
    fn block(self) -> u32 {
        // SAFETY: reads a special register.
        unsafe { nvptx::_block_idx_x() as u32 }
    }
    #[inline(always)]
    fn block_y(self) -> u32 {
        // SAFETY: reads a special register.
        unsafe { nvptx::_block_idx_y() as u32 }
    }
    #[inline(always)]
    fn blocks(self) -> u32 {
        // SAFETY: reads a special register.
        unsafe { nvptx::_grid_dim_x() as u32 }
    }
    #[inline(always)]
    fn blocks_y(self) -> u32 {
        // SAFETY: reads a special register.
        unsafe { nvptx::_grid_dim_y() as u32 }
    }
    #[inline(always)]
    fn barrier(self) {
        // SAFETY: the emulator checks that all threads of the block arrive.
        unsafe { nvptx::_syncthreads() }
    }
    #[inline(always)]
    fn warp_barrier(self) {
        // SAFETY: the emulator checks that all lanes arrive.
        unsafe { bar_warp(ALL_LANES) }
    }
    #[inline(always)]
    fn fence_block(self) {
        // SAFETY: a fence has no operands.
        unsafe { asm!("fence.acq_rel.cta;", options(nostack, preserves_flags)) }
    }
    #[inline(always)]
    fn fence_device(self) {
        // SAFETY: a fence has no operands.
        unsafe { asm!("fence.acq_rel.gpu;", options(nostack, preserves_flags)) }
    }
    #[inline(always)]
    fn shuffle(self, value: u32, source: u32) -> u32 {
        // SAFETY: all lanes call; the emulator checks it. The same holds for the warp operations below.
        unsafe { shuffle_index(ALL_LANES, value, source, 31) }
    }
    #[inline(always)]
    fn shuffle_xor(self, value: u32, mask: u32) -> u32 {
        // SAFETY: see `shuffle`.
        unsafe { shuffle_butterfly(ALL_LANES, value, mask, 31) }
    }
    #[inline(always)]
    fn shuffle_up(self, value: u32, delta: u32) -> u32 {
        // SAFETY: see `shuffle`.
        unsafe { shuffle_up(ALL_LANES, value, delta, 0) }
    }
    #[inline(always)]
    fn shuffle_down(self, value: u32, delta: u32) -> u32 {
        // SAFETY: see `shuffle`.
        unsafe { shuffle_down(ALL_LANES, value, delta, 31) }
    }
    #[inline(always)]
    fn ballot(self, predicate: bool) -> u32 {
        // SAFETY: see `shuffle`.
        unsafe { vote_ballot(ALL_LANES, predicate) }
    }
    #[inline(always)]
    fn match_any(self, value: u32) -> u32 {
        // SAFETY: see `shuffle`.
        unsafe { match_any(ALL_LANES, value) }
    }
    #[inline(always)]
    fn warp_sum(self, value: u32) -> u32 {
        // SAFETY: see `shuffle`.
        unsafe { redux_add(value, ALL_LANES) }
    }
    #[inline(always)]
    fn shared_base(self) -> u32 {
        self.shared
    }

    #[inline(always)]
    fn global_load_16(self, address: u64, cache: Cache) -> [u32; 4] {
        let (a, b, c, d);
        global_load!(cache, "v4.u32", "{{{a}, {b}, {c}, {d}}}",
            [a = out(reg32) a, b = out(reg32) b, c = out(reg32) c, d = out(reg32) d], address);
        [a, b, c, d]
    }
    #[inline(always)]
    fn global_load_8(self, address: u64, cache: Cache) -> [u32; 2] {
        let (a, b);
        global_load!(cache, "v2.u32", "{{{a}, {b}}}", [a = out(reg32) a, b = out(reg32) b], address);
        [a, b]
    }
    #[inline(always)]
    fn global_load_4(self, address: u64, cache: Cache) -> u32 {
        let a;
        global_load!(cache, "u32", "{a}", [a = out(reg32) a], address);
        a
    }
    #[inline(always)]
    fn global_load_2(self, address: u64, cache: Cache) -> u16 {
        let a: u32;
        global_load!(cache, "u16", "{a}", [a = out(reg32) a], address);
        a as u16
    }
    #[inline(always)]
    fn global_load_1(self, address: u64, cache: Cache) -> u8 {
        let a: u32;
        global_load!(cache, "u8", "{a}", [a = out(reg32) a], address);
        a as u8
    }
    #[inline(always)]
    fn global_store_16(self, address: u64, value: [u32; 4], cache: Cache) {
        let [a, b, c, d] = value;
        global_store!(cache, "v4.u32", "{{{a}, {b}, {c}, {d}}}",
            [a = in(reg32) a, b = in(reg32) b, c = in(reg32) c, d = in(reg32) d], address);
    }
    #[inline(always)]
    fn global_store_8(self, address: u64, value: [u32; 2], cache: Cache) {
        let [a, b] = value;
        global_store!(cache, "v2.u32", "{{{a}, {b}}}", [a = in(reg32) a, b = in(reg32) b], address);
    }
    #[inline(always)]
    fn global_store_4(self, address: u64, value: u32, cache: Cache) {
        global_store!(cache, "u32", "{a}", [a = in(reg32) value], address);
    }
    #[inline(always)]
    fn global_store_2(self, address: u64, value: u16, cache: Cache) {
        global_store!(cache, "u16", "{a}", [a = in(reg32) value as u32], address);
    }
    #[inline(always)]
    fn global_store_1(self, address: u64, value: u8, cache: Cache) {
        global_store!(cache, "u8", "{a}", [a = in(reg32) value as u32], address);
    }
    #[inline(always)]
    fn global_prefetch(self, address: u64) {
        // SAFETY: a prefetch of any address is harmless.
        unsafe {
            asm!("prefetch.global.L2 [{}];", in(reg64) address, options(nostack, preserves_flags))
        }
    }
    #[inline(always)]
    fn global_atomic_4(self, op: AtomicOp, address: u64, value: u32) -> u32 {
        atomic!("global", op, address, reg32, value, "u32", "b32", reg64)
    }
    #[inline(always)]
    fn global_atomic_8(self, op: AtomicOp, address: u64, value: u64) -> u64 {
        atomic!("global", op, address, reg64, value, "u64", "b64", reg64)
    }
    #[inline(always)]
    fn global_compare_swap_4(self, address: u64, expected: u32, value: u32) -> u32 {
        let old;
        // SAFETY: as for loads and stores.
        unsafe {
            asm!("atom.global.cas.b32 {old}, [{address}], {expected}, {value};",
                old = lateout(reg32) old, address = in(reg64) address, expected = in(reg32) expected,
                value = in(reg32) value, options(nostack, preserves_flags));
        }
        old
    }

    #[inline(always)]
    fn shared_load_16(self, address: u32) -> [u32; 4] {
        let (a, b, c, d);
        shared_load!("v4.u32", "{{{a}, {b}, {c}, {d}}}",
            [a = out(reg32) a, b = out(reg32) b, c = out(reg32) c, d = out(reg32) d], address);
        [a, b, c, d]
    }
    #[inline(always)]
    fn shared_load_8(self, address: u32) -> [u32; 2] {
        let (a, b);
        shared_load!("v2.u32", "{{{a}, {b}}}", [a = out(reg32) a, b = out(reg32) b], address);
        [a, b]
    }
    #[inline(always)]
    fn shared_load_4(self, address: u32) -> u32 {
        let a;
        shared_load!("u32", "{a}", [a = out(reg32) a], address);
        a
    }
    #[inline(always)]
    fn shared_load_2(self, address: u32) -> u16 {
        let a: u32;
        shared_load!("u16", "{a}", [a = out(reg32) a], address);
        a as u16
    }
    #[inline(always)]
    fn shared_load_1(self, address: u32) -> u8 {
        let a: u32;
        shared_load!("u8", "{a}", [a = out(reg32) a], address);
        a as u8
    }
    #[inline(always)]
    fn shared_store_16(self, address: u32, value: [u32; 4]) {
        let [a, b, c, d] = value;
        shared_store!("v4.u32", "{{{a}, {b}, {c}, {d}}}",
            [a = in(reg32) a, b = in(reg32) b, c = in(reg32) c, d = in(reg32) d], address);
    }
    #[inline(always)]
    fn shared_store_8(self, address: u32, value: [u32; 2]) {
        let [a, b] = value;
        shared_store!("v2.u32", "{{{a}, {b}}}", [a = in(reg32) a, b = in(reg32) b], address);
    }
    #[inline(always)]
    fn shared_store_4(self, address: u32, value: u32) {
        shared_store!("u32", "{a}", [a = in(reg32) value], address);
    }
    #[inline(always)]
    fn shared_store_2(self, address: u32, value: u16) {
        shared_store!("u16", "{a}", [a = in(reg32) value as u32], address);
    }
    #[inline(always)]
    fn shared_store_1(self, address: u32, value: u8) {
        shared_store!("u8", "{a}", [a = in(reg32) value as u32], address);
    }
    #[inline(always)]
    fn shared_atomic_4(self, op: AtomicOp, address: u32, value: u32) -> u32 {
        atomic!("shared", op, address, reg32, value, "u32", "b32", reg32)
    }
    #[inline(always)]
    fn shared_compare_swap_4(self, address: u32, expected: u32, value: u32) -> u32 {
        let old;
        // SAFETY: as for loads and stores.
        unsafe {
            asm!("atom.shared.cas.b32 {old}, [{address}], {expected}, {value};",
                old = lateout(reg32) old, address = in(reg32) address, expected = in(reg32) expected,
                value = in(reg32) value, options(nostack, preserves_flags));
        }
        old
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: stops the launch with an error that the driver reports.
    unsafe { nvptx::trap() }
}
