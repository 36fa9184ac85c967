//! Access of one GPU to another's memory.

use crate::error::Result;
use crate::handles::Device;
use crate::memory::DeviceMemory;

/// Access of one GPU to another GPU's memory (`CUdevice_P2PAttribute`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerAttributes {
    /// The relative performance of the link; lower is faster.
    pub performance_rank: u32,
    /// Kernels of the one GPU can access the other's memory.
    pub access: bool,
    /// Atomics on that memory are native.
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

    /// The properties of the link between the two GPUs (`cuDeviceGetP2PAttribute`).
    ///
    /// # Errors
    /// The errors of [`Device::can_access_peer`].
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
    /// (`cuCtxEnablePeerAccess`): pass them with [`Arg::address`](crate::Arg::address). The other direction needs
    /// its own call. Enabling access twice is not an error.
    ///
    /// # Errors
    /// The errors of [`Device::can_access_peer`]; [`Error::Unusable`](crate::Error::Unusable).
    pub fn enable_peer_access(&self, peer: &Device) -> Result<()> {
        let _theirs = peer.inner.inside()?;
        self.inner.call(|entered| self.inner.handle.enable_peer(&peer.inner.handle, entered))
    }

    /// Revokes the access, once all launches on this device have ended. Disabling access that was not enabled is
    /// not an error.
    ///
    /// # Errors
    /// The errors of [`Device::enable_peer_access`] and [`Stream::synchronize`](crate::Stream::synchronize).
    pub fn disable_peer_access(&self, peer: &Device) -> Result<()> {
        let _theirs = peer.inner.inside()?;
        let entered = self.inner.enter()?;
        self.inner.settle(crate::handles::DEFAULT_TIMEOUT, &entered)?;
        self.inner.handle.disable_peer(&peer.inner.handle, &entered)
    }
}

impl DeviceMemory {
    /// Copies all of another memory of the same length, which may be on another GPU: the driver infers the
    /// locations from the addresses (`cuMemcpyAsync`). Waits for earlier launches on both devices, and for the
    /// copy.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length), [`Error::OtherDevice`](crate::Error::OtherDevice) between the CPU
    /// device and a GPU; the errors of [`Stream::synchronize`](crate::Stream::synchronize).
    pub fn copy_from(&mut self, from: &DeviceMemory) -> Result<()> {
        self.copy_from_memory(from)
    }
}
