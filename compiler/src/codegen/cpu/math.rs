//! Mathematical functions, by their libdevice names.

use inkwell::values::BasicValueEnum;

use crate::codegen::bug;
use crate::codegen::function::FunctionEmitter;
use crate::codegen::values::{float, result};
use crate::error::Result;
use gridlet_lang::types::Scalar;

/// Functions with an LLVM intrinsic, which LLVM folds and may vectorise. Where the machine has no
/// instruction, LLVM calls the C library.
const INTRINSICS: [&str; 20] = [
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "exp2",
    "log", "log2", "log10", "pow", "floor", "ceil", "round", "trunc",
];

/// Other C library functions that an image may call, by this name or, for `f32`, with an `f`
/// appended.
const FUNCTIONS: [&str; 8] = ["cbrt", "erf", "fma", "fmax", "fmin", "fmod", "hypot", "sqrt"];

/// Whether a variable of this name would replace a C function that an image may call.
pub(in crate::codegen) fn is_c_function(name: &str) -> bool {
    let is_known = |name: &str| INTRINSICS.contains(&name) || FUNCTIONS.contains(&name);
    is_known(name) || name.strip_suffix('f').is_some_and(is_known)
}

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
}
