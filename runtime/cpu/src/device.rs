//! The CPU device: configuration, memory, workers and partitions.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use gridlet_artifact::LaunchLimits;

use crate::check::{self, Checker};
use crate::error::{Error, Result};
use crate::executor::{
    CALLBACKS, CpuMark, CpuStream, MAX_THREADS, Pending, Scheduler, Shared, WorkerLimit,
};
use crate::hooks::Hooks;
use crate::image::CpuImage;
use crate::level::Level;
use crate::sync::lock;

/// Environment variable with the number of worker threads of a device opened without one. If it is unset, the default
/// is the number of threads that the machine runs in parallel.
pub const THREADS_VARIABLE: &str = "GRIDLET_CPU_THREADS";

/// A GPU's default for `CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT`.
pub const DEFAULT_PENDING_LIMIT: u64 = 2048;

/// Launch limits of the CPU device: those of compute capability 9.0, so that accepted launches also fit such a GPU.
pub const LIMITS: LaunchLimits = LaunchLimits {
    max_threads_per_block: MAX_THREADS as u32,
    max_block: [1024, 1024, 64],
    max_grid: [2_147_483_647, 65_535, 65_535],
    shared_bytes_per_block: 49_152,
    shared_bytes_per_block_optin: 232_448,
};

/// Configuration of a CPU device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuConfig {
    /// Worker threads, at most 4,096; `None`: [`THREADS_VARIABLE`], or the parallelism of the machine.
    pub threads: Option<usize>,
    /// Maximum pending launches from kernels; 0 is unlimited.
    pub pending_limit: u64,
    /// Seed that permutes the order of threads, blocks and ready grids; `None`: no permutation.
    pub seed: Option<u64>,
    /// Whether to check images compiled with `--check`.
    pub check: bool,
}

/// Maximum workers of a device: more than any machine has processors, yet few enough to survive a mistyped number.
const MAX_WORKERS: u32 = 4096;

impl Default for CpuConfig {
    fn default() -> CpuConfig {
        CpuConfig { threads: None, pending_limit: DEFAULT_PENDING_LIMIT, seed: None, check: false }
    }
}

/// A CPU device. Dropping it stops everything that still runs.
pub struct CpuDevice {
    shared: Arc<Shared>,
    checker: Option<Arc<Checker>>,
    workers: u32,
}

impl fmt::Debug for CpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuDevice").field("workers", &self.workers).finish_non_exhaustive()
    }
}

impl CpuDevice {
    /// Starts a device.
    ///
    /// # Errors
    /// [`Error::Threads`]: more than 4,096 threads are requested, the system cannot start them, [`THREADS_VARIABLE`] is
    /// not a positive number, or [`LEVEL_VARIABLE`](crate::LEVEL_VARIABLE) requests an unsupported level.
    pub fn new(config: CpuConfig) -> Result<CpuDevice> {
        if config.check {
            return CpuDevice::with_checker(config, Checker::new(check::Options::default()));
        }
        CpuDevice::with_hooks(config, None)
    }

    /// Starts a device that checks its programs.
    ///
    /// # Errors
    /// As [`CpuDevice::new`].
    pub fn with_checker(config: CpuConfig, checker: Arc<Checker>) -> Result<CpuDevice> {
        let hooks: Arc<dyn Hooks> = Arc::clone(&checker) as _;
        CpuDevice::start(config, Some(hooks), Some(checker))
    }

    /// The checker that holds the findings, if the device has one.
    pub fn checker(&self) -> Option<&Arc<Checker>> {
        self.checker.as_ref()
    }

    /// Starts a device that reports its events to `hooks`.
    ///
    /// # Errors
    /// As [`CpuDevice::new`].
    pub fn with_hooks(config: CpuConfig, hooks: Option<Arc<dyn Hooks>>) -> Result<CpuDevice> {
        CpuDevice::start(config, hooks, None)
    }

    fn start(
        config: CpuConfig,
        hooks: Option<Arc<dyn Hooks>>,
        checker: Option<Arc<Checker>>,
    ) -> Result<CpuDevice> {
        let workers = match config.threads {
            Some(threads) => u32::try_from(threads.max(1)).unwrap_or(u32::MAX),
            None => default_threads()?,
        };
        if workers > MAX_WORKERS {
            return Err(Error::Threads {
                reason: format!(
                    "{workers} worker threads requested, but the maximum is {MAX_WORKERS}"
                ),
            });
        }
        let pending = Arc::new(Pending::new(config.pending_limit));
        let scheduler =
            Scheduler::new(u64::from(workers), Arc::clone(&pending), config.seed, hooks.clone());
        let level = Level::choose()?;
        let shared = Shared::new(scheduler, pending, config.seed, level, hooks, LIMITS);
        let shared = Arc::new(shared);
        let device = CpuDevice { shared, checker, workers };
        device.shared.start(workers).map_err(|error| Error::Threads {
            reason: format!("the system cannot start {workers} worker threads: {error}"),
        })?;
        Ok(device)
    }

    /// Number of worker threads.
    pub fn workers(&self) -> u32 {
        self.workers
    }

