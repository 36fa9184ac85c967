//! Gridlet compiles kernels that launch kernels.
//!
//! [`compile`] is the pipeline in a few calls, and names the stage behind each of them; a stage can also be used
//! alone. [`nvvm::legacy`] writes LLVM 7 text for libNVVM from any module that was built through inkwell.
//! `examples/own_module.rs` does so for a module whose kernel launches another one, with [`launch::symbols`] for the
//! device runtime, [`layout`] for the arguments and [`compile::Session`] for libNVVM and the linker.
//! Programs are run by the crate `gridlet-runtime`, which needs none of this.
//!
//! ```no_run
//! use gridlet::compile::{self, BuildOptions, Session};
//! use gridlet::source::SourceMap;
//!
//! # fn main() -> gridlet::Result<()> {
//! let source = "kernel k(p: *mut u32) { if *p > 0 { *p -= 1; launch k<<<1, 1>>>(p); } }";
//! let program = compile::check(SourceMap::single("k.grid", source))?;
//! let cubin = Session::new().cubin(&program, &BuildOptions::default())?.cubin;
//! # Ok(()) }
//! ```

pub mod arch;
pub mod artifact;
pub mod builtins;
pub mod chain;
pub mod check;
pub mod codegen;
pub mod compile;
pub mod cpu;
pub mod diagnostics;
pub mod error;
pub mod float;
pub mod format;
pub mod host;
pub mod ir;
pub mod launch;
pub mod layout;
pub mod link;
pub mod load;
pub mod nvvm;
pub mod ptx;
pub mod source;
pub mod syntax;
pub mod target;
pub mod toolchain;
pub mod types;

pub use check::parse_and_check;
pub use error::{Error, Result};
/// LLVM, as the functions take it that work on anyone's modules: another version's modules are other types.
pub use inkwell;
