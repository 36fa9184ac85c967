//! Green contexts and their resources (driver API, Green Contexts; CUDA 12.4, some calls 13.0 and 13.1).

use std::mem;
use std::ptr;

use super::sys::{
    CU_DEV_SM_RESOURCE_GROUP_PARAMS, CUcontext, CUdevResource, CUdevResourceDesc,
    CUdevResourceType, CUdevSmResourceGroup_flags, CUdevWorkqueueConfigScope, CUdevice, CUevent,
    CUgreenCtx, CUgreenCtxCreate_flags, CUstream, CUstream_flags,
};
use super::{Failed, calls};

// The struct is 144 bytes in every version: the fields added in 13.1 occupy former padding.
const _: () = assert!(size_of::<CUdevResource>() == 144);

/// A kind of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResourceKind {
    Sm,
    WorkqueueConfig,
    Workqueue,
}

impl ResourceKind {
    fn raw(self) -> CUdevResourceType {
        match self {
            ResourceKind::Sm => CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM,
            ResourceKind::WorkqueueConfig => {
                CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG
            }
            ResourceKind::Workqueue => CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE,
        }
    }
}

/// The driver's values for an SM resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SmNumbers {
    /// The number of SMs.
    pub(crate) sm_count: u32,
    /// SMs of the smallest partition; 0 before driver 13.0, which does not report it.
    pub(crate) minimum: u32,
    /// Partition sizes are multiples of this; 0 before driver 13.0.
    pub(crate) alignment: u32,
}

/// The values of a workqueue configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkqueueNumbers {
    /// `wqConcurrencyLimit`
    pub(crate) concurrency_limit: u32,
    /// `sharingScope == CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED`
    pub(crate) balanced: bool,
}

/// A resource, as the driver represents it.
#[derive(Clone, Copy)]
pub(crate) struct RawResource(CUdevResource);

impl std::fmt::Debug for RawResource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawResource").finish_non_exhaustive()
    }
}

// SAFETY: the pointer in it is the driver's own and is only handed back to the driver.
unsafe impl Send for RawResource {}
// SAFETY: as above.
unsafe impl Sync for RawResource {}

impl RawResource {
    /// A resource for the driver to fill. All bytes 0 means `CU_DEV_RESOURCE_TYPE_INVALID` with a null
    /// `nextResource`.
    fn empty() -> RawResource {
        // SAFETY: an integer enum with a value 0, bytes, a null pointer, and a union of integers and bytes.
        RawResource(unsafe { mem::zeroed() })
    }

    /// Whether it is an SM resource with SMs: "the remainder may be NULL / _TYPE_INVALID (if there are no SMs
    /// remaining)".
    fn has_sms(&self) -> bool {
        // Read as an integer: a newer driver may have kinds that the enum lacks.
        // SAFETY: the field is four initialized bytes.
        let kind = unsafe { ptr::from_ref(&self.0.type_).cast::<u32>().read() };
        kind == CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM as u32 && self.sm().sm_count > 0
    }

    /// All bytes, to tell resources apart.
    pub(crate) fn bytes(&self) -> [u8; size_of::<CUdevResource>()] {
        // SAFETY: the struct has no padding: kind, bytes, a union that is as large as its byte array, a pointer;
        // `empty` initialized all of them.
        unsafe { mem::transmute(self.0) }
    }

    /// The values of an SM resource.
    pub(crate) fn sm(&self) -> SmNumbers {
        // SAFETY: any bytes are integers.
        let sm = unsafe { self.0.__bindgen_anon_1.sm };
        SmNumbers {
            sm_count: sm.smCount,
            minimum: sm.minSmPartitionSize,
            alignment: sm.smCoscheduledAlignment,
        }
    }

    /// The values of a workqueue configuration.
    pub(crate) fn workqueue(&self) -> WorkqueueNumbers {
        // SAFETY: the union's fields are integers; the scope is read as one, because a newer driver may have
        // scopes that the enum lacks.
        unsafe {
            let config = &raw const self.0.__bindgen_anon_1.wqConfig;
            let scope = (&raw const (*config).sharingScope).cast::<u32>().read();
            let limit = (&raw const (*config).wqConcurrencyLimit).read();
            let balanced = CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED as u32;
            WorkqueueNumbers { concurrency_limit: limit, balanced: scope == balanced }
        }
    }

    /// A copy of a workqueue configuration with other values: "Changing the workqueue configuration can be done
    /// directly in place".
    pub(crate) fn with_workqueue(mut self, numbers: WorkqueueNumbers) -> RawResource {
        // SAFETY: both are plain integers of the configuration that the driver filled.
        unsafe {
            let config = &raw mut self.0.__bindgen_anon_1.wqConfig;
            (*config).wqConcurrencyLimit = numbers.concurrency_limit;
            (*config).sharingScope = if numbers.balanced {
                CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED
            } else {
                CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_DEVICE_CTX
            };
        }
        self
    }
}

