//! The emulator runs right kernels and reports wrong ones.
use cuzk_kernels::emulator::{AccessError, Space};
use cuzk_kernels::{
    AtomicOp, Cache, Emulator, EmulatorError, Global, GlobalMut, Shared, examples, kernel,
};

kernel! {
    /// Reverses a block through shared memory without the barrier that it needs.
    pub fn racy_reverse(gpu, x: Global<u32>, z: GlobalMut<u32>)
    limits { threads: 64, min_blocks: 1, registers: 32, shared: 256 }
    {
        let tile = Shared::<u32>::new(gpu, 0);
        let t = gpu.thread();
        tile.store(gpu, t, 0);
        gpu.barrier();
        tile.store(gpu, t, x.load(gpu, t as usize));
        z.store(gpu, t as usize, tile.load(gpu, 63 - t));
    }

    /// Reverses a block through shared memory.
    pub fn reverse(gpu, x: Global<u32>, z: GlobalMut<u32>)
    limits { threads: 64, min_blocks: 1, registers: 32, shared: 256 }
    {
        let tile = Shared::<u32>::new(gpu, 0);
        let t = gpu.thread();
        tile.store(gpu, t, x.load(gpu, t as usize));
        gpu.barrier();
        z.store(gpu, t as usize, tile.load(gpu, 63 - t));
    }

    /// Every block writes the same word.
    pub fn racy_blocks(gpu, z: GlobalMut<u32>)
    limits { threads: 32, min_blocks: 1, registers: 32, shared: 0 }
    {
        if gpu.thread() == 0 {
            z.store(gpu, 0, gpu.block());
        }
    }

    /// Lanes read each other's words after a warp barrier; `broken` leaves the barrier out.
    pub fn warp_exchange(gpu, broken: u32, z: GlobalMut<u32>)
    limits { threads: 64, min_blocks: 1, registers: 32, shared: 256 }
    {
        let tile = Shared::<u32>::new(gpu, 0);
        let t = gpu.thread();
        tile.store(gpu, t, t);
        if broken == 0 {
            gpu.warp_barrier();
        } else {
            gpu.ballot(true);
        }
        z.store(gpu, t as usize, tile.load(gpu, t ^ 1));
    }

    /// Half of the threads skip the barrier.
    pub fn half_barrier(gpu)
    limits { threads: 64, min_blocks: 1, registers: 32, shared: 0 }
    {
        if gpu.thread() < 32 {
            gpu.barrier();
        }
    }

    /// Half of a warp shuffles, the other half votes.
    pub fn split_warp(gpu, z: GlobalMut<u32>)
    limits { threads: 32, min_blocks: 1, registers: 32, shared: 0 }
    {
        let v = if gpu.thread() < 16 { gpu.shuffle_xor(1, 1) } else { gpu.ballot(true) };
        z.store(gpu, gpu.thread() as usize, v);
    }

    /// Reads `x[at]` in each thread.
    pub fn read_at(gpu, at: u32, x: Global<u64>, z: GlobalMut<u64>)
    limits { threads: 32, min_blocks: 1, registers: 32, shared: 0 }
    {
        z.store(gpu, gpu.thread() as usize, x.load(gpu, at as usize));
    }

    /// Reads shared memory that nobody wrote.
    pub fn read_undefined(gpu, z: GlobalMut<u32>)
    limits { threads: 32, min_blocks: 1, registers: 32, shared: 128 }
    {
        z.store(gpu, gpu.thread() as usize, Shared::<u32>::new(gpu, 0).load(gpu, gpu.thread()));
    }

    /// Reads a 16-byte vector at an address that is a multiple of 8 only.
    pub fn misaligned(gpu, x: Global<u64>, z: GlobalMut<u32>)
    limits { threads: 32, min_blocks: 1, registers: 32, shared: 0 }
    {
        let v = x.offset(1).cast::<[u32; 4]>().load(gpu, 0);
        z.store(gpu, gpu.thread() as usize, v[0]);
    }

    /// Panics in thread 5 of block 1.
    pub fn panics(gpu, limit: u32)
    limits { threads: 32, min_blocks: 1, registers: 32, shared: 0 }
    {
        assert!(gpu.index() as u32 != limit, "thread {limit}");
    }

    /// Every warp operation once, one result word a lane and operation.
    pub fn warp_operations(gpu, z: GlobalMut<u32>)
    limits { threads: 32, min_blocks: 1, registers: 32, shared: 0 }
    {
        let lane = gpu.lane();
        let results = [
            gpu.shuffle(lane * 10, lane + 1),
            gpu.shuffle_xor(lane, 3),
            gpu.shuffle_up(lane, 2),
            gpu.shuffle_down(lane, 2),
            gpu.ballot(lane.is_multiple_of(3)),
            gpu.match_any(lane / 4),
            gpu.warp_sum(lane),
        ];
        let mut i = 0;
        while i < 7 {
            z.store(gpu, i * 32 + lane as usize, results[i]);
            i += 1;
        }
    }

    /// A histogram with atomics in shared and global memory.
    pub fn histogram(gpu, n: u32, x: Global<u8>, counts: GlobalMut<u32>)
    limits { threads: 64, min_blocks: 1, registers: 32, shared: 1024 }
    {
        let local = Shared::<u32>::new(gpu, 0);
        let mut k = gpu.thread();
        while k < 256 {
            local.store(gpu, k, 0);
            k += THREADS;
        }
        gpu.barrier();
        if gpu.index() < n as usize {
            local.atomic_add(gpu, x.load(gpu, gpu.index()) as u32, 1);
        }
        gpu.barrier();
        let mut k = gpu.thread();
        while k < 256 {
            counts.atomic(gpu, AtomicOp::Add, k as usize, local.load(gpu, k));
            k += THREADS;
        }
    }

    /// Neighbouring threads own neighbouring bytes of shared memory and halves of a word.
    pub fn small_words(gpu, z: GlobalMut<u16>)
    limits { threads: 32, min_blocks: 1, registers: 32, shared: 32 }
    {
        let bytes = Shared::<u8>::new(gpu, 0);
        bytes.store(gpu, gpu.thread(), gpu.thread() as u8);
        z.store(gpu, gpu.index(), bytes.load(gpu, gpu.thread()) as u16 + 256 * gpu.block() as u16);
    }

    /// The last block to finish adds what the others left behind.
    pub fn last_block(gpu, parts: GlobalMut<u32>, done: GlobalMut<u32>, total: GlobalMut<u32>)
    limits { threads: 32, min_blocks: 1, registers: 32, shared: 0 }
    {
        if gpu.thread() == 0 {
            parts.store_with(gpu, gpu.block() as usize, gpu.block() + 1, Cache::Relaxed);
            gpu.fence_device();
            if done.atomic_add(gpu, 0, 1) == gpu.blocks() - 1 {
                gpu.fence_device();
                let mut sum = 0;
                let mut i = 0;
                while i < gpu.blocks() {
                    sum += parts.load_with(gpu, i as usize, Cache::Relaxed);
                    i += 1;
                }
                total.store(gpu, 0, sum);
            }
        }
    }
}

