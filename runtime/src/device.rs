//! Devices: opening, waiting, and what happens when a wait times out.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::ops::{Deref, RangeInclusive};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use std::{fmt, mem, thread};

use crate::backend::{
    DeviceHandle, Entered, PartHandle, PartitionHandle, Transfer, Waited, cpu, cuda,
};
use crate::cpu::{CpuConfig, default_threads};
use crate::driver::green::ResourceKind;
use crate::error::{CPU_DEVICES, Error, Fault, Result, next_number};
use crate::info::{DeviceInfo, DeviceKind};
use crate::observe;
use crate::program::ProgramInner;
use crate::resources::{Origin, SmResource, WorkqueueConfig, WorkqueueResource};
use crate::selector::DeviceSelector;
use crate::stream::{Stream, StreamInner, Work};

/// How long a wait lasts if the caller names no time-out: 60 s.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// How long [`Device::recover`] waits for calls that other threads are in: after a fault the driver ends them soon.
const LEAVING: Duration = Duration::from_secs(5);
/// Between two looks at what another thread does.
const LOOK: Duration = Duration::from_micros(200);

/// An opened device: a GPU or the CPU. Cheap to clone; clones are the same device.
///
/// A GPU works in its primary context, which CUDA's runtime API and other libraries share (driver API,
/// Primary Context Management), and leaves the calling thread's current context as it was. The CPU device runs
/// images for the CPU ([`Artifact::image_for_cpu`](crate::Artifact::image_for_cpu)) on worker threads of
/// this process, with the GPU's rules: what this crate's documentation says of devices holds for both.
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) inner: Arc<DeviceInner>,
}

impl Device {
    /// The GPUs there are; none if the driver finds no GPU.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::DriverTooOld`], [`Error::Cuda`].
    pub fn list() -> Result<Vec<DeviceInfo>> {
        cuda::list()
    }

    /// Opens what the selector names; the CPU with the default configuration.
    ///
    /// # Errors
    /// Those of [`Device::open`] and [`Device::open_cpu`]. [`DeviceSelector::Auto`] takes the CPU where there is
    /// no driver or no GPU, but not where the driver or the GPU fails.
    pub fn select(selector: DeviceSelector) -> Result<Device> {
        match selector {
            DeviceSelector::Cuda(ordinal) => Device::open(ordinal),
            DeviceSelector::Cpu => Device::open_cpu(CpuConfig::default()),
            DeviceSelector::Auto => match Device::open(0) {
                Err(error) if error.is_absent_gpu() => Device::open_cpu(CpuConfig::default()),
                other => other,
            },
        }
    }

    /// Opens what the name says: `auto`, `cuda`, `cuda:1` or `cpu`.
    ///
    /// # Errors
    /// [`Error::DeviceName`]; those of [`Device::select`].
    pub fn open_named(name: &str) -> Result<Device> {
        Device::select(name.parse().map_err(|reason| Error::DeviceName { reason })?)
    }

