//! A block of device memory that is divided anew for each piece of work.

use super::{ALIGNMENT, Runtime, RuntimeError};
use crate::{Element, GlobalMut};
use std::sync::Arc;

/// Device memory that is reserved once and handed out from the bottom, without a call of the driver.
///
/// What is taken stays taken until [`Arena::rewind`] or [`Arena::reset`]. Commands of one stream run in
/// order, so memory may be handed out again before the work that used it has finished, as long as the
/// same stream uses it next.
pub struct Arena {
    runtime: Arc<dyn Runtime>,
    base: u64,
    size: u64,
    used: u64,
    pieces: Vec<(u64, u64)>,
}

/// How much of an arena was taken at some moment.
#[derive(Clone, Copy, Debug)]
pub struct ArenaMark(u64);

impl Arena {
    /// Reserves `size` bytes.
    pub fn new(runtime: &Arc<dyn Runtime>, size: u64) -> Result<Self, RuntimeError> {
        let base = runtime.allocate(size.max(1))?;
        Ok(Arena {
            runtime: runtime.clone(),
            base,
            size,
            used: 0,
            pieces: Vec::new(),
        })
    }

    /// Bytes that `len` elements of `T` take: what plans add up.
    pub fn bytes<T: Element>(len: usize) -> u64 {
        (len as u64 * u64::from(T::BYTES)).next_multiple_of(ALIGNMENT)
    }

    /// Memory for `len` elements; the content is undefined.
    pub fn take<T: Element>(&mut self, len: usize) -> Result<GlobalMut<T>, RuntimeError> {
        let wanted = Self::bytes::<T>(len);
        let left = self.size - self.used;
        if wanted > left {
            return Err(RuntimeError::ArenaFull {
                wanted,
                left,
                size: self.size,
            });
        }
        let bytes = len as u64 * u64::from(T::BYTES);
        let address = self.runtime.carve(self.base, self.used, bytes, T::BYTES);
        self.pieces.push((self.used, address));
        self.used += wanted;
        Ok(GlobalMut::at_address(address))
    }

    /// The present fill, for [`rewind`](Self::rewind).
    pub fn mark(&self) -> ArenaMark {
        ArenaMark(self.used)
    }

    /// Takes back all that was handed out since `mark`.
    pub fn rewind(&mut self, mark: ArenaMark) {
        while let Some((start, address)) = self.pieces.pop_if(|piece| piece.0 >= mark.0) {
            self.runtime.give_back(address);
            self.used = start;
        }
    }

    /// Takes back everything.
    pub fn reset(&mut self) {
        self.rewind(ArenaMark(0));
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes not handed out.
    pub fn left(&self) -> u64 {
        self.size - self.used
    }

    /// The stream that the memory belongs to.
    pub fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.reset();
        self.runtime.release(self.base);
    }
}
