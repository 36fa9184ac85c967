//! Opened devices.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use gridlet::source::SourceMap;
use gridlet_runtime::{
    CpuConfig, DeviceInfo, DeviceKind, DeviceMemory, DeviceSelector, Stream as RtStream,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::array::Array;
use super::partition::{Partition, count_groups};
use super::stream::{Place, Stream, Work, enter, leave};
use super::{duration, share};
use crate::errors::{run_error, run_error_in, to_python};

/// What a device was opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Settings {
    selector: DeviceSelector,
    check: bool,
    seed: Option<u64>,
    threads: Option<usize>,
}

/// An opened device, which every Python object that uses it shares.
pub(crate) struct Opened {
    pub(crate) device: gridlet_runtime::Device,
    /// Identifies it in this process.
    pub(crate) number: u64,
    /// Whether it checks every access.
    pub(crate) check: bool,
    /// The stream of launches that name none.
    work: OnceLock<Arc<Work>>,
    /// All streams that Python code has.
    works: Mutex<Vec<Weak<Work>>>,
    /// Memory of arrays that were dropped while kernels may have used it.
    freed: Mutex<Vec<DeviceMemory>>,
    /// Streams that Python code has dropped before it waited for them: the device's next wait reports on them.
    unreported: Mutex<Vec<Arc<Work>>>,
    /// What a wait found that had nobody to tell, because it was for memory to free.
    untold: Mutex<Option<gridlet_runtime::Error>>,
    /// On a checking device, the memory that the checker knows, as first and last address.
    ranges: Mutex<Vec<(u64, u64)>>,
    /// On a checking device, the sources of the program launched last, for the lines that findings show.
    sources: Mutex<Option<Arc<SourceMap>>>,
}

/// The most dropped streams that a device keeps for its next wait. Dropping the oldest waits for it.
const MOST_UNREPORTED: usize = 256;

/// The most dropped arrays, and the most bytes of them, that wait to be freed when another is made.
const MOST_FREED: usize = 4096;
const MOST_FREED_BYTES: u64 = 256 << 20;

