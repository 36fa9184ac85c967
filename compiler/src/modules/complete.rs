//! The functions that emitted launches call: taken from a program of the language, so that there is one of each.

use gridlet_lang::ir::symbol;
use gridlet_lang::launch::cdp::symbols::{AWAIT_TURN, END_TURN, OPEN_TURNS, TURN};
use gridlet_lang::launch::{LaunchOptions, LaunchStrategy, RECORD_LOST_LAUNCH};
use gridlet_lang::program::check;
use gridlet_lang::source::SourceMap;
use inkwell::context::Context;
use inkwell::llvm_sys::core::LLVMInstructionEraseFromParent;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{Linkage, Module};
use inkwell::values::{AsValueRef as _, BasicValue as _, FunctionValue, InstructionValue};

use super::{kernels, runtime};
use crate::codegen;
use crate::error::{Error, Result};
use crate::messages;
use crate::nvvm::legacy::llvm;
use gridlet_lang::arch::CudaArch;

/// A program with a launch of each kind.
const SOURCE: &str = "kernel a() {} kernel b() { launch a<<<1, 1, stream = tail>>>(); }";

/// The functions for turns.
pub(super) const TURNS: [&str; 3] = [OPEN_TURNS, AWAIT_TURN, END_TURN];

/// Adds the functions to a module with emitted launches, and the turns of the threads if one launches into the tail
/// stream.
pub(super) fn complete(module: &Module<'_>, has_tail: bool) -> Result<()> {
    let turns = TURNS.map(symbol::internal);
    if has_tail {
        open_turns(module)?;
    } else {
        for function in turns.iter().filter_map(|name| module.get_function(name)) {
            for call in calls(function) {
                // SAFETY: the functions have no results that anything could use.
                unsafe { LLVMInstructionEraseFromParent(call.as_value_ref()) };
            }
            // SAFETY: nothing uses it any more.
            unsafe { function.delete() };
        }
    }
    let is_recorded = module.get_function(&symbol::internal(RECORD_LOST_LAUNCH)).is_some();
    if !has_tail && !is_recorded {
        return Ok(());
    }
    add_functions(module, has_tail)
}

/// Adds the record's function, and those for turns.
pub(super) fn add_functions(module: &Module<'_>, has_tail: bool) -> Result<()> {
    let bitcode = functions(has_tail)?;
    let buffer = MemoryBuffer::create_from_memory_range_copy(&bitcode, "launches");
    let internal = |error: String| Error::internal("modules", error);
    let functions = module
        .get_context()
        .create_module_from_ir(buffer)
        .map_err(|error| internal(error.to_string()))?;
    functions.set_triple(&module.get_triple());
    functions.set_data_layout(&module.get_data_layout());
    messages::link(module, functions).map_err(internal)?;
    let record = symbol::internal(RECORD_LOST_LAUNCH);
    for function in TURNS
        .map(symbol::internal)
        .iter()
        .chain([&record])
        .filter_map(|name| module.get_function(name))
    {
        function.set_linkage(Linkage::Internal);
    }
    Ok(())
}

fn calls(function: FunctionValue<'_>) -> Vec<InstructionValue<'_>> {
    let mut calls = vec![];
    let mut next = function.as_global_value().as_pointer_value().get_first_use();
    while let Some(one) = next {
        next = one.get_next_use();
        if let inkwell::values::AnyValueEnum::InstructionValue(call) = one.get_user() {
            calls.push(call);
        }
    }
    calls
}

/// Opens the turns at the start of each kernel that may launch.
fn open_turns(module: &Module<'_>) -> Result<()> {
    let view = llvm::Module::new(module);
    let launching = runtime::reaching(view, &symbol::internal(AWAIT_TURN));
    let launching: Vec<String> = launching.into_iter().map(kernels::name).collect();
    let context = module.get_context();
    let name = symbol::internal(OPEN_TURNS);
    let open = module.get_function(&name).unwrap_or_else(|| {
        module.add_function(&name, context.void_type().fn_type(&[], false), None)
    });
    let builder = context.create_builder();
    for kernel in launching.iter().filter_map(|name| module.get_function(name)) {
        let first = kernel.get_first_basic_block().and_then(|block| block.get_first_instruction());
        let Some(first) = first else { continue };
        builder.position_before(&first);
        builder
            .build_call(open, &[], "")
            .map_err(|error| Error::internal("modules", error.to_string()))?;
    }
    Ok(())
}

/// The functions as bitcode.
fn functions(has_tail: bool) -> Result<Vec<u8>> {
    let program = check(SourceMap::single("launches.grid", SOURCE))?;
    let options = LaunchOptions::for_arch(LaunchStrategy::Cdp, CudaArch::DEFAULT);
    let lowered = program.lower(&options)?;
    let context = Context::create();
    let module = codegen::build_module(&context, &lowered)?;
    // Each before those that it uses.
    for name in ["b", "own.b.body", "a", "own.a.body"] {
        if let Some(function) = module.get_function(name) {
            // SAFETY: nothing uses it any more.
            unsafe { function.delete() };
        }
    }
    for name in TURNS.map(symbol::internal).iter().chain([&symbol::internal(RECORD_LOST_LAUNCH)]) {
        let Some(function) = module.get_function(name) else { continue };
        if !has_tail && *name != symbol::internal(RECORD_LOST_LAUNCH) {
            // SAFETY: the kernels that use it are gone.
            unsafe { function.delete() };
        } else {
            function.set_linkage(Linkage::External);
        }
    }
    if !has_tail && let Some(turn) = module.get_global(&symbol::internal(TURN)) {
        // SAFETY: the functions that use it are gone.
        unsafe { turn.delete() };
    }
    Ok(module.write_bitcode_to_memory().as_slice().to_vec())
}
