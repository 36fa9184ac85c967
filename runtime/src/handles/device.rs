//! Devices: opening them, their resources, waiting, and recovery after a fault.

mod limits;
mod shared;

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

pub(crate) use shared::{DeviceInner, HostVisible, add};

use gridlet_cpu::sync::lock;
use gridlet_cpu::{CpuConfig, default_threads};

use super::resources::{Origin, SmResource, WorkqueueConfig, WorkqueueResource};
use super::stream::Stream;
use crate::backend::{DeviceHandle, Entered, ResourceHandle, ResourceKind, cpu, cuda};
use crate::error::{CPU_DEVICES, Error, Result, next_number};
use crate::info::{DeviceInfo, DeviceKind};
use crate::observe;
use crate::selector::DeviceSelector;

/// The timeout of a wait if the caller gives none: 60 s.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// An opened device: a GPU or the CPU. Cheap to clone; clones are the same device.
///
/// A GPU works in its primary context, which CUDA's runtime API and other libraries share (driver API, Primary
/// Context Management), and calls leave the calling thread's current context unchanged. The CPU device runs CPU
/// images ([`Artifact::image_for_cpu`](crate::Artifact::image_for_cpu)) on worker threads of this process under
/// the same rules: this crate's documentation of devices applies to both.
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) inner: Arc<DeviceInner>,
}

impl Device {
    /// Lists the GPUs; empty if the driver finds none.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::DriverTooOld`], [`Error::Cuda`].
    pub fn list() -> Result<Vec<DeviceInfo>> {
        cuda::list()
    }

    /// Opens the selected device; the CPU with the default configuration.
    ///
    /// # Errors
    /// The errors of [`Device::open`] and [`Device::open_cpu`]. [`DeviceSelector::Auto`] falls back to the CPU if
    /// there is no driver or no GPU, but not if the driver or the GPU fails.
    pub fn select(selector: DeviceSelector) -> Result<Device> {
        match selector {
            DeviceSelector::Cuda(ordinal) => Device::open(ordinal),
            DeviceSelector::Cpu => Device::open_cpu(CpuConfig::default()),
            DeviceSelector::Auto => match Device::open(0) {
                Err(error) if error.is_absent_gpu() => Device::open_cpu(CpuConfig::default()),
                other => other,
            },
        }
    }

    /// Opens a device by name: `auto`, `cuda`, `cuda:1` or `cpu`.
    ///
    /// # Errors
    /// [`Error::DeviceName`]; the errors of [`Device::select`].
    pub fn open_named(name: &str) -> Result<Device> {
        Device::select(name.parse().map_err(|reason| Error::DeviceName { reason })?)
    }

