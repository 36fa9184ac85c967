//! GPUs: the primary context, its memory, and polling for completion.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::info;
use super::partition::{Hold, IdlePartitions};
use crate::backend::Transfer;
use crate::driver::context::{Current, Held};
use crate::driver::sys::{CUcontext, CUdevice, CUlimit, CUstream};
use crate::driver::{self, Driver, Failed};
use crate::error::{Error, Result};
use crate::info::DeviceInfo;
use crate::limits::Limit;

/// How long to poll without sleeping. Linux prolongs a sleep by about 50 µs, so an earlier one would be noticed.
const SPIN: Duration = Duration::from_millis(10);
/// Then a sleep is this part of the time waited so far, which bounds what it adds to the work's time.
const SLEEP_PART: u32 = 100;
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// Lists the GPUs; empty if the driver finds none.
pub(crate) fn list() -> Result<Vec<DeviceInfo>> {
    let driver = match Driver::get() {
        Err(Error::NoDevice { .. }) => return Ok(Vec::new()),
        other => other?,
    };
    (0..driver.device_count()?)
        .map(|ordinal| info::read(driver, ordinal, driver.device(ordinal)?))
        .collect()
}

/// Checks that a GPU with this ordinal exists.
pub(crate) fn check_ordinal(ordinal: u32) -> Result<()> {
    let driver = Driver::get().map_err(|error| match error {
        Error::NoDevice { found, .. } => Error::NoDevice { ordinal, found },
        other => other,
    })?;
    let found = driver.device_count()?;
    if ordinal >= found {
        return Err(Error::NoDevice { ordinal, found });
    }
    Ok(())
}

/// A GPU with its primary context.
#[derive(Debug)]
pub(crate) struct CudaDevice {
    pub(super) handle: CUdevice,
    context: CUcontext,
    /// For copies and fills. Not the NULL stream: streams of green contexts run independently of it, so a launch
    /// could overtake a fill.
    service: CUstream,
    pub(super) idle: IdlePartitions,
    /// The context was reset, and everything created in it is gone.
    is_lost: AtomicBool,
}

// SAFETY: the raw handles are names of driver objects; the driver's calls are thread-safe, and `Current` makes the
// context current on the calling thread.
unsafe impl Send for CudaDevice {}
// SAFETY: as above.
unsafe impl Sync for CudaDevice {}

/// A context that is current on this thread.
pub(crate) struct Entered<'a> {
    // Fields are dropped in this order: the context is popped before another thread may push it.
    _current: Pushed,
    _one_thread: Option<Hold<'a>>,
}

/// How long the context stays current.
enum Pushed {
    /// For one call of this crate.
    Call(#[expect(dead_code, reason = "held for its drop")] Current),
    /// Until the host program drops a value.
    Held(#[expect(dead_code, reason = "held for its drop")] Held),
}

impl<'a> Entered<'a> {
    /// Pushes a context; the lock restricts a green context to this thread.
    ///
    /// # Safety
    /// The contract of [`crate::driver`]; the context outlives the value.
    pub(super) unsafe fn push(
        context: CUcontext,
        one_thread: Option<Hold<'a>>,
    ) -> Result<Entered<'a>> {
        // SAFETY: passed on to the caller.
        let current = unsafe { Current::push(context) }?;
        Ok(Entered { _current: Pushed::Call(current), _one_thread: one_thread })
    }

    /// Same, until the host program drops the value; such values may be dropped in any order.
    ///
    /// # Safety
    /// Same as [`Entered::push`].
    pub(super) unsafe fn hold(
        context: CUcontext,
        one_thread: Option<Hold<'a>>,
    ) -> Result<Entered<'a>> {
        // SAFETY: passed on to the caller.
        let held = unsafe { Held::push(context) }?;
        Ok(Entered { _current: Pushed::Held(held), _one_thread: one_thread })
    }
}

impl CudaDevice {
    /// Retains the primary context of a GPU that [`check_ordinal`] found.
    pub(crate) fn open(ordinal: u32) -> Result<(DeviceInfo, CudaDevice)> {
        let driver = Driver::get()?;
        let handle = driver.device(ordinal)?;
        let info = info::read(driver, ordinal, handle)?;
        // SAFETY: the handle is of this driver; `drop` releases the context, and so does the error path.
        let context = unsafe { driver::context::retain_primary(handle) }?;
        // SAFETY: the context was just retained.
        let service =
            unsafe { Current::push(context).and_then(|_current| driver::stream::create(0)) };
        let service = service.inspect_err(|_| {
            // SAFETY: pairs with the retain above; nothing uses the context yet.
            let _ = unsafe { driver::context::release_primary(handle) };
        })?;
        let idle = IdlePartitions::default();
        let is_lost = AtomicBool::new(false);
        Ok((info, CudaDevice { handle, context, service, idle, is_lost }))
    }

