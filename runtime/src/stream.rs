//! Streams: launching and waiting.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::arguments::{Arg, pack};
use crate::config::LaunchConfig;
use crate::device::{DEFAULT_TIMEOUT, Device, DeviceInner, lock};
use crate::driver;
use crate::driver::context::Current;
use crate::driver::sys::CUstream;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::partition::GreenInner;
use crate::program::Kernel;

/// How many different kernels an error message lists.
const MOST_NAMES: usize = 8;

/// A stream: what is launched into it runs in that order. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Stream {
    inner: Arc<StreamInner>,
}

impl Stream {
    pub(crate) fn create(
        device: &Arc<DeviceInner>,
        green: Option<&Arc<GreenInner>>,
    ) -> Result<Stream> {
        let _current = device.current()?;
        // SAFETY: the primary context is current, the green context lives; `drop` destroys the stream.
        let handle = unsafe {
            match green {
                None => driver::stream::create()?,
                Some(green) => driver::green::create_stream(green.handle)?,
            }
        };
        let inner = Arc::new(StreamInner {
            handle,
            green: green.cloned(),
            device: Arc::clone(device),
            submitted: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            kernels: Mutex::new(Vec::new()),
        });
        device.add_stream(&inner);
        Ok(Stream { inner })
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
        let stream = &*self.inner;
        let device = &stream.device;
        let program = &kernel.program;
        if !Arc::ptr_eq(&program.device, device) {
            return Err(Error::OtherDevice {
                what: format!("program `{}`", program.artifact.manifest().program),
                expected: device.ordinal,
                given: program.device.ordinal,
            });
        }
        config
            .check(&device.info.limits, &kernel.entry.limits)
            .map_err(|problem| Error::Launch { kernel: kernel.name().into(), problem })?;
        let mut parameters =
            pack(kernel.manifest(), &program.artifact.manifest().structs, args, device.ordinal)?;

        device.usable()?;
        let _one_thread = stream.green.as_ref().map(|green| lock(&green.current));
        let context = stream.green.as_ref().map_or(device.context(), |green| green.context);
        // SAFETY: the stream holds its context, and the lock keeps a green one to this thread.
        let _current = unsafe { Current::push(context) }?;
        if stream.green.is_some() {
            program.find_record()?;
        }
        kernel.allow_shared(config.shared_bytes)?;
        // Before the launch, so that no wait can miss it.
        stream.note_launch(kernel.name());
        program.note_launch();
        device.note_kernel();
        // SAFETY: kernel and stream live; `pack` made the parameters that the manifest says the kernel has, and
        // `Program::kernel` compared the manifest with the driver.
        unsafe {
            driver::launch::launch(kernel.entry.handle, config, stream.handle, &mut parameters)
        }
        .map_err(|failed| stream.name_kernels(failed.into()))
    }

    /// Sets the event to this point of the stream.
    ///
    /// # Errors
    /// [`Error::Cuda`], [`Error::OtherDevice`], [`Error::Unusable`].
    pub fn record(&self, event: &Event) -> Result<()> {
        let device = &self.inner.device;
        if !Arc::ptr_eq(&event.device, device) {
            return Err(Error::OtherDevice {
                what: "the event".into(),
                expected: device.ordinal,
                given: event.device.ordinal,
            });
        }
        let _current = device.current()?;
        // SAFETY: event and stream live.
        unsafe { driver::stream::record(event.handle, self.inner.handle) }?;
        Ok(())
    }

    /// Waits until everything launched into the stream, and all that those grids launched, has ended.
    ///
    /// # Errors
    /// [`Error::TimedOut`]: the device is unusable from then on (see there). [`Error::Fault`]: a kernel broke
    /// the context. [`Error::LostLaunches`]: launches of a program on the device were lost since the last
    /// report. [`Error::Cuda`], [`Error::Unusable`].
    pub fn synchronize(&self, timeout: Duration) -> Result<()> {
        let device = &self.inner.device;
        let _current = device.current()?;
        self.inner.wait(timeout)?;
        device.report_lost_launches()
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
    handle: CUstream,
    // The stream is destroyed in `drop`, before these are let go: first the green context, then the device.
    green: Option<Arc<GreenInner>>,
    device: Arc<DeviceInner>,
    /// Launches made, and how many of those a wait has seen end.
    submitted: AtomicU64,
    finished: AtomicU64,
    /// Kernels launched since the last wait, each once.
    kernels: Mutex<Vec<String>>,
}

// SAFETY: the raw handle is a name of a driver object, and the driver's calls are thread-safe.
unsafe impl Send for StreamInner {}
// SAFETY: as above.
unsafe impl Sync for StreamInner {}

impl StreamInner {
    fn note_launch(&self, kernel: &str) {
        let mut kernels = lock(&self.kernels);
        if kernels.len() < MOST_NAMES && !kernels.iter().any(|name| name == kernel) {
            kernels.push(kernel.into());
        }
        self.submitted.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether something was launched that no wait has seen end.
    pub(crate) fn is_busy(&self) -> bool {
        self.submitted.load(Ordering::Acquire) != self.finished.load(Ordering::Acquire)
    }

    /// Waits for what is launched so far. The primary context is current.
    pub(crate) fn wait(&self, timeout: Duration) -> Result<()> {
        let submitted = self.submitted.load(Ordering::Acquire);
        // SAFETY: the stream lives.
        let done = || unsafe { driver::stream::is_done(self.handle) };
        let what = || match lock(&self.kernels).as_slice() {
            [] => "a stream".into(),
            names => format!(
                "a stream with {}",
                names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
            ),
        };
        let result = self.device.wait(done, timeout, what);
        if !matches!(result, Err(Error::TimedOut { .. })) {
            // After a fault, too: nothing of it runs any more.
            self.finished.fetch_max(submitted, Ordering::AcqRel);
        }
        let result = result.map_err(|error| self.name_kernels(error));
        if !self.is_busy() {
            lock(&self.kernels).clear();
        }
        result
    }

    /// Adds to a fault which kernels may have caused it.
    fn name_kernels(&self, error: Error) -> Error {
        match error {
            Error::Fault(mut fault) => {
                fault.kernels = lock(&self.kernels).clone();
                Error::Fault(fault)
            }
            other => other,
        }
    }
}

impl Drop for StreamInner {
    fn drop(&mut self) {
        let Ok(_current) = self.device.current() else { return };
        // Its work is waited for, because nothing else would know of it once the stream is gone.
        if self.is_busy() && matches!(self.wait(DEFAULT_TIMEOUT), Err(Error::TimedOut { .. })) {
            return;
        }
        // SAFETY: nothing else has the handle. An error means that it is gone already.
        let _ = unsafe { driver::stream::destroy(self.handle) };
    }
}
