//! The kinds of device behind one interface: an enum for each kind of handle, a method for each operation.
//!
//! The crate's public types hold these handles and implement the rules common to all devices: the checks before a
//! launch, the reports of a wait, the order of destruction. Only [`cuda`] talks to the driver layer, and only
//! [`cpu`] to the executor in [`gridlet_cpu`].
//!
//! A method that takes two handles requires both to be of one device: the public types reject any others.
//!
//! # Safety
//! The unsafe methods share the driver layer's contract: handles and addresses are live and belong to the device
//! that they are used with, and memory is at least as large as the length passed with it.

pub(crate) mod cpu;
pub(crate) mod cuda;
mod image;
mod parameters;
mod partition;
mod resources;
mod stream;
mod unified;

use std::ffi::c_void;
use std::time::Duration;

pub(crate) use image::{ImageHandle, KernelHandle};
pub(crate) use partition::PartitionHandle;
pub(crate) use resources::{ResourceHandle, SplitGroup, SplitResources};
pub(crate) use stream::{EventHandle, StreamHandle};
pub(crate) use unified::NO_DEVICE;

use gridlet_artifact::Artifact;
use gridlet_cpu::CpuFault;

use crate::driver::green::RawResource;
pub(crate) use crate::driver::green::ResourceKind;
use crate::error::{CPU_DEVICES, Error, Result};
use crate::info::DeviceInfo;
use crate::limits::Limit;

/// A device.
#[derive(Debug)]
pub(crate) enum DeviceHandle {
    Cuda(cuda::CudaDevice),
    Cpu(cpu::CpuHandle),
}

/// Proof that a device's handles may be used on this thread until it is dropped: on CUDA, the device's context is
/// current.
pub(crate) enum Entered<'a> {
    Cuda(#[expect(dead_code, reason = "held for its drop")] cuda::Entered<'a>),
    Cpu,
}

/// The outcome of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The work ended in time.
    Done,
    /// The wait timed out, and the running work was stopped: the first block, if one was running.
    Stopped(Option<Box<CpuFault>>),
    /// The wait timed out, and work is still running.
    Running,
}

impl Waited {
    /// The outcome's name in `tracing` events.
    pub(crate) fn outcome(&self) -> &'static str {
        match self {
            Waited::Done => "done",
            Waited::Stopped(_) | Waited::Running => "timed out",
        }
    }

    fn from_done(done: bool) -> Waited {
        if done { Waited::Done } else { Waited::Running }
    }
}

/// A copy or a fill.
#[derive(Clone, Copy)]
pub(crate) enum Transfer {
    ToDevice {
        from: *const u8,
        to: u64,
        bytes: usize,
    },
    ToHost {
        from: u64,
        to: *mut u8,
        bytes: usize,
    },
    Fill {
        to: u64,
        value: u8,
        bytes: usize,
    },
    /// Between two memories of the same kind of device.
    Copy {
        from: u64,
        to: u64,
        bytes: usize,
    },
}

impl Transfer {
    /// The number of bytes transferred.
    pub(crate) fn bytes(&self) -> usize {
        match *self {
            Transfer::ToDevice { bytes, .. }
            | Transfer::ToHost { bytes, .. }
            | Transfer::Fill { bytes, .. }
            | Transfer::Copy { bytes, .. } => bytes,
        }
    }
}

impl DeviceHandle {
    /// The GPU; on the CPU, an error that names the missing feature `what`.
    pub(crate) fn cuda(&self, what: &'static str) -> Result<&cuda::CudaDevice> {
        match self {
            DeviceHandle::Cuda(device) => Ok(device),
            DeviceHandle::Cpu(_) => Err(Error::NotOnCpu { what }),
        }
    }

    pub(crate) fn is_cpu(&self) -> bool {
        matches!(self, DeviceHandle::Cpu(_))
    }

    /// The primary context, as an address; `None` on the CPU.
    pub(crate) fn raw_context(&self) -> Option<*mut c_void> {
        match self {
            DeviceHandle::Cuda(device) => Some(device.raw_context()),
            DeviceHandle::Cpu(_) => None,
        }
    }

