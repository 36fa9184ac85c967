//! Counters of loops that are computed in one place.
//!
//! Where one way through a loop computes `k + 1`, LLVM computes it on the others, too, and not where they join. The counter of such a loop is
//! not seen as one, and the loop is not unrolled.

use inkwell::builder::{Builder, BuilderError};
use inkwell::llvm_sys::core::{LLVMGetNSW, LLVMGetNUW};
use inkwell::module::Module;
use inkwell::values::{
    AsValueRef, BasicValue as _, BasicValueEnum, InstructionOpcode, InstructionValue, PhiValue,
};

use super::loops::{self, Loop};
use crate::error::{Error, Result};

/// Computes counters where the ways to a loop's end join.
pub(super) fn join(module: &Module<'_>) -> Result<()> {
    let builder = module.get_context().create_builder();
    for found in module.get_functions().flat_map(loops::find) {
        for counter in found.head.get_instructions() {
            let Some((joined, sums)) = sums(counter, &found) else { continue };
            add(&builder, joined, &sums)
                .map_err(|error| Error::internal("ptx", format!("counter: {error}")))?;
        }
    }
    Ok(())
}

/// What joins the sums of a counter and the same number that the ways through a loop compute, and these sums.
fn sums<'ctx>(
    counter: InstructionValue<'ctx>,
    of: &Loop<'ctx>,
) -> Option<(InstructionValue<'ctx>, Vec<InstructionValue<'ctx>>)> {
    let phi = PhiValue::try_from(counter).ok()?;
    let joined = loops::instruction(phi.get_incomings().find(|(_, from)| *from == of.latch)?.0)?;
    if joined.get_parent() == Some(of.head) {
        return None;
    }
    let mut step = None;
    let sums: Option<Vec<_>> = PhiValue::try_from(joined)
        .ok()?
        .get_incomings()
        .map(|(value, _)| {
            let sum = loops::instruction(value)?;
            let by = loops::step_of(counter, sum)?;
            (*step.get_or_insert(by) == by).then_some(sum)
        })
        .collect();
    Some((joined, sums?))
}

/// Replaces what joins equal sums by one sum. It may only wrap if one of them may.
fn add<'ctx>(
    builder: &Builder<'ctx>,
    joined: InstructionValue<'ctx>,
    sums: &[InstructionValue<'ctx>],
) -> std::result::Result<(), BuilderError> {
    let operand = |at| {
        let operand = sums.first()?.get_operand(at)?.value()?;
        if let BasicValueEnum::IntValue(value) = operand { Some(value) } else { None }
    };
    let is_phi = |it: &InstructionValue<'ctx>| it.get_opcode() == InstructionOpcode::Phi;
    let place =
        joined.get_parent().and_then(|block| block.get_instructions().find(|it| !is_phi(it)));
    let (Some(counter), Some(step), Some(place)) = (operand(0), operand(1), place) else {
        return Ok(());
    };
    builder.position_before(&place);
    // SAFETY: they are additions.
    let [nuw, nsw] = unsafe {
        [LLVMGetNUW, LLVMGetNSW].map(|flag| sums.iter().all(|sum| flag(sum.as_value_ref()) != 0))
    };
    let sum = match (nuw, nsw) {
        (true, _) => builder.build_int_nuw_add(counter, step, "")?,
        (_, true) => builder.build_int_nsw_add(counter, step, "")?,
        _ => builder.build_int_add(counter, step, "")?,
    };
    if let Some(sum) = sum.as_instruction_value() {
        joined.replace_all_uses_with(&sum);
        joined.erase_from_basic_block();
    }
    Ok(())
}
