//! `bf16`: the upper half of an `f32`, carried as an `i16`. LLVM 7 has no `bfloat` type.

use inkwell::values::{FloatValue, IntValue};
use inkwell::{FloatPredicate, IntPredicate};

use super::function::FunctionEmitter;
use super::values::{float, int};
use crate::error::Result;
use crate::types::Scalar;

/// Bits of a double's significand, the hidden one counted: integers below 2 to this power are exact.
const F64_PRECISION: u32 = 53;

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// The bits of a constant that is already rounded to `bf16`.
    pub(super) fn bfloat_constant(&self, value: f64) -> IntValue<'ctx> {
        let bits = (value as f32).to_bits() >> 16;
        self.cx.int_type(16).const_int(u64::from(bits), false)
    }

    /// Exact.
    pub(super) fn bfloat_to_f32(&self, value: IntValue<'ctx>) -> Result<FloatValue<'ctx>> {
        let word = self.cx.int_type(32);
        let wide = self.build().build_int_z_extend(value, word, "")?;
        let bits = self.build().build_left_shift(wide, word.const_int(16, false), "")?;
        let ty = self.cx.float_type(Scalar::F32);
        float(self.build().build_bit_cast(bits, ty, "")?)
    }

    /// Flips the sign.
    pub(super) fn bfloat_negate(&self, value: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        let sign = self.cx.int_type(16).const_int(0x8000, false);
        Ok(self.build().build_xor(value, sign, "")?)
    }

    /// Rounds to the nearest, ties to even. From `f64` it goes through an `f32` that is rounded to odd, so
    /// that the two roundings are as one (Boldo and Melquiond, "When double rounding is odd").
    pub(super) fn float_to_bfloat(
        &self,
        value: FloatValue<'ctx>,
        from: Scalar,
    ) -> Result<IntValue<'ctx>> {
        let build = self.build();
        let single = self.cx.float_type(Scalar::F32);
        let word = self.cx.int_type(32);
        let to_bits = |value: FloatValue<'ctx>| int(build.build_bit_cast(value, word, "")?);
        match from {
            Scalar::F64 => {
                let near = build.build_float_trunc(value, single, "")?;
                let back = build.build_float_ext(near, value.get_type(), "")?;
                let (size, near_size) = (self.absolute(value)?, self.absolute(back)?);
                let is_up = build.build_float_compare(FloatPredicate::OGT, near_size, size, "")?;
                let is_inexact = build.build_float_compare(FloatPredicate::ONE, back, value, "")?;
                let step = build.build_int_z_extend(is_up, word, "")?;
                let toward_zero = build.build_int_sub(to_bits(near)?, step, "")?;
                let sticky = build.build_int_z_extend(is_inexact, word, "")?;
                let odd = build.build_or(toward_zero, sticky, "")?;
                self.round_f32_bits(odd)
            }
            Scalar::F16 => self.round_f32_bits(to_bits(build.build_float_ext(value, single, "")?)?),
            _ => self.round_f32_bits(to_bits(value)?),
        }
    }

    /// Rounds once.
    pub(super) fn int_to_bfloat(
        &self,
        value: IntValue<'ctx>,
        from: Scalar,
    ) -> Result<IntValue<'ctx>> {
        let build = self.build();
        let double = self.cx.float_type(Scalar::F64);
        if from.bits() < 64 {
            let exact = float(self.cast_scalar(value.into(), from, Scalar::F64)?)?;
            return self.float_to_bfloat(exact, Scalar::F64);
        }
        // 64 bits do not fit a double. Of the lowest ones of a large number only whether any is set can
        // matter, which the last bit that fits shall say.
        let ty = value.get_type();
        let number = |value: u64| ty.const_int(value, false);
        let unit = 1_u64 << (64 - F64_PRECISION);
        let low = build.build_and(value, number(unit - 1), "")?;
        let is_set = build.build_int_compare(IntPredicate::NE, low, ty.const_zero(), "")?;
        let sticky = int(build.build_select(is_set, number(unit), ty.const_zero(), "")?)?;
        let high = build.build_and(value, number(!(unit - 1)), "")?;
        let odd = build.build_or(high, sticky, "")?;
        let limit = 1_u64 << F64_PRECISION;
        let (from_zero, range) = if from.is_signed() {
            (build.build_int_add(value, number(limit), "")?, number(2 * limit))
        } else {
            (value, number(limit))
        };
        let is_small = build.build_int_compare(IntPredicate::ULT, from_zero, range, "")?;
        let exact = int(build.build_select(is_small, value, odd, "")?)?;
        let wide = if from.is_signed() {
            build.build_signed_int_to_float(exact, double, "")?
        } else {
            build.build_unsigned_int_to_float(exact, double, "")?
        };
        self.float_to_bfloat(wide, Scalar::F64)
    }

    /// The upper half of an `f32`'s bits, rounded; a NaN stays one and becomes quiet.
    fn round_f32_bits(&self, bits: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        let build = self.build();
        let word = bits.get_type();
        let number = |value: u64| word.const_int(value, false);
        let upper = build.build_right_shift(bits, number(16), false, "")?;
        let last = build.build_and(upper, number(1), "")?;
        // Half a unit less one, plus the last bit: a tie carries only into an odd one.
        let bias = build.build_int_add(last, number(0x7fff), "")?;
        let sum = build.build_int_add(bits, bias, "")?;
        let rounded = build.build_right_shift(sum, number(16), false, "")?;
        let quiet = build.build_or(upper, number(0x40), "")?;
        let size = build.build_and(bits, number(0x7fff_ffff), "")?;
        let is_nan = build.build_int_compare(IntPredicate::UGT, size, number(0x7f80_0000), "")?;
        let result = int(build.build_select(is_nan, quiet, rounded, "")?)?;
        Ok(build.build_int_truncate(result, self.cx.int_type(16), "")?)
    }
}
