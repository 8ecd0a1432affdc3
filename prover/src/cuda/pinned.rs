//! Staging of copies through page-locked memory.
//!
//! The driver copies from ordinary memory at a seventh of the bus's speed. Data therefore goes in
//! pieces through two page-locked buffers: while one travels, all cores fill or empty the other.

use super::failed;
use cudarc::driver::{CudaEvent, CudaStream, result, sys};
use cuzk_kernels::runtime::RuntimeError;
use rayon::prelude::*;
use std::sync::Arc;

/// Size of one of the two buffers in bytes.
const PIECE: usize = 16 << 20;
/// What one core copies at a time, in bytes.
const SLICE: usize = 1 << 20;

/// Two page-locked buffers that take turns.
pub struct Staging {
    buffers: [Pinned; 2],
    next: usize,
}

struct Pinned {
    start: *mut u8,
    stream: Arc<CudaStream>,
    /// Reached when the last copy from or to this buffer is done.
    free: Option<CudaEvent>,
}

// SAFETY: page-locked memory belongs to the process, not to a thread; `Staging` is used by `&mut`.
unsafe impl Send for Pinned {}

impl Staging {
    /// Reserves the buffers.
    pub fn new(stream: &Arc<CudaStream>) -> Result<Self, RuntimeError> {
        Ok(Staging {
            buffers: [Pinned::new(stream)?, Pinned::new(stream)?],
            next: 0,
        })
    }

    /// Copies `data` to the device on `stream`; returns when `data` may be reused.
    pub fn upload(
        &mut self,
        stream: &CudaStream,
        address: u64,
        data: &[u8],
    ) -> Result<(), RuntimeError> {
        for (i, piece) in data.chunks(PIECE).enumerate() {
            let buffer = &mut self.buffers[self.next];
            self.next ^= 1;
            buffer.fill(piece)?;
            buffer.send(stream, address + (i * PIECE) as u64, piece.len())?;
        }
        Ok(())
    }
}

impl Staging {
    /// Copies device memory to `out` when the stream's earlier commands are done; returns when it is there.
    pub fn download(
        &mut self,
        stream: &CudaStream,
        address: u64,
        out: &mut [u8],
    ) -> Result<(), RuntimeError> {
        let mut travelling: Option<(usize, &mut [u8])> = None;
        for (i, piece) in out.chunks_mut(PIECE).enumerate() {
            let buffer = self.next;
            self.next ^= 1;
            let from = address + (i * PIECE) as u64;
            self.buffers[buffer].receive(stream, from, piece.len())?;
            if let Some((arrived, piece)) = travelling.replace((buffer, piece)) {
                self.buffers[arrived].empty(piece)?;
            }
        }
        match travelling {
            Some((arrived, piece)) => self.buffers[arrived].empty(piece),
            None => Ok(()),
        }
    }
}

impl Pinned {
    fn new(stream: &Arc<CudaStream>) -> Result<Self, RuntimeError> {
        stream
            .context()
            .bind_to_thread()
            .map_err(failed("cuCtxSetCurrent"))?;
        // SAFETY: the memory is written before it is read; flags 0 is plain cached memory.
        let start = unsafe { result::malloc_host(PIECE, 0) }.map_err(failed("cuMemHostAlloc"))?;
        Ok(Pinned {
            start: start.cast(),
            stream: stream.clone(),
            free: None,
        })
    }

    fn fill(&mut self, piece: &[u8]) -> Result<(), RuntimeError> {
        self.wait()?;
        // SAFETY: `start` has PIECE bytes, `piece` is at most that long, and no copy reads it any more.
        let memory = unsafe { std::slice::from_raw_parts_mut(self.start, piece.len()) };
        memory
            .par_chunks_mut(SLICE)
            .zip(piece.par_chunks(SLICE))
            .for_each(|(to, from)| to.copy_from_slice(from));
        Ok(())
    }

    fn receive(
        &mut self,
        stream: &CudaStream,
        address: u64,
        len: usize,
    ) -> Result<(), RuntimeError> {
        self.wait()?;
        // SAFETY: `start` has PIECE bytes, `len` is at most that, and no other copy uses them.
        let memory = unsafe { std::slice::from_raw_parts_mut(self.start, len) };
        // SAFETY: the caller vouches for the device range; the memory stays until the event is reached.
        unsafe { result::memcpy_dtoh_async(memory, address, stream.cu_stream()) }
            .map_err(failed("cuMemcpyDtoHAsync"))?;
        self.mark(stream)
    }

    /// Copies what arrived to `piece`.
    fn empty(&mut self, piece: &mut [u8]) -> Result<(), RuntimeError> {
        self.wait()?;
        // SAFETY: `start` has PIECE bytes, `piece` is at most that long, and the copy into it is done.
        let memory = unsafe { std::slice::from_raw_parts(self.start, piece.len()) };
        piece
            .par_chunks_mut(SLICE)
            .zip(memory.par_chunks(SLICE))
            .for_each(|(to, from)| to.copy_from_slice(from));
        Ok(())
    }

    /// Waits for the last copy from or to this buffer.
    fn wait(&mut self) -> Result<(), RuntimeError> {
        match self.free.take() {
            Some(event) => event.synchronize().map_err(failed("cuEventSynchronize")),
            None => Ok(()),
        }
    }

    /// Remembers a copy that was just given to the stream.
    fn mark(&mut self, stream: &CudaStream) -> Result<(), RuntimeError> {
        let flags = Some(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING);
        let event = stream.record_event(flags);
        self.free = Some(event.map_err(failed("cuEventRecord"))?);
        Ok(())
    }

    fn send(&mut self, stream: &CudaStream, address: u64, len: usize) -> Result<(), RuntimeError> {
        // SAFETY: the first `len` bytes were just written; they stay until the event below is reached.
        let memory = unsafe { std::slice::from_raw_parts(self.start, len) };
        // SAFETY: the caller vouches that the device range is reserved; see above for the host's.
        unsafe { result::memcpy_htod_async(address, memory, stream.cu_stream()) }
            .map_err(failed("cuMemcpyHtoDAsync"))?;
        self.mark(stream)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(event) = self.free.take() {
            // A failure here is a failure of the device, which its next call reports.
            let _ = event.synchronize();
        }
        if self.stream.context().bind_to_thread().is_ok() {
            // SAFETY: `start` came from `malloc_host` and no copy reads it any more.
            let _ = unsafe { result::free_host(self.start.cast()) };
        }
    }
}
