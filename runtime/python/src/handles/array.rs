//! Arrays in device memory.

use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gridlet_runtime::DeviceMemory;
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::device::{Device, Opened};
use super::{detached, share};
use crate::dlpack;
use crate::dtype::{DType, numpy, numpy_dtype};
use crate::errors::run_error;

/// An array in a device's memory, in row-major order. `Device.array`, `zeros`, `empty` and `share` make one.
///
/// On the CPU device, `numpy.asarray(array)` shares the memory; on a GPU, PyTorch, CuPy, JAX and Numba do, through
/// `__dlpack__` and `__cuda_array_interface__`. Asking for the memory waits for the device.
#[pyclass(frozen, weakref, module = "gridlet")]
pub(crate) struct Array {
    memory: ManuallyDrop<Mutex<DeviceMemory>>,
    pub(crate) address: u64,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<u64>,
    pub(crate) read_only: bool,
    pub(crate) opened: Arc<Opened>,
    /// The object whose memory it shares.
    base: Option<Py<PyAny>>,
}

impl Drop for Array {
    fn drop(&mut self) {
        // SAFETY: nobody uses the field after the drop.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        let memory = memory.into_inner().unwrap_or_else(PoisonError::into_inner);
        let opened = Arc::clone(&self.opened);
        detached(memory, move |memory| opened.free(memory));
    }
}

/// The number of bytes of an array, at most what an address can count.
fn bytes_of(dtype: &DType, shape: &[u64]) -> PyResult<u64> {
    let count = shape.iter().try_fold(dtype.size(), |bytes, length| bytes.checked_mul(*length));
    count
        .filter(|bytes| *bytes < 1 << 62)
        .ok_or_else(|| PyValueError::new_err(format!("an array of shape {shape:?} is too large")))
}

/// The bytes of a NumPy array that is contiguous, and whether it is read-only.
fn host_bytes(array: &Bound<'_, PyAny>) -> PyResult<(u64, bool)> {
    array.getattr("__array_interface__")?.get_item("data")?.extract()
}

/// A shape that Python code gives: a number or a sequence of numbers.
fn shape_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    if let Ok(length) = object.extract::<u64>() {
        return Ok(vec![length]);
    }
    object.extract::<Vec<u64>>().map_err(|_| {
        PyTypeError::new_err("shape: give a number of elements, or a tuple of such numbers")
    })
}

/// A type that Python code gives, or `float32`.
fn dtype_of(py: Python<'_>, object: Option<&Bound<'_, PyAny>>) -> PyResult<DType> {
    let default = "float32".into_pyobject(py)?.into_any();
    DType::of_numpy(&numpy_dtype(object.unwrap_or(&default))?)
}

impl Array {
    fn of_memory(
        opened: &Arc<Opened>,
        memory: DeviceMemory,
        dtype: DType,
        shape: Vec<u64>,
    ) -> Array {
        let address = memory.address();
        opened.note_memory(address, memory.len());
        Array {
            memory: ManuallyDrop::new(Mutex::new(memory)),
            address,
            dtype,
            shape,
            read_only: false,
            opened: Arc::clone(opened),
            base: None,
        }
    }

    /// An array on memory of another library.
    pub(super) fn shared(
        opened: &Arc<Opened>,
        memory: DeviceMemory,
        dtype: DType,
        shape: Vec<u64>,
        read_only: bool,
        base: &Bound<'_, PyAny>,
    ) -> Array {
        let mut array = Array::of_memory(opened, memory, dtype, shape);
        array.read_only = read_only;
        array.base = Some(base.clone().unbind());
        array
    }

    pub(super) fn new(
        opened: &Arc<Opened>,
        shape: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        zeroed: bool,
    ) -> PyResult<Array> {
        let py = shape.py();
        let (dtype, shape) = (dtype_of(py, dtype)?, shape_of(shape)?);
        let bytes = bytes_of(&dtype, &shape)?.max(1);
        let make = || match zeroed {
            true => DeviceMemory::alloc_zeroed(&opened.device, bytes),
            false => DeviceMemory::alloc(&opened.device, bytes),
        };
        let memory = py.detach(|| opened.allocate(make))?;
        Ok(Array::of_memory(opened, memory, dtype, shape))
    }