    /// Opens a CPU device, with its own worker threads and its own pool of pending launches.
    ///
    /// # Errors
    /// [`Error::CpuThreads`] if its threads cannot be started.
    pub fn open_cpu(config: CpuConfig) -> Result<Device> {
        /// The next CPU device's number in errors.
        static NEXT: AtomicU32 = AtomicU32::new(CPU_DEVICES);

        let (info, handle) = cpu::CpuHandle::open(config)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed).max(CPU_DEVICES);
        let inner = Arc::new(DeviceInner::new(number, number, info, DeviceHandle::Cpu(handle)));
        let device = Device { inner };
        observe::opened(&device, device.info());
        Ok(device)
    }

    /// The properties of the CPU device with the default configuration, without opening it.
    pub fn cpu_info() -> DeviceInfo {
        // The only possible error is an invalid thread-count variable; opening the device reports it.
        cpu::info(default_threads().unwrap_or(1))
    }

    /// Opens a GPU by its ordinal. Opening the same ordinal again returns the same device.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::DriverTooOld`], [`Error::NoDevice`], [`Error::Cuda`].
    pub fn open(ordinal: u32) -> Result<Device> {
        cuda::check_ordinal(ordinal)?;
        let mut opened = lock(&OPENED);
        match find_opened(&opened, ordinal) {
            Some(inner) => Ok(Device { inner }),
            None => open_cuda(ordinal, &mut opened),
        }
    }

    /// The device's properties.
    pub fn info(&self) -> &DeviceInfo {
        &self.inner.info
    }

    /// A stream that uses the whole device.
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn stream(&self) -> Result<Stream> {
        self.stream_with_priority(0)
    }

    /// A stream that uses the whole device, with a priority: lower numbers run first, 0 is the default, and values
    /// outside [`Device::stream_priorities`] are clamped (`cuStreamCreateWithPriority`).
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn stream_with_priority(&self, priority: i32) -> Result<Stream> {
        Stream::create(&self.inner, None, priority)
    }

    /// The effective priorities, from the greatest (the lowest number) to the least
    /// (`cuCtxGetStreamPriorityRange`); only 0 on the CPU.
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn stream_priorities(&self) -> Result<RangeInclusive<i32>> {
        let (least, greatest) = self.inner.call(|entered| self.inner.handle.priorities(entered))?;
        Ok(greatest..=least)
    }

    /// All SMs of the device (`cuDeviceGetDevResource`); on the CPU, the workers.
    ///
    /// # Errors
    /// [`Error::MissingCall`] before CUDA 12.4, [`Error::Cuda`], [`Error::Unusable`].
    pub fn sm_resource(&self) -> Result<SmResource> {
        Ok(SmResource::new(&self.inner, self.resource(ResourceKind::Sm, false)?, Origin::Whole))
    }

    /// The SMs of the device's primary context (`cuCtxGetDevResource`).
    ///
    /// # Errors
    /// The errors of [`Device::sm_resource`].
    pub fn context_sm_resource(&self) -> Result<SmResource> {
        Ok(SmResource::new(&self.inner, self.resource(ResourceKind::Sm, true)?, Origin::Whole))
    }

    /// The device's workqueue configuration, to modify and add to a descriptor.
    ///
    /// # Errors
    /// [`Error::MissingFeature`] before CUDA 13.1, [`Error::NotOnCpu`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn workqueue_config(&self) -> Result<WorkqueueConfig> {
        let handle = self.resource(ResourceKind::WorkqueueConfig, false)?;
        Ok(WorkqueueConfig { device: Arc::clone(&self.inner), handle })
    }

    /// The workqueue configuration of the primary context: its limit is the largest number of workloads that the
    /// driver keeps apart.
    ///
    /// # Errors
    /// The errors of [`Device::workqueue_config`].
    pub fn context_workqueue_config(&self) -> Result<WorkqueueConfig> {
        let handle = self.resource(ResourceKind::WorkqueueConfig, true)?;
        Ok(WorkqueueConfig { device: Arc::clone(&self.inner), handle })
    }

    /// The primary context's workqueues, for sharing with a green context.
    ///
    /// # Errors
    /// The errors of [`Device::workqueue_config`].
    pub fn context_workqueue(&self) -> Result<WorkqueueResource> {
        let handle = self.resource(ResourceKind::Workqueue, true)?;
        Ok(WorkqueueResource { device: Arc::clone(&self.inner), handle })
    }

    fn resource(&self, kind: ResourceKind, of_context: bool) -> Result<ResourceHandle> {
        let inner = &self.inner;
        inner.call(|entered| inner.handle.resource(kind, of_context, &inner.info, entered))
    }

    /// Free bytes of device memory.
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn free_memory(&self) -> Result<u64> {
        self.inner.call(|entered| self.inner.handle.free_memory(entered))
    }

    /// Recovers from [`Error::Fault`]: destroys the device's context with everything in it and reopens the device
    /// in this process. Streams, buffers, programs and green contexts of the old context stay unusable, other
    /// users of CUDA in this process lose everything they have on the device, and limits return to the driver's
    /// defaults.
    ///
    /// A device without a fault, and the CPU device, is returned unchanged.
    ///
    /// # Errors
    /// [`Error::HostMemoryInUse`] while buffers exist whose elements the host may reference, because their memory
    /// goes with the context: drop them first. [`Error::Unusable`] if a wait timed out earlier, because hung work
    /// cannot be stopped; [`Error::NotRecovered`] if the driver cannot start a new context: then only a new
    /// process can use the device. Driver 580.159.04 behaves this way: its `cuDevicePrimaryCtxRetain` keeps
    /// returning the fault.
    pub fn recover(&self) -> Result<Device> {
        let inner = &self.inner;
        if inner.timed_out.get().is_some() {
            inner.usable()?;
        }
        // Any call may have been the first to report the fault, and only waits record it.
        if inner.fault.get().is_none() && !matches!(self.free_memory(), Err(Error::Fault(_))) {
            return Ok(self.clone());
        }
        let failed =
            |error: Error| Error::NotRecovered { ordinal: inner.ordinal, reason: Box::new(error) };
        let mut opened = lock(&OPENED);
        // Another thread may have recovered the device first.
        if let Some(current) = find_opened(&opened, inner.ordinal)
            && !Arc::ptr_eq(&current, inner)
        {
            return Ok(Device { inner: current });
        }
        if !inner.is_reset.load(Ordering::Acquire) {
            inner.wait_for_callers().map_err(failed)?;
            let buffers = inner.host_visible.load(Ordering::Acquire);
            if buffers > 0 {
                return Err(Error::HostMemoryInUse { ordinal: inner.ordinal, buffers });
            }
            // SAFETY: no thread is in a call, `enter` refuses every further use of the old handles, dropping them
            // calls nothing, and no memory remains that the host could see.
            unsafe { inner.handle.reset() }.map_err(failed)?;
            inner.is_reset.store(true, Ordering::Release);
        }
        let device = open_cuda(inner.ordinal, &mut opened).map_err(failed)?;
        // If the context is still broken, the first call in it fails.
        device.free_memory().map_err(failed)?;
        Ok(device)
    }

    /// Makes the device's primary context the calling thread's current context until the value is dropped. Every
    /// launch and copy needs it: they cost less if it is already current, and other CUDA libraries on this thread
    /// find it. Does nothing on the CPU.
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn make_current(&self) -> Result<CurrentDevice<'_>> {
        let _inside = self.inner.inside()?;
        Ok(CurrentDevice { _entered: self.inner.handle.hold()?, _one_thread: PhantomData })
    }

    /// Waits for everything launched on the device, and reports faults and lost launches.
    ///
    /// # Errors
    /// The errors of [`Stream::synchronize`].
    pub fn synchronize(&self, timeout: Duration) -> Result<()> {
        let entered = self.inner.enter()?;
        self.inner.settle(timeout, &entered)?;
        self.inner.report_lost_launches(&entered)
    }
}

