//! Green contexts (driver API, Green Contexts; CUDA 12.4).

use std::mem;
use std::ptr;

use super::sys::{
    CUcontext, CUdevResource, CUdevResourceDesc, CUdevResourceType, CUdevice, CUgreenCtx,
    CUgreenCtxCreate_flags, CUstream, CUstream_flags,
};
use super::{Failed, calls};

/// What the driver says of an SM resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SmResource {
    /// SMs in it.
    pub(crate) sm_count: u32,
    /// SMs of the smallest partition; 0 before driver 13.0, which does not say.
    pub(crate) minimum: u32,
    /// Partitions are multiples of this; 0 before driver 13.0.
    pub(crate) alignment: u32,
}

/// An SM resource, as the driver hands it out.
#[derive(Clone, Copy)]
pub(crate) struct RawSmResource(CUdevResource);

impl RawSmResource {
    /// A resource for the driver to fill. All bytes 0 is `CU_DEV_RESOURCE_TYPE_INVALID`; the driver's later
    /// `nextResource`, in what 13.0 calls padding, is then null.
    fn empty() -> RawSmResource {
        // SAFETY: an integer enum that has 0, bytes, and a union of integers and bytes.
        RawSmResource(unsafe { mem::zeroed() })
    }

    pub(crate) fn sm(&self) -> SmResource {
        // SAFETY: the calls below ask for SM resources, and any bytes are three integers.
        let sm = unsafe { self.0.__bindgen_anon_1.sm };
        SmResource {
            sm_count: sm.smCount,
            minimum: sm.minSmPartitionSize,
            alignment: sm.smCoscheduledAlignment,
        }
    }
}

/// `cuDeviceGetDevResource(CU_DEV_RESOURCE_TYPE_SM)`: all SMs of the device. Needs no context.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn device_sms(device: CUdevice) -> Result<RawSmResource, Failed> {
    let mut resource = RawSmResource::empty();
    let kind = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
    // SAFETY: passed on to the caller; the pointer is to a live resource.
    unsafe { calls::cuDeviceGetDevResource(device, &mut resource.0, kind) }?;
    Ok(resource)
}

/// `cuDevSmResourceSplitByCount` into one group of at least `sms` SMs; `None` if the driver makes no group.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn split_one(
    all: &RawSmResource,
    sms: u32,
) -> Result<Option<RawSmResource>, Failed> {
    let mut group = RawSmResource::empty();
    let mut groups = 1;
    // SAFETY: passed on to the caller. `groups` says that there is room for one; "remaining may be NULL".
    unsafe {
        calls::cuDevSmResourceSplitByCount(
            &mut group.0,
            &mut groups,
            &all.0,
            ptr::null_mut(),
            0,
            sms,
        )
    }?;
    Ok((groups > 0).then_some(group))
}

/// `cuDevResourceGenerateDesc` of one resource, then `cuGreenCtxCreate`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn create(
    resource: &RawSmResource,
    device: CUdevice,
) -> Result<CUgreenCtx, Failed> {
    let mut resource = *resource;
    let mut description: CUdevResourceDesc = ptr::null_mut();
    let mut green = ptr::null_mut();
    // SAFETY: passed on to the caller; one resource, as the count says. `CU_GREEN_CTX_DEFAULT_STREAM` "is
    // required".
    unsafe {
        calls::cuDevResourceGenerateDesc(&mut description, &mut resource.0, 1)?;
        let flags = CUgreenCtxCreate_flags::CU_GREEN_CTX_DEFAULT_STREAM as u32;
        calls::cuGreenCtxCreate(&mut green, description, device, flags)?;
    }
    Ok(green)
}

/// `cuGreenCtxDestroy`.
///
/// # Safety
/// The contract of [`super`]; its streams are destroyed: it "does not destroy streams created via
/// cuGreenCtxStreamCreate".
pub(crate) unsafe fn destroy(green: CUgreenCtx) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuGreenCtxDestroy(green) }
}

/// `cuGreenCtxGetDevResource(CU_DEV_RESOURCE_TYPE_SM)`: the SMs that the context was given.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn sms(green: CUgreenCtx) -> Result<SmResource, Failed> {
    let mut resource = RawSmResource::empty();
    let kind = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
    // SAFETY: passed on to the caller; the pointer is to a live resource.
    unsafe { calls::cuGreenCtxGetDevResource(green, &mut resource.0, kind) }?;
    Ok(resource.sm())
}

/// `cuCtxFromGreenCtx`: the handle to make current. It belongs to the green context: never destroy it.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn context(green: CUgreenCtx) -> Result<CUcontext, Failed> {
    let mut context = ptr::null_mut();
    // SAFETY: passed on to the caller; the pointer is to a live pointer.
    unsafe { calls::cuCtxFromGreenCtx(&mut context, green) }?;
    Ok(context)
}

/// `cuGreenCtxStreamCreate` with `CU_STREAM_NON_BLOCKING`, which "must be specified", and the default
/// priority.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn create_stream(green: CUgreenCtx) -> Result<CUstream, Failed> {
    let mut stream = ptr::null_mut();
    let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
    // SAFETY: passed on to the caller; the pointer is to a live pointer.
    unsafe { calls::cuGreenCtxStreamCreate(&mut stream, green, flags, 0) }?;
    Ok(stream)
}
