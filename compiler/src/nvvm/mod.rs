//! NVVM IR: writes codegen's module for libNVVM.
//!
//! libNVVM reads two languages ([`Dialect`]): LLVM 7 text with typed pointers below `compute_100`,
//! modern LLVM IR from there on. [`modern_text`] and [`modern_bitcode`] give a module as LLVM 22
//! writes it; [`legacy::write`] writes it in LLVM 7's language, which LLVM 22 can no longer write.

#[cfg(feature = "llvm")]
mod assembly;
#[cfg(feature = "llvm")]
pub(crate) mod atomics;
#[cfg(feature = "llvm")]
mod build;
pub(crate) mod halves;
#[cfg(feature = "llvm")]
pub(crate) mod lacking;
#[cfg(feature = "llvm")]
pub mod legacy;
#[cfg(feature = "llvm")]
mod mistakes;
#[cfg(feature = "llvm")]
mod names;
#[cfg(feature = "llvm")]
pub(crate) mod scope;
#[cfg(feature = "llvm")]
pub(crate) mod short_pointers;
#[cfg(feature = "llvm")]
pub(crate) mod subprograms;
#[cfg(feature = "llvm")]
mod verify;
#[cfg(feature = "llvm")]
mod write;

use gridlet_lang::arch::Dialect;

#[cfg(feature = "llvm")]
pub(crate) use legacy::is_known_convention;
#[cfg(feature = "llvm")]
pub(crate) use verify::{SOURCES, is_renamed, verify};
#[cfg(feature = "llvm")]
pub(crate) use write::is_for_gpus;
#[cfg(feature = "llvm")]
pub use write::{modern_bitcode, modern_text, text};

/// A module for libNVVM.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NvvmModule {
    /// Its name, for messages.
    pub name: String,
    /// Its dialect.
    pub dialect: Dialect,
    /// Text or bitcode.
    pub bytes: Vec<u8>,
}

impl NvvmModule {
    /// A module that another program wrote. `name` is for messages.
    pub fn new(name: impl Into<String>, dialect: Dialect, bytes: impl Into<Vec<u8>>) -> Self {
        NvvmModule { name: name.into(), dialect, bytes: bytes.into() }
    }
}
