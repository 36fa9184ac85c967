//! Calls of `extern fn`, by the convention of [`crate::check`]'s `externs`: what CUDA C++ gives an
//! `extern "C" __device__` function, and on the CPU C.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, FunctionValue};

use super::context::ModuleContext;
use super::function::FunctionEmitter;
use crate::error::{Error, Result};
use crate::ir::Extern;
use crate::types::{Scalar, Type};

/// Whether a value is passed as a copy of its bytes.
fn is_copied(ty: &Type) -> bool {
    matches!(ty, Type::Struct(_) | Type::Vector(..) | Type::Array(..))
}

impl<'ctx> ModuleContext<'ctx, '_> {
    /// Declares an `extern fn`.
    pub(super) fn declare_external(&self, item: &Extern) -> Result<FunctionValue<'ctx>> {
        if self.cpu().is_some() && item.parameters.iter().any(is_copied) {
            return Err(Error::Invalid(format!(
                "`{}` takes a struct or a vector by itself, which the CPU device cannot pass to C yet; \
                 pass a pointer to it",
                item.name
            )));
        }
        let parameters = item.parameters.iter().map(|ty| self.external_type(ty));
        let parameters = parameters.collect::<Result<Vec<_>>>()?;
        let result = match &item.result {
            Type::Unit => None,
            ty => Some(self.external_type(ty)?),
        };
        let value = self.add_function(&item.name, self.function_type(result, &parameters))?;
        for (place, attribute) in self.external_attributes(item)? {
            value.add_attribute(place, attribute);
        }
        Ok(value)
    }

    fn external_type(&self, ty: &Type) -> Result<BasicTypeEnum<'ctx>> {
        if is_copied(ty) { Ok(self.pointer_type().into()) } else { self.value_type(ty) }
    }

    /// What the declaration and every call say of parameters and result.
    fn external_attributes(&self, item: &Extern) -> Result<Vec<(AttributeLoc, Attribute)>> {
        let mut attributes = vec![];
        let places = (0..).map(AttributeLoc::Param).zip(&item.parameters);
        for (place, ty) in places.chain([(AttributeLoc::Return, &item.result)]) {
            let named = |name: &str, value: u64| {
                let kind = Attribute::get_named_enum_kind_id(name);
                (place, self.context.create_enum_attribute(kind, value))
            };
            match ty {
                Type::Scalar(Scalar::Bool | Scalar::U8 | Scalar::U16) => {
                    attributes.push(named("zeroext", 0));
                }
                Type::Scalar(Scalar::I8 | Scalar::I16) => attributes.push(named("signext", 0)),
                ty if is_copied(ty) => {
                    let kind = Attribute::get_named_enum_kind_id("byval");
                    let bytes = self.bytes_type(ty)?;
                    let byval = self.context.create_type_attribute(kind, bytes.into());
                    attributes.push((place, byval));
                    attributes.push(named("align", u64::from(self.alignment(ty))));
                }
                _ => {}
            }
        }
        Ok(attributes)
    }
}

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Calls an `extern fn`.
    pub(super) fn call_external(
        &self,
        item: &Extern,
        callee: FunctionValue<'ctx>,
        arguments: Vec<BasicValueEnum<'ctx>>,
        name: &str,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let mut passed = Vec::with_capacity(arguments.len());
        for (value, ty) in arguments.into_iter().zip(&item.parameters) {
            passed.push(match is_copied(ty) {
                false => value,
                true => {
                    let copy = self.temporary(self.cx.size(ty), self.cx.alignment(ty), "copy")?;
                    self.store_part(copy, 0, value, ty)?;
                    copy.into()
                }
            });
        }
        let call = self.emit_call(callee, &passed, name)?;
        for (place, attribute) in self.cx.external_attributes(item)? {
            call.add_attribute(place, attribute);
        }
        Ok(call.try_as_basic_value().basic())
    }
}
