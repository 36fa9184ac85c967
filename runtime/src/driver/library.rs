//! Loaded images and their kernels (driver API, Library Management).
//!
//! A `CUlibrary` belongs to no context, and its `CUkernel`s run in any context: "the context to launch the kernel
//! on will either be taken from the specified stream hStream or the current context in case of NULL stream"
//! (`cuLaunchKernelEx`). So one load serves the primary context and every green context. Only this file decides
//! how images are loaded.

use std::ffi::{CStr, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use super::sys::{
    CUdevice, CUdeviceptr, CUfunction_attribute, CUjit_option, CUkernel, CUlibrary, CUlibraryOption,
};
use super::{Failed, calls};

const LOG_BYTES: usize = 16 * 1024;

/// A loaded image, with the host memory that the driver uses for it.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) library: CUlibrary,
    used: ManuallyDrop<Used>,
    unloaded: AtomicBool,
}

/// Data that must live as long as the library. With lazy loading, the driver reads the image, and may compile PTX
/// and write to the log, when a kernel is first used.
#[derive(Debug)]
struct Used {
    #[expect(dead_code, reason = "the driver reads it")]
    image: Bytes,
    log: Box<[u8; LOG_BYTES]>,
}

/// `cuLibraryLoadData`. A failure includes the driver's log, empty if it wrote none.
///
/// # Safety
/// The contract of [`super`]; `image` must be a cubin, or PTX that ends in a NUL byte.
pub(crate) unsafe fn load(image: Bytes) -> Result<Loaded, (Failed, String)> {
    let mut log = Box::new([0u8; LOG_BYTES]);
    let mut library = ptr::null_mut();
    let mut options =
        [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    // An option's value is passed in place of a pointer; the size leaves room for a final NUL.
    let mut values: [*mut c_void; 2] =
        [log.as_mut_ptr().cast(), ptr::without_provenance_mut(LOG_BYTES - 1)];
    // The driver need not copy the image. A flag is also passed in place of a pointer.
    let mut kept = [CUlibraryOption::CU_LIBRARY_BINARY_IS_PRESERVED];
    let mut flags: [*mut c_void; 1] = [ptr::without_provenance_mut(1)];
    // SAFETY: passed on to the caller; the arrays have the lengths passed; image and log outlive the library.
    let result = unsafe {
        calls::cuLibraryLoadData(
            &mut library,
            image.as_ptr().cast(),
            options.as_mut_ptr(),
            values.as_mut_ptr(),
            options.len() as u32,
            kept.as_mut_ptr(),
            flags.as_mut_ptr(),
            kept.len() as u32,
        )
    };
    match result {
        Ok(()) => Ok(Loaded {
            library,
            used: ManuallyDrop::new(Used { image, log }),
            unloaded: AtomicBool::new(false),
        }),
        Err(failed) => {
            let text = CStr::from_bytes_until_nul(&log[..]).unwrap_or_default();
            Err((failed, text.to_string_lossy().into_owned()))
        }
    }
}

impl Loaded {
    /// The driver's log so far; empty if it wrote none.
    pub(crate) fn log(&self) -> String {
        let log = CStr::from_bytes_until_nul(&self.used.log[..]).unwrap_or_default();
        log.to_string_lossy().into_owned()
    }

    /// `cuLibraryUnload`.
    ///
    /// # Safety
    /// The contract of [`super`]; no kernel of the library may run, and it may not be used again.
    pub(crate) unsafe fn unload(&self) -> Result<(), Failed> {
        // SAFETY: passed on to the caller.
        unsafe { calls::cuLibraryUnload(self.library) }?;
        self.unloaded.store(true, Ordering::Release);
        Ok(())
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.unloaded.load(Ordering::Acquire) {
            // SAFETY: nothing uses it after this. If the driver still has the library, this is leaked.
            unsafe { ManuallyDrop::drop(&mut self.used) };
        }
    }
}

/// `cuLibraryGetKernel`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn kernel(library: CUlibrary, name: &CStr) -> Result<CUkernel, Failed> {
    let mut kernel = ptr::null_mut();
    // SAFETY: passed on to the caller; the pointer is to a live pointer.
    unsafe { calls::cuLibraryGetKernel(&mut kernel, library, name.as_ptr()) }?;
    Ok(kernel)
}

/// `cuKernelGetFunction` in the current context: makes the driver load (and, for PTX, compile) the kernel now, so
/// that a failure can be reported here.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn load_kernel(kernel: CUkernel) -> Result<(), Failed> {
    let mut function = ptr::null_mut();
    // SAFETY: passed on to the caller; the pointer is to a live pointer.
    unsafe { calls::cuKernelGetFunction(&mut function, kernel) }
}

/// `cuLibraryGetGlobal` in the current context: address and size in bytes.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn global(library: CUlibrary, name: &CStr) -> Result<(CUdeviceptr, u64), Failed> {
    let (mut address, mut bytes) = (0, 0usize);
    // SAFETY: passed on to the caller; the pointers are to live integers.
    unsafe { calls::cuLibraryGetGlobal(&mut address, &mut bytes, library, name.as_ptr()) }?;
    Ok((address, bytes as u64))
}

/// `cuKernelGetAttribute`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn attribute(
    kernel: CUkernel,
    attribute: CUfunction_attribute,
    device: CUdevice,
) -> Result<u32, Failed> {
    // SAFETY: passed on to the caller.
    Ok(unsafe { signed_attribute(kernel, attribute, device) }?.max(0).unsigned_abs())
}

/// `cuKernelGetAttribute` for an attribute that may be negative.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn signed_attribute(
    kernel: CUkernel,
    attribute: CUfunction_attribute,
    device: CUdevice,
) -> Result<i32, Failed> {
    let mut value: c_int = 0;
    // SAFETY: passed on to the caller; the pointer is to a live integer.
    unsafe { calls::cuKernelGetAttribute(&mut value, attribute, kernel, device) }?;
    Ok(value)
}

/// `cuKernelSetAttribute`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn set_attribute(
    kernel: CUkernel,
    attribute: CUfunction_attribute,
    value: i32,
    device: CUdevice,
) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuKernelSetAttribute(attribute, value, kernel, device) }
}

/// `cuKernelGetParamInfo`: offset and size of a parameter; `None` past the last one, for which the call
/// returns `CUDA_ERROR_INVALID_VALUE`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn parameter(
    kernel: CUkernel,
    index: usize,
) -> Result<Option<(u64, u64)>, Failed> {
    let (mut offset, mut size) = (0usize, 0usize);
    // SAFETY: passed on to the caller; the pointers are to live integers.
    match unsafe { calls::cuKernelGetParamInfo(kernel, index, &mut offset, &mut size) } {
        Ok(()) => Ok(Some((offset as u64, size as u64))),
        Err(failed) if failed.is_invalid_value() => Ok(None),
        Err(failed) => Err(failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_uses_is_freed_after_it_is_unloaded() {
        for unloaded in [false, true] {
            let image = Bytes::copy_from_slice(b".version 8.0\0");
            let used = Used { image: image.clone(), log: Box::new([0; LOG_BYTES]) };
            drop(Loaded {
                library: ptr::null_mut(),
                used: ManuallyDrop::new(used),
                unloaded: AtomicBool::new(unloaded),
            });
            assert_eq!(image.is_unique(), unloaded);
        }
    }
}
