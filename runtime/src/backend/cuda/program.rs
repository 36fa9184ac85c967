//! Images and their kernels.

use std::ffi::{CStr, c_void};

use gridlet_artifact::manifest::{self, ImageKind, Resident};
use gridlet_artifact::{Artifact, KernelLimits};

use super::CudaDevice;
use crate::backend::parameters::{Answer, compare_parameters, compare_resident, no_image};
use crate::driver;
use crate::driver::library::Loaded;
use crate::driver::sys::{CUfunction_attribute as Attribute, CUkernel};
use crate::error::{Error, Result};
use crate::info::DeviceInfo;
use crate::observe;

/// A `CUlibrary`.
#[derive(Debug)]
pub(crate) struct CudaImage(Loaded);

// SAFETY: the raw handle is a name of a driver object, and the driver's calls are thread-safe.
unsafe impl Send for CudaImage {}
// SAFETY: as above.
unsafe impl Sync for CudaImage {}

/// A `CUkernel`.
#[derive(Debug)]
pub(crate) struct CudaKernel(pub(super) CUkernel);

// SAFETY: the raw handle is a name of a driver object, and the driver's calls are thread-safe.
unsafe impl Send for CudaKernel {}
// SAFETY: as above.
unsafe impl Sync for CudaKernel {}

impl CudaImage {
    /// Loads the image for the compute capability; the primary context must be current.
    pub(crate) fn load(artifact: &Artifact, info: &DeviceInfo) -> Result<CudaImage> {
        let Some((image, bytes)) = artifact.shared_image_for(info.compute_capability) else {
            return Err(no_image(artifact, info));
        };
        let bytes = match image.kind {
            ImageKind::Cubin | ImageKind::SharedObject => bytes.clone(),
            ImageKind::Ptx => {
                let mut terminated = Vec::with_capacity(bytes.len() + 1);
                terminated.extend_from_slice(bytes);
                terminated.push(0);
                terminated.into()
            }
        };
        // SAFETY: an artifact's image is complete and of the declared kind; PTX ends in a NUL byte.
        let loaded = unsafe { driver::library::load(bytes) }
            .map_err(|(failed, log)| failed.with_log(log))?;
        observe::loaded(image);
        Ok(CudaImage(loaded))
    }

    pub(crate) fn kernel(
        &self,
        device: &CudaDevice,
        kernel: &manifest::Kernel,
        symbol: &CStr,
    ) -> Result<(CudaKernel, KernelLimits)> {
        let what = format!("kernel `{}`", kernel.name);
        let (handle, limits) = self.find(device, symbol, &what)?;
        compare_parameters(kernel, |parameter| self.parameter(handle, parameter, &what))?;
        let limits = KernelLimits { launch_bounds: kernel.max_threads_per_block, ..limits };
        Ok((CudaKernel(handle), limits))
    }

    pub(crate) fn resident(
        &self,
        device: &CudaDevice,
        resident: &Resident,
        symbol: &CStr,
    ) -> Result<(CudaKernel, KernelLimits)> {
        let what = "the resident entry";
        let (handle, limits) = self.find(device, symbol, what)?;
        compare_resident(resident, |parameter| self.parameter(handle, parameter, what))?;
        Ok((CudaKernel(handle), limits))
    }

    /// Looks up and loads an entry point. Its limits are without launch bounds.
    fn find(
        &self,
        device: &CudaDevice,
        symbol: &CStr,
        what: &str,
    ) -> Result<(CUkernel, KernelLimits)> {
        let explain = |failed| self.explain(failed, what);
        // SAFETY: the library lives as long as `self`; the primary context is current.
        unsafe {
            let handle = driver::library::kernel(self.0.library, symbol).map_err(explain)?;
            driver::library::load_kernel(handle).map_err(explain)?;
            let get = |attribute| {
                driver::library::attribute(handle, attribute, device.handle).map_err(explain)
            };
            let limits = KernelLimits {
                launch_bounds: None,
                max_threads_per_block: get(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
                static_shared_bytes: get(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            };
            Ok((handle, limits))
        }
    }

    fn parameter(&self, kernel: CUkernel, index: usize, what: &str) -> Result<Answer> {
        // SAFETY: the library lives as long as `self`; the primary context is current.
        match unsafe { driver::library::parameter(kernel, index) } {
            // Before CUDA 12.4 the driver has no such query.
            Err(failed) if failed.is_missing() => Ok(Answer::Unknown),
            Err(failed) => Err(self.explain(failed, what)),
            Ok(None) => Ok(Answer::NoSuch),
            Ok(Some((offset, size))) => Ok(Answer::At { offset, size }),
        }
    }

    pub(crate) fn global(&self, symbol: &CStr, what: &str) -> Result<(u64, u64)> {
        // SAFETY: the library lives as long as `self`; a context is current.
        unsafe { driver::library::global(self.0.library, symbol) }
            .map_err(|failed| self.explain(failed, &format!("{what} {symbol:?}")))
    }

    /// # Safety
    /// The contract of [`crate::backend`].
    pub(crate) unsafe fn unload(&self) {
        // SAFETY: passed on to the caller. An error means that the context is gone.
        let _ = unsafe { self.0.unload() };
    }

    /// Adds the purpose of the call and the driver's log: with lazy loading, PTX is compiled when the first symbol
    /// is looked up.
    fn explain(&self, failed: driver::Failed, what: &str) -> Error {
        failed.with_log(format!("for {what}\n{}", self.0.log()))
    }
}

impl CudaKernel {
    pub(crate) fn raw(&self) -> *mut c_void {
        self.0.cast()
    }

    pub(crate) fn allow_shared(&self, device: &CudaDevice, bytes: u32) -> Result<()> {
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        // SAFETY: the kernel lives as long as its program.
        unsafe { driver::library::set_attribute(self.0, attribute, bytes, device.handle) }?;
        Ok(())
    }
}
