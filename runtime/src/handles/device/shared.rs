//! The state that all handles of a device share: its users, its running work, and its fault.

use std::collections::BTreeSet;
use std::mem;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use gridlet_artifact::resident::DEFAULT_LAUNCH_MEMORY;
use gridlet_cpu::sync::lock;

use super::DEFAULT_TIMEOUT;
use crate::backend::{DeviceHandle, Entered, PartitionHandle, Transfer, Waited};
use crate::error::{Error, Fault, Result};
use crate::handles::program::ProgramInner;
use crate::handles::resident::LaunchMemory;
use crate::handles::stream::{StreamInner, Work};
use crate::info::DeviceInfo;
use crate::observe;
use crate::strategy;

/// How long [`Device::recover`](super::Device::recover) waits for other threads' calls to return: after a fault
/// the driver ends them soon.
const LEAVING: Duration = Duration::from_secs(5);
/// The interval between two polls of another thread's progress.
const LOOK: Duration = Duration::from_micros(200);

/// While it lives, this thread may use the device's handles, and nobody destroys them.
pub(crate) struct Inside<'a> {
    // Dropped in this order.
    entered: Entered<'a>,
    _caller: Caller<'a>,
}

impl<'a> Deref for Inside<'a> {
    type Target = Entered<'a>;

    fn deref(&self) -> &Entered<'a> {
        &self.entered
    }
}

