//! Streams: launching and waiting.

mod progress;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gridlet_artifact::LaunchConfig;
use gridlet_cpu::sync::lock;

use super::device::{DEFAULT_TIMEOUT, Device, DeviceInner, add};
use super::event::Event;
use super::partition::{Confinement, GreenContext, GreenInner};
use super::program::Kernel;
use super::resources::{Origin, SmResource};
use crate::arguments::{Arg, ParameterRoom, STACK_PARAMETER_BYTES, pack_into};
use crate::backend::{Entered, StreamHandle};
use crate::error::{Error, Result};
use crate::location::Location;
use crate::observe;
use crate::sharing::Sharing;
use progress::{Progress, allowance_here};

/// How many different kernels an error message lists.
const MAX_NAMES: usize = 8;

/// A stream: what is launched into it runs in that order. Cheap to clone.
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
        });
        device.add_stream(&inner);
        if let Some(green) = green {
            add(&green.streams, &inner);
        }
        Stream { inner }
    }

    /// The green context that it belongs to.
    pub fn green_context(&self) -> Option<GreenContext> {
        self.inner.green.clone().map(|inner| GreenContext { inner })
    }

    /// Whether the driver says so too (`cuStreamGetGreenCtx`); true for a stream of the whole device.
    ///
    /// # Errors
    /// [`Error::MissingCall`] before CUDA 12.4, [`Error::Cuda`], [`Error::Unusable`].
    pub fn is_in_its_green_context(&self) -> Result<bool> {
        let Some(green) = &self.inner.green else { return Ok(true) };
        self.inner.device.call(|entered| green.handle.owns(&self.inner.handle, entered))
    }

    /// The SMs that its kernels run on (`cuStreamGetDevResource`), which can be split for green contexts.
    ///
    /// # Errors
    /// [`Error::MissingCall`] before CUDA 13.1, [`Error::Cuda`], [`Error::Unusable`].
    pub fn sm_resource(&self) -> Result<SmResource> {
        let device = &self.inner.device;
        let workers = self.inner.green.as_ref().map_or(device.info.sm_count, |g| g.sm_count);
        let handle = device.call(|entered| self.inner.handle.sms(workers, entered))?;
        Ok(SmResource::new(device, handle, Origin::Whole))
    }

    /// Its priority: lower numbers first, within [`Device::stream_priorities`].
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::Unusable`].
    pub fn priority(&self) -> Result<i32> {
        self.inner.device.call(|entered| self.inner.handle.priority(entered))
    }

    /// Its device.
    pub fn device(&self) -> Device {
        Device { inner: Arc::clone(&self.inner.device) }
    }

    /// Launches a kernel and does not wait for it. (The driver itself waits once about a thousand launches are
    /// queued.)
    ///
    /// # Errors
    /// [`Error::ArgumentCount`], [`Error::Argument`], [`Error::Launch`], [`Error::OtherDevice`] before
    /// anything is launched; [`Error::Cuda`], [`Error::Fault`] (also of earlier launches),
    /// [`Error::Unusable`].
    pub fn launch(&self, kernel: &Kernel, config: &LaunchConfig, args: &[Arg<'_>]) -> Result<()> {
        self.check(kernel, config)?;
        let manifest = kernel.manifest();
        let bytes = manifest.parameter_bytes as usize;
        let (mut room, mut heap);
        let parameters = if bytes <= STACK_PARAMETER_BYTES {
            room = ParameterRoom::new();
            room.zeroed(bytes).unwrap_or_default()
        } else {
            // Only other compilers' kernels have so many.
            heap = vec![0; bytes];
            &mut heap[..]
        };
        let structs = &kernel.program.artifact.manifest().structs;
        pack_into(manifest, structs, args, self.inner.device.number, parameters)?;
        // SAFETY: `pack_into` made the parameters that the manifest says the kernel has.
        unsafe { self.submit(kernel, config, parameters) }
    }

    /// The number of its device.
    #[inline]
    pub(crate) fn device_number(&self) -> u32 {
        self.inner.device.number
    }

    /// Checks what needs no driver.
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

    /// Launches with packed parameters, after [`Stream::check`]. Allocates only to describe an error, and the first time
    /// that the program runs in a green context.
    ///
    /// # Safety
    /// The parameters are those that the manifest says the kernel has.
    pub(crate) unsafe fn submit(
        &self,
        kernel: &Kernel,
        config: &LaunchConfig,
        parameters: &mut [u8],
    ) -> Result<()> {
        let stream = &*self.inner;
        let (device, program) = (&stream.device, &kernel.program);
        let entered = device.enter_part(stream.green.as_ref().map(|green| &green.handle))?;
        if let Some(green) = &stream.green {
            program.find_record_in(&green.handle, &entered)?;
            let confinement = green.confinement(program);
            if confinement == Confinement::ChildrenLeave {
                observe::children_leave(&program.artifact.manifest().program, confinement);
            }
        }
        kernel.allow_shared(config.shared_bytes)?;
        if config.cooperative {
            let sms = stream.green.as_ref().map_or(device.info.sm_count, |green| green.sm_count);
            kernel.check_cooperative(config, sms, &entered)?;
        }
        observe::launching(kernel.name(), config, stream.number);
        // Before the launch, so that no wait can miss it.
        stream.note_launch(&kernel.entry.name);
        program.note_launch();
        device.note_kernel();
        // SAFETY: kernel and stream live, on one device; the parameters are the caller's promise, and
        // `Program::kernel` compared the manifest with the image.
        let launched =
            unsafe { stream.handle.launch(&kernel.entry.handle, config, parameters, &entered) };
        match launched {
            Ok(()) => Ok(()),
            Err(error) => device.note_fault(Err(stream.name_kernels(error))),
        }
    }

    /// As [`Stream::launch`], but never waits for the driver's queue: if it may be full, nothing is launched and the error
    /// is [`Error::WouldBlock`]. The CPU device's streams take any number.
    ///
    /// It counts what was launched and not seen to end on all streams of the device, and assumes that the driver shares
    /// its channels out evenly; launches by other libraries it cannot count (see [`crate::launch_queue`]).
    ///
    /// # Errors
    /// [`Error::WouldBlock`]; those of [`Stream::launch`].
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
        // One more for the stream that copies.
        let allowed = allowance_here(inner.device.stream_count() + 1);
        if inner.work.under_way() >= allowed {
            inner.work.finished.fetch_max(inner.progress.finished()?, Ordering::AcqRel);
            let launches = inner.work.under_way();
            if launches >= allowed {
                return Err(Error::WouldBlock { launches, allowed });
            }
        }
        self.launch(kernel, config, args)?;
        // The launch is made, and an error would say that it is not. Without marks only waits see how far the stream is.
        let _ = inner.progress.mark(self, inner.work.submitted.load(Ordering::Acquire));
        Ok(())
    }

    /// Sets the event to this point of the stream.
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::OtherDevice`], [`Error::Unusable`].
    pub fn record(&self, event: &Event) -> Result<()> {
        let device = &self.inner.device;
        event.expect_device(device)?;
        device.call(|entered| self.inner.handle.record(&event.handle, entered))
    }

    /// Lets what is launched from now on wait for the event (`cuStreamWaitEvent`), and does not wait itself. A wait for
    /// the stream whose time runs out ends this one on the CPU device, too.
    ///
    /// # Errors
    /// [`Error::OtherDevice`], [`Error::Cuda`], [`Error::Unusable`].
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        let device = &self.inner.device;
        event.expect_device(device)?;
        device.call(|entered| self.inner.handle.wait_event(&event.handle, entered))
    }

    /// Starts moving managed memory.
    pub(crate) fn prefetch(&self, address: u64, bytes: u64, location: Location) -> Result<()> {
        let entered = self.inner.device.enter()?;
        // A wait for the stream has to wait for it.
        self.inner.note_work();
        // SAFETY: the caller's range is managed memory of this device, whose owner waits before it frees it.
        unsafe { self.inner.handle.prefetch(address, bytes, location, &entered) }
    }

    /// Waits until everything launched into the stream, and all that those grids launched, has ended.
    ///
    /// # Errors
    /// [`Error::TimedOut`]: the device is unusable from then on (see there). [`Error::Fault`]: a kernel broke
    /// the context. [`Error::CpuFault`]: a kernel on the CPU failed. [`Error::Checked`]: a device that checks found
    /// something wrong. [`Error::LostLaunches`]: launches of a program on the device were lost since the last
    /// report. [`Error::Cuda`], [`Error::Unusable`].
    pub fn synchronize(&self, timeout: Duration) -> Result<()> {
        let device = &self.inner.device;
        let entered = device.enter()?;
        self.inner.wait(timeout, &entered)?;
        device.report_lost_launches(&entered)
    }

    /// [`Stream::synchronize`] with [`DEFAULT_TIMEOUT`].
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn synchronize_default(&self) -> Result<()> {
        self.synchronize(DEFAULT_TIMEOUT)
    }
}

