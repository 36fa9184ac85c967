//! Reading and setting device limits.

use std::sync::atomic::Ordering;

use super::Device;
use crate::error::{Error, Result};
use crate::limits::Limit;
use crate::observe;

impl Device {
    /// The value of a limit. The driver may have rounded the requested value.
    ///
    /// # Errors
    /// [`Error::NotOnCpu`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn limit(&self, limit: Limit) -> Result<u64> {
        self.inner.call(|entered| self.inner.handle.limit(limit, entered))
    }

    /// Sets a limit, and returns the bytes of device memory that the driver allocated for it at once; negative if
    /// it released some. (The pool of pending launches and the heap are allocated when a program that needs them
    /// is loaded.)
    ///
    /// # Errors
    /// [`Error::LimitTooLate`] after the first kernel, for all limits except [`Limit::StackBytes`];
    /// [`Error::NotOnCpu`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn set_limit(&self, limit: Limit, value: u64) -> Result<i64> {
        if limit.is_early() && self.inner.kernel_ran.load(Ordering::Acquire) {
            return Err(Error::LimitTooLate { limit: limit.name() });
        }
        let handle = &self.inner.handle;
        let entered = self.inner.enter()?;
        let before = handle.free_memory(&entered)?;
        handle.set_limit(limit, value, &entered)?;
        let taken = if handle.is_cpu() {
            0
        } else {
            let after = handle.free_memory(&entered)?;
            before.cast_signed().wrapping_sub(after.cast_signed())
        };
        observe::limit_set(self, limit.name(), value, taken);
        Ok(taken)
    }

    /// The value of [`Limit::PendingLaunches`].
    ///
    /// # Errors
    /// The errors of [`Device::limit`].
    pub fn pending_launch_limit(&self) -> Result<u64> {
        self.limit(Limit::PendingLaunches)
    }

    /// Sizes the pool of pending launches. A larger pool takes more device memory (about 1.2 GB for 131,072 on an
    /// H200). A pool that is too small loses launches, or hangs when it fills with grids that were themselves
    /// launched from the device.
    ///
    /// # Errors
    /// The errors of [`Device::set_limit`].
    pub fn set_pending_launch_limit(&self, launches: u64) -> Result<()> {
        self.set_limit(Limit::PendingLaunches, launches).map(drop)
    }

    /// The size in bytes of each stream's launch memory; see [`Device::set_launch_memory`].
    pub fn launch_memory(&self) -> u64 {
        self.inner.launch_memory.load(Ordering::Acquire)
    }

    /// Sets the size in bytes of each stream's launch memory, from its next launch on; the default is 64 MiB. A program
    /// built for resident launches keeps the grids that its kernels launched there until they end: a launch that finds
    /// it full is lost, and the next wait reports that. Larger memory therefore allows more launches to be unfinished at
    /// the same time.
    ///
    /// A stream allocates its launch memory at its first launch of a kernel that launches kernels or is launched by one,
    /// and frees it when it is dropped. Other programs, and the CPU device, need none. A launch whose kernel needs more
    /// than this size to start fails with [`Error::LaunchMemory`], which says how much it needs.
    pub fn set_launch_memory(&self, bytes: u64) {
        self.inner.launch_memory.store(bytes, Ordering::Release);
    }
}
