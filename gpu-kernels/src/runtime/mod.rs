//! What the host does with a device: memory, copies, launches and events.
//!
//! A [`Runtime`] is one stream of one device. The prover's sequences of launches are written against
//! it once and run on a card (the driver's implementation lives with the prover) or on the emulator
//! ([`EmulatedRuntime`]). [`FaultyRuntime`] wraps either and makes a chosen call fail.

mod arena;
mod buffer;
mod emulated;
mod faulty;

pub use arena::{Arena, ArenaMark};
pub use buffer::DeviceBuffer;
pub use emulated::EmulatedRuntime;
pub use faulty::{Call, Fault, FaultyRuntime};

use crate::Launch;
use std::sync::Arc;
use std::time::Duration;

/// Every allocation starts at a multiple of this many bytes.
pub const ALIGNMENT: u64 = 256;

/// One stream of one device: commands run in the order in which they were given.
///
/// Addresses are device addresses. The typed layer is [`DeviceBuffer`] and [`Arena`].
pub trait Runtime: Send + Sync {
    /// The device's name, for reports.
    fn name(&self) -> String;

    /// Number of multiprocessors: what grids of persistent blocks are sized by.
    fn multiprocessors(&self) -> u32;

    /// Free and total bytes of device memory at this moment.
    fn memory(&self) -> Result<DeviceMemory, RuntimeError>;

    /// Reserves `bytes` of device memory at a multiple of [`ALIGNMENT`]. The content is undefined.
    fn allocate(&self, bytes: u64) -> Result<u64, RuntimeError>;

    /// Returns memory. Commands given before may still use it.
    fn release(&self, address: u64);

    /// The address of `bytes` bytes at `offset` of an allocation that starts at `base`, for elements of
    /// `element` bytes. A runtime that checks bounds returns memory apart, so that each piece is checked.
    fn carve(&self, base: u64, offset: u64, _bytes: u64, _element: u32) -> u64 {
        base + offset
    }

    /// Ends the use of a carved piece.
    fn give_back(&self, _address: u64) {}

    /// Copies `data` to the device. When it returns, the caller may reuse `data`.
    fn upload(&self, address: u64, data: &[u8]) -> Result<(), RuntimeError>;

    /// Waits for all earlier commands, then copies device memory to `out`.
    fn download(&self, address: u64, out: &mut [u8]) -> Result<(), RuntimeError>;

    /// Sets `bytes` of device memory to zero.
    fn zero(&self, address: u64, bytes: u64) -> Result<(), RuntimeError>;

    /// Copies between two places of device memory that do not overlap.
    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), RuntimeError>;

    /// Starts a kernel.
    fn launch(&self, launch: &Launch) -> Result<(), RuntimeError>;

    /// Waits for all commands of this stream; errors of earlier launches appear here at the latest.
    fn synchronize(&self) -> Result<(), RuntimeError>;

    /// Marks the present end of the stream.
    fn mark(&self) -> Result<Mark, RuntimeError>;

    /// Device time between two marks; waits until the later one is reached.
    fn elapsed(&self, from: &Mark, to: &Mark) -> Result<Duration, RuntimeError>;

    /// Makes later commands of this stream wait for a mark of another stream of the same device.
    fn wait_for(&self, mark: &Mark) -> Result<(), RuntimeError>;

    /// Another stream of the same device.
    fn fork(&self) -> Result<Arc<dyn Runtime>, RuntimeError>;
}

/// Device memory in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Not reserved by anyone.
    pub free: u64,
    /// On the card.
    pub total: u64,
}

/// A point in a stream. What it holds belongs to the runtime that made it.
#[derive(Clone)]
pub struct Mark(Arc<dyn std::any::Any + Send + Sync>);

impl Mark {
    /// Wraps a runtime's own event.
    pub fn new<T: Send + Sync + 'static>(event: T) -> Self {
        Mark(Arc::new(event))
    }

    /// The runtime's own event, if the mark is of that kind.
    pub fn event<T: 'static>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

/// Why a device did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The device has not enough free memory.
    #[error("device memory: {wanted} bytes wanted, {free} free")]
    OutOfMemory {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes free at that moment, if known; otherwise 0.
        free: u64,
    },
    /// An arena is too small for what its user takes from it: a plan and its use disagree.
    #[error("arena: {wanted} bytes wanted, {left} of {size} left")]
    ArenaFull {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes left.
        left: u64,
        /// Size of the arena.
        size: u64,
    },
    /// A host slice and a device buffer differ in length, or a range lies outside of a buffer.
    #[error("{call}: elements {from}..{to} of a buffer of {len}")]
    Range {
        /// The operation.
        call: &'static str,
        /// First element.
        from: usize,
        /// One past the last element.
        to: usize,
        /// Elements in the buffer.
        len: usize,
    },
    /// The device or its driver reported an error.
    #[error("{call}: {message}")]
    Device {
        /// The operation.
        call: String,
        /// What the driver or the emulator said.
        message: String,
    },
}

impl RuntimeError {
    /// An error that the device or its driver reported.
    pub fn device(call: impl Into<String>, message: impl std::fmt::Display) -> Self {
        RuntimeError::Device {
            call: call.into(),
            message: message.to_string(),
        }
    }
}
