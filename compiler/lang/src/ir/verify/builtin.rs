//! Checks the arguments and results of built-in operations against [`crate::builtins`].

use super::{Checked, FunctionVerifier, missing, require};
use crate::builtins::{Builtin, Lowering, Memory, Properties, TypePattern, bitcast_supports};
use crate::check::counted_arguments;
use crate::check::printf::passed_types;
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
                for ty in arguments {
                    require!(is_variadic(ty), "`printf` cannot pass a `{}`", self.show(ty));
                }
                self.check_format(format, arguments)?;
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

    /// The expected types of the arguments and of the result. The type of a generic operation is taken from
    /// the given arguments.
    fn signature(
        &self,
        builtin: Builtin,
        arguments: &[Type],
        value: &Type,
    ) -> Checked<(Vec<Type>, Type)> {
        let properties = builtin.properties();
        match properties.lowering {
            Lowering::Checker | Lowering::Build => {
                return Err(format!("`{}` must be composed of other operations", builtin.name()));
            }
            Lowering::DeviceRuntime => {
                require!(!self.module.lowered, "it is still there after the launch stage");
            }
            Lowering::Expand(_) | Lowering::Codegen => {}
        }
        if let (Some(order), Memory::Atomic(access)) = (builtin.order(), properties.memory) {
            require!(order.suits(access), "its order cannot be `{}`", order.name());
        }
        // Three operations whose types are not in the table.
        match builtin {
            Builtin::Bitcast => {
                let from = arguments.first().unwrap_or(&Type::Unit);
                let shown = (self.show(from), self.show(value));
                require!(bitcast_supports(from, value), "from `{}` to `{}`", shown.0, shown.1);
                return Ok((vec![from.clone()], value.clone()));
            }
            Builtin::Assert => {
                let string = || Type::pointer_const(Type::Scalar(Scalar::U8));
                return Ok((vec![string(), string(), Type::U32, string()], Type::Unit));
            }
            Builtin::Printf => return Ok((arguments.to_vec(), Type::I32)),
            _ => {}
        }
        let generic = match properties.generic_argument() {
            Some(at) => Some(self.generic(builtin, &properties, arguments.get(at))?),
            None => None,
        };
        let ty = |pattern: &TypePattern| {
            pattern.with(generic.as_ref()).ok_or_else(|| String::from("it has no signature"))
        };
        let patterns = properties.arguments.iter().filter(|ty| **ty != TypePattern::Order);
        Ok((patterns.map(ty).collect::<Checked<_>>()?, ty(&properties.result)?))
    }

    /// The scalar that an argument is or points to, if the built-in is defined on it.
    fn generic(
        &self,
        builtin: Builtin,
        properties: &Properties,
        given: Option<&Type>,
    ) -> Checked<Type> {
        let scalar = given.map(|ty| ty.pointee().unwrap_or(ty)).and_then(Type::as_scalar);
        match scalar.filter(|scalar| properties.types.has(*scalar)) {
            Some(scalar) => Ok(Type::Scalar(scalar)),
            None => {
                let shown = given.map_or("nothing".into(), |ty| self.show(ty));
                Err(format!("`{}` is not defined on `{shown}`", builtin.name()))
            }
        }
    }

    /// Checks that the format of `printf` is a NUL-terminated string in constant memory, whose conversions take the arguments.
    fn check_format(&self, format: Option<GlobalId>, arguments: &[Type]) -> Checked {
        let Some(id) = format else {
            return Err("`printf` without a format".into());
        };
        let Some(global) = self.module.globals.get(id.index()) else {
            return Err(missing("global variable", id.0));
        };
        let text = match &global.init {
            Init::Bytes(bytes) if global.space == Space::Constant => bytes.split_last(),
            _ => None,
        };
        let is_bytes =
            matches!(&global.ty, Type::Array(element, _) if **element == Type::Scalar(Scalar::U8));
        let Some((0, text)) = text.filter(|_| is_bytes) else {
            return Err(format!("its format `{}` is not a string", global.name));
        };
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let Some(wanted) = passed_types(&String::from_utf8_lossy(text)) else {
            return Err("its format has a conversion that `printf` lacks".into());
        };
        let (takes, given) = (counted_arguments(wanted.len()), arguments.len());
        require!(wanted.len() == given, "its format takes {takes}, but {given} follow");
        for (at, (wanted, given)) in wanted.iter().zip(arguments).enumerate() {
            let fits = match (wanted.as_scalar(), given.as_scalar()) {
                // Signed and unsigned numbers are passed alike.
                (Some(wanted), Some(given)) => {
                    (wanted.is_float(), wanted.size()) == (given.is_float(), given.size())
                }
                (wanted, given) => wanted.is_none() && given.is_none(),
            };
            let (wanted, given) = (self.show(wanted), self.show(given));
            require!(fits, "argument {at} of its format has type `{given}`, not `{wanted}`");
        }
        Ok(())
    }
}

/// Whether C passes this type to variadic functions, after promotions.
fn is_variadic(ty: &Type) -> bool {
    ty.is_pointer()
        || matches!(
            ty,
            Type::Scalar(Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 | Scalar::F64)
        )
}
