//! Sizes, alignments and types: LLVM's for nvptx64, and Gridlet's types with the same layout.

use std::collections::HashMap;

use gridlet_lang::layout::type_layout;
use gridlet_lang::types::{Field, Scalar, Struct, Structs, Type};

use super::pointees::Pointee;
use crate::nvvm::legacy::llvm::{Shape, Type as LlvmType, Value};

/// The size and the alignment of an LLVM type in memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) size: u64,
    pub(super) alignment: u64,
}

/// The extent of a type in libNVVM's data layout ([`crate::codegen::DATA_LAYOUT`]); `None` for types without one.
pub(super) fn extent(ty: LlvmType<'_>) -> Option<Extent> {
    let natural = |size: u64| Some(Extent { size, alignment: size });
    match ty.shape() {
        Shape::Half => natural(2),
        Shape::Float => natural(4),
        Shape::Double | Shape::Pointer(_) => natural(8),
        Shape::Int(width @ 1..=128) => natural(u64::from(width.div_ceil(8)).next_power_of_two()),
        Shape::Foreign(name) if name == "bfloat" => natural(2),
        Shape::Array(element, count) => {
            let element = extent(element)?;
            Some(Extent { size: element.size.checked_mul(count)?, ..element })
        }
        Shape::Vector(element, count) => {
            let bits = match element.shape() {
                Shape::Int(width) => u64::from(width),
                _ => extent(element)?.size * 8,
            };
            natural((bits * u64::from(count)).div_ceil(8).next_power_of_two())
        }
        Shape::Struct if !ty.is_opaque() => {
            let mut whole = Extent { size: 0, alignment: 1 };
            for field in ty.fields() {
                let mut field = extent(field)?;
                if ty.is_packed() {
                    field.alignment = 1;
                }
                whole.size = whole.size.next_multiple_of(field.alignment) + field.size;
                whole.alignment = whole.alignment.max(field.alignment);
            }
            whole.size = whole.size.next_multiple_of(whole.alignment);
            Some(whole)
        }
        _ => None,
    }
}

/// The offset of a field of a struct type, in bytes.
pub(super) fn field_offset(ty: LlvmType<'_>, index: usize) -> Option<u64> {
    let mut end = 0_u64;
    for (at, field) in ty.fields().into_iter().enumerate() {
        let field = extent(field)?;
        end = end.next_multiple_of(if ty.is_packed() { 1 } else { field.alignment });
        if at == index {
            return Some(end);
        }
        end += field.size;
    }
    None
}

/// Whether a byte of a type in memory belongs to none of its numbers.
pub(super) fn is_padding(ty: LlvmType<'_>, at: u64) -> bool {
    match ty.shape() {
        Shape::Struct => {
            let mut end = 0_u64;
            for field in ty.fields() {
                let Some(known) = extent(field) else { return false };
                let start = end.next_multiple_of(if ty.is_packed() { 1 } else { known.alignment });
                end = start + known.size;
                if (start..end).contains(&at) {
                    return is_padding(field, at - start);
                }
            }
            true
        }
        Shape::Array(element, _) => extent(element)
            .filter(|known| known.size > 0)
            .is_some_and(|known| is_padding(element, at % known.size)),
        Shape::Vector(element, count) => match element.shape() {
            Shape::Int(width) => at * 8 >= u64::from(width) * u64::from(count),
            _ => extent(element).is_some_and(|known| at >= known.size * u64::from(count)),
        },
        _ => false,
    }
}

/// Part of an offset: bytes, or a number of elements of so many bytes.
pub(super) enum Offset<'m> {
    Bytes(i64),
    Elements(Value<'m>, u64),
}

/// The parts of the offset that a `getelementptr`, instruction or constant, adds to its base.
pub(super) fn offsets<'m>(value: Value<'m>) -> Option<Vec<Offset<'m>>> {
    let mut ty: LlvmType<'m> = value.gep_source();
    let mut parts = vec![];
    for (at, index) in value.operands().into_iter().skip(1).enumerate() {
        let element = match ty.shape() {
            _ if at == 0 => ty,
            Shape::Struct => {
                let index = usize::try_from(index.unsigned()?).ok()?;
                parts.push(Offset::Bytes(i64::try_from(field_offset(ty, index)?).ok()?));
                ty = *ty.fields().get(index)?;
                continue;
            }
            Shape::Array(element, _) | Shape::Vector(element, _) => element,
            _ => return None,
        };
        let size = extent(element)?;
        let stride = size.size.next_multiple_of(size.alignment);
        parts.push(match index.int() {
            Some(index) => Offset::Bytes(index.checked_mul(i64::try_from(stride).ok()?)?),
            None => Offset::Elements(index, stride),
        });
        ty = element;
    }
    Some(parts)
}