/// `cuDeviceGetDevResource`: the device's resources. Needs no context.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn of_device(
    device: CUdevice,
    kind: ResourceKind,
) -> Result<RawResource, Failed> {
    let mut resource = RawResource::empty();
    // SAFETY: passed on to the caller; the pointer is to a live resource.
    unsafe { calls::cuDeviceGetDevResource(device, &mut resource.0, kind.raw()) }?;
    Ok(resource)
}

/// `cuCtxGetDevResource`: the resources available to a context.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn of_context(
    context: CUcontext,
    kind: ResourceKind,
) -> Result<RawResource, Failed> {
    let mut resource = RawResource::empty();
    // SAFETY: passed on to the caller; the pointer is to a live resource.
    unsafe { calls::cuCtxGetDevResource(context, &mut resource.0, kind.raw()) }?;
    Ok(resource)
}

/// `cuGreenCtxGetDevResource`: the resources that the green context was created with.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn of_green(
    green: CUgreenCtx,
    kind: ResourceKind,
) -> Result<RawResource, Failed> {
    let mut resource = RawResource::empty();
    // SAFETY: passed on to the caller; the pointer is to a live resource.
    unsafe { calls::cuGreenCtxGetDevResource(green, &mut resource.0, kind.raw()) }?;
    Ok(resource)
}

/// `cuStreamGetDevResource` for SMs, the only kind that it supports: it "will return
/// CUDA_ERROR_INVALID_RESOURCE_TYPE" for workqueues. CUDA 13.1.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn of_stream(stream: CUstream) -> Result<RawResource, Failed> {
    let mut resource = RawResource::empty();
    let kind = ResourceKind::Sm.raw();
    // SAFETY: passed on to the caller; the pointer is to a live resource.
    unsafe { calls::cuStreamGetDevResource(stream, &mut resource.0, kind) }?;
    Ok(resource)
}

/// `cuDevSmResourceSplitByCount` with a NULL result, which "simulates a split and provides the amount of groups
/// that would be created".
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn count_groups(
    input: &RawResource,
    flags: u32,
    minimum: u32,
) -> Result<u32, Failed> {
    let mut groups = 0;
    let none = ptr::null_mut();
    // SAFETY: passed on to the caller; "remainder may be NULL".
    unsafe {
        calls::cuDevSmResourceSplitByCount(none, &mut groups, &input.0, none, flags, minimum)
    }?;
    Ok(groups)
}

/// The groups, and the remainder if there is one.
pub(crate) type SplitResources = (Vec<RawResource>, Option<RawResource>);

/// `cuDevSmResourceSplitByCount` into at most `groups` groups of at least `minimum` SMs.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn split_by_count(
    input: &RawResource,
    groups: u32,
    flags: u32,
    minimum: u32,
) -> Result<SplitResources, Failed> {
    let mut result = vec![RawResource::empty().0; groups as usize];
    let mut remainder = RawResource::empty();
    let mut made = groups;
    // SAFETY: passed on to the caller. `made` is the capacity of `result`.
    unsafe {
        calls::cuDevSmResourceSplitByCount(
            result.as_mut_ptr(),
            &mut made,
            &input.0,
            &mut remainder.0,
            flags,
            minimum,
        )
    }?;
    result.truncate(made as usize);
    let result = result.into_iter().map(RawResource).collect();
    Ok((result, remainder.has_sms().then_some(remainder)))
}

/// One group of [`split`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupParameters {
    /// `smCount`; 0 asks the driver, which writes the size here.
    pub(crate) sm_count: u32,
    /// `coscheduledSmCount`; 0 means the device's default.
    pub(crate) coscheduled: u32,
    /// `preferredCoscheduledSmCount`; 0 means `coscheduled`.
    pub(crate) preferred: u32,
    /// `CU_DEV_SM_RESOURCE_GROUP_BACKFILL`
    pub(crate) backfill: bool,
}

