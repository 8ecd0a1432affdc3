//! Untyped access to the emulator's global memory, for the runtime that stands for a driver.
use super::memory::GlobalMemory;
use super::{Emulator, EmulatorError};

impl Emulator {
    /// A buffer of `bytes` bytes for elements of `element` bytes, not yet written; returns its address.
    pub fn allocate_bytes(&mut self, bytes: usize, element: u32) -> u64 {
        self.memory.add(bytes, element, false)
    }

    /// Forgets a buffer: every later access to it is out of bounds.
    pub fn release_bytes(&mut self, address: u64) {
        if let Some(buffer) = self.memory.buffer_mut(GlobalMemory::locate(address).0) {
            buffer.bytes = Vec::new();
        }
    }

    /// Writes bytes at an address inside a buffer.
    pub fn write_bytes(&mut self, address: u64, data: &[u8]) -> Result<(), EmulatorError> {
        let (number, offset) = GlobalMemory::locate(address);
        let buffer = self
            .memory
            .buffer_mut(number)
            .ok_or(EmulatorError::NoSuchBuffer { address })?;
        let end = offset + data.len();
        let place = buffer
            .bytes
            .get_mut(offset..end)
            .ok_or(EmulatorError::NoSuchBuffer { address })?;
        place.copy_from_slice(data);
        if !data.is_empty() {
            buffer.initialise(offset, data.len());
        }
        Ok(())
    }

    /// Reads bytes at an address inside a buffer. Fails if one was never written.
    pub fn read_bytes(&mut self, address: u64, out: &mut [u8]) -> Result<(), EmulatorError> {
        let (number, offset) = GlobalMemory::locate(address);
        let buffer = self
            .memory
            .buffer_mut(number)
            .ok_or(EmulatorError::NoSuchBuffer { address })?;
        let end = offset + out.len();
        let place = buffer
            .bytes
            .get(offset..end)
            .ok_or(EmulatorError::NoSuchBuffer { address })?;
        out.copy_from_slice(place);
        match buffer.uninitialised(offset, out.len()) {
            Some(element) => Err(EmulatorError::Unwritten { element }),
            None => Ok(()),
        }
    }
}
