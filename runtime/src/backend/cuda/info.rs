//! Reads the properties of a GPU from the driver.

use gridlet_artifact::{ComputeCapability, LaunchLimits};

use crate::driver::green::ResourceKind;
use crate::driver::sys::{CUdevice, CUdevice_attribute as Attribute};
use crate::driver::{self, Driver};
use crate::error::{Error, Result};
use crate::info::{DeviceInfo, DeviceKind, GreenContextFeatures, SmGranularity};

/// Reads everything, without opening the GPU.
pub(super) fn read(driver: &Driver, ordinal: u32, device: CUdevice) -> Result<DeviceInfo> {
    // SAFETY: the handle is of this driver; attributes need nothing else.
    let get = |attribute| unsafe { driver::device::attribute(device, attribute) };
    let compute_capability = ComputeCapability::new(
        get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    // SAFETY: as above.
    let (name, uuid, memory_bytes) = unsafe {
        (
            driver::device::name(device)?,
            driver::device::uuid(device)?,
            driver::device::total_memory(device)?,
        )
    };
    Ok(DeviceInfo {
        kind: DeviceKind::Cuda,
        ordinal,
        name,
        uuid,
        compute_capability,
        driver_version: driver.version(),
        sm_count: get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory_bytes,
        l2_cache_bytes: get(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
        warp_size: get(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
        max_threads_per_sm: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        max_blocks_per_sm: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
        registers_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)?,
        shared_bytes_per_sm: get(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        )?,
        limits: LaunchLimits {
            max_threads_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            max_block: [
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            ],
            max_grid: [
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
            shared_bytes_per_block: get(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
            )?,
            shared_bytes_per_block_optin: get(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            )?,
        },
        unified_addressing: get(Attribute::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING)? != 0,
        managed_memory: get(Attribute::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)? != 0,
        concurrent_managed_access: get(Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)?
            != 0,
        pageable_memory_access: get(Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)? != 0,
        cooperative_launch: get(Attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? != 0,
        sm_granularity: granularity(device, compute_capability)?,
        green_context_features: features(device),
    })
}

fn features(device: CUdevice) -> GreenContextFeatures {
    // SAFETY: the handle is of this driver; the call needs nothing else.
    let workqueues = unsafe { driver::green::of_device(device, ResourceKind::WorkqueueConfig) };
    GreenContextFeatures {
        ids: driver::has_call("cuGreenCtxGetId"),
        structured_split: driver::has_call("cuDevSmResourceSplit"),
        stream_resources: driver::has_call("cuStreamGetDevResource"),
        workqueues: workqueues.is_ok(),
    }
}

fn granularity(device: CUdevice, capability: ComputeCapability) -> Result<Option<SmGranularity>> {
    // SAFETY: the handle is of this driver; the call needs nothing else.
    match unsafe { driver::green::of_device(device, ResourceKind::Sm) } {
        Ok(sms) => {
            let told = sms.sm();
            if told.minimum == 0 || told.alignment == 0 {
                return Ok(Some(SmGranularity::documented(capability)));
            }
            let (minimum, alignment) = (told.minimum, told.alignment);
            Ok(Some(SmGranularity { minimum, alignment, from_driver: true }))
        }
        Err(failed) if failed.is_missing() || failed.is_unsupported() => Ok(None),
        Err(failed) => Err(Error::from(failed)),
    }
}
