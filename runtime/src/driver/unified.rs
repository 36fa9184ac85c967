//! Unified addressing: managed memory, pointers, host memory, peers (driver API, Unified Addressing and Peer Context
//! Memory Access).

use std::ffi::{c_int, c_void};
use std::ptr;

use super::sys::{
    CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_WRITECOMBINED,
    CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_PORTABLE, CU_MEMHOSTREGISTER_READ_ONLY,
    CUcontext, CUdevice, CUdeviceptr, CUmemAttach_flags, CUstream,
};
use super::{Failed, calls};

/// `CU_DEVICE_CPU`: the device number of the host.
pub(crate) const DEVICE_CPU: i32 = -1;
/// `CU_DEVICE_INVALID`: the device number that means no single location.
pub(crate) const DEVICE_INVALID: i32 = -2;

/// `CUmemLocationType` (cuda.h).
pub(crate) mod location {
    /// `CU_MEM_LOCATION_TYPE_DEVICE`
    pub(crate) const DEVICE: u32 = 1;
    /// `CU_MEM_LOCATION_TYPE_HOST`
    pub(crate) const HOST: u32 = 2;
    /// `CU_MEM_LOCATION_TYPE_HOST_NUMA`
    pub(crate) const HOST_NUMA: u32 = 3;
    /// `CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT`
    pub(crate) const HOST_NUMA_CURRENT: u32 = 4;
}

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryLocation {
    /// `CUmemLocationType`
    pub(crate) kind: u32,
    /// Device or NUMA node; ignored for the other kinds.
    pub(crate) id: c_int,
}

impl MemoryLocation {
    /// The location as the calls before CUDA 12.2 encode it; they support devices and the host only.
    fn as_device(self) -> Option<CUdevice> {
        match self.kind {
            location::DEVICE => Some(self.id),
            location::HOST => Some(DEVICE_CPU),
            _ => None,
        }
    }
}

/// `cuMemAllocManaged`, `CU_MEM_ATTACH_GLOBAL`: "this memory is accessible from any stream on any device". `bytes`
/// must not be 0. Freed like other device memory.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn allocate_managed(bytes: usize) -> Result<CUdeviceptr, Failed> {
    let mut address = 0;
    let flags = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as u32;
    // SAFETY: passed on to the caller; the pointer is to a live integer.
    unsafe { calls::cuMemAllocManaged(&mut address, bytes, flags) }?;
    Ok(address)
}

/// `cuMemAdvise_v2`, or `cuMemAdvise` if the driver is older and supports the location.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn advise(
    address: CUdeviceptr,
    bytes: usize,
    advice: u32,
    location: MemoryLocation,
) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    match unsafe { calls::cuMemAdvise_v2(address, bytes, advice, location) } {
        Err(failed) if failed.is_missing() => match location.as_device() {
            // SAFETY: as above.
            Some(device) => unsafe { calls::cuMemAdvise(address, bytes, advice, device) },
            None => Err(failed),
        },
        other => other,
    }
}

/// `cuMemPrefetchAsync_v2`, or `cuMemPrefetchAsync` as in [`advise`].
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn prefetch(
    address: CUdeviceptr,
    bytes: usize,
    location: MemoryLocation,
    stream: CUstream,
) -> Result<(), Failed> {
    // SAFETY: passed on to the caller; the flags "must be zero".
    match unsafe { calls::cuMemPrefetchAsync_v2(address, bytes, location, 0, stream) } {
        Err(failed) if failed.is_missing() => match location.as_device() {
            // SAFETY: as above.
            Some(device) => unsafe { calls::cuMemPrefetchAsync(address, bytes, device, stream) },
            None => Err(failed),
        },
        other => other,
    }
}

/// `cuMemRangeGetAttribute` into 32-bit integers; all attributes consist of them.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn range_attribute(
    address: CUdeviceptr,
    bytes: usize,
    attribute: u32,
    data: &mut [i32],
) -> Result<(), Failed> {
    let size = size_of_val(data);
    let data = data.as_mut_ptr().cast();
    // SAFETY: passed on to the caller; the data has the size passed.
    unsafe { calls::cuMemRangeGetAttribute(data, size, attribute, address, bytes) }
}

/// `cuMemRangeGetAttributes`: writes each attribute into its data.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn range_attributes(
    address: CUdeviceptr,
    bytes: usize,
    attributes: &mut [(u32, &mut [i32])],
) -> Result<(), Failed> {
    let mut names: Vec<u32> = attributes.iter().map(|(name, _)| *name).collect();
    let mut sizes: Vec<usize> = attributes.iter().map(|(_, data)| size_of_val(*data)).collect();
    let mut data: Vec<*mut c_void> =
        attributes.iter_mut().map(|(_, data)| data.as_mut_ptr().cast()).collect();
    // SAFETY: passed on to the caller; three arrays of one length, and each data slice has the size passed.
    unsafe {
        calls::cuMemRangeGetAttributes(
            data.as_mut_ptr(),
            sizes.as_mut_ptr(),
            names.as_mut_ptr(),
            names.len(),
            address,
            bytes,
        )
    }
}

/// `cuPointerGetAttribute`.
///
/// # Safety
/// The contract of [`super`]; `T` must be the attribute's type, and every bit pattern a value of it.
pub(crate) unsafe fn pointer_attribute<T: Copy>(
    address: CUdeviceptr,
    attribute: u32,
    empty: T,
) -> Result<T, Failed> {
    let mut value = empty;
    // SAFETY: passed on to the caller; the pointer is to a live value.
    unsafe { calls::cuPointerGetAttribute((&raw mut value).cast(), attribute, address) }?;
    Ok(value)
}

