//! Emulated global memory: buffers far apart in one address space, and byte places for host copies.
use std::cell::Cell;

use super::shadow::Shadow;
use crate::{Sink, Source};

/// Buffers start at multiples of 2^40, so that an index error cannot reach another one.
const BUFFER_LOG2: u32 = 40;

/// One buffer.
pub struct BufferMemory {
    pub bytes: Vec<u8>,
    /// One flag a granule; empty when everything is initialised.
    initialised: Vec<bool>,
    pub granule: usize,
    pub shadow: Shadow,
}

impl BufferMemory {
    /// Index of the first byte in the range that nobody wrote.
    pub fn uninitialised(&self, offset: usize, bytes: usize) -> Option<usize> {
        if self.initialised.is_empty() || bytes == 0 {
            return None;
        }
        let first = offset / self.granule;
        let last = (offset + bytes - 1) / self.granule;
        self.initialised[first..=last]
            .iter()
            .position(|known| !known)
            .map(|i| (first + i) * self.granule)
    }

    /// Notes that the range is written.
    pub fn initialise(&mut self, offset: usize, bytes: usize) {
        if !self.initialised.is_empty() {
            let last = (offset + bytes - 1) / self.granule;
            self.initialised[offset / self.granule..=last].fill(true);
        }
    }
}

/// All buffers.
#[derive(Default)]
pub struct GlobalMemory {
    buffers: Vec<BufferMemory>,
}

impl GlobalMemory {
    /// Adds a buffer of elements of `element` bytes; returns its address.
    pub fn add(&mut self, bytes: usize, element: u32, initialised: bool) -> u64 {
        let granule = element.min(4) as usize;
        let initialised = if initialised {
            Vec::new()
        } else {
            vec![false; bytes.div_ceil(granule)]
        };
        self.buffers.push(BufferMemory {
            bytes: vec![0; bytes],
            initialised,
            granule,
            shadow: Shadow::default(),
        });
        (self.buffers.len() as u64) << BUFFER_LOG2
    }

    /// Number of the buffer and offset in it.
    pub fn locate(address: u64) -> (usize, usize) {
        let buffer = (address >> BUFFER_LOG2).wrapping_sub(1) as usize;
        (buffer, (address & ((1 << BUFFER_LOG2) - 1)) as usize)
    }

    /// A buffer by number.
    pub fn buffer_mut(&mut self, buffer: usize) -> Option<&mut BufferMemory> {
        self.buffers.get_mut(buffer)
    }

    /// The bytes of the buffer at an address.
    pub fn bytes_mut(&mut self, address: u64) -> Option<&mut [u8]> {
        self.buffers
            .get_mut(Self::locate(address).0)
            .map(|b| b.bytes.as_mut_slice())
    }

    /// The first byte of the buffer at an address that nobody wrote.
    pub fn first_uninitialised(&self, address: u64) -> Option<usize> {
        let buffer = self.buffers.get(Self::locate(address).0)?;
        buffer.uninitialised(0, buffer.bytes.len())
    }

    /// Starts a launch: earlier accesses no longer race with later ones.
    pub fn begin_launch(&mut self) {
        for buffer in &mut self.buffers {
            buffer.shadow = Shadow::default();
        }
    }
}

/// A place in host bytes, for elements' reads and writes.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    bytes: &'a [Cell<u8>],
    start: usize,
}

impl<'a> Place<'a> {
    pub fn new(bytes: &'a [Cell<u8>], start: usize) -> Self {
        Self { bytes, start }
    }
    fn get<const N: usize>(self, offset: u32) -> [u8; N] {
        std::array::from_fn(|i| self.bytes[self.start + offset as usize + i].get())
    }
    fn set<const N: usize>(self, offset: u32, value: [u8; N]) {
        for (i, byte) in value.into_iter().enumerate() {
            self.bytes[self.start + offset as usize + i].set(byte);
        }
    }
}

impl Source for Place<'_> {
    fn word_16(self, offset: u32) -> [u32; 4] {
        std::array::from_fn(|i| self.word_4(offset + 4 * i as u32))
    }
    fn word_8(self, offset: u32) -> [u32; 2] {
        std::array::from_fn(|i| self.word_4(offset + 4 * i as u32))
    }
    fn word_4(self, offset: u32) -> u32 {
        u32::from_le_bytes(self.get(offset))
    }
    fn word_2(self, offset: u32) -> u16 {
        u16::from_le_bytes(self.get(offset))
    }
    fn word_1(self, offset: u32) -> u8 {
        self.get::<1>(offset)[0]
    }
}

impl Sink for Place<'_> {
    fn put_16(self, offset: u32, value: [u32; 4]) {
        (0..4).for_each(|i| self.put_4(offset + 4 * i, value[i as usize]));
    }
    fn put_8(self, offset: u32, value: [u32; 2]) {
        (0..2).for_each(|i| self.put_4(offset + 4 * i, value[i as usize]));
    }
    fn put_4(self, offset: u32, value: u32) {
        self.set(offset, value.to_le_bytes());
    }
    fn put_2(self, offset: u32, value: u16) {
        self.set(offset, value.to_le_bytes());
    }
    fn put_1(self, offset: u32, value: u8) {
        self.set(offset, [value]);
    }
}
