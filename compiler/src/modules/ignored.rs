//! Parts of a module that tools or the CPU device would leave out, or take for something else, without a word.

use super::check::Finding;
use super::kernels::name;
use crate::nvvm::legacy::llvm::{Module, Shape};

/// The lists of functions that a program's start and end call.
const LISTS: [&str; 2] = ["llvm.global_ctors", "llvm.global_dtors"];

/// Variables that no device has as they are.
pub(super) fn variables(module: Module<'_>) -> Vec<Finding<'_>> {
    let variables = module.variables().into_iter();
    let wrong = variables.filter_map(|variable| {
        let symbol = name(variable);
        let is_empty = matches!(variable.value_type().shape(), Shape::Array(_, 0));
        let message = if LISTS.contains(&symbol.as_str()) && !is_empty {
            format!("no device calls the functions in `{symbol}`; call them from a kernel")
        } else if variable.is_thread_local() {
            format!("no device has a `thread_local` variable for each thread, as `{symbol}`; use an `alloca`")
        } else {
            return None;
        };
        Some(Finding { at: Some(variable), message })
    });
    wrong.collect()
}

/// Assembly outside of functions. LLVM's own back end writes it into the PTX.
pub(super) fn assembly(module: Module<'_>) -> Option<Finding<'_>> {
    let text = module.inline_asm();
    let first = text.lines().find(|line| !line.trim().is_empty())?.trim();
    let message = format!(
        "assembly outside of functions (`module asm`) is not part of NVVM IR, as `{first}`; put it into a function, or compile for \
         GPUs with `--backend nvptx`"
    );
    Some(Finding { at: None, message })
}