/// `cuPointerGetAttributes`: for an unknown pointer "the attributes are assigned default NULL values".
///
/// # Safety
/// The contract of [`super`]; each pointer must point to a live value of its attribute's type.
pub(crate) unsafe fn pointer_attributes(
    address: CUdeviceptr,
    attributes: &mut [(u32, *mut c_void)],
) -> Result<(), Failed> {
    let mut names: Vec<u32> = attributes.iter().map(|(name, _)| *name).collect();
    let mut data: Vec<*mut c_void> = attributes.iter().map(|(_, data)| *data).collect();
    let count = names.len() as u32;
    // SAFETY: passed on to the caller; both arrays have that length.
    unsafe { calls::cuPointerGetAttributes(count, names.as_mut_ptr(), data.as_mut_ptr(), address) }
}

/// `cuPointerSetAttribute` for an attribute of type `unsigned int`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn set_pointer_attribute(
    address: CUdeviceptr,
    attribute: u32,
    value: u32,
) -> Result<(), Failed> {
    // SAFETY: passed on to the caller; the pointer is to a live integer.
    unsafe { calls::cuPointerSetAttribute((&raw const value).cast(), attribute, address) }
}

/// `cuMemHostAlloc`. `bytes` must not be 0.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn allocate_host(
    bytes: usize,
    write_combined: bool,
) -> Result<*mut c_void, Failed> {
    let mut address = ptr::null_mut();
    let combined = if write_combined { CU_MEMHOSTALLOC_WRITECOMBINED } else { 0 };
    let flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | combined;
    // SAFETY: passed on to the caller; the pointer is to a live pointer.
    unsafe { calls::cuMemHostAlloc(&mut address, bytes, flags) }?;
    Ok(address)
}

/// `cuMemFreeHost`.
///
/// # Safety
/// The contract of [`super`]; the address must come from [`allocate_host`], and nothing may use it any more.
pub(crate) unsafe fn free_host(address: *mut c_void) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuMemFreeHost(address) }
}

/// `cuMemHostRegister`.
///
/// # Safety
/// The contract of [`super`]; the memory must live until [`unregister_host`].
pub(crate) unsafe fn register_host(
    address: *mut c_void,
    bytes: usize,
    read_only: bool,
) -> Result<(), Failed> {
    let read = if read_only { CU_MEMHOSTREGISTER_READ_ONLY } else { 0 };
    let flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | read;
    // SAFETY: passed on to the caller.
    unsafe { calls::cuMemHostRegister_v2(address, bytes, flags) }
}

/// `cuMemHostUnregister`.
///
/// # Safety
/// The contract of [`super`]; nothing may use the memory's device address any more.
pub(crate) unsafe fn unregister_host(address: *mut c_void) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuMemHostUnregister(address) }
}

/// `cuMemHostGetDevicePointer`: the device address of host memory, which differs from the host address for
/// registered and write-combined memory (Unified Addressing, Exceptions, Disjoint Addressing).
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn host_device_address(address: *mut c_void) -> Result<CUdeviceptr, Failed> {
    let mut device = 0;
    // SAFETY: passed on to the caller; the pointer is to a live integer, the flags "must be 0".
    unsafe { calls::cuMemHostGetDevicePointer_v2(&mut device, address, 0) }?;
    Ok(device)
}

/// `cuMemHostGetFlags`: whether the memory was allocated write-combined.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn is_write_combined(address: *mut c_void) -> Result<bool, Failed> {
    let mut flags = 0;
    // SAFETY: passed on to the caller; the pointer is to a live integer.
    unsafe { calls::cuMemHostGetFlags(&mut flags, address) }?;
    Ok(flags & CU_MEMHOSTALLOC_WRITECOMBINED != 0)
}

/// `cuMemcpyAsync`, which infers the location of the memory from the addresses.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn copy(
    to: CUdeviceptr,
    from: CUdeviceptr,
    bytes: usize,
    stream: CUstream,
) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuMemcpyAsync(to, from, bytes, stream) }
}

/// `cuDeviceCanAccessPeer`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn can_access(device: CUdevice, peer: CUdevice) -> Result<bool, Failed> {
    let mut can = 0;
    // SAFETY: passed on to the caller; the pointer is to a live integer.
    unsafe { calls::cuDeviceCanAccessPeer(&mut can, device, peer) }?;
    Ok(can != 0)
}

/// `cuDeviceGetP2PAttribute`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn peer_attribute(
    attribute: u32,
    from: CUdevice,
    to: CUdevice,
) -> Result<i32, Failed> {
    let mut value = 0;
    // SAFETY: passed on to the caller; the pointer is to a live integer.
    unsafe { calls::cuDeviceGetP2PAttribute(&mut value, attribute, from, to) }?;
    Ok(value)
}

/// `cuCtxEnablePeerAccess`: gives the current context access to the peer's memory.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn enable_peer(peer: CUcontext) -> Result<(), Failed> {
    // SAFETY: passed on to the caller; the flags "must be set to 0".
    unsafe { calls::cuCtxEnablePeerAccess(peer, 0) }
}

/// `cuCtxDisablePeerAccess`.
///
/// # Safety
/// The contract of [`super`]; nothing in the current context may use the peer's memory any more.
pub(crate) unsafe fn disable_peer(peer: CUcontext) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuCtxDisablePeerAccess(peer) }
}