/// Devices that are open, by their settings: opening one again gives the same one.
static OPENED: Mutex<Vec<(Settings, Weak<Opened>)>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Opened {
    fn open(settings: Settings) -> PyResult<Arc<Opened>> {
        static NEXT: AtomicU64 = AtomicU64::new(0);

        let mut opened = lock(&OPENED);
        opened.retain(|(_, device)| device.strong_count() > 0);
        let known = opened.iter().find(|(known, _)| *known == settings);
        if let Some(device) = known.and_then(|(_, device)| device.upgrade()) {
            return Ok(device);
        }
        let Settings { selector, check, seed, threads } = settings;
        let device = match selector {
            DeviceSelector::Cuda(ordinal) => gridlet_runtime::Device::open(ordinal),
            _ => {
                let config = CpuConfig { threads, seed, check, ..CpuConfig::default() };
                gridlet_runtime::Device::open_cpu(config)
            }
        };
        let opened_now = Arc::new(Opened {
            device: device.map_err(run_error)?,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            check,
            work: OnceLock::new(),
            works: Mutex::default(),
            freed: Mutex::default(),
            unreported: Mutex::default(),
            untold: Mutex::default(),
            ranges: Mutex::default(),
            sources: Mutex::default(),
        });
        opened.push((settings, Arc::downgrade(&opened_now)));
        Ok(opened_now)
    }

    /// Whether it is the CPU device.
    pub(crate) fn is_cpu(&self) -> bool {
        self.info().kind == DeviceKind::Cpu
    }

    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    /// The stream of launches that name none.
    pub(crate) fn work(&self) -> PyResult<Arc<Work>> {
        if let Some(work) = self.work.get() {
            return Ok(Arc::clone(work));
        }
        let made = self.new_work(self.device.stream().map_err(run_error)?);
        Ok(Arc::clone(self.work.get_or_init(|| made)))
    }

    /// Keeps a stream that Python code drops, if no wait has reported on its launches.
    pub(super) fn keep_unreported(&self, work: &Arc<Work>) {
        if work.is_unreported() {
            let mut unreported = lock(&self.unreported);
            unreported.push(Arc::clone(work));
            let oldest = (unreported.len() > MOST_UNREPORTED).then(|| unreported.remove(0));
            drop(unreported);
            if let Some(oldest) = oldest {
                let _ = Python::try_attach(|py| py.detach(|| self.settle()));
                drop(oldest);
            }
        }
    }

    /// Waits for everything launched on the device. Call it without the interpreter's lock.
    pub(super) fn wait(&self, timeout: Duration) -> Result<(), gridlet_runtime::Error> {
        let dropped = std::mem::take(&mut *lock(&self.unreported));
        let works = self.works();
        let waits = works.iter().filter(|work| work.is_unreported()).map(|work| work.wait(timeout));
        // All of them, also after one that reports something; the first report counts.
        let waits: Vec<_> = waits.collect();
        drop(dropped);
        let rest = self.device.synchronize(timeout);
        let waited = waits.into_iter().chain([rest]).collect();
        self.after(&waited);
        waited
    }

    /// Frees what was dropped, after a wait.
    pub(super) fn after(&self, waited: &Result<(), gridlet_runtime::Error>) {
        use gridlet_runtime::Error::{TimedOut, Unusable};
        if !matches!(waited, Err(TimedOut { .. } | Unusable { .. })) {
            self.free_if_idle();
        }
    }

    /// The streams that Python code still has. Whoever drops the last reference to one needs the interpreter's lock, so none is
    /// dropped here under `works`, for which threads with that lock wait.
    fn works(&self) -> Vec<Arc<Work>> {
        lock(&self.works).iter().filter_map(Weak::upgrade).collect()
    }

    /// A stream of the device, for launches.
    pub(super) fn new_work(&self, stream: RtStream) -> Arc<Work> {
        let work = Arc::new(Work::new(stream));
        let mut works = lock(&self.works);
        if works.len() == works.capacity() {
            works.retain(|work| work.strong_count() > 0);
        }
        works.push(Arc::downgrade(&work));
        work
    }

    /// The result of a wait, or else what an earlier wait found that had nobody to tell.
    pub(super) fn reported<T>(&self, result: Result<T, gridlet_runtime::Error>) -> PyResult<T> {
        let value = result.map_err(|error| self.error(error))?;
        // Making an exception can let other threads run, which must not find the mutex locked.
        let untold = lock(&self.untold).take();
        match untold {
            Some(error) => Err(self.error(error)),
            None => Ok(value),
        }
    }

    /// Frees memory once no kernel can use it: now, if the device is idle, else at a later wait or allocation. A drop
    /// must not wait, because Python may drop an object in any thread, also in one that a kernel waits for.
    pub(super) fn free(&self, memory: DeviceMemory) {
        lock(&self.freed).push(memory);
        self.free_if_idle();
    }

    /// Frees what was dropped, if the device is idle.
    fn free_if_idle(&self) {
        if !self.works().iter().any(|work| work.is_unreported()) {
            self.free_now();
        }
    }

    /// Frees what was dropped; the device has been waited for.
    fn free_now(&self) {
        let freed = std::mem::take(&mut *lock(&self.freed));
        if self.check {
            let mut ranges = lock(&self.ranges);
            ranges.retain(|range| freed.iter().all(|memory| memory.address() != range.0));
        }
        drop(freed);
    }

    /// Frees what was dropped, if the device is idle, or if it is so much that the device must be waited for. Whether there was
    /// anything. Call it without the interpreter's lock.
    pub(super) fn limit_freed(&self) -> bool {
        let freed = lock(&self.freed);
        let (count, bytes) = (freed.len(), freed.iter().map(DeviceMemory::len).sum::<u64>());
        drop(freed);
        if count > MOST_FREED || bytes > MOST_FREED_BYTES {
            self.settle();
        } else if count > 0 {
            self.free_if_idle();
        }
        count > 0
    }

    /// Allocates. Call it without the interpreter's lock.
    pub(super) fn allocate(
        &self,
        make: impl Fn() -> Result<DeviceMemory, gridlet_runtime::Error>,
    ) -> PyResult<DeviceMemory> {
        let waiting = self.limit_freed();
        match make() {
            // The memory may be there already, and only wait to be freed.
            Err(gridlet_runtime::Error::Cuda(_) | gridlet_runtime::Error::CpuMemory { .. })
                if waiting =>
            {
                self.settle();
                make()
            }
            other => other,
        }
        .map_err(|error| self.error(error))
    }

    /// Waits for the device to free what was dropped. The next wait raises what this one finds. Call it without the
    /// interpreter's lock.
    pub(super) fn settle(&self) {
        if let Err(error) = self.wait(gridlet_runtime::DEFAULT_TIMEOUT) {
            lock(&self.untold).get_or_insert(error);
        }
    }

    /// An error of a wait, with lines of the program's sources.
    pub(crate) fn error(&self, error: gridlet_runtime::Error) -> PyErr {
        let sources = lock(&self.sources).clone();
        run_error_in(error, sources.as_deref())
    }

    /// Remembers the sources of a program that is launched.
    pub(crate) fn note_sources(&self, sources: Option<&Arc<SourceMap>>) {
        if self.check {
            *lock(&self.sources) = sources.cloned();
        }
    }

    /// On a checking device, notes memory that it sees.
    pub(super) fn note_memory(&self, address: u64, bytes: u64) {
        if self.check {
            lock(&self.ranges).push((address, address + bytes.max(1) - 1));
        }
    }

    /// Whether a checking device sees part of this memory already.
    pub(super) fn knows(&self, address: u64, bytes: u64) -> bool {
        let last = address + bytes.max(1) - 1;
        lock(&self.ranges).iter().any(|range| range.0 <= last && address <= range.1)
    }
}

