//! Kernel attributes and occupancy, as the driver reports them.

use gridlet_artifact::LaunchConfig;

use super::{CudaDevice, CudaKernel};
use crate::driver;
use crate::driver::sys::CUfunction_attribute as Attribute;
use crate::error::Result;
use crate::occupancy::{Carveout, ClusterScheduling, KernelAttributes, version};

impl CudaKernel {
    pub(crate) fn attributes(&self, device: &CudaDevice) -> Result<KernelAttributes> {
        // SAFETY: the kernel lives as long as its program and belongs to that device's driver.
        let signed = |attribute| unsafe {
            driver::library::signed_attribute(self.0, attribute, device.handle)
        };
        let get = |attribute| signed(attribute).map(|value| value.max(0).unsigned_abs());
        Ok(KernelAttributes {
            max_threads_per_block: get(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            static_shared_bytes: get(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            constant_bytes: get(Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
            local_bytes: get(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            registers: get(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            ptx_version: version(get(Attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION)?),
            binary_version: version(get(Attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION)?),
            caches_globals: get(Attribute::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA)? != 0,
            max_dynamic_shared_bytes: get(
                Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            )?,
            carveout: Carveout::from_raw(signed(
                Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
            )?),
            needs_cluster: get(Attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET)? != 0,
            required_cluster: [
                get(Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)?,
                get(Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT)?,
                get(Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)?,
            ],
            allows_non_portable_clusters: get(
                Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
            )? != 0,
            cluster_scheduling: ClusterScheduling::from_raw(get(
                Attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
            )?),
        })
    }

    fn set(&self, device: &CudaDevice, attribute: Attribute, value: i32) -> Result<()> {
        // SAFETY: the kernel lives as long as its program and belongs to that device's driver.
        Ok(unsafe { driver::library::set_attribute(self.0, attribute, value, device.handle) }?)
    }

    pub(crate) fn set_carveout(&self, device: &CudaDevice, carveout: Carveout) -> Result<()> {
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        self.set(device, attribute, carveout.raw())
    }

    pub(crate) fn allow_non_portable(&self, device: &CudaDevice, allowed: bool) -> Result<()> {
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        self.set(device, attribute, i32::from(allowed))
    }

    pub(crate) fn set_scheduling(
        &self,
        device: &CudaDevice,
        policy: ClusterScheduling,
    ) -> Result<()> {
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
        self.set(device, attribute, policy.raw())
    }

    /// The device's context must be current, here and in the functions below.
    pub(crate) fn active_blocks(&self, threads: u32, shared_bytes: u32) -> Result<u32> {
        // SAFETY: the kernel lives as long as its program.
        Ok(unsafe { driver::occupancy::active_blocks(self.0, threads, shared_bytes) }?)
    }

    pub(crate) fn best_block(&self, shared_bytes: u32, most_threads: u32) -> Result<(u32, u32)> {
        // SAFETY: as above.
        Ok(unsafe { driver::occupancy::best_block(self.0, shared_bytes, most_threads) }?)
    }

    pub(crate) fn available_shared(&self, blocks: u32, threads: u32) -> Result<u64> {
        // SAFETY: as above.
        Ok(unsafe { driver::occupancy::available_shared(self.0, blocks, threads) }?)
    }

    pub(crate) fn cluster_blocks(&self, config: &LaunchConfig) -> Result<u32> {
        // SAFETY: as above.
        Ok(unsafe { driver::occupancy::cluster_blocks(self.0, config) }?)
    }

    pub(crate) fn active_clusters(&self, config: &LaunchConfig) -> Result<u32> {
        // SAFETY: as above.
        Ok(unsafe { driver::occupancy::active_clusters(self.0, config) }?)
    }
}
