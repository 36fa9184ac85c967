//! Images and their kernels on both kinds of device.

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use gridlet_artifact::{KernelLimits, manifest};
use gridlet_cpu::{CpuImage, CpuKernel};

use super::{DeviceHandle, Entered, cpu, cuda, mixed};
use crate::error::{Error, Result};

/// An image, loaded. Never unloaded but by [`ImageHandle::unload`].
#[derive(Debug)]
pub(crate) enum ImageHandle {
    Cuda(cuda::CudaImage),
    Cpu(Arc<CpuImage>),
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
            (ImageHandle::Cpu(image), DeviceHandle::Cpu(_)) => cpu::kernel(image, kernel)
                .map(|(kernel, limits)| (KernelHandle::Cpu(kernel), limits)),
            _ => Err(mixed()),
        }
    }

    /// The address of a global variable, in the context that was entered, and its bytes, if the image says. `what`
    /// it is goes into the error.
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

    /// Unloads it.
    ///
    /// # Safety
    /// The contract of [`super`]; none of its kernels runs, and it is not used again.
    pub(crate) unsafe fn unload(&self, _entered: &Entered<'_>) {
        match self {
            // SAFETY: passed on to the caller.
            ImageHandle::Cuda(image) => unsafe { image.unload() },
            // Unloaded with the last of its handles.
            ImageHandle::Cpu(_) => {}
        }
    }
}

/// A kernel; lives as long as its image.
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

    /// Lets the kernel have that many bytes of dynamic shared memory.
    pub(crate) fn allow_shared(&self, device: &DeviceHandle, bytes: u32) -> Result<()> {
        match (self, device) {
            (KernelHandle::Cuda(kernel), DeviceHandle::Cuda(device)) => {
                kernel.allow_shared(device, bytes)
            }
            // There is no more to opt in to.
            _ => Ok(()),
        }
    }

    /// The GPU's kernel; what the CPU device does not have otherwise.
    pub(crate) fn cuda(&self, what: &'static str) -> Result<&cuda::CudaKernel> {
        match self {
            KernelHandle::Cuda(kernel) => Ok(kernel),
            KernelHandle::Cpu(_) => Err(Error::NotOnCpu { what }),
        }
    }
}
