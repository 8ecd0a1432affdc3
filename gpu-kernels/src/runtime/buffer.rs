//! Typed device memory that is released when it is dropped.

use super::{Runtime, RuntimeError};
use crate::{Element, Global, GlobalMut};
use bytemuck::Pod;
use std::marker::PhantomData;
use std::sync::Arc;

/// `len` elements of `T` in device memory.
pub struct DeviceBuffer<T> {
    runtime: Arc<dyn Runtime>,
    address: u64,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element + Pod> DeviceBuffer<T> {
    /// Reserves memory for `len` elements; the content is undefined.
    pub fn new(runtime: &Arc<dyn Runtime>, len: usize) -> Result<Self, RuntimeError> {
        let bytes = (len as u64 * u64::from(T::BYTES)).max(1);
        let address = runtime.allocate(bytes)?;
        Ok(DeviceBuffer {
            runtime: runtime.clone(),
            address,
            len,
            element: PhantomData,
        })
    }

    /// A buffer with a copy of `data`.
    pub fn from_slice(runtime: &Arc<dyn Runtime>, data: &[T]) -> Result<Self, RuntimeError> {
        let buffer = Self::new(runtime, data.len())?;
        buffer.upload(0, data)?;
        Ok(buffer)
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The array as a kernel argument, for reading.
    pub fn global(&self) -> Global<T> {
        Global::at_address(self.address)
    }

    /// The array as a kernel argument, for reading and writing.
    pub fn global_mut(&self) -> GlobalMut<T> {
        GlobalMut::at_address(self.address)
    }

    /// Copies `data` to the elements from `start` on.
    pub fn upload(&self, start: usize, data: &[T]) -> Result<(), RuntimeError> {
        let address = self.range("upload", start, data.len())?;
        self.runtime.upload(address, bytemuck::cast_slice(data))
    }

    /// Copies the elements from `start` on to `out`.
    pub fn download(&self, start: usize, out: &mut [T]) -> Result<(), RuntimeError> {
        let address = self.range("download", start, out.len())?;
        self.runtime
            .download(address, bytemuck::cast_slice_mut(out))
    }

    /// All elements.
    pub fn to_vec(&self) -> Result<Vec<T>, RuntimeError> {
        let mut out = vec![T::zeroed(); self.len];
        self.download(0, &mut out)?;
        Ok(out)
    }

    /// Sets all bytes to zero.
    pub fn zero(&self) -> Result<(), RuntimeError> {
        self.runtime
            .zero(self.address, self.len as u64 * u64::from(T::BYTES))
    }

    fn range(&self, call: &'static str, start: usize, len: usize) -> Result<u64, RuntimeError> {
        match start.checked_add(len) {
            Some(end) if end <= self.len => Ok(self.address + start as u64 * u64::from(T::BYTES)),
            end => Err(RuntimeError::Range {
                call,
                from: start,
                to: end.unwrap_or(usize::MAX),
                len: self.len,
            }),
        }
    }
}

impl<T> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        self.runtime.release(self.address);
    }
}
