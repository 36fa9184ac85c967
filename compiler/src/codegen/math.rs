//! Mathematical functions and bit operations.
//!
//! Uses LLVM's intrinsics where they are exact and libNVVM accepts them in both dialects, and
//! libdevice elsewhere (its "User's Guide" states the errors). Functions are declared on first use,
//! so that only modules that need libdevice link it.

use inkwell::IntPredicate;
use inkwell::values::BasicValueEnum;

use super::bug;
use super::function::FunctionEmitter;
use super::values::{int, result};
use crate::error::Result;
use gridlet_lang::builtins::{BitOp, MathOp};
use gridlet_lang::types::Scalar;

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// A mathematical function; all arguments and the result have type `scalar`.
    pub(super) fn math(
        &self,
        op: MathOp,
        scalar: Scalar,
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        match scalar {
            Scalar::F32 | Scalar::F64 => {}
            Scalar::F16 | Scalar::Bf16 => return self.narrow_math(op, scalar, arguments),
            _ => return self.int_math(op, scalar, arguments),
        }
        let libdevice = |name| self.libdevice(name, scalar, arguments);
        match op {
            MathOp::Abs if scalar == Scalar::F32 && self.cx.is_fast_math() => {
                self.single("fabs.ftz.f32", arguments)
            }
            // ptxas draws conclusions from its `abs`: that `abs(x) + 1` is not subnormal, say.
            MathOp::Abs => self.intrinsic("fabs", arguments),
            MathOp::Min | MathOp::Max if self.cx.cpu().is_some() => self.cpu_min_max(op, arguments),
            // PTX's min and max return the other value if one is NaN, and order -0 below +0.
            MathOp::Min => self.intrinsic("minnum", arguments),
            MathOp::Max => self.intrinsic("maxnum", arguments),
            MathOp::Sqrt if scalar == Scalar::F32 && self.cx.is_fast_math() => {
                self.approximate("sqrt", arguments)
            }
            MathOp::Sqrt => self.intrinsic("sqrt", arguments),
            MathOp::Floor => self.intrinsic("floor", arguments),
            MathOp::Ceil => self.intrinsic("ceil", arguments),
            MathOp::Fma => self.intrinsic("fma", arguments),
            MathOp::Rsqrt => libdevice("rsqrt"),
            MathOp::Sin => libdevice("sin"),
            MathOp::Cos => libdevice("cos"),
            MathOp::Tan => libdevice("tan"),
            MathOp::Exp => libdevice("exp"),
            MathOp::Exp2 => libdevice("exp2"),
            MathOp::Log => libdevice("log"),
            MathOp::Log2 => libdevice("log2"),
            MathOp::Log10 => libdevice("log10"),
            MathOp::Pow => libdevice("pow"),
            MathOp::Round => libdevice("round"),
            MathOp::Trunc => libdevice("trunc"),
            MathOp::Asin => libdevice("asin"),
            MathOp::Acos => libdevice("acos"),
            MathOp::Atan => libdevice("atan"),
            MathOp::Atan2 => libdevice("atan2"),
            MathOp::Sinh => libdevice("sinh"),
            MathOp::Cosh => libdevice("cosh"),
            MathOp::Tanh => libdevice("tanh"),
            MathOp::Cbrt => libdevice("cbrt"),
            MathOp::Hypot => libdevice("hypot"),
            MathOp::Erf => libdevice("erf"),
            MathOp::Clamp | MathOp::Saturate => {
                Err(bug(format!("`{op:?}` is composed of other operations")))
            }
        }
    }

    fn int_math(
        &self,
        op: MathOp,
        scalar: Scalar,
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        match (op, arguments) {
            (MathOp::Abs, [value]) if scalar.is_signed() => {
                let value = int(*value)?;
                // MIN stays MIN: overflow wraps. As libdevice computes it: with the greater of the two, libNVVM repeats what it computed
                // before a loop in each round.
                let negated = self.build().build_int_neg(value, "")?;
                let zero = value.get_type().const_zero();
                let is_negative =
                    self.build().build_int_compare(IntPredicate::SLT, value, zero, "")?;
                Ok(self.build().build_select(is_negative, negated, value, "")?)
            }
            (MathOp::Abs, [value]) if scalar.is_unsigned() => Ok(*value),
            (MathOp::Min | MathOp::Max, [left, right]) if scalar.is_integer() => {
                self.int_min_max(op, int(*left)?, int(*right)?, scalar.is_signed())
            }
            _ => Err(bug(format!("`{op:?}` on {}", scalar.name()))),
        }
    }

    /// Calls `__nv_<name>f` or `__nv_<name>`; with fast math `__nv_fast_<name>f`, if there is one.
    pub(super) fn libdevice(
        &self,
        name: &str,
        scalar: Scalar,
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        if self.cx.cpu().is_some() {
            return self.cpu_math(name, scalar, arguments);
        }
        let suffix = if scalar == Scalar::F32 { "f" } else { "" };
        let is_fast = scalar == Scalar::F32 && self.cx.is_fast_function(name);
        let prefix = if is_fast { "__nv_fast_" } else { "__nv_" };
        let ty = self.cx.scalar_type(scalar);
        let parameters = vec![ty; arguments.len()];
        let function =
            self.cx.declare(&format!("{prefix}{name}{suffix}"), Some(ty), &parameters)?;
        result(self.emit_call(function, arguments, "")?)
    }

    /// Calls an approximation of `f32` by one instruction.
    pub(super) fn approximate(
        &self,
        name: &str,
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        self.single(&format!("{name}.approx.ftz.f"), arguments)
    }

    /// Calls `llvm.nvvm.<name>`, an instruction of `f32`.
    fn single(
        &self,
        name: &str,
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        let single = self.cx.scalar_type(Scalar::F32);
        let parameters = vec![single; arguments.len()];
        let name = format!("llvm.nvvm.{name}");
        let function = self.cx.declare(&name, Some(single), &parameters)?;
        result(self.emit_call(function, arguments, "")?)
    }

    /// Calls `llvm.<name>`, overloaded on the common type of the arguments and the result.
    pub(super) fn intrinsic(
        &self,
        name: &str,
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        let ty = arguments.first().ok_or_else(|| bug("an intrinsic without arguments"))?.get_type();
        let suffix = match ty {
            ty if ty.is_float_type() => format!("f{}", ty.into_float_type().get_bit_width()),
            ty if ty.is_int_type() => format!("i{}", ty.into_int_type().get_bit_width()),
            other => return Err(bug(format!("llvm.{name} on {other}"))),
        };
        let parameters = vec![ty; arguments.len()];
        let full_name = format!("llvm.{name}.{suffix}");
        let function = self.cx.declare(&full_name, Some(ty), &parameters)?;
        result(self.emit_call(function, arguments, "")?)
    }

    /// A bit operation on a 32- or 64-bit integer. The counts return a `u32`; for zero, `clz` and
    /// `ctz` return the width.
    pub(super) fn bit(
        &self,
        op: BitOp,
        value: BasicValueEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        let count = match op {
            BitOp::Brev => return self.intrinsic("bitreverse", &[value]),
            BitOp::Popc => self.intrinsic("ctpop", &[value])?,
            BitOp::Clz => self.count_zeros("ctlz", value)?,
            // GPUs count set bits and leading zeros. Reversing the bits first takes another slow instruction, and to its own count
            // libNVVM adds a test for zero.
            BitOp::Ctz if self.cx.cpu().is_none() => {
                let build = self.build();
                let value = int(value)?;
                let one = value.get_type().const_int(1, false);
                let below = build.build_int_sub(value, one, "")?;
                let below = build.build_and(build.build_not(value, "")?, below, "")?;
                self.intrinsic("ctpop", &[below.into()])?
            }
            BitOp::Ctz => self.count_zeros("cttz", value)?,
        };
        let from =
            if int(value)?.get_type().get_bit_width() == 64 { Scalar::U64 } else { Scalar::U32 };
        self.cast_scalar(count, from, Scalar::U32)
    }

    /// The high half of the product. On GPUs by LLVM's name for the instruction: from a product at twice the width, libNVVM moves the
    /// conversion of a factor out of a loop, and then finds no instruction. On the CPU at twice the width.
    pub(super) fn mul_hi(
        &self,
        left: BasicValueEnum<'ctx>,
        right: BasicValueEnum<'ctx>,
        scalar: Scalar,
    ) -> Result<BasicValueEnum<'ctx>> {
        if self.cx.cpu().is_none() && scalar.bits() >= 32 {
            let suffix = match (scalar.bits(), scalar.is_signed()) {
                (32, true) => "i",
                (32, false) => "ui",
                (_, true) => "ll",
                (_, false) => "ull",
            };
            let ty = self.cx.scalar_type(scalar);
            let name = format!("llvm.nvvm.mulhi.{suffix}");
            let function = self.cx.declare(&name, Some(ty), &[ty; 2])?;
            return result(self.emit_call(function, &[left, right], "")?);
        }
        let build = self.build();
        let (narrow, wide) = (self.cx.int_type(scalar.bits()), self.cx.int_type(scalar.bits() * 2));
        let widen = |value| match scalar.is_signed() {
            true => build.build_int_s_extend(value, wide, ""),
            false => build.build_int_z_extend(value, wide, ""),
        };
        let (left, right) = (widen(int(left)?)?, widen(int(right)?)?);
        let product = build.build_int_mul(left, right, "")?;
        let half = wide.const_int(u64::from(scalar.bits()), false);
        let high = build.build_right_shift(product, half, false, "")?;
        Ok(build.build_int_truncate(high, narrow, "")?.into())
    }

    fn count_zeros(&self, name: &str, value: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        let ty = int(value)?.get_type();
        let flag = self.cx.int_type(1);
        let name = format!("llvm.{name}.i{}", ty.get_bit_width());
        let function = self.cx.declare(&name, Some(ty.into()), &[ty.into(), flag.into()])?;
        let zero_is_undefined = flag.const_zero().into();
        result(self.emit_call(function, &[value, zero_is_undefined], "")?)
    }
}
