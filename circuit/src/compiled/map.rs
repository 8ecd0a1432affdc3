//! Compiled circuits in memory as they lie in their files.

use memmap2::Mmap;
use std::fs::File;
use std::ops::Deref;

/// A file's bytes, mapped: pages are read when they are first looked at, and shared between processes.
///
/// The mapping starts at a multiple of the page size, so that what is aligned in the file is aligned in
/// memory.
#[derive(Debug)]
pub(super) struct MappedFile(Mmap);

impl MappedFile {
    /// Maps an opened file.
    pub fn new(file: &File) -> std::io::Result<Self> {
        // SAFETY: the bytes are only read, and any bytes will do: they are checked before they are used.
        // Compiled circuits are replaced by renaming, never changed in place, so a mapped one stays as
        // it was checked unless somebody else writes to it.
        unsafe { Mmap::map(file) }.map(MappedFile)
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
