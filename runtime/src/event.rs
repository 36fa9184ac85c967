//! Events: points in a stream, for timing.

use std::sync::Arc;

use crate::device::{DEFAULT_TIMEOUT, Device, DeviceInner};
use crate::driver;
use crate::driver::sys::CUevent;
use crate::error::Result;

/// A point in a stream; [`crate::Stream::record`] sets it.
#[derive(Debug)]
pub struct Event {
    pub(crate) device: Arc<DeviceInner>,
    pub(crate) handle: CUevent,
}

// SAFETY: the raw handle is a name of a driver object, and the driver's calls are thread-safe.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event that is not recorded yet.
    ///
    /// # Errors
    /// [`crate::Error::Cuda`], [`crate::Error::Unusable`].
    pub fn new(device: &Device) -> Result<Event> {
        let device = Arc::clone(&device.inner);
        let _current = device.current()?;
        // SAFETY: the primary context is current; `drop` destroys.
        let handle = unsafe { driver::stream::create_event() }?;
        Ok(Event { device, handle })
    }

    /// Milliseconds from this event to `later`, with a resolution of about half a microsecond
    /// (`cuEventElapsedTime`). Waits for both, at most [`DEFAULT_TIMEOUT`] each.
    ///
    /// # Errors
    /// [`crate::Error::TimedOut`]; [`crate::Error::Cuda`] if one of them was never recorded;
    /// [`crate::Error::Fault`], [`crate::Error::Unusable`].
    pub fn elapsed_ms(&self, later: &Event) -> Result<f32> {
        let _current = self.device.current()?;
        for event in [self, later] {
            // SAFETY: the event lives.
            let done = || unsafe { driver::stream::is_event_done(event.handle) };
            self.device.wait(done, DEFAULT_TIMEOUT, || "an event".into())?;
        }
        // SAFETY: both events live and are done.
        Ok(unsafe { driver::stream::elapsed_ms(self.handle, later.handle) }?)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_current) = self.device.current() {
            // SAFETY: nothing else has the handle; destroying does not wait. An error means that it is gone.
            let _ = unsafe { driver::stream::destroy_event(self.handle) };
        }
    }
}
