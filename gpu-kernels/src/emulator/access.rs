//! Checked accesses to emulated memory.
use super::error::{AccessError, Space};
use super::memory::{BufferMemory, GlobalMemory};
use super::shadow::{Kind, Now, Shadow};

/// An access that failed, and where.
pub struct Fault {
    pub kind: Kind,
    pub bytes: u32,
    pub space: Space,
    pub buffer: usize,
    pub offset: usize,
    pub error: AccessError,
}

/// Bounds and alignment of an access to `len` bytes.
fn check_place(offset: usize, bytes: u32, len: usize) -> Result<(), AccessError> {
    if offset
        .checked_add(bytes as usize)
        .is_none_or(|end| end > len)
    {
        return Err(AccessError::OutOfBounds { len });
    }
    if !offset.is_multiple_of(bytes as usize) {
        return Err(AccessError::Unaligned { bytes });
    }
    Ok(())
}

/// Checks and records an access to global memory; returns the buffer and the offset in it.
pub fn global<'a>(
    memory: &'a mut GlobalMemory,
    address: u64,
    bytes: u32,
    kind: Kind,
    now: &Now,
) -> Result<(&'a mut BufferMemory, usize), Fault> {
    let (number, offset) = GlobalMemory::locate(address);
    let fault = |error| Fault {
        kind,
        bytes,
        space: Space::Global,
        buffer: number,
        offset,
        error,
    };
    let Some(buffer) = memory.buffer_mut(number) else {
        return Err(fault(AccessError::OutOfBounds { len: 0 }));
    };
    check_place(offset, bytes, buffer.bytes.len()).map_err(fault)?;
    if kind.reads() && buffer.uninitialised(offset, bytes as usize).is_some() {
        return Err(fault(AccessError::Uninitialised));
    }
    if buffer.shadow.is_absent() {
        buffer.shadow = Shadow::new(buffer.bytes.len(), buffer.granule);
    }
    if let Err(other) = buffer.shadow.access(offset, bytes as usize, kind, now) {
        return Err(fault(AccessError::Race { other }));
    }
    if kind.writes() {
        buffer.initialise(offset, bytes as usize);
    }
    Ok((buffer, offset))
}

/// The shared memory of the running block.
pub struct SharedMemory {
    pub bytes: Vec<u8>,
    shadow: Shadow,
}

impl SharedMemory {
    /// Granules of four bytes, until a kernel touches single ones.
    pub fn new(bytes: u32) -> Self {
        Self {
            bytes: vec![0; bytes as usize],
            shadow: Shadow::new(bytes as usize, 4),
        }
    }

    /// Starts a block: contents are undefined again.
    pub fn begin_block(&mut self) {
        self.shadow.clear();
    }

    /// Checks and records an access.
    pub fn check(&mut self, address: u32, bytes: u32, kind: Kind, now: &Now) -> Result<(), Fault> {
        let offset = address as usize;
        let fault = |error| Fault {
            kind,
            bytes,
            space: Space::Shared,
            buffer: 0,
            offset,
            error,
        };
        check_place(offset, bytes, self.bytes.len()).map_err(fault)?;
        if (bytes as usize) < self.shadow.granule() {
            self.shadow.refine();
        }
        if kind.reads() && !self.shadow.written(offset, bytes as usize) {
            return Err(fault(AccessError::Uninitialised));
        }
        self.shadow
            .access(offset, bytes as usize, kind, now)
            .map_err(|other| fault(AccessError::Race { other }))
    }
}
