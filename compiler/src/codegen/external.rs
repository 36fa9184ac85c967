//! Calls of `extern fn`, with the convention of [`gridlet_lang::check`]'s `externs`: that of an
//! `extern "C" __device__` function in CUDA C++, and of C on the CPU. [`super::c_abi`] decides how
//! structs and vectors are passed; this file turns the decision into LLVM types and attributes.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, BasicValueEnum, FunctionValue, PointerValue};

use super::bug;
use super::c_abi::{Convention, MAX_CUDA_ARRAY_BYTES, Passing, Register, Signature, is_aggregate};
use super::context::ModuleContext;
use super::function::{FunctionEmitter, set_alignment};
use super::values::result;
use crate::error::{Error, Result};
use gridlet_lang::ir::Extern;
use gridlet_lang::types::{Scalar, Type};

/// Bytes of a CPU register. Copies are padded to whole registers, so that each register can be read
/// in one load.
const CPU_REGISTER_BYTES: u32 = 8;

impl<'ctx> ModuleContext<'ctx, '_> {
    /// Declares an `extern fn`.
    pub(super) fn declare_external(&self, item: &Extern) -> Result<FunctionValue<'ctx>> {
        let signature = self.signature(item)?;
        let mut parameters = vec![];
        if signature.result == Passing::Memory {
            parameters.push(self.pointer_type().into());
        }
        for (passing, ty) in signature.parameters.iter().zip(&item.parameters) {
            match passing {
                Passing::Itself => parameters.push(self.value_type(ty)?),
                Passing::Pieces(pieces) => {
                    for (_, register) in pieces {
                        parameters.push(self.register_type(*register)?);
                    }
                }
                Passing::Array { element, count, .. } => {
                    parameters.push(self.array_type(*element, *count)?);
                }
                Passing::Memory | Passing::Address => parameters.push(self.pointer_type().into()),
            }
        }
        let result = self.returned_type(&signature.result, &item.result)?;
        let value = self.add_function(&item.name, self.function_type(result, &parameters))?;
        for (place, attribute) in self.external_attributes(item, &signature)? {
            value.add_attribute(place, attribute);
        }
        Ok(value)
    }

    /// The calling sequence of an `extern fn` on this target.
    fn signature(&self, item: &Extern) -> Result<Signature> {
        let is_aggregate = |ty: &Type| is_aggregate(ty);
        let has_aggregate = is_aggregate(&item.result) || item.parameters.iter().any(is_aggregate);
        let convention = match self.cpu() {
            None => Convention::Cuda,
            // Without structs, all conventions are the same in LLVM.
            Some(_) if !has_aggregate => Convention::SystemV,
            Some(_) => {
                let triple = self.module.get_triple();
                let triple = triple.as_str().to_string_lossy();
                Convention::of_c(&triple).ok_or_else(|| {
                    Error::Invalid(format!(
                        "`{}` takes or returns a struct or a vector, and Gridlet does not know how C passes those for \
                         the CPU device on {triple}; pass a pointer to it",
                        item.name
                    ))
                })?
            }
        };
        let bytes = self.size(&item.result);
        if convention == Convention::Cuda && bytes > MAX_CUDA_ARRAY_BYTES {
            return Err(Error::Invalid(format!(
                "`{}` returns {bytes} bytes, but a GPU function can return at most {MAX_CUDA_ARRAY_BYTES}; let it \
                 write through a pointer parameter",
                item.name
            )));
        }
        Ok(convention.signature(&item.parameters, &item.result, &self.ir.structs))
    }

    fn register_type(&self, register: Register) -> Result<BasicTypeEnum<'ctx>> {
        let float = |scalar| match scalar {
            Scalar::F16 => self.context.f16_type(),
            Scalar::Bf16 => self.context.bf16_type(),
            other => self.float_type(other),
        };
        Ok(match register {
            Register::Int(bits) => {
                let bits = std::num::NonZeroU32::new(bits).ok_or_else(|| bug("no bits"))?;
                self.context.custom_width_int_type(bits).map_err(bug)?.into()
            }
            Register::Pointer => self.pointer_type().into(),
            Register::Float(scalar) => float(scalar).into(),
            Register::Floats(scalar, count) => float(scalar).vec_type(count).into(),
        })
    }

    fn array_type(&self, element: Register, count: u32) -> Result<BasicTypeEnum<'ctx>> {
        Ok(match self.register_type(element)? {
            BasicTypeEnum::IntType(element) => element.array_type(count).into(),
            BasicTypeEnum::FloatType(element) => element.array_type(count).into(),
            other => return Err(bug(format!("an array of {other}"))),
        })
    }

    /// The LLVM type of a result; `None` if there is none or the function writes it to memory.
    fn returned_type(&self, passing: &Passing, ty: &Type) -> Result<Option<BasicTypeEnum<'ctx>>> {
        Ok(match passing {
            Passing::Itself if *ty == Type::Unit => None,
            Passing::Itself => Some(self.value_type(ty)?),
            Passing::Pieces(pieces) => match pieces.as_slice() {
                [(_, register)] => Some(self.register_type(*register)?),
                pieces => {
                    let fields = pieces.iter().map(|(_, register)| self.register_type(*register));
                    let fields = fields.collect::<Result<Vec<_>>>()?;
                    Some(self.context.struct_type(&fields, false).into())
                }
            },
            Passing::Array { element, count, .. } => Some(self.array_type(*element, *count)?),
            Passing::Memory | Passing::Address => None,
        })
    }

    /// The attributes of parameters and result, for the declaration and every call.
    fn external_attributes(
        &self,
        item: &Extern,
        signature: &Signature,
    ) -> Result<Vec<(AttributeLoc, Attribute)>> {
        let mut attributes = vec![];
        let named = |name: &str, value: u64| {
            let kind = Attribute::get_named_enum_kind_id(name);
            self.context.create_enum_attribute(kind, value)
        };
        let in_memory = |name: &str, ty: &Type| {
            let kind = Attribute::get_named_enum_kind_id(name);
            let bytes = self.bytes_type(ty)?;
            let what = self.context.create_type_attribute(kind, bytes.into());
            Ok::<_, Error>([what, named("align", u64::from(self.memory_alignment(ty)))])
        };
        let extension = |ty: &Type| match ty {
            Type::Scalar(Scalar::Bool | Scalar::U8 | Scalar::U16) => Some(named("zeroext", 0)),
            Type::Scalar(Scalar::I8 | Scalar::I16) => Some(named("signext", 0)),
            _ => None,
        };
        let mut at = 0;
        if signature.result == Passing::Memory {
            let result = in_memory("sret", &item.result)?;
            attributes.extend(result.map(|attribute| (AttributeLoc::Param(at), attribute)));
            at += 1;
        }
        let result = extension(&item.result);
        attributes.extend(result.map(|attribute| (AttributeLoc::Return, attribute)));
        for (passing, ty) in signature.parameters.iter().zip(&item.parameters) {
            let place = AttributeLoc::Param(at);
            at += match passing {
                Passing::Pieces(pieces) => pieces.len() as u32,
                _ => 1,
            };
            match passing {
                Passing::Itself => {
                    attributes.extend(extension(ty).map(|attribute| (place, attribute)));
                }
                Passing::Memory => {
                    let parameter = in_memory("byval", ty)?;
                    attributes.extend(parameter.map(|attribute| (place, attribute)));
                }
                Passing::Array { stack_alignment: Some(bytes), .. } => {
                    attributes.push((place, named("alignstack", u64::from(*bytes))));
                }
                Passing::Pieces(_) | Passing::Array { .. } | Passing::Address => {}
            }
        }
        Ok(attributes)
    }

    /// The alignment of a copy that is passed in memory or loaded into registers. Slots on a CPU's
    /// stack have 8 bytes.
    fn memory_alignment(&self, ty: &Type) -> u32 {
        let alignment = self.alignment(ty);
        if self.cpu().is_some() { alignment.max(CPU_REGISTER_BYTES) } else { alignment }
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
        let signature = self.cx.signature(item)?;
        let mut passed = Vec::with_capacity(arguments.len());
        let returned = match signature.result {
            Passing::Itself => None,
            _ => Some(self.register_copy(&item.result, "result")?),
        };
        if let (Passing::Memory, Some(to)) = (&signature.result, returned) {
            passed.push(to.into());
        }
        let parameters = signature.parameters.iter().zip(&item.parameters);
        for (value, (passing, ty)) in arguments.into_iter().zip(parameters) {
            if *passing == Passing::Itself {
                passed.push(value);
                continue;
            }
            let copy = self.register_copy(ty, "copy")?;
            self.store_part(copy, 0, value, ty)?;
            let alignment = self.cx.memory_alignment(ty);
            match passing {
                Passing::Pieces(pieces) => {
                    for (offset, register) in pieces {
                        let register = self.cx.register_type(*register)?;
                        passed.push(self.load_register(copy, *offset, register, alignment)?);
                    }
                }
                Passing::Array { element, count, .. } => {
                    let array = self.cx.array_type(*element, *count)?;
                    passed.push(self.load_register(copy, 0, array, alignment)?);
                }
                Passing::Itself | Passing::Memory | Passing::Address => passed.push(copy.into()),
            }
        }
        let call = self.emit_call(callee, &passed, name)?;
        for (place, attribute) in self.cx.external_attributes(item, &signature)? {
            call.add_attribute(place, attribute);
        }
        let Some(copy) = returned else { return Ok(call.try_as_basic_value().basic()) };
        let alignment = self.cx.memory_alignment(&item.result);
        match &signature.result {
            Passing::Pieces(pieces) if pieces.len() > 1 => {
                let BasicValueEnum::StructValue(returned) = result(call)? else {
                    return Err(bug(format!("`{}` does not return in pieces", item.name)));
                };
                for (at, (offset, _)) in (0..).zip(pieces) {
                    let piece = self.build().build_extract_value(returned, at, "")?;
                    self.store_register(copy, *offset, piece, alignment)?;
                }
            }
            Passing::Pieces(_) | Passing::Array { .. } => {
                self.store_register(copy, 0, result(call)?, alignment)?;
            }
            Passing::Itself | Passing::Memory | Passing::Address => {}
        }
        Ok(Some(self.load_part(copy, 0, &item.result, name, true)?))
    }

    /// A stack copy of a `ty`, padded to whole registers.
    fn register_copy(&self, ty: &Type, name: &str) -> Result<PointerValue<'ctx>> {
        let alignment = self.cx.memory_alignment(ty);
        let bytes = self.cx.size(ty).next_multiple_of(u64::from(alignment));
        self.temporary(bytes, alignment, name)
    }

    fn load_register(
        &self,
        from: PointerValue<'ctx>,
        offset: u64,
        ty: BasicTypeEnum<'ctx>,
        alignment: u32,
    ) -> Result<BasicValueEnum<'ctx>> {
        let address = self.offset(from, offset, "")?;
        let value = self.build().build_load(ty, address, "")?;
        if let Some(load) = value.as_instruction_value() {
            set_alignment(load, at_offset(alignment, offset))?;
        }
        Ok(value)
    }

    fn store_register(
        &self,
        to: PointerValue<'ctx>,
        offset: u64,
        value: BasicValueEnum<'ctx>,
        alignment: u32,
    ) -> Result<()> {
        let address = self.offset(to, offset, "")?;
        set_alignment(self.build().build_store(address, value)?, at_offset(alignment, offset))
    }
}

/// The alignment of an address `offset` bytes, zero or one CPU register, past an aligned one.
fn at_offset(alignment: u32, offset: u64) -> u32 {
    if offset == 0 { alignment } else { alignment.min(CPU_REGISTER_BYTES) }
}
