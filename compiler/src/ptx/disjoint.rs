//! Sums instead of `or` of disjoint bits.
//!
//! LLVM makes `or` of a sum if the two numbers have no bit in common. A GPU shifts and adds in one instruction, but does not shift and combine.

use inkwell::llvm_sys::core::LLVMGetIsDisjoint;
use inkwell::module::Module;
use inkwell::values::{
    AsValueRef as _, BasicValue as _, BasicValueEnum, InstructionOpcode, InstructionValue, IntValue,
};

use super::loops;
use crate::error::{Error, Result};

/// Adds numbers of 32 bits of which one is shifted.
pub(super) fn add(module: &Module<'_>) -> Result<()> {
    let builder = module.get_context().create_builder();
    for or in loops::instructions(module).collect::<Vec<_>>() {
        let Some([left, right]) = disjoint(or) else { continue };
        builder.position_before(&or);
        let sum = builder
            .build_int_nuw_add(left, right, "")
            .map_err(|error| Error::internal("ptx", format!("disjoint bits: {error}")))?;
        if let Some(sum) = sum.as_instruction_value() {
            or.replace_all_uses_with(&sum);
            or.erase_from_basic_block();
        }
    }
    Ok(())
}

/// The operands of such an `or`.
fn disjoint<'ctx>(or: InstructionValue<'ctx>) -> Option<[IntValue<'ctx>; 2]> {
    if or.get_opcode() != InstructionOpcode::Or {
        return None;
    }
    // SAFETY: it is an `or`.
    if unsafe { LLVMGetIsDisjoint(or.as_value_ref()) } == 0 {
        return None;
    }
    let operand = |at| match or.get_operand(at)?.value()? {
        BasicValueEnum::IntValue(value) => Some(value),
        _ => None,
    };
    let [left, right] = [operand(0)?, operand(1)?];
    let is_word = left.get_type().get_bit_width() == 32;
    (is_word && (is_shifted(left) || is_shifted(right))).then_some([left, right])
}

/// Whether a value is shifted to the left by a constant.
fn is_shifted(value: IntValue<'_>) -> bool {
    value.as_instruction_value().is_some_and(|shift| {
        let by = shift.get_operand(1).and_then(|by| by.value());
        shift.get_opcode() == InstructionOpcode::Shl && by.and_then(loops::constant).is_some()
    })
}
