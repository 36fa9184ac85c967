//! Remainders of 64 bits for LLVM's back end.
//!
//! LLVM makes `x - x / y * y` of a remainder beside its quotient. The back end divides in 32 bits where both operands are that small,
//! but would compute the product and the difference in 64 bits all the same. Of a remainder it computes all in 32 bits.

use inkwell::builder::BuilderError;
use inkwell::module::Module;
use inkwell::values::{
    BasicValue as _, BasicValueEnum, InstructionOpcode, InstructionValue, IntValue,
};

use super::loops::instructions;
use crate::error::{Error, Result};

/// Writes remainders where differences are those of quotients in the same block.
pub(super) fn restore(module: &Module<'_>) -> Result<()> {
    for difference in instructions(module).collect::<Vec<_>>() {
        if let Some(division) = division_of(difference) {
            restore_one(module, difference, division)
                .map_err(|error| Error::internal("ptx", format!("remainder: {error}")))?;
        }
    }
    Ok(())
}

/// A division by a variable.
struct Division<'ctx> {
    dividend: IntValue<'ctx>,
    divisor: IntValue<'ctx>,
    is_signed: bool,
}

/// The division whose remainder a difference is.
fn division_of(difference: InstructionValue<'_>) -> Option<Division<'_>> {
    let [dividend, product] = operands(difference, InstructionOpcode::Sub)?;
    let factors = operands(product.as_instruction_value()?, InstructionOpcode::Mul)?;
    let [first, second] = factors;
    [[first, second], [second, first]].into_iter().find_map(|[quotient, divisor]| {
        let quotient = quotient.as_instruction_value()?;
        let is_signed = quotient.get_opcode() == InstructionOpcode::SDiv;
        let division = if is_signed { InstructionOpcode::SDiv } else { InstructionOpcode::UDiv };
        let is_of_these = operands(quotient, division)? == [dividend, divisor];
        let is_here = quotient.get_parent() == difference.get_parent();
        let is_variable = !divisor.is_const();
        (is_of_these && is_here && is_variable).then_some(Division { dividend, divisor, is_signed })
    })
}

/// The operands of an instruction of 64 bits.
fn operands(
    instruction: InstructionValue<'_>,
    opcode: InstructionOpcode,
) -> Option<[IntValue<'_>; 2]> {
    if instruction.get_opcode() != opcode {
        return None;
    }
    let operand = |at| match instruction.get_operand(at)?.value()? {
        BasicValueEnum::IntValue(value) if value.get_type().get_bit_width() == 64 => Some(value),
        _ => None,
    };
    Some([operand(0)?, operand(1)?])
}

fn restore_one<'ctx>(
    module: &Module<'ctx>,
    difference: InstructionValue<'ctx>,
    division: Division<'ctx>,
) -> std::result::Result<(), BuilderError> {
    let Division { dividend, divisor, is_signed } = division;
    let builder = module.get_context().create_builder();
    builder.position_before(&difference);
    let remainder = match is_signed {
        true => builder.build_int_signed_rem(dividend, divisor, "remainder")?,
        false => builder.build_int_unsigned_rem(dividend, divisor, "remainder")?,
    };
    if let Some(remainder) = remainder.as_instruction_value() {
        difference.replace_all_uses_with(&remainder);
    }
    Ok(())
}