    /// The entries of images that the device runs, `baseline` or `x86-64-v3`: see
    /// [`LEVEL_VARIABLE`](crate::LEVEL_VARIABLE).
    pub fn level(&self) -> &'static str {
        self.shared.level.name()
    }

    /// Loads an image. `sources`: the manifest's source files, for messages; may be empty.
    ///
    /// # Errors
    /// [`Error::Image`].
    pub fn load_with_sources(&self, bytes: &[u8], sources: &[String]) -> Result<Arc<CpuImage>> {
        let hooks = self.shared.hooks.clone();
        Ok(Arc::new(CpuImage::load(bytes, sources.to_vec(), hooks, &CALLBACKS)?))
    }

    /// Loads an image without the names of its source files.
    ///
    /// # Errors
    /// [`Error::Image`].
    pub fn load(&self, bytes: &[u8]) -> Result<Arc<CpuImage>> {
        self.load_with_sources(bytes, &[])
    }

    /// A stream that uses all workers.
    pub fn stream(&self) -> CpuStream {
        CpuStream::new(&self.shared, None)
    }

    /// A partition of the workers: its streams together never run on more than `workers` workers at a time.
    pub fn partition(&self, workers: u32) -> CpuPartition {
        let limit = Arc::new(WorkerLimit::new(workers.clamp(1, self.workers)));
        CpuPartition { shared: Arc::clone(&self.shared), limit, awaited: Arc::default() }
    }

    /// Allocates global memory, aligned to 256 bytes and uninitialised.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn alloc(&self, bytes: usize) -> Result<*mut u8> {
        let allocated = self.shared.allocations.alloc(bytes);
        let address = allocated.ok_or(Error::Memory { bytes: bytes as u64 })?;
        if let Some(hooks) = &self.shared.hooks {
            hooks.on_alloc(address as usize, bytes);
        }
        Ok(address)
    }

    /// Frees memory from [`CpuDevice::alloc`]; returns false, without effect, for any other address. No launch may still
    /// use the memory.
    pub fn free(&self, address: *mut u8) -> bool {
        if let Some(hooks) = &self.shared.hooks
            && let Some(bytes) = self.shared.allocations.size(address)
        {
            hooks.on_free(address as usize, bytes);
        }
        self.shared.allocations.free(address).is_some()
    }

    /// Names memory from [`CpuDevice::alloc`] for the checker's reports. The first name stays.
    pub fn set_name(&self, address: *const u8, name: &str) {
        if let Some(hooks) = &self.shared.hooks {
            hooks.on_name(address as usize, name);
        }
    }

    /// Tells the checker that the host wrote to global memory; every host write must be reported.
    pub fn host_wrote(&self, address: *const u8, bytes: usize) {
        if let Some(hooks) = &self.shared.hooks {
            hooks.on_host_write(address as usize, bytes);
        }
    }

    /// Tells the checker that kernels may use this host memory, which counts as allocated and written.
    pub fn lend(&self, address: *const u8, bytes: usize) {
        if let Some(hooks) = &self.shared.hooks {
            hooks.on_alloc(address as usize, bytes);
            hooks.on_host_write(address as usize, bytes);
        }
    }

    /// Ends a loan from [`CpuDevice::lend`].
    pub fn take_back(&self, address: *const u8, bytes: usize) {
        if let Some(hooks) = &self.shared.hooks {
            hooks.on_free(address as usize, bytes);
        }
    }

    /// Maximum pending launches from kernels; 0 is unlimited.
    pub fn pending_limit(&self) -> u64 {
        self.shared.pending.limit()
    }

    /// Sets the maximum for later launches.
    pub fn set_pending_limit(&self, launches: u64) {
        self.shared.pending.set_limit(launches);
    }

    /// Redirects the output of kernels from standard output.
    pub fn set_output(&self, output: Box<dyn Write + Send>) {
        *lock(&self.shared.output) = Some(output);
    }

    /// Numbers of live grids and streams; both are 0 once all handles are dropped.
    pub fn live(&self) -> (usize, usize) {
        self.shared.lock().live()
    }

    /// Maximum numbers of grids and of streams that were alive at the same time; the device keeps their slots for reuse.
    pub fn high_water(&self) -> (usize, usize) {
        self.shared.lock().high_water()
    }
}

impl Drop for CpuDevice {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// A partition of a device's workers.
#[derive(Clone)]
pub struct CpuPartition {
    shared: Arc<Shared>,
    limit: Arc<WorkerLimit>,
    /// Marks that its streams wait for, including streams created later.
    awaited: Arc<Mutex<Vec<CpuMark>>>,
}

impl fmt::Debug for CpuPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuPartition").field("workers", &self.workers()).finish_non_exhaustive()
    }
}

impl CpuPartition {
    /// Maximum number of workers.
    pub fn workers(&self) -> u32 {
        self.limit.max
    }

    /// Creates a stream of the partition.
    pub fn stream(&self) -> CpuStream {
        let stream = CpuStream::new(&self.shared, Some(Arc::clone(&self.limit)));
        let mut awaited = lock(&self.awaited);
        awaited.retain(|mark| mark.wait(Duration::ZERO).is_none());
        stream.wait_for(&awaited);
        stream
    }

    /// Makes all later launches in the partition wait for marks; `streams` are its existing streams.
    pub fn wait_for<'a>(
        &self,
        streams: impl IntoIterator<Item = &'a CpuStream>,
        marks: &[CpuMark],
    ) {
        lock(&self.awaited).extend(marks.iter().cloned());
        for stream in streams {
            stream.wait_for(marks);
        }
    }
}

/// Default number of worker threads of a device.
///
/// # Errors
/// [`Error::Threads`]: [`THREADS_VARIABLE`] is not a positive number.
pub fn default_threads() -> Result<u32> {
    match std::env::var(THREADS_VARIABLE) {
        Ok(text) => {
            text.parse().ok().filter(|threads| *threads > 0).ok_or_else(|| Error::Threads {
                reason: format!("{THREADS_VARIABLE} is `{text}`, not a positive number"),
            })
        }
        Err(_) => {
            let threads = thread::available_parallelism().map_or(1, usize::from);
            Ok(u32::try_from(threads).unwrap_or(u32::MAX))
        }
    }
}
