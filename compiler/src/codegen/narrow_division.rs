//! 64-bit divisions of numbers below 2^32 on GPUs, which are emitted with 32 bits.
//!
//! libNVVM does the same, but where nothing uses such a division and its operand is another 64-bit division, the pass of CUDA 13.0
//! (LLVM 7's `bypassSlowDivision`) reads memory that it has freed, and often ends the process. Numbers that only inlining shows to be
//! small still get there.

use inkwell::values::BasicValueEnum;

use super::function::FunctionEmitter;
use super::values::int;
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
