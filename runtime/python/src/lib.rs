//! The Python module `gridlet`: compiles programs and runs them on arrays that other libraries share.
//!
//! `handles` has devices, streams and arrays, `program` programs and launches. `python/gridlet` is the package around
//! this module; docs/python.md describes it.

mod command;
mod dlpack;
mod dtype;
mod errors;
mod handles;
mod program;

/// The native part of the package.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::command::command;
    #[pymodule_export]
    use crate::handles::{Array, Device, Event, Partition, Stream};
    #[pymodule_export]
    use crate::program::{Kernel, Launcher, Program, compile, load};
}
