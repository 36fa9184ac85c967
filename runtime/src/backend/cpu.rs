//! The CPU device, over the executor in [`gridlet_cpu`].

use std::ffi::CStr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gridlet_artifact::{Artifact, ComputeCapability, KernelLimits, LaunchConfig, manifest};
use gridlet_cpu::sync::lock;
use gridlet_cpu::{
    CpuConfig, CpuDevice, CpuImage, CpuKernel, CpuMark, CpuPartition, CpuStream, LIMITS,
};

use super::parameters::no_image;
use super::{Transfer, Waited};
use crate::error::{CudaVersion, Error, Findings, Result};
use crate::info::{DeviceInfo, DeviceKind, GreenContextFeatures, SmGranularity};
use crate::observe;

/// The properties of a CPU device with this many workers.
pub(crate) fn info(workers: u32) -> DeviceInfo {
    DeviceInfo {
        kind: DeviceKind::Cpu,
        ordinal: 0,
        name: processor(),
        uuid: String::new(),
        compute_capability: ComputeCapability::new(0, 0),
        driver_version: CudaVersion::new(0, 0),
        sm_count: workers,
        memory_bytes: memory("MemTotal"),
        l2_cache_bytes: 0,
        warp_size: 32,
        max_threads_per_sm: LIMITS.max_threads_per_block,
        max_blocks_per_sm: 1,
        registers_per_block: 0,
        shared_bytes_per_sm: LIMITS.shared_bytes_per_block_optin,
        limits: LIMITS,
        unified_addressing: true,
        managed_memory: true,
        concurrent_managed_access: true,
        pageable_memory_access: true,
        cooperative_launch: false,
        sm_granularity: Some(SmGranularity { minimum: 1, alignment: 1, from_driver: true }),
        green_context_features: GreenContextFeatures::default(),
    }
}

/// The processor's name, as the system reports it.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    field(&text, "model name").unwrap_or_else(|| format!("{} processor", std::env::consts::ARCH))
}

/// A row of `/proc/meminfo`, in bytes; 0 if the system lacks it.
fn memory(row: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kibibytes = field(&text, row).and_then(|text| text.strip_suffix(" kB")?.parse().ok());
    kibibytes.map_or(0, |kibibytes: u64| kibibytes.saturating_mul(1024))
}

/// The value of the first `name : value` line with this name.
fn field(text: &str, name: &str) -> Option<String> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs
        .filter(|(key, value)| key.trim() == name && !value.trim().is_empty())
        .map(|(_, value)| value.trim().to_owned())
        .next()
}

/// An opened CPU device.
#[derive(Debug)]
pub(crate) struct CpuHandle {
    device: CpuDevice,
    check: bool,
}

impl CpuHandle {
    pub(crate) fn open(config: CpuConfig) -> Result<(DeviceInfo, CpuHandle)> {
        let device = CpuDevice::new(config)?;
        Ok((info(device.workers()), CpuHandle { device, check: config.check }))
    }

    pub(crate) fn free_memory(&self) -> u64 {
        memory("MemAvailable")
    }

    pub(crate) fn pending_launch_limit(&self) -> u64 {
        self.device.pending_limit()
    }