fn access_error(result: Result<(), EmulatorError>) -> (Space, AccessError) {
    match result {
        Err(EmulatorError::Access { space, error, .. }) => (space, error),
        other => panic!("expected an access error, got {other:?}"),
    }
}

#[test]
fn a_missing_barrier_is_reported_as_a_race_and_the_repaired_kernel_runs() {
    let mut emulator = Emulator::new();
    let x = emulator.upload(&(0..64).collect::<Vec<u32>>());
    let z = emulator.alloc::<u32>(64);
    let (space, error) =
        access_error(emulator.run(&racy_reverse::launch(1, x.global(), z.global_mut())));
    assert_eq!(space, Space::Shared);
    assert!(matches!(error, AccessError::Race { .. }), "{error}");
    emulator
        .run(&reverse::launch(1, x.global(), z.global_mut()))
        .unwrap();
    assert_eq!(
        emulator.download(&z).unwrap(),
        (0..64).rev().collect::<Vec<u32>>()
    );
}

#[test]
fn blocks_that_write_the_same_word_race() {
    let mut emulator = Emulator::new();
    let z = emulator.alloc::<u32>(1);
    let result = emulator.run(&racy_blocks::launch(2, z.global_mut()));
    let text = result.clone().unwrap_err().to_string();
    assert_eq!(
        text,
        "racy_blocks: block (1, 0) thread 0: store of 4 bytes of global memory, buffer 0, byte 0: \
         races with block 0 thread 0"
    );
    emulator
        .run(&racy_blocks::launch(1, z.global_mut()))
        .unwrap();
}

#[test]
fn a_warp_barrier_orders_lanes_and_a_vote_does_not() {
    let mut emulator = Emulator::new();
    let z = emulator.alloc::<u32>(64);
    emulator
        .run(&warp_exchange::launch(1, 0, z.global_mut()))
        .unwrap();
    assert_eq!(emulator.download(&z).unwrap()[..4], [1, 0, 3, 2]);
    let (space, error) = access_error(emulator.run(&warp_exchange::launch(1, 1, z.global_mut())));
    assert!(
        space == Space::Shared && matches!(error, AccessError::Race { .. }),
        "{error}"
    );
}

