//! Green contexts: partitions of a device's SMs.

use std::sync::{Arc, Mutex};

use crate::device::{Device, DeviceInner};
use crate::driver;
use crate::driver::sys::{CUcontext, CUgreenCtx};
use crate::error::{Error, Result};
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
    /// [`Error::Partition`] if the device does not have so many SMs or `sms` is 0; [`Error::MissingCall`] if
    /// the driver is older than CUDA 12.4; [`Error::Cuda`], [`Error::Unusable`].
    pub fn with_sms(device: &Device, sms: u32) -> Result<GreenContext> {
        let device = Arc::clone(&device.inner);
        // "It is advised to have the primary context active before calling this API".
        let _current = device.current()?;
        // SAFETY: the device's handle is of this driver.
        let all = unsafe { driver::green::device_sms(device.handle) }?;
        let available = all.sm().sm_count;
        let granularity = device.info.sm_granularity;
        let refuse = || Error::Partition {
            asked: sms,
            available,
            minimum: granularity.map_or(1, |granularity| granularity.minimum),
            alignment: granularity.map_or(1, |granularity| granularity.alignment),
        };
        if sms == 0 || sms > available {
            return Err(refuse());
        }
        let rounded = granularity.map_or(sms, |granularity| granularity.round_up(sms));
        let resource = if rounded > available {
            all
        } else {
            // SAFETY: the resource is the device's.
            unsafe { driver::green::split_one(&all, sms) }?.ok_or_else(refuse)?
        };
        // SAFETY: the resource is of that device; `drop` destroys the context.
        let handle = unsafe { driver::green::create(&resource, device.handle) }?;
        let mut inner = GreenInner {
            device: Arc::clone(&device),
            handle,
            context: std::ptr::null_mut(),
            sm_count: 0,
            current: Mutex::new(()),
        };
        // SAFETY: the context was just made; `inner` destroys it if one of these fails.
        unsafe {
            inner.context = driver::green::context(handle)?;
            inner.sm_count = driver::green::sms(handle)?.sm_count;
        }
        Ok(GreenContext { inner: Arc::new(inner) })
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
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn stream(&self) -> Result<Stream> {
        Stream::create(&self.inner.device, Some(&self.inner))
    }
}

#[derive(Debug)]
pub(crate) struct GreenInner {
    pub(crate) device: Arc<DeviceInner>,
    pub(crate) handle: CUgreenCtx,
    /// From `cuCtxFromGreenCtx`; belongs to `handle` and is never destroyed itself.
    pub(crate) context: CUcontext,
    sm_count: u32,
    /// Held while the context is current: "a green context can be current to only one thread at a time. There
    /// is no internal synchronization" (`cuGreenCtxCreate`).
    pub(crate) current: Mutex<()>,
}

// SAFETY: the raw handles are names of driver objects; `current` serialises their use on threads.
unsafe impl Send for GreenInner {}
// SAFETY: as above.
unsafe impl Sync for GreenInner {}

impl Drop for GreenInner {
    fn drop(&mut self) {
        if let Some(_current) = self.device.current_for_drop() {
            // SAFETY: its streams held `self`, so they are destroyed. An error means that it is gone already.
            let _ = unsafe { driver::green::destroy(self.handle) };
        }
    }
}
