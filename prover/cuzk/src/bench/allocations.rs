//! A global allocator that counts: how often, how much, and the largest amount alive at once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The system's allocator with counters that are off until [`measure`] runs.
pub struct Counting;

static ENABLED: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static ALIVE: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);

/// What was allocated while a closure ran.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Allocations {
    /// Calls to the allocator (reallocations included).
    pub count: u64,
    /// Bytes asked for in all.
    pub bytes: u64,
    /// Most bytes alive at once above what was alive at the start.
    pub peak: u64,
}

/// Runs `work` with the counters on. Not for nested or concurrent use.
pub fn measure<T>(work: impl FnOnce() -> T) -> (T, Allocations) {
    COUNT.store(0, Relaxed);
    BYTES.store(0, Relaxed);
    // Memory from before may be freed during the measurement: start high enough not to wrap.
    const BASE: u64 = 1 << 62;
    ALIVE.store(BASE, Relaxed);
    PEAK.store(BASE, Relaxed);
    ENABLED.store(true, Relaxed);
    let value = work();
    ENABLED.store(false, Relaxed);
    let peak = PEAK.load(Relaxed) - BASE;
    (
        value,
        Allocations {
            count: COUNT.load(Relaxed),
            bytes: BYTES.load(Relaxed),
            peak,
        },
    )
}

fn grow(bytes: usize) {
    if ENABLED.load(Relaxed) {
        COUNT.fetch_add(1, Relaxed);
        BYTES.fetch_add(bytes as u64, Relaxed);
        let alive = ALIVE.fetch_add(bytes as u64, Relaxed) + bytes as u64;
        PEAK.fetch_max(alive, Relaxed);
    }
}

fn shrink(bytes: usize) {
    if ENABLED.load(Relaxed) {
        ALIVE.fetch_sub(bytes as u64, Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator, which upholds the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's obligations are those of `System::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's obligations are those of `System::alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: `pointer` came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        shrink(layout.size());
        grow(size);
        // SAFETY: `pointer` came from `System` with this layout; the caller vouches for `size`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