    /// Makes the device's handles usable on this thread.
    pub(crate) fn enter(&self) -> Result<Entered<'_>> {
        match self {
            DeviceHandle::Cuda(device) => device.enter().map(Entered::Cuda),
            DeviceHandle::Cpu(_) => Ok(Entered::Cpu),
        }
    }

    /// Same, until the host program drops the value; such values may be dropped in any order.
    pub(crate) fn hold(&self) -> Result<Entered<'_>> {
        match self {
            DeviceHandle::Cuda(device) => device.hold().map(Entered::Cuda),
            DeviceHandle::Cpu(_) => Ok(Entered::Cpu),
        }
    }

    /// Free bytes of device memory.
    pub(crate) fn free_memory(&self, _entered: &Entered<'_>) -> Result<u64> {
        match self {
            DeviceHandle::Cuda(device) => device.free_memory(),
            DeviceHandle::Cpu(device) => Ok(device.free_memory()),
        }
    }

    /// The value of a limit.
    pub(crate) fn limit(&self, limit: Limit, _entered: &Entered<'_>) -> Result<u64> {
        match (self, limit) {
            (DeviceHandle::Cuda(device), _) => device.limit(limit),
            (DeviceHandle::Cpu(device), Limit::PendingLaunches) => {
                Ok(device.pending_launch_limit())
            }
            (DeviceHandle::Cpu(_), _) => Err(Error::NotOnCpu { what: limit.name() }),
        }
    }

    /// Sets a limit.
    pub(crate) fn set_limit(&self, limit: Limit, value: u64, _entered: &Entered<'_>) -> Result<()> {
        match (self, limit) {
            (DeviceHandle::Cuda(device), _) => device.set_limit(limit, value),
            (DeviceHandle::Cpu(device), Limit::PendingLaunches) => {
                device.set_pending_launch_limit(value);
                Ok(())
            }
            (DeviceHandle::Cpu(_), _) => Err(Error::NotOnCpu { what: limit.name() }),
        }
    }

    /// Destroys everything created on the device, after a fault; does nothing on the CPU.
    ///
    /// # Safety
    /// No handle of the device may be used again.
    pub(crate) unsafe fn reset(&self) -> Result<()> {
        match self {
            // SAFETY: passed on to the caller.
            DeviceHandle::Cuda(device) => unsafe { device.reset() },
            DeviceHandle::Cpu(_) => Ok(()),
        }
    }

    /// Allocates at least one byte and returns its address.
    pub(crate) fn allocate(&self, bytes: u64, _entered: &Entered<'_>) -> Result<u64> {
        match self {
            DeviceHandle::Cuda(device) => device.allocate(bytes),
            DeviceHandle::Cpu(device) => device.allocate(bytes),
        }
    }

    /// Names memory in the findings of a checking device.
    pub(crate) fn set_name(&self, address: u64, name: &str) {
        if let DeviceHandle::Cpu(device) = self {
            device.set_name(address, name);
        }
    }

    /// Runs a function whose calls do not belong to the captures of streams into graphs that are under way.
    pub(crate) fn outside_capture<T>(
        &self,
        _entered: &Entered<'_>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let _outside = match self {
            DeviceHandle::Cuda(_) => Some(cuda::outside_capture()?),
            DeviceHandle::Cpu(_) => None,
        };
        work()
    }

    /// Frees memory from [`DeviceHandle::allocate`].
    ///
    /// # Safety
    /// The contract of this module; no kernel may use the memory.
    pub(crate) unsafe fn free(&self, address: u64, _entered: &Entered<'_>) {
        match self {
            // SAFETY: passed on to the caller.
            DeviceHandle::Cuda(device) => unsafe { device.free(address) },
            // SAFETY: as above.
            DeviceHandle::Cpu(device) => unsafe { device.free(address) },
        }
    }

    /// Starts a copy or a fill.
    ///
    /// # Safety
    /// The contract of this module; the host's memory must stay valid until [`DeviceHandle::wait_for_transfers`]
    /// returns [`Waited::Done`].
    pub(crate) unsafe fn start(&self, transfer: Transfer, _entered: &Entered<'_>) -> Result<()> {
        match self {
            // SAFETY: passed on to the caller.
            DeviceHandle::Cuda(device) => unsafe { device.start(transfer) },
            DeviceHandle::Cpu(device) => {
                // SAFETY: as above.
                unsafe { device.start(transfer) };
                Ok(())
            }
        }
    }

    /// Waits for all transfers, at most `timeout`.
    pub(crate) fn wait_for_transfers(
        &self,
        timeout: Duration,
        _entered: &Entered<'_>,
    ) -> Result<Waited> {
        match self {
            DeviceHandle::Cuda(device) => device.wait_for_transfers(timeout).map(Waited::from_done),
            // They ended before `start` returned.
            DeviceHandle::Cpu(_) => Ok(Waited::Done),
        }
    }

    /// Returns the findings of a checking device since the last call as an error.
    pub(crate) fn report_findings(&self) -> Result<()> {
        match self {
            DeviceHandle::Cuda(_) => Ok(()),
            DeviceHandle::Cpu(device) => device.report_findings(),
        }
    }

    /// Loads the artifact's image for the device that `info` describes.
    pub(crate) fn load(
        &self,
        artifact: &Artifact,
        info: &DeviceInfo,
        _entered: &Entered<'_>,
    ) -> Result<ImageHandle> {
        match self {
            DeviceHandle::Cuda(_) => cuda::CudaImage::load(artifact, info).map(ImageHandle::Cuda),
            DeviceHandle::Cpu(device) => device.load(artifact, info).map(ImageHandle::Cpu),
        }
    }

    /// Creates a stream, in a partition if one is given. Lower numbers are greater priorities; the CPU has only
    /// one priority.
    pub(crate) fn stream(
        &self,
        partition: Option<&PartitionHandle>,
        priority: i32,
        _entered: &Entered<'_>,
    ) -> Result<StreamHandle> {
        match (self, partition) {
            (DeviceHandle::Cuda(_), None) => {
                cuda::CudaStream::create(None, priority).map(StreamHandle::Cuda)
            }
            (DeviceHandle::Cuda(_), Some(PartitionHandle::Cuda(partition))) => {
                cuda::CudaStream::create(Some(partition), priority).map(StreamHandle::Cuda)
            }
            (DeviceHandle::Cpu(device), None) => Ok(StreamHandle::Cpu(device.stream(None))),
            (DeviceHandle::Cpu(device), Some(PartitionHandle::Cpu(partition))) => {
                Ok(StreamHandle::Cpu(device.stream(Some(partition))))
            }
            _ => Err(mixed()),
        }
    }

    /// The least and the greatest stream priority.
    pub(crate) fn priorities(&self, _entered: &Entered<'_>) -> Result<(i32, i32)> {
        match self {
            DeviceHandle::Cuda(device) => device.priorities(),
            DeviceHandle::Cpu(_) => Ok((0, 0)),
        }
    }

    /// Creates an event.
    pub(crate) fn event(&self, _entered: &Entered<'_>) -> Result<EventHandle> {
        match self {
            DeviceHandle::Cuda(_) => cuda::CudaEvent::create().map(EventHandle::Cuda),
            DeviceHandle::Cpu(_) => Ok(EventHandle::Cpu(cpu::CpuEvent::default())),
        }
    }

    /// The resources of the device or of its primary context.
    pub(crate) fn resource(
        &self,
        kind: ResourceKind,
        of_context: bool,
        info: &DeviceInfo,
        _entered: &Entered<'_>,
    ) -> Result<ResourceHandle> {
        match self {
            DeviceHandle::Cuda(device) if of_context => device.context_resource(kind),
            DeviceHandle::Cuda(device) => device.resource(kind),
            DeviceHandle::Cpu(_) => cpu_resource(kind, info.sm_count),
        }
    }

    /// Creates a partition from the resources, and returns it with its number of SMs.
    pub(crate) fn partition(
        &self,
        resources: &[&ResourceHandle],
        _entered: &Entered<'_>,
    ) -> Result<(PartitionHandle, u32)> {
        match self {
            DeviceHandle::Cuda(device) => {
                let raw = resources.iter().map(|resource| match resource {
                    ResourceHandle::Cuda(resource) => Ok(*resource),
                    ResourceHandle::Cpu(_) => Err(mixed()),
                });
                let raw: Vec<RawResource> = raw.collect::<Result<_>>()?;
                cuda::CudaPartition::create(device, &raw)
                    .map(|(partition, sms)| (PartitionHandle::Cuda(partition), sms))
            }
            DeviceHandle::Cpu(device) => {
                let sms = resources.iter().map(|resource| resource.sm_numbers().0).sum();
                device.partition(sms).map(|partition| (PartitionHandle::Cpu(partition), sms))
            }
        }
    }
}

/// Workers are the CPU device's only resource.
fn cpu_resource(kind: ResourceKind, workers: u32) -> Result<ResourceHandle> {
    match kind {
        ResourceKind::Sm => Ok(ResourceHandle::Cpu(workers)),
        ResourceKind::WorkqueueConfig | ResourceKind::Workqueue => {
            Err(Error::NotOnCpu { what: "workqueues" })
        }
    }
}

/// The error for two handles of different devices, which the public types prevent.
fn mixed() -> Error {
    Error::OtherDevice { what: "a handle".into(), expected: 0, given: CPU_DEVICES }
}
