//! LLVM's module as text or bitcode in one of the dialects.

use std::borrow::Cow;
use std::ffi::CString;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::llvm_sys::core::LLVMSetDataLayout;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use inkwell::targets::TargetTriple;
use inkwell::values::{BasicMetadataValueEnum, FunctionValue, MetadataValue};

use super::{NvvmModule, legacy, names, verify};
use crate::codegen;
use crate::error::{Error, Result};
use gridlet_lang::arch::Dialect;

/// The named metadata with the version of NVVM IR (NVVM IR Specification, "NVVM IR Version").
const VERSION_METADATA: &str = "nvvmir.version";

/// The version of NVVM IR that we write, and of debug information in the modern dialect. libNVVM asks for the latter with `-g` even
/// where the module has no debug information.
const VERSION: [u64; 4] = [2, 0, 3, 2];

/// The module in modern text.
///
/// Adds required properties that the module lacks: the version of NVVM IR, without which libNVVM
/// assumes version 1.0 and refuses the module; the data layout, without which libNVVM 13.0 aborts
/// the process, in its newest form; the target. Intrinsics that LLVM 22 renamed get the names that libNVVM knows, and lose an attribute that it does not.
///
/// # Errors
///
/// [`Error::Invalid`] if LLVM's verifier rejects the module, or if it calls an unknown intrinsic.
pub fn modern_text(module: &Module<'_>) -> Result<NvvmModule> {
    complete(module, |module| {
        modern(module, with_old_labels(module.print_to_string().to_string()).into_bytes())
    })
}

/// The text with debug information of labels as libNVVM reads it: without the fields that LLVM 22 added, of which front ends set one.
fn with_old_labels(text: String) -> String {
    const LABEL: &str = "= !DILabel(";
    if !text.contains(LABEL) {
        return text;
    }
    let start = |line: &str| line.starts_with('!') && line.contains(LABEL);
    let lines = text.split_inclusive('\n').map(|line| {
        let column = start(line).then(|| line.find(", column: ")).flatten();
        let Some(at) = column else { return Cow::Borrowed(line) };
        let (before, after) = line.split_at(at);
        let rest = after.trim_start_matches(", column: ");
        Cow::Owned(format!("{before}{}", rest.trim_start_matches(|c: char| c.is_ascii_digit())))
    });
    lines.collect()
}

/// The module in modern bitcode, completed as in [`modern_text`].
///
/// # Errors
///
/// As [`modern_text`].
pub fn modern_bitcode(module: &Module<'_>) -> Result<NvvmModule> {
    complete(module, |module| modern(module, module.write_bitcode_to_memory().as_slice().to_vec()))
}

/// Passes on the module, or a completed copy if it lacks a required property: the caller's module
/// is not changed.
fn complete(
    module: &Module<'_>,
    write: impl FnOnce(&Module<'_>) -> NvvmModule,
) -> Result<NvvmModule> {
    // Copying an invalid module would end the process. libNVVM may be newer than LLVM.
    verify(module, |name| name.starts_with("llvm.nvvm."))?;
    if has_other_version(module) {
        return complete(&without_version(module)?, write);
    }
    let has_version = module.get_global_metadata_size(VERSION_METADATA) > 0;
    let has_layout = !is_old_layout(&module.get_data_layout().as_str().to_string_lossy());
    let has_triple = !is_incomplete(&module.get_triple().as_str().to_string_lossy());
    let is_known = |function| !has_new_attribute(function) && !is_aligned(function);
    let has_known_functions = module.get_functions().all(is_known);
    if has_version && has_layout && has_triple && has_known_functions && !names::are_new(module) {
        return Ok(write(module));
    }
    let copy = module.clone();
    if !has_triple {
        copy.set_triple(&TargetTriple::create(codegen::TRIPLE));
    }
    if !has_layout {
        // Through the C API: inkwell can only create a `DataLayout` for a target that is linked in.
        let layout = CString::new(codegen::DATA_LAYOUT)
            .map_err(|error| Error::internal("nvvm", error.to_string()))?;
        // SAFETY: the module lives, and the string ends in NUL and is copied.
        unsafe { LLVMSetDataLayout(copy.as_mut_ptr(), layout.as_ptr()) };
    }
    if !has_version {
        let context = copy.get_context();
        let numbers = VERSION.map(|number| context.i32_type().const_int(number, false).into());
        copy.add_global_metadata(VERSION_METADATA, &context.metadata_node(&numbers))
            .map_err(|error| Error::internal("nvvm", error.to_string()))?;
    }
    for function in copy.get_functions().filter(|function| has_new_attribute(*function)) {
        function.remove_enum_attribute(AttributeLoc::Function, new_attribute());
    }
    for function in copy.get_functions().filter(|function| is_aligned(*function)) {
        function.as_global_value().set_alignment(0);
    }
    names::make_old(&copy)?;
    Ok(write(&copy))
}

/// Whether a module says that it is of another version of NVVM IR than [`VERSION`], as those of older compilers do, or says it more than
/// once, as linked ones do. What libNVVM gets is LLVM 22's, whatever the module was.
fn has_other_version(module: &Module<'_>) -> bool {
    let nodes = module.get_global_metadata(VERSION_METADATA);
    let number = |value: &BasicMetadataValueEnum<'_>| match value {
        BasicMetadataValueEnum::IntValue(number) => number.get_zero_extended_constant(),
        _ => None,
    };
    // Codegen gives the version of debug information only where there is some.
    let is_it = |node: &MetadataValue<'_>| {
        let values = node.get_node_values().unwrap_or_default();
        let numbers: Vec<Option<u64>> = values.iter().map(number).collect();
        [&VERSION[..], &VERSION[..2]]
            .iter()
            .any(|known| numbers.iter().copied().eq(known.iter().copied().map(Some)))
    };
    match &nodes[..] {
        [] => false,
        [one] => !is_it(one),
        _ => true,
    }
}

