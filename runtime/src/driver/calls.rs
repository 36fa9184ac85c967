//! The table of driver calls: the CUDA version that introduced each call, its name and its signature.

#![allow(non_snake_case, reason = "driver calls and their parameters keep CUDA's spelling")]

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

use cudarc::driver::sys::{
    self, CU_DEV_SM_RESOURCE_GROUP_PARAMS, CUcontext, CUdevResource, CUdevResourceDesc,
    CUdevResourceType, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction,
    CUfunction_attribute, CUgreenCtx, CUjit_option, CUkernel, CUlaunchConfig, CUlibrary,
    CUlibraryOption, CUlimit, CUoccupancyB2DSize, CUstream, CUuuid,
};
use libloading::Library;

use super::Failed;
use super::unified::MemoryLocation;
use crate::error::CudaVersion;

/// The driver's library, loaded once. Not through cudarc, which offers its handle only if it loads the library
/// itself: a program may let cudarc link the driver instead, and then gets the same library here.
fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    // cudarc tries these names in the same order.
    let names = ["libcuda.so", "libcuda.so.1"];
    // SAFETY: loading runs the initializers of NVIDIA's library, which have no preconditions.
    let load = |name| unsafe { Library::new(name) }.ok();
    LIBRARY.get_or_init(|| names.into_iter().find_map(load)).as_ref()
}

/// Whether the driver's library can be loaded.
pub(super) fn library_is_present() -> bool {
    library().is_some()
}

/// Looks up a symbol by name; `None` if the library or the symbol is missing.
///
/// # Safety
/// `F` must be the symbol's function pointer type.
unsafe fn lookup<F: Copy>(name: &str) -> Option<F> {
    // SAFETY: the caller guarantees `F`.
    unsafe { library()?.get::<F>(name).ok().map(|symbol| *symbol) }
}

/// Whether the library has a symbol with this name.
pub(super) fn exports(name: &str) -> bool {
    // SAFETY: the symbol is only looked up, so its type does not matter.
    unsafe { lookup::<unsafe extern "C" fn()>(name) }.is_some()
}

/// Defines one function per line: `(agrees with cudarc) since-version name(parameters)`.
macro_rules! driver_calls {
    ($( $check:ident ($major:literal, $minor:literal) $name:ident($($arg:ident: $ty:ty),* $(,)?); )*) => { $(
        #[allow(clippy::too_many_arguments, reason = "as many as CUDA's call has")]
        pub(super) unsafe fn $name($($arg: $ty),*) -> Result<(), Failed> {
            driver_calls!(@$check $name($($arg: $ty),*));
            type Call = unsafe extern "C" fn($($ty),*) -> c_int;
            static CALL: OnceLock<Option<Call>> = OnceLock::new();
            // SAFETY: `Call` is the call's C signature: `@cudarc` compares it with cudarc's binding, `@ours` was
            // written from the driver API reference.
            let call = *CALL.get_or_init(|| unsafe { lookup::<Call>(stringify!($name)) });
            let Some(call) = call else {
                return Err(Failed::Missing {
                    call: stringify!($name),
                    since: CudaVersion::new($major, $minor),
                });
            };
            // SAFETY: the contract of the module `driver`, passed on to the caller.
            match unsafe { call($($arg),*) } {
                0 => Ok(()),
                code => Err(Failed::Code { call: stringify!($name), code }),
            }
        }
    )* };
    (@cudarc $name:ident($($arg:ident: $ty:ty),*)) => {
        // By a call, since cudarc's functions are `extern "C"` only where it links the driver.
        // SAFETY: never called.
        const _: unsafe fn($($ty),*) -> sys::CUresult = |$($arg),*| unsafe { sys::$name($($arg),*) };
    };
    (@ours $name:ident($($arg:ident: $ty:ty),*)) => {};
}

