//! Launch descriptors: what the host hands to the driver or to the emulator.
use crate::emulator::Thread;
use crate::{Element, Global, GlobalMut};

/// A kernel as declared by [`kernel!`](crate::kernel!).
pub struct Kernel {
    /// Name of the PTX entry.
    pub name: &'static str,
    /// Threads in a block: every launch has exactly this many.
    pub threads: u32,
    /// Blocks that must fit a multiprocessor at once; the register budget follows from it.
    pub min_blocks: u32,
    /// Most registers a thread may take.
    pub max_registers: u32,
    /// Bytes of shared memory a block takes, passed at launch.
    pub shared: u32,
    /// Runs one thread under the emulator with packed arguments.
    #[doc(hidden)]
    pub emulate: fn(Thread, &[Argument]),
}

impl core::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "{}<<<{} threads, {} bytes shared>>>",
            self.name, self.threads, self.shared
        )
    }
}

/// Number of blocks of a launch, in one or two dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// First dimension, at most 2³¹ − 1.
    pub x: u32,
    /// Second dimension, at most 65,535.
    pub y: u32,
}

impl From<u32> for Grid {
    fn from(x: u32) -> Self {
        Self { x, y: 1 }
    }
}

impl From<(u32, u32)> for Grid {
    fn from((x, y): (u32, u32)) -> Self {
        Self { x, y }
    }
}

/// One kernel argument as bytes, in the layout of the PTX parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Argument {
    bytes: [u8; 48],
    len: u32,
}

impl Argument {
    /// An argument of at most 48 bytes.
    fn new(bytes: &[u8]) -> Self {
        let mut argument = Self {
            bytes: [0; 48],
            len: bytes.len() as u32,
        };
        argument.bytes[..bytes.len()].copy_from_slice(bytes);
        argument
    }
    /// The bytes, aligned to 16: their address is what the driver wants for each parameter.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
    fn u32(&self) -> u32 {
        let b = &self.bytes;
        u32::from_le_bytes([b[0], b[1], b[2], b[3]])
    }
    fn u64(&self) -> u64 {
        let b = &self.bytes;
        u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])
    }
}

/// Types that a kernel takes as arguments.
pub trait KernelArgument: Copy {
    /// The argument's bytes.
    fn pack(self) -> Argument;
    /// The inverse of [`pack`](Self::pack).
    fn unpack(argument: &Argument) -> Self;
}

impl KernelArgument for u32 {
    fn pack(self) -> Argument {
        Argument::new(&self.to_le_bytes())
    }
    fn unpack(argument: &Argument) -> Self {
        argument.u32()
    }
}

impl KernelArgument for u64 {
    fn pack(self) -> Argument {
        Argument::new(&self.to_le_bytes())
    }
    fn unpack(argument: &Argument) -> Self {
        argument.u64()
    }
}

impl<T: Element> KernelArgument for Global<T> {
    fn pack(self) -> Argument {
        self.address().pack()
    }
    fn unpack(argument: &Argument) -> Self {
        Self::at_address(argument.u64())
    }
}

impl<T: Element> KernelArgument for GlobalMut<T> {
    fn pack(self) -> Argument {
        self.address().pack()
    }
    fn unpack(argument: &Argument) -> Self {
        Self::at_address(argument.u64())
    }
}

/// A kernel with its grid and arguments: all that a launch needs.
///
/// The driver back end takes `kernel.name`, `grid`, `kernel.threads`, `kernel.shared` and one pointer
/// to each argument's bytes; the emulator takes it as it is.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel.
    pub kernel: &'static Kernel,
    /// Number of blocks.
    pub grid: Grid,
    /// Arguments in order.
    pub arguments: Vec<Argument>,
}
