//! `f16` and `bf16`: their representation as bits, and the operations that a target lacks, which
//! are computed in a wider type and rounded.
//!
//! Every result is correctly rounded, and the same on all devices except for the bits of a NaN. One
//! operation (`+ - * /`, square root) in `f32` followed by one rounding gives the narrow type's own
//! result: with `p` digits in the narrow type and `2p + 2` in the wide one, the second rounding is
//! harmless (S. Figueroa, "When is double rounding innocuous?"), and `f32` has 24 for the 11 of
//! `f16` and the 8 of `bf16`. This holds for subnormal results too: sums are exact; products are
//! exact, or lie below half of the least number, where `f32` leaves them; no quotient is so close
//! to a midpoint that `f32` rounds it there. Remainders, minima and integral values are always
//! exact.

use inkwell::values::{BasicValueEnum, FloatValue, IntValue};
use inkwell::{FloatPredicate, IntPredicate};

use super::bug;
use super::function::FunctionEmitter;
use super::packed::extreme;
use super::values::{float, int};
use crate::error::Result;
use gridlet_lang::builtins::MathOp;
use gridlet_lang::float as rounding;
use gridlet_lang::types::Scalar;

/// Bits of a double's significand, including the hidden one: integers below 2 to this power are
/// exact.
const F64_PRECISION: u32 = 53;
/// The exponent bias (IEEE 754).
const F32_BIAS: i32 = 127;
const F16_BIAS: i32 = 15;

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// The bits of a constant.
    pub(super) fn narrow_constant(&self, value: f64, scalar: Scalar) -> IntValue<'ctx> {
        let bits = match scalar {
            Scalar::F16 => rounding::to_f16(value).to_bits(),
            _ => rounding::to_bf16(value).to_bits(),
        };
        self.cx.int_type(16).const_int(u64::from(bits), false)
    }

    /// Reinterprets the bits of an `f16` as a `half`.
    pub(super) fn bits_to_half(&self, bits: BasicValueEnum<'ctx>) -> Result<FloatValue<'ctx>> {
        float(self.build().build_bit_cast(int(bits)?, self.cx.float_type(Scalar::F16), "")?)
    }

    /// Reinterprets a `half` as its bits.
    pub(super) fn half_to_bits(&self, half: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        Ok(self.build().build_bit_cast(float(half)?, self.cx.int_type(16), "")?)
    }

    /// Widens to `f32`, exactly.
    pub(super) fn narrow_to_f32(
        &self,
        value: IntValue<'ctx>,
        from: Scalar,
    ) -> Result<FloatValue<'ctx>> {
        let build = self.build();
        let (word, single) = (self.cx.int_type(32), self.cx.float_type(Scalar::F32));
        let number = |value: u64| word.const_int(value, false);
        let wide = build.build_int_z_extend(value, word, "")?;
        if from == Scalar::Bf16 {
            let bits = build.build_left_shift(wide, number(16), "")?;
            return float(build.build_bit_cast(bits, single, "")?);
        }
        // With exponent and digits moved to their place in an `f32`, the value is the number
        // divided by 2 to the difference of the biases, subnormal numbers included; the greatest
        // exponent marks infinities and NaN.
        let size = build.build_and(wide, number(0x7fff), "")?;
        let shifted = build.build_left_shift(size, number(13), "")?;
        let small = float(build.build_bit_cast(shifted, single, "")?)?;
        let scale = single.const_float(f64::from(F32_BIAS - F16_BIAS).exp2());
        let scaled = build.build_float_mul(small, scale, "")?;
        let finite = int(build.build_bit_cast(scaled, word, "")?)?;
        let other = build.build_or(shifted, number(0x7f80_0000), "")?;
        let limit = number(0x7c00);
        let is_finite = build.build_int_compare(IntPredicate::ULT, size, limit, "")?;
        let magnitude = int(build.build_select(is_finite, finite, other, "")?)?;
        let sign = build.build_and(wide, number(0x8000), "")?;
        let sign = build.build_left_shift(sign, number(16), "")?;
        let bits = build.build_or(magnitude, sign, "")?;
        float(build.build_bit_cast(bits, single, "")?)
    }

    /// Flips the sign.
    pub(super) fn narrow_negate(&self, value: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        let sign = self.cx.int_type(16).const_int(0x8000, false);
        Ok(self.build().build_xor(value, sign, "")?)
    }

    /// Rounds to nearest, ties to even. `f64` goes through an `f32` that is rounded to odd, so
    /// that the two roundings act as one (Boldo and Melquiond, "When double rounding is odd").
    pub(super) fn float_to_narrow(
        &self,
        value: FloatValue<'ctx>,
        from: Scalar,
        to: Scalar,
    ) -> Result<IntValue<'ctx>> {
        let build = self.build();
        let single = self.cx.float_type(Scalar::F32);
        let word = self.cx.int_type(32);
        let to_bits = |value: FloatValue<'ctx>| int(build.build_bit_cast(value, word, "")?);
        match from {
            Scalar::F64 => {
                let near = build.build_float_trunc(value, single, "")?;
                let back = build.build_float_ext(near, value.get_type(), "")?;
                let size =
                    |value: FloatValue<'ctx>| float(self.intrinsic("fabs", &[value.into()])?);
                let (size, near_size) = (size(value)?, size(back)?);
                let is_up = build.build_float_compare(FloatPredicate::OGT, near_size, size, "")?;
                let is_inexact = build.build_float_compare(FloatPredicate::ONE, back, value, "")?;
                let step = build.build_int_z_extend(is_up, word, "")?;
                let toward_zero = build.build_int_sub(to_bits(near)?, step, "")?;
                let sticky = build.build_int_z_extend(is_inexact, word, "")?;
                let odd = build.build_or(toward_zero, sticky, "")?;
                self.round_f32_bits(odd, to)
            }
            Scalar::F16 => {
                self.round_f32_bits(to_bits(build.build_float_ext(value, single, "")?)?, to)
            }
            _ => self.round_f32_bits(to_bits(value)?, to),
        }
    }

    /// Converts an integer with a single rounding.
    pub(super) fn int_to_narrow(
        &self,
        value: IntValue<'ctx>,
        from: Scalar,
        to: Scalar,
    ) -> Result<IntValue<'ctx>> {
        let build = self.build();
        let double = self.cx.float_type(Scalar::F64);
        if from.bits() < 64 {
            let wide = if from.bits() <= 16 { Scalar::F32 } else { Scalar::F64 };
            let exact = float(self.cast_scalar(value.into(), from, wide)?)?;
            return self.float_to_narrow(exact, wide, to);
        }
        // 64 bits do not fit a double. Of the lowest bits of a large number, it only matters
        // whether any is set; the last bit that fits records that.
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
        self.float_to_narrow(wide, Scalar::F64, to)
    }

    /// Rounds the `f32` with these bits; a NaN becomes a quiet NaN.
    fn round_f32_bits(&self, bits: IntValue<'ctx>, to: Scalar) -> Result<IntValue<'ctx>> {
        let build = self.build();
        if to == Scalar::Bf16 && self.cx.has_bf16() {
            let single = self.cx.float_type(Scalar::F32);
            return self.f32_to_bf16(float(build.build_bit_cast(bits, single, "")?)?);
        }
        let word = bits.get_type();
        let number = |value: u64| word.const_int(value, false);
        let size = build.build_and(bits, number(0x7fff_ffff), "")?;
        let is_nan = build.build_int_compare(IntPredicate::UGT, size, number(0x7f80_0000), "")?;
        let result = if to == Scalar::F16 {
            let sign = build.build_right_shift(bits, number(16), false, "")?;
            let sign = build.build_and(sign, number(0x8000), "")?;
            let finite = self.round_f16_size(size)?;
            // 65,536 and above is infinite; slightly smaller values become infinite through their
            // own rounding.
            let limit = u64::from(65536.0_f32.to_bits());
            let is_large = build.build_int_compare(IntPredicate::UGE, size, number(limit), "")?;
            let size = int(build.build_select(is_large, number(0x7c00), finite, "")?)?;
            let size = int(build.build_select(is_nan, number(0x7e00), size, "")?)?;
            build.build_or(size, sign, "")?
        } else {
            let upper = build.build_right_shift(bits, number(16), false, "")?;
            let rounded = self.round_off(bits, 16)?;
            let quiet = build.build_or(upper, number(0x40), "")?;
            int(build.build_select(is_nan, quiet, rounded, "")?)?
        };
        Ok(build.build_int_truncate(result, self.cx.int_type(16), "")?)
    }

    /// The bits of the `f16` nearest to a positive `f32` below 65,536, given by its bits.
    fn round_f16_size(&self, size: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        let build = self.build();
        let (word, single) = (size.get_type(), self.cx.float_type(Scalar::F32));
        let number = |value: u64| word.const_int(value, false);
        // For a normal number, change the exponent's bias and round off the extra digits.
        let rebias = ((F32_BIAS - F16_BIAS) as u64) << 23;
        let rebiased = build.build_int_sub(size, number(rebias), "")?;
        let normal = self.round_off(rebiased, 13)?;
        // Adding 1/2 rounds a smaller number at the last digit of the least `f16`: 2^-24.
        let half = single.const_float(0.5);
        let value = float(build.build_bit_cast(size, single, "")?)?;
        let sum = build.build_float_add(value, half, "")?;
        let sum = int(build.build_bit_cast(sum, word, "")?)?;
        let subnormal = build.build_int_sub(sum, number(u64::from(0.5_f32.to_bits())), "")?;
        let least_normal = u64::from(2.0_f32.powi(1 - F16_BIAS).to_bits());
        let is_normal =
            build.build_int_compare(IntPredicate::UGE, size, number(least_normal), "")?;
        int(build.build_select(is_normal, normal, subnormal, "")?)
    }

    /// `bits` without its lowest `count` bits, rounded to nearest, ties to even.
    fn round_off(&self, bits: IntValue<'ctx>, count: u32) -> Result<IntValue<'ctx>> {
        let build = self.build();
        let word = bits.get_type();
        let number = |value: u64| word.const_int(value, false);
        let upper = build.build_right_shift(bits, number(count.into()), false, "")?;
        let last = build.build_and(upper, number(1), "")?;
        // Half a unit minus one, plus the last bit: a tie carries only into an odd number.
        let bias = build.build_int_add(last, number((1 << (count - 1)) - 1), "")?;
        let sum = build.build_int_add(bits, bias, "")?;
        Ok(build.build_right_shift(sum, number(count.into()), false, "")?)
    }

    /// A mathematical function on `f16` or `bf16`.
    pub(super) fn narrow_math(
        &self,
        op: MathOp,
        scalar: Scalar,
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        match (op, arguments) {
            (MathOp::Abs, [value]) => {
                let size = self.cx.int_type(16).const_int(0x7fff, false);
                Ok(self.build().build_and(int(*value)?, size, "")?.into())
            }
            (MathOp::Fma, [..]) if self.cx.has_half(scalar) => {
                let halves = arguments
                    .iter()
                    .map(|argument| Ok(self.bits_to_half(*argument)?.into()))
                    .collect::<Result<Vec<_>>>()?;
                self.half_to_bits(self.intrinsic("fma", &halves)?)
            }
            (MathOp::Fma, &[left, right, added]) if self.cx.has_bf16() => {
                self.bf16_fma([left, right, added])
            }
            (MathOp::Fma, [left, right, added]) => self.narrow_fma(scalar, *left, *right, *added),
            (MathOp::Min | MathOp::Max, [..]) if self.cx.has_packed_floats() => {
                self.pure_assembly(&extreme(op, scalar, ""), 16, arguments)
            }
            _ if op.supports(scalar) => {
                let wide = arguments
                    .iter()
                    .map(|argument| self.cast_scalar(*argument, scalar, Scalar::F32))
                    .collect::<Result<Vec<_>>>()?;
                let value = self.math(op, Scalar::F32, &wide)?;
                self.cast_scalar(value, Scalar::F32, scalar)
            }
            _ => Err(bug(format!("`{op:?}` on {}", scalar.name()))),
        }
    }

    /// `left * right + added`, rounded once. In `f64`, the product is exact and the sum is rounded
    /// to odd, based on its rounding error (D. Knuth, TAOCP 2, 4.2.2, theorem B).
    fn narrow_fma(
        &self,
        scalar: Scalar,
        left: BasicValueEnum<'ctx>,
        right: BasicValueEnum<'ctx>,
        added: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        let build = self.build();
        let (word, double) = (self.cx.int_type(64), self.cx.float_type(Scalar::F64));
        let widen = |value| float(self.cast_scalar(value, scalar, Scalar::F64)?);
        let (left, right, added) = (widen(left)?, widen(right)?, widen(added)?);
        let product = build.build_float_mul(left, right, "")?;
        let sum = build.build_float_add(product, added, "")?;
        let of_added = build.build_float_sub(sum, product, "")?;
        let of_product = build.build_float_sub(sum, of_added, "")?;
        let lost_product = build.build_float_sub(product, of_product, "")?;
        let lost_added = build.build_float_sub(added, of_added, "")?;
        let lost = build.build_float_add(lost_product, lost_added, "")?;
        // Step toward zero if the error has the opposite sign, then set the last bit. For
        // infinities and NaN, the error is NaN.
        let bits = |value| int(build.build_bit_cast(value, word, "")?);
        let zero = double.const_zero();
        let is_inexact = build.build_float_compare(FloatPredicate::ONE, lost, zero, "")?;
        let signs = build.build_xor(bits(sum)?, bits(lost)?, "")?;
        let differ = build.build_int_compare(IntPredicate::SLT, signs, word.const_zero(), "")?;
        let step = build.build_and(is_inexact, differ, "")?;
        let step = build.build_int_z_extend(step, word, "")?;
        let toward_zero = build.build_int_sub(bits(sum)?, step, "")?;
        let sticky = build.build_int_z_extend(is_inexact, word, "")?;
        let odd = build.build_or(toward_zero, sticky, "")?;
        let odd = build.build_bit_cast(odd, double, "")?;
        self.cast_scalar(odd, Scalar::F64, scalar)
    }
}
