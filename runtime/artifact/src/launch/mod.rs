//! The geometry and shared memory of a launch, and the limits that apply to them.

mod problem;

use std::fmt;

pub use problem::LaunchProblem;

/// Blocks of a grid or threads of a block, in three dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Dim3 {
    /// Extent in x.
    pub x: u32,
    /// Extent in y.
    pub y: u32,
    /// Extent in z.
    pub z: u32,
}

impl Dim3 {
    /// A dimension with these extents.
    pub const fn new(x: u32, y: u32, z: u32) -> Self {
        Dim3 { x, y, z }
    }

    /// The product of the extents.
    pub fn count(self) -> u128 {
        u128::from(self.x) * u128::from(self.y) * u128::from(self.z)
    }

    fn axes(self) -> [(char, u32); 3] {
        [('x', self.x), ('y', self.y), ('z', self.z)]
    }
}

impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Dim3::new(x, 1, 1)
    }
}

impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Self {
        Dim3::new(x, y, 1)
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Dim3::new(x, y, z)
    }
}

impl fmt::Display for Dim3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}, {})", self.x, self.y, self.z)
    }
}

/// The configuration of a kernel launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LaunchConfig {
    /// Blocks of the grid.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// Extents of a cluster in blocks; a cluster's blocks run concurrently and share their shared memory
    /// (`CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`).
    pub cluster: Option<Dim3>,
    /// Whether all blocks of the grid must run concurrently, so that they can wait for each other
    /// (`CU_LAUNCH_ATTRIBUTE_COOPERATIVE`).
    pub cooperative: bool,
    /// Overrides the stream's priority; lower numbers run first (`CU_LAUNCH_ATTRIBUTE_PRIORITY`).
    pub priority: Option<i32>,
}

impl LaunchConfig {
    /// A launch of `grid` blocks of `block` threads, without dynamic shared memory.
    pub fn new(grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Self {
        LaunchConfig {
            grid: grid.into(),
            block: block.into(),
            shared_bytes: 0,
            cluster: None,
            cooperative: false,
            priority: None,
        }
    }

    /// Sets the dynamic shared memory of each block, in bytes.
    pub fn with_shared(self, shared_bytes: u32) -> Self {
        LaunchConfig { shared_bytes, ..self }
    }

    /// Groups blocks into clusters of at most [`PORTABLE_CLUSTER_BLOCKS`] blocks, or more if
    /// `Kernel::allow_non_portable_clusters` permits. The grid must be a multiple of the cluster. Needs compute
    /// capability 9.0; the CPU device does not support clusters.
    pub fn with_cluster(self, cluster: impl Into<Dim3>) -> Self {
        LaunchConfig { cluster: Some(cluster.into()), ..self }
    }

    /// Requires all blocks to run concurrently. A grid that does not fit the stream's SMs is rejected at launch. The CPU
    /// device rejects every cooperative launch because its workers run one block after another.
    pub fn cooperative(self) -> Self {
        LaunchConfig { cooperative: true, ..self }
    }

    /// Sets the priority, within `Device::stream_priorities`. The CPU device ignores it.
    pub fn with_priority(self, priority: i32) -> Self {
        LaunchConfig { priority: Some(priority), ..self }
    }
}

/// Maximum blocks in a cluster that every GPU with clusters supports: "a maximum of 8 thread blocks in a cluster is
/// supported as a portable cluster size" (CUDA C++ Programming Guide, Thread Block Clusters).
pub const PORTABLE_CLUSTER_BLOCKS: u32 = 8;

/// Maximum size in bytes of a kernel's parameters, from sm_70 on (CUDA C++ Programming Guide, `__global__` Function
/// Parameters). A launch by a kernel takes less: 4,096.
pub const MAX_KERNEL_PARAMETER_BYTES: u32 = 32_764;

/// A device's launch limits (CUDA C++ Programming Guide, Technical Specifications per Compute Capability), as
/// reported by `cuDeviceGetAttribute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LaunchLimits {
    /// Maximum threads in a block.
    pub max_threads_per_block: u32,
    /// Maximum extents of a block in x, y and z.
    pub max_block: [u32; 3],
    /// Maximum extents of a grid in x, y and z.
    pub max_grid: [u32; 3],
    /// Maximum shared memory of a block without opting in, in bytes (48 KiB).
    pub shared_bytes_per_block: u32,
    /// Maximum shared memory of a block after opting in, static and dynamic together, in bytes.
    pub shared_bytes_per_block_optin: u32,
}

/// A kernel's launch limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelLimits {
    /// The manifest's `#[launch_bounds]`.
    pub launch_bounds: Option<u32>,
    /// `CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK`: "depends on both the function and the device".
    pub max_threads_per_block: u32,
    /// `CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES`: static shared memory, in bytes.
    pub static_shared_bytes: u32,
}

