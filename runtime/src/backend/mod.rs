//! The kinds of device, and what differs between them: one enum for each kind of handle, one method for each
//! operation.
//!
//! The crate's public types hold these handles and the rules that hold on every device: what is checked before
//! a launch, what a wait reports, in which order handles go. [`cuda`] alone talks to the driver layer.
//!
//! # Safety
//! The unsafe methods have one contract, the driver layer's: handles and addresses are those of the device
//! they are used with and live, and memory has room for the bytes named.

pub(crate) mod cuda;

use std::ffi::CStr;
use std::time::Duration;

use crate::artifact::Artifact;
use crate::config::{KernelLimits, LaunchConfig};
use crate::error::Result;
use crate::info::DeviceInfo;
use crate::manifest;

/// A device.
#[derive(Debug)]
pub(crate) enum DeviceHandle {
    Cuda(cuda::CudaDevice),
}

/// Proof that a device's handles may be used on this thread, until it is dropped: on CUDA the device's context
/// is current.
pub(crate) enum Entered<'a> {
    Cuda(#[expect(dead_code, reason = "held for its drop")] cuda::Entered<'a>),
}

/// A copy or a fill.
#[derive(Clone, Copy)]
pub(crate) enum Transfer {
    ToDevice { from: *const u8, to: u64, bytes: usize },
    ToHost { from: u64, to: *mut u8, bytes: usize },
    Fill { to: u64, value: u8, bytes: usize },
}

impl DeviceHandle {
    /// Makes the device's handles usable on this thread.
    pub(crate) fn enter(&self) -> Result<Entered<'_>> {
        match self {
            DeviceHandle::Cuda(device) => device.enter().map(Entered::Cuda),
        }
    }

    /// Free bytes of device memory.
    pub(crate) fn free_memory(&self, _entered: &Entered<'_>) -> Result<u64> {
        match self {
            DeviceHandle::Cuda(device) => device.free_memory(),
        }
    }

    /// Launches that may be pending.
    pub(crate) fn pending_launch_limit(&self, _entered: &Entered<'_>) -> Result<u64> {
        match self {
            DeviceHandle::Cuda(device) => device.pending_launch_limit(),
        }
    }

    /// Sets how many launches may be pending.
    pub(crate) fn set_pending_launch_limit(
        &self,
        launches: u64,
        _entered: &Entered<'_>,
    ) -> Result<()> {
        match self {
            DeviceHandle::Cuda(device) => device.set_pending_launch_limit(launches),
        }
    }

    /// Allocates at least one byte and gives its address.
    pub(crate) fn allocate(&self, bytes: u64, _entered: &Entered<'_>) -> Result<u64> {
        match self {
            DeviceHandle::Cuda(device) => device.allocate(bytes),
        }
    }

    /// Frees what [`DeviceHandle::allocate`] gave.
    ///
    /// # Safety
    /// The contract of this module; no kernel uses the memory.
    pub(crate) unsafe fn free(&self, address: u64, _entered: &Entered<'_>) {
        match self {
            // SAFETY: passed on to the caller.
            DeviceHandle::Cuda(device) => unsafe { device.free(address) },
        }
    }

    /// Starts a copy or a fill.
    ///
    /// # Safety
    /// The contract of this module; the host's memory stays until [`DeviceHandle::wait_for_transfers`] gives
    /// true.
    pub(crate) unsafe fn start(&self, transfer: Transfer, _entered: &Entered<'_>) -> Result<()> {
        match self {
            // SAFETY: passed on to the caller.
            DeviceHandle::Cuda(device) => unsafe { device.start(transfer) },
        }
    }

    /// Whether all transfers are done within that time.
    pub(crate) fn wait_for_transfers(
        &self,
        timeout: Duration,
        _entered: &Entered<'_>,
    ) -> Result<bool> {
        match self {
            DeviceHandle::Cuda(device) => device.wait_for_transfers(timeout),
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
        }
    }

    /// Makes a stream, in a partition if one is given.
    pub(crate) fn stream(
        &self,
        partition: Option<&PartitionHandle>,
        _entered: &Entered<'_>,
    ) -> Result<StreamHandle> {
        match (self, partition) {
            (DeviceHandle::Cuda(_), None) => cuda::CudaStream::create(None).map(StreamHandle::Cuda),
            (DeviceHandle::Cuda(_), Some(PartitionHandle::Cuda(partition))) => {
                cuda::CudaStream::create(Some(partition)).map(StreamHandle::Cuda)
            }
        }
    }

    /// Makes an event.
    pub(crate) fn event(&self, _entered: &Entered<'_>) -> Result<EventHandle> {
        match self {
            DeviceHandle::Cuda(_) => cuda::CudaEvent::create().map(EventHandle::Cuda),
        }
    }

    /// Makes a partition of at least `sms` SMs, and says how many it has.
    pub(crate) fn partition(
        &self,
        sms: u32,
        info: &DeviceInfo,
        _entered: &Entered<'_>,
    ) -> Result<(PartitionHandle, u32)> {
        match self {
            DeviceHandle::Cuda(device) => cuda::CudaPartition::create(device, sms, info)
                .map(|(partition, sms)| (PartitionHandle::Cuda(partition), sms)),
        }
    }
}

/// A stream. Never destroyed but by [`StreamHandle::destroy`].
#[derive(Debug)]
pub(crate) enum StreamHandle {
    Cuda(cuda::CudaStream),
}