#[derive(Debug)]
pub(crate) struct StreamInner {
    pub(crate) handle: StreamHandle,
    /// Of this process's streams, for whoever observes them.
    number: u64,
    pub(crate) sharing: Sharing,
    // The stream is destroyed in `drop`, before these are let go: first the green context, then the device.
    pub(crate) green: Option<Arc<GreenInner>>,
    pub(crate) device: Arc<DeviceInner>,
    pub(crate) work: Arc<Work>,
    /// Kernels launched since the last wait, each once.
    kernels: Mutex<Vec<Arc<str>>>,
    progress: Progress,
}

/// What was put into a stream. The device has it as well, because it may run while the stream's last handle is dropped.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Launches made, and how many of those a wait has seen end.
    submitted: AtomicU64,
    finished: AtomicU64,
}

impl Work {
    /// Whether something was launched that no wait has seen end.
    pub(crate) fn is_busy(&self) -> bool {
        self.submitted.load(Ordering::Acquire) != self.finished.load(Ordering::Acquire)
    }

    fn under_way(&self) -> u64 {
        let finished = self.finished.load(Ordering::Acquire);
        self.submitted.load(Ordering::Acquire).saturating_sub(finished)
    }
}

impl StreamInner {
    /// Remembers it; the list has room for all that it may hold.
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

