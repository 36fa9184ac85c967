//! The language's operators. The IR has no undefined cases (its rule 10), so each maps to LLVM's
//! plain operator.

use inkwell::values::{BasicValueEnum, FloatValue, IntValue};
use inkwell::{FloatPredicate, IntPredicate};

use super::bug;
use super::function::FunctionEmitter;
use super::values::{float, int, pointer, result};
use crate::error::Result;
use gridlet_lang::builtins::MathOp;
use gridlet_lang::ir::{BinaryOp, Operand, UnaryOp};
use gridlet_lang::types::{Scalar, Type};

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// An operator on one value of type `ty`.
    pub(super) fn unary(
        &self,
        op: UnaryOp,
        value: BasicValueEnum<'ctx>,
        ty: &Type,
    ) -> Result<BasicValueEnum<'ctx>> {
        let scalar = ty.as_scalar().ok_or_else(|| bug("an operator on a non-scalar"))?;
        Ok(match (op, scalar) {
            (UnaryOp::Neg, _) if self.cx.is_bits(scalar) => self.narrow_negate(int(value)?)?.into(),
            (UnaryOp::Neg, _) if scalar.is_float() => {
                self.build().build_float_neg(float(value)?, "")?.into()
            }
            (UnaryOp::Neg, _) => self.build().build_int_neg(int(value)?, "")?.into(),
            (UnaryOp::Not, _) => self.build().build_not(int(value)?, "")?.into(),
        })
    }

    /// An operator on two values.
    pub(super) fn binary(
        &self,
        op: BinaryOp,
        left: &Operand,
        right: &Operand,
    ) -> Result<BasicValueEnum<'ctx>> {
        if let Some(value) = self.unguarded_division(op, left, right)? {
            return Ok(value);
        }
        if let Some(value) = self.narrow_division(op, left, right)? {
            return Ok(value);
        }
        if let Some(value) = self.short_division(op, left, right)? {
            return Ok(value);
        }
        let (ty, right_type) = (self.type_of(left), self.type_of(right));
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        let scalar = match &ty {
            Type::Scalar(scalar) => *scalar,
            Type::Pointer { .. } | Type::Stream if op.is_comparison() => {
                let predicate = int_predicate(op, false)?;
                let (left, right) = (pointer(left)?, pointer(right)?);
                return Ok(self.build().build_int_compare(predicate, left, right, "")?.into());
            }
            _ => return Err(bug("an operator on a non-scalar")),
        };
        if scalar.is_float() {
            return self.binary_float(op, left, right, scalar);
        }
        // A shift count has its own integer type; its value is below the width of every type.
        let is_shift = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
        let right = if is_shift { self.cast(right, &right_type, &ty)? } else { right };
        let (left, right, signed) = (int(left)?, int(right)?, scalar.is_signed());
        // In 32 bits, as C++ computes: libNVVM would compute bytes in 16, and convert between the two. ptxas has no shift of 16 bits, and
        // takes several instructions for one by a number that it does not know.
        let is_promoted = match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => scalar.bits() == 8,
            BinaryOp::Shl | BinaryOp::Shr => scalar.bits() < 32 && !right.is_const(),
            _ => false,
        };
        if is_promoted {
            let narrow = left.get_type();
            let (left, right) = (self.promoted(left, signed)?, self.promoted(right, signed)?);
            let result = self.binary_int(op, left, right, signed)?;
            return Ok(self.build().build_int_truncate_or_bit_cast(result, narrow, "")?.into());
        }
        Ok(self.binary_int(op, left, right, signed)?.into())
    }

    fn binary_int(
        &self,
        op: BinaryOp,
        left: IntValue<'ctx>,
        right: IntValue<'ctx>,
        signed: bool,
    ) -> Result<IntValue<'ctx>> {
        let build = self.build();
        Ok(match (op, signed) {
            (BinaryOp::Add, _) => build.build_int_add(left, right, "")?,
            (BinaryOp::Sub, _) => build.build_int_sub(left, right, "")?,
            (BinaryOp::Mul, _) => build.build_int_mul(left, right, "")?,
            (BinaryOp::Div, true) => build.build_int_signed_div(left, right, "")?,
            (BinaryOp::Div, false) => build.build_int_unsigned_div(left, right, "")?,
            (BinaryOp::Rem, true) => build.build_int_signed_rem(left, right, "")?,
            (BinaryOp::Rem, false) => build.build_int_unsigned_rem(left, right, "")?,
            (BinaryOp::And, _) => build.build_and(left, right, "")?,
            (BinaryOp::Or, _) => build.build_or(left, right, "")?,
            (BinaryOp::Xor, _) => build.build_xor(left, right, "")?,
            (BinaryOp::Shl, _) => build.build_left_shift(left, right, "")?,
            (BinaryOp::Shr, signed) => build.build_right_shift(left, right, signed, "")?,
            _ => {
                // Of several comparisons of a byte, libNVVM makes a tree of branches, of those of words one condition.
                let (left, right) = (self.promoted(left, signed)?, self.promoted(right, signed)?);
                build.build_int_compare(int_predicate(op, signed)?, left, right, "")?
            }
        })
    }

    /// A number in 32 bits at least on GPUs.
    fn promoted(&self, value: IntValue<'ctx>, signed: bool) -> Result<IntValue<'ctx>> {
        let word = self.cx.int_type(32);
        let is_narrow = matches!(value.get_type().get_bit_width(), 8 | 16);
        Ok(match is_narrow && self.cx.cpu().is_none() {
            true if signed => self.build().build_int_s_extend(value, word, "")?,
            true => self.build().build_int_z_extend(value, word, "")?,
            false => value,
        })
    }

    fn binary_float(
        &self,
        op: BinaryOp,
        left: BasicValueEnum<'ctx>,
        right: BasicValueEnum<'ctx>,
        scalar: Scalar,
    ) -> Result<BasicValueEnum<'ctx>> {
        if op.is_comparison() && left == right {
            return Ok(self.compare_with_itself(op, left, scalar)?.into());
        }
        if scalar == Scalar::F16 && op == BinaryOp::Div && self.cx.cpu().is_none() {
            return self.half_quotient(left, right);
        }
        if self.cx.has_half(scalar) && !matches!(op, BinaryOp::Mul | BinaryOp::Rem) {
            let (left, right) = (self.bits_to_half(left)?, self.bits_to_half(right)?);
            let value = self.float_operation(op, left, right)?;
            return if op.is_comparison() { Ok(value) } else { self.half_to_bits(value) };
        }
        if scalar == Scalar::Bf16
            && self.cx.has_bf16()
            && let Some(value) = self.bf16_operation(op, left, right)?
        {
            return Ok(value);
        }
        if self.cx.is_bits(scalar) {
            let left = self.cast_scalar(left, scalar, Scalar::F32)?;
            let right = self.cast_scalar(right, scalar, Scalar::F32)?;
            // Rounds the product of two f16 separately: otherwise it could be fused with an
            // addition into one `fma`, which rounds once (libNVVM's option -fma).
            let value = match self.cx.has_half(scalar) && op == BinaryOp::Mul {
                true => self.rounded_product(left, right)?,
                false => self.binary_float(op, left, right, Scalar::F32)?,
            };
            return match op.is_comparison() {
                true => Ok(value),
                false => self.cast_scalar(value, Scalar::F32, scalar),
            };
        }
        if op == BinaryOp::Rem {
            return self.libdevice("fmod", scalar, &[left, right]);
        }
        if op == BinaryOp::Div && scalar == Scalar::F32 && self.cx.is_fast_math() {
            return self.approximate("div", &[left, right]);
        }
        self.float_operation(op, float(left)?, float(right)?)
    }

    /// An operator with a matching instruction.
    fn float_operation(
        &self,
        op: BinaryOp,
        left: FloatValue<'ctx>,
        right: FloatValue<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        let build = self.build();
        Ok(match op {
            BinaryOp::Add => build.build_float_add(left, right, "")?.into(),
            BinaryOp::Sub => build.build_float_sub(left, right, "")?.into(),
            BinaryOp::Mul => build.build_float_mul(left, right, "")?.into(),
            BinaryOp::Div => build.build_float_div(left, right, "")?.into(),
            _ => self.compare_floats(op, left, right)?.into(),
        })
    }

    /// The quotient of two `f16`, correctly rounded, from an approximate reciprocal.
    ///
    /// A step of Newton's method makes the error of the quotient less than 2^-23 of it, which is the least distance of a quotient from
    /// a number halfway between two of `f16`, unless it is that number: the step then gives exactly that. Without a step, if the
    /// remainder is 0 or not a number, the quotient is exact, zero, infinite or a NaN already. A power of two has an exact reciprocal.
    fn half_quotient(
        &self,
        left: BasicValueEnum<'ctx>,
        right: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        let build = self.build();
        let left = self.cast_scalar(left, Scalar::F16, Scalar::F32)?;
        let right = self.cast_scalar(right, Scalar::F16, Scalar::F32)?;
        if let Some((divisor, _)) = float(right)?.get_constant()
            && divisor.abs().log2().fract() == 0.0
        {
            let inverse = self.cx.float_type(Scalar::F32).const_float(1.0 / divisor);
            let quotient = self.rounded_product(left, inverse.into())?;
            return self.cast_scalar(quotient, Scalar::F32, Scalar::F16);
        }
        let reciprocal = self.reciprocal(right)?;
        let quotient = self.rounded_product(left, reciprocal)?;
        let negated = build.build_float_neg(float(quotient)?, "")?;
        let remainder = self.intrinsic("fma", &[negated.into(), right, left])?;
        let better = self.intrinsic("fma", &[remainder, reciprocal, quotient])?;
        let zero = self.cx.float_type(Scalar::F32).const_zero();
        let (remainder, is_off) = (float(remainder)?, FloatPredicate::ONE);
        let is_off = build.build_float_compare(is_off, remainder, zero, "")?;
        let nearest = build.build_select(is_off, better, quotient, "")?;
        self.cast_scalar(nearest, Scalar::F32, Scalar::F16)
    }

    /// An approximate reciprocal of an `f32`, off by 1 in its last bit at most (PTX ISA, "rcp.approx.ftz.f32").
    pub(super) fn reciprocal(&self, value: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        let bits = self.pure_assembly("rcp.approx.ftz.f32 $0, $1;", 32, &[value])?;
        Ok(self.build().build_bit_cast(bits, self.cx.float_type(Scalar::F32), "")?)
    }

    /// The product of two `f32`, which no optimiser can fuse with an addition.
    fn rounded_product(
        &self,
        left: BasicValueEnum<'ctx>,
        right: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        let single = self.cx.scalar_type(Scalar::F32);
        let function = self.cx.declare("llvm.nvvm.mul.rn.f", Some(single), &[single; 2])?;
        result(self.emit_call(function, &[left, right], "")?)
    }

    /// `x == x` and the like, which only ask whether `x` is a NaN. Asked by a comparison with a number, because libNVVM
    /// 13.0 takes `fcmp oeq %x, %x` for true where constants alone produce `%x`, even if they produce a NaN.
    fn compare_with_itself(
        &self,
        op: BinaryOp,
        value: BasicValueEnum<'ctx>,
        scalar: Scalar,
    ) -> Result<IntValue<'ctx>> {
        let predicate = match op {
            BinaryOp::Eq | BinaryOp::Le | BinaryOp::Ge => FloatPredicate::ORD,
            BinaryOp::Ne => FloatPredicate::UNO,
            _ => return Ok(self.cx.context.bool_type().const_zero()),
        };
        let value = if self.cx.has_half(scalar) {
            self.bits_to_half(value)?
        } else if self.cx.is_bits(scalar) {
            float(self.cast_scalar(value, scalar, Scalar::F32)?)?
        } else {
            float(value)?
        };
        self.is_ordered(predicate, value)
    }

    /// Whether a value is a NaN ([`FloatPredicate::UNO`]) or a number ([`FloatPredicate::ORD`]).
    pub(super) fn is_ordered(
        &self,
        predicate: FloatPredicate,
        value: FloatValue<'ctx>,
    ) -> Result<IntValue<'ctx>> {
        let zero = value.get_type().const_zero();
        Ok(self.build().build_float_compare(predicate, value, zero, "")?)
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

