//! Streams and events (driver API, Stream Management and Event Management).

use std::ffi::c_int;
use std::ptr;

use super::sys::{CUevent, CUevent_flags, CUstream, CUstream_flags};
use super::{Failed, calls};

/// `cuStreamCreateWithPriority` in the current context; 0 is the default, and a priority outside the range is
/// "clamped to the lowest or the highest number". `CU_STREAM_NON_BLOCKING`: "no implicit synchronization with
/// stream 0", which streams of green contexts require anyway.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn create(priority: i32) -> Result<CUstream, Failed> {
    let mut stream = ptr::null_mut();
    let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
    // SAFETY: passed on to the caller; the pointer is to a live pointer.
    unsafe { calls::cuStreamCreateWithPriority(&mut stream, flags, priority) }?;
    Ok(stream)
}

/// `cuStreamGetPriority`: the stream's priority after clamping by the driver.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn priority(stream: CUstream) -> Result<i32, Failed> {
    let mut priority = 0;
    // SAFETY: passed on to the caller; the pointer is to a live integer.
    unsafe { calls::cuStreamGetPriority(stream, &mut priority) }?;
    Ok(priority)
}

/// `cuCtxGetStreamPriorityRange` of the current context: the least and the greatest priority; lower numbers are
/// greater priorities.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn priority_range() -> Result<(i32, i32), Failed> {
    let (mut least, mut greatest) = (0, 0);
    // SAFETY: passed on to the caller; the pointers are to live integers.
    unsafe { calls::cuCtxGetStreamPriorityRange(&mut least, &mut greatest) }?;
    Ok((least, greatest))
}

/// `cuStreamWaitEvent`: work submitted to the stream from now on waits for the event.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn wait_event(stream: CUstream, event: CUevent) -> Result<(), Failed> {
    // SAFETY: passed on to the caller. Flags 0: `CU_EVENT_WAIT_DEFAULT`.
    unsafe { calls::cuStreamWaitEvent(stream, event, 0) }
}

/// `cuStreamDestroy`. It does not wait: "the function will return immediately and the resources … will be
/// released automatically once the device has completed all work in hStream".
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn destroy(stream: CUstream) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuStreamDestroy_v2(stream) }
}

/// `cuStreamQuery`: whether all work of the stream is done. Also reports faults of earlier launches.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn is_done(stream: CUstream) -> Result<bool, Failed> {
    // SAFETY: passed on to the caller.
    done(unsafe { calls::cuStreamQuery(stream) })
}

/// `cuStreamGetCaptureInfo`: the id of the capture that records the stream's work into a graph, "unique over the lifetime
/// of the process".
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn capture(stream: CUstream) -> Result<Option<u64>, Failed> {
    /// `CU_STREAM_CAPTURE_STATUS_ACTIVE`
    const ACTIVE: c_int = 1;

    let (mut status, mut id) = (0, 0);
    // SAFETY: passed on to the caller; the pointers are to live integers, and "NULL may be passed for all return
    // parameters" besides the status.
    unsafe {
        calls::cuStreamGetCaptureInfo_v2(
            stream,
            &mut status,
            &mut id,
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
        )
    }?;
    Ok((status == ACTIVE).then_some(id))
}

/// Allows this thread, while a stream is captured, calls that do not belong to the capture, such as allocation
/// (`cuThreadExchangeStreamCaptureMode`), until the value is dropped.
pub(crate) struct OutsideCapture(c_int);

impl OutsideCapture {
    /// # Safety
    /// The contract of [`super`].
    pub(crate) unsafe fn enter() -> Result<OutsideCapture, Failed> {
        /// `CU_STREAM_CAPTURE_MODE_RELAXED`
        const RELAXED: c_int = 2;

        let mut mode = RELAXED;
        // SAFETY: passed on to the caller; the pointer is to a live integer, which receives the mode before.
        unsafe { calls::cuThreadExchangeStreamCaptureMode(&mut mode) }?;
        Ok(OutsideCapture(mode))
    }
}

impl Drop for OutsideCapture {
    fn drop(&mut self) {
        // SAFETY: the driver was loaded to make `self`; the pointer is to a live integer.
        let _ = unsafe { calls::cuThreadExchangeStreamCaptureMode(&mut self.0) };
    }
}

/// `cuEventCreate` in the current context, with timing.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn create_event() -> Result<CUevent, Failed> {
    let mut event = ptr::null_mut();
    // SAFETY: passed on to the caller; the pointer is to a live pointer.
    unsafe { calls::cuEventCreate(&mut event, CUevent_flags::CU_EVENT_DEFAULT as u32) }?;
    Ok(event)
}

/// `cuEventDestroy`. It does not wait.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn destroy_event(event: CUevent) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuEventDestroy_v2(event) }
}

/// `cuEventRecord`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn record(event: CUevent, stream: CUstream) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuEventRecord(event, stream) }
}

/// `cuEventQuery`: whether the work before the event is done.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn is_event_done(event: CUevent) -> Result<bool, Failed> {
    // SAFETY: passed on to the caller.
    done(unsafe { calls::cuEventQuery(event) })
}

/// `cuEventElapsedTime`, in milliseconds, "with a resolution of around 0.5 microseconds". Both events must be
/// done.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn elapsed_ms(start: CUevent, end: CUevent) -> Result<f32, Failed> {
    let mut milliseconds = 0.0f32;
    // SAFETY: passed on to the caller; the pointer is to a live number.
    match unsafe { calls::cuEventElapsedTime_v2(&mut milliseconds, start, end) } {
        Err(failed) if failed.is_missing() => {
            // SAFETY: as above.
            unsafe { calls::cuEventElapsedTime(&mut milliseconds, start, end) }?;
        }
        other => other?,
    }
    Ok(milliseconds)
}

fn done(result: Result<(), Failed>) -> Result<bool, Failed> {
    match result {
        Ok(()) => Ok(true),
        Err(failed) if failed.is_not_ready() => Ok(false),
        Err(failed) => Err(failed),
    }
}
