//! Green contexts.

use std::sync::Arc;

use gridlet_runtime::{
    Device as RtDevice, Error, GreenContext, ResourceDescriptor, SmResource, SplitFlags,
};
use pyo3::prelude::*;

use super::device::{Device, Opened};
use super::stream::{Place, Stream, enter, leave};
use crate::errors::{raise, run_error};

/// A partition of a device's SMs, a green context: `Device.partition` makes one.
///
/// Used with `with`, it is where launches in this thread go that name no stream.
#[pyclass(frozen, weakref, module = "gridlet")]
pub(crate) struct Partition {
    green: GreenContext,
    place: Place,
}

impl Partition {
    /// One of at least `sms` SMs; with an index, that one of those which share no SMs.
    pub(super) fn new(
        py: Python<'_>,
        opened: &Arc<Opened>,
        sms: u32,
        index: Option<u32>,
    ) -> PyResult<Partition> {
        let device = &opened.device;
        let make = || {
            let green = match index {
                None => GreenContext::with_sms(device, sms)?,
                Some(index) => match group(device, sms, index)? {
                    Ok(group) => GreenContext::new(&ResourceDescriptor::new([group])?)?,
                    Err(count) => return Ok(Err(count)),
                },
            };
            let stream = green.stream()?;
            Ok(Ok((green, stream)))
        };
        let (green, stream) = py.detach(make).map_err(run_error)?.map_err(|count| {
            let text = format!("index: {device} has {count} partitions of {sms} SMs");
            raise("LaunchError", text)
        })?;
        let place = Place { opened: Arc::clone(opened), work: opened.new_work(stream) };
        Ok(Partition { green, place })
    }
}

/// The number of groups of at least `sms` SMs that share none.
pub(super) fn count_groups(device: &RtDevice, sms: u32) -> Result<u32, Error> {
    count_groups_of(&device.sm_resource()?, sms)
}

fn count_groups_of(all: &SmResource, sms: u32) -> Result<u32, Error> {
    let (available, granularity) = (all.sm_count(), all.granularity());
    if sms == 0 || sms > available {
        let (minimum, alignment) = (granularity.minimum, granularity.alignment);
        return Err(Error::Partition { asked: sms, available, minimum, alignment });
    }
    match granularity.round_up(sms) > available {
        // The whole device, as `GreenContext::with_sms` has it.
        true => Ok(1),
        false => all.count_groups(sms, SplitFlags::default()),
    }
}

/// One of these groups, or their number if there are not so many.
fn group(device: &RtDevice, sms: u32, index: u32) -> Result<Result<SmResource, u32>, Error> {
    let all = device.sm_resource()?;
    let count = count_groups_of(&all, sms)?;
    if index >= count {
        return Ok(Err(count));
    }
    if all.granularity().round_up(sms) > all.sm_count() {
        return Ok(Ok(all));
    }
    let groups = all.split_by_count(count, sms, SplitFlags::default())?.groups;
    Ok(groups.into_iter().nth(index as usize).ok_or(count))
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
