//! The language's operators. Integers wrap, a shift count is taken modulo the width, and an integer
//! division by zero traps.

use inkwell::values::{BasicValueEnum, FloatValue, IntValue};
use inkwell::{FloatPredicate, IntPredicate};

use super::bug;
use super::function::FunctionEmitter;
use super::values::{float, int, pointer};
use crate::builtins::MathOp;
use crate::error::Result;
use crate::ir::{BinaryOp, Operand, UnaryOp};
use crate::types::{Scalar, Type};

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// An operator on one value of type `ty`.
    pub(super) fn unary(
        &self,
        op: UnaryOp,
        value: BasicValueEnum<'ctx>,
        ty: &Type,
    ) -> Result<BasicValueEnum<'ctx>> {
        let scalar = ty.as_scalar().ok_or_else(|| bug("an operator on what is no scalar"))?;
        Ok(match (op, scalar) {
            (UnaryOp::Neg, Scalar::Bf16) => self.bfloat_negate(int(value)?)?.into(),
            (UnaryOp::Neg, _) if scalar.is_float() => {
                self.build().build_float_neg(float(value)?, "")?.into()
            }
            (UnaryOp::Neg, _) => self.build().build_int_neg(int(value)?, "")?.into(),
            (UnaryOp::Not, _) => self.build().build_not(int(value)?, "")?.into(),
        })
    }

    /// An operator on two values.
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        left: &Operand,
        right: &Operand,
    ) -> Result<BasicValueEnum<'ctx>> {
        let (ty, right_type) = (self.type_of(left), self.type_of(right));
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        let scalar = match &ty {
            Type::Scalar(scalar) => *scalar,
            Type::Pointer { .. } | Type::Stream if op.is_comparison() => {
                let predicate = int_predicate(op, false)?;
                let (left, right) = (pointer(left)?, pointer(right)?);
                return Ok(self.build().build_int_compare(predicate, left, right, "")?.into());
            }
            _ => return Err(bug("an operator on what is no scalar")),
        };
        if scalar.is_float() {
            return self.binary_float(op, left, right, scalar);
        }
        let left = int(left)?;
        let right = if matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
            self.shift_count(right, &right_type, &ty)?
        } else {
            int(right)?
        };
        Ok(self.binary_int(op, left, right, scalar.is_signed())?.into())
    }

    fn binary_int(
        &mut self,
        op: BinaryOp,
        left: IntValue<'ctx>,
        right: IntValue<'ctx>,
        signed: bool,
    ) -> Result<IntValue<'ctx>> {
        let build = self.build();
        Ok(match op {
            BinaryOp::Add => build.build_int_add(left, right, "")?,
            BinaryOp::Sub => build.build_int_sub(left, right, "")?,
            BinaryOp::Mul => build.build_int_mul(left, right, "")?,
            BinaryOp::Div | BinaryOp::Rem => {
                self.divide(op == BinaryOp::Rem, left, right, signed)?
            }
            BinaryOp::And => build.build_and(left, right, "")?,
            BinaryOp::Or => build.build_or(left, right, "")?,
            BinaryOp::Xor => build.build_xor(left, right, "")?,
            BinaryOp::Shl => build.build_left_shift(left, right, "")?,
            BinaryOp::Shr => build.build_right_shift(left, right, signed, "")?,
            _ => build.build_int_compare(int_predicate(op, signed)?, left, right, "")?,
        })
    }

    /// The count of a shift, as a value of the shifted type, below its width.
    fn shift_count(
        &self,
        count: BasicValueEnum<'ctx>,
        count_type: &Type,
        ty: &Type,
    ) -> Result<IntValue<'ctx>> {
        let count = int(self.cast(count, count_type, ty)?)?;
        let width = u64::from(count.get_type().get_bit_width());
        let mask = count.get_type().const_int(width - 1, false);
        Ok(self.build().build_and(count, mask, "")?)
    }

    /// Division or remainder. LLVM leaves two cases undefined: a divisor of zero, which traps here, and
    /// MIN / -1, which wraps to MIN, remainder 0. A constant divisor needs no check for either.
    fn divide(
        &mut self,
        is_remainder: bool,
        left: IntValue<'ctx>,
        right: IntValue<'ctx>,
        signed: bool,
    ) -> Result<IntValue<'ctx>> {
        let ty = left.get_type();
        let constant = right.get_sign_extended_constant();
        if constant.is_none_or(|value| value == 0) {
            let is_zero =
                self.build().build_int_compare(IntPredicate::EQ, right, ty.const_zero(), "")?;
            self.trap_if_zero(is_zero)?;
        }
        let build = self.build();
        if !signed {
            return Ok(if is_remainder {
                build.build_int_unsigned_rem(left, right, "")?
            } else {
                build.build_int_unsigned_div(left, right, "")?
            });
        }
        let divide = |divisor| {
            if is_remainder {
                build.build_int_signed_rem(left, divisor, "")
            } else {
                build.build_int_signed_div(left, divisor, "")
            }
        };
        if constant.is_some_and(|value| value != -1) {
            return Ok(divide(right)?);
        }
        let is_minus_one =
            build.build_int_compare(IntPredicate::EQ, right, ty.const_all_ones(), "")?;
        let safe = build.build_select(is_minus_one, ty.const_int(1, false), right, "")?;
        let quotient = divide(int(safe)?)?;
        let by_minus_one =
            if is_remainder { ty.const_zero() } else { build.build_int_neg(left, "")? };
        int(build.build_select(is_minus_one, by_minus_one, quotient, "")?)
    }

    fn binary_float(
        &self,
        op: BinaryOp,
        left: BasicValueEnum<'ctx>,
        right: BasicValueEnum<'ctx>,
        scalar: Scalar,
    ) -> Result<BasicValueEnum<'ctx>> {
        // Exact or rounded once more without effect: f32 has more than twice the bits of either (W. Kahan's
        // condition 2p + 2), and a remainder is always exact.
        let narrow = scalar == Scalar::Bf16 || (scalar == Scalar::F16 && op == BinaryOp::Rem);
        if narrow {
            let ty = Type::Scalar(scalar);
            let left = self.cast(left, &ty, &Type::F32)?;
            let right = self.cast(right, &ty, &Type::F32)?;
            let value = self.binary_float(op, left, right, Scalar::F32)?;
            return if op.is_comparison() { Ok(value) } else { self.cast(value, &Type::F32, &ty) };
        }
        let (left, right) = (float(left)?, float(right)?);
        let build = self.build();
        Ok(match op {
            BinaryOp::Add => build.build_float_add(left, right, "")?.into(),
            BinaryOp::Sub => build.build_float_sub(left, right, "")?.into(),
            BinaryOp::Mul => build.build_float_mul(left, right, "")?.into(),
            BinaryOp::Div => build.build_float_div(left, right, "")?.into(),
            BinaryOp::Rem => self.libdevice("fmod", scalar, &[left.into(), right.into()])?,
            _ => self.compare_floats(op, left, right)?.into(),
        })
    }

    fn compare_floats(
        &self,
        op: BinaryOp,
        left: FloatValue<'ctx>,
        right: FloatValue<'ctx>,
    ) -> Result<IntValue<'ctx>> {
        let predicate = match op {
            BinaryOp::Eq => FloatPredicate::OEQ,
            BinaryOp::Ne => FloatPredicate::UNE,
            BinaryOp::Lt => FloatPredicate::OLT,
            BinaryOp::Le => FloatPredicate::OLE,
            BinaryOp::Gt => FloatPredicate::OGT,
            BinaryOp::Ge => FloatPredicate::OGE,
            _ => return Err(bug(format!("`{op:?}` on floats"))),
        };
        Ok(self.build().build_float_compare(predicate, left, right, "")?)
    }

    /// The smaller or larger of two integers.
    pub(super) fn int_min_max(
        &self,
        op: MathOp,
        left: IntValue<'ctx>,
        right: IntValue<'ctx>,
        signed: bool,
    ) -> Result<BasicValueEnum<'ctx>> {
        let order = if op == MathOp::Min { BinaryOp::Lt } else { BinaryOp::Gt };
        let is_left =
            self.build().build_int_compare(int_predicate(order, signed)?, left, right, "")?;
        Ok(self.build().build_select(is_left, left, right, "")?)
    }
}

fn int_predicate(op: BinaryOp, signed: bool) -> Result<IntPredicate> {
    Ok(match (op, signed) {
        (BinaryOp::Eq, _) => IntPredicate::EQ,
        (BinaryOp::Ne, _) => IntPredicate::NE,
        (BinaryOp::Lt, true) => IntPredicate::SLT,
        (BinaryOp::Le, true) => IntPredicate::SLE,
        (BinaryOp::Gt, true) => IntPredicate::SGT,
        (BinaryOp::Ge, true) => IntPredicate::SGE,
        (BinaryOp::Lt, false) => IntPredicate::ULT,
        (BinaryOp::Le, false) => IntPredicate::ULE,
        (BinaryOp::Gt, false) => IntPredicate::UGT,
        (BinaryOp::Ge, false) => IntPredicate::UGE,
        _ => return Err(bug(format!("`{op:?}` does not compare"))),
    })
}
