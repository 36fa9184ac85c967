//! The functions that emitted launches call: taken from a program of the language, so that there is one of each.

use gridlet_lang::ir::symbol;
use gridlet_lang::launch::cdp::symbols::{
    AWAIT_TURN, END_TURN, IN_TURN, INSIDE, NamedStream, OPEN_TURNS, RuntimeFunction, TURNS,
    called_in_turn,
};
use gridlet_lang::launch::{LOST_LAUNCH_RECORD, LaunchOptions, LaunchStrategy, RECORD_LOST_LAUNCH};
use gridlet_lang::program::check;
use gridlet_lang::source::SourceMap;
use inkwell::attributes::AttributeLoc;
use inkwell::builder::BuilderError;
use inkwell::context::Context;
use inkwell::llvm_sys::LLVMOpcode;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{Linkage, Module};
use inkwell::values::{BasicMetadataValueEnum, FunctionValue};

use super::declare::free;
use super::launch::building;
use super::{kernels, record, runtime};
use crate::codegen::{self, GpuModuleOptions};
use crate::error::{Error, Result};
use crate::messages;
use crate::nvvm::legacy::llvm::{self, Kind, Value};
use gridlet_lang::arch::CudaArch;

/// A program with a launch of each kind.
const SOURCE: &str = "kernel a() {} kernel b() { launch a<<<1, 1, stream = tail>>>(); }";

/// The functions for turns, each before those that it calls.
const TURN_FUNCTIONS: [&str; 4] = [OPEN_TURNS, AWAIT_TURN, END_TURN, INSIDE];

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

/// Adds the functions to a module with emitted launches, unless it has them. If one launches into the tail stream, the lanes of a warp
/// take turns in the device runtime.
pub(super) fn complete(module: &Module<'_>) -> Result<()> {
    let is_recorded = module.get_function(&symbol::internal(RECORD_LOST_LAUNCH)).is_some();
    let has_tail = lacks_turns(module);
    if is_complete(module) || !has_tail && !is_recorded {
        return Ok(());
    }
    if !record::open(module) {
        free(module, LOST_LAUNCH_RECORD, "Gridlet's record of lost launches")?;
    }
    if has_tail {
        add_turns(module)?;
    }
    add_functions(module, has_tail)
}

/// Whether a module launches into the tail stream, and lanes of a warp may be in the device runtime at the same time.
pub(super) fn lacks_turns(module: &Module<'_>) -> bool {
    // Where the functions for turns were inlined, their words are left.
    let words = symbol::internal(TURNS);
    let has_turns = module.get_function(&symbol::internal(OPEN_TURNS)).is_some()
        || [symbol::external(&words), words].iter().any(|name| module.get_global(name).is_some());
    let declared = runtime::declared(llvm::Module::new(module)).into_iter();
    let mut launches = declared
        .filter(|(function, known)| {
            *known == RuntimeFunction::LaunchDevice
                && runtime::wrong_signature(*function, *known).is_none()
        })
        .flat_map(|(function, _)| runtime::calls(function));
    !has_turns && launches.any(|call| call.arguments().get(1).is_some_and(|at| is_tail(*at)))
}

/// Whether a stream is CUDA's tail stream.
fn is_tail(stream: Value<'_>) -> bool {
    let opcode = match stream.kind() {
        Kind::Expression => stream.constant_opcode(),
        Kind::Instruction => stream.opcode(),
        _ => return false,
    };
    opcode == LLVMOpcode::LLVMIntToPtr
        && stream.operand(0).unsigned() == Some(NamedStream::TailLaunch.handle())
}

/// Makes the lanes of a warp take turns in the device runtime. [`add_functions`] must follow.
pub(super) fn add_turns(module: &Module<'_>) -> Result<()> {
    open_turns(module)?;
    take_turns(module).map_err(building)
}

/// Makes all calls of the device runtime calls in turn.
fn take_turns(module: &Module<'_>) -> std::result::Result<(), BuilderError> {
    let context = module.get_context();
    let builder = context.create_builder();
    let nothing = context.void_type().fn_type(&[], false);
    let turn = |name: &str| {
        let name = symbol::internal(name);
        module.get_function(&name).unwrap_or_else(|| module.add_function(&name, nothing, None))
    };
    let declared = runtime::declared(llvm::Module::new(module)).into_iter();
    let declared =
        declared.filter_map(|(function, _)| module.get_function(&kernels::name(function)));
    for function in declared.collect::<Vec<_>>() {
        let name = symbol::internal(&format!("{IN_TURN}{}", function.get_name().to_string_lossy()));
        let in_turn = module.add_function(&name, function.get_type(), Some(Linkage::Internal));
        function.replace_all_uses_with(in_turn);
        for name in ["noinline", "convergent"] {
            let kind = inkwell::attributes::Attribute::get_named_enum_kind_id(name);
            in_turn.add_attribute(AttributeLoc::Function, context.create_enum_attribute(kind, 0));
        }

        builder.position_at_end(context.append_basic_block(in_turn, "entry"));
        builder.build_call(turn(AWAIT_TURN), &[], "")?;
        let arguments: Vec<BasicMetadataValueEnum<'_>> =
            in_turn.get_param_iter().map(Into::into).collect();
        let call = builder.build_call(function, &arguments, "")?;
        for place in (0..in_turn.count_params()).map(AttributeLoc::Param) {
            for attribute in function.attributes(place) {
                in_turn.add_attribute(place, attribute);
                call.add_attribute(place, attribute);
            }
        }
        builder.build_call(turn(END_TURN), &[], "")?;
        let result = call.try_as_basic_value().basic();
        builder.build_return(result.as_ref().map(|value| value as _))?;
    }
    Ok(())
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

/// Opens the turns at the start of each kernel that may launch.
fn open_turns(module: &Module<'_>) -> Result<()> {
    let view = llvm::Module::new(module);
    let declared: Vec<String> =
        runtime::declared(view).into_iter().map(|(function, _)| kernels::name(function)).collect();
    let launching: Vec<String> =
        runtime::reaching(view, &declared).into_iter().map(kernels::name).collect();
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
