//! Streams: launching and waiting.

mod progress;

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gridlet_artifact::LaunchConfig;
use gridlet_cpu::sync::lock;

use super::device::{DEFAULT_TIMEOUT, Device, DeviceInner, add};
use super::event::Event;
use super::partition::{Confinement, GreenContext, GreenInner};
use super::program::Kernel;
use super::resident::{ResidentLaunch, StreamMemory};
use super::resources::{Origin, SmResource};
use crate::arguments::{Arg, ParameterRoom, STACK_PARAMETER_BYTES, pack_into};
use crate::backend::{Entered, StreamHandle};
use crate::error::{Error, Result};
use crate::location::Location;
use crate::observe;
use crate::sharing::Sharing;
use progress::{Progress, allowance_here};

/// The most distinct kernels that an error message lists.
const MAX_NAMES: usize = 8;

/// A stream: its work runs in launch order. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Stream {
    pub(crate) inner: Arc<StreamInner>,
}

impl Stream {
    pub(crate) fn create(
        device: &Arc<DeviceInner>,
        green: Option<&Arc<GreenInner>>,
        priority: i32,
    ) -> Result<Stream> {
        let partition = green.map(|green| &green.handle);
        let handle = device.call(|entered| device.handle.stream(partition, priority, entered))?;
        Ok(Stream::of_handle(device, green, handle, Sharing::default()))
    }

    pub(crate) fn of_handle(
        device: &Arc<DeviceInner>,
        green: Option<&Arc<GreenInner>>,
        handle: StreamHandle,
        sharing: Sharing,
    ) -> Stream {
        static NEXT: AtomicU64 = AtomicU64::new(0);

        let inner = Arc::new(StreamInner {
            handle,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            sharing,
            green: green.cloned(),
            device: Arc::clone(device),
            work: Arc::default(),
            kernels: Mutex::new(Vec::with_capacity(MAX_NAMES)),
            progress: Progress::default(),
            launch_memory: Mutex::default(),
        });
        device.add_stream(&inner);
        if let Some(green) = green {
            add(&green.streams, &inner);
        }
        Stream { inner }
    }

    /// The green context that the stream belongs to.
    pub fn green_context(&self) -> Option<GreenContext> {
        self.inner.green.clone().map(|inner| GreenContext { inner })
    }

    /// Whether the driver also places the stream in its green context (`cuStreamGetGreenCtx`); true for a stream
    /// of the whole device.
    ///
    /// # Errors
    /// [`Error::MissingCall`] before CUDA 12.4, [`Error::Cuda`], [`Error::Unusable`].
    pub fn is_in_its_green_context(&self) -> Result<bool> {
        let Some(green) = &self.inner.green else { return Ok(true) };
        self.inner.device.call(|entered| green.handle.owns(&self.inner.handle, entered))
    }

    /// The SMs that the stream's kernels run on (`cuStreamGetDevResource`), which can be split for green contexts.
    ///
    /// # Errors
    /// [`Error::MissingCall`] before CUDA 13.1, [`Error::Cuda`], [`Error::Unusable`].
    pub fn sm_resource(&self) -> Result<SmResource> {
        let device = &self.inner.device;
        let workers = self.inner.green.as_ref().map_or(device.info.sm_count, |g| g.sm_count);
        let handle = device.call(|entered| self.inner.handle.sms(workers, entered))?;
        Ok(SmResource::new(device, handle, Origin::Whole))
    }

    /// The stream's priority: lower numbers run first, within [`Device::stream_priorities`].
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn priority(&self) -> Result<i32> {
        self.inner.device.call(|entered| self.inner.handle.priority(entered))
    }

    /// The stream's device.
    pub fn device(&self) -> Device {
        Device { inner: Arc::clone(&self.inner.device) }
    }

