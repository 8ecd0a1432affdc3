//! Runs the threads of a block as coroutines and the blocks of a grid one after the other.
use std::cell::{Cell, RefCell};
use std::panic::AssertUnwindSafe;
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use super::access::{Fault, SharedMemory};
use super::error::EmulatorError;
use super::memory::GlobalMemory;
use super::thread::Thread;
use crate::{Grid, Kernel, Launch};

/// Stack of an emulated thread; pages are only committed when touched.
const STACK_BYTES: usize = 512 << 10;

/// Why a thread gave up the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Barrier,
    Warp(WarpOperation),
    Fault,
}

/// What a lane does together with its warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpOperation {
    Barrier,
    Shuffle,
    ShuffleXor,
    ShuffleUp,
    ShuffleDown,
    Ballot,
    MatchAny,
    Sum,
}

impl WarpOperation {
    fn describe(self) -> &'static str {
        match self {
            WarpOperation::Barrier => "waits at a warp barrier",
            WarpOperation::Shuffle => "waits in shuffle",
            WarpOperation::ShuffleXor => "waits in shuffle_xor",
            WarpOperation::ShuffleUp => "waits in shuffle_up",
            WarpOperation::ShuffleDown => "waits in shuffle_down",
            WarpOperation::Ballot => "waits in ballot",
            WarpOperation::MatchAny => "waits in match_any",
            WarpOperation::Sum => "waits in warp_sum",
        }
    }
}

/// What the threads of the running block share.
pub struct Block {
    pub threads: u32,
    pub grid: Grid,
    pub x: Cell<u32>,
    pub y: Cell<u32>,
    /// Barriers passed.
    pub barriers: Cell<u32>,
    /// Each thread's operand of a warp operation.
    pub offers: Vec<Cell<u32>>,
    /// Each warp's operands of the last complete warp operation.
    pub exchanged: Vec<Cell<[u32; 32]>>,
    pub memory: RefCell<GlobalMemory>,
    pub shared: RefCell<SharedMemory>,
    pub fault: RefCell<Option<(u32, Fault)>>,
}

impl Block {
    fn new(kernel: &Kernel, grid: Grid, memory: GlobalMemory) -> Self {
        let threads = kernel.threads as usize;
        Self {
            threads: kernel.threads,
            grid,
            x: Cell::new(0),
            y: Cell::new(0),
            barriers: Cell::new(0),
            offers: (0..threads).map(|_| Cell::new(0)).collect(),
            exchanged: (0..threads.div_ceil(32))
                .map(|_| Cell::new([0; 32]))
                .collect(),
            memory: RefCell::new(memory),
            shared: RefCell::new(SharedMemory::new(kernel.shared)),
            fault: RefCell::new(None),
        }
    }

    /// Number of the block in the grid.
    pub fn linear(&self) -> u32 {
        self.y
            .get()
            .wrapping_mul(self.grid.x)
            .wrapping_add(self.x.get())
    }
}

type Routine = Coroutine<(), Stop, ()>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Waits(Stop),
    Ended,
}

impl State {
    fn describe(self) -> &'static str {
        match self {
            State::Ready => "runs",
            State::Waits(Stop::Barrier) => "waits at a barrier",
            State::Waits(Stop::Warp(operation)) => operation.describe(),
            State::Waits(Stop::Fault) => "failed",
            State::Ended => "has ended",
        }
    }
}

/// Runs a launch on `memory`.
pub fn run(memory: &mut GlobalMemory, launch: &Launch) -> Result<(), EmulatorError> {
    let (kernel, grid) = (launch.kernel, launch.grid);
    if grid.x == 0 || grid.y == 0 || grid.x > i32::MAX as u32 || grid.y > u16::MAX as u32 {
        return Err(EmulatorError::Grid {
            kernel: kernel.name,
            x: grid.x,
            y: grid.y,
        });
    }
    memory.begin_launch();
    let launch = Rc::new(launch.clone());
    let block = Rc::new(Block::new(kernel, grid, std::mem::take(memory)));
    let mut stacks = Vec::new();
    let mut result = Ok(());
    'grid: for y in 0..grid.y {
        for x in 0..grid.x {
            block.x.set(x);
            block.y.set(y);
            result = run_block(&block, &launch, &mut stacks);
            if result.is_err() {
                break 'grid;
            }
        }
    }
    *memory = block.memory.take();
    result
}

