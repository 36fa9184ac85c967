//! Streams and events.

use std::ffi::c_void;
use std::time::Duration;

use gridlet_artifact::LaunchConfig;

use super::device::poll;
use super::{CudaKernel, CudaPartition};
use crate::driver;
use crate::driver::sys::{CUevent, CUstream};
use crate::error::Result;

/// A stream.
#[derive(Debug)]
pub(crate) struct CudaStream(pub(super) CUstream);

// SAFETY: the raw handle is a name of a driver object, and the driver's calls are thread-safe.
unsafe impl Send for CudaStream {}
// SAFETY: as above.
unsafe impl Sync for CudaStream {}

impl CudaStream {
    /// Wraps a stream created elsewhere.
    ///
    /// # Safety
    /// `handle` must be a stream that lives as long as the value is used.
    pub(crate) unsafe fn from_raw(handle: *mut c_void) -> CudaStream {
        CudaStream(handle.cast())
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        self.0.cast()
    }

    /// Creates a stream in the current primary context or in a green context; priority 0 is the default.
    pub(crate) fn create(partition: Option<&CudaPartition>, priority: i32) -> Result<CudaStream> {
        // SAFETY: the primary context is current, the green context lives.
        let handle = unsafe {
            match partition {
                None => driver::stream::create(priority)?,
                Some(partition) => driver::green::create_stream(partition.handle, priority)?,
            }
        };
        Ok(CudaStream(handle))
    }

    /// # Safety
    /// The contract of [`crate::backend`]; the stream's context must be current.
    pub(crate) unsafe fn launch(
        &self,
        kernel: &CudaKernel,
        config: &LaunchConfig,
        parameters: &mut [u8],
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { driver::launch::launch(kernel.0, config, self.0, parameters) }?;
        Ok(())
    }

    /// # Safety
    /// The contract of [`crate::backend`].
    pub(crate) unsafe fn clear(&self, address: u64, bytes: u64) -> Result<()> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        // SAFETY: passed on to the caller.
        Ok(unsafe { driver::memory::set_bytes(address, 0, bytes, self.0) }?)
    }

    pub(crate) fn capture(&self) -> Result<Option<u64>> {
        // SAFETY: the stream lives.
        Ok(unsafe { driver::stream::capture(self.0) }?)
    }

    /// The stream's priority, which the driver may have clamped.
    pub(crate) fn priority(&self) -> Result<i32> {
        // SAFETY: the stream lives.
        Ok(unsafe { driver::stream::priority(self.0) }?)
    }

    pub(crate) fn wait_event(&self, event: &CudaEvent) -> Result<()> {
        // SAFETY: event and stream live.
        Ok(unsafe { driver::stream::wait_event(self.0, event.0) }?)
    }

    pub(crate) fn record(&self, event: &CudaEvent) -> Result<()> {
        // SAFETY: event and stream live.
        unsafe { driver::stream::record(event.0, self.0) }?;
        Ok(())
    }

    pub(crate) fn wait(&self, timeout: Duration) -> Result<bool> {
        // SAFETY: the stream lives.
        Ok(poll(|| unsafe { driver::stream::is_done(self.0) }, timeout)?)
    }

    /// # Safety
    /// The contract of [`crate::backend`].
    pub(crate) unsafe fn destroy(&self) {
        // SAFETY: passed on to the caller. An error means that it is gone already.
        let _ = unsafe { driver::stream::destroy(self.0) };
    }
}

/// Allows this thread calls that do not belong to captures of streams, until the value is dropped.
pub(crate) fn outside_capture() -> Result<driver::stream::OutsideCapture> {
    // SAFETY: an open device has loaded the driver.
    Ok(unsafe { driver::stream::OutsideCapture::enter() }?)
}

/// An event.
#[derive(Debug)]
pub(crate) struct CudaEvent(pub(super) CUevent);

// SAFETY: the raw handle is a name of a driver object, and the driver's calls are thread-safe.
unsafe impl Send for CudaEvent {}
// SAFETY: as above.
unsafe impl Sync for CudaEvent {}

impl CudaEvent {
    /// Wraps an event created elsewhere.
    ///
    /// # Safety
    /// `handle` must be an event that lives as long as the value is used.
    pub(crate) unsafe fn from_raw(handle: *mut c_void) -> CudaEvent {
        CudaEvent(handle.cast())
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        self.0.cast()
    }

    /// Creates an event in the current context.
    pub(crate) fn create() -> Result<CudaEvent> {
        // SAFETY: the primary context is current.
        Ok(CudaEvent(unsafe { driver::stream::create_event() }?))
    }

    pub(crate) fn wait(&self, timeout: Duration) -> Result<bool> {
        // SAFETY: the event lives.
        Ok(poll(|| unsafe { driver::stream::is_event_done(self.0) }, timeout)?)
    }

    pub(crate) fn elapsed_ms(&self, later: &CudaEvent) -> Result<f32> {
        // SAFETY: both events live and are done.
        Ok(unsafe { driver::stream::elapsed_ms(self.0, later.0) }?)
    }

    /// # Safety
    /// The contract of [`crate::backend`].
    pub(crate) unsafe fn destroy(&self) {
        // SAFETY: passed on to the caller; destroying does not wait. An error means that it is gone.
        let _ = unsafe { driver::stream::destroy_event(self.0) };
    }
}
