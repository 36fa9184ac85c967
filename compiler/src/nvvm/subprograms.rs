//! Names for libNVVM's warnings about launches.
//!
//! libNVVM warns of an argument of a launch that points to local memory, with the position of its store. It looks for such
//! arguments after inlining, and ends the process by a segmentation fault if the store has no position, and in LLVM 7's
//! dialect the function around it has no subprogram either (libNVVM of CUDA 13.0). So in a module that launches, each
//! function gets a subprogram and each instruction a position, where they have none. The compile unit of added subprograms asks
//! for no debug information in the output, and the code stays the same.

use gridlet_lang::ir::symbol;
use gridlet_lang::launch::cdp::symbols::{RuntimeFunction, runtime_function};
use inkwell::debug_info::{
    AsDIScope as _, DIFlags, DIFlagsConstants as _, DWARFEmissionKind, DWARFSourceLanguage,
    debug_metadata_version,
};
use inkwell::module::{FlagBehavior, Module};
use inkwell::values::FunctionValue;

use super::legacy::llvm;

/// The folder of the files in added subprograms. The file is the function's name, and the line 1.
pub(super) const FOLDER: &str = "no file";

/// The flag with the version of a module's debug information (LLVM's Source Level Debugging).
const VERSION_FLAG: &str = "Debug Info Version";

/// A copy of a valid module with the subprograms and positions that it lacks; `None` if it does not launch.
pub(crate) fn add<'ctx>(module: &Module<'ctx>) -> Option<Module<'ctx>> {
    let launches = |function: FunctionValue<'ctx>| {
        let name = function.get_name().to_string_lossy();
        runtime_function(&name) == Some(RuntimeFunction::LaunchDevice)
    };
    let lacks = |function: &FunctionValue<'ctx>| {
        function.count_basic_blocks() > 0 && function.get_subprogram().is_none()
    };
    if !module.get_functions().any(launches) {
        return None;
    }
    let module = module.clone();
    let context = module.get_context();
    if module.get_flag(VERSION_FLAG).is_none() {
        let version = context.i32_type().const_int(u64::from(debug_metadata_version()), false);
        module.add_basic_value_flag(VERSION_FLAG, FlagBehavior::Warning, version);
    }
    let (builder, _) = module.create_debug_info_builder(
        true,
        DWARFSourceLanguage::C99,
        "module",
        FOLDER,
        "gridlet",
        true,
        "",
        0,
        "",
        DWARFEmissionKind::None,
        0,
        false,
        false,
        "",
        "",
    );
    for function in module.get_functions().filter(lacks) {
        let name = shown(&function.get_name().to_string_lossy());
        let file = builder.create_file(&name, FOLDER);
        let ty = builder.create_subroutine_type(file, None, &[], 0);
        let scope = file.as_debug_info_scope();
        let subprogram = builder.create_function(
            scope,
            &name,
            None,
            file,
            1,
            ty,
            true,
            true,
            1,
            DIFlags::PUBLIC,
            true,
        );
        function.set_subprogram(subprogram);
    }
    for function in llvm::Module::new(&module).functions() {
        let Some(at) = function.subprogram() else { continue };
        // SAFETY: it is a function of the copy.
        let known = unsafe { FunctionValue::new(function.raw()) };
        let Some(subprogram) = known.and_then(FunctionValue::get_subprogram) else { continue };
        let scope = subprogram.as_debug_info_scope();
        let at = builder.create_debug_location(context, at.line, 0, scope, None);
        let blocks = known.into_iter().flat_map(|function| function.get_basic_block_iter());
        let instructions = blocks.flat_map(|block| block.get_instructions());
        for instruction in instructions.filter(|one| one.get_debug_location().is_none()) {
            instruction.set_debug_location(Some(at));
        }
    }
    builder.finalize();
    Some(module)
}

/// A function's name as libNVVM's warnings show it in place of a file.
fn shown(name: &str) -> String {
    format!("function `{}`", name.strip_prefix(symbol::OWN).unwrap_or(name))
}

/// The log of libNVVM without the lines of added subprograms.
pub(crate) fn without_lines(log: &str) -> String {
    log.replace("`(1) : Warning: ", "`: ").replace("`(1)", "`")
}
