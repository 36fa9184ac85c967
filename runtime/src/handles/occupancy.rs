//! The functions of [`Kernel`] that ask the driver for its attributes and occupancy, and the checks of launches that
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
    /// Its attributes on its device.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn attributes(&self) -> Result<KernelAttributes> {
        let device = &self.program.device;
        let kernel = self.entry.handle.cuda(ATTRIBUTES)?;
        let _entered = device.enter()?;
        kernel.attributes(device.handle.cuda(ATTRIBUTES)?)
    }

    /// Sets how much of the L1 cache shall be shared memory.
    ///
    /// # Errors
    /// As [`Kernel::attributes`].
    pub fn set_carveout(&self, carveout: Carveout) -> Result<()> {
        let device = &self.program.device;
        let kernel = self.entry.handle.cuda(ATTRIBUTES)?;
        let _entered = device.enter()?;
        kernel.set_carveout(device.handle.cuda(ATTRIBUTES)?, carveout)
    }

    /// Lets it be launched in clusters of more than [`PORTABLE_CLUSTER_BLOCKS`](crate::PORTABLE_CLUSTER_BLOCKS) blocks,
    /// which some GPUs run and others refuse.
    ///
    /// # Errors
    /// As [`Kernel::attributes`].
    pub fn allow_non_portable_clusters(&self, allowed: bool) -> Result<()> {
        let device = &self.program.device;
        let kernel = self.entry.handle.cuda(ATTRIBUTES)?;
        let _entered = device.enter()?;
        kernel.allow_non_portable(device.handle.cuda(ATTRIBUTES)?, allowed)?;
        self.entry.non_portable.store(allowed, Ordering::Release);
        Ok(())
    }

    /// Sets how its clusters are put onto SMs.
    ///
    /// # Errors
    /// As [`Kernel::attributes`].
    pub fn set_cluster_scheduling(&self, policy: ClusterScheduling) -> Result<()> {
        let device = &self.program.device;
        let kernel = self.entry.handle.cuda(ATTRIBUTES)?;
        let _entered = device.enter()?;
        kernel.set_scheduling(device.handle.cuda(ATTRIBUTES)?, policy)
    }

    /// How many blocks of that size, with so much dynamic shared memory, an SM runs at a time
    /// (`cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`).
    ///
    /// # Errors
    /// [`Error::Launch`] if no such block can be launched; as [`Kernel::attributes`].
    pub fn max_active_blocks(&self, block: impl Into<Dim3>, shared_bytes: u32) -> Result<u32> {
        let config = LaunchConfig::new(1, block).with_shared(shared_bytes);
        self.check(&config)?;
        let kernel = self.entry.handle.cuda(OCCUPANCY)?;
        let _entered = self.program.device.enter()?;
        self.allow_shared(shared_bytes)?;
        kernel.active_blocks(threads(&config), shared_bytes)
    }

    /// The block, of at most `most_threads` threads (0 for no limit), with which most threads run at a time
    /// (`cuOccupancyMaxPotentialBlockSize`).
    ///
    /// # Errors
    /// As [`Kernel::max_active_blocks`].
    pub fn best_block(&self, shared_bytes: u32, most_threads: u32) -> Result<BestBlock> {
        self.check(&LaunchConfig::new(1, 1).with_shared(shared_bytes))?;
        let kernel = self.entry.handle.cuda(OCCUPANCY)?;
        let _entered = self.program.device.enter()?;
        self.allow_shared(shared_bytes)?;
        let (blocks, threads) = kernel.best_block(shared_bytes, most_threads)?;
        Ok(BestBlock { threads, blocks })
    }

    /// How many bytes of dynamic shared memory each block may have if so many shall run on an SM at a time
    /// (`cuOccupancyAvailableDynamicSMemPerBlock`).
    ///
    /// # Errors
    /// As [`Kernel::max_active_blocks`].
    pub fn available_shared_bytes(&self, blocks: u32, block: impl Into<Dim3>) -> Result<u64> {
        let config = LaunchConfig::new(1, block);
        self.check(&config)?;
        let kernel = self.entry.handle.cuda(OCCUPANCY)?;
        let _entered = self.program.device.enter()?;
        kernel.available_shared(blocks, threads(&config))
    }

    /// The blocks of the largest cluster with which the configuration can be launched; its own cluster is not looked at
    /// (`cuOccupancyMaxPotentialClusterSize`).
    ///
    /// # Errors
    /// As [`Kernel::max_active_blocks`].
    pub fn max_cluster_blocks(&self, config: &LaunchConfig) -> Result<u32> {
        let config = LaunchConfig { cluster: None, ..*config };
        self.check(&config)?;
        self.has_clusters()?;
        let kernel = self.entry.handle.cuda(OCCUPANCY)?;
        let _entered = self.program.device.enter()?;
        self.allow_shared(config.shared_bytes)?;
        kernel.cluster_blocks(&config)
    }

    /// How many of the configuration's clusters the device runs at a time (`cuOccupancyMaxActiveClusters`).
    ///
    /// # Errors
    /// As [`Kernel::max_active_blocks`].
    pub fn max_active_clusters(&self, config: &LaunchConfig) -> Result<u32> {
        self.check(config)?;
        self.has_clusters()?;
        let kernel = self.entry.handle.cuda(OCCUPANCY)?;
        let _entered = self.program.device.enter()?;
        self.allow_shared(config.shared_bytes)?;
        kernel.active_clusters(config)
    }

    /// Checks a configuration, as far as that needs no driver.
    pub(crate) fn check(&self, config: &LaunchConfig) -> Result<()> {
        let info = &self.program.device.info;
        config.check(&info.limits, &self.entry.limits).map_err(|problem| self.refuse(problem))?;
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

    /// "Thread block clusters" came with compute capability 9.0 (CUDA C++ Programming Guide, Features and Technical
    /// Specifications).
    fn has_clusters(&self) -> Result<()> {
        if self.program.device.info.compute_capability.major >= 9 {
            return Ok(());
        }
        Err(self.refuse(LaunchProblem::NoClusters { device: self.device_text() }))
    }

    /// Whether all blocks of a cooperative grid run at the same time on so many SMs: else the driver refuses them with
    /// `CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE`, which does not say how many do.
    pub(crate) fn check_cooperative(
        &self,
        config: &LaunchConfig,
        sms: u32,
        _entered: &Entered<'_>,
    ) -> Result<()> {
        let kernel = self.entry.handle.cuda("cooperative launches")?;
        let per_sm = kernel.active_blocks(threads(config), config.shared_bytes)?;
        let blocks = u64::try_from(config.grid.count()).unwrap_or(u64::MAX);
        if blocks > u64::from(per_sm) * u64::from(sms) {
            return Err(self.refuse(LaunchProblem::CooperativeGrid { blocks, per_sm, sms }));
        }
        Ok(())
    }

    fn refuse(&self, problem: LaunchProblem) -> Error {
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

/// Threads of a block that was checked, so there are few.
fn threads(config: &LaunchConfig) -> u32 {
    u32::try_from(config.block.count()).unwrap_or(u32::MAX)
}
