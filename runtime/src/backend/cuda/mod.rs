//! NVIDIA GPUs, through the driver layer.

mod device;
mod info;
mod kernel;
mod partition;
mod program;
mod stream;
mod unified;

pub(crate) use device::{CudaDevice, Entered, check_ordinal, list};
pub(crate) use partition::CudaPartition;
pub(crate) use program::{CudaImage, CudaKernel};
pub(crate) use stream::{CudaEvent, CudaStream, outside_capture};

use crate::driver::Failed;
use crate::error::Error;

/// The error for a failed call by another library; `code` is its `CUresult`.
pub(crate) fn call_failed(call: &'static str, code: i32) -> Error {
    Failed::Code { call, code }.into()
}
