//! One stream of a CUDA device as the kernels' [`Runtime`].

use super::{failed, pinned::Staging};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, result, sys};
use cuzk_kernels::runtime::{DeviceMemory, Mark, Runtime, RuntimeError};
use cuzk_kernels::{Kernel, Launch};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Copies of up to this many bytes go straight to the driver.
const SMALL: usize = 64 << 10;
/// Shared memory that a block may take without being asked for.
const DEFAULT_SHARED: u32 = 48 << 10;

/// What is known about a device before it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The driver's ordinal.
    pub ordinal: usize,
    /// Such as "NVIDIA H200".
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Highest clock of the multiprocessors.
    pub clock_mhz: u32,
    /// Device memory in bytes.
    pub memory: u64,
}

/// One stream of a CUDA device. Forked streams share the context, the kernels and nothing else.
pub struct CudaRuntime {
    device: Arc<Device>,
    stream: Arc<CudaStream>,
    staging: Mutex<Option<Staging>>,
}

struct Device {
    info: DeviceInfo,
    context: Arc<CudaContext>,
    module: Module,
}

struct Module {
    context: Arc<CudaContext>,
    handle: sys::CUmodule,
    functions: Mutex<HashMap<&'static str, Function>>,
}

#[derive(Clone, Copy)]
struct Function(sys::CUfunction);

// SAFETY: a module's handle may be used from any thread that has its context bound.
unsafe impl Send for Module {}
// SAFETY: as for `Send`; the driver serialises lookups.
unsafe impl Sync for Module {}
// SAFETY: a function's handle lives as long as its module and may be used from any thread.
unsafe impl Send for Function {}

impl DeviceInfo {
    /// Asks the driver about a device.
    ///
    /// # Errors
    /// When the driver or the device cannot be used.
    pub fn query(ordinal: usize) -> Result<Self, RuntimeError> {
        super::device_count()?;
        let context = CudaContext::new(ordinal).map_err(failed("cuDevicePrimaryCtxRetain"))?;
        Self::of(&context)
    }

    fn of(context: &Arc<CudaContext>) -> Result<Self, RuntimeError> {
        let (major, minor) = context
            .compute_capability()
            .map_err(failed("cuDeviceGetAttribute"))?;
        let multiprocessors = context
            .attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
            .map_err(failed("cuDeviceGetAttribute"))?;
        let clock_khz = context
            .attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)
            .map_err(failed("cuDeviceGetAttribute"))?;
        Ok(DeviceInfo {
            ordinal: context.ordinal(),
            name: context.name().map_err(failed("cuDeviceGetName"))?,
            capability: (major as u32, minor as u32),
            multiprocessors: multiprocessors as u32,
            clock_mhz: clock_khz as u32 / 1000,
            memory: context.total_mem().map_err(failed("cuDeviceTotalMem"))? as u64,
        })
    }
}

impl CudaRuntime {
    /// Opens a device and loads the kernels that ship with this build.
    ///
    /// # Errors
    /// When there is no such device, its compute capability is below 8.0, or the driver refuses the
    /// kernels.
    pub fn new(ordinal: usize) -> Result<Self, RuntimeError> {
        let count = super::device_count()?;
        if ordinal >= count {
            let message = format!("device {ordinal} does not exist, the driver shows {count}");
            return Err(RuntimeError::device("CUDA driver", message));
        }
        let context = CudaContext::new(ordinal).map_err(failed("cuDevicePrimaryCtxRetain"))?;
        // SAFETY: all memory is used through raw addresses in stream order; cudarc's own tracking of
        // slices by events is not needed.
        unsafe { context.disable_event_tracking() };
        let info = DeviceInfo::of(&context)?;
        let image = cuzk_kernels::image(info.capability)
            .map_err(|error| RuntimeError::device("kernels", error))?;
        let module = Module::load(&context, &image)?;
        let stream = context.new_stream().map_err(failed("cuStreamCreate"))?;
        let device = Arc::new(Device {
            info,
            context,
            module,
        });
        Ok(CudaRuntime {
            device,
            stream,
            staging: Mutex::new(None),
        })
    }

