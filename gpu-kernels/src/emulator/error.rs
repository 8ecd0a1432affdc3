//! What the emulator reports.
use super::shadow::Party;

/// Address space of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Global memory.
    Global,
    /// The block's shared memory.
    Shared,
}

impl std::fmt::Display for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Space::Global => "global",
            Space::Shared => "shared",
        })
    }
}

/// Why an access is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// Outside of every buffer, or past the end of one.
    #[error("outside of the buffer, which has {len} bytes")]
    OutOfBounds {
        /// Length of the buffer in bytes; 0 where the address belongs to none.
        len: usize,
    },
    /// The address is not a multiple of the access size.
    #[error("not aligned to {bytes} bytes")]
    Unaligned {
        /// Size of the access.
        bytes: u32,
    },
    /// The bytes were never written.
    #[error("never written before")]
    Uninitialised,
    /// Another thread touches the same bytes and nothing orders the two accesses.
    #[error("races with {other}")]
    Race {
        /// The earlier access.
        other: Party,
    },
}

/// A launch that failed, or a wrong use of the emulator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmulatorError {
    /// A thread made a wrong access.
    #[error(
        "{kernel}: block ({block}, {block_y}) thread {thread}: {operation} of {bytes} bytes of {space} \
         memory, buffer {buffer}, byte {offset}: {error}"
    )]
    Access {
        /// Kernel name.
        kernel: &'static str,
        /// Block, first dimension.
        block: u32,
        /// Block, second dimension.
        block_y: u32,
        /// Thread in its block.
        thread: u32,
        /// "load", "store" or "atomic".
        operation: &'static str,
        /// Size of the access.
        bytes: u32,
        /// Address space.
        space: Space,
        /// Number of the buffer in order of allocation (global) or 0 (shared).
        buffer: usize,
        /// Offset in the buffer, in bytes.
        offset: usize,
        /// What is wrong.
        error: AccessError,
    },
    /// A thread panicked: overflow, index out of range, or an assertion of the kernel's own.
    #[error("{kernel}: block ({block}, {block_y}) thread {thread} panicked: {message}")]
    Panic {
        /// Kernel name.
        kernel: &'static str,
        /// Block, first dimension.
        block: u32,
        /// Block, second dimension.
        block_y: u32,
        /// Thread in its block.
        thread: u32,
        /// The panic's message.
        message: String,
    },
    /// Threads wait for each other at different places, or for a thread that has ended.
    #[error(
        "{kernel}: block ({block}, {block_y}) is stuck: thread {first} {first_at}, thread {second} {second_at}"
    )]
    Divergence {
        /// Kernel name.
        kernel: &'static str,
        /// Block, first dimension.
        block: u32,
        /// Block, second dimension.
        block_y: u32,
        /// A thread that waits.
        first: u32,
        /// Where it waits.
        first_at: &'static str,
        /// A thread that does something else.
        second: u32,
        /// What that is.
        second_at: &'static str,
    },
    /// A launch with no blocks, or more than the hardware takes.
    #[error("{kernel}: grid {x} × {y} is not between 1 and 2147483647 × 65535")]
    Grid {
        /// Kernel name.
        kernel: &'static str,
        /// Blocks, first dimension.
        x: u32,
        /// Blocks, second dimension.
        y: u32,
    },
    /// A buffer that is read back has an element that nobody wrote.
    #[error("element {element} of the buffer was never written")]
    Unwritten {
        /// Index of the element.
        element: usize,
    },
    /// A buffer of another emulator.
    #[error("no buffer at {address:#x}")]
    NoSuchBuffer {
        /// Its address.
        address: u64,
    },
    /// The host has no memory for the threads' stacks.
    #[error("no memory for a stack: {message}")]
    Stack {
        /// The system's message.
        message: String,
    },
}
