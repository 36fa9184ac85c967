//! Streams, events, and the stream that launches use.

use std::any::Any;
use std::cell::RefCell;
use std::mem::{self, ManuallyDrop};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gridlet_runtime::{Error, Stream as RtStream};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::array::Array;
use super::device::{Device, Opened};
use super::{detached, duration, share};
use crate::errors::run_error;

/// The most objects that launches of a stream keep alive before one of them waits for the stream.
const MOST_KEPT: usize = 1024;

/// The most programs that launches of a stream keep alive before one of them waits for the stream.
const MOST_PROGRAMS: usize = 64;

/// A program that was launched, and the number of its last launch in the stream.
type Launched = (Arc<dyn Any + Send + Sync>, u64);

/// A stream of the runtime, and what its launches use.
pub(crate) struct Work {
    pub(crate) stream: ManuallyDrop<RtStream>,
    /// Arrays on other libraries' memory, which must not be freed before the launches have ended.
    kept: Mutex<Vec<Py<Array>>>,
    /// What a wait reports belongs to a program, and is gone with it.
    programs: Mutex<Vec<Launched>>,
    /// The number of launches, and how many of them a wait has reported on.
    launches: AtomicU64,
    reported: AtomicU64,
}

impl Work {
    pub(crate) fn new(stream: RtStream) -> Work {
        let stream = ManuallyDrop::new(stream);
        let (launches, reported) = (AtomicU64::new(0), AtomicU64::new(0));
        let (kept, programs) = (Mutex::default(), Mutex::default());
        Work { stream, kept, programs, launches, reported }
    }

    /// Notes a launch, and keeps its program until a wait has reported on it; whether the stream should be waited for,
    /// because it keeps many.
    pub(crate) fn note_launch<T: Any + Send + Sync>(&self, program: &Arc<T>) -> bool {
        let mut programs = self.programs();
        let number = self.launches.fetch_add(1, Ordering::AcqRel) + 1;
        let same =
            |known: &&mut Launched| ptr::addr_eq(Arc::as_ptr(&known.0), Arc::as_ptr(program));
        match programs.iter_mut().find(same) {
            Some((_, last)) => *last = number,
            None => programs.push((Arc::<T>::clone(program), number)),
        }
        programs.len() >= MOST_PROGRAMS
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Py<Array>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn programs(&self) -> MutexGuard<'_, Vec<Launched>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The array that an earlier launch made for the object.
    pub(crate) fn known(&self, py: Python<'_>, object: &Bound<'_, PyAny>) -> Option<Py<Array>> {
        let kept = self.kept();
        let same = kept.iter().find(|array| array.get().is_of(object));
        same.map(|array| array.clone_ref(py))
    }

    /// Keeps arrays until the stream has been waited for; whether it should be, because there are many.
    pub(crate) fn keep(&self, arrays: Vec<Py<Array>>) -> bool {
        let mut kept = self.kept();
        kept.extend(arrays);
        kept.len() >= MOST_KEPT
    }

    /// Whether there are launches that no wait has reported on.
    pub(super) fn is_unreported(&self) -> bool {
        self.launches.load(Ordering::Acquire) != self.reported.load(Ordering::Acquire)
    }

    /// Waits for the stream. Call it without the interpreter's lock.
    pub(super) fn wait(&self, timeout: Duration) -> Result<(), Error> {
        let launches = self.launches.load(Ordering::Acquire);
        let waited = self.stream.synchronize(timeout);
        if !matches!(waited, Err(Error::TimedOut { .. } | Error::Unusable { .. })) {
            self.give_back(launches);
        }
        self.reported.fetch_max(launches, Ordering::AcqRel);
        waited
    }

    /// Gives back what launches kept, after a wait for the first `launches` of them.
    fn give_back(&self, launches: u64) {
        let kept = mem::take(&mut *self.kept());
        // Dropping a Python object without the lock only notes that it is to be dropped.
        if !kept.is_empty() {
            let _ = Python::try_attach(|_| drop(kept));
        }
        // Unloading a program takes time, and so must not hold up launches.
        let ended: Vec<_> = self.programs().extract_if(.., |(_, last)| *last <= launches).collect();
        drop(ended);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // SAFETY: nobody uses the field after the drop. It waits for the stream's work, which uses what `kept` holds.
        detached(unsafe { ManuallyDrop::take(&mut self.stream) }, drop);
    }
}

/// A stream of a device: where a launch goes.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) opened: Arc<Opened>,
    pub(crate) work: Arc<Work>,
}