/// The device of launches that neither name a stream nor get an array: the first GPU, else the CPU.
pub(crate) fn default_device(py: Python<'_>) -> PyResult<Arc<Opened>> {
    open(py, "auto", false, None, None)
}

fn open(
    py: Python<'_>,
    name: &str,
    check: bool,
    seed: Option<u64>,
    threads: Option<usize>,
) -> PyResult<Arc<Opened>> {
    let selector: DeviceSelector = name.parse().map_err(PyValueError::new_err)?;
    let for_cpu = check || seed.is_some() || threads.is_some();
    if for_cpu && matches!(selector, DeviceSelector::Cuda(_)) {
        let why =
            "only the CPU device has `check`, `seed` and `threads`: Device(\"cpu\", check=True)";
        return Err(PyValueError::new_err(why));
    }
    if threads == Some(0) {
        return Err(PyValueError::new_err("threads: 0 threads run nothing"));
    }
    let with = |selector| Opened::open(Settings { selector, check, seed, threads });
    py.detach(|| match selector {
        DeviceSelector::Auto if for_cpu => with(DeviceSelector::Cpu),
        DeviceSelector::Auto => match gridlet_runtime::Device::open(0) {
            Ok(_) => with(DeviceSelector::Cuda(0)),
            Err(error) if error.is_absent_gpu() => with(DeviceSelector::Cpu),
            Err(error) => Err(run_error(error)),
        },
        selector => with(selector),
    })
}

/// A GPU, or this machine's processor.
///
/// Device() is the first GPU, or the CPU if there is none; Device("cuda:1") and Device("cpu") name one. Opening the same
/// device again gives the same device, as long as something still uses it. `check` (CPU only) finds wrong accesses, races
/// and barriers that not all threads reach; `seed` permutes the order of threads, blocks and grids; `threads` sets the
/// number of worker threads.
///
/// Used with `with`, it is the device of launches in this thread that name no stream.
#[pyclass(frozen, weakref, module = "gridlet")]
pub(crate) struct Device {
    pub(crate) inner: Arc<Opened>,
}

#[pymethods]
impl Device {
    #[new]
    #[pyo3(signature = (name="auto", *, check=false, seed=None, threads=None))]
    fn new(
        py: Python<'_>,
        name: &str,
        check: bool,
        seed: Option<u64>,
        threads: Option<usize>,
    ) -> PyResult<Device> {
        Ok(Device { inner: open(py, name, check, seed, threads)? })
    }

    /// "cuda:0" or "cpu".
    #[getter]
    fn name(&self) -> String {
        self.inner.device.to_string()
    }

