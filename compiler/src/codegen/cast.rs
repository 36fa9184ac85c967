//! `as`, with Rust's semantics: integers are truncated, or extended according to the sign of their
//! own type; floats saturate to integers and NaN becomes 0; every other conversion rounds to
//! nearest, ties to even.

use inkwell::values::{BasicValueEnum, FloatValue, IntValue};
use inkwell::{FloatPredicate, IntPredicate};

use super::bug;
use super::function::FunctionEmitter;
use super::values::{float, int, pointer, result};
use crate::error::Result;
use gridlet_lang::builtins::MathOp;
use gridlet_lang::types::{Scalar, Type};

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// `value as to`.
    pub(super) fn cast(
        &self,
        value: BasicValueEnum<'ctx>,
        from: &Type,
        to: &Type,
    ) -> Result<BasicValueEnum<'ctx>> {
        let is_address = |ty: &Type| ty.is_pointer() || *ty == Type::Stream;
        match (from, to) {
            _ if from == to => Ok(value),
            (Type::Scalar(from), Type::Scalar(to)) => self.cast_scalar(value, *from, *to),
            (from, to) if is_address(from) && is_address(to) => Ok(value),
            (from, Type::Scalar(to)) if is_address(from) => {
                let wide = self.cx.int_type(64);
                let bits = self.build().build_ptr_to_int(pointer(value)?, wide, "")?;
                self.cast_scalar(bits.into(), Scalar::U64, *to)
            }
            (Type::Scalar(from), to) if is_address(to) => {
                let bits = int(self.cast_scalar(value, *from, Scalar::U64)?)?;
                let ty = self.cx.pointer_type();
                Ok(self.build().build_int_to_ptr(bits, ty, "")?.into())
            }
            _ => {
                let name = |ty: &Type| ty.display(&self.cx.ir.structs).to_string();
                Err(bug(format!("a cast from {} to {}", name(from), name(to))))
            }
        }
    }

    /// `value as to` between scalars.
    pub(super) fn cast_scalar(
        &self,
        value: BasicValueEnum<'ctx>,
        from: Scalar,
        to: Scalar,
    ) -> Result<BasicValueEnum<'ctx>> {
        if from == to {
            return Ok(value);
        }
        match (from.is_float(), to.is_float()) {
            (false, false) => Ok(self.cast_int(int(value)?, from, to)?.into()),
            (false, true) => self.int_to_float(int(value)?, from, to),
            (true, true) => self.cast_float(value, from, to),
            (true, false) => {
                // f32 represents both narrow types exactly, and PTX converts only f32 and f64 to
                // every integer type.
                let wide = if from == Scalar::F64 { Scalar::F64 } else { Scalar::F32 };
                let value = float(self.cast_scalar(value, from, wide)?)?;
                Ok(self.float_to_int(value, to)?.into())
            }
        }
    }

    fn cast_int(&self, value: IntValue<'ctx>, from: Scalar, to: Scalar) -> Result<IntValue<'ctx>> {
        let ty = self.cx.int_type(to.bits());
        Ok(if to == Scalar::Bool {
            self.byte_to_bool(value, "")?
        } else if to.bits() < from.bits() {
            self.build().build_int_truncate(value, ty, "")?
        } else if to.bits() == from.bits() {
            value
        } else if from.is_signed() {
            self.build().build_int_s_extend(value, ty, "")?
        } else {
            self.build().build_int_z_extend(value, ty, "")?
        })
    }

    fn int_to_float(
        &self,
        value: IntValue<'ctx>,
        from: Scalar,
        to: Scalar,
    ) -> Result<BasicValueEnum<'ctx>> {
        if from == Scalar::Bool {
            let value = self.cast_int(value, from, Scalar::U32)?;
            return self.int_to_float(value, Scalar::U32, to);
        }
        if self.cx.is_bits(to) && !self.cx.has_half(to) {
            return Ok(self.int_to_narrow(value, from, to)?.into());
        }
        let ty = self.cx.float_type(to);
        let converted = if from.is_signed() {
            self.build().build_signed_int_to_float(value, ty, "")?
        } else {
            self.build().build_unsigned_int_to_float(value, ty, "")?
        };
        if self.cx.has_half(to) {
            self.half_to_bits(self.infinite_above_halves(value, from, converted)?)
        } else {
            Ok(converted.into())
        }
    }

    /// An integer as `half`, where those that round to more than the greatest one are infinite whatever LLVM makes of the
    /// conversion: it turns `(n as f16) as f32` into `n as f32` if `n` has few significant bits, however great it is
    /// (`isKnownExactCastIntToFP` of InstCombine, LLVM 22).
    fn infinite_above_halves(
        &self,
        value: IntValue<'ctx>,
        from: Scalar,
        converted: FloatValue<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        // Rounds to 65,504; the next integer rounds to 65,536, which is too great.
        const GREATEST: u64 = 65_519;
        let (ty, half) = (value.get_type(), converted.get_type());
        let mut result = converted.into();
        if ty.get_bit_width() < 16 || from == Scalar::I16 {
            return Ok(result);
        }
        let build = self.build();
        let infinity = half.const_float(f64::INFINITY);
        let greatest = ty.const_int(GREATEST, false);
        let above = if from.is_signed() { IntPredicate::SGT } else { IntPredicate::UGT };
        let is_above = build.build_int_compare(above, value, greatest, "")?;
        result = build.build_select(is_above, infinity.into(), result, "")?;
        if from.is_signed() {
            let least = build.build_int_neg(greatest, "")?;
            let is_below = build.build_int_compare(IntPredicate::SLT, value, least, "")?;
            let negative = half.const_float(f64::NEG_INFINITY);
            result = build.build_select(is_below, negative.into(), result, "")?;
        }
        Ok(result)
    }

    fn cast_float(
        &self,
        value: BasicValueEnum<'ctx>,
        from: Scalar,
        to: Scalar,
    ) -> Result<BasicValueEnum<'ctx>> {
        let value = if self.cx.has_half(from) {
            self.bits_to_half(value)?
        } else if self.cx.is_bits(from) {
            let wide = self.narrow_to_f32(int(value)?, from)?;
            return self.cast_scalar(wide.into(), Scalar::F32, to);
        } else {
            float(value)?
        };
        if self.cx.is_bits(to) && !self.cx.has_half(to) {
            return Ok(self.float_to_narrow(value, from, to)?.into());
        }
        let ty = self.cx.float_type(to);
        let value = if to.size() > from.size() {
            self.build().build_float_ext(value, ty, "")?.into()
        } else {
            self.build().build_float_trunc(value, ty, "")?.into()
        };
        if self.cx.has_half(to) { self.half_to_bits(value) } else { Ok(value) }
    }

    /// Float to integer on a GPU, where `cvt.rzi` saturates. NaN becomes 0 if neither type has 64 bits, and another number
    /// otherwise (PTX ISA, "cvt").
    fn converted_by_ptx(&self, value: FloatValue<'ctx>, to: Scalar) -> Result<IntValue<'ctx>> {
        let build = self.build();
        let (is_double, is_wide) = (value.get_type().get_bit_width() == 64, to.bits() == 64);
        if !is_double && to.bits() < 32 {
            let flush = if self.cx.is_fast_math() { ".ftz" } else { "" };
            let sign = if to.is_signed() { 's' } else { 'u' };
            let text = format!("cvt.rzi{flush}.{sign}{}.f32 $0, $1;", to.bits());
            let number = int(self.pure_assembly(&text, 16, &[value.into()])?)?;
            return Ok(build.build_int_truncate(number, self.cx.int_type(to.bits()), "")?);
        }
        let from = if is_double { "d" } else { "f" };
        let (word, register) = match (is_wide, to.is_signed()) {
            (false, true) => ("i", 32),
            (false, false) => ("ui", 32),
            (true, true) => ("ll", 64),
            (true, false) => ("ull", 64),
        };
        let wide = self.cx.int_type(register);
        let flush = if self.cx.is_fast_math() && !is_double { ".ftz" } else { "" };
        let name = format!("llvm.nvvm.{from}2{word}.rz{flush}");
        let function = self.cx.declare(&name, Some(wide.into()), &[value.get_type().into()])?;
        let mut number = int(result(self.emit_call(function, &[value.into()], "")?)?)?;
        if to.bits() < register {
            let most = (1_u64 << (to.bits() - u32::from(to.is_signed()))) - 1;
            let limit = wide.const_int(most, false);
            number = int(self.int_min_max(MathOp::Min, number, limit, to.is_signed())?)?;
            if to.is_signed() {
                let limit = wide.const_int(!most, true);
                number = int(self.int_min_max(MathOp::Max, number, limit, true)?)?;
            }
            number = build.build_int_truncate(number, self.cx.int_type(to.bits()), "")?;
        }
        if !is_double && !is_wide {
            return Ok(number);
        }
        let is_nan = self.is_ordered(FloatPredicate::UNO, value)?;
        if is_wide {
            return self.zero_if(is_nan, number);
        }
        int(build.build_select(is_nan, number.get_type().const_zero(), number, "")?)
    }

    /// Zero instead of the number of 64 bits that PTX converts NaN to: only its highest bit is set (PTX ISA, "cvt"), so one
    /// selection of 32 bits does.
    fn zero_if(&self, is_nan: IntValue<'ctx>, number: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        let (build, word) = (self.build(), self.cx.int_type(32));
        let halves = build.build_bit_cast(number, word.vec_type(2), "")?.into_vector_value();
        let at = word.const_int(1, false);
        let high = build.build_extract_element(halves, at, "")?;
        let high = build.build_select(is_nan, word.const_zero().into(), high, "")?;
        let halves = build.build_insert_element(halves, high, at, "")?;
        int(build.build_bit_cast(halves, number.get_type(), "")?)
    }

    /// Float to integer. LLVM's conversion is undefined outside the range; a `select` never chooses the undefined result.
    fn float_to_int(&self, value: FloatValue<'ctx>, to: Scalar) -> Result<IntValue<'ctx>> {
        let build = self.build();
        if to == Scalar::Bool {
            return Err(bug("a cast from a float to bool"));
        }
        if self.cx.cpu().is_none() {
            return self.converted_by_ptx(value, to);
        }
        let (bits, signed) = (to.bits(), to.is_signed());
        let ty = self.cx.int_type(bits);
        let converted = if signed {
            build.build_float_to_signed_int(value, ty, "")?
        } else {
            build.build_float_to_unsigned_int(value, ty, "")?
        };
        let ones = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        let (least, most) = if signed { (1 << (bits - 1), ones >> 1) } else { (0, ones) };
        // Both bounds are powers of two or zero, so every float type represents them exactly.
        let power = |exponent: u32| f64::from(exponent).exp2();
        let (low, high) =
            if signed { (-power(bits - 1), power(bits - 1)) } else { (0.0, power(bits)) };
        let bound = |bound: f64| value.get_type().const_float(bound);
        let is_low = build.build_float_compare(FloatPredicate::OLT, value, bound(low), "")?;
        let is_high = build.build_float_compare(FloatPredicate::OGE, value, bound(high), "")?;
        let is_nan = self.is_ordered(FloatPredicate::UNO, value)?;
        let result = build.build_select(is_low, ty.const_int(least, false), converted, "")?;
        let result = build.build_select(is_high, ty.const_int(most, false), int(result)?, "")?;
        int(build.build_select(is_nan, ty.const_zero(), int(result)?, "")?)
    }
}