#[test]
fn threads_that_wait_at_different_places_are_reported() {
    let mut emulator = Emulator::new();
    let error = emulator.run(&half_barrier::launch(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "half_barrier: block (0, 0) is stuck: thread 0 waits at a barrier, thread 32 has ended"
    );
    let z = emulator.alloc::<u32>(32);
    let error = emulator
        .run(&split_warp::launch(1, z.global_mut()))
        .unwrap_err();
    assert!(
        matches!(
            error,
            EmulatorError::Divergence {
                first: 0,
                second: 16,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn wrong_addresses_are_reported() {
    let mut emulator = Emulator::new();
    let x = emulator.upload(&[7u64; 4]);
    let z = emulator.alloc::<u64>(32);
    emulator
        .run(&read_at::launch(1, 3, x.global(), z.global_mut()))
        .unwrap();
    let (_, error) = access_error(emulator.run(&read_at::launch(1, 4, x.global(), z.global_mut())));
    assert_eq!(error, AccessError::OutOfBounds { len: 32 });
    let nowhere = Global::at_address(64);
    let (_, error) = access_error(emulator.run(&read_at::launch(1, 0, nowhere, z.global_mut())));
    assert_eq!(error, AccessError::OutOfBounds { len: 0 });
    let words = emulator.alloc::<u32>(32);
    let (_, error) =
        access_error(emulator.run(&misaligned::launch(1, x.global(), words.global_mut())));
    assert_eq!(error, AccessError::Unaligned { bytes: 16 });
}

#[test]
fn undefined_contents_are_reported() {
    let mut emulator = Emulator::new();
    let z = emulator.alloc::<u32>(32);
    let (space, error) = access_error(emulator.run(&read_undefined::launch(1, z.global_mut())));
    assert_eq!((space, error), (Space::Shared, AccessError::Uninitialised));
    let unwritten = emulator.alloc::<u64>(4);
    let out = emulator.alloc::<u64>(32);
    let (space, error) =
        access_error(emulator.run(&read_at::launch(1, 0, unwritten.global(), out.global_mut())));
    assert_eq!((space, error), (Space::Global, AccessError::Uninitialised));
    assert_eq!(
        emulator.download(&unwritten),
        Err(EmulatorError::Unwritten { element: 0 })
    );
}

#[test]
fn a_panic_names_the_thread() {
    let mut emulator = Emulator::new();
    let error = emulator.run(&panics::launch(2, 37)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "panics: block (1, 0) thread 5 panicked: thread 37"
    );
    assert!(matches!(
        emulator.run(&panics::launch(0, 0)),
        Err(EmulatorError::Grid { .. })
    ));
}

#[test]
fn warp_operations_follow_their_definitions() {
    let mut emulator = Emulator::new();
    let z = emulator.alloc::<u32>(7 * 32);
    emulator
        .run(&warp_operations::launch(1, z.global_mut()))
        .unwrap();
    let got = emulator.download(&z).unwrap();
    for lane in 0..32u32 {
        let expected = [
            (lane + 1) % 32 * 10,
            lane ^ 3,
            if lane < 2 { lane } else { lane - 2 },
            if lane > 29 { lane } else { lane + 2 },
            (0..32).filter(|i| i % 3 == 0).map(|i| 1 << i).sum(),
            0xf << (lane / 4 * 4),
            31 * 16,
        ];
        for (operation, value) in expected.into_iter().enumerate() {
            assert_eq!(
                got[operation * 32 + lane as usize],
                value,
                "operation {operation} lane {lane}"
            );
        }
    }
}

#[test]
fn atomics_count_across_threads_and_blocks() {
    let mut emulator = Emulator::new();
    let bytes: Vec<u8> = (0..1000u32).map(|i| (i * i % 251) as u8).collect();
    let x = emulator.upload(&bytes);
    let counts = emulator.alloc_zeroed::<u32>(256);
    emulator
        .run(&histogram::launch(
            16,
            1000,
            x.global(),
            counts.global_mut(),
        ))
        .unwrap();
    let mut expected = vec![0u32; 256];
    bytes.iter().for_each(|b| expected[*b as usize] += 1);
    assert_eq!(emulator.download(&counts).unwrap(), expected);
}

#[test]
fn bytes_of_one_word_belong_to_different_threads() {
    let mut emulator = Emulator::new();
    let z = emulator.alloc::<u16>(64);
    emulator
        .run(&small_words::launch(2, z.global_mut()))
        .unwrap();
    assert_eq!(emulator.download(&z).unwrap()[31..34], [31, 256, 257]);
}

#[test]
fn relaxed_accesses_carry_values_between_blocks() {
    let mut emulator = Emulator::new();
    let (parts, total) = (emulator.alloc::<u32>(10), emulator.alloc::<u32>(1));
    let done = emulator.alloc_zeroed::<u32>(1);
    emulator
        .run(&last_block::launch(
            10,
            parts.global_mut(),
            done.global_mut(),
            total.global_mut(),
        ))
        .unwrap();
    assert_eq!(emulator.download(&total).unwrap(), [55]);
}

#[test]
fn a_block_sum_adds_every_element_once() {
    let mut emulator = Emulator::new();
    for n in [0, 1, 31, 32, 255, 256, 257, 1000] {
        let values: Vec<u32> = (0..n).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect();
        let blocks = n.div_ceil(256).max(1);
        let (x, sums) = (
            emulator.upload(&values),
            emulator.alloc::<u32>(blocks as usize),
        );
        emulator
            .run(&examples::block_sum::launch(
                blocks,
                n,
                x.global(),
                sums.global_mut(),
            ))
            .unwrap();
        let total = emulator
            .download(&sums)
            .unwrap()
            .into_iter()
            .fold(0u32, u32::wrapping_add);
        assert_eq!(
            total,
            values.iter().fold(0u32, |a, b| a.wrapping_add(*b)),
            "n = {n}"
        );
    }
}