impl StreamHandle {
    /// Launches a kernel.
    ///
    /// # Safety
    /// The contract of this module; `parameters` holds what the kernel reads. The stream's own context was
    /// entered: its partition's, if it has one.
    pub(crate) unsafe fn launch(
        &self,
        kernel: &KernelHandle,
        config: &LaunchConfig,
        parameters: &mut [u8],
        _entered: &Entered<'_>,
    ) -> Result<()> {
        match (self, kernel) {
            (StreamHandle::Cuda(stream), KernelHandle::Cuda(kernel)) => {
                // SAFETY: passed on to the caller.
                unsafe { stream.launch(kernel, config, parameters) }
            }
        }
    }

    /// Sets an event of the same device to this point of the stream.
    pub(crate) fn record(&self, event: &EventHandle, _entered: &Entered<'_>) -> Result<()> {
        match (self, event) {
            (StreamHandle::Cuda(stream), EventHandle::Cuda(event)) => stream.record(event),
        }
    }

    /// Whether all that was launched is done within that time.
    pub(crate) fn wait(&self, timeout: Duration, _entered: &Entered<'_>) -> Result<bool> {
        match self {
            StreamHandle::Cuda(stream) => stream.wait(timeout),
        }
    }

    /// Destroys it.
    ///
    /// # Safety
    /// The contract of this module; it is not used again.
    pub(crate) unsafe fn destroy(&self, _entered: &Entered<'_>) {
        match self {
            // SAFETY: passed on to the caller.
            StreamHandle::Cuda(stream) => unsafe { stream.destroy() },
        }
    }
}

/// An event. Never destroyed but by [`EventHandle::destroy`].
#[derive(Debug)]
pub(crate) enum EventHandle {
    Cuda(cuda::CudaEvent),
}

impl EventHandle {
    /// Whether the work before the event is done within that time.
    pub(crate) fn wait(&self, timeout: Duration, _entered: &Entered<'_>) -> Result<bool> {
        match self {
            EventHandle::Cuda(event) => event.wait(timeout),
        }
    }

    /// Milliseconds from this event to one of the same kind of device; both are done.
    pub(crate) fn elapsed_ms(&self, later: &EventHandle, _entered: &Entered<'_>) -> Result<f32> {
        match (self, later) {
            (EventHandle::Cuda(event), EventHandle::Cuda(later)) => event.elapsed_ms(later),
        }
    }

    /// Destroys it.
    ///
    /// # Safety
    /// The contract of this module; it is not used again.
    pub(crate) unsafe fn destroy(&self, _entered: &Entered<'_>) {
        match self {
            // SAFETY: passed on to the caller.
            EventHandle::Cuda(event) => unsafe { event.destroy() },
        }
    }
}

/// An image, loaded. Never unloaded but by [`ImageHandle::unload`].
#[derive(Debug)]
pub(crate) enum ImageHandle {
    Cuda(cuda::CudaImage),
}

impl ImageHandle {
    /// The kernel of the manifest, with its limits, after its parameters were compared with the image's.
    pub(crate) fn kernel(
        &self,
        device: &DeviceHandle,
        kernel: &manifest::Kernel,
        symbol: &CStr,
        _entered: &Entered<'_>,
    ) -> Result<(KernelHandle, KernelLimits)> {
        match (self, device) {
            (ImageHandle::Cuda(image), DeviceHandle::Cuda(device)) => image
                .kernel(device, kernel, symbol)
                .map(|(kernel, limits)| (KernelHandle::Cuda(kernel), limits)),
        }
    }

    /// The address of a global variable, in the context that was entered, and its bytes. `what` it is goes into
    /// the error.
    pub(crate) fn global(
        &self,
        symbol: &CStr,
        what: &str,
        _entered: &Entered<'_>,
    ) -> Result<(u64, u64)> {
        match self {
            ImageHandle::Cuda(image) => image.global(symbol, what),
        }
    }

    /// Unloads it.
    ///
    /// # Safety
    /// The contract of this module; none of its kernels runs, and it is not used again.
    pub(crate) unsafe fn unload(&self, _entered: &Entered<'_>) {
        match self {
            // SAFETY: passed on to the caller.
            ImageHandle::Cuda(image) => unsafe { image.unload() },
        }
    }
}

/// A kernel; lives as long as its image.
#[derive(Debug)]
pub(crate) enum KernelHandle {
    Cuda(cuda::CudaKernel),
}

impl KernelHandle {
    /// Lets the kernel have that many bytes of dynamic shared memory.
    pub(crate) fn allow_shared(&self, device: &DeviceHandle, bytes: u32) -> Result<()> {
        match (self, device) {
            (KernelHandle::Cuda(kernel), DeviceHandle::Cuda(device)) => {
                kernel.allow_shared(device, bytes)
            }
        }
    }
}

/// A part of a device. Never destroyed but by [`PartitionHandle::destroy`].
#[derive(Debug)]
pub(crate) enum PartitionHandle {
    Cuda(cuda::CudaPartition),
}

impl PartitionHandle {
    /// Makes its handles usable on this thread, and on no other.
    pub(crate) fn enter(&self) -> Result<Entered<'_>> {
        match self {
            PartitionHandle::Cuda(partition) => partition.enter().map(Entered::Cuda),
        }
    }

    /// Destroys it.
    ///
    /// # Safety
    /// The contract of this module; its streams are destroyed, and it is not used again.
    pub(crate) unsafe fn destroy(&self, _entered: &Entered<'_>) {
        match self {
            // SAFETY: passed on to the caller.
            PartitionHandle::Cuda(partition) => unsafe { partition.destroy() },
        }
    }
}
