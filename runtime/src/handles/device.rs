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
use crate::backend::{DeviceHandle, Entered, PartHandle, ResourceKind, cpu, cuda};
use crate::error::{CPU_DEVICES, Error, Result, next_number};
use crate::info::{DeviceInfo, DeviceKind};
use crate::observe;
use crate::selector::DeviceSelector;

/// How long a wait lasts if the caller names no time-out: 60 s.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// An opened device: a GPU or the CPU. Cheap to clone; clones are the same device.
///
/// A GPU works in its primary context, which CUDA's runtime API and other libraries share (driver API,
/// Primary Context Management), and leaves the calling thread's current context as it was. The CPU device runs
/// images for the CPU ([`Artifact::image_for_cpu`](crate::Artifact::image_for_cpu)) on worker threads of
/// this process, with the GPU's rules: what this crate's documentation says of devices holds for both.
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) inner: Arc<DeviceInner>,
}

impl Device {
    /// The GPUs there are; none if the driver finds no GPU.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::DriverTooOld`], [`Error::Cuda`].
    pub fn list() -> Result<Vec<DeviceInfo>> {
        cuda::list()
    }

    /// Opens what the selector names; the CPU with the default configuration.
    ///
    /// # Errors
    /// Those of [`Device::open`] and [`Device::open_cpu`]. [`DeviceSelector::Auto`] takes the CPU where there is
    /// no driver or no GPU, but not where the driver or the GPU fails.
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

    /// Opens what the name says: `auto`, `cuda`, `cuda:1` or `cpu`.
    ///
    /// # Errors
    /// [`Error::DeviceName`]; those of [`Device::select`].
    pub fn open_named(name: &str) -> Result<Device> {
        Device::select(name.parse().map_err(|reason| Error::DeviceName { reason })?)
    }

    /// Opens a CPU device: its own worker threads, its own pool of pending launches.
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

    /// What the CPU device is with the default configuration, without opening it.
    pub fn cpu_info() -> DeviceInfo {
        // An error here is one of the variable that sets the threads; opening the device tells it.
        cpu::info(default_threads().unwrap_or(1))
    }

    /// Opens a GPU, by its number. Further opens of the same number give the same device.
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

    /// What the device is and can do.
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

    /// The same with a priority: lower numbers first, 0 is the default, others are clamped to
    /// [`Device::stream_priorities`] (`cuStreamCreateWithPriority`).
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn stream_with_priority(&self, priority: i32) -> Result<Stream> {
        Stream::create(&self.inner, None, priority)
    }

    /// The priorities that mean something, from the greatest, which is the lowest number, to the least
    /// (`cuCtxGetStreamPriorityRange`); 0 alone on the CPU.
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn stream_priorities(&self) -> Result<RangeInclusive<i32>> {
        let (least, greatest) = self.inner.call(|entered| self.inner.handle.priorities(entered))?;
        Ok(greatest..=least)
    }

    /// All of its SMs (`cuDeviceGetDevResource`); of the CPU, the workers.
    ///
    /// # Errors
    /// [`Error::MissingCall`] before CUDA 12.4, [`Error::Cuda`], [`Error::Unusable`].
    pub fn sm_resource(&self) -> Result<SmResource> {
        Ok(SmResource::new(&self.inner, self.resource(ResourceKind::Sm, false)?, Origin::Whole))
    }

    /// The SMs of its primary context (`cuCtxGetDevResource`).
    ///
    /// # Errors
    /// As [`Device::sm_resource`].
    pub fn context_sm_resource(&self) -> Result<SmResource> {
        Ok(SmResource::new(&self.inner, self.resource(ResourceKind::Sm, true)?, Origin::Whole))
    }

