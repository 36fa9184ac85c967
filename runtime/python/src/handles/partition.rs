//! Green contexts.

use std::sync::Arc;

use gridlet_runtime::GreenContext;
use pyo3::prelude::*;

use super::device::{Device, Opened};
use super::stream::{Place, Stream, enter, leave};
use crate::errors::run_error;

/// A partition of a device's SMs, a green context: `Device.partition` makes one.
///
/// Used with `with`, it is where launches in this thread go that name no stream.
#[pyclass(frozen, weakref, module = "gridlet")]
pub(crate) struct Partition {
    green: GreenContext,
    place: Place,
}

impl Partition {
    pub(super) fn new(py: Python<'_>, opened: &Arc<Opened>, sms: u32) -> PyResult<Partition> {
        let make = || {
            let green = GreenContext::with_sms(&opened.device, sms)?;
            let stream = green.stream()?;
            Ok((green, stream))
        };
        let (green, stream) = py.detach(make).map_err(run_error)?;
        let place = Place { opened: Arc::clone(opened), work: opened.new_work(stream) };
        Ok(Partition { green, place })
    }
}

#[pymethods]
impl Partition {
    /// The number of SMs, which the driver may have rounded up; on the CPU device, of worker threads.
    #[getter]
    fn sms(&self) -> u32 {
        self.green.sm_count()
    }

    /// Its device.
    #[getter]
    fn device(&self) -> Device {
        Device { inner: Arc::clone(&self.place.opened) }
    }

    /// A new stream in the partition. Lower priorities run first.
    #[pyo3(signature = (*, priority=0))]
    fn stream(&self, priority: i32) -> PyResult<Stream> {
        let stream = self.green.stream_with_priority(priority).map_err(run_error)?;
        Ok(Stream::new(&self.place.opened, stream))
    }

    /// Waits for the launches that `with partition:` made. Lost launches, faults, findings and time-outs raise.
    #[pyo3(signature = (timeout=60.0))]
    fn synchronize(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        self.place.synchronize(py, timeout)
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
        format!("<gridlet.Partition of {} SMs of {}>", self.sms(), self.place.opened.device)
    }
}