/// Counts as one of a GPU's callers; the CPU device is never reset and counts none.
pub(crate) struct Caller<'a>(Option<&'a AtomicUsize>);

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if let Some(callers) = self.0 {
            callers.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Prevents [`Device::recover`](super::Device::recover) while the host may reference elements of the device's
/// memory.
#[derive(Debug)]
pub(crate) struct HostVisible(Arc<DeviceInner>);

impl HostVisible {
    pub(crate) fn new(device: &Arc<DeviceInner>) -> HostVisible {
        device.host_visible.fetch_add(1, Ordering::AcqRel);
        HostVisible(Arc::clone(device))
    }
}

impl Drop for HostVisible {
    fn drop(&mut self) {
        self.0.host_visible.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The state that all handles of a device share.
#[derive(Debug)]
pub(crate) struct DeviceInner {
    /// For a GPU, the driver's ordinal; for a CPU device, a number unique in this process, from
    /// [`CPU_DEVICES`](crate::error::CPU_DEVICES) up.
    pub(crate) ordinal: u32,
    /// The number that tells handles apart: the ordinal plus, for a GPU, a step for each recovery
    /// ([`next_number`](crate::error::next_number)).
    pub(crate) number: u32,
    pub(crate) info: DeviceInfo,
    pub(crate) handle: DeviceHandle,
    /// Driver calls in progress, over all threads.
    callers: AtomicUsize,
    /// The number of buffers whose memory the host can see and which the context's destruction frees.
    pub(super) host_visible: AtomicUsize,
    pub(crate) kernel_ran: AtomicBool,
    /// Whether a program that launches from the device was loaded.
    launching_program: AtomicBool,
    /// The fault that broke the context.
    pub(super) fault: OnceLock<Box<Fault>>,
    /// Whether that context was reset since.
    pub(super) is_reset: AtomicBool,
    /// The wait that timed out.
    pub(super) timed_out: OnceLock<String>,
    /// The streams and their work. The work stays listed while it runs, even while the stream is being dropped.
    streams: Mutex<Vec<(Weak<StreamInner>, Arc<Work>)>>,
    programs: Mutex<Vec<Weak<ProgramInner>>>,
    /// Size in bytes of the launch memory of each stream with resident launches.
    pub(crate) launch_memory: AtomicU64,
    /// Launch memory of streams that ended while others had work.
    pub(in crate::handles) spare_launch_memory: Mutex<Vec<LaunchMemory>>,
}

impl DeviceInner {
    pub(super) fn new(
        ordinal: u32,
        number: u32,
        info: DeviceInfo,
        handle: DeviceHandle,
    ) -> DeviceInner {
        DeviceInner {
            ordinal,
            number,
            info,
            handle,
            callers: AtomicUsize::new(0),
            host_visible: AtomicUsize::new(0),
            kernel_ran: AtomicBool::new(false),
            launching_program: AtomicBool::new(false),
            fault: OnceLock::new(),
            is_reset: AtomicBool::new(false),
            timed_out: OnceLock::new(),
            streams: Mutex::new(Vec::new()),
            programs: Mutex::new(Vec::new()),
            launch_memory: AtomicU64::new(DEFAULT_LAUNCH_MEMORY),
            spare_launch_memory: Mutex::new(Vec::new()),
        }
    }

    /// Makes the device's handles usable on this thread.
    pub(crate) fn enter(&self) -> Result<Inside<'_>> {
        self.enter_partition(None)
    }

    /// Same, for a green context if there is one.
    pub(crate) fn enter_partition<'a>(
        &'a self,
        partition: Option<&'a PartitionHandle>,
    ) -> Result<Inside<'a>> {
        let caller = self.inside()?;
        let entered = self.note_fault(match partition {
            Some(partition) => partition.enter(),
            None => self.handle.enter(),
        })?;
        Ok(Inside { entered, _caller: caller })
    }

    /// Prevents a reset of the device, if it is usable.
    pub(crate) fn inside(&self) -> Result<Caller<'_>> {
        let callers = (!self.handle.is_cpu()).then_some(&self.callers);
        if let Some(callers) = callers {
            callers.fetch_add(1, Ordering::AcqRel);
            // Orders the increment before the check for a fault: `wait_for_callers` reads the count after the
            // fault was recorded.
            fence(Ordering::SeqCst);
        }
        let caller = Caller(callers);
        self.usable()?;
        Ok(caller)
    }

    /// Waits until no thread is in a driver call. Called after a fault, which lets no further thread in.
    pub(super) fn wait_for_callers(&self) -> Result<()> {
        fence(Ordering::SeqCst);
        let start = Instant::now();
        while self.callers.load(Ordering::Acquire) > 0 {
            if start.elapsed() > LEAVING {
                let what = "other threads in driver calls".into();
                let (seconds, is_cpu) = (LEAVING.as_secs_f64(), self.handle.is_cpu());
                return Err(Error::TimedOut { seconds, what, is_cpu, stopped: None });
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Makes a driver call and records a fault.
    pub(crate) fn call<T>(&self, call: impl FnOnce(&Entered<'_>) -> Result<T>) -> Result<T> {
        let entered = self.enter()?;
        self.note_fault(call(&entered))
    }

    pub(crate) fn usable(&self) -> Result<()> {
        if let Some(what) = self.timed_out.get() {
            return Err(Error::Unusable { ordinal: self.ordinal, what: what.clone() });
        }
        match self.fault.get() {
            Some(fault) => Err(Error::Broken { ordinal: self.ordinal, fault: fault.clone() }),
            None => Ok(()),
        }
    }

    /// Returns the result unchanged and records a fault: from then on the device is unusable. A fault that is not
    /// tied to a stream may come from a kernel on any stream.
    pub(crate) fn note_fault<T>(&self, mut result: Result<T>) -> Result<T> {
        if let Err(Error::Fault(fault)) = &mut result {
            if fault.kernels.is_empty() {
                let streams = self.live_streams();
                let kernels: BTreeSet<String> =
                    streams.iter().flat_map(|stream| stream.kernel_names()).collect();
                fault.kernels = kernels.into_iter().collect();
            }
            let _ = self.fault.set(fault.clone());
        }
        result
    }

    pub(crate) fn add_stream(&self, stream: &Arc<StreamInner>) {
        let mut streams = lock(&self.streams);
        streams.retain(|(stream, work)| stream.strong_count() > 0 || work.is_busy());
        streams.push((Arc::downgrade(stream), Arc::clone(&stream.work)));
    }

    /// The live streams. The lock is released before any of them can be dropped.
    fn live_streams(&self) -> Vec<Arc<StreamInner>> {
        lock(&self.streams).iter().filter_map(|(stream, _)| stream.upgrade()).collect()
    }

    pub(crate) fn add_program(&self, program: &Arc<ProgramInner>) {
        if strategy::uses_device_runtime(program.artifact.manifest()) {
            self.launching_program.store(true, Ordering::Release);
        }
        add(&self.programs, program);
    }

    /// Whether a program that uses CUDA's device runtime was ever loaded.
    pub(crate) fn has_launching_programs(&self) -> bool {
        self.launching_program.load(Ordering::Acquire)
    }

    pub(crate) fn note_kernel(&self) {
        // The flag is usually set already; reading first keeps launching threads from contending for it.
        if !self.kernel_ran.load(Ordering::Relaxed) {
            self.kernel_ran.store(true, Ordering::Release);
        }
    }

    /// Runs a wait, and reports the findings of the checks. If it times out while something still runs, the device
    /// becomes unusable.
    pub(crate) fn wait(
        self: &Arc<Self>,
        wait: impl FnOnce(Duration) -> Result<Waited>,
        timeout: Duration,
        what: impl Fn() -> String,
    ) -> Result<()> {
        let waited = observe::waiting(&what, || wait(timeout), Waited::outcome);
        let what = if matches!(waited, Ok(Waited::Done)) { String::new() } else { what() };
        if waited == Ok(Waited::Running) && self.timed_out.set(what.clone()).is_ok() {
            // The context must outlive the work that still runs in it, and a later `Device::open` must see the
            // mark.
            mem::forget(Arc::clone(self));
        }
        // A finding explains why a grid was stopped or why it waits, so it takes precedence.
        self.handle.report_findings()?;
        let stopped = match waited? {
            Waited::Done => return Ok(()),
            Waited::Stopped(stopped) => stopped,
            Waited::Running => None,
        };
        let (seconds, is_cpu) = (timeout.as_secs_f64(), self.handle.is_cpu());
        Err(Error::TimedOut { seconds, what, is_cpu, stopped })
    }

    /// Waits until every stream of the device is idle.
    pub(crate) fn settle(self: &Arc<Self>, timeout: Duration, entered: &Entered<'_>) -> Result<()> {
        let deadline = Instant::now().checked_add(timeout);
        let streams: Vec<_> = lock(&self.streams)
            .iter()
            .map(|(stream, work)| (stream.upgrade(), Arc::clone(work)))
            .collect();
        for (stream, work) in streams {
            if !work.is_busy() {
                continue;
            }
            let left = deadline.map_or(timeout, |at| at.saturating_duration_since(Instant::now()));
            let waited = match stream {
                Some(stream) => stream.wait(left, entered),
                None => self.wait_for_dropped(&work, left),
            };
            waited.map_err(|error| match error {
                // Report the caller's timeout, not the rest that this stream had left.
                Error::TimedOut { what, is_cpu, stopped, .. } => {
                    Error::TimedOut { seconds: timeout.as_secs_f64(), what, is_cpu, stopped }
                }
                other => other,
            })?;
        }
        Ok(())
    }

    /// Waits for the work of a stream whose last handle is being dropped by another thread, which also waits for
    /// it.
    fn wait_for_dropped(self: &Arc<Self>, work: &Work, timeout: Duration) -> Result<()> {
        let wait = |timeout| {
            let start = Instant::now();
            while work.is_busy() {
                self.usable()?;
                if start.elapsed() >= timeout {
                    // On the CPU, that other thread stops the work.
                    let is_cpu = self.handle.is_cpu();
                    return Ok(if is_cpu { Waited::Stopped(None) } else { Waited::Running });
                }
                thread::sleep(LOOK);
            }
            Ok(Waited::Done)
        };
        self.wait(wait, timeout, || "a stream that is being dropped".into())
    }

    /// The number of live streams.
    pub(crate) fn stream_count(&self) -> u64 {
        lock(&self.streams).iter().filter(|(stream, _)| stream.strong_count() > 0).count() as u64
    }

    pub(crate) fn is_busy(&self) -> bool {
        lock(&self.streams).iter().any(|(_, work)| work.is_busy())
    }

    /// Enters the device to destroy a handle. Waits for the device first, so that no kernel loses memory or code
    /// that it uses. `None` means leak the handle: either a wait timed out, now or earlier, and destroying would
    /// hang, or the context is gone and the handle with it.
    pub(crate) fn enter_for_drop(self: &Arc<Self>) -> Option<Inside<'_>> {
        let entered = self.enter_or_leak()?;
        // A fault ends the wait as well: nothing runs any more.
        let timed_out =
            matches!(self.settle(DEFAULT_TIMEOUT, &entered), Err(Error::TimedOut { .. }));
        if timed_out {
            observe::leaked("a wait for the device timed out");
        }
        (!timed_out).then_some(entered)
    }

    /// Enters the device to destroy a handle that no kernel can be using; `None` as for
    /// [`DeviceInner::enter_for_drop`].
    pub(crate) fn enter_or_leak(&self) -> Option<Inside<'_>> {
        let usable = self.usable();
        if let (Err(error), true) = (&usable, self.has_timed_out()) {
            observe::leaked(error);
        }
        usable.and_then(|()| self.enter()).ok()
    }

    /// Whether work on the device may hang, so that nothing may be waited for.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.timed_out.get().is_some()
    }

    /// Runs a copy or fill and waits for it, after all earlier work. If there was some, its lost launches are
    /// reported.
    ///
    /// # Safety
    /// The memory on both sides must be live and have the length that `transfer` gives.
    pub(crate) unsafe fn transfer(
        self: &Arc<Self>,
        what: &'static str,
        transfer: Transfer,
    ) -> Result<()> {
        let entered = self.enter()?;
        if self.is_busy() {
            self.settle(DEFAULT_TIMEOUT, &entered)?;
            self.report_lost_launches(&entered)?;
        }
        // SAFETY: passed on to the caller.
        unsafe { self.transfer_now(what, transfer, &entered) }
    }

    /// Same as [`DeviceInner::transfer`], without waiting for other work.
    ///
    /// # Safety
    /// Same as [`DeviceInner::transfer`].
    pub(crate) unsafe fn transfer_now(
        self: &Arc<Self>,
        what: &'static str,
        transfer: Transfer,
        entered: &Entered<'_>,
    ) -> Result<()> {
        observe::copying(what, transfer.bytes());
        // SAFETY: passed on to the caller.
        self.note_fault(unsafe { self.handle.start(transfer, entered) })?;
        let wait = |timeout| self.handle.wait_for_transfers(timeout, entered);
        self.note_fault(self.wait(wait, DEFAULT_TIMEOUT, || what.into()))
    }

    /// Reads the lost-launch record of every program that ran. The first program with lost launches determines the
    /// error; the next wait reports the next one.
    pub(crate) fn report_lost_launches(self: &Arc<Self>, entered: &Entered<'_>) -> Result<()> {
        let idle = !self.is_busy();
        for program in live(&self.programs) {
            program.report_lost_launches(idle, entered)?;
        }
        Ok(())
    }
}

pub(crate) fn add<T>(list: &Mutex<Vec<Weak<T>>>, item: &Arc<T>) {
    let mut list = lock(list);
    list.retain(|item| item.strong_count() > 0);
    list.push(Arc::downgrade(item));
}

/// The live items. The lock is released before any of them can be dropped.
fn live<T>(list: &Mutex<Vec<Weak<T>>>) -> Vec<Arc<T>> {
    lock(list).iter().filter_map(Weak::upgrade).collect()
}
