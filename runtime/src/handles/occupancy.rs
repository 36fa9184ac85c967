//! The functions of [`Kernel`] that query the driver for attributes and occupancy, and the launch checks that
//! depend on both.

use std::sync::atomic::Ordering;

use gridlet_artifact::{Dim3, LaunchConfig, LaunchProblem};

use super::program::Kernel;
use crate::backend::Entered;
use crate::error::{Error, Result};
use crate::info::DeviceKind;
use crate::occupancy::{BestBlock, Carveout, ClusterScheduling, KernelAttributes};

const OCCUPANCY: &str = "occupancy";
const ATTRIBUTES: &str = "kernel attributes";

impl Kernel {
    /// The kernel's attributes on its device. For a kernel that runs through its program's resident entry, here and in
    /// the functions below, they are the entry's, which all such kernels of the program share.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn attributes(&self) -> Result<KernelAttributes> {
        let device = &self.program.device;
        let kernel = self.entry.handle().cuda(ATTRIBUTES)?;
        let _entered = device.enter()?;
        kernel.attributes(device.handle.cuda(ATTRIBUTES)?)
    }

    /// Sets how much of the L1 cache to use as shared memory. A kernel that launches through the device runtime has half of it from the
    /// start, because the grids that it launches start late otherwise.
    ///
    /// # Errors
    /// The errors of [`Kernel::attributes`].
    pub fn set_carveout(&self, carveout: Carveout) -> Result<()> {
        let device = &self.program.device;
        let kernel = self.entry.handle().cuda(ATTRIBUTES)?;
        let _entered = device.enter()?;
        kernel.set_carveout(device.handle.cuda(ATTRIBUTES)?, carveout)
    }

    /// Allows clusters of more than [`PORTABLE_CLUSTER_BLOCKS`](crate::PORTABLE_CLUSTER_BLOCKS) blocks, which some
    /// GPUs run and others refuse.
    ///
    /// # Errors
    /// The errors of [`Kernel::attributes`].
    pub fn allow_non_portable_clusters(&self, allowed: bool) -> Result<()> {
        let device = &self.program.device;
        let kernel = self.entry.handle().cuda(ATTRIBUTES)?;
        let _entered = device.enter()?;
        kernel.allow_non_portable(device.handle.cuda(ATTRIBUTES)?, allowed)?;
        self.entry.non_portable.store(allowed, Ordering::Release);
        Ok(())
    }

    /// Sets how the kernel's clusters are scheduled on SMs.
    ///
    /// # Errors
    /// The errors of [`Kernel::attributes`].
    pub fn set_cluster_scheduling(&self, policy: ClusterScheduling) -> Result<()> {
        let device = &self.program.device;
        let kernel = self.entry.handle().cuda(ATTRIBUTES)?;
        let _entered = device.enter()?;
        kernel.set_scheduling(device.handle.cuda(ATTRIBUTES)?, policy)
    }

    /// The number of blocks of this size, with this much dynamic shared memory, that an SM can run at a time
    /// (`cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`). For a kernel that runs through its program's resident
    /// entry, the number of the entry's blocks, each of which runs one or more of the kernel's.
    ///
    /// # Errors
    /// [`Error::Launch`] if no such block can be launched; the errors of [`Kernel::attributes`].
    pub fn max_active_blocks(&self, block: impl Into<Dim3>, shared_bytes: u32) -> Result<u32> {
        let config = LaunchConfig::new(1, block).with_shared(shared_bytes);
        self.check(&config)?;
        let kernel = self.entry.handle().cuda(OCCUPANCY)?;
        let _entered = self.program.device.enter()?;
        let (threads, shared_bytes) = match &self.entry.resident {
            None => (threads(&config), shared_bytes),
            Some(resident) => {
                let shape = resident.shape(self.manifest(), &config);
                (shape.threads(), shape.shared_bytes)
            }
        };
        self.allow_shared(shared_bytes)?;
        kernel.active_blocks(threads, shared_bytes)
    }

    /// The block size, at most `most_threads` threads (0 for no limit), with the highest occupancy
    /// (`cuOccupancyMaxPotentialBlockSize`).
    ///
    /// # Errors
    /// The errors of [`Kernel::max_active_blocks`].
    pub fn best_block(&self, shared_bytes: u32, most_threads: u32) -> Result<BestBlock> {
        self.check(&LaunchConfig::new(1, 1).with_shared(shared_bytes))?;
        let kernel = self.entry.handle().cuda(OCCUPANCY)?;
        let _entered = self.program.device.enter()?;
        self.allow_shared(shared_bytes)?;
        let (blocks, threads) = kernel.best_block(shared_bytes, most_threads)?;
        Ok(BestBlock { threads, blocks })
    }

    /// The most bytes of dynamic shared memory per block with which an SM can still run `blocks` such blocks at a
    /// time (`cuOccupancyAvailableDynamicSMemPerBlock`).
    ///
    /// # Errors
    /// The errors of [`Kernel::max_active_blocks`].
    pub fn available_shared_bytes(&self, blocks: u32, block: impl Into<Dim3>) -> Result<u64> {
        let config = LaunchConfig::new(1, block);
        self.check(&config)?;
        let kernel = self.entry.handle().cuda(OCCUPANCY)?;
        let _entered = self.program.device.enter()?;
        kernel.available_shared(blocks, threads(&config))
    }

    /// The number of blocks in the largest cluster with which the configuration can be launched; the
    /// configuration's own cluster is ignored (`cuOccupancyMaxPotentialClusterSize`).
    ///
    /// # Errors
    /// The errors of [`Kernel::max_active_blocks`].
    pub fn max_cluster_blocks(&self, config: &LaunchConfig) -> Result<u32> {
        let mut config = *config;
        config.cluster = None;
        self.check(&config)?;
        self.has_clusters()?;
        let kernel = self.entry.handle().cuda(OCCUPANCY)?;
        let _entered = self.program.device.enter()?;
        self.allow_shared(config.shared_bytes)?;
        kernel.cluster_blocks(&config)
    }

    /// The number of the configuration's clusters that the device can run at a time
    /// (`cuOccupancyMaxActiveClusters`).
    ///
    /// # Errors
    /// The errors of [`Kernel::max_active_blocks`].
    pub fn max_active_clusters(&self, config: &LaunchConfig) -> Result<u32> {
        self.check(config)?;
        self.has_clusters()?;
        let kernel = self.entry.handle().cuda(OCCUPANCY)?;
        let _entered = self.program.device.enter()?;
        self.allow_shared(config.shared_bytes)?;
        kernel.active_clusters(config)
    }

    fn allow_shared(&self, bytes: u32) -> Result<()> {
        self.entry.loaded().allow_shared(&self.program.device, bytes)
    }

    /// Checks a configuration, as far as possible without the driver.
    pub(crate) fn check(&self, config: &LaunchConfig) -> Result<()> {
        let info = &self.program.device.info;
        config.check(&info.limits, &self.entry.limits).map_err(|problem| self.refuse(problem))?;
        if self.entry.resident.is_some() {
            let what = match (config.cluster, config.cooperative) {
                (Some(_), _) => Some("clusters"),
                (None, true) => Some("cooperative launches"),
                (None, false) => None,
            };
            if let Some(what) = what {
                return Err(self.refuse(LaunchProblem::Resident { what }));
            }
        }
        if config.cluster.is_some() {
            self.has_clusters()?;
            let allows_non_portable = self.entry.non_portable.load(Ordering::Acquire);
            config.check_cluster(allows_non_portable).map_err(|problem| self.refuse(problem))?;
        }
        if config.cooperative && !info.cooperative_launch {
            return Err(self.refuse(LaunchProblem::NoCooperative { device: self.device_text() }));
        }
        Ok(())
    }

    /// Checks that the device supports clusters: "Thread block clusters" came with compute capability 9.0 (CUDA
    /// C++ Programming Guide, Features and Technical Specifications).
    fn has_clusters(&self) -> Result<()> {
        if self.program.device.info.compute_capability.major >= 9 {
            return Ok(());
        }
        Err(self.refuse(LaunchProblem::NoClusters { device: self.device_text() }))
    }

    /// Checks that all blocks of a cooperative grid fit on `sms` SMs at the same time. The driver would refuse the
    /// launch with `CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE`, without saying how many fit.
    pub(crate) fn check_cooperative(
        &self,
        config: &LaunchConfig,
        sms: u32,
        _entered: &Entered<'_>,
    ) -> Result<()> {
        let kernel = self.entry.handle().cuda("cooperative launches")?;
        let per_sm = kernel.active_blocks(threads(config), config.shared_bytes)?;
        let blocks = u64::try_from(config.grid.count()).unwrap_or(u64::MAX);
        if blocks > u64::from(per_sm) * u64::from(sms) {
            return Err(self.refuse(LaunchProblem::CooperativeGrid { blocks, per_sm, sms }));
        }
        Ok(())
    }

    pub(super) fn refuse(&self, problem: LaunchProblem) -> Error {
        Error::Launch { kernel: self.name().into(), problem }
    }

    fn device_text(&self) -> String {
        let info = &self.program.device.info;
        match info.kind {
            DeviceKind::Cpu => "the CPU device".into(),
            DeviceKind::Cuda => format!("a GPU of {}", info.compute_capability),
        }
    }
}

/// Threads per block; the configuration was checked, so the product does not overflow.
fn threads(config: &LaunchConfig) -> u32 {
    u32::try_from(config.block.count()).unwrap_or(u32::MAX)
}
