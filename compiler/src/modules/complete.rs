//! The functions that emitted launches call: taken from a program of the language, so that there is one of each.

use gridlet_lang::ir::symbol;
use gridlet_lang::launch::cdp::symbols::{
    AWAIT_TURN, END_TURN, INSIDE, OPEN_ROW, OPEN_TURNS, TURNS, called_in_turn,
};
use gridlet_lang::launch::{LOST_LAUNCH_RECORD, LaunchOptions, LaunchStrategy, RECORD_LOST_LAUNCH};
use gridlet_lang::program::check;
use gridlet_lang::source::SourceMap;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{Linkage, Module};
use inkwell::values::FunctionValue;

use super::declare::free;
use super::{record, turns};
use crate::codegen::{self, GpuModuleOptions};
use crate::error::{Error, Result};
use crate::messages;
use gridlet_lang::arch::CudaArch;

/// A program with a launch of each kind.
const SOURCE: &str = "kernel a() {} kernel b() { launch a<<<1, 1, stream = tail>>>(); }";

/// The functions for turns, each before those that it calls.
const TURN_FUNCTIONS: [&str; 5] = [OPEN_TURNS, OPEN_ROW, AWAIT_TURN, END_TURN, INSIDE];

/// Whether a function makes lanes take turns.
pub(super) fn is_turn(symbol: &str) -> bool {
    called_in_turn(symbol).is_some()
        || TURN_FUNCTIONS.iter().any(|turn| symbol::internal(turn) == symbol)
}

/// Whether the functions for emitted launches are in a module.
pub(super) fn is_complete(module: &Module<'_>) -> bool {
    let record = module.get_function(&symbol::internal(RECORD_LOST_LAUNCH));
    record.is_some_and(|record| record.count_basic_blocks() > 0)
}

/// Adds the functions to a module with emitted launches, unless it has them, and turns where launches need them.
pub(super) fn complete(module: &Module<'_>) -> Result<()> {
    let is_recorded = module.get_function(&symbol::internal(RECORD_LOST_LAUNCH)).is_some();
    let without_turns = turns::missing(module);
    let has_tail = !without_turns.is_empty();
    if is_complete(module) || !has_tail && !is_recorded {
        return Ok(());
    }
    if !record::open(module) {
        free(module, LOST_LAUNCH_RECORD, "Gridlet's record of lost launches")?;
    }
    if has_tail {
        turns::add(module, &without_turns)?;
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
    let names = TURN_FUNCTIONS.map(symbol::internal);
    for function in names.iter().chain([&record]).filter_map(|name| module.get_function(name)) {
        function.set_linkage(Linkage::Internal);
    }
    Ok(())
}

/// The functions as bitcode.
fn functions(has_tail: bool) -> Result<Vec<u8>> {
    let program = check(SourceMap::single("launches.grid", SOURCE))?;
    let options =
        LaunchOptions::for_arch(LaunchStrategy::Cdp, CudaArch::DEFAULT).with_notice(false);
    let lowered = program.lower(&options)?;
    let context = Context::create();
    let options = GpuModuleOptions { version: false, ..GpuModuleOptions::default() };
    let module = codegen::build_module_for(&context, &lowered, options)?;
    let delete = |name: &str| {
        if let Some(function) = module.get_function(name) {
            // SAFETY: nothing uses it any more.
            unsafe { function.delete() };
        }
    };
    // Each before those that it uses.
    ["b", "own.b.body", "a", "own.a.body"].into_iter().for_each(delete);
    let functions: Vec<FunctionValue<'_>> = module.get_functions().collect();
    for function in functions {
        let name = function.get_name().to_string_lossy().into_owned();
        if called_in_turn(&name).is_some() {
            delete(&name);
        }
    }
    for name in TURN_FUNCTIONS.map(symbol::internal) {
        if has_tail {
            module.get_function(&name).into_iter().for_each(|it| it.set_linkage(Linkage::External));
        } else {
            delete(&name);
        }
    }
    if let Some(record) = module.get_function(&symbol::internal(RECORD_LOST_LAUNCH)) {
        record.set_linkage(Linkage::External);
    }
    if !has_tail && let Some(words) = module.get_global(&symbol::internal(TURNS)) {
        // SAFETY: the functions that use it are gone.
        unsafe { words.delete() };
    }
    Ok(module.write_bitcode_to_memory().as_slice().to_vec())
}
