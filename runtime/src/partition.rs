//! Green contexts: partitions of a device's SMs.

use std::sync::Arc;

use crate::backend::PartitionHandle;
use crate::device::{Device, DeviceInner};
use crate::error::Result;
use crate::stream::Stream;

/// A green context: part of a device's SMs, with streams whose kernels run there. Cheap to clone.
///
/// Memory, programs and events belong to the device and serve all of its green contexts.
///
/// Kernels may use more SMs than the partition has (driver API, Green Contexts, On Concurrency): on compute
/// capability 9.x two more, shared by all partitions, once a program that launches from the device is
/// loaded. And kernels that are launched from the device through CUDA's device runtime run outside of the
/// partition.
#[derive(Clone, Debug)]
pub struct GreenContext {
    pub(crate) inner: Arc<GreenInner>,
}

impl GreenContext {
    /// A green context of at least `sms` SMs: the steps of the driver API's green-context section. The driver
    /// rounds up; [`GreenContext::sm_count`] is what it gave. If only the whole device is large enough, it is
    /// the whole device.
    ///
    /// # Errors
    /// [`crate::Error::Partition`] if the device does not have so many SMs or `sms` is 0; [`crate::Error::MissingCall`] if
    /// the driver is older than CUDA 12.4; [`crate::Error::Cuda`], [`crate::Error::Unusable`].
    pub fn with_sms(device: &Device, sms: u32) -> Result<GreenContext> {
        let device = Arc::clone(&device.inner);
        let (handle, sm_count) = device.handle.partition(sms, &device.info, &device.enter()?)?;
        Ok(GreenContext { inner: Arc::new(GreenInner { device, handle, sm_count }) })
    }

    /// How many SMs it has.
    pub fn sm_count(&self) -> u32 {
        self.inner.sm_count
    }

    /// Its device.
    pub fn device(&self) -> Device {
        Device { inner: Arc::clone(&self.inner.device) }
    }

    /// A stream whose kernels run on its SMs.
    ///
    /// # Errors
    /// [`crate::Error::Cuda`], [`crate::Error::Unusable`].
    pub fn stream(&self) -> Result<Stream> {
        Stream::create(&self.inner.device, Some(&self.inner))
    }
}

#[derive(Debug)]
pub(crate) struct GreenInner {
    pub(crate) device: Arc<DeviceInner>,
    pub(crate) handle: PartitionHandle,
    sm_count: u32,
}

impl Drop for GreenInner {
    fn drop(&mut self) {
        if let Some(entered) = self.device.enter_for_drop() {
            // SAFETY: its streams held `self`, so they are destroyed.
            unsafe { self.handle.destroy(&entered) };
        }
    }
}
