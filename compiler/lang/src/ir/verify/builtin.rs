//! The arguments and values of built-in operations, as [`crate::builtins`] has them.

use super::{Checked, FunctionVerifier, require};
use crate::builtins::{
    Builtin, MathOp, Order, atomic_supports, bitcast_supports, is_wide_number, reduce_supports,
    shuffle_supports,
};
use crate::ir::{GlobalId, Init, Space};
use crate::types::{Scalar, Type};

impl FunctionVerifier<'_> {
    pub(super) fn check_builtin(
        &self,
        builtin: Builtin,
        arguments: &[Type],
        format: Option<GlobalId>,
        value: &Type,
    ) -> Checked {
        match builtin {
            Builtin::Printf => {
                self.check_format(format)?;
                for ty in arguments {
                    require!(is_variadic(ty), "`printf` cannot pass a `{}`", self.show(ty));
                }
            }
            _ => require!(format.is_none(), "only `printf` has a format"),
        }
        let (wanted, result) = self.signature(builtin, arguments, value)?;
        let (given, count) = (arguments.len(), wanted.len());
        require!(given == count, "{given} arguments for the {count} of `{}`", builtin.name());
        for (at, (wanted, given)) in wanted.iter().zip(arguments).enumerate() {
            self.expect(&format!("argument {at}"), wanted, given)?;
        }
        self.expect("its value", &result, value)
    }

    /// The types that the arguments should have, and that of the value. What an operation is generic over
    /// is taken from the arguments that are given.
    fn signature(
        &self,
        builtin: Builtin,
        arguments: &[Type],
        value: &Type,
    ) -> Checked<(Vec<Type>, Type)> {
        if let Some(signature) = builtin.fixed_signature() {
            let is_runtime = is_device_runtime(builtin);
            let lowered = self.module.lowered;
            require!(!(is_runtime && lowered), "it is still there after the launch stage");
            return Ok(signature);
        }
        // The scalar that the argument at `at` is, or points to, if `allowed` has it.
        let generic = |at: usize, allowed: &dyn Fn(Scalar) -> bool| -> Checked<Type> {
            let given = arguments.get(at);
            let scalar = given.map(|ty| ty.pointee().unwrap_or(ty)).and_then(Type::as_scalar);
            match scalar.filter(|scalar| allowed(*scalar)) {
                Some(scalar) => Ok(Type::Scalar(scalar)),
                None => {
                    let shown = given.map_or("nothing".into(), |ty| self.show(ty));
                    Err(format!("`{}` is not defined on `{shown}`", builtin.name()))
                }
            }
        };
        Ok(match builtin {
            Builtin::Shuffle(_) => {
                let ty = generic(1, &shuffle_supports)?;
                (vec![Type::U32, ty.clone(), Type::U32], ty)
            }
            Builtin::MatchAny => (vec![Type::U32, generic(1, &is_wide_number)?], Type::U32),
            Builtin::Reduce(op) => {
                let ty = generic(1, &|scalar| reduce_supports(op, scalar))?;
                (vec![Type::U32, ty.clone()], ty)
            }
            Builtin::Atomic(op, _) => {
                let ty = generic(0, &|scalar| atomic_supports(op, scalar))?;
                (vec![Type::pointer_mut(ty.clone()), ty.clone()], ty)
            }
            Builtin::AtomicCas(_) => {
                let ty = generic(0, &|scalar| scalar.is_integer() && is_wide_number(scalar))?;
                (vec![Type::pointer_mut(ty.clone()), ty.clone(), ty.clone()], ty)
            }
            Builtin::AtomicLoad(order) => {
                require!(order != Order::Release, "a load is not a release");
                let ty = generic(0, &is_wide_number)?;
                (vec![Type::pointer_const(ty.clone())], ty)
            }
            Builtin::AtomicStore(order) => {
                require!(order != Order::Acquire, "a store is not an acquire");
                let ty = generic(0, &is_wide_number)?;
                (vec![Type::pointer_mut(ty.clone()), ty], Type::Unit)
            }
            Builtin::MulHi => {
                let ty = generic(0, &|scalar| scalar.is_integer() && is_wide_number(scalar))?;
                (vec![ty.clone(); 2], ty)
            }
            Builtin::Bitcast => {
                let from = arguments.first().unwrap_or(&Type::Unit);
                let shown = (self.show(from), self.show(value));
                require!(bitcast_supports(from, value), "from `{}` to `{}`", shown.0, shown.1);
                (vec![from.clone()], value.clone())
            }
            Builtin::Assert => {
                let string = || Type::pointer_const(Type::Scalar(Scalar::U8));
                (vec![string(), string(), Type::U32, string()], Type::Unit)
            }
            Builtin::Math(MathOp::Clamp | MathOp::Saturate)
            | Builtin::SizeOf
            | Builtin::AlignOf => {
                return Err(format!("`{}` is made of other operations", builtin.name()));
            }
            Builtin::Math(op) => {
                let ty = generic(0, &|scalar| op.supports(scalar))?;
                let count = MathOp::ALL.iter().find(|(known, ..)| *known == op).map_or(0, |x| x.2);
                (vec![ty.clone(); count], ty)
            }
            Builtin::Bit(op) => {
                let ty = generic(0, &|scalar| scalar.is_integer() && is_wide_number(scalar))?;
                let is_brev = op == crate::builtins::BitOp::Brev;
                (vec![ty.clone()], if is_brev { ty } else { Type::U32 })
            }
            Builtin::Printf => (arguments.to_vec(), Type::I32),
            _ => return Err("it has no signature".into()),
        })
    }

    /// The format of `printf` is a NUL-terminated string in constant memory.
    fn check_format(&self, format: Option<GlobalId>) -> Checked {
        let Some(id) = format else {
            return Err("`printf` without a format".into());
        };
        let Some(global) = self.module.globals.get(id.index()) else {
            return Err(format!("global {} does not exist", id.0));
        };
        let ends = matches!(&global.init, Init::Bytes(bytes) if bytes.last() == Some(&0));
        let is_bytes =
            matches!(&global.ty, Type::Array(element, _) if **element == Type::Scalar(Scalar::U8));
        let is_string = global.space == Space::Constant && is_bytes && ends;
        require!(is_string, "its format `{}` is no string", global.name);
        Ok(())
    }
}

/// Whether the `launch` stage makes a call of it.
fn is_device_runtime(builtin: Builtin) -> bool {
    matches!(
        builtin,
        Builtin::StreamCreate
            | Builtin::StreamDestroy
            | Builtin::MemcpyAsync
            | Builtin::MemsetAsync
            | Builtin::DeviceLastError
    )
}

/// What C passes to a variadic function, after its promotions.
fn is_variadic(ty: &Type) -> bool {
    ty.is_pointer()
        || matches!(
            ty,
            Type::Scalar(Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 | Scalar::F64)
        )
}
