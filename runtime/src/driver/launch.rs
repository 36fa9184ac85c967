//! Launching (driver API, Execution Control).

use std::ffi::c_void;
use std::ptr;

use super::sys::{
    CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT, CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT,
    CU_LAUNCH_PARAM_END_AS_INT, CUkernel, CUlaunchConfig, CUstream,
};
use super::{Failed, calls};
use crate::LaunchConfig;

/// `cuLaunchKernelEx` with the parameters in one packed buffer (`CU_LAUNCH_PARAM_BUFFER_POINTER`, "extra"):
/// the driver copies the bytes to the kernel's parameter space as they are, so the manifest's offsets hold.
///
/// # Safety
/// The contract of [`super`]; `parameters` holds what the kernel reads.
pub(crate) unsafe fn launch(
    kernel: CUkernel,
    config: &LaunchConfig,
    stream: CUstream,
    parameters: &mut [u8],
) -> Result<(), Failed> {
    let driver_config = CUlaunchConfig {
        gridDimX: config.grid.x,
        gridDimY: config.grid.y,
        gridDimZ: config.grid.z,
        blockDimX: config.block.x,
        blockDimY: config.block.y,
        blockDimZ: config.block.z,
        sharedMemBytes: config.shared_bytes,
        hStream: stream,
        attrs: ptr::null_mut(),
        numAttrs: 0,
    };
    let mut bytes = parameters.len();
    let mut extra: [*mut c_void; 5] = [
        ptr::without_provenance_mut(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT as usize),
        parameters.as_mut_ptr().cast(),
        ptr::without_provenance_mut(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT as usize),
        ptr::from_mut(&mut bytes).cast(),
        ptr::without_provenance_mut(CU_LAUNCH_PARAM_END_AS_INT as usize),
    ];
    let extra = if parameters.is_empty() { ptr::null_mut() } else { extra.as_mut_ptr() };
    // SAFETY: passed on to the caller; the parameters are copied before the call returns. A `CUkernel` stands
    // for a `CUfunction` "by casting to CUfunction" (`cuLaunchKernelEx`).
    unsafe { calls::cuLaunchKernelEx(&driver_config, kernel.cast(), ptr::null_mut(), extra) }
}