    /// A copy of another array's elements.
    pub(super) fn copied(
        opened: &Arc<Opened>,
        values: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Array> {
        let py = values.py();
        if !opened.is_cpu() && dtype.is_none() && share::is_on_gpu(values)? {
            let theirs = share::share(opened, &opened.work()?.stream, values)?;
            let array =
                Array::uninitialized(py, opened, theirs.dtype.clone(), theirs.shape.clone())?;
            py.detach(|| array.memory().copy_from(&theirs.memory())).map_err(run_error)?;
            return Ok(array);
        }
        let options = PyDict::new(py);
        options.set_item("order", "C")?;
        options.set_item("dtype", dtype)?;
        let values = numpy(py)?.getattr("asarray")?.call((values,), Some(&options))?;
        let dtype = DType::of_numpy(&values.getattr("dtype")?)?;
        let array = Array::uninitialized(py, opened, dtype, values.getattr("shape")?.extract()?)?;
        array.fill_from(&values)?;
        Ok(array)
    }

    fn uninitialized(
        py: Python<'_>,
        opened: &Arc<Opened>,
        dtype: DType,
        shape: Vec<u64>,
    ) -> PyResult<Array> {
        let bytes = bytes_of(&dtype, &shape)?.max(1);
        let memory = py.detach(|| DeviceMemory::alloc(&opened.device, bytes)).map_err(run_error)?;
        Ok(Array::of_memory(opened, memory, dtype, shape))
    }

    /// Copies the elements of a contiguous NumPy array of the same type and shape.
    fn fill_from(&self, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = self.nbytes();
        if bytes == 0 {
            return Ok(());
        }
        let (address, _) = host_bytes(values)?;
        // SAFETY: `values` is contiguous and has as many bytes, and the reference keeps it alive.
        let from = unsafe { std::slice::from_raw_parts(address as *const u8, bytes as usize) };
        let copied = values.py().detach(|| self.memory().copy_from_host(from));
        self.opened.reported(copied)
    }

    fn memory(&self) -> MutexGuard<'_, DeviceMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it shares the memory of this object.
    pub(crate) fn is_of(&self, object: &Bound<'_, PyAny>) -> bool {
        self.base.as_ref().is_some_and(|base| base.is(object))
    }

    /// The elements and their number, as messages name them.
    pub(crate) fn describe(&self) -> String {
        format!("an array of {} of shape {:?}", self.dtype, self.shape)
    }

    /// Refuses to write to memory that was lent for reading only.
    fn writable(&self) -> PyResult<()> {
        match self.read_only {
            true => Err(PyValueError::new_err("the array is read-only")),
            false => Ok(()),
        }
    }

    /// Waits for the launches that may still write.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let waited = py.detach(|| self.opened.wait(gridlet_runtime::DEFAULT_TIMEOUT));
        self.opened.reported(waited)
    }

    /// The parts that both array interfaces have. Without strides, which would be None: NumPy 2.4 never gives back its
    /// reference to that.
    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        let dtype = self.dtype.to_numpy(py)?;
        interface.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        interface.set_item("typestr", dtype.getattr("str")?)?;
        if let DType::Struct { .. } = self.dtype {
            interface.set_item("descr", dtype.getattr("descr")?)?;
        }
        interface.set_item("data", (self.address, self.read_only))?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }
}

#[pymethods]
impl Array {
    /// The lengths of its dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// The type of its elements, a `numpy.dtype`.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.dtype.to_numpy(py)
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> u64 {
        self.shape.iter().product()
    }

