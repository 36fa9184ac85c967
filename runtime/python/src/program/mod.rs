//! Compiled programs, their kernels, and launches.

mod arguments;
mod core;
mod kernel;
mod source;

use std::sync::Arc;

use pyo3::exceptions::{PyAttributeError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::dtype::DType;
use crate::errors::to_python;
use crate::handles::Device;

use core::Core;
pub(crate) use kernel::{Kernel, Launcher};
pub(crate) use source::{compile, load, toolkit};

/// A program: `gridlet.compile` makes one, `gridlet.load` reads one from a bundle.
///
/// A kernel is an attribute, `program.quicksort`, or, for any name, `program["k::<8>"]`. The program is built for a device
/// at its first launch there.
#[pyclass(frozen, weakref, module = "gridlet")]
pub(crate) struct Program {
    core: Arc<Core>,
}

impl Program {
    fn find(&self, name: &str) -> Option<Kernel> {
        let at = self.core.manifest.kernels.iter().position(|kernel| kernel.name == name)?;
        Some(Kernel::new(Arc::clone(&self.core), at))
    }

    fn unknown(&self, name: &str) -> String {
        let known: Vec<_> =
            self.core.manifest.kernels.iter().map(|kernel| format!("`{}`", kernel.name)).collect();
        let known = if known.is_empty() { "no kernels".to_owned() } else { known.join(", ") };
        format!("no kernel `{name}`: the program has {known}")
    }
}

#[pymethods]
impl Program {
    /// The program's name.
    #[getter]
    fn name(&self) -> &str {
        &self.core.manifest.program
    }

    /// The names of its kernels, in the order of the source.
    #[getter]
    fn kernels(&self) -> Vec<&str> {
        self.core.manifest.kernels.iter().map(|kernel| kernel.name.as_str()).collect()
    }

    fn __getattr__(&self, name: &str) -> PyResult<Kernel> {
        self.find(name).ok_or_else(|| PyAttributeError::new_err(self.unknown(name)))
    }

    fn __getitem__(&self, name: &str) -> PyResult<Kernel> {
        self.find(name).ok_or_else(|| PyKeyError::new_err(self.unknown(name)))
    }

    fn __dir__<'py>(slf: &Bound<'py, Self>) -> PyResult<Vec<String>> {
        let own = slf.get_type().call_method0("mro")?;
        let mut names = Vec::new();
        for class in own.try_iter()? {
            names.extend(
                class?
                    .getattr("__dict__")?
                    .call_method0("keys")?
                    .try_iter()?
                    .map(|name| name?.extract::<String>())
                    .collect::<PyResult<Vec<_>>>()?,
            );
        }
        names.extend(slf.get().kernels().into_iter().map(str::to_owned));
        Ok(names)
    }

    /// The compiler's warnings, as dictionaries with `id`, `message`, `file`, `line`, `column`, `labels`, `notes` and `hint`.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.core.warnings(py)
    }

    /// The compiler's warnings, as `gridlet check` shows them.
    #[getter]
    fn rendered_warnings(&self) -> String {
        self.core.rendered_warnings()
    }

    /// The manifest: kernels, parameters, structs and `static` variables, with offsets and sizes in bytes.
    #[getter]
    fn manifest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &serde_json::to_value(&self.core.manifest).unwrap_or_default())
    }

    /// The parameter buffer of each kernel, as `gridlet layout --json` shows it.
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.core.layout())
    }

    /// The `numpy.dtype` of a struct, with the layout pass's offsets.
    fn dtype<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let manifest = &self.core.manifest;
        let known = manifest.structs.iter().any(|known| known.name == name);
        let ty = gridlet_runtime::manifest::Type::Struct(name.to_owned());
        match DType::of_program(&ty, manifest).filter(|_| known) {
            Some(dtype) => dtype.to_numpy(py),
            None => {
                let known: Vec<_> =
                    manifest.structs.iter().map(|known| format!("`{}`", known.name)).collect();
                let known = if known.is_empty() { "no structs".into() } else { known.join(", ") };
                let text = format!("no struct `{name}`: the kernels' parameters have {known}");
                Err(PyKeyError::new_err(text))
            }
        }
    }

    /// The NVVM IR for an architecture, as text.
    #[pyo3(signature = (arch="sm_90"))]
    fn nvvm(&self, py: Python<'_>, arch: &str) -> PyResult<String> {
        py.detach(|| self.core.nvvm(arch))
    }

    /// The PTX for an architecture.
    #[pyo3(signature = (arch="sm_90"))]
    fn ptx(&self, py: Python<'_>, arch: &str) -> PyResult<String> {
        py.detach(|| self.core.ptx(arch))
    }

    /// The machine code for an architecture, an ELF file.
    #[pyo3(signature = (arch="sm_90"))]
    fn cubin<'py>(&self, py: Python<'py>, arch: &str) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.core.cubin(arch))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// A bundle for `gridlet.load`, `gridlet run` and hosts in Rust and C, with an image for each target: `"sm_90"`, `"cpu"`.
    ///
    /// An image for the CPU runs on every processor of the architecture, or, with `native`, only on those that have all
    /// features of this one. With `check` it is for checking devices.
    #[pyo3(signature = (*targets, check=false, native=false))]
    fn bundle<'py>(
        &self,
        py: Python<'py>,
        targets: Vec<String>,
        check: bool,
        native: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.core.bundle(&targets, check, native))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Builds the program for a device, which its first launch there would do.
    fn build(&self, py: Python<'_>, device: &Bound<'_, Device>) -> PyResult<()> {
        let opened = Arc::clone(&device.get().inner);
        py.detach(|| self.core.loaded(&opened)).map(drop)
    }

    fn __repr__(&self) -> String {
        format!("<gridlet.Program {}: {}>", self.core.manifest.program, self.kernels().join(", "))
    }
}
