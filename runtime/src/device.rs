//! Devices: the primary context, waiting, and what happens when a wait times out.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::driver::context::Current;
use crate::driver::sys::{CUcontext, CUdevice, CUlimit, CUstream};
use crate::driver::{self, Driver, Failed};
use crate::error::{Error, Result};
use crate::info::DeviceInfo;
use crate::program::ProgramInner;
use crate::stream::{Stream, StreamInner};

/// How long a wait lasts if the caller names no time-out: 60 s.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Polls without sleeping for so long, because most waits are short.
const SPIN: Duration = Duration::from_micros(100);
/// The first sleep between polls; each is twice the last, up to [`LONGEST_SLEEP`].
const FIRST_SLEEP: Duration = Duration::from_micros(50);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// An opened GPU. Cheap to clone; clones and further opens of the same number are the same device.
///
/// It works in the device's primary context, which CUDA's runtime API and other libraries share (driver API,
/// Primary Context Management), and leaves the calling thread's current context as it was.
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) inner: Arc<DeviceInner>,
}

impl Device {
    /// The devices there are; none if the driver finds no GPU.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::DriverTooOld`], [`Error::Cuda`].
    pub fn list() -> Result<Vec<DeviceInfo>> {
        let driver = match Driver::get() {
            Err(Error::NoDevice { .. }) => return Ok(Vec::new()),
            other => other?,
        };
        (0..driver.device_count()?)
            .map(|ordinal| DeviceInfo::read(driver, ordinal, driver.device(ordinal)?))
            .collect()
    }

    /// Opens a device, by its number.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::DriverTooOld`], [`Error::NoDevice`], [`Error::Cuda`].
    pub fn open(ordinal: u32) -> Result<Device> {
        /// Opened devices, by number: a device that timed out must stay unusable however it is opened.
        static OPENED: Mutex<Vec<(u32, Weak<DeviceInner>)>> = Mutex::new(Vec::new());

        let driver = Driver::get().map_err(|error| match error {
            Error::NoDevice { found, .. } => Error::NoDevice { ordinal, found },
            other => other,
        })?;
        let found = driver.device_count()?;
        if ordinal >= found {
            return Err(Error::NoDevice { ordinal, found });
        }
        let mut opened = lock(&OPENED);
        if let Some(inner) =
            opened.iter().filter(|(o, _)| *o == ordinal).find_map(|(_, inner)| inner.upgrade())
        {
            return Ok(Device { inner });
        }
        let inner = Arc::new(DeviceInner::open(driver, ordinal)?);
        opened.retain(|(_, inner)| inner.strong_count() > 0);
        opened.push((ordinal, Arc::downgrade(&inner)));
        Ok(Device { inner })
    }

    /// What the device is and can do.
    pub fn info(&self) -> &DeviceInfo {
        &self.inner.info
    }

    /// A stream that uses the whole device.
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn stream(&self) -> Result<Stream> {
        Stream::create(&self.inner, None)
    }

    /// Free bytes of device memory.
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn free_memory(&self) -> Result<u64> {
        let _current = self.inner.current()?;
        // SAFETY: the primary context is current.
        Ok(unsafe { driver::memory::free_and_total() }?.0)
    }

    /// How many device-side launches may be pending, that is not yet running: the pool of the device runtime,
    /// `CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT` (2,048 unless set).
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn pending_launch_limit(&self) -> Result<u64> {
        let _current = self.inner.current()?;
        // SAFETY: the primary context is current.
        let limit =
            unsafe { driver::context::limit(CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT) }?;
        Ok(limit as u64)
    }

    /// Sizes that pool. A larger one takes device memory (about 1.2 GB for 131,072 on an H200). A pool that is
    /// too small loses launches, or hangs when grids that were themselves launched from the device fill it.
    ///
    /// # Errors
    /// [`Error::LimitTooLate`] once a kernel ran; [`Error::Cuda`], [`Error::Unusable`].
    pub fn set_pending_launch_limit(&self, launches: u64) -> Result<()> {
        if self.inner.kernel_ran.load(Ordering::Acquire) {
            return Err(Error::LimitTooLate { limit: "the limit of pending device-side launches" });
        }
        let _current = self.inner.current()?;
        let launches = usize::try_from(launches).unwrap_or(usize::MAX);
        // SAFETY: the primary context is current.
        unsafe {
            driver::context::set_limit(CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, launches)
        }?;
        Ok(())
    }