    /// The device.
    pub fn info(&self) -> &DeviceInfo {
        &self.device.info
    }

    /// Runs `work` with the stream's page-locked buffers.
    fn staged<T>(
        &self,
        work: impl FnOnce(&mut Staging) -> Result<T, RuntimeError>,
    ) -> Result<T, RuntimeError> {
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *staging {
            Some(staging) => work(staging),
            none => work(none.insert(Staging::new(&self.stream)?)),
        }
    }

    fn bind(&self) -> Result<(), RuntimeError> {
        self.device
            .context
            .bind_to_thread()
            .map_err(failed("cuCtxSetCurrent"))
    }
}

impl Module {
    fn load(context: &Arc<CudaContext>, image: &[u8]) -> Result<Self, RuntimeError> {
        context
            .bind_to_thread()
            .map_err(failed("cuCtxSetCurrent"))?;
        // SAFETY: the image is a cubin, or PTX that ends with a zero byte.
        let handle = unsafe { result::module::load_data(image.as_ptr().cast()) }
            .map_err(failed("cuModuleLoadData"))?;
        Ok(Module {
            context: context.clone(),
            handle,
            functions: Mutex::default(),
        })
    }

    fn function(&self, kernel: &'static Kernel) -> Result<sys::CUfunction, RuntimeError> {
        let mut functions = self
            .functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = functions.get(kernel.name) {
            return Ok(function.0);
        }
        let at = |error: DriverError| RuntimeError::device(kernel.name, error);
        let name =
            CString::new(kernel.name).map_err(|error| RuntimeError::device(kernel.name, error))?;
        // SAFETY: the module is loaded and stays so as long as `self`.
        let function = unsafe { result::module::get_function(self.handle, name) }.map_err(at)?;
        if kernel.shared > DEFAULT_SHARED {
            let attribute =
                sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function exists.
            unsafe {
                result::function::set_function_attribute(function, attribute, kernel.shared as i32)
            }
            .map_err(at)?;
        }
        functions.insert(kernel.name, Function(function));
        Ok(function)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: loaded once, unloaded here once. An error is the context's, which goes next.
            let _ = unsafe { result::module::unload(self.handle) };
        }
    }
}

