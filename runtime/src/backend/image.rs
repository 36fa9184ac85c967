//! Images and their kernels on both kinds of device.

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use gridlet_artifact::{KernelLimits, manifest};
use gridlet_cpu::{CpuImage, CpuKernel};

use super::{DeviceHandle, Entered, cpu, cuda, mixed};
use crate::error::{Error, Result};

/// A loaded image. Only [`ImageHandle::unload`] unloads it.
#[derive(Debug)]
pub(crate) enum ImageHandle {
    Cuda(cuda::CudaImage),
    Cpu(Arc<CpuImage>),
}

impl ImageHandle {
    /// Looks up the manifest's kernel and its limits, after comparing its parameters with the image's.
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
            (ImageHandle::Cpu(image), DeviceHandle::Cpu(_)) => cpu::kernel(image, kernel)
                .map(|(kernel, limits)| (KernelHandle::Cpu(kernel), limits)),
            _ => Err(mixed()),
        }
    }

    /// Looks up the entry of resident launches and its limits, after comparing its parameters with the image's.
    pub(crate) fn resident(
        &self,
        device: &DeviceHandle,
        resident: &manifest::Resident,
        symbol: &CStr,
        _entered: &Entered<'_>,
    ) -> Result<(KernelHandle, KernelLimits)> {
        match (self, device) {
            (ImageHandle::Cuda(image), DeviceHandle::Cuda(device)) => image
                .resident(device, resident, symbol)
                .map(|(kernel, limits)| (KernelHandle::Cuda(kernel), limits)),
            (ImageHandle::Cpu(_), _) => Err(Error::NotOnCpu { what: "resident launches" }),
            _ => Err(mixed()),
        }
    }

    /// The address of a global variable in the entered context, and its size if the image records it. `what`
    /// describes the variable in errors.
    pub(crate) fn global(
        &self,
        symbol: &CStr,
        what: &str,
        _entered: &Entered<'_>,
    ) -> Result<(u64, Option<u64>)> {
        match self {
            ImageHandle::Cuda(image) => {
                image.global(symbol, what).map(|(address, bytes)| (address, Some(bytes)))
            }
            ImageHandle::Cpu(image) => {
                cpu::global(image, symbol, what).map(|address| (address, None))
            }
        }
    }

    /// Whether the image has the lost-launch record of its program. On a GPU a missing one is an error where it is looked up;
    /// an image for the CPU has none if only modules that were linked for GPUs launch kernels.
    pub(crate) fn may_lose_launches(&self, record: &CStr) -> bool {
        match self {
            ImageHandle::Cuda(_) => true,
            ImageHandle::Cpu(image) => image.symbol(&record.to_string_lossy()).is_some(),
        }
    }

    /// Unloads the image.
    ///
    /// # Safety
    /// The contract of [`super`]; none of the image's kernels may run, and it may not be used again.
    pub(crate) unsafe fn unload(&self, _entered: &Entered<'_>) {
        match self {
            // SAFETY: passed on to the caller.
            ImageHandle::Cuda(image) => unsafe { image.unload() },
            // Unloaded with its last handle.
            ImageHandle::Cpu(_) => {}
        }
    }
}

/// A kernel; valid as long as its image.
#[derive(Debug)]
pub(crate) enum KernelHandle {
    Cuda(cuda::CudaKernel),
    Cpu(CpuKernel),
}

impl KernelHandle {
    /// The driver's handle; `None` on the CPU.
    pub(crate) fn raw(&self) -> Option<*mut c_void> {
        match self {
            KernelHandle::Cuda(kernel) => Some(kernel.raw()),
            KernelHandle::Cpu(_) => None,
        }
    }

    /// Allows the kernel this many bytes of dynamic shared memory.
    pub(crate) fn allow_shared(&self, device: &DeviceHandle, bytes: u32) -> Result<()> {
        match (self, device) {
            (KernelHandle::Cuda(kernel), DeviceHandle::Cuda(device)) => {
                kernel.allow_shared(device, bytes)
            }
            // The CPU needs no opt-in.
            _ => Ok(()),
        }
    }

    /// The GPU's kernel; on the CPU, an error that names the missing feature `what`.
    pub(crate) fn cuda(&self, what: &'static str) -> Result<&cuda::CudaKernel> {
        match self {
            KernelHandle::Cuda(kernel) => Ok(kernel),
            KernelHandle::Cpu(_) => Err(Error::NotOnCpu { what }),
        }
    }
}