/// `cuDevSmResourceSplit` (CUDA 13.1). Writes the discovered sizes into `groups`. Without `make` the result is
/// NULL, "if the developer wishes for only the groupParams entries to be updated".
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn split(
    input: &RawResource,
    groups: &mut [GroupParameters],
    make: bool,
) -> Result<SplitResources, Failed> {
    let flags = |backfill: bool| {
        if backfill {
            CUdevSmResourceGroup_flags::CU_DEV_SM_RESOURCE_GROUP_BACKFILL as u32
        } else {
            0
        }
    };
    let mut parameters: Vec<CU_DEV_SM_RESOURCE_GROUP_PARAMS> = groups
        .iter()
        .map(|group| CU_DEV_SM_RESOURCE_GROUP_PARAMS {
            smCount: group.sm_count,
            coscheduledSmCount: group.coscheduled,
            preferredCoscheduledSmCount: group.preferred,
            flags: flags(group.backfill),
            // "Each entry must be zero-initialized." This covers `reserved`, partly named by CUDA 13.4.
            // SAFETY: the struct has integers only.
            ..unsafe { std::mem::zeroed() }
        })
        .collect();
    let mut result = vec![RawResource::empty().0; if make { groups.len() } else { 0 }];
    let mut remainder = RawResource::empty();
    // SAFETY: passed on to the caller. Both arrays have `count` entries, or the result is NULL; "the value passed
    // in should be 0" for the flags.
    unsafe {
        calls::cuDevSmResourceSplit(
            if make { result.as_mut_ptr() } else { ptr::null_mut() },
            groups.len() as u32,
            &input.0,
            &mut remainder.0,
            0,
            parameters.as_mut_ptr(),
        )
    }?;
    for (group, parameters) in groups.iter_mut().zip(parameters) {
        group.sm_count = parameters.smCount;
        group.coscheduled = parameters.coscheduledSmCount;
        group.preferred = parameters.preferredCoscheduledSmCount;
    }
    let result = result.into_iter().map(RawResource).collect();
    Ok((result, remainder.has_sms().then_some(remainder)))
}

/// `cuDevResourceGenerateDesc` for the resources, then `cuGreenCtxCreate`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn create(
    resources: &[RawResource],
    device: CUdevice,
) -> Result<CUgreenCtx, Failed> {
    let mut resources: Vec<CUdevResource> = resources.iter().map(|resource| resource.0).collect();
    let mut description: CUdevResourceDesc = ptr::null_mut();
    let mut green = ptr::null_mut();
    // SAFETY: passed on to the caller; the count is the number of resources. `CU_GREEN_CTX_DEFAULT_STREAM` "is
    // required".
    unsafe {
        calls::cuDevResourceGenerateDesc(
            &mut description,
            resources.as_mut_ptr(),
            resources.len() as u32,
        )?;
        let flags = CUgreenCtxCreate_flags::CU_GREEN_CTX_DEFAULT_STREAM as u32;
        calls::cuGreenCtxCreate(&mut green, description, device, flags)?;
    }
    Ok(green)
}

/// `cuGreenCtxDestroy`.
///
/// # Safety
/// The contract of [`super`]; its streams must be destroyed, because the call "does not destroy streams created
/// via cuGreenCtxStreamCreate".
pub(crate) unsafe fn destroy(green: CUgreenCtx) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuGreenCtxDestroy(green) }
}

/// `cuGreenCtxGetId`: "unique for the life of the program". CUDA 13.0.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn id(green: CUgreenCtx) -> Result<u64, Failed> {
    let mut id = 0;
    // SAFETY: passed on to the caller; the pointer is to a live integer.
    unsafe { calls::cuGreenCtxGetId(green, &mut id) }?;
    Ok(id)
}

/// `cuCtxFromGreenCtx`: the handle to make current. The green context owns it: never destroy it.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn context(green: CUgreenCtx) -> Result<CUcontext, Failed> {
    let mut context = ptr::null_mut();
    // SAFETY: passed on to the caller; the pointer is to a live pointer.
    unsafe { calls::cuCtxFromGreenCtx(&mut context, green) }?;
    Ok(context)
}

/// `cuGreenCtxStreamCreate` with `CU_STREAM_NON_BLOCKING`, which "must be specified". A priority outside the range
/// is "clamped to the lowest or the highest number".
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn create_stream(green: CUgreenCtx, priority: i32) -> Result<CUstream, Failed> {
    let mut stream = ptr::null_mut();
    let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
    // SAFETY: passed on to the caller; the pointer is to a live pointer.
    unsafe { calls::cuGreenCtxStreamCreate(&mut stream, green, flags, priority) }?;
    Ok(stream)
}

/// `cuGreenCtxRecordEvent`: "all the activities of the green context … at the time of this call".
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn record_event(green: CUgreenCtx, event: CUevent) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuGreenCtxRecordEvent(green, event) }
}

/// `cuGreenCtxWaitEvent`: "all future work submitted" waits.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn wait_event(green: CUgreenCtx, event: CUevent) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuGreenCtxWaitEvent(green, event) }
}

/// `cuStreamGetGreenCtx`: null "if the stream is not associated with any green context".
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn of_stream_context(stream: CUstream) -> Result<CUgreenCtx, Failed> {
    let mut green = ptr::null_mut();
    // SAFETY: passed on to the caller; the pointer is to a live pointer.
    unsafe { calls::cuStreamGetGreenCtx(stream, &mut green) }?;
    Ok(green)
}
