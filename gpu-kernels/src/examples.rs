//! Small kernels over plain integers that show each part of the interface.
use crate::{Global, GlobalMut, Shared, kernel};

kernel! {
    /// Sums blocks of words: `sums[b]` is the wrapping sum of the `x[i]` of block b's 256 elements,
    /// `i < n`. Grid: one block of 256 threads for each 256 elements. Shared memory: one word a warp.
    pub fn block_sum(gpu, n: u32, x: Global<u32>, sums: GlobalMut<u32>)
    limits { threads: 256, min_blocks: 8, registers: 32, shared: 32 }
    {
        let i = gpu.index();
        let value = if i < n as usize { x.load_read_only(gpu, i) } else { 0 };
        let mut sum = value;
        let mut mask = 16;
        while mask > 0 {
            sum = sum.wrapping_add(gpu.shuffle_xor(sum, mask));
            mask >>= 1;
        }
        let partial = Shared::<u32>::new(gpu, 0);
        if gpu.lane() == 0 {
            partial.store(gpu, gpu.warp(), sum);
        }
        gpu.barrier();
        if gpu.thread() == 0 {
            let mut total = 0u32;
            let mut warp = 0;
            while warp < THREADS / 32 {
                total = total.wrapping_add(partial.load(gpu, warp));
                warp += 1;
            }
            sums.store(gpu, gpu.block() as usize, total);
        }
    }
}
