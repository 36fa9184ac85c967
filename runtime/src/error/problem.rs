//! What is wrong with an artifact or a launch.

/// What is wrong with an artifact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{artifact}: {problem}")]
pub struct ArtifactError {
    /// The file, or what else the bytes came from.
    pub artifact: String,
    /// What is wrong.
    pub problem: ArtifactProblem,
}

/// A way in which an artifact is damaged, foreign or too new.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactProblem {
    /// It cannot be read or written.
    #[error("{0}")]
    Io(String),
    /// It is neither a bundle nor a manifest.
    #[error("not a Gridlet bundle: {0}")]
    NotABundle(String),
    /// It begins as a bundle and is cut off or damaged.
    #[error("a damaged or truncated bundle: {0}")]
    Truncated(String),
    /// The bundle lacks `manifest.json`.
    #[error("no `{}` in the bundle", crate::artifact::MANIFEST_FILE)]
    NoManifest,
    /// The manifest is not the JSON that it should be.
    #[error("not a Gridlet manifest: {0}")]
    NotAManifest(String),
    /// The manifest is of a version that this crate does not know.
    #[error("manifest version {found} is newer than this runtime's {supported}; update Gridlet")]
    TooNew {
        /// Version of the manifest.
        found: u64,
        /// [`crate::manifest::MANIFEST_VERSION`].
        supported: u32,
    },
    /// The manifest contradicts itself.
    #[error("the manifest contradicts itself: {0}")]
    Inconsistent(String),
    /// An image that the manifest names is not there.
    #[error("image `{0}` is missing")]
    NoImage(String),
    /// An image has another size than the manifest says.
    #[error("image `{file}` has {found} bytes, the manifest says {expected}")]
    ImageSize {
        /// The image's file.
        file: String,
        /// Bytes by the manifest.
        expected: u64,
        /// Bytes that are there; for an image that is too long, at least so many.
        found: u64,
    },
    /// An image is not the one that the manifest was written for.
    #[error("image `{file}` is damaged: its CRC-32 is {found}, the manifest says {expected}")]
    ImageChecksum {
        /// The image's file.
        file: String,
        /// By the manifest.
        expected: String,
        /// Of the bytes.
        found: String,
    },
    /// The same, by the hash.
    #[error("image `{file}` is damaged: its SHA-256 is {found}, the manifest says {expected}")]
    ImageHash {
        /// The image's file.
        file: String,
        /// By the manifest.
        expected: String,
        /// Of the bytes.
        found: String,
    },
    /// The images given do not match the manifest's in number.
    #[error("{found} images given, the manifest lists {expected}")]
    ImageCount {
        /// By the manifest.
        expected: usize,
        /// Given.
        found: usize,
    },
}

/// A way in which a launch configuration does not fit the kernel or the device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchProblem {
    /// A dimension is zero.
    #[error("{what} {dim} has an extent of zero")]
    Zero {
        /// `grid` or `block`.
        what: &'static str,
        /// The dimensions given.
        dim: crate::Dim3,
    },
    /// A dimension is over the device's limit.
    #[error("{what} {dim} is too large in {axis}: the device allows {limit}")]
    Extent {
        /// `grid` or `block`.
        what: &'static str,
        /// The dimensions given.
        dim: crate::Dim3,
        /// `x`, `y` or `z`.
        axis: char,
        /// The device's limit for that axis.
        limit: u32,
    },
    /// A block has more threads than the device runs.
    #[error("a block of {threads} threads is too large: the device allows {limit}")]
    BlockThreads {
        /// Threads of the block.
        threads: u64,
        /// `CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK`.
        limit: u32,
    },
    /// A block has more threads than the kernel's `#[launch_bounds]`.
    #[error("a block of {threads} threads is over the kernel's #[launch_bounds({limit})]")]
    LaunchBounds {
        /// Threads of the block.
        threads: u64,
        /// The bound.
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
    /// Static and dynamic shared memory together are over the device's limit.
    #[error(
        "{dynamic_bytes} bytes of dynamic and {static_bytes} bytes of static shared memory are too much: the device allows {limit} bytes in all"
    )]
    Shared {
        /// Asked for by the launch.
        dynamic_bytes: u64,
        /// Declared by the kernel.
        static_bytes: u64,
        /// `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`.
        limit: u64,
    },
    /// The device has no clusters.
    #[error("clusters need a GPU of compute capability 9.0 or later, and this is {device}")]
    NoClusters {
        /// What it is.
        device: String,
    },
    /// The grid is no multiple of the cluster.
    #[error("grid {grid} is not a multiple of cluster {cluster} in {axis}")]
    ClusterGrid {
        /// Blocks of the grid.
        grid: crate::Dim3,
        /// Blocks of a cluster.
        cluster: crate::Dim3,
        /// `x`, `y` or `z`.
        axis: char,
    },
    /// A cluster has more blocks than every GPU runs.
    #[error(
        "cluster {cluster} has {} blocks, more than the {limit} that every GPU with clusters runs: see `Kernel::allow_non_portable_clusters`",
        cluster.count()
    )]
    ClusterSize {
        /// Blocks of a cluster.
        cluster: crate::Dim3,
        /// [`crate::PORTABLE_CLUSTER_BLOCKS`].
        limit: u32,
    },
    /// The device runs no cooperative launches.
    #[error("cooperative launches need a GPU that has them, and this is {device}")]
    NoCooperative {
        /// What it is.
        device: String,
    },
    /// The blocks of a cooperative launch do not fit the stream's SMs at the same time.
    #[error(
        "a cooperative grid of {blocks} blocks does not fit: {per_sm} run at a time on each of {sms} SMs, {} in all",
        u64::from(*per_sm) * u64::from(*sms)
    )]
    CooperativeGrid {
        /// Blocks of the grid.
        blocks: u64,
        /// Blocks that an SM holds (`cuOccupancyMaxActiveBlocksPerMultiprocessor`).
        per_sm: u32,
        /// SMs of the stream's green context, or of the device.
        sms: u32,
    },
}
