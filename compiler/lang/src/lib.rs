//! Gridlet's front end: from source text to IR with lowered launches.
//!
//! Nothing here needs LLVM, CUDA or the file system; the crate `gridlet` builds machine code from the IR.
//! [`program`] lists the stages in order. Imports run one way, from each group of modules to the groups above
//! it; the test `xtask/tests/imports.rs` fails on a cycle.

pub mod arch;
pub mod chain;
pub mod deep;
pub mod operators;
pub mod source;

pub mod diagnostics;
pub mod error;
pub mod extents;
pub mod float;
pub mod types;

pub mod builtins;
pub mod syntax;

pub mod format;
pub mod load;

pub mod check;
pub mod ir;
pub mod launch;
pub mod layout;

pub mod program;

pub mod builder;

#[cfg(test)]
#[path = "../tests/suite/time.rs"]
mod time;

pub use error::{Error, Result};
