//! Links user-supplied LLVM modules into a program's module.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{Linkage, Module};
use inkwell::targets::TargetData;
use inkwell::values::FunctionValue;

use super::{DATA_LAYOUT, OWN_DATA_LAYOUT, PTX_KERNEL, bug};
use crate::error::{Error, Result};
use crate::inputs::externs::{called, launched, mismatch, not_a_kernel};
use crate::inputs::{self, InputKind, LinkInput};
use crate::messages;
use gridlet_lang::ir;

/// Links the inputs that are LLVM IR for the target of `module`, the module of program `ir`, after a look at each by `examine`. Skips
/// inputs whose triple names another target.
///
/// # Errors
/// Those of `examine`; [`Error::Invalid`] if an input is not an LLVM module or repeats a definition, [`Error::Program`]
/// if it defines an `extern fn` with another signature than declared, or an `extern kernel` as a device
/// function, [`Error::Tool`] if LLVM cannot link it.
pub(crate) fn link_inputs(
    module: &Module<'_>,
    ir: &ir::Module,
    inputs: &[LinkInput],
    examine: impl Fn(&Module<'_>, &LinkInput) -> Result<()>,
) -> Result<()> {
    for input in inputs.iter().filter(|input| input.kind == InputKind::Ir) {
        let bitcode = inputs::bitcode(&input.name, &input.bytes)?;
        let buffer = MemoryBuffer::create_from_memory_range_copy(&bitcode, &input.name);
        let linked = module
            .get_context()
            .create_module_from_ir(buffer)
            .map_err(|error| bug(format!("{}: {}", input.name, error.to_string())))?;
        if !is_for(&linked, module) {
            continue;
        }
        examine(&linked, input)?;
        check(module, &linked, ir, input)?;
        if module.get_data_layout().as_str().to_bytes() == OWN_DATA_LAYOUT.as_bytes() {
            module.set_data_layout(&TargetData::create(DATA_LAYOUT).get_data_layout());
        }
        linked.set_triple(&module.get_triple());
        linked.set_data_layout(&module.get_data_layout());
        messages::link(module, linked).map_err(|log| Error::Tool {
            tool: "LLVM",
            operation: format!("linking {}", input.name),
            log,
        })?;
    }
    Ok(())
}

/// Whether a module is for the target of another: for the same architecture, or for none.
fn is_for(linked: &Module<'_>, module: &Module<'_>) -> bool {
    let triple = |module: &Module<'_>| module.get_triple().as_str().to_string_lossy().into_owned();
    let architecture = |triple: &str| triple.split('-').next().unwrap_or_default().to_owned();
    let (theirs, ours) = (triple(linked), triple(module));
    // LLVM normalises an empty triple to `unknown`.
    let theirs = architecture(&theirs);
    let is_nvptx = |name: &str| name.starts_with("nvptx");
    theirs.is_empty()
        || theirs == "unknown"
        || theirs == architecture(&ours)
        || (is_nvptx(&theirs) && is_nvptx(&ours))
}

fn is_defined(function: &FunctionValue<'_>) -> bool {
    function.count_basic_blocks() > 0
}

fn check(
    module: &Module<'_>,
    linked: &Module<'_>,
    ir: &ir::Module,
    input: &LinkInput,
) -> Result<()> {
    let is_seen = |function: &FunctionValue<'_>| {
        is_defined(function)
            && !matches!(function.get_linkage(), Linkage::Internal | Linkage::Private)
    };
    for function in linked.get_functions().filter(is_seen) {
        let name = function.get_name().to_string_lossy().into_owned();
        if module.get_function(&name).is_some_and(|known| is_seen(&known)) {
            return Err(Error::Invalid(format!(
                "{}: it defines `{name}`, which the program or another linked module defines too",
                input.name
            )));
        }
    }
    let mut wrong = vec![];
    for (item, span) in called(ir).into_iter().filter_map(|item| Some((item, item.span?))) {
        let defined = linked.get_function(&item.name).filter(is_defined);
        let (Some(declared), Some(defined)) = (module.get_function(&item.name), defined) else {
            continue;
        };
        let (declared, defined) = (signature(&declared), signature(&defined));
        if declared != defined {
            let file = format!("`{}`", input.name);
            wrong.push(mismatch(&item.name, span, &file, &declared, &defined));
        }
    }
    for (kernel, _) in launched(ir) {
        let defined = linked.get_function(&ir::symbol::external(&kernel.name)).filter(is_defined);
        if defined.is_some_and(|defined| defined.get_call_conventions() != PTX_KERNEL) {
            wrong.push(not_a_kernel(kernel));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Error::Program(wrong)) }
}

/// The types of a function; copied parameters show the type of the copy.
fn signature(function: &FunctionValue<'_>) -> String {
    let kind = Attribute::get_named_enum_kind_id("byval");
    let parameters = function.get_param_iter().zip(0..).map(|(parameter, at)| {
        let copied = function.get_enum_attribute(AttributeLoc::Param(at), kind).is_some();
        let ty = parameter.get_type().to_string();
        let ty = ty.trim_matches('"').to_owned();
        if copied { format!("copy behind {ty}") } else { ty }
    });
    let result = function.get_type().get_return_type();
    let result = result.map_or("void".to_owned(), |ty| ty.to_string().trim_matches('"').to_owned());
    format!("{result} ({})", parameters.collect::<Vec<_>>().join(", "))
}
