//! Absolute values of 16-bit numbers, with 32 bits.
//!
//! LLVM narrows `abs` of a widened number, and what follows, to 16 bits. A GPU computes the absolute value of 32 bits in one instruction, that
//! of 16 bits in three (`workarounds.rs`), and widens the result in one more:
//!
//! | LLVM IR | becomes |
//! |---|---|
//! | `zext (umin (abs i16 %x), 32635) to i32` | `umin (abs i32 (sext %x)), 32635` |

use inkwell::builder::Builder;
use inkwell::intrinsics::Intrinsic;
use inkwell::llvm_sys::core::LLVMGetNUW;
use inkwell::module::Module;
use inkwell::types::IntType;
use inkwell::values::{
    AsValueRef as _, BasicValue as _, BasicValueEnum, InstructionOpcode, InstructionValue, IntValue,
};

use super::loops;
use crate::error::{Error, Result};

/// How far a value is followed.
const MOST_STEPS: u32 = 8;

/// Widens the chains from an absolute value of 16 bits to one of 32 that nothing else uses.
pub(super) fn widen(module: &Module<'_>) -> Result<()> {
    let word = module.get_context().i32_type();
    let builder = module.get_context().create_builder();
    let wide = Wide { module, word, builder: &builder };
    for zext in loops::instructions(module).collect::<Vec<_>>() {
        let Some(narrow) = narrow(zext, word) else { continue };
        if !wide.has_absolute(narrow, MOST_STEPS) {
            continue;
        }
        builder.position_before(&zext);
        let value = wide.value(narrow, MOST_STEPS)?;
        // A constant if LLVM knows the value.
        match value.as_instruction_value() {
            Some(value) => zext.replace_all_uses_with(&value),
            None => continue,
        }
        zext.erase_from_basic_block();
    }
    Ok(())
}

/// The number of 16 bits that an instruction widens to 32.
fn narrow<'ctx>(zext: InstructionValue<'ctx>, word: IntType<'ctx>) -> Option<IntValue<'ctx>> {
    let to_word = zext.get_opcode() == InstructionOpcode::ZExt && zext.get_type() == word.into();
    let operand = int(zext.get_operand(0)?.value()?)?;
    (to_word && operand.get_type().get_bit_width() == 16).then_some(operand)
}

struct Wide<'a, 'ctx> {
    module: &'a Module<'ctx>,
    word: IntType<'ctx>,
    builder: &'a Builder<'ctx>,
}

