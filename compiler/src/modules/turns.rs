//! Turns in modules of other compilers: as in the language (`launch/cdp/turns.rs` in `gridlet-lang`), the lanes of a warp that are together call
//! the device runtime in turn with the others, in kernels that may launch into the tail stream.

use std::collections::HashSet;

use gridlet_lang::ir::{LaunchBounds, symbol};
use gridlet_lang::launch::cdp::symbols::{
    AWAIT_TURN, END_TURN, IN_TURN, NamedStream, OPEN_TURNS, RuntimeFunction, TURNS,
};
use inkwell::attributes::AttributeLoc;
use inkwell::builder::BuilderError;
use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::LLVMSetOperand;
use inkwell::module::{Linkage, Module};
use inkwell::values::{AsValueRef as _, BasicMetadataValueEnum, FunctionValue};

use super::launch::building;
use super::{kernels, runtime};
use crate::error::Result;
use crate::nvvm::legacy::llvm::{self, Kind, Value};

/// The functions whose calls of the device runtime need turns and have none: lanes of a warp may be there at the same time, one of them with
/// a launch into the tail stream.
pub(super) fn missing<'m>(module: &'m Module<'_>) -> HashSet<Value<'m>> {
    // Where the functions for turns were inlined, their words are left.
    let words = symbol::internal(TURNS);
    let has_turns = module.get_function(&symbol::internal(OPEN_TURNS)).is_some()
        || [symbol::external(&words), words].iter().any(|name| module.get_global(name).is_some());
    if has_turns { HashSet::new() } else { needed(llvm::Module::new(module)) }
}

/// The functions whose calls of the device runtime need turns: those that a kernel may call which launches into the tail stream and whose
/// blocks may have several threads.
fn needed(module: llvm::Module<'_>) -> HashSet<Value<'_>> {
    let launching = runtime::declared(module).into_iter().filter(|(function, known)| {
        *known == RuntimeFunction::LaunchDevice
            && runtime::wrong_signature(*function, *known).is_none()
    });
    let tail: HashSet<Value<'_>> = launching
        .flat_map(|(function, _)| runtime::calls(function))
        .filter(|call| call.arguments().get(1).is_some_and(|stream| is_tail(*stream)))
        .filter_map(Value::function)
        .collect();
    if tail.is_empty() {
        return tail;
    }
    // A call through a pointer may reach each function.
    if module.functions().into_iter().any(calls_through_pointer) {
        return module.functions().into_iter().collect();
    }
    kernels::kernels(module)
        .into_iter()
        .filter(|kernel| !LaunchBounds::is_one_thread(kernels::launch_bounds(*kernel)))
        .map(runtime::reached)
        .filter(|reached| reached.iter().any(|function| tail.contains(function)))
        .flatten()
        .collect()
}

fn calls_through_pointer(function: Value<'_>) -> bool {
    let mut instructions = function.blocks().into_iter().flat_map(|block| block.instructions());
    instructions.any(|instruction| {
        instruction.opcode() == LLVMOpcode::LLVMCall
            && !matches!(instruction.callee().kind(), Kind::Function | Kind::Asm)
    })
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

/// Makes the lanes of a warp take turns in the device runtime, in the functions that [`missing`] gave. [`super::complete::add_functions`]
/// must follow.
pub(super) fn add(module: &Module<'_>, needed: &HashSet<Value<'_>>) -> Result<()> {
    open(module, needed).map_err(building)?;
    take(module, needed).map_err(building)
}

/// Makes calls of the device runtime in these functions calls in turn.
fn take(module: &Module<'_>, needed: &HashSet<Value<'_>>) -> std::result::Result<(), BuilderError> {
    for (function, _) in runtime::declared(llvm::Module::new(module)) {
        let mut calls = runtime::calls(function);
        calls.retain(|call| call.function().is_some_and(|caller| needed.contains(&caller)));
        let declared = module.get_function(&kernels::name(function));
        let Some(declared) = declared.filter(|_| !calls.is_empty()) else { continue };
        let in_turn = build_in_turn(module, declared)?;
        for call in calls {
            let callee = call.operand_count() - 1;
            // SAFETY: the last operand of a call is what it calls, and both functions have the same type.
            unsafe { LLVMSetOperand(call.raw(), callee, in_turn.as_value_ref()) };
        }
    }
    Ok(())
}

/// A function that calls one of the device runtime in turn.
fn build_in_turn<'ctx>(
    module: &Module<'ctx>,
    function: FunctionValue<'ctx>,
) -> std::result::Result<FunctionValue<'ctx>, BuilderError> {
    let context = module.get_context();
    let builder = context.create_builder();
    let name = symbol::internal(&format!("{IN_TURN}{}", function.get_name().to_string_lossy()));
    let in_turn = module.add_function(&name, function.get_type(), Some(Linkage::Internal));
    for name in ["noinline", "convergent"] {
        let kind = inkwell::attributes::Attribute::get_named_enum_kind_id(name);
        in_turn.add_attribute(AttributeLoc::Function, context.create_enum_attribute(kind, 0));
    }
    builder.position_at_end(context.append_basic_block(in_turn, "entry"));
    builder.build_call(declare(module, AWAIT_TURN), &[], "")?;
    let arguments: Vec<BasicMetadataValueEnum<'_>> =
        in_turn.get_param_iter().map(Into::into).collect();
    let call = builder.build_call(function, &arguments, "")?;
    for place in (0..in_turn.count_params()).map(AttributeLoc::Param) {
        for attribute in function.attributes(place) {
            in_turn.add_attribute(place, attribute);
            call.add_attribute(place, attribute);
        }
    }
    builder.build_call(declare(module, END_TURN), &[], "")?;
    let result = call.try_as_basic_value().basic();
    builder.build_return(result.as_ref().map(|value| value as _))?;
    Ok(in_turn)
}

/// A function for turns, which has no parameters and no result.
fn declare<'ctx>(module: &Module<'ctx>, name: &str) -> FunctionValue<'ctx> {
    let name = symbol::internal(name);
    let nothing = module.get_context().void_type().fn_type(&[], false);
    module.get_function(&name).unwrap_or_else(|| module.add_function(&name, nothing, None))
}

/// Opens the turns at the start of each kernel that may call the device runtime in one of these functions.
fn open(module: &Module<'_>, needed: &HashSet<Value<'_>>) -> std::result::Result<(), BuilderError> {
    let view = llvm::Module::new(module);
    let declared = runtime::declared(view).into_iter();
    let mut launching: HashSet<Value<'_>> = declared
        .flat_map(|(function, _)| runtime::calls(function))
        .filter_map(Value::function)
        .collect();
    launching.retain(|function| needed.contains(function));
    let builder = module.get_context().create_builder();
    for kernel in kernels::kernels(view) {
        let may_launch = |function: &Value<'_>| {
            launching.contains(function)
                || needed.contains(function) && calls_through_pointer(*function)
        };
        if !runtime::reached(kernel).iter().any(may_launch) {
            continue;
        }
        let kernel = module.get_function(&kernels::name(kernel));
        let first = kernel.and_then(FunctionValue::get_first_basic_block);
        let Some(first) = first.and_then(|block| block.get_first_instruction()) else { continue };
        builder.position_before(&first);
        builder.build_call(declare(module, OPEN_TURNS), &[], "")?;
    }
    Ok(())
}