fn run_block(
    block: &Rc<Block>,
    launch: &Rc<Launch>,
    stacks: &mut Vec<DefaultStack>,
) -> Result<(), EmulatorError> {
    block.barriers.set(0);
    block.shared.borrow_mut().begin_block();
    let mut routines = Vec::with_capacity(block.threads as usize);
    for thread in 0..block.threads {
        let stack = match stacks.pop() {
            Some(stack) => stack,
            None => DefaultStack::new(STACK_BYTES).map_err(|error| EmulatorError::Stack {
                message: error.to_string(),
            })?,
        };
        routines.push(start(block.clone(), launch.clone(), thread, stack));
    }
    let mut states = vec![State::Ready; routines.len()];
    while states.iter().any(|state| *state != State::Ended) {
        let progress = step(block, launch.kernel, &mut routines, &mut states)?;
        if !release(block, &mut states) && !progress {
            return Err(stuck(block, launch.kernel, &states));
        }
    }
    stacks.extend(routines.into_iter().map(Routine::into_stack));
    Ok(())
}

fn start(block: Rc<Block>, launch: Rc<Launch>, index: u32, stack: DefaultStack) -> Routine {
    Coroutine::with_stack(stack, move |yielder, ()| {
        let warp_barriers = Cell::new(0);
        let thread = Thread {
            block: &block,
            index,
            yielder,
            warp_barriers: &warp_barriers,
        };
        (launch.kernel.emulate)(thread, &launch.arguments);
    })
}

/// Runs every ready thread until it stops. Returns whether any ran.
fn step(
    block: &Block,
    kernel: &Kernel,
    routines: &mut [Routine],
    states: &mut [State],
) -> Result<bool, EmulatorError> {
    let mut progress = false;
    for (thread, (routine, state)) in routines.iter_mut().zip(states).enumerate() {
        if *state != State::Ready {
            continue;
        }
        progress = true;
        // A panic unwinds through the coroutine to here; its stack is then done.
        *state = match std::panic::catch_unwind(AssertUnwindSafe(|| routine.resume(()))) {
            Ok(CoroutineResult::Yield(Stop::Fault)) => return Err(access_error(block, kernel)),
            Ok(CoroutineResult::Yield(stop)) => State::Waits(stop),
            Ok(CoroutineResult::Return(())) => State::Ended,
            Err(payload) => {
                let message = panic_message(payload.as_ref());
                return Err(EmulatorError::Panic {
                    kernel: kernel.name,
                    block: block.x.get(),
                    block_y: block.y.get(),
                    thread: thread as u32,
                    message,
                });
            }
        };
    }
    Ok(progress)
}

fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    if let Some(message) = payload.downcast_ref::<&str>() {
        (*message).to_string()
    } else if let Some(message) = payload.downcast_ref::<String>() {
        message.clone()
    } else {
        "no message".to_string()
    }
}

/// Lets complete warps and a complete block go on. Returns whether any did.
fn release(block: &Block, states: &mut [State]) -> bool {
    let mut released = false;
    for (warp, lanes) in states.chunks_mut(32).enumerate() {
        let State::Waits(Stop::Warp(operation)) = lanes[0] else {
            continue;
        };
        if lanes.len() == 32
            && lanes
                .iter()
                .all(|lane| *lane == State::Waits(Stop::Warp(operation)))
        {
            block.exchanged[warp].set(std::array::from_fn(|lane| {
                block.offers[warp * 32 + lane].get()
            }));
            lanes.fill(State::Ready);
            released = true;
        }
    }
    if states
        .iter()
        .all(|state| *state == State::Waits(Stop::Barrier))
    {
        block.barriers.set(block.barriers.get() + 1);
        states.fill(State::Ready);
        released = true;
    }
    released
}

fn access_error(block: &Block, kernel: &Kernel) -> EmulatorError {
    let Some((thread, fault)) = block.fault.take() else {
        return EmulatorError::Panic {
            kernel: kernel.name,
            block: block.x.get(),
            block_y: block.y.get(),
            thread: 0,
            message: "a thread stopped without a reason".to_string(),
        };
    };
    EmulatorError::Access {
        kernel: kernel.name,
        block: block.x.get(),
        block_y: block.y.get(),
        thread,
        operation: fault.kind.name(),
        bytes: fault.bytes,
        space: fault.space,
        buffer: fault.buffer,
        offset: fault.offset,
        error: fault.error,
    }
}

fn stuck(block: &Block, kernel: &Kernel, states: &[State]) -> EmulatorError {
    let first = states
        .iter()
        .position(|state| *state != State::Ended)
        .unwrap_or(0);
    // Prefer a partner of the same warp that does something else.
    let warp = first / 32 * 32..(first / 32 * 32 + 32).min(states.len());
    let differs = |i: &usize| states[*i] != states[first];
    let second = warp
        .clone()
        .find(differs)
        .or_else(|| (0..states.len()).find(differs))
        .unwrap_or(first);
    EmulatorError::Divergence {
        kernel: kernel.name,
        block: block.x.get(),
        block_y: block.y.get(),
        first: first as u32,
        first_at: states[first].describe(),
        second: second as u32,
        second_at: states[second].describe(),
    }
}