    /// The number of bytes.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.size().saturating_mul(self.dtype.size())
    }

    /// The device that holds it.
    #[getter]
    fn device(&self) -> Device {
        Device { inner: Arc::clone(&self.opened) }
    }

    /// The address of its first byte on the device.
    #[getter]
    fn address(&self) -> u64 {
        self.address
    }

    /// Whether kernels may only read it, because another library lent it so.
    #[getter]
    fn read_only(&self) -> bool {
        self.read_only
    }

    /// A copy in host memory. Waits for the device.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape = PyTuple::new(py, &self.shape)?;
        let values = numpy(py)?.getattr("empty")?.call1((shape, self.dtype.to_numpy(py)?))?;
        let bytes = self.nbytes();
        if bytes > 0 {
            let (address, _) = host_bytes(&values)?;
            // SAFETY: the new array is contiguous and has as many bytes.
            let to = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, bytes as usize) };
            let copy = || self.memory().copy_start_to_host(to);
            let copied = py.detach(copy);
            self.opened.reported(copied)?;
        }
        Ok(values)
    }

    /// The elements as Python objects. Waits for the device.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.numpy(py)?.call_method0("tolist")
    }

    /// Copies the elements of a host array of the same shape, converted to the array's type if that loses nothing but
    /// precision. Waits for the device.
    fn copy_from(&self, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = values.py();
        let numpy = numpy(py)?;
        let values = numpy.getattr("asarray")?.call1((values,))?;
        let shape: Vec<u64> = values.getattr("shape")?.extract()?;
        if shape != self.shape {
            let text = format!("values: shape {shape:?} given, {:?} expected", self.shape);
            return Err(PyTypeError::new_err(text));
        }
        self.writable()?;
        let options = PyDict::new(py);
        options.set_item("order", "C")?;
        options.set_item("casting", "same_kind")?;
        let dtype = self.dtype.to_numpy(py)?;
        let values = values.call_method("astype", (dtype,), Some(&options))?;
        self.fill_from(&values)
    }

    /// Sets every element. Waits for the device.
    fn fill(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        self.writable()?;
        let shape = PyTuple::new(py, &self.shape)?;
        let arguments = (shape, value, self.dtype.to_numpy(py)?);
        self.fill_from(&numpy(py)?.getattr("full")?.call1(arguments)?)
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if !self.opened.is_cpu() {
            let why = "a GPU's memory is not NumPy's: copy it with `array.numpy()`";
            return Err(PyAttributeError::new_err(why));
        }
        let waited = py.detach(|| self.memory().host_address().map(|_| ()));
        self.opened.reported(waited)?;
        self.interface(py)
    }

    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.opened.is_cpu() {
            let why = "an array of the CPU device is in host memory: use `numpy.asarray(array)`";
            return Err(PyAttributeError::new_err(why));
        }
        self.wait(py)?;
        let interface = self.interface(py)?;
        interface.set_item("stream", py.None())?;
        Ok(interface)
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let device = this.__dlpack_device__();
        if dl_device.is_some_and(|wanted| wanted != device) || copy == Some(true) {
            let why = "the array is lent as it is: neither copied nor moved to another device";
            return Err(PyBufferError::new_err(why));
        }
        let DType::Scalar(scalar) = this.dtype else {
            let why = format!("DLPack has no type like {}", this.dtype);
            return Err(PyBufferError::new_err(why));
        };
        // -1 says that the consumer orders its work itself.
        if stream != Some(-1) {
            this.wait(py)?;
        }
        let lent = dlpack::Lent {
            address: this.address,
            scalar,
            shape: this.shape.iter().map(|length| *length as i64).collect(),
            device,
            read_only: this.read_only,
            owner: slf.clone().into_any().unbind(),
        };
        dlpack::lend(py, lent, max_version)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        match self.opened.is_cpu() {
            true => (dlpack::CPU, 0),
            false => (dlpack::CUDA, self.opened.device.info().ordinal as i32),
        }
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.shape.first() {
            Some(length) => Ok(*length as usize),
            None => Err(PyTypeError::new_err("an array without dimensions has no length")),
        }
    }

    fn __repr__(&self) -> String {
        format!("<gridlet.Array of {} {:?} on {}>", self.dtype, self.shape, self.opened.device)
    }
}
