//! Gridlet compiles kernels that launch kernels.
//!
//! [`compile`] is the pipeline in a few calls, and names the stage behind each of them; each stage
//! can also be used alone. [`nvvm::legacy`] writes LLVM 7 text for libNVVM from any module built
//! with inkwell. [`modules`] is for other compilers: it adds launches to a module that is built through inkwell, reads
//! NVVM IR of any producer, and makes bundles of both; `examples/own_module.rs` does so. The crate `gridlet-runtime` runs programs, and
//! needs none of this.
//!
//! # Features
//! - `llvm` (default): code generation, which needs LLVM 22 to build. Without it the front end, [`toolchain`],
//!   [`ptx::libnvvm`] and [`link`] remain, for compilers that bring their own NVVM IR.
//! - `llvm-unlinked`: the whole API without linking LLVM, for documentation and type checks on machines that do not
//!   have it. Programs that use it do not link.
//!
//! # Example
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

#[cfg(feature = "llvm")]
pub mod artifact;
#[cfg(feature = "llvm")]
pub mod cache;
mod child;
#[cfg(feature = "llvm")]
pub mod codegen;
#[cfg(feature = "llvm")]
pub mod compile;
#[cfg(feature = "llvm")]
pub mod cpu;
pub mod disk;
pub mod doctor;
#[cfg(feature = "llvm")]
pub mod emit;
pub mod error;
#[cfg(feature = "llvm")]
mod fatal;
#[cfg(feature = "llvm")]
pub mod host;
#[cfg_attr(
    not(feature = "llvm"),
    expect(dead_code, reason = "code generation asks more of inputs than device linking")
)]
pub mod inputs;
pub mod link;
#[cfg(feature = "llvm")]
mod messages;
#[cfg(feature = "llvm")]
pub mod modules;
pub mod nvvm;
pub mod ptx;
pub mod target;
pub mod temporary;
pub mod toolchain;

pub use error::{Error, Result};
/// The front end, whose stages need neither LLVM nor CUDA.
pub use gridlet_lang::{
    arch, builder, builtins, chain, check, diagnostics, float, format, ir, launch, layout, load,
    operators, program, source, syntax, types,
};
/// Re-exported for the functions that accept any LLVM module: another version of inkwell would
/// define different types.
#[cfg(feature = "llvm")]
pub use inkwell;

/// The guide for implementers, whose code runs as tests.
#[cfg(all(doctest, feature = "llvm"))]
#[doc = include_str!("../../docs/implementers.md")]
struct Implementers;