/// A copy without the version of NVVM IR. Only LLVM's text can lose named metadata through LLVM's C interface.
fn without_version<'ctx>(module: &Module<'ctx>) -> Result<Module<'ctx>> {
    let text = module.print_to_string().to_string();
    let is_version = |line: &&str| {
        let rest = line.strip_prefix('!').and_then(|rest| rest.strip_prefix(VERSION_METADATA));
        rest.is_some_and(|rest| rest.starts_with(" ="))
    };
    let lines = text.split_inclusive('\n').filter(|line| !is_version(line));
    let text: String = lines.collect();
    let name = module.get_name().to_string_lossy().into_owned();
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), &name);
    let copy = module.get_context().create_module_from_ir(buffer);
    let copy = copy.map_err(|error| Error::internal("nvvm", error.to_string()))?;
    copy.set_name(&name);
    Ok(copy)
}

/// Whether libNVVM's data layout must take the place of this one: there is none, or it is as of LLVM 17 and before, without 128-bit
/// integers, which libNVVM 13.0 refuses for sm_100 and newer. LLVM adds them to layouts of other targets in the same way.
fn is_old_layout(layout: &str) -> bool {
    layout.is_empty() || !layout.contains("i128:") && legacy::foreign_layout(layout).is_none()
}

/// Whether a triple is LLVM's for GPUs, but not libNVVM's, which names CUDA: `nvptx64-unknown-unknown`.
fn is_incomplete(triple: &str) -> bool {
    is_for_gpus(triple) && !triple.ends_with("-cuda")
}

/// Whether a triple is LLVM's for GPUs, or says nothing.
pub(crate) fn is_for_gpus(triple: &str) -> bool {
    triple.is_empty() || triple == "unknown" || triple.starts_with("nvptx64-")
}

/// LLVM 22 gives it to intrinsics such as `llvm.ctpop`; libNVVM 13.0 cannot read it.
fn new_attribute() -> u32 {
    Attribute::get_named_enum_kind_id("nocreateundeforpoison")
}

/// Whether a function has an alignment, as Clang gives to those of C++ classes. It says nothing to PTX, and libNVVM refuses it.
fn is_aligned(function: FunctionValue<'_>) -> bool {
    function.as_global_value().get_alignment() != 0
}

fn has_new_attribute(function: FunctionValue<'_>) -> bool {
    function.get_enum_attribute(AttributeLoc::Function, new_attribute()).is_some()
}

/// The module as text in `dialect`.
///
/// # Errors
///
/// As [`legacy::write`] or [`modern_text`].
pub fn text(
    module: &Module<'_>,
    dialect: Dialect,
    options: &legacy::LegacyOptions,
) -> Result<NvvmModule> {
    match dialect {
        Dialect::Modern => modern_text(module),
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