#[cfg(test)]
mod tests {
    use gridlet_lang::float::to_f16;

    /// What [`half_quotient`](super::FunctionEmitter::half_quotient) computes before it rounds, if the reciprocal is off by `error` in
    /// its last bit.
    fn quotient(left: f32, right: f32, error: i32) -> f32 {
        let reciprocal = (1.0 / f64::from(right)) as f32;
        let reciprocal = if right == 0.0 || right.is_infinite() {
            1.0 / right
        } else {
            f32::from_bits(reciprocal.to_bits().wrapping_add_signed(error))
        };
        let quotient = left * reciprocal;
        let remainder = (-quotient).mul_add(right, left);
        let better = remainder.mul_add(reciprocal, quotient);
        if remainder.abs() > 0.0 { better } else { quotient }
    }

    #[test]
    fn quotients_of_halves_are_right_for_every_error_of_the_reciprocal() {
        let bits = |value: f64| to_f16(value).to_bits();
        // All significands; quotients that are normal, subnormal, and beside zero and infinity.
        for (scale, step) in [(0, 1), (-13, 7), (-15, 7), (-20, 7), (-24, 7), (-25, 7), (15, 7)] {
            for left in 1_024..2_048 {
                for right in (1_024..2_048).skip(left % step).step_by(step) {
                    let (left, right) = (left as f32 * (scale as f32).exp2(), right as f32);
                    let expected = bits(f64::from(left) / f64::from(right));
                    for error in -1..=1 {
                        let found = bits(quotient(left, right, error).into());
                        assert_eq!(found, expected, "{left} / {right}, {error}");
                    }
                }
            }
        }
        for left in [0.0, -0.0, 1.0, -65_504.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            for right in [0.0, -0.0, 3.0, -3.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
                let (found, expected) = (quotient(left, right, 0), left / right);
                assert_eq!(found.is_nan(), expected.is_nan(), "{left} / {right}");
                if !expected.is_nan() {
                    assert_eq!(bits(found.into()), bits(expected.into()), "{left} / {right}");
                }
            }
        }
    }
}
