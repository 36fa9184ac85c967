//! Kernel attributes and launches that fill a device (driver API, Execution Control and Occupancy). The functions
//! of [`Kernel`](crate::Kernel) query the driver for them; the CPU device has none of them.

use gridlet_artifact::ComputeCapability;

/// A kernel's requirements and limits, as the driver reports them (`CU_FUNC_ATTRIBUTE_…`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelAttributes {
    /// `MAX_THREADS_PER_BLOCK`
    pub max_threads_per_block: u32,
    /// `SHARED_SIZE_BYTES`: static shared memory per block.
    pub static_shared_bytes: u32,
    /// `CONST_SIZE_BYTES`: constant memory that the program declares.
    pub constant_bytes: u32,
    /// `LOCAL_SIZE_BYTES`: local memory per thread, for spilled registers and arrays.
    pub local_bytes: u32,
    /// `NUM_REGS`: 32-bit registers per thread.
    pub registers: u32,
    /// `PTX_VERSION`: the virtual architecture that the kernel was compiled for.
    pub ptx_version: ComputeCapability,
    /// `BINARY_VERSION`: the architecture of its machine code.
    pub binary_version: ComputeCapability,
    /// `CACHE_MODE_CA`: compiled to cache global loads in L1.
    pub caches_globals: bool,
    /// `MAX_DYNAMIC_SHARED_SIZE_BYTES`: the dynamic shared memory that the kernel has opted in to.
    pub max_dynamic_shared_bytes: u32,
    /// `PREFERRED_SHARED_MEMORY_CARVEOUT`
    pub carveout: Carveout,
    /// `CLUSTER_SIZE_MUST_BE_SET`: a launch without a cluster fails.
    pub needs_cluster: bool,
    /// `REQUIRED_CLUSTER_WIDTH`, `…_HEIGHT`, `…_DEPTH`; zeros if any size works.
    pub required_cluster: [u32; 3],
    /// `NON_PORTABLE_CLUSTER_SIZE_ALLOWED`
    pub allows_non_portable_clusters: bool,
    /// `CLUSTER_SCHEDULING_POLICY_PREFERENCE`
    pub cluster_scheduling: ClusterScheduling,
}

/// Decodes a version: 90 is 9.0.
pub(crate) fn version(number: u32) -> ComputeCapability {
    ComputeCapability::new(number / 10, number % 10)
}

/// How much of an SM's L1 cache to use as shared memory; a hint (`CUshared_carveout`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Carveout {
    /// The driver's choice.
    #[default]
    Default,
    /// This percentage of the maximum shared memory, at most 100.
    Percent(u8),
}

impl Carveout {
    pub(crate) fn from_raw(value: i32) -> Carveout {
        u8::try_from(value).map_or(Carveout::Default, Carveout::Percent)
    }

    pub(crate) fn raw(self) -> i32 {
        match self {
            Carveout::Default => -1,
            Carveout::Percent(percent) => i32::from(percent.min(100)),
        }
    }
}

/// How clusters are scheduled on SMs (`CUclusterSchedulingPolicy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterScheduling {
    /// The driver's choice.
    #[default]
    Default,
    /// Spreads the blocks of a cluster over many SMs.
    Spread,
    /// Lets the hardware balance the load of the SMs.
    LoadBalancing,
}

impl ClusterScheduling {
    pub(crate) fn from_raw(value: u32) -> ClusterScheduling {
        match value {
            1 => ClusterScheduling::Spread,
            2 => ClusterScheduling::LoadBalancing,
            _ => ClusterScheduling::Default,
        }
    }

    pub(crate) fn raw(self) -> i32 {
        match self {
            ClusterScheduling::Default => 0,
            ClusterScheduling::Spread => 1,
            ClusterScheduling::LoadBalancing => 2,
        }
    }
}

/// The launch configuration with the highest occupancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BestBlock {
    /// Threads per block.
    pub threads: u32,
    /// Blocks in the smallest grid that fills the device.
    pub blocks: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carveouts_and_policies_round_trip() {
        for carveout in [Carveout::Default, Carveout::Percent(0), Carveout::Percent(100)] {
            assert_eq!(Carveout::from_raw(carveout.raw()), carveout);
        }
        assert_eq!(Carveout::Percent(255).raw(), 100);
        for value in 0..3 {
            assert_eq!(ClusterScheduling::from_raw(value).raw(), value as i32);
        }
        assert_eq!(version(103).to_string(), "10.3");
    }
}
