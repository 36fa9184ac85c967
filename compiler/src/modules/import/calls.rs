//! Calls of functions: of this module, of the device runtime, of libdevice and of CUDA's C functions.

use gridlet_lang::builtins::{Builtin, MathOp};
use gridlet_lang::ir::{InstKind, Operand};
use gridlet_lang::launch::cdp::symbols::{self, DeviceRuntimeAbi, RuntimeFunction};
use gridlet_lang::types::Type;

use super::Step;
use super::body::Body;
use super::functions::Composed;
use crate::modules::kernels::{self, name};
use crate::modules::layout::pointer;
use crate::nvvm::legacy::llvm::{Kind, Value};

impl<'m> Body<'_, 'm> {
    /// A call; `None` if it gives no value.
    pub(super) fn call(&mut self, value: Value<'m>) -> Step<Option<Operand>> {
        let callee = value.callee();
        match callee.kind() {
            Kind::Function => {}
            Kind::Asm => return Err("inline PTX".into()),
            _ => return Err("a call through a pointer".into()),
        }
        if let Some(intrinsic) = callee.intrinsic() {
            return self.intrinsic(value, &intrinsic);
        }
        let symbol = name(callee);
        // The CPU device needs no turns.
        if callee.is_declaration() || symbols::called_in_turn(&symbol).is_some() {
            return self.foreign_call(value, &symbol);
        }
        if super::is_turn(&symbol) {
            return Ok(None);
        }
        let function = self.importer.functions[&callee];
        let mut arguments = vec![Operand::Parameter(0)];
        for (parameter, argument) in kernels::parameters(callee).into_iter().zip(value.arguments())
        {
            let mut given = self.operand(argument)?;
            if parameter.is_copied {
                let ty = self.importer.types.memory(parameter.ty, parameter.alignment);
                let ty = ty.ok_or("a copied argument of this type")?;
                let to = Type::pointer_mut(ty.clone());
                let from = self.cast(given, &pointer(), &to);
                let copy = self.builder.slot("copy", ty.clone());
                let whole = self.emit(InstKind::Load(from), ty);
                self.builder.store(copy.clone(), whole, self.span);
                given = self.cast(copy, &to, &pointer());
            }
            arguments.push(given);
        }
        let result = self.type_of(value)?;
        Ok(Some(self.emit(InstKind::Call { function, arguments }, result)))
    }

    fn foreign_call(&mut self, value: Value<'m>, symbol: &str) -> Step<Option<Operand>> {
        if let Some(function) = symbols::runtime_function(symbol) {
            let declaration = DeviceRuntimeAbi::Public.declaration(function);
            let mut arguments = vec![];
            for (argument, wanted) in value.arguments().into_iter().zip(&declaration.parameters) {
                arguments.push(self.runtime_argument(argument, wanted)?);
            }
            let given = declaration.result.clone();
            let created = (function == RuntimeFunction::StreamCreate)
                .then(|| self.separate_handle(&mut arguments));
            let function = self.importer.device_function(declaration);
            let result = self.emit(InstKind::CallExtern { function, arguments }, given.clone());
            if let Some((slot, address)) = created {
                let handle = self.emit(InstKind::Load(slot), Type::Stream);
                self.builder.store(address, handle, self.span);
            }
            let wanted = self.type_of(value)?;
            return Ok(Some(self.cast(result, &given, &wanted)));
        }
        if symbol == "vprintf" {
            return self.vprintf(value).map(Some);
        }
        match symbol {
            "malloc" => return self.heap(value, Builtin::Malloc, &Type::U64, &pointer()),
            "free" => return self.heap(value, Builtin::Free, &pointer(), &Type::Unit),
            _ => {}
        }
        match self.composed(value, symbol)? {
            Some(Composed::Value(result)) => return Ok(Some(result)),
            Some(Composed::Nothing) => return Ok(None),
            None => {}
        }
        let builtin = symbol.strip_prefix("__nv_").and_then(math).map(Builtin::Math);
        let builtin = builtin.ok_or_else(|| format!("a call of `{symbol}`"))?;
        self.builtin_of(value, builtin).map(Some)
    }

    /// A function of the heap, where some compilers write pointers as numbers.
    fn heap(
        &mut self,
        value: Value<'m>,
        builtin: Builtin,
        takes: &Type,
        gives: &Type,
    ) -> Step<Option<Operand>> {
        let (argument, wanted) = (value.operand(0), self.type_of(value)?);
        let (given, operand) = (self.type_of(argument)?, self.operand(argument)?);
        let operand = self.cast(operand, &given, takes);
        let result = self.builtin(builtin, vec![operand], gives);
        Ok(Some(self.cast(result, gives, &wanted)))
    }

    /// Makes the device runtime write a stream's handle to a slot of its own, because the checker sees only stores of the program. Gives
    /// the slot, and the address that the program wants the handle at. The CPU device always has a stream.
    fn separate_handle(&mut self, arguments: &mut [Operand]) -> (Operand, Operand) {
        let slot = self.builder.slot("handle", Type::Stream);
        let address = std::mem::replace(&mut arguments[0], slot.clone());
        (slot, address)
    }

    /// A built-in with the arguments and the type of a call.
    pub(super) fn builtin_of(&mut self, value: Value<'m>, builtin: Builtin) -> Step<Operand> {
        let ty = self.type_of(value)?;
        if ty.as_scalar().is_none() && !ty.is_pointer() && ty != Type::Unit {
            return Err("a function of each element of a vector".into());
        }
        let arguments = value.arguments().into_iter().map(|argument| self.operand(argument));
        let arguments = arguments.collect::<Step<Vec<Operand>>>()?;
        Ok(self.builtin(builtin, arguments, &ty))
    }

    /// An argument of the device runtime: a `dim3` may be passed as the address of a copy, a stream as a number.
    fn runtime_argument(&mut self, argument: Value<'m>, wanted: &Type) -> Step<Operand> {
        if argument.kind() == Kind::Function {
            return super::kernel_address(self.importer, argument);
        }
        let given = self.type_of(argument)?;
        let operand = self.operand(argument)?;
        if *wanted == Type::DIM3 && given != Type::DIM3 {
            let (address, ty) = if given.is_pointer() {
                (operand, given)
            } else {
                // Another struct or array of the same size.
                let slot = self.builder.slot("dim3", given.clone());
                self.builder.store(slot.clone(), operand, self.span);
                (slot, Type::pointer_mut(given))
            };
            let address = self.cast(address, &ty, &Type::pointer_mut(Type::DIM3));
            return Ok(self.emit(InstKind::Load(address), Type::DIM3));
        }
        if *wanted == Type::Stream {
            let number = self.cast(operand, &given, &Type::U64);
            return Ok(self.emit(InstKind::Cast(number), Type::Stream));
        }
        if given.is_pointer() && wanted.is_pointer() {
            return Ok(self.emit(InstKind::Cast(operand), wanted.clone()));
        }
        Ok(self.cast(operand, &given, wanted))
    }
}

/// The function of libdevice with a name, without `__nv_`; functions of `float` end in `f`.
pub(super) fn math(name: &str) -> Option<MathOp> {
    let renamed = match name {
        "fabs" | "fabsf" => "abs",
        "fmin" | "fminf" => "min",
        "fmax" | "fmaxf" => "max",
        "erf" => "erf",
        _ => name,
    };
    let known = |wanted: &str| {
        MathOp::all().find(|(_, name, _)| *name == wanted).map(|(operation, ..)| operation)
    };
    known(renamed).or_else(|| known(renamed.strip_suffix('f')?))
}
