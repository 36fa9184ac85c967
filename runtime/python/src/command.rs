//! The program `gridlet`, in this process.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::program::toolkit;

/// Runs the program with these arguments, of which the first is its name, and returns the exit status. `restart` is the
/// command that starts it again.
#[pyfunction]
pub(crate) fn command(
    py: Python<'_>,
    arguments: Vec<OsString>,
    restart: Vec<OsString>,
) -> PyResult<u8> {
    let variable = gridlet::toolchain::WHEELS;
    if std::env::var_os(variable).is_none()
        && let Some(folder) = toolkit(py)?
    {
        // SAFETY: the console script calls this first and once, when no other thread runs.
        unsafe { std::env::set_var(variable, folder) };
    }
    Ok(py.detach(|| gridlet_cli::run(arguments, Some(restart))))
}
