//! Gridlet compiles kernels that launch kernels.

pub mod arch;
pub mod artifact;
pub mod builtins;
pub mod check;
pub mod codegen;
pub mod compile;
pub mod cpu;
pub mod diagnostics;
pub mod error;
pub mod ir;
pub mod launch;
pub mod layout;
pub mod link;
pub mod nvvm;
pub mod ptx;
pub mod source;
pub mod syntax;
pub mod target;
pub mod toolchain;
pub mod types;

pub use check::parse_and_check;
pub use error::{Error, Result};
