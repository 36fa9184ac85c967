//! Kernels and their launches.

use std::sync::{Arc, Mutex, PoisonError};

use gridlet_runtime::manifest;
use gridlet_runtime::{Arg, Dim3, Kernel as RtKernel, LaunchConfig};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::arguments::Packer;
use super::core::Core;
use crate::errors::{run_error, to_python};
use crate::handles::{Array, Opened, Place, Stream, current, default_device};

/// A kernel of a program. `kernel[grid, block](arguments…)` launches it.
#[pyclass(frozen, weakref, module = "gridlet")]
pub(crate) struct Kernel {
    core: Arc<Core>,
    at: usize,
    /// The kernel on the device that it was launched on last, by the device's number.
    last: Mutex<Option<(u64, RtKernel)>>,
}

impl Kernel {
    pub(super) fn new(core: Arc<Core>, at: usize) -> Kernel {
        Kernel { core, at, last: Mutex::default() }
    }

    fn manifest(&self) -> &manifest::Kernel {
        &self.core.manifest.kernels[self.at]
    }

    /// The kernel on a device.
    fn on(&self, py: Python<'_>, opened: &Arc<Opened>) -> PyResult<RtKernel> {
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((number, kernel)) = &*last()
            && *number == opened.number
        {
            return Ok(kernel.clone());
        }
        let kernel = py.detach(|| {
            let program = self.core.loaded(opened)?;
            program.kernel(&self.manifest().name).map_err(run_error)
        })?;
        *last() = Some((opened.number, kernel.clone()));
        Ok(kernel)
    }
}

/// `x`, `(x, y)` or `(x, y, z)`.
fn extent(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Dim3> {
    let wrong = || {
        let text = format!("{what}: expected a number from 0 to 4294967295, or a tuple of up to 3");
        PyTypeError::new_err(text)
    };
    if let Ok(tuple) = object.cast::<PyTuple>() {
        let numbers: Vec<u32> = tuple.extract().map_err(|_| wrong())?;
        return match numbers[..] {
            [x] => Ok(Dim3::new(x, 1, 1)),
            [x, y] => Ok(Dim3::new(x, y, 1)),
            [x, y, z] => Ok(Dim3::new(x, y, z)),
            _ => Err(wrong()),
        };
    }
    Ok(Dim3::new(object.extract().map_err(|_| wrong())?, 1, 1))
}

/// The dynamic shared memory of a block in bytes.
fn shared_bytes(object: &Bound<'_, PyAny>) -> PyResult<u32> {
    object.extract().map_err(|_| {
        PyTypeError::new_err("shared: expected a number of bytes from 0 to 4294967295")
    })
}

/// The stream that an argument names.
fn place(stream: &Bound<'_, PyAny>) -> PyResult<Option<Place>> {
    if stream.is_none() {
        return Ok(None);
    }
    let stream = stream.cast::<Stream>().map_err(|_| {
        PyTypeError::new_err(
            "stream: expected a gridlet.Stream; `device.external_stream(…)` makes one of another library's",
        )
    })?;
    Ok(Some(stream.get().place.clone()))
}

#[pymethods]
impl Kernel {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.manifest().name
    }

    /// Its parameters: for each its `name`, `type`, `offset`, `size` and `alignment`.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.core.layout()["kernels"][self.at]["parameters"])
    }

    /// `kernel[grid, block]`, `kernel[grid, block, shared]` or `kernel[grid, block, shared, stream]`: the launch with these
    /// blocks of so many threads, to call with the kernel's arguments. Extents are numbers, or tuples of up to 3;
    /// `shared` is the dynamic shared memory of a block in bytes.
    fn __getitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyTuple>) -> PyResult<Launcher> {
        let (count, none) = (key.len(), slf.py().None());
        if !(2..=4).contains(&count) {
            let text = format!(
                "kernel[grid, block, shared, stream]: {count} values given, 2 to 4 expected"
            );
            return Err(PyTypeError::new_err(text));
        }
        let mut config = LaunchConfig::new(
            extent(&key.get_item(0)?, "grid")?,
            extent(&key.get_item(1)?, "block")?,
        );
        if count > 2 {
            config.shared_bytes = shared_bytes(&key.get_item(2)?)?;
        }
        let stream = if count > 3 { key.get_item(3)? } else { none.into_bound(slf.py()) };
        Ok(Launcher { kernel: slf.clone().unbind(), config, place: place(&stream)? })
    }

    #[pyo3(signature = (*_arguments, **_options))]
    fn __call__(
        &self,
        _arguments: &Bound<'_, PyTuple>,
        _options: Option<&Bound<'_, pyo3::types::PyDict>>,
    ) -> PyResult<()> {
        let name = self.name();
        let text = format!("a launch needs a grid and a block: `{name}[blocks, threads](…)`");
        Err(PyTypeError::new_err(text))
    }

    fn __repr__(&self) -> String {
        let parameters = self.manifest().parameters.iter();
        let parameters: Vec<_> = parameters.map(|it| format!("{}: {}", it.name, it.ty)).collect();
        format!("<gridlet.Kernel {}({})>", self.name(), parameters.join(", "))
    }
}

/// A kernel with a grid and a block: calling it launches.
#[pyclass(frozen, module = "gridlet")]
pub(crate) struct Launcher {
    kernel: Py<Kernel>,
    config: LaunchConfig,
    place: Option<Place>,
}

#[pymethods]
impl Launcher {
    /// Launches the kernel without waiting for it. It runs in `stream`, else in that of the innermost `with` block of this
    /// thread, else in the default stream of the device that holds the arrays, else of `Device()`.
    #[pyo3(signature = (*arguments, shared=None, stream=None))]
    fn __call__(
        &self,
        py: Python<'_>,
        arguments: &Bound<'_, PyTuple>,
        shared: Option<&Bound<'_, PyAny>>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let kernel = self.kernel.get();
        let named = match stream {
            Some(stream) => place(stream)?,
            None => None,
        };
        let place = match named.or_else(|| self.place.clone()).or_else(current) {
            Some(place) => place,
            None => {
                let mut arrays = arguments.iter_borrowed();
                let array =
                    arrays.find_map(|argument| argument.cast::<Array>().ok().map(|a| a.to_owned()));
                let opened = match array {
                    Some(array) => Arc::clone(&array.get().opened),
                    None => default_device(py)?,
                };
                Place { work: opened.work()?, opened }
            }
        };
        let loaded = kernel.on(py, &place.opened)?;
        let packer = Packer {
            kernel: kernel.manifest(),
            wanted: kernel.core.wanted(kernel.at),
            manifest: &kernel.core.manifest,
            place: &place,
            kept: Vec::new(),
        };
        let (values, kept) = packer.pack(arguments)?;
        let mut config = self.config;
        if let Some(shared) = shared {
            config.shared_bytes = shared_bytes(shared)?;
        }
        place.opened.note_sources(kernel.core.sources());
        py.detach(|| {
            let arguments: Vec<Arg<'_>> = values.iter().map(|value| value.arg()).collect();
            place.work.stream.launch(&loaded, &config, &arguments)
        })
        .map_err(|error| place.opened.error(error))?;
        let mut is_full = place.work.note_launch(&kernel.core);
        if !kept.is_empty() {
            is_full |= place.work.keep(kept);
        }
        if is_full {
            place.synchronize(py, gridlet_runtime::DEFAULT_TIMEOUT.as_secs_f64())?;
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        let LaunchConfig { grid, block, shared_bytes, .. } = &self.config;
        let name = self.kernel.get().name();
        format!("<gridlet.Launcher {name}[{grid}, {block}, {shared_bytes}]>")
    }
}
