//! LLVM types for the language's types.

use inkwell::AddressSpace;
use inkwell::types::{BasicType, BasicTypeEnum, FloatType, IntType, PointerType, StructType};

use super::bug;
use super::context::ModuleContext;
use crate::error::{Error, Result};
use gridlet_lang::layout;
use gridlet_lang::types::{Scalar, StructId, Type};

/// Maximum number of leaves (scalars, pointers, vectors) of a value that is carried in registers.
/// Each leaf costs one instruction per load and store.
pub(super) const MAX_LEAVES: u64 = 64;

/// How values of a type are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    /// In registers.
    Registers,
    /// As a pointer to an immutable copy.
    Memory,
    /// A null pointer stands for a value without bytes. NVPTX cannot pass an empty type.
    Nothing,
}

impl<'ctx> ModuleContext<'ctx, '_> {
    /// The generic pointer.
    pub(super) fn pointer_type(&self) -> PointerType<'ctx> {
        self.context.ptr_type(AddressSpace::default())
    }

    /// The integer type of `bits`, one of 1, 8, 16, 32, 64 and 128.
    pub(super) fn int_type(&self, bits: u32) -> IntType<'ctx> {
        match bits {
            1 => self.context.bool_type(),
            8 => self.context.i8_type(),
            16 => self.context.i16_type(),
            32 => self.context.i32_type(),
            128 => self.context.i128_type(),
            _ => self.context.i64_type(),
        }
    }

    /// Whether values of a float type are carried as their bits, in an `i16`: both narrow types
    /// are. LLVM 7 has no `bfloat`; libNVVM loses a `half` that a function returns, and at `-O 0`
    /// it lacks some operations on vectors of `half`.
    pub(super) fn is_bits(&self, scalar: Scalar) -> bool {
        matches!(scalar, Scalar::F16 | Scalar::Bf16)
    }

    /// Whether the target computes with a narrow float directly, as a `half`. The x86-64 baseline
    /// converts `half` through LLVM's run-time library, which an image must not depend on.
    pub(super) fn has_half(&self, scalar: Scalar) -> bool {
        scalar == Scalar::F16 && self.cpu().is_none()
    }

    /// The floating-point type for `f32`, `f64`, or for `f16` where the target supports it.
    pub(super) fn float_type(&self, scalar: Scalar) -> FloatType<'ctx> {
        match scalar {
            Scalar::F16 => self.context.f16_type(),
            Scalar::F64 => self.context.f64_type(),
            _ => self.context.f32_type(),
        }
    }

    /// How values of `ty` are carried.
    pub(super) fn carrier(&self, ty: &Type) -> Carrier {
        match self.leaves(ty) {
            0 => Carrier::Nothing,
            1..=MAX_LEAVES => Carrier::Registers,
            _ => Carrier::Memory,
        }
    }

    /// The number of leaves of a type.
    fn leaves(&self, ty: &Type) -> u64 {
        match ty {
            Type::Unit => 0,
            Type::Scalar(_) | Type::Vector(..) | Type::Pointer { .. } | Type::Stream => 1,
            Type::Array(element, count) => self.leaves(element).saturating_mul(*count),
            Type::Struct(id) => {
                let fields = &self.ir.structs.get(*id).fields;
                fields.iter().fold(0, |sum: u64, field| sum.saturating_add(self.leaves(&field.ty)))
            }
        }
    }

    /// The type of a scalar in registers.
    pub(super) fn scalar_type(&self, scalar: Scalar) -> BasicTypeEnum<'ctx> {
        match scalar.is_float() && !self.is_bits(scalar) {
            true => self.float_type(scalar).into(),
            false => self.int_type(scalar.bits()).into(),
        }
    }

    /// The type of a value in registers.
    pub(super) fn value_type(&self, ty: &Type) -> Result<BasicTypeEnum<'ctx>> {
        if self.carrier(ty) != Carrier::Registers {
            return Ok(self.pointer_type().into());
        }
        Ok(match ty {
            Type::Unit => return Err(bug("a value of type `()`")),
            Type::Scalar(scalar) => self.scalar_type(*scalar),
            Type::Vector(scalar, count) => match self.scalar_type(*scalar) {
                BasicTypeEnum::IntType(element) => element.vec_type(u32::from(*count)).into(),
                BasicTypeEnum::FloatType(element) => element.vec_type(u32::from(*count)).into(),
                other => return Err(bug(format!("a vector of {other}"))),
            },
            Type::Array(element, count) => {
                self.value_type(element)?.array_type(length(*count)?).into()
            }
            Type::Struct(id) => self.struct_type(*id)?.into(),
            Type::Pointer { .. } | Type::Stream => self.pointer_type().into(),
        })
    }

    /// The carrier of a struct, named `struct.<Name>`. If the context already has another struct of
    /// that name, LLVM appends a number.
    fn struct_type(&self, id: StructId) -> Result<StructType<'ctx>> {
        if let Some(known) = self.structs.borrow().get(&id) {
            return Ok(*known);
        }
        let item = self.ir.structs.get(id);
        let fields = item
            .fields
            .iter()
            .map(|field| self.value_type(&field.ty))
            .collect::<Result<Vec<_>>>()?;
        let name = format!("struct.{}", item.name);
        let ty = match self.context.get_struct_type(&name) {
            Some(known) if !known.is_opaque() && known.get_field_types() == fields => known,
            _ => {
                let new = self.context.opaque_struct_type(&name);
                new.set_body(&fields, false);
                new
            }
        };
        self.structs.borrow_mut().insert(id, ty);
        Ok(ty)
    }

    /// The type of a variable in memory, and of the steps of a `getelementptr` over such variables.
    /// Its LLVM size equals `layout`'s: scalars and pointers are themselves, `bool` is a byte, arrays
    /// have such elements, all other types are arrays of bytes. libNVVM takes a step of other than a power of
    /// two bytes for work, and unrolls a loop less.
    pub(super) fn memory_type(&self, ty: &Type) -> Result<BasicTypeEnum<'ctx>> {
        Ok(match ty {
            Type::Scalar(Scalar::Bool) => self.int_type(8).into(),
            Type::Scalar(scalar) => self.scalar_type(*scalar),
            Type::Pointer { .. } | Type::Stream => self.pointer_type().into(),
            Type::Array(element, count) => {
                self.memory_type(element)?.array_type(length(*count)?).into()
            }
            _ => self.bytes_type(ty)?.into(),
        })
    }

    /// An array of as many bytes as a value of `ty` takes in memory.
    pub(super) fn bytes_type(&self, ty: &Type) -> Result<inkwell::types::ArrayType<'ctx>> {
        Ok(self.int_type(8).array_type(length(self.size(ty))?))
    }

    /// Size in bytes.
    pub(super) fn size(&self, ty: &Type) -> u64 {
        layout::type_layout(ty, &self.ir.structs).size
    }

    /// Alignment in bytes.
    pub(super) fn alignment(&self, ty: &Type) -> u32 {
        u32::try_from(layout::type_layout(ty, &self.ir.structs).alignment).unwrap_or(1)
    }

    /// Part `index` of a struct, vector or array: its type and its offset in bytes.
    pub(super) fn part(&self, ty: &Type, index: u64) -> Result<(Type, u64)> {
        match ty {
            Type::Struct(id) => {
                let at = u32::try_from(index).unwrap_or(u32::MAX);
                let fields = &self.ir.structs.get(*id).fields;
                let field = fields.get(at as usize).ok_or_else(|| bug("a missing field"))?;
                Ok((field.ty.clone(), layout::field_offset(*id, at, &self.ir.structs)))
            }
            Type::Vector(scalar, _) => Ok((Type::Scalar(*scalar), index * scalar.size())),
            Type::Array(element, _) => Ok(((**element).clone(), index * self.size(element))),
            _ => Err(bug(format!("{} has no parts", ty.display(&self.ir.structs)))),
        }
    }

    /// The number of parts of a struct, vector or array.
    pub(super) fn part_count(&self, ty: &Type) -> u64 {
        match ty {
            Type::Struct(id) => self.ir.structs.get(*id).fields.len() as u64,
            Type::Vector(_, count) => u64::from(*count),
            Type::Array(_, count) => *count,
            _ => 0,
        }
    }
}

/// A length that LLVM's C interface can represent.
fn length(count: u64) -> Result<u32> {
    u32::try_from(count)
        .map_err(|_| Error::Invalid(format!("a variable of {count} bytes is more than 4 GiB")))
}
