//! Launches whose status a module of another compiler drops: a failure is recorded for the host, as that of a plain launch of
//! the language. A module that reads the status (`reads.rs`) handles failures itself.

use std::collections::HashSet;

use gridlet_artifact::manifest::LINKED_SOURCE;
use gridlet_lang::ir::symbol;
use gridlet_lang::launch::RECORD_LOST_LAUNCH;
use gridlet_lang::launch::cdp::symbols::{
    ERROR_LAUNCH_PENDING_COUNT_EXCEEDED, OPEN_TURNS, RuntimeFunction,
};
use gridlet_lang::source::SourceMap;
use inkwell::IntPredicate;
use inkwell::builder::BuilderError;
use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::LLVMSetOperand;
use inkwell::module::{Linkage, Module};
use inkwell::values::{AsValueRef as _, FunctionValue, InstructionValue, IntValue, PointerValue};

use super::kernels::name;
use super::launch::{building, given_position};
use super::positions::Positions;
use super::uses::{Uses, uses};
use super::variables::source;
use super::{files, null_checks, positions, reads, runtime};
use crate::error::Result;
use crate::nvvm::legacy::llvm::{self, Kind, Value};

/// Records a status that is not 0. It is a function because LLVM's C interface cannot split a block.
const NOTE_STATUS: &str = "gridlet.note_status";

/// Whether an instruction was added to the module that was read. `has_turns`: that module opens turns itself.
pub(super) fn is_added(instruction: Value<'_>, has_turns: bool) -> bool {
    // The comparison and the choice before a call have only it as their user.
    let mut at = instruction;
    loop {
        if at.opcode() == LLVMOpcode::LLVMCall {
            let callee = at.callee();
            let called = if callee.kind() == Kind::Function { name(callee) } else { return false };
            return called == symbol::internal(NOTE_STATUS)
                || !has_turns && called == symbol::internal(OPEN_TURNS);
        }
        let users = at.users();
        let is_step = matches!(at.opcode(), LLVMOpcode::LLVMICmp | LLVMOpcode::LLVMSelect);
        match users[..] {
            [user] if is_step && user.kind() == Kind::Instruction => at = user,
            _ => return false,
        }
    }
}

/// Gives the records that the module has without a position the line of its text. `sources` starts with that text.
pub(super) fn locate(module: &Module<'_>, sources: &SourceMap) {
    let view = llvm::Module::new(module);
    let record = symbol::internal(RECORD_LOST_LAUNCH);
    let record = view.functions().into_iter().find(|function| name(*function) == record);
    let has_no_place =
        |call: &Value<'_>| call.arguments().iter().skip(1).all(|value| value.unsigned() == Some(0));
    let mut calls = record.map(runtime::calls).unwrap_or_default();
    calls.retain(has_no_place);
    if calls.is_empty() {
        return;
    }
    let positions = Positions::of(sources);
    let word = module.get_context().i32_type();
    for call in calls {
        let line = positions.instruction(call).map_or(0, |span| sources.line(span));
        // SAFETY: the call takes three `i32`; the last is the line.
        unsafe { LLVMSetOperand(call.raw(), 2, word.const_int(line.into(), false).as_value_ref()) };
    }
}

/// Records failures of the launches whose status is dropped. A buffer that is NULL is a failure where the module tests for it, or
/// may do so where that is not seen, because it then skips the launch. `sources` starts with the module's text. `is_linked`: the module
/// becomes part of a program that does not know its files. Gives whether [`super::complete::add_functions`] must follow.
pub(super) fn record(module: &Module<'_>, sources: &SourceMap, is_linked: bool) -> Result<bool> {
    let record = symbol::internal(RECORD_LOST_LAUNCH);
    let has_record =
        module.get_function(&record).is_some_and(|known| known.count_basic_blocks() > 0);
    let dropped = dropped(llvm::Module::new(module));
    if dropped.is_empty() {
        return Ok(false);
    }
    let places = Places { module, sources, lines: Positions::of(sources), is_linked };
    let noted: Vec<_> = dropped
        .into_iter()
        .map(|(call, known)| Ok((call, known, places.of_call(call)?)))
        .collect::<Result<_>>()?;
    let note = note_status(module).map_err(building)?;
    for (call, known, place) in noted {
        add(module, note, call, known, place).map_err(building)?;
    }
    Ok(!has_record)
}