    /// Launches a kernel without waiting for it. (The driver itself blocks once about a thousand launches are
    /// queued.)
    ///
    /// # Errors
    /// [`Error::ArgumentCount`], [`Error::Argument`], [`Error::Launch`], [`Error::LaunchMemory`], [`Error::OtherDevice`]
    /// before anything is launched; [`Error::Cuda`], [`Error::Fault`] (also from earlier launches), [`Error::Unusable`].
    pub fn launch(&self, kernel: &Kernel, config: &LaunchConfig, args: &[Arg<'_>]) -> Result<()> {
        self.check(kernel, config)?;
        let manifest = kernel.manifest();
        let bytes = manifest.parameter_bytes as usize;
        let (mut room, mut heap);
        let parameters = if bytes <= STACK_PARAMETER_BYTES {
            room = ParameterRoom::new();
            room.zeroed(bytes).unwrap_or_default()
        } else {
            // Only kernels from other compilers have this many parameter bytes.
            heap = vec![0; bytes];
            &mut heap[..]
        };
        let structs = &kernel.program.artifact.manifest().structs;
        pack_into(manifest, structs, args, self.inner.device.number, parameters)?;
        // SAFETY: `pack_into` built the parameters that the manifest declares for the kernel.
        unsafe { self.submit(kernel, config, parameters) }
    }

    /// The number of the stream's device.
    #[inline]
    pub(crate) fn device_number(&self) -> u32 {
        self.inner.device.number
    }

    /// The checks that need no driver.
    pub(crate) fn check(&self, kernel: &Kernel, config: &LaunchConfig) -> Result<()> {
        let (device, program) = (&self.inner.device, &kernel.program);
        if !Arc::ptr_eq(&program.device, device) {
            return Err(Error::OtherDevice {
                what: format!("program `{}`", program.artifact.manifest().program),
                expected: device.number,
                given: program.device.number,
            });
        }
        kernel.check(config)
    }

    /// Launches with packed parameters, after [`Stream::check`]. Allocates only to describe an error, the first time that
    /// the program runs in a green context, and for the first resident launches.
    ///
    /// # Safety
    /// The parameters must be those that the manifest declares for the kernel.
    pub(crate) unsafe fn submit(
        &self,
        kernel: &Kernel,
        config: &LaunchConfig,
        parameters: &mut [u8],
    ) -> Result<()> {
        let stream = &*self.inner;
        let (device, program) = (&stream.device, &kernel.program);
        let entered = device.enter_partition(stream.green.as_ref().map(|green| &green.handle))?;
        if let Some(green) = &stream.green {
            program.find_record_in(&green.handle, &entered)?;
            let confinement = green.confinement(program);
            if confinement == Confinement::ChildrenLeave {
                observe::children_leave(&program.artifact.manifest().program, confinement);
            }
        }
        let sms = stream.green.as_ref().map_or(device.info.sm_count, |green| green.sm_count);
        let resident =
            device.note_fault(ResidentLaunch::plan(stream, sms, kernel, config, &entered))?;
        if resident.is_none() {
            kernel.entry.loaded().allow_shared(device, config.shared_bytes)?;
        }
        if config.cooperative {
            kernel.check_cooperative(config, sms, &entered)?;
        }
        observe::launching(kernel.name(), config, stream.number);
        // Before the launch, so that no wait can miss it.
        stream.note_launch(&kernel.entry.name);
        program.note_launch();
        device.note_kernel();
        // SAFETY: kernel and stream are live and on one device; the caller guarantees the parameters, and
        // `Program::kernel` compared the manifest with the image.
        let launched = unsafe {
            match resident {
                Some(launch) => launch.launch(stream, kernel, config, parameters, &entered),
                None => stream.handle.launch(kernel.entry.handle(), config, parameters, &entered),
            }
        };
        stream.note_returned();
        match launched {
            Ok(()) => Ok(()),
            Err(error) => device.note_fault(Err(stream.name_kernels(error))),
        }
    }

    /// Same as [`Stream::launch`], but never waits for the driver's queue: if the queue may be full, nothing is
    /// launched and the error is [`Error::WouldBlock`]. Streams of the CPU device have no such limit.
    ///
    /// It counts unfinished launches on all streams of the device, and assumes that the driver distributes its
    /// channels evenly; it cannot count launches by other libraries (see [`crate::launch_queue`]).
    ///
    /// # Errors
    /// [`Error::WouldBlock`]; the errors of [`Stream::launch`].
    pub fn try_launch(
        &self,
        kernel: &Kernel,
        config: &LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<()> {
        let inner = &*self.inner;
        if inner.device.handle.is_cpu() {
            return self.launch(kernel, config, args);
        }
        // Plus one for the stream that copies.
        let allowed = allowance_here(inner.device.stream_count() + 1);
        if inner.work.under_way() >= allowed {
            inner.work.finished.fetch_max(inner.progress.finished()?, Ordering::AcqRel);
            let launches = inner.work.under_way();
            if launches >= allowed {
                return Err(Error::WouldBlock { launches, allowed });
            }
        }
        self.launch(kernel, config, args)?;
        // The launch was made, so an error must not be returned. Without marks, only waits observe progress.
        let _ = inner.progress.mark(self, inner.work.returned.load(Ordering::Acquire));
        Ok(())
    }

    /// Records the event at this point of the stream.
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::OtherDevice`], [`Error::Unusable`].
    pub fn record(&self, event: &Event) -> Result<()> {
        let device = &self.inner.device;
        event.expect_device(device)?;
        device.call(|entered| self.inner.handle.record(&event.handle, entered))
    }

    /// Makes work launched from now on wait for the event (`cuStreamWaitEvent`); the call itself does not wait. On
    /// the CPU device, a wait for the stream that times out also ends this wait.
    ///
    /// # Errors
    /// [`Error::OtherDevice`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        let device = &self.inner.device;
        event.expect_device(device)?;
        device.call(|entered| self.inner.handle.wait_event(&event.handle, entered))
    }

    /// Starts migrating managed memory.
    pub(crate) fn prefetch(&self, address: u64, bytes: u64, location: Location) -> Result<()> {
        let entered = self.inner.device.enter()?;
        // A wait for the stream must include the migration.
        self.inner.note_work();
        // SAFETY: the caller's range is managed memory of this device, whose owner waits before freeing it.
        let started = unsafe { self.inner.handle.prefetch(address, bytes, location, &entered) };
        self.inner.note_returned();
        started
    }

    /// Waits until everything launched into the stream has ended, including the grids launched by those grids.
    ///
    /// # Errors
    /// [`Error::TimedOut`]: the device may be unusable from then on (see there). [`Error::Fault`]: a kernel broke
    /// the context. [`Error::CpuFault`]: a kernel on the CPU failed. [`Error::Checked`]: a checking device found
    /// an error. [`Error::LostLaunches`]: a program on the device lost launches since the last report.
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn synchronize(&self, timeout: Duration) -> Result<()> {
        let device = &self.inner.device;
        let entered = device.enter()?;
        self.inner.wait(timeout, &entered)?;
        device.report_lost_launches(&entered)
    }

    /// [`Stream::synchronize`] with [`DEFAULT_TIMEOUT`].
    ///
    /// # Errors
    /// The errors of [`Stream::synchronize`].
    pub fn synchronize_default(&self) -> Result<()> {
        self.synchronize(DEFAULT_TIMEOUT)
    }
}

#[derive(Debug)]
pub(crate) struct StreamInner {
    pub(crate) handle: StreamHandle,
    /// Identifies the stream in this process.
    pub(super) number: u64,
    pub(crate) sharing: Sharing,
    // The stream is destroyed in `drop`, before these fields are dropped: first the green context, then the
    // device.
    pub(crate) green: Option<Arc<GreenInner>>,
    pub(crate) device: Arc<DeviceInner>,
    pub(crate) work: Arc<Work>,
    /// Kernels launched since the last wait, without duplicates.
    kernels: Mutex<Vec<Arc<str>>>,
    progress: Progress,
    /// The memory of resident launches.
    pub(super) launch_memory: Mutex<StreamMemory>,
}

/// Counts of the work in a stream. The device holds it too, because work may run while the stream's last handle is
/// dropped.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Launches begun, those of them whose call has returned, and how many a wait has seen end. A wait says nothing of a
    /// launch whose call another thread is still in.
    pub(super) submitted: AtomicU64,
    pub(super) returned: AtomicU64,
    pub(super) finished: AtomicU64,
}

impl Work {
    /// Whether there is work that no wait has seen end.
    pub(crate) fn is_busy(&self) -> bool {
        self.submitted.load(Ordering::Acquire) != self.finished.load(Ordering::Acquire)
    }

    fn under_way(&self) -> u64 {
        let finished = self.finished.load(Ordering::Acquire);
        self.submitted.load(Ordering::Acquire).saturating_sub(finished)
    }
}

impl StreamInner {
    /// Records the kernel; the list has room for all the names that it may hold.
    fn note_launch(&self, kernel: &Arc<str>) {
        let mut kernels = lock(&self.kernels);
        if kernels.len() < MAX_NAMES
            && !kernels.iter().any(|name| Arc::ptr_eq(name, kernel) || name == kernel)
        {
            kernels.push(Arc::clone(kernel));
        }
        drop(kernels);
        self.note_work();
    }

    /// Counts work that is about to be added to the stream, so that waits wait for it.
    pub(crate) fn note_work(&self) {
        self.work.submitted.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts work that was added, or that could not be: a wait that begins from now on sees its end.
    pub(crate) fn note_returned(&self) {
        self.work.returned.fetch_add(1, Ordering::AcqRel);
    }

    /// The recorded kernels since the last wait.
    pub(crate) fn kernel_names(&self) -> Vec<String> {
        lock(&self.kernels).iter().map(|name| name.as_ref().into()).collect()
    }

    /// Waits for the work launched so far.
    pub(crate) fn wait(&self, timeout: Duration, entered: &Entered<'_>) -> Result<()> {
        let returned = self.work.returned.load(Ordering::Acquire);
        let what = || match lock(&self.kernels).as_slice() {
            [] => "a stream".into(),
            names => format!(
                "a stream with {}",
                names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
            ),
        };
        let result = self.device.wait(|timeout| self.handle.wait(timeout, entered), timeout, what);
        if !matches!(result, Err(Error::TimedOut { .. })) || self.device.usable().is_ok() {
            // After a fault, or a timeout that stopped the work, nothing runs any more.
            self.work.finished.fetch_max(returned, Ordering::AcqRel);
        }
        let result = self.device.note_fault(result.map_err(|error| self.name_kernels(error)));
        if !self.work.is_busy() {
            lock(&self.kernels).clear();
        }
        result
    }

    /// Adds the kernels that may have caused a fault to the error.
    fn name_kernels(&self, error: Error) -> Error {
        match error {
            Error::Fault(mut fault) => {
                fault.kernels = self.kernel_names();
                Error::Fault(fault)
            }
            other => other,
        }
    }
}

impl Drop for StreamInner {
    fn drop(&mut self) {
        let Some(entered) = self.device.enter_or_leak() else {
            return self.sharing.end(self.device.has_timed_out());
        };
        // Waits for the work, because nothing else would track it once the stream is gone.
        if self.work.is_busy() {
            let _ = self.wait(DEFAULT_TIMEOUT, &entered);
            if self.device.enter_or_leak().is_none() {
                return self.sharing.end(self.device.has_timed_out());
            }
        }
        let memory = self.launch_memory.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.device.free_launch_memory(mem::take(memory).into_all(), &entered);
        if self.sharing.may_destroy() {
            // SAFETY: nothing else holds the handle.
            unsafe { self.handle.destroy(&entered) };
        }
        self.sharing.end(false);
    }
}
