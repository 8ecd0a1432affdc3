//! A kernel of one's own beside the library's, in one sequence of launches: on the emulator here, which checks bounds,
//! uninitialised reads and races; on a card through any other [`Runtime`] once `cargo xtask kernels` has compiled it.
use std::{error::Error, sync::Arc};

use cuzk_field::Fr;
use cuzk_kernels::ntt::ntt_multiply;
use cuzk_kernels::runtime::{DeviceBuffer, EmulatedRuntime, Runtime};
use cuzk_kernels::{Global, GlobalMut, kernel};

kernel! {
    /// `violations[0]` becomes the number of i < n with `a[i]·b[i] ≠ c[i]`, where `ab` holds the products and
    /// `violations[0]` is zero before. One thread a row.
    pub fn count_violations(gpu, n: u32, ab: Global<Fr>, c: Global<Fr>, violations: GlobalMut<u32>)
    limits { threads: 128, min_blocks: 4, registers: 64, shared: 0 }
    {
        let i = gpu.index();
        let wrong = i < n as usize && ab.load(gpu, i) != c.load(gpu, i);
        let in_warp = gpu.ballot(wrong).count_ones();
        if gpu.lane() == 0 && in_warp > 0 {
            violations.atomic_add(gpu, 0, in_warp);
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let device: Arc<dyn Runtime> = Arc::new(EmulatedRuntime::new(1 << 20));
    let n = 300u32;
    let value = |i: u32| Fr::from_limbs([i, 7, 0, 0, 0, 0, 0, 0]);
    let a: Vec<Fr> = (0..n).map(value).collect();
    let b: Vec<Fr> = (0..n).map(|i| value(i + 1000)).collect();
    let mut c: Vec<Fr> = a.iter().zip(&b).map(|(a, b)| a.mul(b)).collect();
    c[13] = c[14];
    c[200] = c[0];

    let [a, b, c] = [
        DeviceBuffer::from_slice(&device, &a)?,
        DeviceBuffer::from_slice(&device, &b)?,
        DeviceBuffer::from_slice(&device, &c)?,
    ];
    let violations = DeviceBuffer::from_slice(&device, &[0u32])?;

    // The library's kernel, then one's own: commands of one runtime run in order.
    let blocks = n.div_ceil(ntt_multiply::THREADS);
    let multiply = ntt_multiply::launch(blocks, n, a.global(), b.global(), a.global_mut());
    device.launch(&multiply)?;
    let blocks = n.div_ceil(count_violations::THREADS);
    let count =
        count_violations::launch(blocks, n, a.global(), c.global(), violations.global_mut());
    device.launch(&count)?;

    let found = violations.to_vec()?[0];
    println!("{found} of {n} rows are violated");
    assert_eq!(found, 2);
    Ok(())
}
