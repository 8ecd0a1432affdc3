//! How many blocks of a kernel fit a multiprocessor.

/// A multiprocessor's resources (CUDA C++ Programming Guide, technical specifications per compute
/// capability).
struct Multiprocessor {
    threads: u32,
    blocks: u32,
    shared: u32,
}

const REGISTERS: u32 = 65_536;
/// Registers are given to warps in units of this many.
const REGISTER_UNIT: u32 = 256;
/// The system takes this much shared memory of each block.
const SHARED_RESERVED: u32 = 1024;

fn multiprocessor(arch: &str) -> Multiprocessor {
    let (threads, blocks, shared) = match arch.trim_end_matches(['a', 'f']) {
        "sm_80" => (2048, 32, 164 << 10),
        "sm_86" => (1536, 16, 100 << 10),
        "sm_89" => (1536, 24, 100 << 10),
        "sm_120" => (1536, 24, 100 << 10),
        _ => (2048, 32, 228 << 10),
    };
    Multiprocessor {
        threads,
        blocks,
        shared,
    }
}

/// Blocks of `threads` threads that fit at once, and the share of the thread slots that they fill.
pub fn of(arch: &str, threads: u32, registers: u32, shared: u32) -> (u32, f64) {
    let limits = multiprocessor(arch);
    let warps = threads.div_ceil(32).max(1);
    let warp_registers = (registers.max(1) * 32).next_multiple_of(REGISTER_UNIT);
    let by_registers = REGISTERS / warp_registers / warps;
    let by_shared = limits.shared / (shared + SHARED_RESERVED);
    let by_threads = limits.threads / (warps * 32);
    let blocks = by_registers
        .min(by_shared)
        .min(by_threads)
        .min(limits.blocks);
    (
        blocks,
        f64::from(blocks * warps * 32) / f64::from(limits.threads),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcest_resource_decides() {
        assert_eq!(of("sm_90", 128, 168, 0), (3, 0.1875));
        assert_eq!(of("sm_90", 256, 32, 65_536).0, 3);
        assert_eq!(of("sm_90", 32, 16, 0).0, 32);
        assert_eq!(of("sm_86", 256, 16, 0), (6, 1.0));
    }
}
