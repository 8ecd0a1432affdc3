//! Executes the PTX that ships on the CPU: the arithmetic that reaches a card, tested as it is.
//!
//! An [`Interpreter`] is a runtime, so that every sequence of launches that runs on a card runs on it. It
//! knows the instructions that our kernels use, checks bounds and alignment, and stops at traps and at
//! barriers that not all threads reach. Memory that nobody wrote holds a pattern, not zeros.
mod machine;
mod parse;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::runtime::{DeviceMemory, Mark, Runtime, RuntimeError};
use crate::{ImageError, Launch, shipped};
use machine::{Memory, Shape};
use parse::Entry;

/// Executes the PTX that ships.
#[derive(Clone)]
pub struct Interpreter {
    module: Arc<str>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    memory: Memory,
    next: u64,
    entries: HashMap<&'static str, Arc<Entry>>,
}

impl Interpreter {
    /// The interpreter of the shipped module.
    ///
    /// # Errors
    /// When the shipped file is damaged.
    pub fn new() -> Result<Self, ImageError> {
        let image = shipped::ptx((8, 0))?;
        let text = String::from_utf8_lossy(&image);
        Ok(Self {
            module: text.trim_end_matches('\0').into(),
            state: Arc::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, name: &'static str) -> Result<Arc<Entry>, RuntimeError> {
        if let Some(entry) = self.state().entries.get(name) {
            return Ok(entry.clone());
        }
        let entry = parse::entry(&self.module, name).map_err(|e| RuntimeError::device(name, e))?;
        let entry = Arc::new(entry);
        self.state().entries.insert(name, entry.clone());
        Ok(entry)
    }
}

fn failed(call: &'static str) -> impl Fn(String) -> RuntimeError {
    move |error| RuntimeError::device(call, error)
}

impl Runtime for Interpreter {
    fn name(&self) -> String {
        "PTX interpreter".into()
    }
    fn multiprocessors(&self) -> u32 {
        1
    }
    fn memory(&self) -> Result<DeviceMemory, RuntimeError> {
        Ok(DeviceMemory {
            free: 1 << 30,
            total: 1 << 30,
        })
    }
    fn allocate(&self, bytes: u64) -> Result<u64, RuntimeError> {
        let mut state = self.state();
        state.next += 1 << 40;
        let address = state.next;
        state
            .memory
            .buffers
            .insert(address, vec![0xcd; bytes as usize]);
        Ok(address)
    }
    fn release(&self, address: u64) {
        self.state().memory.buffers.remove(&address);
    }
    fn upload(&self, address: u64, data: &[u8]) -> Result<(), RuntimeError> {
        let mut state = self.state();
        let place = state
            .memory
            .bytes(address, data.len())
            .map_err(failed("upload"))?;
        place.copy_from_slice(data);
        Ok(())
    }
    fn download(&self, address: u64, out: &mut [u8]) -> Result<(), RuntimeError> {
        let mut state = self.state();
        out.copy_from_slice(
            state
                .memory
                .bytes(address, out.len())
                .map_err(failed("download"))?,
        );
        Ok(())
    }
    fn zero(&self, address: u64, bytes: u64) -> Result<(), RuntimeError> {
        let mut state = self.state();
        state
            .memory
            .bytes(address, bytes as usize)
            .map_err(failed("zero"))?
            .fill(0);
        Ok(())
    }
    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), RuntimeError> {
        let mut state = self.state();
        let data = state
            .memory
            .bytes(from, bytes as usize)
            .map_err(failed("copy"))?
            .to_vec();
        state
            .memory
            .bytes(to, bytes as usize)
            .map_err(failed("copy"))?
            .copy_from_slice(&data);
        Ok(())
    }
    fn launch(&self, launch: &Launch) -> Result<(), RuntimeError> {
        let kernel = launch.kernel;
        let entry = self.entry(kernel.name)?;
        let wide = |bytes: &[u8]| {
            bytes
                .iter()
                .rev()
                .fold(0, |value, byte| value << 8 | u64::from(*byte))
        };
        let parameters: Vec<u64> = launch.arguments.iter().map(|a| wide(a.bytes())).collect();
        let shape = Shape {
            blocks: (launch.grid.x, launch.grid.y),
            shared: kernel.shared,
        };
        machine::run(&entry, &parameters, shape, &mut self.state().memory)
            .map_err(failed(kernel.name))
    }
    fn synchronize(&self) -> Result<(), RuntimeError> {
        Ok(())
    }
    fn mark(&self) -> Result<Mark, RuntimeError> {
        Ok(Mark::new(Instant::now()))
    }
    fn elapsed(&self, _from: &Mark, _to: &Mark) -> Result<Duration, RuntimeError> {
        Ok(Duration::ZERO)
    }
    fn wait_for(&self, _mark: &Mark) -> Result<(), RuntimeError> {
        Ok(())
    }
    fn fork(&self) -> Result<Arc<dyn Runtime>, RuntimeError> {
        Ok(Arc::new(self.clone()))
    }
}