    /// Makes the primary context current on this thread.
    pub(crate) fn enter(&self) -> Result<Entered<'_>> {
        // SAFETY: `self` holds the context.
        unsafe { Entered::push(self.context, None) }
    }

    /// Same, until the host program drops the value.
    pub(crate) fn hold(&self) -> Result<Entered<'_>> {
        // SAFETY: `self` holds the context.
        unsafe { Entered::hold(self.context, None) }
    }

    /// The primary context, for other libraries.
    pub(crate) fn raw_context(&self) -> *mut c_void {
        self.context.cast()
    }

    /// The primary context.
    pub(super) fn context(&self) -> CUcontext {
        self.context
    }

    /// The least and the greatest stream priority.
    pub(crate) fn priorities(&self) -> Result<(i32, i32)> {
        // SAFETY: the primary context is current.
        Ok(unsafe { driver::stream::priority_range() }?)
    }

    pub(crate) fn free_memory(&self) -> Result<u64> {
        // SAFETY: the primary context is current.
        Ok(unsafe { driver::memory::free_and_total() }?.0)
    }

    pub(crate) fn limit(&self, limit: Limit) -> Result<u64> {
        // SAFETY: the primary context is current.
        Ok(unsafe { driver::context::limit(raw_limit(limit)) }? as u64)
    }

    pub(crate) fn set_limit(&self, limit: Limit, value: u64) -> Result<()> {
        let value = usize::try_from(value).unwrap_or(usize::MAX);
        // SAFETY: the primary context is current.
        Ok(unsafe { driver::context::set_limit(raw_limit(limit), value) }?)
    }

    /// Destroys everything created in the primary context, after a fault.
    ///
    /// # Safety
    /// No handle created in the context may be used again.
    pub(crate) unsafe fn reset(&self) -> Result<()> {
        self.is_lost.store(true, Ordering::Release);
        // SAFETY: passed on to the caller.
        Ok(unsafe { driver::context::reset_primary(self.handle) }?)
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<u64> {
        // The driver refuses to allocate 0 bytes; one byte gives an empty buffer a unique address.
        let size = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
        // SAFETY: the primary context is current.
        Ok(unsafe { driver::memory::allocate(size) }?)
    }

    /// # Safety
    /// The contract of [`crate::backend`].
    pub(crate) unsafe fn free(&self, address: u64) {
        // SAFETY: passed on to the caller. An error means that the context is gone, and the memory with it.
        let _ = unsafe { driver::memory::free(address) };
    }

    /// # Safety
    /// The contract of [`crate::backend`].
    pub(crate) unsafe fn start(&self, transfer: Transfer) -> Result<()> {
        let stream = self.service;
        // SAFETY: passed on to the caller.
        unsafe {
            match transfer {
                Transfer::ToDevice { from, to, bytes } => {
                    driver::memory::copy_to_device(to, from.cast(), bytes, stream)
                }
                Transfer::ToHost { from, to, bytes } => {
                    driver::memory::copy_to_host(to.cast(), from, bytes, stream)
                }
                Transfer::Fill { to, value, bytes } => {
                    driver::memory::set_bytes(to, value, bytes, stream)
                }
                Transfer::Copy { from, to, bytes } => {
                    driver::unified::copy(to, from, bytes, stream)
                }
            }
        }?;
        Ok(())
    }

    pub(crate) fn wait_for_transfers(&self, timeout: Duration) -> Result<bool> {
        // SAFETY: the service stream lives as long as `self`.
        Ok(poll(|| unsafe { driver::stream::is_done(self.service) }, timeout)?)
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        // Not reached after a timeout, because the wait leaks a reference.
        // SAFETY: nothing runs, since every stream held a reference; pairs with `open`, and everything created in
        // the context held `self` and is gone. Errors mean that the context is gone already.
        unsafe {
            if !self.is_lost.load(Ordering::Acquire)
                && let Ok(_current) = Current::push(self.context)
            {
                self.idle.destroy();
                let _ = driver::stream::destroy(self.service);
            }
            let _ = driver::context::release_primary(self.handle);
        }
    }
}

fn raw_limit(limit: Limit) -> CUlimit {
    match limit {
        Limit::PendingLaunches => CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT,
        Limit::StackBytes => CUlimit::CU_LIMIT_STACK_SIZE,
        Limit::HeapBytes => CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE,
        Limit::PrintfBytes => CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE,
    }
}

/// Polls until `done` returns true (result true) or the time is up (false).
pub(super) fn poll(
    mut done: impl FnMut() -> Result<bool, Failed>,
    timeout: Duration,
) -> Result<bool, Failed> {
    let start = Instant::now();
    loop {
        if done()? {
            return Ok(true);
        }
        let waited = start.elapsed();
        if waited >= timeout {
            return Ok(false);
        }
        match pause(waited) {
            None => thread::yield_now(),
            Some(pause) => thread::sleep(pause.min(timeout - waited)),
        }
    }
}

/// How long to sleep after a wait of this length.
fn pause(waited: Duration) -> Option<Duration> {
    (waited >= SPIN).then(|| (waited / SLEEP_PART).min(LONGEST_SLEEP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_ends_when_the_work_does() {
        let mut polls = 0;
        let done = poll(
            || {
                polls += 1;
                Ok(polls == 5)
            },
            Duration::from_secs(60),
        );
        assert_eq!((done, polls), (Ok(true), 5));
    }

    #[test]
    fn sleeping_adds_little_to_the_wait() {
        let mut waited = Duration::ZERO;
        let mut polls = 0;
        while waited < Duration::from_secs(1) {
            let step = pause(waited)
                .map_or(Duration::from_micros(1), |sleep| sleep + Duration::from_micros(50));
            assert!(
                step <= waited / 50 || step <= Duration::from_micros(1),
                "{step:?} after {waited:?}"
            );
            waited += step;
            polls += 1;
        }
        // Long waits leave the processor to others.
        assert!(polls < 13_000, "{polls}");
    }

    #[test]
    fn polling_ends_with_the_time() {
        let start = Instant::now();
        assert_eq!(poll(|| Ok(false), Duration::from_millis(20)), Ok(false));
        assert!(start.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn polling_passes_errors_on() {
        let failed = Failed::Code { call: "cuStreamQuery", code: 700 };
        assert_eq!(poll(|| Err(failed), Duration::from_secs(60)), Err(failed));
    }
}
