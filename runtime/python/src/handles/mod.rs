//! Devices, streams, partitions and arrays. They give and take each other, so they are one folder.

mod array;
mod device;
mod partition;
mod share;
mod stream;

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pub(crate) use array::Array;
pub(crate) use device::{Device, Opened, default_device};
pub(crate) use partition::Partition;
pub(crate) use stream::{Event, Place, Stream, current};

/// A time limit in seconds.
fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero()).ok_or_else(
        || PyValueError::new_err(format!("timeout: {seconds} is not a number of seconds above 0")),
    )
}

/// Ends a value without keeping other Python threads from running.
fn detached<T: Send>(value: T, end: impl FnOnce(T) + Send) {
    let mut both = Some((value, end));
    // While Python shuts down, nobody can attach any more; what is left is dropped all the same.
    let _ = Python::try_attach(|py| {
        if let Some((value, end)) = both.take() {
            py.detach(|| end(value));
        }
    });
}