    /// Opens a CPU device: its own worker threads, its own pool of pending launches.
    ///
    /// # Errors
    /// [`Error::CpuThreads`] if its threads cannot be started.
    pub fn open_cpu(config: CpuConfig) -> Result<Device> {
        /// The next CPU device's number in errors.
        static NEXT: AtomicU32 = AtomicU32::new(CPU_DEVICES);

        let (info, handle) = cpu::CpuHandle::open(config)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed).max(CPU_DEVICES);
        let inner = Arc::new(DeviceInner::new(number, number, info, DeviceHandle::Cpu(handle)));
        let device = Device { inner };
        observe::opened(&device, device.info());
        Ok(device)
    }

    /// What the CPU device is with the default configuration, without opening it.
    pub fn cpu_info() -> DeviceInfo {
        // An error here is one of the variable that sets the threads; opening the device tells it.
        cpu::info(default_threads().unwrap_or(1))
    }

    /// Opens a GPU, by its number. Further opens of the same number give the same device.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::DriverTooOld`], [`Error::NoDevice`], [`Error::Cuda`].
    pub fn open(ordinal: u32) -> Result<Device> {
        cuda::check_ordinal(ordinal)?;
        let mut opened = lock(&OPENED);
        match find_opened(&opened, ordinal) {
            Some(inner) => Ok(Device { inner }),
            None => open_cuda(ordinal, &mut opened),
        }
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
        self.stream_with_priority(0)
    }

    /// The same with a priority: lower numbers first, 0 is the default, others are clamped to
    /// [`Device::stream_priorities`] (`cuStreamCreateWithPriority`).
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn stream_with_priority(&self, priority: i32) -> Result<Stream> {
        Stream::create(&self.inner, None, priority)
    }

    /// The priorities that mean something, from the greatest, which is the lowest number, to the least
    /// (`cuCtxGetStreamPriorityRange`); 0 alone on the CPU.
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn stream_priorities(&self) -> Result<RangeInclusive<i32>> {
        let (least, greatest) = self.inner.call(|entered| self.inner.handle.priorities(entered))?;
        Ok(greatest..=least)
    }

    /// All of its SMs (`cuDeviceGetDevResource`); of the CPU, the workers.
    ///
    /// # Errors
    /// [`Error::MissingCall`] before CUDA 12.4, [`Error::Cuda`], [`Error::Unusable`].
    pub fn sm_resource(&self) -> Result<SmResource> {
        Ok(SmResource::new(&self.inner, self.resource(ResourceKind::Sm, false)?, Origin::Whole))
    }

    /// The SMs of its primary context (`cuCtxGetDevResource`).
    ///
    /// # Errors
    /// As [`Device::sm_resource`].
    pub fn context_sm_resource(&self) -> Result<SmResource> {
        Ok(SmResource::new(&self.inner, self.resource(ResourceKind::Sm, true)?, Origin::Whole))
    }

    /// A configuration of workqueues, to change and to put into a descriptor.
    ///
    /// # Errors
    /// [`Error::MissingFeature`] before CUDA 13.1, [`Error::NotOnCpu`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn workqueue_config(&self) -> Result<WorkqueueConfig> {
        let handle = self.resource(ResourceKind::WorkqueueConfig, false)?;
        Ok(WorkqueueConfig { device: Arc::clone(&self.inner), handle })
    }

    /// The configuration of the primary context's workqueues: its limit is the most that the driver keeps apart.
    ///
    /// # Errors
    /// As [`Device::workqueue_config`].
    pub fn context_workqueue_config(&self) -> Result<WorkqueueConfig> {
        let handle = self.resource(ResourceKind::WorkqueueConfig, true)?;
        Ok(WorkqueueConfig { device: Arc::clone(&self.inner), handle })
    }

    /// The primary context's workqueues, to share them with a green context.
    ///
    /// # Errors
    /// As [`Device::workqueue_config`].
    pub fn context_workqueue(&self) -> Result<WorkqueueResource> {
        let handle = self.resource(ResourceKind::Workqueue, true)?;
        Ok(WorkqueueResource { device: Arc::clone(&self.inner), handle })
    }

    fn resource(&self, kind: ResourceKind, of_context: bool) -> Result<PartHandle> {
        let inner = &self.inner;
        inner.call(|entered| inner.handle.resource(kind, of_context, &inner.info, entered))
    }

    /// Free bytes of device memory.
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn free_memory(&self) -> Result<u64> {
        self.inner.call(|entered| self.inner.handle.free_memory(entered))
    }

    /// After [`Error::Fault`]: destroys the device's context with all that belongs to it and opens the device anew, in this
    /// process. Streams, buffers, programs and green contexts of the old one stay unusable, whatever uses CUDA beside this
    /// crate loses what it has on the device, too, and limits are the driver's own again.
    ///
    /// A device that is not broken, and the CPU device, is given as it is.
    ///
    /// # Errors
    /// [`Error::HostMemoryInUse`] while there are buffers whose elements the host may have, because their memory goes
    /// with the context: drop those first.
    /// [`Error::Unusable`] if a wait timed out before, because what hangs cannot be stopped; [`Error::NotRecovered`] if
    /// the driver cannot start a new context either: then only a new process can use the device. So it is with driver
    /// 580.159.04, whose `cuDevicePrimaryCtxRetain` repeats the fault for ever.
    pub fn recover(&self) -> Result<Device> {
        let inner = &self.inner;
        if inner.timed_out.get().is_some() {
            inner.usable()?;
        }
        // Any call may have been the first to tell of the fault, and only waits note it.
        if inner.fault.get().is_none() && !matches!(self.free_memory(), Err(Error::Fault(_))) {
            return Ok(self.clone());
        }
        let failed =
            |error: Error| Error::NotRecovered { ordinal: inner.ordinal, reason: Box::new(error) };
        let mut opened = lock(&OPENED);
        // Another thread may have been first.
        if let Some(current) = find_opened(&opened, inner.ordinal)
            && !Arc::ptr_eq(&current, inner)
        {
            return Ok(Device { inner: current });
        }
        if !inner.is_reset.load(Ordering::Acquire) {
            inner.wait_for_callers().map_err(failed)?;
            let buffers = inner.host_visible.load(Ordering::Acquire);
            if buffers > 0 {
                return Err(Error::HostMemoryInUse { ordinal: inner.ordinal, buffers });
            }
            // SAFETY: nobody is in a call, `enter` refuses every further use of the old handles, dropping them calls
            // nothing, and no memory is left that the host could see.
            unsafe { inner.handle.reset() }.map_err(failed)?;
            inner.is_reset.store(true, Ordering::Release);
        }
        let device = open_cuda(inner.ordinal, &mut opened).map_err(failed)?;
        // A context that is still broken fails the first thing that is done in it.
        device.free_memory().map_err(failed)?;
        Ok(device)
    }

    /// Makes the device's primary context the calling thread's current one until the value is dropped. Each launch and
    /// copy needs it: where it is current already, they cost less, and other CUDA libraries on this thread find it.
    /// Nothing to do on the CPU.
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn make_current(&self) -> Result<CurrentDevice<'_>> {
        let _inside = self.inner.inside()?;
        Ok(CurrentDevice { _entered: self.inner.handle.hold()?, _one_thread: PhantomData })
    }

    /// Waits for everything that was launched on the device, and reports faults and lost launches.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn synchronize(&self, timeout: Duration) -> Result<()> {
        let entered = self.inner.enter()?;
        self.inner.settle(timeout, &entered)?;
        self.inner.report_lost_launches(&entered)
    }
}

