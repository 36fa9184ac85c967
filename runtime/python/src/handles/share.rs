//! Memory of other libraries, without a copy.

use std::sync::Arc;

use gridlet_runtime::{DeviceMemory, Stream as RtStream};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::array::Array;
use super::device::Opened;
use crate::dlpack::{self, CPU, CUDA, CUDA_HOST, CUDA_MANAGED};
use crate::dtype::{DType, numpy_dtype};
use crate::errors::run_error;

/// Memory that another library has described.
struct Found {
    address: u64,
    dtype: DType,
    shape: Vec<u64>,
    read_only: bool,
}

impl Found {
    fn bytes(&self) -> u64 {
        let count = self.shape.iter().fold(1u64, |count, length| count.saturating_mul(*length));
        count.saturating_mul(self.dtype.size())
    }
}

/// An array on the memory of an object. The stream's launches come after the other library's work.
pub(super) fn share(
    opened: &Arc<Opened>,
    stream: &RtStream,
    object: &Bound<'_, PyAny>,
) -> PyResult<Array> {
    let py = object.py();
    if opened.is_cpu()
        && let Some(interface) = interface(object, "__array_interface__")?
    {
        return finish(opened, read(object, &interface)?, object, object.clone().unbind());
    }
    if object.hasattr("__dlpack__")? {
        let (kind, number) = dlpack::device_of(object)?;
        let fits = match opened.is_cpu() {
            true => matches!(kind, CPU | CUDA_HOST),
            false => {
                kind == CUDA && number as u32 == opened.device.info().ordinal
                    || matches!(kind, CUDA_HOST | CUDA_MANAGED)
            }
        };
        if !fits {
            return Err(elsewhere(opened, object, &format!("DLPack's device {kind}:{number}")));
        }
        let handle = match opened.is_cpu() {
            true => None,
            false => Some(stream.raw().map_err(run_error)? as u64),
        };
        let borrowed = dlpack::borrow(object, handle.filter(|_| kind == CUDA))?;
        let found = Found {
            address: borrowed.address,
            dtype: DType::Scalar(borrowed.scalar),
            shape: borrowed.shape,
            read_only: borrowed.read_only,
        };
        return finish(opened, found, object, borrowed.owner);
    }
    if !opened.is_cpu()
        && let Some(interface) = interface(object, "__cuda_array_interface__")?
    {
        // Version 3 of the interface names the stream whose work must come first.
        if let Some(theirs) = interface.get_item("stream")?.filter(|stream| !stream.is_none()) {
            let theirs: u64 = theirs.extract()?;
            let owner = object.clone().unbind();
            let wait = || {
                // SAFETY: the object names a stream of the device's primary context, and is kept meanwhile.
                let theirs = unsafe { RtStream::borrow_raw(&opened.device, theirs as _, owner) }?;
                let event = gridlet_runtime::Event::new(&opened.device)?;
                theirs.record(&event)?;
                stream.wait_event(&event)
            };
            py.detach(wait).map_err(run_error)?;
        }
        return finish(opened, read(object, &interface)?, object, object.clone().unbind());
    }
    Err(elsewhere(opened, object, "none of the protocols for shared arrays there"))
}

/// Whether an object's memory is a GPU's.
pub(super) fn is_on_gpu(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.hasattr("__dlpack_device__")? {
        return Ok(matches!(dlpack::device_of(object)?.0, CUDA | CUDA_MANAGED));
    }
    object.hasattr("__cuda_array_interface__")
}

/// The value of `__array_interface__` or `__cuda_array_interface__`.
fn interface<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
    if !object.hasattr(name)? {
        return Ok(None);
    }
    Ok(Some(object.getattr(name)?.cast_into()?))
}

/// Reads an array interface.
fn read(object: &Bound<'_, PyAny>, interface: &Bound<'_, PyDict>) -> PyResult<Found> {
    let part = |name: &str| {
        interface
            .get_item(name)?
            .ok_or_else(|| PyTypeError::new_err(format!("its array interface has no `{name}`")))
    };
    let dtype = match object.getattr("dtype") {
        // More exact than the interface, which has no offsets.
        Ok(dtype) => numpy_dtype(&dtype).or_else(|_| numpy_dtype(&part("typestr")?))?,
        Err(_) => numpy_dtype(&part("typestr")?)?,
    };
    let (address, read_only): (u64, bool) = part("data")?.extract()?;
    let found = Found {
        address,
        dtype: DType::of_numpy(&dtype)?,
        shape: part("shape")?.extract()?,
        read_only,
    };
    let strides = interface.get_item("strides")?.filter(|strides| !strides.is_none());
    if let Some(strides) = strides {
        let mut expected = found.dtype.size() as i64;
        let strides: Vec<i64> = strides.extract()?;
        for (length, stride) in found.shape.iter().zip(&strides).rev() {
            if *length > 1 && *stride != expected && !found.shape.contains(&0) {
                return Err(PyValueError::new_err(
                    "the array is not contiguous in row-major order; make a contiguous copy first",
                ));
            }
            expected *= *length as i64;
        }
    }
    Ok(found)
}

fn elsewhere(opened: &Opened, object: &Bound<'_, PyAny>, place: &str) -> PyErr {
    let kind = object.get_type();
    let name = kind.name().map(|name| name.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!(
        "a `{name}` with {place} is not in the memory of {}; copy it with `device.array(…)`",
        opened.device
    ))
}

fn finish(
    opened: &Arc<Opened>,
    found: Found,
    object: &Bound<'_, PyAny>,
    owner: impl Send + Sync + 'static,
) -> PyResult<Array> {
    let bytes = found.bytes();
    if opened.knows(found.address, bytes) {
        // An array that was dropped may still have it.
        object.py().detach(|| opened.settle());
    }
    if opened.knows(found.address, bytes) {
        return Err(PyValueError::new_err(
            "a checking device sees this memory already; pass the array that was made first",
        ));
    }
    object.py().detach(|| opened.limit_freed());
    // SAFETY: the other library has described the memory, and `owner` keeps it.
    let memory = unsafe { DeviceMemory::borrow_raw(&opened.device, found.address, bytes, owner) };
    let memory = memory.map_err(run_error)?;
    Ok(Array::shared(opened, memory, found.dtype, found.shape, found.read_only, object))
}

/// The driver's handle of another library's stream.
pub(super) fn stream_handle(stream: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Ok(handle) = stream.extract::<u64>() {
        return Ok(handle);
    }
    if stream.hasattr("__cuda_stream__")? {
        let (_, handle): (u32, u64) = stream.call_method0("__cuda_stream__")?.extract()?;
        return Ok(handle);
    }
    for name in ["cuda_stream", "ptr"] {
        if let Ok(handle) = stream.getattr(name) {
            return handle.extract();
        }
    }
    // Numba's is a `ctypes.c_void_p`, whose value for the default stream is None, or an object of NVIDIA's bindings.
    if let Ok(handle) = stream.getattr("handle") {
        let value = handle.getattr("value").unwrap_or(handle);
        return if value.is_none() { Ok(0) } else { value.call_method0("__int__")?.extract() };
    }
    Err(PyTypeError::new_err(
        "stream: expected an object with `__cuda_stream__`, `cuda_stream`, `ptr` or `handle`, or a handle",
    ))
}