impl Place {
    /// An array on the memory of another library's object, for launches here.
    pub(crate) fn share(&self, object: &Bound<'_, PyAny>) -> PyResult<Array> {
        share::share(&self.opened, &self.work.stream, object)
    }

    /// Waits for the stream.
    pub(crate) fn synchronize(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        let timeout = duration(timeout)?;
        let waited = py.detach(|| {
            let waited = self.work.wait(timeout);
            self.opened.after(&waited);
            waited
        });
        self.opened.reported(waited)
    }
}

thread_local! {
    /// The devices, streams and partitions whose `with` blocks this thread is in.
    static CURRENT: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
}

/// Where this thread's launches go, inside `with`.
pub(crate) fn current() -> Option<Place> {
    CURRENT.with_borrow(|places| places.last().cloned())
}

pub(super) fn enter(place: Place) {
    CURRENT.with_borrow_mut(|places| places.push(place));
}

pub(super) fn leave() {
    let place = CURRENT.with_borrow_mut(Vec::pop);
    drop(place);
}

/// A stream: its launches run one after another. `Device.stream` and `Partition.stream` make one.
///
/// Used with `with`, it is the stream of launches in this thread that name none.
#[pyclass(frozen, weakref, module = "gridlet")]
pub(crate) struct Stream {
    pub(crate) place: Place,
}

impl Stream {
    pub(crate) fn new(opened: &Arc<Opened>, stream: RtStream) -> Stream {
        Stream { place: Place { opened: Arc::clone(opened), work: opened.new_work(stream) } }
    }
}

#[pymethods]
impl Stream {
    /// Its device.
    #[getter]
    fn device(&self) -> Device {
        Device { inner: Arc::clone(&self.place.opened) }
    }

    /// Waits for the stream. Lost launches, faults, findings and time-outs raise.
    #[pyo3(signature = (timeout=60.0))]
    fn synchronize(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        self.place.synchronize(py, timeout)
    }

    /// An awaitable for the end of everything launched so far: `await stream.done()`. It raises what `synchronize`
    /// raises, needs no thread, and can be cancelled, which does not stop the kernels.
    fn done<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        static DONE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let this = slf.get();
        let event = this.record(slf.py())?;
        let launches = this.launches();
        DONE.import(slf.py(), "gridlet._wait", "done")?.call1((slf, event, launches))
    }

    /// The number of launches made into the stream.
    #[getter]
    fn launches(&self) -> u64 {
        self.place.work.launches.load(Ordering::Acquire)
    }

    /// An event at this point of the stream.
    fn record(&self, py: Python<'_>) -> PyResult<Event> {
        let make = || {
            let event = gridlet_runtime::Event::new(&self.place.opened.device)?;
            self.place.work.stream.record(&event)?;
            Ok(event)
        };
        let event = py.detach(make).map_err(run_error)?;
        Ok(Event { event, opened: Arc::clone(&self.place.opened) })
    }

    /// Makes launches from now on wait for the event; the call itself does not wait.
    fn wait(&self, event: &Bound<'_, Event>) -> PyResult<()> {
        self.place.work.stream.wait_event(&event.get().event).map_err(run_error)
    }

    /// The driver's handle of the stream.
    #[getter]
    fn handle(&self) -> PyResult<u64> {
        Ok(self.place.work.stream.raw().map_err(run_error)? as u64)
    }

    /// The protocol of cuda.core and of libraries that follow it: a version and the driver's handle.
    fn __cuda_stream__(&self) -> PyResult<(u32, u64)> {
        Ok((0, self.handle()?))
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        enter(slf.get().place.clone());
        slf
    }

    fn __exit__(
        &self,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        leave();
    }

    fn __repr__(&self) -> String {
        format!("<gridlet.Stream on {}>", self.place.opened.device)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.place.opened.keep_unreported(&self.place.work);
    }
}

/// A point in a stream.
#[pyclass(frozen, module = "gridlet")]
pub(crate) struct Event {
    event: gridlet_runtime::Event,
    opened: Arc<Opened>,
}

#[pymethods]
impl Event {
    /// Whether the work before the event has ended. Faults raise.
    #[getter]
    fn is_done(&self) -> PyResult<bool> {
        self.event.is_done().map_err(|error| self.opened.error(error))
    }

    /// Milliseconds from this event to `later`. Waits for both.
    fn elapsed_ms(&self, py: Python<'_>, later: &Bound<'_, Event>) -> PyResult<f32> {
        let later = later.get();
        py.detach(|| self.event.elapsed_ms(&later.event)).map_err(|error| self.opened.error(error))
    }

    fn __repr__(&self) -> String {
        format!("<gridlet.Event on {}>", self.opened.device)
    }
}
