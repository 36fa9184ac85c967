//! Errors as Python exceptions, whose classes are in `python/gridlet/_errors.py`.

use gridlet::diagnostics::{self, Diagnostic};
use gridlet::source::SourceMap;
use gridlet_runtime::Error;
use gridlet_runtime::cpu::check::render_all;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// A class of `gridlet._errors`.
fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("gridlet._errors").map(Bound::unbind))?;
    Ok(module.bind(py).getattr(name)?.cast_into()?)
}

/// An exception of a class of `gridlet._errors` with these attributes.
fn exception<'py>(
    py: Python<'py>,
    name: &str,
    message: &str,
    attributes: &[(&str, Bound<'py, PyAny>)],
) -> PyErr {
    let build = || {
        let value = class(py, name)?.call1((message,))?;
        for (name, attribute) in attributes {
            value.setattr(name, attribute)?;
        }
        Ok(PyErr::from_value(value))
    };
    build().unwrap_or_else(|error: PyErr| error)
}

/// An exception of a class of `gridlet._errors` with a message only.
pub(crate) fn raise(name: &str, message: impl AsRef<str>) -> PyErr {
    Python::attach(|py| exception(py, name, message.as_ref(), &[]))
}

/// A value of the JSON kind as Python objects.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    value: &serde_json::Value,
) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let loads = LOADS.import(py, "json", "loads")?;
    loads.call1((value.to_string(),))
}

/// Diagnostics as a list of dictionaries.
pub(crate) fn diagnostics_to_python<'py>(
    py: Python<'py>,
    messages: &[Diagnostic],
    sources: &SourceMap,
) -> PyResult<Bound<'py, PyAny>> {
    let values = messages.iter().map(|message| diagnostics::to_json(message, sources)).collect();
    to_python(py, &serde_json::Value::Array(values))
}

/// An error of the compiler.
pub(crate) fn compile_error(error: gridlet::Error, sources: &SourceMap) -> PyErr {
    Python::attach(|py| match error {
        gridlet::Error::Program(messages) => {
            let rendered = diagnostics::render(&messages, sources, false);
            match diagnostics_to_python(py, &messages, sources) {
                Ok(list) => {
                    let attributes = [("diagnostics", list)];
                    exception(py, "CompileError", rendered.trim_end(), &attributes)
                }
                Err(error) => error,
            }
        }
        gridlet::Error::Io { path, source } => {
            let text = source.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((source.raw_os_error(), text, path.into_os_string()))
        }
        gridlet::Error::Missing { .. } => exception(py, "MissingError", &error.to_string(), &[]),
        gridlet::Error::Internal { .. } => exception(py, "Error", &error.to_string(), &[]),
        _ => exception(py, "CompileError", &error.to_string(), &[]),
    })
}

/// An error of the runtime.
pub(crate) fn run_error(error: Error) -> PyErr {
    run_error_in(error, None)
}

/// An error of the runtime; `sources` supplies the lines that findings show.
pub(crate) fn run_error_in(error: Error, sources: Option<&SourceMap>) -> PyErr {
    Python::attach(|py| describe(py, &error, sources).unwrap_or_else(|error| error))
}

/// What Rust and Python call the functions that messages name.
const NAMES: [(&str, &str); 4] = [
    ("Device::set_pending_launch_limit", "Device.set_pending_launches"),
    ("Device::set_launch_memory", "Device.set_launch_memory"),
    ("Device::open", "Device"),
    ("Stream::record", "Stream.record"),
];

fn describe(py: Python<'_>, error: &Error, sources: Option<&SourceMap>) -> PyResult<PyErr> {
    let mut text = error.to_string();
    let hint = error.hint().map(str::to_owned);
    if let Some(hint) = &hint {
        text.push_str("\n  = hint: ");
        text.push_str(hint);
    }
    for (rust, python) in NAMES {
        text = text.replace(rust, python);
    }
    let any = |value: &str| value.into_pyobject(py).map(Bound::into_any);
    let raised = |name: &str| exception(py, name, &text, &[]);
    Ok(match error {
        _ if error.is_missing() => raised("MissingError"),
        Error::ArgumentCount { .. } | Error::Argument { .. } => PyTypeError::new_err(text),
        Error::CpuMemory { .. } => PyMemoryError::new_err(text),
        Error::LostLaunches(lost) => {
            let attributes = [
                ("program", any(&lost.program)?),
                ("count", lost.count.into_pyobject(py)?.into_any()),
                ("error", lost.error.into_pyobject(py)?.into_any()),
                ("name", any(&lost.name)?),
                ("file", any(&lost.file)?),
                ("line", lost.line.into_pyobject(py)?.into_any()),
            ];
            exception(py, "LostLaunches", &text, &attributes)
        }
        Error::Fault(fault) => {
            let attributes = [
                ("kernels", fault.kernels.clone().into_pyobject(py)?.into_any()),
                ("name", any(&fault.name)?),
                ("code", fault.code.into_pyobject(py)?.into_any()),
            ];
            exception(py, "Fault", &text, &attributes)
        }
        Error::CpuFault(fault) => {
            let attributes = [("kernels", [fault.kernel.as_str()].into_pyobject(py)?.into_any())];
            exception(py, "Fault", &text, &attributes)
        }
        Error::Broken { .. } | Error::NotRecovered { .. } => raised("Fault"),
        Error::Checked(findings) => {
            let line = |shown: &str, line: u32| {
                let file = sources?.files().iter().find(|file| file.name == shown)?;
                diagnostics::shown_line(file, line)
            };
            let rendered = render_all(&findings.reports, findings.further, &line);
            let reports = serde_json::to_value(&findings.reports).unwrap_or_default();
            let attributes = [("reports", to_python(py, &reports)?)];
            exception(py, "CheckError", rendered.trim_end(), &attributes)
        }
        Error::TimedOut { .. } | Error::Unusable { .. } => raised("TimedOut"),
        Error::Cuda(cuda) => {
            let attributes =
                [("name", any(&cuda.name)?), ("code", cuda.code.into_pyobject(py)?.into_any())];
            exception(py, "DeviceError", &text, &attributes)
        }
        Error::Launch { .. }
        | Error::LaunchMemory { .. }
        | Error::OtherDevice { .. }
        | Error::Partition { .. }
        | Error::Resource(_)
        | Error::DeviceName { .. } => raised("LaunchError"),
        _ => raised("Error"),
    })
}
