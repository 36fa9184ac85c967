//! NVVM IR: what codegen's module becomes for libNVVM.
//!
//! libNVVM reads two languages ([`Dialect`]): LLVM 7 text with typed pointers below `compute_100`, modern LLVM
//! IR from there on. [`modern_text`] and [`modern_bitcode`] give a module as LLVM 22 writes it;
//! [`legacy::write`] writes it in LLVM 7's language, which LLVM 22 itself no longer can.

pub mod legacy;

use inkwell::module::Module;

use crate::arch::Dialect;
use crate::error::Result;

/// A module for libNVVM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvvmModule {
    /// Its name, for messages.
    pub name: String,
    /// The dialect that it is written in.
    pub dialect: Dialect,
    /// Text or bitcode.
    pub bytes: Vec<u8>,
}

/// The module in modern text.
pub fn modern_text(module: &Module<'_>) -> NvvmModule {
    modern(module, module.print_to_string().to_bytes().to_vec())
}

/// The module in modern bitcode.
pub fn modern_bitcode(module: &Module<'_>) -> NvvmModule {
    modern(module, module.write_bitcode_to_memory().as_slice().to_vec())
}

/// The module as text in `dialect`.
///
/// # Errors
///
/// Those of [`legacy::write`]; the modern dialect has none.
pub fn text(
    module: &Module<'_>,
    dialect: Dialect,
    options: &legacy::LegacyOptions,
) -> Result<NvvmModule> {
    match dialect {
        Dialect::Modern => Ok(modern_text(module)),
        Dialect::Legacy => {
            let bytes = legacy::write(module, options)?.into_bytes();
            Ok(NvvmModule { name: name(module), dialect, bytes })
        }
    }
}

fn modern(module: &Module<'_>, bytes: Vec<u8>) -> NvvmModule {
    NvvmModule { name: name(module), dialect: Dialect::Modern, bytes }
}

fn name(module: &Module<'_>) -> String {
    module.get_name().to_string_lossy().into_owned()
}
