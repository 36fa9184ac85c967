//! Green contexts.

use std::sync::Mutex;

use super::{CudaDevice, Entered};
use crate::device::lock;
use crate::driver;
use crate::driver::sys::{CUcontext, CUgreenCtx};
use crate::error::{Error, Result};
use crate::info::DeviceInfo;

/// A green context.
#[derive(Debug)]
pub(crate) struct CudaPartition {
    pub(super) handle: CUgreenCtx,
    /// From `cuCtxFromGreenCtx`; belongs to `handle` and is never destroyed itself.
    context: CUcontext,
    /// Held while the context is current: "a green context can be current to only one thread at a time. There
    /// is no internal synchronization" (`cuGreenCtxCreate`).
    current: Mutex<()>,
}

// SAFETY: the raw handles are names of driver objects; `current` serialises their use on threads.
unsafe impl Send for CudaPartition {}
// SAFETY: as above.
unsafe impl Sync for CudaPartition {}

impl CudaPartition {
    /// The steps of the driver API's green-context section. "It is advised to have the primary context active
    /// before calling this API", and it is.
    pub(crate) fn create(
        device: &CudaDevice,
        sms: u32,
        info: &DeviceInfo,
    ) -> Result<(CudaPartition, u32)> {
        // SAFETY: the device's handle is of this driver.
        let all = unsafe { driver::green::device_sms(device.handle) }?;
        let available = all.sm().sm_count;
        let granularity = info.sm_granularity;
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
        // SAFETY: the resource is of that device.
        let handle = unsafe { driver::green::create(&resource, device.handle) }?;
        // SAFETY: the context was just made.
        let made = unsafe {
            driver::green::context(handle)
                .and_then(|context| Ok((context, driver::green::sms(handle)?.sm_count)))
        };
        let (context, sms) = made.inspect_err(|_| {
            // SAFETY: nothing uses it yet.
            let _ = unsafe { driver::green::destroy(handle) };
        })?;
        Ok((CudaPartition { handle, context, current: Mutex::new(()) }, sms))
    }

    /// Makes the green context current on this thread, and keeps it to this thread.
    pub(crate) fn enter(&self) -> Result<Entered<'_>> {
        let one_thread = lock(&self.current);
        // SAFETY: `self` holds the context, and the lock keeps it to this thread.
        unsafe { Entered::push(self.context, Some(one_thread)) }
    }

    /// # Safety
    /// The contract of [`crate::backend`].
    pub(crate) unsafe fn destroy(&self) {
        // SAFETY: passed on to the caller. An error means that it is gone already.
        let _ = unsafe { driver::green::destroy(self.handle) };
    }
}