    /// Something was put into the stream, and waits have to wait for it.
    pub(crate) fn note_work(&self) {
        self.work.submitted.fetch_add(1, Ordering::AcqRel);
    }

    /// Kernels launched since the last wait, as far as they are remembered.
    pub(crate) fn kernel_names(&self) -> Vec<String> {
        lock(&self.kernels).iter().map(|name| name.as_ref().into()).collect()
    }

    /// Waits for what is launched so far.
    pub(crate) fn wait(&self, timeout: Duration, entered: &Entered<'_>) -> Result<()> {
        let submitted = self.work.submitted.load(Ordering::Acquire);
        let what = || match lock(&self.kernels).as_slice() {
            [] => "a stream".into(),
            names => format!(
                "a stream with {}",
                names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
            ),
        };
        let result = self.device.wait(|timeout| self.handle.wait(timeout, entered), timeout, what);
        if !matches!(result, Err(Error::TimedOut { .. })) || self.device.usable().is_ok() {
            // After a fault, and after a time-out that stopped it, too: nothing of it runs any more.
            self.work.finished.fetch_max(submitted, Ordering::AcqRel);
        }
        let result = self.device.note_fault(result.map_err(|error| self.name_kernels(error)));
        if !self.work.is_busy() {
            lock(&self.kernels).clear();
        }
        result
    }

    /// Adds to a fault which kernels may have caused it.
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
        // Its work is waited for, because nothing else would know of it once the stream is gone.
        if self.work.is_busy() {
            let _ = self.wait(DEFAULT_TIMEOUT, &entered);
            if self.device.enter_or_leak().is_none() {
                return self.sharing.end(self.device.has_timed_out());
            }
        }
        if self.sharing.may_destroy() {
            // SAFETY: nothing else has the handle.
            unsafe { self.handle.destroy(&entered) };
        }
        self.sharing.end(false);
    }
}