// The CUDA driver API reference (docs.nvidia.com/cuda/cuda-driver-api) has a section for each group.
driver_calls! {
    // Error Handling. The signature differs from cudarc's: the code is an integer here.
    ours (6, 0) cuGetErrorName(error: c_int, pStr: *mut *const c_char);
    ours (6, 0) cuGetErrorString(error: c_int, pStr: *mut *const c_char);

    // Initialization, Version Management
    cudarc (2, 0) cuInit(Flags: c_uint);
    cudarc (2, 2) cuDriverGetVersion(driverVersion: *mut c_int);

    // Device Management
    cudarc (2, 0) cuDeviceGetCount(count: *mut c_int);
    cudarc (2, 0) cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cudarc (2, 0) cuDeviceGetName(name: *mut c_char, len: c_int, dev: CUdevice);
    cudarc (11, 4) cuDeviceGetUuid_v2(uuid: *mut CUuuid, dev: CUdevice);
    cudarc (3, 2) cuDeviceTotalMem_v2(bytes: *mut usize, dev: CUdevice);
    cudarc (2, 0) cuDeviceGetAttribute(pi: *mut c_int, attrib: CUdevice_attribute, dev: CUdevice);

    // Primary Context Management, Context Management
    cudarc (7, 0) cuDevicePrimaryCtxRetain(pctx: *mut CUcontext, dev: CUdevice);
    cudarc (11, 0) cuDevicePrimaryCtxRelease_v2(dev: CUdevice);
    cudarc (11, 0) cuDevicePrimaryCtxReset_v2(dev: CUdevice);
    cudarc (4, 0) cuCtxPushCurrent_v2(ctx: CUcontext);
    cudarc (4, 0) cuCtxPopCurrent_v2(pctx: *mut CUcontext);
    cudarc (4, 0) cuCtxGetCurrent(pctx: *mut CUcontext);
    cudarc (3, 1) cuCtxGetLimit(pvalue: *mut usize, limit: CUlimit);
    cudarc (3, 1) cuCtxSetLimit(limit: CUlimit, value: usize);

    // Memory Management
    cudarc (3, 2) cuMemAlloc_v2(dptr: *mut CUdeviceptr, bytesize: usize);
    cudarc (3, 2) cuMemFree_v2(dptr: CUdeviceptr);
    cudarc (3, 2) cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cudarc (3, 2) cuMemcpyHtoDAsync_v2(dstDevice: CUdeviceptr, srcHost: *const c_void, ByteCount: usize, hStream: CUstream);
    cudarc (3, 2) cuMemcpyDtoHAsync_v2(dstHost: *mut c_void, srcDevice: CUdeviceptr, ByteCount: usize, hStream: CUstream);
    cudarc (3, 2) cuMemsetD8Async(dstDevice: CUdeviceptr, uc: u8, N: usize, hStream: CUstream);

    // Unified Addressing, and the calls of Memory Management that it needs. Integers where cudarc has Rust enums:
    // its enums lack the values of later versions. `MemoryLocation` is `CUmemLocation`, two integers.
    ours (6, 0) cuMemAllocManaged(dptr: *mut CUdeviceptr, bytesize: usize, flags: c_uint);
    ours (12, 2) cuMemAdvise_v2(devPtr: CUdeviceptr, count: usize, advice: c_uint, location: MemoryLocation);
    ours (8, 0) cuMemAdvise(devPtr: CUdeviceptr, count: usize, advice: c_uint, device: CUdevice);
    ours (12, 2) cuMemPrefetchAsync_v2(devPtr: CUdeviceptr, count: usize, location: MemoryLocation, flags: c_uint, hStream: CUstream);
    ours (8, 0) cuMemPrefetchAsync(devPtr: CUdeviceptr, count: usize, dstDevice: CUdevice, hStream: CUstream);
    ours (8, 0) cuMemRangeGetAttribute(data: *mut c_void, dataSize: usize, attribute: c_uint, devPtr: CUdeviceptr, count: usize);
    ours (8, 0) cuMemRangeGetAttributes(data: *mut *mut c_void, dataSizes: *mut usize, attributes: *mut c_uint, numAttributes: usize, devPtr: CUdeviceptr, count: usize);
    ours (4, 0) cuPointerGetAttribute(data: *mut c_void, attribute: c_uint, ptr: CUdeviceptr);
    ours (7, 0) cuPointerGetAttributes(numAttributes: c_uint, attributes: *mut c_uint, data: *mut *mut c_void, ptr: CUdeviceptr);
    ours (6, 0) cuPointerSetAttribute(value: *const c_void, attribute: c_uint, ptr: CUdeviceptr);
    cudarc (2, 2) cuMemHostAlloc(pp: *mut *mut c_void, bytesize: usize, Flags: c_uint);
    cudarc (2, 0) cuMemFreeHost(p: *mut c_void);
    cudarc (6, 5) cuMemHostRegister_v2(p: *mut c_void, bytesize: usize, Flags: c_uint);
    cudarc (4, 0) cuMemHostUnregister(p: *mut c_void);
    cudarc (3, 2) cuMemHostGetDevicePointer_v2(pdptr: *mut CUdeviceptr, p: *mut c_void, Flags: c_uint);
    cudarc (2, 3) cuMemHostGetFlags(pFlags: *mut c_uint, p: *mut c_void);
    cudarc (4, 0) cuMemcpyAsync(dst: CUdeviceptr, src: CUdeviceptr, ByteCount: usize, hStream: CUstream);

    // Peer Context Memory Access
    cudarc (4, 0) cuDeviceCanAccessPeer(canAccessPeer: *mut c_int, dev: CUdevice, peerDev: CUdevice);
    ours (8, 0) cuDeviceGetP2PAttribute(value: *mut c_int, attrib: c_uint, srcDevice: CUdevice, dstDevice: CUdevice);
    cudarc (4, 0) cuCtxEnablePeerAccess(peerContext: CUcontext, Flags: c_uint);
    cudarc (4, 0) cuCtxDisablePeerAccess(peerContext: CUcontext);

    // Stream Management, Event Management
    cudarc (5, 5) cuStreamCreateWithPriority(phStream: *mut CUstream, flags: c_uint, priority: c_int);
    cudarc (5, 5) cuStreamGetPriority(hStream: CUstream, priority: *mut c_int);
    cudarc (3, 2) cuStreamWaitEvent(hStream: CUstream, hEvent: CUevent, Flags: c_uint);
    cudarc (5, 5) cuCtxGetStreamPriorityRange(leastPriority: *mut c_int, greatestPriority: *mut c_int);
    cudarc (4, 0) cuStreamDestroy_v2(hStream: CUstream);
    cudarc (2, 0) cuStreamQuery(hStream: CUstream);
    // Integers where cudarc has enums, and pointers that are always null.
    ours (11, 3) cuStreamGetCaptureInfo_v2(
        hStream: CUstream,
        captureStatus: *mut c_int,
        id: *mut u64,
        graph: *mut c_void,
        dependencies: *mut c_void,
        numDependencies: *mut usize,
    );
    ours (10, 1) cuThreadExchangeStreamCaptureMode(mode: *mut c_int);
    cudarc (2, 0) cuEventCreate(phEvent: *mut CUevent, Flags: c_uint);
    cudarc (4, 0) cuEventDestroy_v2(hEvent: CUevent);
    cudarc (2, 0) cuEventRecord(hEvent: CUevent, hStream: CUstream);
    cudarc (2, 0) cuEventQuery(hEvent: CUevent);
    cudarc (12, 8) cuEventElapsedTime_v2(pMilliseconds: *mut f32, hStart: CUevent, hEnd: CUevent);
    // The older of the two variants, for drivers before 12.8; for CUDA 13 cudarc binds only the newer one.
    ours (2, 0) cuEventElapsedTime(pMilliseconds: *mut f32, hStart: CUevent, hEnd: CUevent);

    // Library Management
    cudarc (12, 0) cuLibraryLoadData(
        library: *mut CUlibrary,
        code: *const c_void,
        jitOptions: *mut CUjit_option,
        jitOptionsValues: *mut *mut c_void,
        numJitOptions: c_uint,
        libraryOptions: *mut CUlibraryOption,
        libraryOptionValues: *mut *mut c_void,
        numLibraryOptions: c_uint,
    );
    cudarc (12, 0) cuLibraryUnload(library: CUlibrary);
    cudarc (12, 0) cuLibraryGetKernel(pKernel: *mut CUkernel, library: CUlibrary, name: *const c_char);
    cudarc (12, 0) cuLibraryGetGlobal(dptr: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char);
    cudarc (12, 0) cuKernelGetFunction(pFunc: *mut CUfunction, kernel: CUkernel);
    cudarc (12, 0) cuKernelGetAttribute(pi: *mut c_int, attrib: CUfunction_attribute, kernel: CUkernel, dev: CUdevice);
    cudarc (12, 0) cuKernelSetAttribute(attrib: CUfunction_attribute, val: c_int, kernel: CUkernel, dev: CUdevice);
    cudarc (12, 4) cuKernelGetParamInfo(kernel: CUkernel, paramIndex: usize, paramOffset: *mut usize, paramSize: *mut usize);

    // Execution Control
    cudarc (11, 8) cuLaunchKernelEx(
        config: *const CUlaunchConfig,
        f: CUfunction,
        kernelParams: *mut *mut c_void,
        extra: *mut *mut c_void,
    );

    // Occupancy. A `CUkernel` serves as the function "by casting to CUfunction", in the current context.
    cudarc (7, 0) cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks: *mut c_int, func: CUfunction, blockSize: c_int, dynamicSMemSize: usize, flags: c_uint);
    cudarc (6, 5) cuOccupancyMaxPotentialBlockSize(
        minGridSize: *mut c_int,
        blockSize: *mut c_int,
        func: CUfunction,
        blockSizeToDynamicSMemSize: CUoccupancyB2DSize,
        dynamicSMemSize: usize,
        blockSizeLimit: c_int,
    );
    cudarc (11, 0) cuOccupancyAvailableDynamicSMemPerBlock(dynamicSmemSize: *mut usize, func: CUfunction, numBlocks: c_int, blockSize: c_int);
    cudarc (11, 8) cuOccupancyMaxPotentialClusterSize(clusterSize: *mut c_int, func: CUfunction, config: *const CUlaunchConfig);
    cudarc (11, 8) cuOccupancyMaxActiveClusters(numClusters: *mut c_int, func: CUfunction, config: *const CUlaunchConfig);

    // Green Contexts
    cudarc (12, 4) cuDeviceGetDevResource(device: CUdevice, resource: *mut CUdevResource, type_: CUdevResourceType);
    cudarc (12, 4) cuDevSmResourceSplitByCount(
        result: *mut CUdevResource,
        nbGroups: *mut c_uint,
        input: *const CUdevResource,
        remainder: *mut CUdevResource,
        flags: c_uint,
        minCount: c_uint,
    );
    cudarc (12, 4) cuDevResourceGenerateDesc(
        phDesc: *mut CUdevResourceDesc,
        resources: *mut CUdevResource,
        nbResources: c_uint,
    );
    cudarc (12, 4) cuGreenCtxCreate(phCtx: *mut CUgreenCtx, desc: CUdevResourceDesc, dev: CUdevice, flags: c_uint);
    cudarc (12, 4) cuGreenCtxDestroy(hCtx: CUgreenCtx);
    cudarc (12, 4) cuGreenCtxGetDevResource(hCtx: CUgreenCtx, resource: *mut CUdevResource, type_: CUdevResourceType);
    cudarc (12, 4) cuCtxGetDevResource(hCtx: CUcontext, resource: *mut CUdevResource, type_: CUdevResourceType);
    cudarc (13, 1) cuStreamGetDevResource(hStream: CUstream, resource: *mut CUdevResource, type_: CUdevResourceType);
    cudarc (13, 1) cuDevSmResourceSplit(
        result: *mut CUdevResource,
        nbGroups: c_uint,
        input: *const CUdevResource,
        remainder: *mut CUdevResource,
        flags: c_uint,
        groupParams: *mut CU_DEV_SM_RESOURCE_GROUP_PARAMS,
    );
    cudarc (13, 0) cuGreenCtxGetId(greenCtx: CUgreenCtx, greenCtxId: *mut c_ulonglong);
    cudarc (12, 4) cuGreenCtxRecordEvent(hCtx: CUgreenCtx, hEvent: CUevent);
    cudarc (12, 4) cuGreenCtxWaitEvent(hCtx: CUgreenCtx, hEvent: CUevent);
    cudarc (12, 4) cuStreamGetGreenCtx(hStream: CUstream, phCtx: *mut CUgreenCtx);
    cudarc (12, 4) cuGreenCtxStreamCreate(phStream: *mut CUstream, greenCtx: CUgreenCtx, flags: c_uint, priority: c_int);
    cudarc (12, 4) cuCtxFromGreenCtx(pContext: *mut CUcontext, hCtx: CUgreenCtx);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_symbol_is_none() {
        assert!(!exports("cuGridletHasNoSuchCall"));
    }
}