    pub(crate) fn set_pending_launch_limit(&self, launches: u64) {
        self.device.set_pending_limit(launches);
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<u64> {
        let size = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
        Ok(self.device.alloc(size)? as u64)
    }

    /// # Safety
    /// The contract of [`crate::backend`].
    pub(crate) unsafe fn free(&self, address: u64) {
        self.device.free(address as *mut u8);
    }

    /// See [`CpuDevice::set_name`].
    pub(crate) fn set_name(&self, address: u64, name: &str) {
        self.device.set_name(address as *const u8, name);
    }

    /// Tells the checker that the host may have written there.
    pub(crate) fn host_wrote(&self, address: u64, bytes: usize) {
        self.device.host_wrote(address as *const u8, bytes);
    }

    /// See [`CpuDevice::lend`].
    pub(crate) fn lend(&self, host: *const u8, bytes: usize) {
        self.device.lend(host, bytes);
    }

    /// See [`CpuDevice::take_back`].
    pub(crate) fn take_back(&self, host: *const u8, bytes: usize) {
        self.device.take_back(host, bytes);
    }

    /// Copies or fills immediately: the caller has waited for every kernel that may use the memory.
    ///
    /// # Safety
    /// The contract of [`crate::backend`].
    pub(crate) unsafe fn start(&self, transfer: Transfer) {
        if let Transfer::ToDevice { to, bytes, .. }
        | Transfer::Fill { to, bytes, .. }
        | Transfer::Copy { to, bytes, .. } = transfer
        {
            self.device.host_wrote(to as *const u8, bytes);
        }
        // SAFETY: passed on to the caller; device memory is memory of this process.
        unsafe {
            match transfer {
                Transfer::ToDevice { from, to, bytes } => {
                    std::ptr::copy(from, to as *mut u8, bytes);
                }
                Transfer::ToHost { from, to, bytes } => {
                    std::ptr::copy(from as *const u8, to, bytes);
                }
                Transfer::Copy { from, to, bytes } => {
                    std::ptr::copy(from as *const u8, to as *mut u8, bytes);
                }
                Transfer::Fill { to, value, bytes } => {
                    std::ptr::write_bytes(to as *mut u8, value, bytes);
                }
            }
        }
    }

    /// Loads the artifact's image for this machine.
    pub(crate) fn load(&self, artifact: &Artifact, info: &DeviceInfo) -> Result<Arc<CpuImage>> {
        let Some((chosen, bytes)) = artifact.image_for_cpu() else {
            return Err(no_image(artifact, info));
        };
        let manifest = artifact.manifest();
        let image = self.device.load_with_sources(bytes, &manifest.sources)?;
        let unchecked = manifest
            .kernels
            .iter()
            .find(|kernel| image.kernel(&kernel.name).is_some_and(|kernel| !kernel.is_checked()));
        match unchecked {
            Some(kernel) if self.check => Err(Error::NotChecked {
                program: manifest.program.clone(),
                kernel: kernel.name.clone(),
            }),
            _ => {
                observe::loaded(chosen);
                Ok(image)
            }
        }
    }

    /// Returns the findings of the checks since the last call as an error.
    pub(crate) fn report_findings(&self) -> Result<()> {
        let Some(checker) = self.device.checker() else { return Ok(()) };
        let (reports, further) = checker.take_reports();
        if reports.is_empty() {
            return Ok(());
        }
        Err(Error::Checked(Box::new(Findings { reports, further })))
    }

    pub(crate) fn stream(&self, partition: Option<&CpuPartition>) -> CpuStream {
        partition.map_or_else(|| self.device.stream(), CpuPartition::stream)
    }

    /// A partition of `workers` workers.
    pub(crate) fn partition(&self, workers: u32) -> Result<CpuPartition> {
        let available = self.device.workers();
        if workers == 0 || workers > available {
            return Err(Error::Partition { asked: workers, available, minimum: 1, alignment: 1 });
        }
        Ok(self.device.partition(workers))
    }
}

/// Launches; the configuration and the parameters were already checked.
pub(crate) fn launch(
    stream: &CpuStream,
    kernel: &CpuKernel,
    config: &LaunchConfig,
    parameters: &[u8],
) -> Result<()> {
    let extents = |dim: gridlet_artifact::Dim3| [dim.x, dim.y, dim.z];
    let (grid, block) = (extents(config.grid), extents(config.block));
    Ok(stream.launch(kernel, grid, block, config.shared_bytes, parameters)?)
}

/// Waits for the launched work; stops it at the timeout.
pub(crate) fn wait(stream: &CpuStream, timeout: Duration) -> Result<Waited> {
    match stream.wait(timeout) {
        Ok(()) => Ok(Waited::Done),
        Err(gridlet_cpu::Error::TimedOut { stopped, .. }) if stream.is_done() => {
            Ok(Waited::Stopped(stopped))
        }
        Err(gridlet_cpu::Error::TimedOut { .. }) => Ok(Waited::Running),
        Err(other) => Err(other.into()),
    }
}

/// An event: marks in the streams where it was last recorded.
#[derive(Debug, Default)]
pub(crate) struct CpuEvent {
    marks: Mutex<Option<Vec<CpuMark>>>,
}

impl CpuEvent {
    pub(crate) fn record<'a>(&self, streams: impl IntoIterator<Item = &'a CpuStream>) {
        let marks = streams.into_iter().map(CpuStream::mark).collect();
        *lock(&self.marks) = Some(marks);
    }

    /// The marks that a wait for the event waits for; none, as on a GPU, if it was never recorded.
    pub(crate) fn marks(&self) -> Vec<CpuMark> {
        lock(&self.marks).clone().unwrap_or_default()
    }

    /// As on a GPU, an event that was never recorded is done.
    pub(crate) fn wait(&self, timeout: Duration) -> Waited {
        let deadline = Instant::now().checked_add(timeout);
        let marks = lock(&self.marks).clone();
        for mark in marks.iter().flatten() {
            let left = deadline.map_or(timeout, |at| at.saturating_duration_since(Instant::now()));
            if mark.wait(left).is_none() {
                return Waited::Running;
            }
        }
        Waited::Done
    }

    pub(crate) fn elapsed_ms(&self, later: &CpuEvent) -> Result<f32> {
        let at = |event: &CpuEvent| -> Result<Instant> {
            let marks = lock(&event.marks).clone().ok_or(Error::NotRecorded)?;
            let reached = marks.iter().map(|mark| mark.wait(Duration::ZERO));
            // A partition without streams counts as done at any time.
            let last = reached.collect::<Option<Vec<_>>>().ok_or(Error::NotRecorded)?;
            Ok(last.into_iter().max().unwrap_or_else(Instant::now))
        };
        let (start, end) = (at(self)?, at(later)?);
        let forward = end.saturating_duration_since(start).as_secs_f64();
        let backward = start.saturating_duration_since(end).as_secs_f64();
        Ok(((forward - backward) * 1e3) as f32)
    }
}

/// Finds a kernel and compares it with the manifest.
pub(crate) fn kernel(
    image: &Arc<CpuImage>,
    kernel: &manifest::Kernel,
) -> Result<(CpuKernel, KernelLimits)> {
    let found = image.kernel(&kernel.name);
    let bytes = found.as_ref().map(CpuKernel::parameter_bytes);
    match found {
        Some(found) if bytes == Some(kernel.parameter_bytes) => {
            let limits = KernelLimits {
                launch_bounds: kernel.max_threads_per_block,
                max_threads_per_block: LIMITS.max_threads_per_block,
                static_shared_bytes: found.static_shared_bytes(),
            };
            Ok((found, limits))
        }
        _ => Err(Error::ParameterMismatch {
            kernel: kernel.name.clone(),
            index: 0,
            manifest: format!("{} bytes of parameters", kernel.parameter_bytes),
            driver: bytes.map_or("no such kernel".into(), |bytes| format!("{bytes} bytes")),
        }),
    }
}

/// The address of a global variable.
pub(crate) fn global(image: &CpuImage, symbol: &CStr, what: &str) -> Result<u64> {
    let name = symbol.to_string_lossy();
    image
        .symbol(&name)
        .map(|address| address as u64)
        .ok_or_else(|| Error::CpuImage { reason: format!("it has no symbol `{name}`, {what}") })
}
