//! The runtime over the emulator: buffers, arenas, and injected faults.

use cuzk_kernels::runtime::{
    Arena, Call, DeviceBuffer, EmulatedRuntime, Fault, FaultyRuntime, Runtime, RuntimeError,
};
use cuzk_kernels::{Global, GlobalMut, kernel};
use std::sync::Arc;

kernel! {
    /// `z[i] = x[i] + 1` for `i < n`.
    pub fn increment(gpu, n: u32, x: Global<u32>, z: GlobalMut<u32>)
    limits { threads: 32, min_blocks: 1, registers: 32, shared: 0 }
    {
        let i = gpu.index();
        if i < n as usize {
            z.store(gpu, i, x.load(gpu, i).wrapping_add(1));
        }
    }
}

fn emulated(bytes: u64) -> (EmulatedRuntime, Arc<dyn Runtime>) {
    let device = EmulatedRuntime::new(bytes);
    (device.clone(), Arc::new(device))
}

fn incremented(runtime: &Arc<dyn Runtime>, values: &[u32]) -> Result<Vec<u32>, RuntimeError> {
    let x = DeviceBuffer::from_slice(runtime, values)?;
    let z = DeviceBuffer::<u32>::new(runtime, values.len())?;
    let blocks = values.len().div_ceil(32) as u32;
    runtime.launch(&increment::launch(
        blocks,
        values.len() as u32,
        x.global(),
        z.global_mut(),
    ))?;
    runtime.synchronize()?;
    z.to_vec()
}

#[test]
fn a_kernel_runs_on_buffers_and_nothing_stays_reserved() {
    let (device, runtime) = emulated(1 << 20);
    let values: Vec<u32> = (0..100).collect();
    let expected: Vec<u32> = (1..101).collect();
    assert_eq!(incremented(&runtime, &values).unwrap(), expected);
    assert_eq!(device.reserved(), 0);
}

#[test]
fn a_range_outside_of_a_buffer_is_refused() {
    let (_, runtime) = emulated(1 << 20);
    let buffer = DeviceBuffer::<u32>::new(&runtime, 4).unwrap();
    let error = buffer.upload(2, &[1, 2, 3]).unwrap_err();
    assert_eq!(
        error,
        RuntimeError::Range {
            call: "upload",
            from: 2,
            to: 5,
            len: 4
        }
    );
}

#[test]
fn more_memory_than_the_device_has_is_refused_with_the_numbers() {
    let (_, runtime) = emulated(1 << 10);
    let error = DeviceBuffer::<u32>::new(&runtime, 1 << 10).err();
    assert_eq!(
        error,
        Some(RuntimeError::OutOfMemory {
            wanted: 1 << 12,
            free: 1 << 10
        })
    );
}

#[test]
fn an_arena_hands_out_its_memory_again_after_a_rewind() {
    let (device, runtime) = emulated(1 << 20);
    let mut arena = Arena::new(&runtime, 1024).unwrap();
    arena.take::<u32>(64).unwrap();
    let mark = arena.mark();
    arena.take::<u64>(96).unwrap();
    assert_eq!(arena.left(), 0);
    let error = arena.take::<u32>(1).unwrap_err();
    assert_eq!(
        error,
        RuntimeError::ArenaFull {
            wanted: 256,
            left: 0,
            size: 1024
        }
    );
    arena.rewind(mark);
    assert_eq!(arena.left(), 768);
    drop(arena);
    assert_eq!(device.reserved(), 0);
}

#[test]
fn a_kernel_that_leaves_its_piece_of_an_arena_is_caught() {
    let (_, runtime) = emulated(1 << 20);
    let mut arena = Arena::new(&runtime, 1024).unwrap();
    let x = arena.take::<u32>(64).unwrap();
    let z = arena.take::<u32>(63).unwrap();
    runtime.upload(x.address(), &[0; 256]).unwrap();
    let error = runtime
        .launch(&increment::launch(2, 64, x.read(), z))
        .unwrap_err();
    assert!(
        error.to_string().contains("outside of the buffer"),
        "{error}"
    );
}

#[test]
fn every_injected_fault_is_a_typed_error_and_leaks_nothing() {
    let calls = [
        Call::Allocate,
        Call::Upload,
        Call::Launch,
        Call::Synchronize,
        Call::Download,
    ];
    for call in calls {
        for fault in [Fault::Once(call, 0), Fault::Sticky(call, 0)] {
            let (device, inner) = emulated(1 << 20);
            let faulty = Arc::new(FaultyRuntime::new(inner, fault));
            let runtime: Arc<dyn Runtime> = faulty.clone();
            assert!(incremented(&runtime, &[1, 2, 3]).is_err(), "{fault:?}");
            assert!(faulty.struck());
            assert_eq!(device.reserved(), 0, "{fault:?}");
            let again = incremented(&runtime, &[1, 2, 3]);
            assert_eq!(again.is_ok(), matches!(fault, Fault::Once(..)), "{fault:?}");
        }
    }
}

#[test]
fn a_wrong_result_is_injected_in_one_download() {
    let (_, inner) = emulated(1 << 20);
    let runtime: Arc<dyn Runtime> = Arc::new(FaultyRuntime::new(inner, Fault::WrongResult(0)));
    assert_eq!(incremented(&runtime, &[1, 2, 3]).unwrap(), [3, 3, 4]);
    assert_eq!(incremented(&runtime, &[1, 2, 3]).unwrap(), [2, 3, 4]);
}
