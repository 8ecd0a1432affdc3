//! Runs kernels on the host and checks what the device does not: bounds, alignment, initialisation,
//! barriers that not all threads reach, and data races.
//!
//! Blocks run one after the other, the threads of a block as coroutines that switch at barriers and
//! warp operations. The outcome of a launch is deterministic. Whether two accesses race does not depend
//! on the order in which they happened to run: they race when they touch the same bytes, at least one
//! writes, at least one is not atomic, and no barrier lies between them. Barriers order threads of one
//! block (or warp); nothing orders blocks of one launch.
mod access;
mod error;
mod memory;
mod raw;
mod schedule;
mod shadow;
mod thread;

pub use error::{AccessError, EmulatorError, Space};
pub use thread::Thread;

use crate::{Element, Global, GlobalMut, Launch};
use memory::{GlobalMemory, Place};

/// A buffer of the emulator's global memory.
#[derive(Debug)]
pub struct Buffer<T> {
    array: GlobalMut<T>,
    len: usize,
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Buffer<T> {}

impl<T: Element> Buffer<T> {
    /// The buffer as an argument that the kernel reads.
    pub fn global(&self) -> Global<T> {
        self.array.read()
    }
    /// The buffer as an argument that the kernel reads and writes.
    pub fn global_mut(&self) -> GlobalMut<T> {
        self.array
    }
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether the buffer has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// An emulated device with its global memory.
#[derive(Default)]
pub struct Emulator {
    memory: GlobalMemory,
}

impl Emulator {
    /// A device without buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// A buffer of `len` elements that must be written before they are read.
    pub fn alloc<T: Element>(&mut self, len: usize) -> Buffer<T> {
        let address = self.memory.add(len * T::BYTES as usize, T::BYTES, false);
        Buffer {
            array: GlobalMut::at_address(address),
            len,
        }
    }

    /// A buffer of `len` elements, all bytes zero.
    pub fn alloc_zeroed<T: Element>(&mut self, len: usize) -> Buffer<T> {
        let address = self.memory.add(len * T::BYTES as usize, T::BYTES, true);
        Buffer {
            array: GlobalMut::at_address(address),
            len,
        }
    }

    /// A buffer that holds `values`.
    pub fn upload<T: Element>(&mut self, values: &[T]) -> Buffer<T> {
        let buffer = self.alloc_zeroed(values.len());
        if let Some(bytes) = self.memory.bytes_mut(buffer.array.address()) {
            let cells = std::cell::Cell::from_mut(bytes).as_slice_of_cells();
            for (i, value) in values.iter().enumerate() {
                value.write(Place::new(cells, i * T::BYTES as usize), 0);
            }
        }
        buffer
    }

    /// The contents of a buffer. Fails if an element was never written.
    pub fn download<T: Element>(&mut self, buffer: &Buffer<T>) -> Result<Vec<T>, EmulatorError> {
        let address = buffer.array.address();
        if let Some(byte) = self.memory.first_uninitialised(address) {
            let element = byte / T::BYTES as usize;
            return Err(EmulatorError::Unwritten { element });
        }
        let Some(bytes) = self.memory.bytes_mut(address) else {
            return Err(EmulatorError::NoSuchBuffer { address });
        };
        let cells = std::cell::Cell::from_mut(bytes).as_slice_of_cells();
        Ok((0..buffer.len)
            .map(|i| T::read(Place::new(cells, i * T::BYTES as usize), 0))
            .collect())
    }

    /// Runs a launch to its end or to its first fault.
    pub fn run(&mut self, launch: &Launch) -> Result<(), EmulatorError> {
        schedule::run(&mut self.memory, launch)
    }
}
