//! The properties of a device, known without opening it.

use gridlet_artifact::{ComputeCapability, ImageTarget, LaunchLimits, cpu_arch};
use serde::Serialize;

use crate::error::CudaVersion;

/// The kinds of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// An NVIDIA GPU.
    Cuda,
    /// This machine's processor.
    Cpu,
}

/// The properties of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Its kind.
    pub kind: DeviceKind,
    /// Its number among the devices of its kind.
    pub ordinal: u32,
    /// Its name, such as `NVIDIA H200`.
    pub name: String,
    /// Its UUID, in the form that `nvidia-smi` prints; empty for the CPU.
    pub uuid: String,
    /// Its compute capability; 0.0 for the CPU.
    pub compute_capability: ComputeCapability,
    /// The CUDA version that the driver supports; 0.0 for the CPU.
    pub driver_version: CudaVersion,
    /// Streaming multiprocessors; for the CPU, the worker threads that run blocks.
    pub sm_count: u32,
    /// Memory in bytes; 0 if unknown.
    pub memory_bytes: u64,
    /// Second-level cache in bytes; 0 if unknown.
    pub l2_cache_bytes: u32,
    /// Threads per warp.
    pub warp_size: u32,
    /// Resident threads per SM.
    pub max_threads_per_sm: u32,
    /// Resident blocks per SM.
    pub max_blocks_per_sm: u32,
    /// 32-bit registers per block.
    pub registers_per_block: u32,
    /// Shared memory per SM in bytes.
    pub shared_bytes_per_sm: u32,
    /// Limits on launches.
    pub limits: LaunchLimits,
    /// `CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING`: host and device share one address space.
    pub unified_addressing: bool,
    /// `CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY`
    pub managed_memory: bool,
    /// `CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS`
    pub concurrent_managed_access: bool,
    /// `CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS`
    pub pageable_memory_access: bool,
    /// `CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH`
    pub cooperative_launch: bool,
    /// The partition sizes for green contexts; `None` if the driver does not support them.
    pub sm_granularity: Option<SmGranularity>,
    /// The green-context features of newer drivers that this driver has.
    pub green_context_features: GreenContextFeatures,
}

/// Green-context features of newer drivers (driver API, Green Contexts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GreenContextFeatures {
    /// `cuGreenCtxGetId`, since CUDA 13.0: [`GreenContext::id`](crate::GreenContext::id).
    pub ids: bool,
    /// `cuDevSmResourceSplit`, since CUDA 13.1: [`SmResource::split`](crate::SmResource::split).
    pub structured_split: bool,
    /// `cuStreamGetDevResource`, since CUDA 13.1: [`Stream::sm_resource`](crate::Stream::sm_resource).
    pub stream_resources: bool,
    /// Workqueue resources, since CUDA 13.1: [`Device::workqueue_config`](crate::Device::workqueue_config).
    pub workqueues: bool,
}

/// The sizes into which a device's SMs can be partitioned (driver API, Green Contexts, SMs).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SmGranularity {
    /// SMs of the smallest partition.
    pub minimum: u32,
    /// Partition sizes are multiples of this many SMs.
    pub alignment: u32,
    /// Whether the driver reported the sizes (since CUDA 13.0); otherwise these are the documented values for the
    /// compute capability.
    pub from_driver: bool,
}

impl SmGranularity {
    /// The values in the driver API's green-context section: for 6.x, at least 1 SM; for 7.x, at least 2 and for
    /// 8.x, at least 4, in multiples of 2; for 9.0 and later, at least 8, in multiples of 8.
    pub(crate) fn documented(capability: ComputeCapability) -> SmGranularity {
        let (minimum, alignment) = match capability.major {
            ..=6 => (1, 1),
            7 => (2, 2),
            8 => (4, 2),
            _ => (8, 8),
        };
        SmGranularity { minimum, alignment, from_driver: false }
    }

    /// The size of the partition that a request for `sms` SMs yields.
    pub fn round_up(self, sms: u32) -> u32 {
        sms.max(self.minimum).checked_next_multiple_of(self.alignment.max(1)).unwrap_or(u32::MAX)
    }
}

impl DeviceInfo {
    /// The device as a target for images.
    pub(crate) fn image_target(&self) -> ImageTarget {
        match self.kind {
            DeviceKind::Cuda => ImageTarget::Gpu(self.compute_capability),
            DeviceKind::Cpu => ImageTarget::Cpu,
        }
    }

    /// Name and architecture, for messages.
    pub(crate) fn title(&self) -> String {
        let arch = match self.kind {
            DeviceKind::Cuda => self.compute_capability.sm(),
            DeviceKind::Cpu => cpu_arch(),
        };
        format!("{} ({arch})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_round_up() {
        let hopper = SmGranularity::documented(ComputeCapability::new(9, 0));
        assert_eq!([1, 8, 16, 20, 132].map(|sms| hopper.round_up(sms)), [8, 8, 16, 24, 136]);
        assert_eq!(hopper.round_up(u32::MAX), u32::MAX);
        let ampere = SmGranularity::documented(ComputeCapability::new(8, 6));
        assert_eq!([1, 5, 6].map(|sms| ampere.round_up(sms)), [4, 6, 6]);
    }
}
