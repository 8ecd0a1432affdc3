//! Points that live in host memory on their way to the device: two buffers take turns, one is filled by a
//! thread and a stream of its own while the sums read the other.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

use bytemuck::Pod;
use cuzk_field::Affine;
use cuzk_kernels::Global;
use cuzk_kernels::runtime::{Arena, Runtime, RuntimeError};
use rayon::prelude::*;

use super::msm::GpuCurve;

/// Every `step`th of the points from `start` on, `len` of them.
#[derive(Clone, Copy)]
pub struct Slice<'a> {
    /// The points of a base set as bytes.
    bytes: &'a [u8],
    /// Bytes of a point.
    element: usize,
    start: usize,
    step: usize,
    len: usize,
}

impl<'a> Slice<'a> {
    /// A slice of a base set; it must lie inside.
    pub fn new<T: Pod>(points: &'a [T], start: usize, step: usize, len: usize) -> Self {
        Slice {
            bytes: bytemuck::cast_slice(points),
            element: size_of::<T>(),
            start,
            step,
            len,
        }
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        self.len * self.element
    }

    fn send(&self, runtime: &dyn Runtime, address: u64) -> Result<(), RuntimeError> {
        let (size, from) = (self.element, self.start * self.element);
        if self.step == 1 {
            return runtime.upload(address, &self.bytes[from..from + self.bytes()]);
        }
        let stride = self.step * size;
        let mut gathered = vec![0; self.bytes()];
        gathered
            .par_chunks_mut(size)
            .with_min_len(4096)
            .enumerate()
            .for_each(|(i, to)| to.copy_from_slice(&self.bytes[from + i * stride..][..size]));
        runtime.upload(address, &gathered)
    }
}

/// The consumer's end. Slices come in the order in which they were given.
struct Stager {
    ready: Receiver<Result<usize, RuntimeError>>,
    free: Sender<usize>,
    current: Option<usize>,
    buffers: [u64; 2],
}

impl Stager {
    /// Starts to bring `slices`, each at most as large as a buffer, to the device of `runtime`.
    fn start<'scope, 'env>(
        scope: &'scope Scope<'scope, 'env>,
        runtime: &Arc<dyn Runtime>,
        buffers: [u64; 2],
        slices: Vec<Slice<'scope>>,
    ) -> Self {
        let (to_consumer, ready) = channel();
        let (free, from_consumer) = channel();
        for buffer in 0..buffers.len() {
            // The receiver lives until the thread below begins.
            let _ = free.send(buffer);
        }
        let runtime = runtime.clone();
        scope.spawn(move || {
            let stream = match runtime.fork() {
                Ok(stream) => stream,
                Err(error) => {
                    // A consumer that is gone wants no answer.
                    let _ = to_consumer.send(Err(error));
                    return;
                }
            };
            for slice in slices {
                let Ok(buffer) = from_consumer.recv() else {
                    return;
                };
                let sent = slice
                    .send(&*stream, buffers[buffer])
                    .and_then(|()| stream.synchronize())
                    .map(|()| buffer);
                let failed = sent.is_err();
                if to_consumer.send(sent).is_err() || failed {
                    return;
                }
            }
        });
        Stager {
            ready,
            free,
            current: None,
            buffers,
        }
    }

    /// The address of the next slice. The last one's buffer is filled anew: nothing on the device may read
    /// it any more.
    ///
    /// # Errors
    /// When the device failed.
    fn next(&mut self) -> Result<u64, RuntimeError> {
        if let Some(last) = self.current.take() {
            // A thread that ended has nothing left to fill it with.
            let _ = self.free.send(last);
        }
        let ended = |_| Err(RuntimeError::device("staging", "no slice is left"));
        let buffer = self.ready.recv().unwrap_or_else(ended)?;
        self.current = Some(buffer);
        Ok(self.buffers[buffer])
    }
}

/// Points that are brought to the device for one sum after the other, if there are any.
pub struct Bases(Option<Stager>);

impl Bases {
    /// Takes two buffers of so many bytes from the arena, if there are slices.
    ///
    /// # Errors
    /// When the arena is full.
    pub fn start<'scope, 'env>(
        scope: &'scope Scope<'scope, 'env>,
        arena: &mut Arena,
        slices: Vec<Slice<'scope>>,
        bytes: u64,
    ) -> Result<Self, RuntimeError> {
        if slices.is_empty() {
            return Ok(Bases(None));
        }
        let words = bytes.div_ceil(4) as usize;
        let buffers = [arena.take::<u32>(words)?, arena.take::<u32>(words)?];
        let addresses = buffers.map(|buffer| buffer.address());
        let stager = Stager::start(scope, arena.runtime(), addresses, slices);
        Ok(Bases(Some(stager)))
    }

    /// The next slice; see [`Stager::next`].
    ///
    /// # Errors
    /// When the device failed or nothing is left.
    pub fn next<C: GpuCurve>(&mut self) -> Result<Global<Affine<C>>, RuntimeError> {
        let nothing = || RuntimeError::device("staging", "nothing is streamed");
        let address = self.0.as_mut().ok_or_else(nothing)?.next()?;
        Ok(Global::at_address(address))
    }
}