    /// Waits for everything that was launched on the device, and reports faults and lost launches.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn synchronize(&self, timeout: Duration) -> Result<()> {
        let _current = self.inner.current()?;
        self.inner.settle(timeout)?;
        self.inner.report_lost_launches()
    }
}

/// What all handles of a device share.
#[derive(Debug)]
pub(crate) struct DeviceInner {
    pub(crate) ordinal: u32,
    pub(crate) handle: CUdevice,
    pub(crate) info: DeviceInfo,
    context: CUcontext,
    /// For copies and fills. Not the NULL stream: streams of green contexts run independently of it, and
    /// so would a launch after a fill.
    service: CUstream,
    kernel_ran: AtomicBool,
    /// What timed out, once something did.
    timed_out: OnceLock<String>,
    streams: Mutex<Vec<Weak<StreamInner>>>,
    programs: Mutex<Vec<Weak<ProgramInner>>>,
}

// SAFETY: the raw handles are names of driver objects; the driver's calls are thread-safe, and `Current` makes
// the context current on the thread that calls.
unsafe impl Send for DeviceInner {}
// SAFETY: as above.
unsafe impl Sync for DeviceInner {}

impl DeviceInner {
    fn open(driver: &Driver, ordinal: u32) -> Result<DeviceInner> {
        let handle = driver.device(ordinal)?;
        let info = DeviceInfo::read(driver, ordinal, handle)?;
        // SAFETY: the handle is of this driver; `drop` releases the context, and so does the error path.
        let context = unsafe { driver::context::retain_primary(handle) }?;
        // SAFETY: the context was just retained.
        let service =
            unsafe { Current::push(context).and_then(|_current| driver::stream::create()) };
        let service = service.inspect_err(|_| {
            // SAFETY: pairs with the retain above; nothing uses the context yet.
            let _ = unsafe { driver::context::release_primary(handle) };
        })?;
        Ok(DeviceInner {
            ordinal,
            handle,
            info,
            context,
            service,
            kernel_ran: AtomicBool::new(false),
            timed_out: OnceLock::new(),
            streams: Mutex::new(Vec::new()),
            programs: Mutex::new(Vec::new()),
        })
    }

    /// Makes the primary context current on this thread.
    pub(crate) fn current(&self) -> Result<Current> {
        self.usable()?;
        // SAFETY: `self` holds the context.
        Ok(unsafe { Current::push(self.context) }?)
    }

    /// The primary context.
    pub(crate) fn context(&self) -> CUcontext {
        self.context
    }

    pub(crate) fn usable(&self) -> Result<()> {
        match self.timed_out.get() {
            Some(what) => Err(Error::Unusable { ordinal: self.ordinal, what: what.clone() }),
            None => Ok(()),
        }
    }

    pub(crate) fn add_stream(&self, stream: &Arc<StreamInner>) {
        add(&self.streams, stream);
    }

    pub(crate) fn add_program(&self, program: &Arc<ProgramInner>) {
        add(&self.programs, program);
    }

    pub(crate) fn note_kernel(&self) {
        self.kernel_ran.store(true, Ordering::Release);
    }

    /// Polls until `done`, at most for `timeout`. On a time-out the device is unusable from then on.
    pub(crate) fn wait(
        self: &Arc<Self>,
        done: impl FnMut() -> Result<bool, Failed>,
        timeout: Duration,
        what: impl FnOnce() -> String,
    ) -> Result<()> {
        if poll(done, timeout)? {
            return Ok(());
        }
        let what = what();
        if self.timed_out.set(what.clone()).is_ok() {
            // The context must outlive what still runs in it, and a later `Device::open` must find it marked.
            mem::forget(Arc::clone(self));
        }
        Err(Error::TimedOut { seconds: timeout.as_secs_f64(), what })
    }

    /// Waits until every stream of the device is done.
    pub(crate) fn settle(self: &Arc<Self>, timeout: Duration) -> Result<()> {
        let deadline = Instant::now().checked_add(timeout);
        for stream in live(&self.streams) {
            if stream.is_busy() {
                let left =
                    deadline.map_or(timeout, |at| at.saturating_duration_since(Instant::now()));
                stream.wait(left).map_err(|error| match error {
                    // Not what is left of it for this stream, but what the caller gave.
                    Error::TimedOut { what, .. } => {
                        Error::TimedOut { seconds: timeout.as_secs_f64(), what }
                    }
                    other => other,
                })?;
            }
        }
        Ok(())
    }

