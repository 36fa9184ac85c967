//! Divisions on GPUs that are emitted in a narrower or in another type.
//!
//! Those of 64 bits whose numbers are below 2^32 are emitted with 32 bits. libNVVM does the same, but where nothing uses such a
//! division and its operand is another 64-bit division, the pass of CUDA 13.0 (LLVM 7's `bypassSlowDivision`) reads memory that it has
//! freed, and often ends the process. Numbers that only inlining shows to be small still get there.
//!
//! Those of 8 and 16 bits are a product with the reciprocal, in `f32`: ptxas calls a function for them. The reciprocal and two products
//! err by less than 2^-21 of the result, and the factor `1 + 2^-18` makes up for that: the product is not less than the quotient, and for
//! `n` of at most 2^16 it is greater by less than `n * 2^-17 / d`, which is below `1 / d`, the distance to the next integer.

use inkwell::values::BasicValueEnum;

use super::function::FunctionEmitter;
use super::values::{float, int, result};
use crate::error::Result;
use gridlet_lang::ir::{BinaryOp, Const, InstKind, Operand};
use gridlet_lang::types::{Scalar, Type};

/// How many instructions back the size of a number is followed.
const MOST_STEPS: u32 = 8;

const U64: Type = Type::Scalar(Scalar::U64);
const I64: Type = Type::Scalar(Scalar::I64);

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// A 64-bit division on a GPU whose operands fit in 32 bits; `None` for others.
    pub(super) fn narrow_division(
        &self,
        op: BinaryOp,
        left: &Operand,
        right: &Operand,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let is_division = matches!(op, BinaryOp::Div | BinaryOp::Rem);
        let is_wide = [U64, I64].contains(&self.type_of(left));
        let fits = |operand| self.fits_in_32_bits(operand, MOST_STEPS);
        if self.cx.cpu().is_some() || !is_division || !is_wide || !fits(left) || !fits(right) {
            return Ok(None);
        }
        let (wide, narrow) = (self.cx.int_type(64), self.cx.int_type(32));
        let build = self.build();
        let left = build.build_int_truncate(int(self.operand(left)?)?, narrow, "")?;
        let right = build.build_int_truncate(int(self.operand(right)?)?, narrow, "")?;
        // Neither is negative, whatever the type.
        let result = match op {
            BinaryOp::Div => build.build_int_unsigned_div(left, right, "")?,
            _ => build.build_int_unsigned_rem(left, right, "")?,
        };
        Ok(Some(build.build_int_z_extend(result, wide, "")?.into()))
    }

    /// A division of 8 or 16 bits on a GPU by a divisor that surely is no constant; `None` for others.
    pub(super) fn short_division(
        &self,
        op: BinaryOp,
        left: &Operand,
        right: &Operand,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let Some(scalar) = self.type_of(left).as_scalar() else { return Ok(None) };
        let is_division = matches!(op, BinaryOp::Div | BinaryOp::Rem);
        if self.cx.cpu().is_some() || !is_division || !scalar.is_integer() || scalar.bits() > 16 {
            return Ok(None);
        }
        let right = self.guarded_divisor(right).map_or(right, |(_, divisor)| divisor);
        if !self.is_runtime(right) {
            return Ok(None);
        }
        let build = self.build();
        let (single, word) = (self.cx.float_type(Scalar::F32), self.cx.int_type(32));
        let wide = match scalar.is_signed() {
            true => Scalar::I32,
            false => Scalar::U32,
        };
        let widened = |operand| int(self.cast_scalar(self.operand(operand)?, scalar, wide)?);
        let number = |value| match scalar.is_signed() {
            true => build.build_signed_int_to_float(value, single, ""),
            false => build.build_unsigned_int_to_float(value, single, ""),
        };
        let (dividend, divisor) = (widened(left)?, widened(right)?);
        let reciprocal = self.reciprocal(number(divisor)?.into())?;
        let more = single.const_float(1.0 + (-18f64).exp2());
        let factor = build.build_float_mul(float(reciprocal)?, more, "")?;
        let product = build.build_float_mul(number(dividend)?, factor, "")?;
        let function = self.cx.declare("llvm.nvvm.f2i.rz", Some(word.into()), &[single.into()])?;
        let mut value = int(result(self.emit_call(function, &[product.into()], "")?)?)?;
        if op == BinaryOp::Rem {
            let multiple = build.build_int_mul(value, divisor, "")?;
            value = build.build_int_sub(dividend, multiple, "")?;
        }
        Ok(Some(build.build_int_truncate(value, self.cx.int_type(scalar.bits()), "")?.into()))
    }

    /// Whether a number of 64 bits surely is at least 0 and below 2^32.
    fn fits_in_32_bits(&self, operand: &Operand, steps: u32) -> bool {
        if let Operand::Const(Const::Int(_, value)) = operand {
            return (0..1 << 32).contains(value);
        }
        let Some(steps) = steps.checked_sub(1) else { return false };
        let Some(kind) = self.kind(operand) else { return false };
        let fits = |operand: &Operand| self.fits_in_32_bits(operand, steps);
        match kind {
            InstKind::Cast(from) => match self.type_of(from) {
                Type::Scalar(Scalar::Bool | Scalar::U8 | Scalar::U16 | Scalar::U32) => true,
                Type::Scalar(Scalar::U64 | Scalar::I64) => fits(from),
                _ => false,
            },
            InstKind::Binary(op, left, right) => {
                let is_unsigned = self.type_of(left) == U64;
                match op {
                    BinaryOp::And => fits(left) || fits(right),
                    BinaryOp::Or | BinaryOp::Xor => fits(left) && fits(right),
                    BinaryOp::Shr => {
                        let upper = |count: &Operand| matches!(count, Operand::Const(Const::Int(_, count)) if *count >= 32);
                        fits(left) || is_unsigned && upper(right)
                    }
                    BinaryOp::Div => fits(left) && (is_unsigned || fits(right)),
                    BinaryOp::Rem => fits(left) || is_unsigned && fits(right),
                    _ => false,
                }
            }
            InstKind::Select(_, yes, no) => fits(yes) && fits(no),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    /// What [`short_division`](super::FunctionEmitter::short_division) computes, if the reciprocal is off by `error` in its last bit.
    fn quotient(dividend: i32, divisor: i32, error: i32) -> i32 {
        let reciprocal = (1.0 / f64::from(divisor)) as f32;
        let reciprocal = f32::from_bits(reciprocal.to_bits().wrapping_add_signed(error));
        (dividend as f32 * (reciprocal * (1.0 + (-18f32).exp2()))) as i32
    }

    #[test]
    fn quotients_of_16_bits_are_right_for_every_error_of_the_reciprocal() {
        for divisor in 1..=65_535 {
            // The quotient changes there.
            let multiples = (0..=65_535).step_by(divisor as usize);
            for dividend in multiples.flat_map(|it| [it - 1, it]).filter(|it| *it >= 0) {
                let expected = dividend / divisor;
                for error in -1..=1 {
                    let found = quotient(dividend, divisor, error);
                    assert_eq!(found, expected, "{dividend} / {divisor}, {error}");
                    if dividend <= 32_768 && divisor <= 32_768 {
                        assert_eq!(quotient(-dividend, divisor, error), -expected);
                        assert_eq!(quotient(-dividend, -divisor, error), expected);
                    }
                }
            }
        }
    }
}
