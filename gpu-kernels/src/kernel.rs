//! The declaration macro.

/// Declares a kernel: its PTX entry, its limits, and its typed launcher.
///
/// ```
/// use cuzk_kernels::{Emulator, Global, GlobalMut, kernel};
///
/// kernel! {
///     /// `z[i] = x[i] + y[i]` for `i < n`.
///     pub fn add_words(gpu, n: u32, x: Global<u32>, y: Global<u32>, z: GlobalMut<u32>)
///     limits { threads: 128, min_blocks: 8, registers: 32, shared: 0 }
///     {
///         let i = gpu.index();
///         if i < n as usize {
///             z.store(gpu, i, x.load(gpu, i).wrapping_add(y.load(gpu, i)));
///         }
///     }
/// }
///
/// # fn main() {
/// let mut emulator = Emulator::new();
/// let x = emulator.upload(&[1u32, 2, 3]);
/// let y = emulator.upload(&[10u32, 20, 30]);
/// let z = emulator.alloc::<u32>(3);
/// emulator.run(&add_words::launch(1, 3, x.global(), y.global(), z.global_mut())).unwrap();
/// assert_eq!(emulator.download(&z).unwrap(), [11, 22, 33]);
/// # }
/// ```
///
/// Everything about the kernel lives in a module of its name:
/// - `add_words::launch(grid, n, x, y, z) -> Launch` (host);
/// - `add_words::KERNEL: Kernel` (host): name and limits;
/// - `add_words::body(gpu, …)`: the generic function;
/// - `add_words::THREADS: u32`, which the body may use as a constant.
///
/// `limits` are: `threads`, the exact block size; `min_blocks`, blocks that must fit a multiprocessor
/// at once; `registers`, the most a thread may take; `shared`, bytes of shared memory a block; and, only
/// where they are not zero, `spills` and `stack`, bytes a thread. `cargo xtask kernels` fails when the
/// compiled kernel exceeds one. All are constant expressions.
///
/// Variants of one algorithm share a generic function that each kernel's body calls.
#[macro_export]
macro_rules! kernel {
    (
        $(#[$meta:meta])*
        $vis:vis fn $name:ident($gpu:ident $(, $arg:ident: $type:ty)* $(,)?)
        limits {
            threads: $threads:expr, min_blocks: $min_blocks:expr, registers: $registers:expr,
            shared: $shared:expr $(, spills: $spills:expr)? $(, stack: $stack:expr)? $(,)?
        }
        $body:block
        $($rest:tt)*
    ) => {
        $(#[$meta])*
        $vis mod $name {
            #[allow(unused_imports)]
            use super::*;
            #[allow(unused_imports)]
            use $crate::Gpu as _;

            /// Threads in a block.
            pub const THREADS: u32 = $threads;

            /// The kernel, generic over the device interface.
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            pub fn body<G: $crate::Gpu>($gpu: G $(, $arg: $type)*) $body

            #[cfg(target_arch = "nvptx64")]
            #[unsafe(no_mangle)]
            #[allow(improper_ctypes_definitions)]
            unsafe extern "ptx-kernel" fn $name($($arg: $type),*) {
                // SAFETY: the template is a comment; the build moves it to directives of this entry.
                unsafe {
                    core::arch::asm!(
                        "// @limits threads={threads} min_blocks={min_blocks} registers={registers} shared={shared} spills={spills} stack={stack}",
                        threads = const $threads, min_blocks = const $min_blocks,
                        registers = const $registers, shared = const $shared,
                        spills = const { 0 $(+ $spills)? }, stack = const { 0 $(+ $stack)? },
                        options(nomem, nostack, preserves_flags)
                    );
                }
                body($crate::Device::current() $(, $arg)*)
            }

            /// Name and limits.
            #[cfg(not(target_arch = "nvptx64"))]
            pub static KERNEL: $crate::Kernel = $crate::Kernel {
                name: stringify!($name),
                threads: $threads,
                min_blocks: $min_blocks,
                max_registers: $registers,
                shared: $shared,
                emulate,
            };

            #[cfg(not(target_arch = "nvptx64"))]
            #[allow(unused_variables, unused_mut, unused_assignments)]
            fn emulate(thread: $crate::emulator::Thread, arguments: &[$crate::Argument]) {
                let mut position = 0;
                $(
                    let $arg = <$type as $crate::KernelArgument>::unpack(&arguments[position]);
                    position += 1;
                )*
                body(thread $(, $arg)*)
            }

            /// The launch of `grid` blocks with these arguments.
            #[cfg(not(target_arch = "nvptx64"))]
            #[allow(clippy::too_many_arguments)]
            pub fn launch(grid: impl Into<$crate::Grid> $(, $arg: $type)*) -> $crate::Launch {
                $crate::Launch {
                    kernel: &KERNEL,
                    grid: grid.into(),
                    arguments: vec![$($crate::KernelArgument::pack($arg)),*],
                }
            }
        }
        $crate::kernel! { $($rest)* }
    };
    () => {};
}