    /// A configuration of workqueues, to change and to put into a descriptor.
    ///
    /// # Errors
    /// [`Error::MissingFeature`] before CUDA 13.1, [`Error::NotOnCpu`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn workqueue_config(&self) -> Result<WorkqueueConfig> {
        let handle = self.resource(ResourceKind::WorkqueueConfig, false)?;
        Ok(WorkqueueConfig { device: Arc::clone(&self.inner), handle })
    }

    /// The configuration of the primary context's workqueues: its limit is the most that the driver keeps apart.
    ///
    /// # Errors
    /// As [`Device::workqueue_config`].
    pub fn context_workqueue_config(&self) -> Result<WorkqueueConfig> {
        let handle = self.resource(ResourceKind::WorkqueueConfig, true)?;
        Ok(WorkqueueConfig { device: Arc::clone(&self.inner), handle })
    }

    /// The primary context's workqueues, to share them with a green context.
    ///
    /// # Errors
    /// As [`Device::workqueue_config`].
    pub fn context_workqueue(&self) -> Result<WorkqueueResource> {
        let handle = self.resource(ResourceKind::Workqueue, true)?;
        Ok(WorkqueueResource { device: Arc::clone(&self.inner), handle })
    }

    fn resource(&self, kind: ResourceKind, of_context: bool) -> Result<PartHandle> {
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

    /// After [`Error::Fault`]: destroys the device's context with all that belongs to it and opens the device anew, in this
    /// process. Streams, buffers, programs and green contexts of the old one stay unusable, whatever uses CUDA beside this
    /// crate loses what it has on the device, too, and limits are the driver's own again.
    ///
    /// A device that is not broken, and the CPU device, is given as it is.
    ///
    /// # Errors
    /// [`Error::HostMemoryInUse`] while there are buffers whose elements the host may have, because their memory goes
    /// with the context: drop those first.
    /// [`Error::Unusable`] if a wait timed out before, because what hangs cannot be stopped; [`Error::NotRecovered`] if
    /// the driver cannot start a new context either: then only a new process can use the device. So it is with driver
    /// 580.159.04, whose `cuDevicePrimaryCtxRetain` repeats the fault for ever.
    pub fn recover(&self) -> Result<Device> {
        let inner = &self.inner;
        if inner.timed_out.get().is_some() {
            inner.usable()?;
        }
        // Any call may have been the first to tell of the fault, and only waits note it.
        if inner.fault.get().is_none() && !matches!(self.free_memory(), Err(Error::Fault(_))) {
            return Ok(self.clone());
        }
        let failed =
            |error: Error| Error::NotRecovered { ordinal: inner.ordinal, reason: Box::new(error) };
        let mut opened = lock(&OPENED);
        // Another thread may have been first.
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
            // SAFETY: nobody is in a call, `enter` refuses every further use of the old handles, dropping them calls
            // nothing, and no memory is left that the host could see.
            unsafe { inner.handle.reset() }.map_err(failed)?;
            inner.is_reset.store(true, Ordering::Release);
        }
        let device = open_cuda(inner.ordinal, &mut opened).map_err(failed)?;
        // A context that is still broken fails the first thing that is done in it.
        device.free_memory().map_err(failed)?;
        Ok(device)
    }

    /// Makes the device's primary context the calling thread's current one until the value is dropped. Each launch and
    /// copy needs it: where it is current already, they cost less, and other CUDA libraries on this thread find it.
    /// Nothing to do on the CPU.
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn make_current(&self) -> Result<CurrentDevice<'_>> {
        let _inside = self.inner.inside()?;
        Ok(CurrentDevice { _entered: self.inner.handle.hold()?, _one_thread: PhantomData })
    }

    /// Waits for everything that was launched on the device, and reports faults and lost launches.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn synchronize(&self, timeout: Duration) -> Result<()> {
        let entered = self.inner.enter()?;
        self.inner.settle(timeout, &entered)?;
        self.inner.report_lost_launches(&entered)
    }
}

/// A device whose context is current on this thread. Dropping it brings back what was current before; values of a thread
/// may be dropped in any order.
pub struct CurrentDevice<'a> {
    _entered: Entered<'a>,
    _one_thread: PhantomData<*mut ()>,
}

impl fmt::Debug for CurrentDevice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentDevice").finish_non_exhaustive()
    }
}

/// As [`DeviceSelector`] spells it: `cuda:0`, `cpu`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.info();
        match info.kind {
            DeviceKind::Cuda => DeviceSelector::Cuda(info.ordinal).fmt(f),
            DeviceKind::Cpu => DeviceSelector::Cpu.fmt(f),
        }
    }
}

/// Opened GPUs, by number: one that timed out or lost its context must stay unusable however it is opened.
static OPENED: Mutex<Opened> = Mutex::new(Vec::new());

type Opened = Vec<(u32, Weak<DeviceInner>)>;

/// The one whose context is still the driver's.
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

/// What to tell memory of a GPU by that is open now, or is about to be.
pub(crate) fn number_of(ordinal: u32) -> u32 {
    find_opened(&lock(&OPENED), ordinal).map_or(ordinal, |inner| inner.number)
}
