//! Device memory (driver API, Memory Management).

use std::ffi::c_void;

use super::sys::{CUdeviceptr, CUstream};
use super::{Failed, calls};

/// `cuMemAlloc` in the current context. `bytes` must not be 0.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn allocate(bytes: usize) -> Result<CUdeviceptr, Failed> {
    let mut address = 0;
    // SAFETY: passed on to the caller; the pointer is to a live integer.
    unsafe { calls::cuMemAlloc_v2(&mut address, bytes) }?;
    Ok(address)
}

/// `cuMemFree`. It may wait for the device's work.
///
/// # Safety
/// The contract of [`super`]; the address must come from [`allocate`], and nothing may use it any more.
pub(crate) unsafe fn free(address: CUdeviceptr) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuMemFree_v2(address) }
}

/// `cuMemGetInfo` of the current context: free and total bytes.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn free_and_total() -> Result<(u64, u64), Failed> {
    let (mut free, mut total) = (0usize, 0usize);
    // SAFETY: passed on to the caller; the pointers are to live integers.
    unsafe { calls::cuMemGetInfo_v2(&mut free, &mut total) }?;
    Ok((free as u64, total as u64))
}

/// `cuMemcpyHtoDAsync` from pageable memory. It returns once the source is in staging memory, so the source may be
/// reused, but the transfer to the device may still be running (API synchronization behavior, Asynchronous): wait
/// for the stream before relying on the copy.
///
/// # Safety
/// The contract of [`super`]; `source` must be readable for `bytes` bytes.
pub(crate) unsafe fn copy_to_device(
    to: CUdeviceptr,
    source: *const c_void,
    bytes: usize,
    stream: CUstream,
) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuMemcpyHtoDAsync_v2(to, source, bytes, stream) }
}

/// `cuMemcpyDtoHAsync` to pageable memory: "the function will return only once the copy has completed" (API
/// synchronization behavior, Asynchronous).
///
/// # Safety
/// The contract of [`super`]; `target` must be writable for `bytes` bytes.
pub(crate) unsafe fn copy_to_host(
    target: *mut c_void,
    from: CUdeviceptr,
    bytes: usize,
    stream: CUstream,
) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuMemcpyDtoHAsync_v2(target, from, bytes, stream) }
}

/// `cuMemsetD8Async`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn set_bytes(
    to: CUdeviceptr,
    value: u8,
    bytes: usize,
    stream: CUstream,
) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuMemsetD8Async(to, value, bytes, stream) }
}