    pub(crate) fn is_busy(&self) -> bool {
        live(&self.streams).iter().any(|stream| stream.is_busy())
    }

    /// The primary context, current, for destroying a handle. Waits for the device first, so that no kernel
    /// loses memory or code that it uses. `None`: leak the handle, because that wait timed out, now or
    /// earlier, and destroying would hang; or because the context is gone, and the handle with it.
    pub(crate) fn current_for_drop(self: &Arc<Self>) -> Option<Current> {
        let current = self.current().ok()?;
        // A fault ends the wait as well: nothing runs any more.
        let timed_out = matches!(self.settle(DEFAULT_TIMEOUT), Err(Error::TimedOut { .. }));
        (!timed_out).then_some(current)
    }

    /// Runs a copy or fill on the service stream and waits for it. Work that was launched before comes first;
    /// if there was some, its lost launches are reported.
    ///
    /// # Safety
    /// `work` keeps the contract of [`crate::driver`].
    pub(crate) unsafe fn transfer(
        self: &Arc<Self>,
        what: &'static str,
        work: impl FnOnce(CUstream) -> Result<(), Failed>,
    ) -> Result<()> {
        let _current = self.current()?;
        if self.is_busy() {
            self.settle(DEFAULT_TIMEOUT)?;
            self.report_lost_launches()?;
        }
        // SAFETY: passed on to the caller.
        unsafe { self.transfer_now(what, work) }
    }

    /// As [`DeviceInner::transfer`], without waiting for other work.
    ///
    /// # Safety
    /// The primary context is current; `work` keeps the contract of [`crate::driver`].
    pub(crate) unsafe fn transfer_now(
        self: &Arc<Self>,
        what: &'static str,
        work: impl FnOnce(CUstream) -> Result<(), Failed>,
    ) -> Result<()> {
        work(self.service)?;
        // SAFETY: the service stream lives as long as `self`.
        self.wait(
            || unsafe { driver::stream::is_done(self.service) },
            DEFAULT_TIMEOUT,
            || what.into(),
        )
    }

    /// Reads the lost-launch record of every program that ran. The first that lost launches makes the error;
    /// the others' turn comes with the next wait.
    pub(crate) fn report_lost_launches(self: &Arc<Self>) -> Result<()> {
        let idle = !self.is_busy();
        for program in live(&self.programs) {
            program.report_lost_launches(idle)?;
        }
        Ok(())
    }
}

impl Drop for DeviceInner {
    fn drop(&mut self) {
        // Never reached after a time-out: `wait` leaks a reference. Nothing runs: every stream held one.
        // SAFETY: pairs with `open`; all that was made in the context held `self` and is gone. Errors mean
        // that the context is gone already.
        unsafe {
            if let Ok(_current) = Current::push(self.context) {
                let _ = driver::stream::destroy(self.service);
            }
            let _ = driver::context::release_primary(self.handle);
        }
    }
}

/// Polls until `done` says yes (true) or the time is over (false).
fn poll(mut done: impl FnMut() -> Result<bool, Failed>, timeout: Duration) -> Result<bool, Failed> {
    let start = Instant::now();
    let mut sleep = FIRST_SLEEP;
    loop {
        if done()? {
            return Ok(true);
        }
        let waited = start.elapsed();
        if waited >= timeout {
            return Ok(false);
        }
        if waited < SPIN {
            std::hint::spin_loop();
        } else {
            thread::sleep(sleep.min(timeout - waited));
            sleep = (sleep * 2).min(LONGEST_SLEEP);
        }
    }
}

/// A lock whose holder panicked holds lists that are whole at every step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add<T>(list: &Mutex<Vec<Weak<T>>>, item: &Arc<T>) {
    let mut list = lock(list);
    list.retain(|item| item.strong_count() > 0);
    list.push(Arc::downgrade(item));
}

/// The items that still live. The lock is released before any of them can be dropped.
fn live<T>(list: &Mutex<Vec<Weak<T>>>) -> Vec<Arc<T>> {
    lock(list).iter().filter_map(Weak::upgrade).collect()
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
