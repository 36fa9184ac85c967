//! Divisions of 8 and 16 bits by constants, with 32 bits.
//!
//! Where LLVM knows that a number of 32 bits is small, it divides with 16. A GPU then makes a number of 16 bits of each step: five
//! instructions more for a remainder. A decoder whose loops reduce products by 255 took 1.24 times as long as nvcc's code, and takes 0.96.
//!
//! | LLVM IR | becomes |
//! |---|---|
//! | `%n = trunc nuw i32 %x to i16` | |
//! | `%r = urem i16 %n, 255` | `%w = urem i32 %x, 255` |
//! | `%z = zext i16 %r to i32` | `%w` |
//!
//! Another number of 16 bits is widened first, if all results are.

use inkwell::builder::BuilderError;
use inkwell::llvm_sys::core::LLVMGetNUW;
use inkwell::module::Module;
use inkwell::types::AnyTypeEnum;
use inkwell::values::{
    AsValueRef as _, BasicValue as _, InstructionOpcode, InstructionValue, IntValue,
};

use super::loops::{instructions, integer};
use crate::error::{Error, Result};

/// Divides with 32 bits what was shortened.
pub(super) fn widen(module: &Module<'_>) -> Result<()> {
    for division in instructions(module).collect::<Vec<_>>() {
        if let Some((dividend, divisor)) = wide_operands(division) {
            widen_one(module, division, dividend, divisor)
                .map_err(|error| Error::internal("ptx", format!("narrow quotient: {error}")))?;
        }
    }
    Ok(())
}

/// The number that a division without signs divides, as it was before it was shortened, and the constant by which.
fn wide_operands(division: InstructionValue<'_>) -> Option<(IntValue<'_>, u64)> {
    use InstructionOpcode::{Trunc, UDiv, URem};
    if ![UDiv, URem].contains(&division.get_opcode()) {
        return None;
    }
    let [shortened, divisor] = [integer(division, 0)?, integer(division, 1)?];
    // Powers of two are shifts and masks.
    let divisor = divisor.get_zero_extended_constant().filter(|it| !it.is_power_of_two())?;
    let is_narrow = [8, 16].contains(&shortened.get_type().get_bit_width());
    if !is_narrow || divisor == 0 {
        return None;
    }
    let keeps_all = |one: &InstructionValue<'_>| {
        // SAFETY: the instruction is a `trunc`, which may have the flag.
        one.get_opcode() == Trunc && unsafe { LLVMGetNUW(one.as_value_ref()) } != 0
    };
    let whole = shortened.as_instruction_value().filter(keeps_all).and_then(|one| integer(one, 0));
    if let Some(number) = whole.filter(|it| it.get_type().get_bit_width() >= 32) {
        return Some((number, divisor));
    }
    let is_word = |one: &InstructionValue<'_>| {
        one.get_opcode() == InstructionOpcode::ZExt
            && matches!(one.get_type(), AnyTypeEnum::IntType(ty) if ty.get_bit_width() == 32)
    };
    users(division).iter().all(is_word).then_some((shortened, divisor))
}

fn widen_one<'ctx>(
    module: &Module<'ctx>,
    division: InstructionValue<'ctx>,
    dividend: IntValue<'ctx>,
    divisor: u64,
) -> std::result::Result<(), BuilderError> {
    let context = module.get_context();
    let (word, builder) = (context.i32_type(), context.create_builder());
    let narrow = division.get_type().into_int_type();
    builder.position_before(&division);
    let dividend = builder.build_int_cast_sign_flag(dividend, word, false, "")?;
    let divisor = word.const_int(divisor, false);
    let result = match division.get_opcode() {
        InstructionOpcode::UDiv => builder.build_int_unsigned_div(dividend, divisor, "")?,
        _ => builder.build_int_unsigned_rem(dividend, divisor, "")?,
    };
    let Some(wide) = result.as_instruction_value() else { return Ok(()) };
    for widening in users(division) {
        if widening.get_opcode() == InstructionOpcode::ZExt && widening.get_type() == word.into() {
            widening.replace_all_uses_with(&wide);
            widening.erase_from_basic_block();
        }
    }
    let shortened = builder.build_int_truncate(result, narrow, "")?;
    if let Some(shortened) = shortened.as_instruction_value() {
        division.replace_all_uses_with(&shortened);
    }
    Ok(())
}

/// The instructions that use a result.
fn users(of: InstructionValue<'_>) -> Vec<InstructionValue<'_>> {
    let mut found = vec![];
    let mut next = of.get_first_use();
    while let Some(one) = next {
        found.extend(InstructionValue::try_from(one.get_user()).ok());
        next = one.get_next_use();
    }
    found
}