/// A device whose context is current on this thread. Dropping it brings back what was current before; values of a thread
/// may be dropped in any order.
pub struct CurrentDevice<'a> {
    _entered: Entered<'a>,
    _one_thread: PhantomData<*mut ()>,
}

impl fmt::Debug for CurrentDevice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentDevice").finish_non_exhaustive()
    }
}

/// As [`DeviceSelector`] spells it: `cuda:0`, `cpu`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.info();
        match info.kind {
            DeviceKind::Cuda => DeviceSelector::Cuda(info.ordinal).fmt(f),
            DeviceKind::Cpu => DeviceSelector::Cpu.fmt(f),
        }
    }
}

/// Opened GPUs, by number: one that timed out or lost its context must stay unusable however it is opened.
static OPENED: Mutex<Opened> = Mutex::new(Vec::new());

type Opened = Vec<(u32, Weak<DeviceInner>)>;

/// The one whose context is still the driver's.
fn find_opened(opened: &Opened, ordinal: u32) -> Option<Arc<DeviceInner>> {
    let of_number = opened.iter().filter(|(number, _)| *number == ordinal);
    let mut live = of_number.filter_map(|(_, inner)| inner.upgrade());
    live.find(|inner| !inner.is_reset.load(Ordering::Acquire))
}

fn open_cuda(ordinal: u32, opened: &mut Opened) -> Result<Device> {
    let (info, handle) = cuda::CudaDevice::open(ordinal)?;
    opened.retain(|(_, inner)| inner.strong_count() > 0);
    let others = opened.iter().filter(|(number, _)| *number == ordinal);
    let latest = others.filter_map(|(_, inner)| Some(inner.upgrade()?.number)).max();
    let number = latest.map_or(ordinal, |latest| next_number(ordinal, latest));
    let inner = Arc::new(DeviceInner::new(ordinal, number, info, DeviceHandle::Cuda(handle)));
    opened.push((ordinal, Arc::downgrade(&inner)));
    let device = Device { inner };
    observe::opened(&device, device.info());
    Ok(device)
}

/// What to tell memory of a GPU by that is open now, or is about to be.
pub(crate) fn number_of(ordinal: u32) -> u32 {
    find_opened(&lock(&OPENED), ordinal).map_or(ordinal, |inner| inner.number)
}

/// A device's handles may be used on this thread, and nobody destroys them, until it is dropped.
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

