//! Access of one GPU to another's memory.

use crate::error::Result;
use crate::handles::Device;
use crate::memory::DeviceMemory;

/// What two GPUs can do with each other's memory (`CUdevice_P2PAttribute`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAttributes {
    /// How fast the link is, relative to others; lower is faster.
    pub performance_rank: u32,
    /// Kernels of the one can access the other's memory.
    pub access: bool,
    /// Atomics on it are native.
    pub native_atomics: bool,
    /// CUDA arrays can be accessed.
    pub array_access: bool,
}

impl Device {
    /// Whether kernels of this device can be given access to the peer's memory (`cuDeviceCanAccessPeer`).
    ///
    /// # Errors
    /// [`Error::OtherDevice`](crate::Error::OtherDevice) if one of them is the CPU;
    /// [`Error::Cuda`](crate::Error::Cuda).
    pub fn can_access_peer(&self, peer: &Device) -> Result<bool> {
        self.inner.handle.can_access(&peer.inner.handle)
    }

    /// What the two can do (`cuDeviceGetP2PAttribute`).
    ///
    /// # Errors
    /// As [`Device::can_access_peer`].
    pub fn peer_attributes(&self, peer: &Device) -> Result<PeerAttributes> {
        let get = |attribute| self.inner.handle.peer_attribute(&peer.inner.handle, attribute);
        Ok(PeerAttributes {
            performance_rank: get(1)?.max(0).unsigned_abs(),
            access: get(2)? != 0,
            native_atomics: get(3)? != 0,
            array_access: get(4)? != 0,
        })
    }

    /// Gives kernels of this device access to all memory of the peer, at the same addresses
    /// (`cuCtxEnablePeerAccess`): pass them with [`Arg::address`](crate::Arg::address). The other direction is a call
    /// of its own. Access that was enabled before is no error.
    ///
    /// # Errors
    /// As [`Device::can_access_peer`]; [`Error::Unusable`](crate::Error::Unusable).
    pub fn enable_peer_access(&self, peer: &Device) -> Result<()> {
        let _theirs = peer.inner.inside()?;
        self.inner.call(|entered| self.inner.handle.enable_peer(&peer.inner.handle, entered))
    }

    /// Takes it back, once all launches on this device have ended. Access that was not enabled is no error.
    ///
    /// # Errors
    /// As [`Device::enable_peer_access`]; those of [`Stream::synchronize`](crate::Stream::synchronize).
    pub fn disable_peer_access(&self, peer: &Device) -> Result<()> {
        let _theirs = peer.inner.inside()?;
        let entered = self.inner.enter()?;
        self.inner.settle(crate::handles::DEFAULT_TIMEOUT, &entered)?;
        self.inner.handle.disable_peer(&peer.inner.handle, &entered)
    }
}

impl DeviceMemory {
    /// Copies all of another memory of the same length, which may be another GPU's: the driver infers from the addresses
    /// where each is (`cuMemcpyAsync`). Waits for the launches before on both devices, and for the copy.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length), [`Error::OtherDevice`](crate::Error::OtherDevice) between the CPU device
    /// and a GPU; those of [`Stream::synchronize`](crate::Stream::synchronize).
    pub fn copy_from(&mut self, from: &DeviceMemory) -> Result<()> {
        self.copy_from_memory(from)
    }
}