impl LaunchConfig {
    /// Checks the configuration against the device's and the kernel's limits.
    ///
    /// # Errors
    /// The first rule broken.
    pub fn check(&self, device: &LaunchLimits, kernel: &KernelLimits) -> Result<(), LaunchProblem> {
        extents("grid", self.grid, device.max_grid)?;
        // Check threads before extents: (2048, 1, 1) exceeds both limits, and the thread limit is the better known.
        let threads = self.block.count();
        if self.block.axes().iter().all(|(_, extent)| *extent > 0) {
            let threads = u64::try_from(threads).unwrap_or(u64::MAX);
            let over = |limit: u32| threads > u64::from(limit);
            if over(device.max_threads_per_block) {
                return Err(LaunchProblem::BlockThreads {
                    threads,
                    limit: device.max_threads_per_block,
                });
            }
            if let Some(limit) = kernel.launch_bounds.filter(|limit| over(*limit)) {
                return Err(LaunchProblem::LaunchBounds { threads, limit });
            }
            if over(kernel.max_threads_per_block) {
                return Err(LaunchProblem::KernelThreads {
                    threads,
                    limit: kernel.max_threads_per_block,
                });
            }
        }
        extents("block", self.block, device.max_block)?;

        let (dynamic_bytes, static_bytes) =
            (u64::from(self.shared_bytes), u64::from(kernel.static_shared_bytes));
        let limit = u64::from(device.shared_bytes_per_block_optin);
        if dynamic_bytes + static_bytes > limit {
            return Err(LaunchProblem::Shared { dynamic_bytes, static_bytes, limit });
        }
        Ok(())
    }
}

impl LaunchConfig {
    /// Checks the cluster, if any, for a GPU that supports clusters. If the kernel allows more than
    /// [`PORTABLE_CLUSTER_BLOCKS`], the driver makes the final decision.
    ///
    /// # Errors
    /// The first rule broken.
    pub fn check_cluster(&self, allows_non_portable: bool) -> Result<(), LaunchProblem> {
        let Some(cluster) = self.cluster else { return Ok(()) };
        for ((axis, extent), (_, blocks)) in cluster.axes().into_iter().zip(self.grid.axes()) {
            if extent == 0 {
                return Err(LaunchProblem::Zero { what: "cluster", dim: cluster });
            }
            if !blocks.is_multiple_of(extent) {
                return Err(LaunchProblem::ClusterGrid { grid: self.grid, cluster, axis });
            }
        }
        if cluster.count() > u128::from(PORTABLE_CLUSTER_BLOCKS) && !allows_non_portable {
            return Err(LaunchProblem::ClusterSize { cluster, limit: PORTABLE_CLUSTER_BLOCKS });
        }
        Ok(())
    }
}

fn extents(what: &'static str, dim: Dim3, limits: [u32; 3]) -> Result<(), LaunchProblem> {
    for ((axis, extent), limit) in dim.axes().into_iter().zip(limits) {
        if extent == 0 {
            return Err(LaunchProblem::Zero { what, dim });
        }
        if extent > limit {
            return Err(LaunchProblem::Extent { what, dim, axis, limit });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limits of compute capability 9.0.
    const DEVICE: LaunchLimits = LaunchLimits {
        max_threads_per_block: 1024,
        max_block: [1024, 1024, 64],
        max_grid: [2_147_483_647, 65_535, 65_535],
        shared_bytes_per_block: 49_152,
        shared_bytes_per_block_optin: 232_448,
    };
    const KERNEL: KernelLimits = KernelLimits {
        launch_bounds: None,
        max_threads_per_block: 1024,
        static_shared_bytes: 1024,
    };

    fn problem(config: LaunchConfig, kernel: &KernelLimits) -> String {
        config.check(&DEVICE, kernel).unwrap_err().to_string()
    }

    #[test]
    fn configurations_at_the_limits_are_accepted() {
        let largest =
            LaunchConfig::new((2_147_483_647, 65_535, 65_535), (1024, 1, 1)).with_shared(231_424);
        assert_eq!(largest.check(&DEVICE, &KERNEL), Ok(()));
        assert_eq!(LaunchConfig::new(1, (4, 4, 64)).check(&DEVICE, &KERNEL), Ok(()));
    }

    #[test]
    fn each_rule_names_its_values() {
        let bounded = KernelLimits { launch_bounds: Some(128), ..KERNEL };
        let heavy = KernelLimits { max_threads_per_block: 640, ..KERNEL };
        let messages = [
            problem(LaunchConfig::new((4, 0), 32), &KERNEL),
            problem(LaunchConfig::new(4, (32, 1, 0)), &KERNEL),
            problem(LaunchConfig::new((1, 65_536), 32), &KERNEL),
            problem(LaunchConfig::new(1, 2048), &KERNEL),
            problem(LaunchConfig::new(1, (u32::MAX, u32::MAX, u32::MAX)), &KERNEL),
            problem(LaunchConfig::new(1, (1, 1, 128)), &KERNEL),
            problem(LaunchConfig::new(1, 256), &bounded),
            problem(LaunchConfig::new(1, 1024), &heavy),
            problem(LaunchConfig::new(1, 32).with_shared(232_000), &KERNEL),
            problem(LaunchConfig::new(1, 32).with_shared(u32::MAX), &KERNEL),
        ];
        insta::assert_snapshot!(messages.join("\n"));
    }
}