/// One that counts among a GPU's callers; the CPU device, which is never reset, counts none.
pub(crate) struct Caller<'a>(Option<&'a AtomicUsize>);

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if let Some(callers) = self.0 {
            callers.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Holds a device back from [`Device::recover`] while the host may have elements of its memory.
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

/// What all handles of a device share.
#[derive(Debug)]
pub(crate) struct DeviceInner {
    /// A GPU's is the driver's; a CPU device's, from [`CPU_DEVICES`] on, is its own in this process.
    pub(crate) ordinal: u32,
    /// What handles are told apart by: the ordinal, and for a GPU how often it was recovered ([`next_number`]).
    pub(crate) number: u32,
    pub(crate) info: DeviceInfo,
    pub(crate) handle: DeviceHandle,
    /// How many calls of the driver are made, on all threads.
    callers: AtomicUsize,
    /// How many buffers have memory that the host sees and that goes with the context.
    host_visible: AtomicUsize,
    pub(crate) kernel_ran: AtomicBool,
    /// A program that launches from the device was loaded.
    launching_program: AtomicBool,
    /// What broke the context, once something did.
    fault: OnceLock<Box<Fault>>,
    /// That context was reset since.
    is_reset: AtomicBool,
    /// What timed out, once something did.
    timed_out: OnceLock<String>,
    /// A stream's work is there for as long as it runs, also while the stream is dropped.
    streams: Mutex<Vec<(Weak<StreamInner>, Arc<Work>)>>,
    programs: Mutex<Vec<Weak<ProgramInner>>>,
}

impl DeviceInner {
    fn new(ordinal: u32, number: u32, info: DeviceInfo, handle: DeviceHandle) -> DeviceInner {
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
        }
    }

    /// Makes the device's handles usable on this thread.
    pub(crate) fn enter(&self) -> Result<Inside<'_>> {
        self.enter_part(None)
    }

    /// The same for a part of it, if there is one.
    pub(crate) fn enter_part<'a>(
        &'a self,
        part: Option<&'a PartitionHandle>,
    ) -> Result<Inside<'a>> {
        let caller = self.inside()?;
        let entered = self.note_fault(match part {
            Some(part) => part.enter(),
            None => self.handle.enter(),
        })?;
        Ok(Inside { entered, _caller: caller })
    }

    /// Keeps the device from being reset, if it is usable.
    pub(crate) fn inside(&self) -> Result<Caller<'_>> {
        let callers = (!self.handle.is_cpu()).then_some(&self.callers);
        if let Some(callers) = callers {
            callers.fetch_add(1, Ordering::AcqRel);
            // Before the fault is looked at, as `wait_for_callers` looks at them after it was noted.
            fence(Ordering::SeqCst);
        }
        let caller = Caller(callers);
        self.usable()?;
        Ok(caller)
    }

    /// Waits until no thread is in a call of the driver, after a fault, which lets no more in.
    fn wait_for_callers(&self) -> Result<()> {
        fence(Ordering::SeqCst);
        let start = Instant::now();
        while self.callers.load(Ordering::Acquire) > 0 {
            if start.elapsed() > LEAVING {
                let what = "other threads that are in calls of the driver".into();
                return Err(Error::TimedOut { seconds: LEAVING.as_secs_f64(), what });
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// A call of the driver, whose fault is noted.
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

    /// Passes a result on, and remembers a fault: from then on nothing of the device is usable. A fault that was seen on no
    /// stream is that of a kernel on any.
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

    /// The lock is released before any of them can be dropped.
    fn live_streams(&self) -> Vec<Arc<StreamInner>> {
        lock(&self.streams).iter().filter_map(|(stream, _)| stream.upgrade()).collect()
    }

    pub(crate) fn add_program(&self, program: &Arc<ProgramInner>) {
        if program.artifact.manifest().device_runtime.is_some() {
            self.launching_program.store(true, Ordering::Release);
        }
        add(&self.programs, program);
    }

    /// Whether a program that launches from the device was ever loaded.
    pub(crate) fn has_launching_programs(&self) -> bool {
        self.launching_program.load(Ordering::Acquire)
    }

    pub(crate) fn note_kernel(&self) {
        // Most often it is set: threads that launch need not take the flag from each other.
        if !self.kernel_ran.load(Ordering::Relaxed) {
            self.kernel_ran.store(true, Ordering::Release);
        }
    }

    /// Runs a wait, and reports what checks found meanwhile. If it times out and something still runs, the device is
    /// unusable from then on.
    pub(crate) fn wait(
        self: &Arc<Self>,
        wait: impl FnOnce(Duration) -> Result<Waited>,
        timeout: Duration,
        what: impl Fn() -> String,
    ) -> Result<()> {
        let waited = observe::waiting(&what, || wait(timeout));
        let what = if matches!(waited, Ok(Waited::Done)) { String::new() } else { what() };
        if waited == Ok(Waited::Running) && self.timed_out.set(what.clone()).is_ok() {
            // The context must outlive what still runs in it, and a later `Device::open` must find it marked.
            mem::forget(Arc::clone(self));
        }
        // A finding says why a grid was stopped, or why it waits, and so comes before that error.
        self.handle.report_findings()?;
        match waited? {
            Waited::Done => Ok(()),
            Waited::Stopped | Waited::Running => {
                Err(Error::TimedOut { seconds: timeout.as_secs_f64(), what })
            }
        }
    }

    /// Waits until every stream of the device is done.
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
                // Not what is left of it for this stream, but what the caller gave.
                Error::TimedOut { what, .. } => {
                    Error::TimedOut { seconds: timeout.as_secs_f64(), what }
                }
                other => other,
            })?;
        }
        Ok(())
    }

    /// Waits for the work of a stream whose last handle another thread drops, which waits for it as well.
    fn wait_for_dropped(self: &Arc<Self>, work: &Work, timeout: Duration) -> Result<()> {
        let wait = |timeout| {
            let start = Instant::now();
            while work.is_busy() {
                self.usable()?;
                if start.elapsed() >= timeout {
                    // That other thread stops it, on the CPU.
                    let is_cpu = self.handle.is_cpu();
                    return Ok(if is_cpu { Waited::Stopped } else { Waited::Running });
                }
                thread::sleep(LOOK);
            }
            Ok(Waited::Done)
        };
        self.wait(wait, timeout, || "a stream that is being dropped".into())
    }

    /// Streams that live.
    pub(crate) fn stream_count(&self) -> u64 {
        lock(&self.streams).iter().filter(|(stream, _)| stream.strong_count() > 0).count() as u64
    }

    pub(crate) fn is_busy(&self) -> bool {
        lock(&self.streams).iter().any(|(_, work)| work.is_busy())
    }

    /// The device, entered, for destroying a handle. Waits for the device first, so that no kernel
    /// loses memory or code that it uses. `None`: leak the handle, because that wait timed out, now or
    /// earlier, and destroying would hang; or because the context is gone, and the handle with it.
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

    /// The device, entered, for destroying a handle that no kernel can be using; else `None`, as there.
    pub(crate) fn enter_or_leak(&self) -> Option<Inside<'_>> {
        let usable = self.usable();
        if let (Err(error), true) = (&usable, self.has_timed_out()) {
            observe::leaked(error);
        }
        usable.and_then(|()| self.enter()).ok()
    }

    /// Whether something of it may hang, so that nothing may be waited for.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.timed_out.get().is_some()
    }

    /// Runs a copy or fill and waits for it. Work that was launched before comes first; if there was some, its
    /// lost launches are reported.
    ///
    /// # Safety
    /// The memory on both sides lives and has the bytes that `transfer` names.
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

    /// As [`DeviceInner::transfer`], without waiting for other work.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn transfer_now(
        self: &Arc<Self>,
        what: &'static str,
        transfer: Transfer,
        entered: &Entered<'_>,
    ) -> Result<()> {
        observe::copying(what, &transfer);
        // SAFETY: passed on to the caller.
        self.note_fault(unsafe { self.handle.start(transfer, entered) })?;
        let wait = |timeout| self.handle.wait_for_transfers(timeout, entered);
        self.note_fault(self.wait(wait, DEFAULT_TIMEOUT, || what.into()))
    }

    /// Reads the lost-launch record of every program that ran. The first that lost launches makes the error;
    /// the others' turn comes with the next wait.
    pub(crate) fn report_lost_launches(self: &Arc<Self>, entered: &Entered<'_>) -> Result<()> {
        let idle = !self.is_busy();
        for program in live(&self.programs) {
            program.report_lost_launches(idle, entered)?;
        }
        Ok(())
    }
}

/// A lock whose holder panicked holds lists that are whole at every step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn add<T>(list: &Mutex<Vec<Weak<T>>>, item: &Arc<T>) {
    let mut list = lock(list);
    list.retain(|item| item.strong_count() > 0);
    list.push(Arc::downgrade(item));
}

/// The items that still live. The lock is released before any of them can be dropped.
fn live<T>(list: &Mutex<Vec<Weak<T>>>) -> Vec<Arc<T>> {
    lock(list).iter().filter_map(Weak::upgrade).collect()
}