    /// "cuda" or "cpu".
    #[getter]
    fn kind(&self) -> &'static str {
        if self.inner.is_cpu() { "cpu" } else { "cuda" }
    }

    /// Whether it checks every access.
    #[getter]
    fn check(&self) -> bool {
        self.inner.check
    }

    /// The properties of the device, as `gridlet device --json` shows them.
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &serde_json::to_value(self.inner.info()).unwrap_or_default())
    }

    /// A new array with a copy of `values`: anything that `numpy.asarray` takes, or an array on a device.
    #[pyo3(signature = (values, dtype=None))]
    fn array(
        &self,
        values: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Array> {
        Array::copied(&self.inner, values, dtype)
    }

    /// A new array of zeros. `shape` is a number or a tuple.
    #[pyo3(signature = (shape, dtype=None))]
    fn zeros(&self, shape: &Bound<'_, PyAny>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Array> {
        Array::new(&self.inner, shape, dtype, true)
    }

    /// A new array with arbitrary contents. `shape` is a number or a tuple.
    #[pyo3(signature = (shape, dtype=None))]
    fn empty(&self, shape: &Bound<'_, PyAny>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Array> {
        Array::new(&self.inner, shape, dtype, false)
    }

    /// An array on the memory of `object`, without a copy: of another library's array on this GPU
    /// (`__dlpack__`, `__cuda_array_interface__`), or of an array in host memory on the CPU device (`__array_interface__`,
    /// `__dlpack__`). Launches in `stream`, or in the default stream, come after the other library's work.
    #[pyo3(signature = (object, *, stream=None))]
    fn share(
        &self,
        object: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<Array> {
        let work = match stream {
            Some(stream) => Arc::clone(&stream.get().place.work),
            None => self.inner.work()?,
        };
        share::share(&self.inner, &work.stream, object)
    }

    /// A new stream. Lower priorities run first.
    #[pyo3(signature = (*, priority=0))]
    fn stream(&self, priority: i32) -> PyResult<Stream> {
        let stream = self.inner.device.stream_with_priority(priority).map_err(run_error)?;
        Ok(Stream::new(&self.inner, stream))
    }

    /// A stream of another library, with which launches are ordered: an object with `__cuda_stream__` (cuda.core),
    /// `cuda_stream` (PyTorch), `ptr` (CuPy) or `handle` (Numba), or the driver's handle as a number.
    fn external_stream(&self, stream: &Bound<'_, PyAny>) -> PyResult<Stream> {
        let handle = share::stream_handle(stream)?;
        let owner = stream.clone().unbind();
        // SAFETY: the object names a stream of the device's primary context, and is kept while this one is.
        let stream: Result<RtStream, _> =
            unsafe { RtStream::borrow_raw(&self.inner.device, handle as _, owner) };
        Ok(Stream::new(&self.inner, stream.map_err(run_error)?))
    }

    /// A partition of at least `sms` SMs, a green context; on the CPU device, of that many worker threads. Two may have the
    /// same SMs, unless they have different values of `index`, which is less than `count_partitions`.
    #[pyo3(signature = (*, sms, index=None))]
    fn partition(&self, py: Python<'_>, sms: u32, index: Option<u32>) -> PyResult<Partition> {
        Partition::new(py, &self.inner, sms, index)
    }

    /// The number of partitions of at least `sms` SMs that share none, in any process.
    #[pyo3(signature = (*, sms))]
    fn count_partitions(&self, py: Python<'_>, sms: u32) -> PyResult<u32> {
        py.detach(|| count_groups(&self.inner.device, sms)).map_err(run_error)
    }

    /// Waits for everything launched on the device. Lost launches, faults, findings and time-outs raise.
    #[pyo3(signature = (timeout=60.0))]
    fn synchronize(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        let timeout = duration(timeout)?;
        let waited = py.detach(|| self.inner.wait(timeout));
        self.inner.reported(waited)
    }

    /// Sets the number of bytes of device memory for the grids that kernels launch, with the launch strategy `resident`.
    fn set_launch_memory(&self, bytes: u64) {
        self.inner.device.set_launch_memory(bytes);
    }

    /// Sets the maximum number of pending launches from kernels, before the first kernel runs.
    fn set_pending_launches(&self, launches: u64) -> PyResult<()> {
        self.inner.device.set_pending_launch_limit(launches).map_err(run_error)
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let opened = &slf.get().inner;
        enter(Place { opened: Arc::clone(opened), work: opened.work()? });
        Ok(slf)
    }

    fn __exit__(
        &self,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        leave();
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Device>().is_ok_and(|other| Arc::ptr_eq(&self.inner, &other.get().inner))
    }

    fn __hash__(&self) -> u64 {
        self.inner.number
    }

    fn __repr__(&self) -> String {
        let check = if self.inner.check { ", check=True" } else { "" };
        format!("gridlet.Device(\"{}\"{check})", self.inner.device)
    }
}