/// What computes a number of 16 bits, where the same with 32 bits gives that number with zeros before it.
enum Step<'ctx> {
    Absolute(IntValue<'ctx>),
    Extreme(&'static str, [IntValue<'ctx>; 2]),
    Operation(InstructionOpcode, [IntValue<'ctx>; 2]),
}

impl<'ctx> Wide<'_, 'ctx> {
    /// Whether a chain of steps, each used once, begins with an absolute value.
    fn has_absolute(&self, value: IntValue<'ctx>, steps: u32) -> bool {
        match step(value).filter(|_| steps > 0) {
            Some(Step::Absolute(_)) => true,
            Some(Step::Extreme(_, operands) | Step::Operation(_, operands)) => {
                operands.into_iter().any(|operand| self.has_absolute(operand, steps - 1))
            }
            None => false,
        }
    }

    fn value(&self, value: IntValue<'ctx>, steps: u32) -> Result<IntValue<'ctx>> {
        let wide = |operand| self.value(operand, steps - 1);
        let Some(step) = step(value).filter(|_| steps > 0) else {
            return Ok(self.builder.build_int_z_extend(value, self.word, "")?);
        };
        match step {
            Step::Absolute(of) => {
                let of = self.builder.build_int_s_extend(of, self.word, "")?;
                let flag = self.module.get_context().bool_type().const_zero();
                self.call("llvm.abs", &[of.into(), flag.into()])
            }
            Step::Extreme(name, [left, right]) => {
                self.call(name, &[wide(left)?.into(), wide(right)?.into()])
            }
            Step::Operation(operation, [left, right]) => {
                let (left, right) = (wide(left)?, wide(right)?);
                Ok(match operation {
                    InstructionOpcode::And => self.builder.build_and(left, right, ""),
                    InstructionOpcode::Or => self.builder.build_or(left, right, ""),
                    InstructionOpcode::Xor => self.builder.build_xor(left, right, ""),
                    InstructionOpcode::LShr => {
                        self.builder.build_right_shift(left, right, false, "")
                    }
                    _ => self.builder.build_int_nuw_add(left, right, ""),
                }?)
            }
        }
    }

    fn call(
        &self,
        name: &str,
        operands: &[inkwell::values::BasicMetadataValueEnum<'ctx>],
    ) -> Result<IntValue<'ctx>> {
        let function = Intrinsic::find(name)
            .and_then(|intrinsic| intrinsic.get_declaration(self.module, &[self.word.into()]));
        let none = || Error::internal("ptx", format!("`{name}` of 32 bits is missing"));
        let function = function.ok_or_else(none)?;
        let call = self.builder.build_call(function, operands, "")?;
        call.try_as_basic_value().basic().and_then(int).ok_or_else(none)
    }
}

/// The step that computes a value, if nothing else uses it.
fn step(value: IntValue<'_>) -> Option<Step<'_>> {
    let from = value.as_instruction_value()?;
    if from.get_first_use()?.get_next_use().is_some() {
        return None;
    }
    let operand = |at| int(from.get_operand(at)?.value()?);
    let operation = from.get_opcode();
    match operation {
        InstructionOpcode::Call => {
            let callee = loops::callee(from)?;
            match callee.get_name().to_str().ok()? {
                "llvm.abs.i16" => Some(Step::Absolute(operand(0)?)),
                "llvm.umin.i16" => Some(Step::Extreme("llvm.umin", [operand(0)?, operand(1)?])),
                "llvm.umax.i16" => Some(Step::Extreme("llvm.umax", [operand(0)?, operand(1)?])),
                _ => None,
            }
        }
        InstructionOpcode::And
        | InstructionOpcode::Or
        | InstructionOpcode::Xor
        | InstructionOpcode::LShr => Some(Step::Operation(operation, [operand(0)?, operand(1)?])),
        // SAFETY: it is an addition.
        InstructionOpcode::Add if unsafe { LLVMGetNUW(from.as_value_ref()) } != 0 => {
            Some(Step::Operation(operation, [operand(0)?, operand(1)?]))
        }
        _ => None,
    }
}

fn int(value: BasicValueEnum<'_>) -> Option<IntValue<'_>> {
    match value {
        BasicValueEnum::IntValue(value) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;

    use super::super::loops::module_of;
    use super::widen;

    #[test]
    fn chains_from_absolute_values_are_widened() {
        let text = "
define i32 @wide(i16 %x, i16 %y) {
  %a = call i16 @llvm.abs.i16(i16 %x, i1 false)
  %b = call i16 @llvm.umin.i16(i16 %a, i16 32635)
  %c = add nuw nsw i16 %b, 132
  %d = xor i16 %c, %y
  %e = zext i16 %d to i32
  ret i32 %e
}
define i32 @other_uses(i16 %x, ptr %p) {
  %a = call i16 @llvm.abs.i16(i16 %x, i1 false)
  store i16 %a, ptr %p
  %b = call i16 @llvm.umin.i16(i16 %a, i16 9)
  %c = zext i16 %b to i32
  ret i32 %c
}
define i32 @may_wrap(i16 %x) {
  %a = call i16 @llvm.abs.i16(i16 %x, i1 false)
  %b = add i16 %a, 40000
  %c = zext i16 %b to i32
  ret i32 %c
}
define i32 @no_absolute(i16 %x) {
  %a = lshr i16 %x, 3
  %b = zext i16 %a to i32
  ret i32 %b
}
declare i16 @llvm.abs.i16(i16, i1)
declare i16 @llvm.umin.i16(i16, i16)
";
        let context = Context::create();
        let module = module_of(&context, text);
        widen(&module).unwrap();
        module.verify().unwrap();
        insta::assert_snapshot!(module.print_to_string().to_string());
    }
}