impl Runtime for CudaRuntime {
    fn name(&self) -> String {
        self.device.info.name.clone()
    }
    fn multiprocessors(&self) -> u32 {
        self.device.info.multiprocessors
    }
    fn memory(&self) -> Result<DeviceMemory, RuntimeError> {
        self.bind()?;
        let (free, total) = result::mem_get_info().map_err(failed("cuMemGetInfo"))?;
        Ok(DeviceMemory {
            free: free as u64,
            total: total as u64,
        })
    }
    fn allocate(&self, bytes: u64) -> Result<u64, RuntimeError> {
        self.bind()?;
        // SAFETY: the memory's content is undefined until it is written, as the trait says.
        match unsafe { result::malloc_sync(bytes as usize) } {
            Ok(address) => Ok(address),
            Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                let free = self.memory().map_or(0, |memory| memory.free);
                Err(RuntimeError::OutOfMemory {
                    wanted: bytes,
                    free,
                })
            }
            Err(error) => Err(RuntimeError::device("cuMemAlloc", error)),
        }
    }
    fn release(&self, address: u64) {
        if self.bind().is_ok() {
            // SAFETY: the address came from `allocate`; the driver waits for work that uses it.
            // An error means that the context is lost, and the memory with it.
            let _ = unsafe { result::free_sync(address) };
        }
    }
    fn upload(&self, address: u64, data: &[u8]) -> Result<(), RuntimeError> {
        if data.is_empty() {
            return Ok(());
        }
        self.bind()?;
        if data.len() <= SMALL {
            // SAFETY: from pageable memory the call returns when `data` has been read.
            return unsafe { result::memcpy_htod_async(address, data, self.stream.cu_stream()) }
                .map_err(failed("cuMemcpyHtoDAsync"));
        }
        self.staged(|staging| staging.upload(&self.stream, address, data))
    }
    fn download(&self, address: u64, out: &mut [u8]) -> Result<(), RuntimeError> {
        if out.is_empty() {
            return Ok(());
        }
        self.bind()?;
        if out.len() > SMALL {
            return self.staged(|staging| staging.download(&self.stream, address, out));
        }
        // SAFETY: `out` is not touched until the stream has been waited for.
        unsafe { result::memcpy_dtoh_async(out, address, self.stream.cu_stream()) }
            .map_err(failed("cuMemcpyDtoHAsync"))?;
        self.synchronize()
    }
    fn zero(&self, address: u64, bytes: u64) -> Result<(), RuntimeError> {
        self.bind()?;
        // SAFETY: the caller vouches that the range is reserved.
        unsafe { result::memset_d8_async(address, 0, bytes as usize, self.stream.cu_stream()) }
            .map_err(failed("cuMemsetD8Async"))
    }
    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), RuntimeError> {
        self.bind()?;
        // SAFETY: the caller vouches that both ranges are reserved and do not overlap.
        unsafe { result::memcpy_dtod_async(to, from, bytes as usize, self.stream.cu_stream()) }
            .map_err(failed("cuMemcpyDtoDAsync"))
    }
    fn launch(&self, launch: &Launch) -> Result<(), RuntimeError> {
        self.bind()?;
        let kernel = launch.kernel;
        let function = self.device.module.function(kernel)?;
        let mut arguments: Vec<*mut c_void> = launch
            .arguments
            .iter()
            .map(|a| a.bytes().as_ptr().cast_mut().cast())
            .collect();
        let grid = (launch.grid.x, launch.grid.y, 1);
        // SAFETY: the declaration macro made the arguments' types and count those of the kernel; the
        // driver copies them before it returns. Buffers are the caller's promise, which the emulator
        // checks in tests.
        unsafe {
            result::launch_kernel(
                function,
                grid,
                (kernel.threads, 1, 1),
                kernel.shared,
                self.stream.cu_stream(),
                &mut arguments,
            )
        }
        .map_err(|error| RuntimeError::device(kernel.name, error))
    }
    fn synchronize(&self) -> Result<(), RuntimeError> {
        self.stream
            .synchronize()
            .map_err(failed("cuStreamSynchronize"))
    }
    fn mark(&self) -> Result<Mark, RuntimeError> {
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        self.stream
            .record_event(flags)
            .map(Mark::new)
            .map_err(failed("cuEventRecord"))
    }
    fn elapsed(&self, from: &Mark, to: &Mark) -> Result<Duration, RuntimeError> {
        let (from, to) = (event(from)?, event(to)?);
        let milliseconds = from.elapsed_ms(to).map_err(failed("cuEventElapsedTime"))?;
        Ok(Duration::from_secs_f64(
            f64::from(milliseconds.max(0.0)) / 1000.0,
        ))
    }
    fn wait_for(&self, mark: &Mark) -> Result<(), RuntimeError> {
        self.stream
            .wait(event(mark)?)
            .map_err(failed("cuStreamWaitEvent"))
    }
    fn fork(&self) -> Result<Arc<dyn Runtime>, RuntimeError> {
        let stream = self
            .device
            .context
            .new_stream()
            .map_err(failed("cuStreamCreate"))?;
        let device = self.device.clone();
        Ok(Arc::new(CudaRuntime {
            device,
            stream,
            staging: Mutex::new(None),
        }))
    }
}

fn event(mark: &Mark) -> Result<&CudaEvent, RuntimeError> {
    mark.event()
        .ok_or_else(|| RuntimeError::device("event", "the mark is another runtime's"))
}
