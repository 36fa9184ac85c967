//! The device: its configuration, its memory, its workers and their partitions.

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

/// Worker threads, unless a device is opened with a number: as many as this variable says, or as the machine
/// runs at a time.
pub const THREADS_VARIABLE: &str = "GRIDLET_CPU_THREADS";

/// `CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT` of a GPU, unless it is set.
pub const DEFAULT_PENDING_LIMIT: u64 = 2048;

/// What the CPU device allows: as a GPU of compute capability 9.0, so that what runs here fits there.
pub const LIMITS: LaunchLimits = LaunchLimits {
    max_threads_per_block: MAX_THREADS as u32,
    max_block: [1024, 1024, 64],
    max_grid: [2_147_483_647, 65_535, 65_535],
    shared_bytes_per_block: 49_152,
    shared_bytes_per_block_optin: 232_448,
};

/// How a CPU device is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuConfig {
    /// Worker threads, 4,096 at most; `None`: by [`THREADS_VARIABLE`], or as many as the machine runs at a time.
    pub threads: Option<usize>,
    /// Launches from kernels that may be pending; 0 is no limit.
    pub pending_limit: u64,
    /// Permutes the order of threads, blocks and ready grids.
    pub seed: Option<u64>,
    /// Whether images that were compiled with `--check` are checked.
    pub check: bool,
}

/// Most workers of a device: more than any machine has processors, and so few that the system survives a wrong number.
const MAX_WORKERS: u32 = 4096;

impl Default for CpuConfig {
    fn default() -> CpuConfig {
        CpuConfig { threads: None, pending_limit: DEFAULT_PENDING_LIMIT, seed: None, check: false }
    }
}

/// A CPU device. Dropping it stops what still runs.
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
    /// [`Error::Threads`]: more than 4,096 threads are asked, the system gives no more, [`THREADS_VARIABLE`] is not a number from 1, or
    /// [`LEVEL_VARIABLE`](crate::LEVEL_VARIABLE) asks for what is not there.
    pub fn new(config: CpuConfig) -> Result<CpuDevice> {
        if config.check {
            return CpuDevice::with_checker(config, Checker::new(check::Options::default()));
        }
        CpuDevice::with_hooks(config, None)
    }

    /// Starts a device whose programs are checked.
    ///
    /// # Errors
    /// As [`CpuDevice::new`].
    pub fn with_checker(config: CpuConfig, checker: Arc<Checker>) -> Result<CpuDevice> {
        let hooks: Arc<dyn Hooks> = Arc::clone(&checker) as _;
        CpuDevice::start(config, Some(hooks), Some(checker))
    }

    /// What has the findings, if programs are checked.
    pub fn checker(&self) -> Option<&Arc<Checker>> {
        self.checker.as_ref()
    }

    /// Starts a device that tells a checker what happens.
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

    /// Its worker threads.
    pub fn workers(&self) -> u32 {
        self.workers
    }

    /// Which entries of images it runs: `baseline`, or `x86-64-v3`. See [`LEVEL_VARIABLE`](crate::LEVEL_VARIABLE).
    pub fn level(&self) -> &'static str {
        self.shared.level.name()
    }

    /// Loads an image. `sources`: the manifest's list of source files, for messages; may be empty.
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

    /// A part of the workers: the streams of a partition never run on more than so many at a time, all together.
    pub fn partition(&self, workers: u32) -> CpuPartition {
        let limit = Arc::new(WorkerLimit::new(workers.clamp(1, self.workers)));
        CpuPartition { shared: Arc::clone(&self.shared), limit, awaited: Arc::default() }
    }

    /// Global memory, aligned to 256 bytes, not initialised.
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

    /// Frees what [`CpuDevice::alloc`] gave; false, and nothing happens, if it did not. Nothing that was
    /// launched may use it any more.
    pub fn free(&self, address: *mut u8) -> bool {
        if let Some(hooks) = &self.shared.hooks
            && let Some(bytes) = self.shared.allocations.size(address)
        {
            hooks.on_free(address as usize, bytes);
        }
        self.shared.allocations.free(address).is_some()
    }

    /// Says that the host wrote to global memory, for the checker: whoever writes through an address calls it.
    pub fn host_wrote(&self, address: *const u8, bytes: usize) {
        if let Some(hooks) = &self.shared.hooks {
            hooks.on_host_write(address as usize, bytes);
        }
    }

    /// Says that kernels may use memory of the host's own, for the checker: as if it was allocated and the host wrote it.
    pub fn lend(&self, address: *const u8, bytes: usize) {
        if let Some(hooks) = &self.shared.hooks {
            hooks.on_alloc(address as usize, bytes);
            hooks.on_host_write(address as usize, bytes);
        }
    }

    /// Ends a loan of [`CpuDevice::lend`].
    pub fn take_back(&self, address: *const u8, bytes: usize) {
        if let Some(hooks) = &self.shared.hooks {
            hooks.on_free(address as usize, bytes);
        }
    }

    /// How many launches from kernels may be pending; 0 is no limit.
    pub fn pending_limit(&self) -> u64 {
        self.shared.pending.limit()
    }

    /// Sets it, for launches from then on.
    pub fn set_pending_limit(&self, launches: u64) {
        self.shared.pending.set_limit(launches);
    }

    /// Sends what kernels print there instead of standard output.
    pub fn set_output(&self, output: Box<dyn Write + Send>) {
        *lock(&self.shared.output) = Some(output);
    }

    /// Grids that have not ended, and streams: both 0 once all handles are gone.
    pub fn live(&self) -> (usize, usize) {
        self.shared.lock().live()
    }

    /// Most grids and most streams that were alive at the same time: places that the device keeps for reuse.
    pub fn high_water(&self) -> (usize, usize) {
        self.shared.lock().high_water()
    }
}

impl Drop for CpuDevice {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// A part of a device's workers.
#[derive(Clone)]
pub struct CpuPartition {
    shared: Arc<Shared>,
    limit: Arc<WorkerLimit>,
    /// What its streams wait for, those that are still to be made as well.
    awaited: Arc<Mutex<Vec<CpuMark>>>,
}

impl fmt::Debug for CpuPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuPartition").field("workers", &self.workers()).finish_non_exhaustive()
    }
}

impl CpuPartition {
    /// How many workers it has at most.
    pub fn workers(&self) -> u32 {
        self.limit.most
    }

    /// A stream of the partition.
    pub fn stream(&self) -> CpuStream {
        let stream = CpuStream::new(&self.shared, Some(Arc::clone(&self.limit)));
        let mut awaited = lock(&self.awaited);
        awaited.retain(|mark| mark.wait(Duration::ZERO).is_none());
        stream.wait_for(&awaited);
        stream
    }

    /// Lets all that is launched into its streams from now on wait for marks; `streams` are those that there are.
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

/// The number of worker threads of a device that is opened without one.
///
/// # Errors
/// [`Error::Threads`]: [`THREADS_VARIABLE`] is not a number from 1.
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
