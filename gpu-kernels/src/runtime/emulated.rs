//! The emulator as a runtime: what CI runs in place of a card.

use super::{DeviceMemory, Mark, Runtime, RuntimeError};
use crate::{Emulator, EmulatorError, Launch};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An emulated device of a given memory size. All its streams run at once and in order.
///
/// Each piece that an [`Arena`](super::Arena) hands out is a buffer of its own here, so that a kernel
/// which leaves its piece, or reads what nobody wrote since, is caught.
#[derive(Clone)]
pub struct EmulatedRuntime {
    device: Arc<Mutex<Device>>,
}

struct Device {
    emulator: Emulator,
    total: u64,
    /// Size of each buffer that counts towards the device's memory.
    live: BTreeMap<u64, u64>,
    launches: u64,
    most_reserved: u64,
}

impl EmulatedRuntime {
    /// A device with `total` bytes of memory.
    pub fn new(total: u64) -> Self {
        let device = Device {
            emulator: Emulator::new(),
            total,
            live: BTreeMap::new(),
            launches: 0,
            most_reserved: 0,
        };
        EmulatedRuntime {
            device: Arc::new(Mutex::new(device)),
        }
    }

    /// Bytes reserved at this moment: 0 when nothing leaks.
    pub fn reserved(&self) -> u64 {
        self.device().live.values().sum()
    }

    /// The most bytes that were reserved at any moment.
    pub fn most_reserved(&self) -> u64 {
        self.device().most_reserved
    }

    /// Launches so far.
    pub fn launches(&self) -> u64 {
        self.device().launches
    }

    fn device(&self) -> MutexGuard<'_, Device> {
        // A panic of a kernel is caught by the emulator; the state stays usable.
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(call: &str) -> impl Fn(EmulatorError) -> RuntimeError + '_ {
    move |error| RuntimeError::device(call, error)
}

impl Runtime for EmulatedRuntime {
    fn name(&self) -> String {
        "emulator".into()
    }
    fn multiprocessors(&self) -> u32 {
        2
    }
    fn memory(&self) -> Result<DeviceMemory, RuntimeError> {
        let device = self.device();
        let used: u64 = device.live.values().sum();
        Ok(DeviceMemory {
            free: device.total.saturating_sub(used),
            total: device.total,
        })
    }
    fn allocate(&self, bytes: u64) -> Result<u64, RuntimeError> {
        let free = self.memory()?.free;
        if bytes > free {
            return Err(RuntimeError::OutOfMemory {
                wanted: bytes,
                free,
            });
        }
        let mut device = self.device();
        let address = device.emulator.allocate_bytes(bytes as usize, 4);
        device.live.insert(address, bytes);
        device.most_reserved = device.most_reserved.max(device.live.values().sum());
        Ok(address)
    }
    fn release(&self, address: u64) {
        let mut device = self.device();
        device.live.remove(&address);
        device.emulator.release_bytes(address);
    }
    fn carve(&self, _base: u64, _offset: u64, bytes: u64, element: u32) -> u64 {
        self.device()
            .emulator
            .allocate_bytes(bytes as usize, element)
    }
    fn give_back(&self, address: u64) {
        self.device().emulator.release_bytes(address);
    }
    fn upload(&self, address: u64, data: &[u8]) -> Result<(), RuntimeError> {
        self.device()
            .emulator
            .write_bytes(address, data)
            .map_err(failed("upload"))
    }
    fn download(&self, address: u64, out: &mut [u8]) -> Result<(), RuntimeError> {
        self.device()
            .emulator
            .read_bytes(address, out)
            .map_err(failed("download"))
    }
    fn zero(&self, address: u64, bytes: u64) -> Result<(), RuntimeError> {
        let zeros = vec![0; bytes as usize];
        self.device()
            .emulator
            .write_bytes(address, &zeros)
            .map_err(failed("zero"))
    }
    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), RuntimeError> {
        let mut between = vec![0; bytes as usize];
        let mut device = self.device();
        device
            .emulator
            .read_bytes(from, &mut between)
            .map_err(failed("copy"))?;
        device
            .emulator
            .write_bytes(to, &between)
            .map_err(failed("copy"))
    }
    fn launch(&self, launch: &Launch) -> Result<(), RuntimeError> {
        let mut device = self.device();
        device.launches += 1;
        device
            .emulator
            .run(launch)
            .map_err(failed(launch.kernel.name))
    }
    fn synchronize(&self) -> Result<(), RuntimeError> {
        Ok(())
    }
    fn mark(&self) -> Result<Mark, RuntimeError> {
        Ok(Mark::new(Instant::now()))
    }
    fn elapsed(&self, from: &Mark, to: &Mark) -> Result<Duration, RuntimeError> {
        let (Some(from), Some(to)) = (from.event::<Instant>(), to.event::<Instant>()) else {
            return Err(RuntimeError::device(
                "elapsed",
                "the mark belongs to another runtime",
            ));
        };
        Ok(to.saturating_duration_since(*from))
    }
    fn wait_for(&self, _mark: &Mark) -> Result<(), RuntimeError> {
        Ok(())
    }
    fn fork(&self) -> Result<Arc<dyn Runtime>, RuntimeError> {
        Ok(Arc::new(self.clone()))
    }
}
