//! Errors of launch configurations.

use super::Dim3;

/// A way in which a launch configuration does not fit the kernel or the device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchProblem {
    /// A dimension is zero.
    #[error("{what} {dim} has an extent of zero")]
    Zero {
        /// `grid`, `block` or `cluster`.
        what: &'static str,
        /// The dimensions given.
        dim: Dim3,
    },
    /// An extent exceeds the device's limit.
    #[error("{what} {dim} is too large in {axis}: the device allows {limit}")]
    Extent {
        /// `grid` or `block`.
        what: &'static str,
        /// The dimensions given.
        dim: Dim3,
        /// `x`, `y` or `z`.
        axis: char,
        /// The device's limit for that axis.
        limit: u32,
    },
    /// A block has more threads than the device supports.
    #[error("a block of {threads} threads is too large: the device allows {limit}")]
    BlockThreads {
        /// Threads of the block.
        threads: u64,
        /// `CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK`.
        limit: u32,
    },
    /// A block has more threads than the kernel's `#[launch_bounds]` allow.
    #[error("a block of {threads} threads is over the kernel's #[launch_bounds({limit})]")]
    LaunchBounds {
        /// Threads of the block.
        threads: u64,
        /// The bound in threads.
        limit: u32,
    },
    /// A block has more threads than the kernel's registers allow.
    #[error("a block of {threads} threads is too large for this kernel's registers: {limit} fit")]
    KernelThreads {
        /// Threads of the block.
        threads: u64,
        /// `CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK`.
        limit: u32,
    },
    /// Static and dynamic shared memory together exceed the device's limit.
    #[error(
        "{dynamic_bytes} bytes of dynamic and {static_bytes} bytes of static shared memory are too much: the device allows {limit} bytes in all"
    )]
    Shared {
        /// Requested by the launch.
        dynamic_bytes: u64,
        /// Declared by the kernel.
        static_bytes: u64,
        /// `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`.
        limit: u64,
    },
    /// The device does not support clusters.
    #[error("clusters need a GPU of compute capability 9.0 or later, and this is {device}")]
    NoClusters {
        /// Description of the device.
        device: String,
    },
    /// The grid is not a multiple of the cluster.
    #[error("grid {grid} is not a multiple of cluster {cluster} in {axis}")]
    ClusterGrid {
        /// Blocks of the grid.
        grid: Dim3,
        /// Blocks of a cluster.
        cluster: Dim3,
        /// `x`, `y` or `z`.
        axis: char,
    },
    /// The cluster is larger than the portable limit.
    #[error(
        "cluster {cluster} has {} blocks, more than the {limit} that every GPU with clusters runs: see `Kernel::allow_non_portable_clusters`",
        cluster.count()
    )]
    ClusterSize {
        /// Blocks of a cluster.
        cluster: Dim3,
        /// [`PORTABLE_CLUSTER_BLOCKS`](super::PORTABLE_CLUSTER_BLOCKS).
        limit: u32,
    },
    /// The device does not support cooperative launches.
    #[error("cooperative launches need a GPU that supports them, and this is {device}")]
    NoCooperative {
        /// Description of the device.
        device: String,
    },
    /// The kernel's grids run as resident launches, and such grids do not support the feature.
    #[error(
        "grids of a kernel that launches kernels or is launched by one have no {what} with the strategy `resident`"
    )]
    Resident {
        /// `clusters` or `cooperative launches`.
        what: &'static str,
    },
    /// The blocks of a cooperative launch cannot all be resident on the stream's SMs.
    #[error(
        "a cooperative grid of {blocks} blocks does not fit: {per_sm} run at a time on each of {sms} SMs, {} in all",
        u64::from(*per_sm) * u64::from(*sms)
    )]
    CooperativeGrid {
        /// Blocks of the grid.
        blocks: u64,
        /// Blocks resident on one SM (`cuOccupancyMaxActiveBlocksPerMultiprocessor`).
        per_sm: u32,
        /// SMs of the stream's green context, or of the device.
        sms: u32,
    },
}

impl LaunchProblem {
    /// A remedy, as a sentence; `None` where the message already gives one or none is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            LaunchProblem::Zero { .. } => Some("every extent must be at least 1"),
            LaunchProblem::LaunchBounds { .. } => {
                Some("use smaller blocks, or raise the kernel's #[launch_bounds]")
            }
            LaunchProblem::KernelThreads { .. } => Some(
                "use smaller blocks, or #[launch_bounds] to make the compiler use fewer registers",
            ),
            LaunchProblem::NoClusters { .. } => Some("launch without a cluster on this device"),
            LaunchProblem::NoCooperative { .. } => Some(
                "launch without `cooperative` on this device, and do not let blocks wait for each other",
            ),
            LaunchProblem::Resident { .. } => {
                Some("build the program with `--launch cdp`, or do without")
            }
            LaunchProblem::CooperativeGrid { .. } => {
                Some("use fewer blocks, and let each do more of the work")
            }
            LaunchProblem::Extent { .. }
            | LaunchProblem::ClusterGrid { .. }
            | LaunchProblem::ClusterSize { .. }
            | LaunchProblem::BlockThreads { .. }
            | LaunchProblem::Shared { .. } => None,
        }
    }
}
