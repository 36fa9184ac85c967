//! Checks of any module before a tool sees it.

use inkwell::module::Module;
use inkwell::values::BasicValue as _;

use super::{legacy, mistakes};
use crate::error::{Error, Result};

/// Intrinsics of codegen that LLVM renames on reading; libNVVM knows only these names.
const RENAMED: [&str; 1] = ["llvm.nvvm.barrier0"];

/// Whether LLVM knows an intrinsic by another name.
pub(crate) fn is_renamed(name: &str) -> bool {
    RENAMED.contains(&name)
}

/// The named metadata of a module with the files of its records of lost launches.
pub(crate) const SOURCES: &str = "gridlet.sources";

/// How the names of functions begin that [`crate::modules::Launches::finish`] adds.
const OWN_FUNCTIONS: &str = "own.gridlet.";

/// The most functions at fault that are named.
const MAX_FUNCTIONS: usize = 5;

/// A line with the functions that LLVM's verifier refuses, which its message does not name.
fn functions_at_fault(module: &Module<'_>) -> String {
    let wrong = module.get_functions().filter(|function| !function.verify(false));
    let names: Vec<String> = wrong
        .take(MAX_FUNCTIONS)
        .map(|function| format!("`{}`", function.get_name().to_string_lossy()))
        .collect();
    match &names[..] {
        [] => String::new(),
        [one] => format!("in the function {one}:\n"),
        several => format!("in the functions {}:\n", several.join(", ")),
    }
}

/// Runs LLVM's verifier, and refuses calls of intrinsics that LLVM does not know: tools take them for functions of that
/// name, or crash. `is_known_elsewhere` accepts names that the next tool knows and LLVM does not.
///
/// # Errors
/// [`Error::Invalid`] with the likeliest mistakes and the verifier's message, or the intrinsic's name.
pub(crate) fn verify(module: &Module<'_>, is_known_elsewhere: impl Fn(&str) -> bool) -> Result<()> {
    module.verify().map_err(|log| {
        let explained = mistakes::explain(module);
        let said = format!("{explained}{}{}", functions_at_fault(module), log.to_string());
        legacy::invalid(&said)
    })?;
    for function in module.get_functions() {
        let name = function.get_name().to_string_lossy();
        if name.starts_with(OWN_FUNCTIONS) && function.count_basic_blocks() == 0 {
            return Err(Error::Invalid(
                "the module has launches that are not complete; call `Launches::finish`".into(),
            ));
        }
        if name.starts_with("llvm.")
            && function.get_intrinsic_id() == 0
            && !is_renamed(&name)
            && function.as_global_value().as_pointer_value().get_first_use().is_some()
            && !is_known_elsewhere(&name)
        {
            return Err(Error::Invalid(format!(
                "the module calls `{name}`, which is not an intrinsic of LLVM {}",
                crate::toolchain::LLVM_VERSION
            )));
        }
    }
    Ok(())
}
