//! Peer access and prefetching for GPUs.

use super::{CudaDevice, CudaStream};
use crate::driver::Failed;
use crate::driver::unified::{self as driver, MemoryLocation};
use crate::error::Result;

/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`
const ALREADY_ENABLED: i32 = 704;
/// `CUDA_ERROR_PEER_ACCESS_NOT_ENABLED`
const NOT_ENABLED: i32 = 705;

impl CudaDevice {
    pub(crate) fn can_access(&self, peer: &CudaDevice) -> Result<bool> {
        // SAFETY: both handles are of this driver.
        Ok(unsafe { driver::can_access(self.handle, peer.handle) }?)
    }

    pub(crate) fn peer_attribute(&self, peer: &CudaDevice, attribute: u32) -> Result<i32> {
        // SAFETY: as above.
        Ok(unsafe { driver::peer_attribute(attribute, self.handle, peer.handle) }?)
    }

    /// Gives the current context access to this device's memory.
    pub(crate) fn open_to_current(&self) -> Result<()> {
        // SAFETY: `self` holds the context.
        unless(unsafe { driver::enable_peer(self.context()) }, ALREADY_ENABLED)
    }

    /// Revokes the current context's access to this device's memory.
    pub(crate) fn close_to_current(&self) -> Result<()> {
        // SAFETY: as above; the caller has waited for the current device.
        unless(unsafe { driver::disable_peer(self.context()) }, NOT_ENABLED)
    }
}

impl CudaStream {
    /// # Safety
    /// The contract of [`crate::backend`]; the range must be managed memory.
    pub(crate) unsafe fn prefetch(
        &self,
        address: u64,
        bytes: u64,
        location: MemoryLocation,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        Ok(unsafe { driver::prefetch(address, bytes as usize, location, self.0) }?)
    }
}

/// The result, with the code `fine` counted as success.
fn unless(result: Result<(), Failed>, fine: i32) -> Result<()> {
    match result {
        Err(Failed::Code { code, .. }) if code == fine => Ok(()),
        other => Ok(other?),
    }
}
