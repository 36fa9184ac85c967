//! Loaded images and their kernels (driver API, Library Management).
//!
//! A `CUlibrary` belongs to no context and a `CUkernel` of it runs in any: "the context to launch the kernel
//! on will either be taken from the specified stream hStream or the current context in case of NULL stream"
//! (`cuLaunchKernelEx`). So one load serves the primary context and every green context. How images are
//! loaded is decided in this file alone.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use super::sys::{CUdevice, CUdeviceptr, CUfunction_attribute, CUjit_option, CUkernel, CUlibrary};
use super::{Failed, calls};

const LOG_BYTES: usize = 16 * 1024;

/// A loaded image with the buffer that the driver writes its compile log to.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) library: CUlibrary,
    /// Lives as long as the library: with lazy loading the driver may compile PTX, and write here, when a
    /// kernel is first used.
    log: Box<[u8; LOG_BYTES]>,
}

/// `cuLibraryLoadData`. On failure also gives the driver's log, empty if it wrote none.
///
/// # Safety
/// The contract of [`super`]; `image` is a cubin, or PTX that ends in a NUL byte.
pub(crate) unsafe fn load(image: &[u8]) -> Result<Loaded, (Failed, String)> {
    let mut log = Box::new([0u8; LOG_BYTES]);
    let mut library = ptr::null_mut();
    let mut options =
        [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    // An option's value is passed in place of a pointer; the size leaves room for a last NUL.
    let mut values: [*mut c_void; 2] =
        [log.as_mut_ptr().cast(), ptr::without_provenance_mut(LOG_BYTES - 1)];
    // SAFETY: passed on to the caller; the arrays have the lengths given and the log outlives the library.
    // No library options, so the driver keeps its own copy of the image.
    let result = unsafe {
        calls::cuLibraryLoadData(
            &mut library,
            image.as_ptr().cast(),
            options.as_mut_ptr(),
            values.as_mut_ptr(),
            options.len() as u32,
            ptr::null_mut(),
            ptr::null_mut(),
            0,
        )
    };
    match result {
        Ok(()) => Ok(Loaded { library, log }),
        Err(failed) => {
            let text = CStr::from_bytes_until_nul(&log[..]).unwrap_or_default();
            Err((failed, text.to_string_lossy().into_owned()))
        }
    }
}

impl Loaded {
    /// The driver's log so far; empty if it wrote none.
    pub(crate) fn log(&self) -> String {
        CStr::from_bytes_until_nul(&self.log[..]).unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// `cuLibraryUnload`.
///
/// # Safety
/// The contract of [`super`]; no kernel of the library runs.
pub(crate) unsafe fn unload(library: CUlibrary) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuLibraryUnload(library) }
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

/// `cuKernelGetFunction` in the current context: makes the driver load (and, for PTX, compile) the kernel
/// now, so that a failure has a place to appear.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn load_kernel(kernel: CUkernel) -> Result<(), Failed> {
    let mut function = ptr::null_mut();
    // SAFETY: passed on to the caller; the pointer is to a live pointer.
    unsafe { calls::cuKernelGetFunction(&mut function, kernel) }
}

/// `cuLibraryGetGlobal` in the current context: address and bytes.
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

/// `cuKernelGetAttribute` for one that may be negative.
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