/// Gridlet's types for LLVM's.
#[derive(Default)]
pub(super) struct Types<'m> {
    pub(super) structs: Structs,
    known: HashMap<LlvmType<'m>, Option<Type>>,
    /// By parameter, what is found of the pointers among them.
    pub(super) pointees: HashMap<Value<'m>, Pointee>,
}

/// A pointer to bytes: the type of every pointer in a register.
pub(super) fn pointer() -> Type {
    Type::pointer_mut(Type::Scalar(Scalar::U8))
}

impl<'m> Types<'m> {
    /// The type of a value in a register, whose layout is LLVM's; integers are unsigned. `None` if Gridlet has no such
    /// type.
    pub(super) fn value(&mut self, ty: LlvmType<'m>) -> Option<Type> {
        if let Some(known) = self.known.get(&ty) {
            return known.clone();
        }
        let found = self.find(ty);
        self.known.insert(ty, found.clone());
        found
    }

    fn find(&mut self, ty: LlvmType<'m>) -> Option<Type> {
        let scalar = |scalar| Some(Type::Scalar(scalar));
        let found = match ty.shape() {
            Shape::Void => return Some(Type::Unit),
            Shape::Half => scalar(Scalar::F16),
            Shape::Float => scalar(Scalar::F32),
            Shape::Double => scalar(Scalar::F64),
            Shape::Foreign(name) if name == "bfloat" => scalar(Scalar::Bf16),
            Shape::Pointer(_) => Some(pointer()),
            Shape::Int(1) => scalar(Scalar::Bool),
            Shape::Int(8) => scalar(Scalar::U8),
            Shape::Int(16) => scalar(Scalar::U16),
            Shape::Int(32) => scalar(Scalar::U32),
            Shape::Int(64) => scalar(Scalar::U64),
            Shape::Vector(element, count @ 2..=4) => {
                let element = self.value(element)?.as_scalar()?;
                Some(Type::Vector(element, count as u8)).filter(|_| element != Scalar::Bool)
            }
            Shape::Array(element, count) => {
                Some(Type::Array(Box::new(self.value(element)?), count))
            }
            Shape::Struct if !ty.is_packed() && !ty.is_opaque() => {
                let fields = ty.fields();
                let types = fields.iter().map(|field| self.value(*field));
                let types: Vec<Type> = types.collect::<Option<_>>()?;
                if types == [Type::U32, Type::U32, Type::U32] {
                    return Some(Type::DIM3);
                }
                let number = self.structs.len();
                let name = ty.struct_name().unwrap_or_else(|| format!("struct{number}"));
                let field = |(at, ty)| Field { name: format!("f{at}"), ty };
                let fields = types.into_iter().enumerate().map(field).collect();
                Some(Type::Struct(self.structs.add(Struct { name, fields, span: None })))
            }
            _ => None,
        }?;
        self.has_extent(&found, extent(ty)?).then_some(found)
    }

    fn has_extent(&self, ty: &Type, extent: Extent) -> bool {
        let layout = type_layout(ty, &self.structs);
        (layout.size, layout.alignment) == (extent.size, extent.alignment)
    }

    /// A type with that size and alignment for a type in memory: its own, or an array of words.
    pub(super) fn memory(&mut self, ty: LlvmType<'m>, alignment: Option<u64>) -> Option<Type> {
        let mut wanted = extent(ty)?;
        wanted.alignment = alignment.unwrap_or(wanted.alignment);
        let own = self.value(ty).filter(|own| self.has_extent(own, wanted));
        own.or_else(|| bytes(wanted))
    }
}

/// An array with that size and alignment. Its size is rounded up to the alignment.
pub(super) fn bytes(extent: Extent) -> Option<Type> {
    let word = match extent.alignment {
        0 | 1 => Type::Scalar(Scalar::U8),
        2 => Type::Scalar(Scalar::U16),
        4 => Type::U32,
        8 => Type::U64,
        16 => Type::Vector(Scalar::U32, 4),
        _ => return None,
    };
    Some(Type::Array(Box::new(word), extent.size.div_ceil(extent.alignment.max(1))))
}
