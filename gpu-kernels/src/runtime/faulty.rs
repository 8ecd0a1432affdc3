//! A seam for tests: a runtime whose nth call of some kind fails.

use super::{DeviceMemory, Mark, Runtime, RuntimeError};
use crate::Launch;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// Kinds of calls that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// [`Runtime::allocate`].
    Allocate,
    /// [`Runtime::upload`].
    Upload,
    /// [`Runtime::download`].
    Download,
    /// [`Runtime::zero`] and [`Runtime::copy`].
    Fill,
    /// [`Runtime::launch`].
    Launch,
    /// [`Runtime::synchronize`].
    Synchronize,
    /// [`Runtime::mark`], [`Runtime::elapsed`] and [`Runtime::wait_for`].
    Event,
}

/// Which call fails, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call with this number (from 0) fails once.
    Once(Call, u64),
    /// From the call with this number (from 0) on every call of any kind fails.
    Sticky(Call, u64),
    /// The download with this number (from 0) has one bit flipped: a silently wrong result.
    WrongResult(u64),
}

struct Shared {
    fault: Fault,
    seen: AtomicU64,
    downloads: AtomicU64,
    broken: AtomicBool,
}

/// A runtime that behaves as the wrapped one until the fault strikes. Forked streams share the count.
pub struct FaultyRuntime {
    inner: Arc<dyn Runtime>,
    shared: Arc<Shared>,
}

impl FaultyRuntime {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn Runtime>, fault: Fault) -> Self {
        let shared = Shared {
            fault,
            seen: AtomicU64::new(0),
            downloads: AtomicU64::new(0),
            broken: AtomicBool::new(false),
        };
        FaultyRuntime {
            inner,
            shared: Arc::new(shared),
        }
    }

    /// Whether the fault has struck.
    pub fn struck(&self) -> bool {
        self.shared.broken.load(SeqCst)
    }

    fn pass(&self, call: Call) -> Result<(), RuntimeError> {
        let shared = &self.shared;
        let sticky = matches!(shared.fault, Fault::Sticky(..));
        if sticky && shared.broken.load(SeqCst) {
            return Err(RuntimeError::device(
                format!("{call:?}"),
                "injected sticky fault",
            ));
        }
        let (Fault::Once(kind, number) | Fault::Sticky(kind, number)) = shared.fault else {
            return Ok(());
        };
        if kind != call || shared.seen.fetch_add(1, SeqCst) != number {
            return Ok(());
        }
        shared.broken.store(true, SeqCst);
        if call == Call::Allocate {
            return Err(RuntimeError::OutOfMemory { wanted: 0, free: 0 });
        }
        Err(RuntimeError::device(format!("{call:?}"), "injected fault"))
    }
}

impl Runtime for FaultyRuntime {
    fn name(&self) -> String {
        self.inner.name()
    }
    fn multiprocessors(&self) -> u32 {
        self.inner.multiprocessors()
    }
    fn memory(&self) -> Result<DeviceMemory, RuntimeError> {
        self.inner.memory()
    }
    fn allocate(&self, bytes: u64) -> Result<u64, RuntimeError> {
        self.pass(Call::Allocate)?;
        self.inner.allocate(bytes)
    }
    fn release(&self, address: u64) {
        self.inner.release(address);
    }
    fn carve(&self, base: u64, offset: u64, bytes: u64, element: u32) -> u64 {
        self.inner.carve(base, offset, bytes, element)
    }
    fn give_back(&self, address: u64) {
        self.inner.give_back(address);
    }
    fn upload(&self, address: u64, data: &[u8]) -> Result<(), RuntimeError> {
        self.pass(Call::Upload)?;
        self.inner.upload(address, data)
    }
    fn download(&self, address: u64, out: &mut [u8]) -> Result<(), RuntimeError> {
        self.pass(Call::Download)?;
        self.inner.download(address, out)?;
        let number = self.shared.downloads.fetch_add(1, SeqCst);
        if let (Fault::WrongResult(n), Some(byte)) = (self.shared.fault, out.first_mut())
            && n == number
        {
            self.shared.broken.store(true, SeqCst);
            *byte ^= 1;
        }
        Ok(())
    }
    fn zero(&self, address: u64, bytes: u64) -> Result<(), RuntimeError> {
        self.pass(Call::Fill)?;
        self.inner.zero(address, bytes)
    }
    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), RuntimeError> {
        self.pass(Call::Fill)?;
        self.inner.copy(to, from, bytes)
    }
    fn launch(&self, launch: &Launch) -> Result<(), RuntimeError> {
        self.pass(Call::Launch)?;
        self.inner.launch(launch)
    }
    fn synchronize(&self) -> Result<(), RuntimeError> {
        self.pass(Call::Synchronize)?;
        self.inner.synchronize()
    }
    fn mark(&self) -> Result<Mark, RuntimeError> {
        self.pass(Call::Event)?;
        self.inner.mark()
    }
    fn elapsed(&self, from: &Mark, to: &Mark) -> Result<Duration, RuntimeError> {
        self.pass(Call::Event)?;
        self.inner.elapsed(from, to)
    }
    fn wait_for(&self, mark: &Mark) -> Result<(), RuntimeError> {
        self.pass(Call::Event)?;
        self.inner.wait_for(mark)
    }
    fn fork(&self) -> Result<Arc<dyn Runtime>, RuntimeError> {
        Ok(Arc::new(FaultyRuntime {
            inner: self.inner.fork()?,
            shared: self.shared.clone(),
        }))
    }
}
