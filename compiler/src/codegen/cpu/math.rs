//! Mathematical functions, by their libdevice names.

use inkwell::FloatPredicate;
use inkwell::values::BasicValueEnum;

use crate::codegen::bug;
use crate::codegen::function::FunctionEmitter;
use crate::codegen::values::{float, int, result};
use crate::error::Result;
use gridlet_lang::builtins::MathOp;
use gridlet_lang::types::Scalar;

/// Functions with an LLVM intrinsic, which LLVM folds and may vectorise. Where the machine has no
/// instruction, LLVM calls the C library.
const INTRINSICS: [&str; 20] = [
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "exp2",
    "log", "log2", "log10", "pow", "floor", "ceil", "round", "trunc",
];

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// The function named `name` in libdevice; all arguments and the result are `scalar`s.
    pub(in crate::codegen) fn cpu_math(
        &self,
        name: &str,
        scalar: Scalar,
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        match (name, arguments) {
            ("rsqrt", [value]) => {
                let root = float(self.intrinsic("sqrt", &[*value])?)?;
                let one = self.cx.float_type(scalar).const_float(1.0);
                Ok(self.build().build_float_div(one, root, "")?.into())
            }
            ("fmod", [left, right]) => {
                Ok(self.build().build_float_rem(float(*left)?, float(*right)?, "")?.into())
            }
            _ if INTRINSICS.contains(&name) => self.intrinsic(name, arguments),
            _ => {
                let symbol = match scalar {
                    Scalar::F32 => format!("{name}f"),
                    Scalar::F64 => name.to_owned(),
                    _ => return Err(bug(format!("`{name}` on {}", scalar.name()))),
                };
                let ty = self.cx.scalar_type(scalar);
                let function = self.cx.declare(&symbol, Some(ty), &vec![ty; arguments.len()])?;
                result(self.emit_call(function, arguments, "")?)
            }
        }
    }

    /// `min` or `max` of two floats: the other value if one is NaN, with -0 below +0.
    ///
    /// LLVM's `minimumnum` and `maximumnum` are defined the same way, but its x86 back end gives NaN
    /// for one NaN and an operand that is known not to be NaN (LLVM 22, AVX-512), and fails in other
    /// ways in other versions.
    pub(in crate::codegen) fn cpu_min_max(
        &self,
        op: MathOp,
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        let [left, right] = arguments else { return Err(bug("min and max take two arguments")) };
        let (build, left, right) = (self.build(), float(*left)?, float(*right)?);
        let word = self.cx.int_type(left.get_type().get_bit_width());
        let bits = |value| int(build.build_bit_cast(value, word, "")?);
        // Equal numbers have the same bits, except for zeros: their signs are combined.
        let (order, same) = match op {
            MathOp::Min => (FloatPredicate::OLT, build.build_or(bits(left)?, bits(right)?, "")?),
            _ => (FloatPredicate::OGT, build.build_and(bits(left)?, bits(right)?, "")?),
        };
        let same = build.build_bit_cast(same, left.get_type(), "")?;
        let is_left = build.build_float_compare(order, left, right, "")?;
        let number = build.build_select(is_left, left, right, "")?;
        let are_equal = build.build_float_compare(FloatPredicate::OEQ, left, right, "")?;
        let number = build.build_select(are_equal, same, number, "")?;
        let is_nan = build.build_float_compare(FloatPredicate::UNO, right, right, "")?;
        Ok(build.build_select(is_nan, left.into(), number, "")?)
    }
}
