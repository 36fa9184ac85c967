//! Error codes of CUDA's driver and runtime APIs.

use crate::strategy::LaunchPool;

/// Whether the context is lost after this `CUresult` (driver API, `CUresult`: "This leaves the process in an
/// inconsistent state …" and ECC and hardware errors).
pub(crate) fn is_sticky(code: i32) -> bool {
    matches!(code, 214 | 220 | 226 | 700 | 702 | 710 | 714..=719 | 721)
}

pub(super) fn explain_fault(code: i32) -> &'static str {
    match code {
        214 => "the device found a memory error that it could not correct (ECC)",
        220 => "the link between GPUs failed (NVLink)",
        226 => {
            "the device contained an error of the hardware, or of an access to another GPU's memory"
        }
        700 => "a kernel read or wrote an invalid address",
        702 => "a kernel ran longer than the display driver allows",
        710 => "an assertion of a kernel failed",
        714 => "a kernel overran its stack",
        715 => {
            "a kernel ran an instruction that the device does not have, or stopped itself with a trap"
        }
        716 => "a kernel read or wrote an address that is not aligned to its type",
        717 => "a kernel used an address of the wrong memory space",
        718 => "a kernel jumped outside its code",
        719 => {
            "a kernel stopped itself with a trap (also: integer division by zero), or the device hit an error while it ran"
        }
        721 => "a tensor instruction of a kernel leaked memory",
        _ => "a kernel broke the device's context",
    }
}

/// The `cudaError` names that a device-side launch can return (runtime API, `cudaError_t`).
pub(crate) fn cuda_error_name(code: i32) -> &'static str {
    match code {
        1 => "cudaErrorInvalidValue",
        2 => "cudaErrorMemoryAllocation",
        3 => "cudaErrorInitializationError",
        9 => "cudaErrorInvalidConfiguration",
        65 => "cudaErrorLaunchMaxDepthExceeded",
        68 => "cudaErrorSyncDepthExceeded",
        69 => "cudaErrorLaunchPendingCountExceeded",
        98 => "cudaErrorInvalidDeviceFunction",
        209 => "cudaErrorNoKernelImageForDevice",
        400 => "cudaErrorInvalidResourceHandle",
        701 => "cudaErrorLaunchOutOfResources",
        719 => "cudaErrorLaunchFailure",
        801 => "cudaErrorNotSupported",
        812 => "cudaErrorCdpVersionMismatch",
        999 => "cudaErrorUnknown",
        _ => "a CUDA runtime error",
    }
}

/// Why a launch was lost and how to prevent it; `full` is the pool that had no room for it.
pub(super) fn lost_launch_hint(code: i32, full: Option<LaunchPool>) -> &'static str {
    if let Some(pool) = full {
        return match pool {
            LaunchPool::PendingLaunches => {
                ": the pool of pending launches was full; raise it with `Device::set_pending_launch_limit` before the first kernel"
            }
            LaunchPool::LaunchMemory => {
                ": the launch memory was full; raise it with `Device::set_launch_memory`"
            }
        };
    }
    match code {
        9 => ": the grid or block is zero or too large",
        701 => ": the block needs more registers or shared memory than an SM has",
        _ => "",
    }
}
