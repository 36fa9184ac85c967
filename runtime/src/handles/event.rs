//! Events: points in a stream, for timing and ordering.

use std::sync::Arc;
use std::time::Duration;

use super::device::{DEFAULT_TIMEOUT, Device, DeviceInner};
use crate::backend::{EventHandle, Waited};
use crate::error::{Error, Result};
use crate::sharing::Keep;

/// A point in a stream; [`crate::Stream::record`] sets it.
#[derive(Debug)]
pub struct Event {
    pub(crate) device: Arc<DeviceInner>,
    pub(crate) handle: EventHandle,
    /// The library that owns the event, if it is not this crate: then the event is not destroyed here.
    pub(crate) owner: Option<Keep>,
}

impl Event {
    /// An event that is not yet recorded.
    ///
    /// # Errors
    /// [`crate::Error::Cuda`], [`crate::Error::Unusable`].
    pub fn new(device: &Device) -> Result<Event> {
        let device = Arc::clone(&device.inner);
        let handle = device.call(|entered| device.handle.event(entered))?;
        Ok(Event { device, handle, owner: None })
    }

    /// Checks that the event belongs to `device`.
    pub(crate) fn expect_device(&self, device: &Arc<DeviceInner>) -> Result<()> {
        if Arc::ptr_eq(&self.device, device) {
            return Ok(());
        }
        Err(Error::OtherDevice {
            what: "the event".into(),
            expected: device.number,
            given: self.device.number,
        })
    }

    /// Whether the work before the event is done (`cuEventQuery`); true for an event that was never recorded.
    ///
    /// # Errors
    /// [`crate::Error::Fault`], [`crate::Error::Cuda`], [`crate::Error::Unusable`].
    pub fn is_done(&self) -> Result<bool> {
        let entered = self.device.enter()?;
        let waited = self.device.note_fault(self.handle.wait(Duration::ZERO, &entered))?;
        Ok(waited == Waited::Done)
    }

    /// Milliseconds from this event to `later`, with a resolution of about half a microsecond
    /// (`cuEventElapsedTime`). Waits for both, at most [`DEFAULT_TIMEOUT`] each.
    ///
    /// # Errors
    /// [`crate::Error::TimedOut`]; [`crate::Error::Cuda`] if one of the events was never recorded;
    /// [`crate::Error::OtherDevice`], [`crate::Error::Fault`], [`crate::Error::Unusable`].
    pub fn elapsed_ms(&self, later: &Event) -> Result<f32> {
        later.expect_device(&self.device)?;
        let entered = self.device.enter()?;
        for event in [self, later] {
            let wait = |timeout| event.handle.wait(timeout, &entered);
            let waited = self.device.wait(wait, DEFAULT_TIMEOUT, || "an event".into());
            self.device.note_fault(waited)?;
        }
        self.handle.elapsed_ms(&later.handle, &entered)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.owner.is_some() {
            return;
        }
        if let Some(entered) = self.device.enter_or_leak() {
            // SAFETY: nothing else holds the handle.
            unsafe { self.handle.destroy(&entered) };
        }
    }
}