/// The launches whose status is dropped, and the requests for their buffers that are tested; also those that are tested only to
/// skip a launch whose status is read.
fn dropped(module: llvm::Module<'_>) -> Vec<(Value<'_>, RuntimeFunction)> {
    let declared = runtime::declared(module);
    let right = declared.iter().filter(|(function, known)| {
        function.is_declaration() && runtime::wrong_signature(*function, *known).is_none()
    });
    let calls: Vec<_> = right
        .flat_map(|(function, known)| {
            runtime::calls(*function).into_iter().map(|call| (call, *known))
        })
        .collect();
    let launches = calls
        .iter()
        .filter(|(call, known)| *known == RuntimeFunction::LaunchDevice && !reads::is_read(*call));
    let mut found: Vec<_> = launches.copied().collect();
    let buffers: HashSet<Value<'_>> = found
        .iter()
        .filter_map(|(call, _)| call.arguments().first().copied())
        .map(source)
        .collect();
    let drops_some = !found.is_empty();
    let launchers = declared.iter().filter(|(_, known)| *known == RuntimeFunction::LaunchDevice);
    let launchers: Vec<_> = launchers.map(|(function, _)| *function).collect();
    found.extend(calls.iter().copied().filter(|(call, known)| {
        *known == RuntimeFunction::GetParameterBuffer
            && match uses(*call, &launchers) {
                // A test and the launch may be there.
                Uses { is_elsewhere: true, .. } => drops_some,
                uses if buffers.contains(call) => !uses.tests.is_empty(),
                uses => null_checks::only_skip(*call, &uses),
            }
    }));
    found
}

/// A file's number in the record of lost launches, and a line.
type Place = (u32, u32);

/// The positions of calls: those of the module's debug information, otherwise the lines of its text.
struct Places<'a, 'ctx> {
    module: &'a Module<'ctx>,
    sources: &'a SourceMap,
    lines: Positions,
    is_linked: bool,
}

impl Places<'_, '_> {
    fn of_call(&self, call: Value<'_>) -> Result<Place> {
        let in_text = || self.lines.instruction(call).map_or(0, |span| self.sources.line(span));
        if self.is_linked {
            return Ok((LINKED_SOURCE, in_text()));
        }
        if let Some((file, line)) = given_position(self.module, call) {
            return Ok((files::number(self.module, &file)?, line));
        }
        if let Some(position) = positions::position(call) {
            return Ok((files::number(self.module, &position.file)?, position.line));
        }
        Ok((0, in_text()))
    }
}

/// The function that takes a status, and a file and a line.
fn note_status<'ctx>(
    module: &Module<'ctx>,
) -> std::result::Result<FunctionValue<'ctx>, BuilderError> {
    let context = module.get_context();
    let word = context.i32_type();
    let ty = context.void_type().fn_type(&[word.into(); 3], false);
    let record = symbol::internal(RECORD_LOST_LAUNCH);
    let record =
        module.get_function(&record).unwrap_or_else(|| module.add_function(&record, ty, None));
    let note = module.add_function(&symbol::internal(NOTE_STATUS), ty, Some(Linkage::Internal));
    let [entry, lost, end] =
        ["entry", "lost", "end"].map(|name| context.append_basic_block(note, name));
    let builder = context.create_builder();
    builder.position_at_end(entry);
    let parameters: Vec<_> =
        note.get_param_iter().map(|parameter| parameter.into_int_value()).collect();
    let failed =
        builder.build_int_compare(IntPredicate::NE, parameters[0], word.const_zero(), "failed")?;
    builder.build_conditional_branch(failed, lost, end)?;
    builder.position_at_end(lost);
    let arguments: Vec<_> = parameters.iter().map(|value| (*value).into()).collect();
    builder.build_call(record, &arguments, "")?;
    builder.build_unconditional_branch(end)?;
    builder.position_at_end(end);
    builder.build_return(None)?;
    Ok(note)
}

/// Adds a call of `note` behind a call.
fn add<'ctx>(
    module: &Module<'ctx>,
    note: FunctionValue<'ctx>,
    call: Value<'_>,
    known: RuntimeFunction,
    (file, line): Place,
) -> std::result::Result<(), BuilderError> {
    let context = module.get_context();
    let word = context.i32_type();
    let builder = context.create_builder();
    // SAFETY: a call is an instruction of this module.
    let instruction = unsafe { InstructionValue::new(call.raw()) };
    // A call does not end a block.
    let Some(next) = instruction.get_next_instruction() else { return Ok(()) };
    builder.position_before(&next);
    let status = if known == RuntimeFunction::LaunchDevice {
        // SAFETY: the signature is CUDA's, so the result is an `i32`.
        unsafe { IntValue::new(call.raw()) }
    } else {
        // SAFETY: the signature is CUDA's, so the result is a pointer.
        let buffer = unsafe { PointerValue::new(call.raw()) };
        let full = word.const_int(ERROR_LAUNCH_PENDING_COUNT_EXCEEDED as u64, false);
        let is_full = builder.build_is_null(buffer, "is_full")?;
        builder.build_select(is_full, full, word.const_zero(), "buffer_status")?.into_int_value()
    };
    let number = |value: u32| word.const_int(u64::from(value), false);
    builder.build_call(note, &[status.into(), number(file).into(), number(line).into()], "")?;
    Ok(())
}