/// A device whose context is current on this thread. Dropping it restores the previous context; a thread may drop
/// such values in any order.
pub struct CurrentDevice<'a> {
    _entered: Entered<'a>,
    _one_thread: PhantomData<*mut ()>,
}

impl fmt::Debug for CurrentDevice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentDevice").finish_non_exhaustive()
    }
}

/// In the form that [`DeviceSelector`] parses: `cuda:0`, `cpu`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.info();
        match info.kind {
            DeviceKind::Cuda => DeviceSelector::Cuda(info.ordinal).fmt(f),
            DeviceKind::Cpu => DeviceSelector::Cpu.fmt(f),
        }
    }
}

/// Opened GPUs, by ordinal: a GPU that timed out or lost its context must stay unusable however it is opened.
static OPENED: Mutex<Opened> = Mutex::new(Vec::new());

type Opened = Vec<(u32, Weak<DeviceInner>)>;

/// The opened device with this ordinal, unless its context was reset.
fn find_opened(opened: &Opened, ordinal: u32) -> Option<Arc<DeviceInner>> {
    let of_number = opened.iter().filter(|(number, _)| *number == ordinal);
    let mut live = of_number.filter_map(|(_, inner)| inner.upgrade());
    live.find(|inner| !inner.is_reset.load(Ordering::Acquire))
}

fn open_cuda(ordinal: u32, opened: &mut Opened) -> Result<Device> {
    let (info, handle) = cuda::CudaDevice::open(ordinal)?;
    opened.retain(|(_, inner)| inner.strong_count() > 0);
    let others = opened.iter().filter(|(number, _)| *number == ordinal);
    let latest = others.filter_map(|(_, inner)| Some(inner.upgrade()?.number)).max();
    let number = latest.map_or(ordinal, |latest| next_number(ordinal, latest));
    let inner = Arc::new(DeviceInner::new(ordinal, number, info, DeviceHandle::Cuda(handle)));
    opened.push((ordinal, Arc::downgrade(&inner)));
    let device = Device { inner };
    observe::opened(&device, device.info());
    Ok(device)
}

/// The number that identifies the memory of this GPU: the open device's, or the one it will get when opened.
pub(crate) fn number_of(ordinal: u32) -> u32 {
    find_opened(&lock(&OPENED), ordinal).map_or(ordinal, |inner| inner.number)
}
