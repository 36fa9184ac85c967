//! What a device is and can do, without opening it.

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

/// What a device is and can do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceInfo {
    /// Its kind.
    pub kind: DeviceKind,
    /// Its number among those of its kind.
    pub ordinal: u32,
    /// Its name, such as `NVIDIA H200`.
    pub name: String,
    /// Its UUID, as `nvidia-smi` spells it; empty for the CPU.
    pub uuid: String,
    /// Its compute capability; 0.0 for the CPU.
    pub compute_capability: ComputeCapability,
    /// The CUDA version that the driver supports; 0.0 for the CPU.
    pub driver_version: CudaVersion,
    /// Streaming multiprocessors; of the CPU, the worker threads that run blocks.
    pub sm_count: u32,
    /// Memory in bytes; 0 if not known.
    pub memory_bytes: u64,
    /// Second-level cache in bytes; 0 if not known.
    pub l2_cache_bytes: u32,
    /// Threads of a warp.
    pub warp_size: u32,
    /// Threads that an SM can hold.
    pub max_threads_per_sm: u32,
    /// Blocks that an SM can hold.
    pub max_blocks_per_sm: u32,
    /// Registers that a block can have, of 32 bits.
    pub registers_per_block: u32,
    /// Shared memory of an SM in bytes.
    pub shared_bytes_per_sm: u32,
    /// What it allows of a launch.
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
    /// How its SMs can be partitioned for green contexts; `None` if the driver has none.
    pub sm_granularity: Option<SmGranularity>,
    /// What the driver can do of what came after the first green contexts.
    pub green_context_features: GreenContextFeatures,
}

/// What newer drivers can do with green contexts (driver API, Green Contexts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GreenContextFeatures {
    /// `cuGreenCtxGetId`, from CUDA 13.0 on: [`GreenContext::id`](crate::GreenContext::id).
    pub ids: bool,
    /// `cuDevSmResourceSplit`, from CUDA 13.1 on: [`SmResource::split`](crate::SmResource::split).
    pub structured_split: bool,
    /// `cuStreamGetDevResource`, from CUDA 13.1 on: [`Stream::sm_resource`](crate::Stream::sm_resource).
    pub stream_resources: bool,
    /// Workqueues as resources, from CUDA 13.1 on:
    /// [`Device::workqueue_config`](crate::Device::workqueue_config).
    pub workqueues: bool,
}

/// In which sizes a device's SMs can be partitioned (driver API, Green Contexts, SMs).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SmGranularity {
    /// SMs of the smallest partition.
    pub minimum: u32,
    /// Partitions are multiples of this many SMs.
    pub alignment: u32,
    /// Whether the driver told (from CUDA 13.0 on); else these are the documented values for the compute
    /// capability.
    pub from_driver: bool,
}

impl SmGranularity {
    /// What the driver API's green-context section says: 6.x from 1 SM, 7.x from 2 and 8.x from 4 in
    /// multiples of 2, 9.0 and later from 8 in multiples of 8.
    pub(crate) fn documented(capability: ComputeCapability) -> SmGranularity {
        let (minimum, alignment) = match capability.major {
            ..=6 => (1, 1),
            7 => (2, 2),
            8 => (4, 2),
            _ => (8, 8),
        };
        SmGranularity { minimum, alignment, from_driver: false }
    }

    /// The size of the partition that a wish for `sms` SMs leads to.
    pub fn round_up(self, sms: u32) -> u32 {
        sms.max(self.minimum).checked_next_multiple_of(self.alignment.max(1)).unwrap_or(u32::MAX)
    }
}

impl DeviceInfo {
    /// The device as artifacts know it.
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
