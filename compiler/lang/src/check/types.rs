//! Resolves types as written to [`Type`]s.

use super::Context;
use crate::diagnostics::{Diagnostic, ids};
use crate::syntax::ast;
use crate::types::nesting::{MAX_NESTING, is_too_deep};
use crate::types::{Scalar, Type};

/// The maximum number of scalars in a value. Far above the capacity of a GPU, far below any overflow of
/// sizes.
pub(super) const MAX_LEAVES: u64 = 1 << 28;

/// The built-in type with a name, except `dim3`.
pub(super) fn builtin_type(name: &str) -> Option<Type> {
    if name == "stream" {
        return Some(Type::Stream);
    }
    if let Some(scalar) = Scalar::from_name(name) {
        return Some(Type::Scalar(scalar));
    }
    let (scalar, count) = name.rsplit_once('x')?;
    let count = match count {
        "2" => 2,
        "3" => 3,
        "4" => 4,
        _ => return None,
    };
    let scalar = Scalar::from_name(scalar).filter(|scalar| *scalar != Scalar::Bool)?;
    Some(Type::Vector(scalar, count))
}

impl<'a> Context<'a> {
    /// The type as written, or `None` after an error.
    pub(super) fn resolve_type(&mut self, ty: &'a ast::TypeExpr) -> Option<Type> {
        let span = ty.span;
        match &ty.kind {
            ast::TypeExprKind::Error => None,
            ast::TypeExprKind::Name(name) => self.named_type(*name),
            ast::TypeExprKind::Pointer { mutable, pointee } => {
                let pointee = Box::new(self.resolve_type(pointee)?);
                Some(Type::Pointer { mutable: *mutable, pointee })
            }
            ast::TypeExprKind::Array(element, length) => {
                let element = self.resolve_type(element);
                let length = self.array_length(length);
                let ty = Type::Array(Box::new(element?), length?);
                // A struct that contains itself is not resolved here; it is reported at its fields.
                if self.leaves(&ty) > MAX_LEAVES {
                    self.report_size(span);
                    return None;
                }
                Some(ty)
            }
            ast::TypeExprKind::Slice(_) => {
                let message = "only `dynamic shared` memory can have a type without a length";
                let error = Diagnostic::error(ids::INVALID_TYPE, ty.span, message);
                self.report(error.hint("write a pointer, `*mut T`, or a length, `[T; 8]`"));
                None
            }
        }
    }

    pub(super) fn named_type(&mut self, name: ast::Name) -> Option<Type> {
        let text = self.text(name);
        if let Some(ty) = builtin_type(text) {
            return Some(ty);
        }
        if let Some(id) = self.struct_named(text, name.span.file) {
            return id.map(Type::Struct);
        }
        if !self.is_new(text, name.span.file, ids::UNKNOWN_TYPE) {
            return None;
        }
        self.report_unknown(text, name.span.file, |cx| {
            let message = format!("there is no type `{text}`");
            let error = Diagnostic::error(ids::UNKNOWN_TYPE, name.span, message);
            match foreign_type(text) {
                Some(own) => error.hint(format!("it is called `{own}` here")),
                None => cx.suggest(error, text, |cx| {
                    let builtin = Scalar::ALL.map(Scalar::name).into_iter().chain(["stream"]);
                    cx.struct_names().into_iter().chain(builtin).collect()
                }),
            }
        });
        None
    }

    pub(super) fn array_length(&mut self, length: &'a ast::Expr) -> Option<u64> {
        let value = self.const_integer(length)?;
        match u64::try_from(value) {
            Ok(value) if value > 0 => Some(value),
            _ => {
                let message = format!("an array cannot have {value} elements");
                self.report(Diagnostic::error(ids::ARRAY_LENGTH, length.span, message));
                None
            }
        }
    }

    pub(super) fn report_size(&mut self, span: crate::source::Span) {
        let message = format!("this type has more than {MAX_LEAVES} elements");
        self.report(Diagnostic::error(ids::TYPE_TOO_LARGE, span, message));
    }

    /// Reports the type of an expression that nests too deep.
    pub(super) fn check_nesting(&mut self, ty: &Type, span: crate::source::Span) -> Option<()> {
        if is_too_deep(ty) {
            let message = format!("the type of this is nested over {MAX_NESTING} levels deep");
            self.report(Diagnostic::error(ids::NESTING_TOO_DEEP, span, message));
            return None;
        }
        Some(())
    }

    /// The number of scalars (or pointers) in a value. Unresolved structs count as none.
    pub(super) fn leaves(&self, ty: &Type) -> u64 {
        let mut factor: u64 = 1;
        let mut ty = ty;
        while let Type::Array(element, length) = ty {
            factor = factor.saturating_mul(*length);
            ty = element;
        }
        let inner = match ty {
            Type::Struct(id) => self.struct_items[id.0 as usize].leaves,
            Type::Vector(_, count) => u64::from(*count),
            _ => 1,
        };
        factor.saturating_mul(inner)
    }
}

/// The Gridlet name of a type that other languages call `name`.
pub(super) fn foreign_type(name: &str) -> Option<&'static str> {
    Some(match name {
        "int" => "i32",
        "unsigned" | "uint" => "u32",
        "long" | "isize" => "i64",
        "usize" | "size_t" => "u64",
        "short" => "i16",
        "char" => "i8",
        "float" => "f32",
        "double" => "f64",
        "half" => "f16",
        "float2" => "f32x2",
        "float3" => "f32x3",
        "float4" => "f32x4",
        "int2" => "i32x2",
        "int3" => "i32x3",
        "int4" => "i32x4",
        "uint2" => "u32x2",
        "uint3" => "u32x3",
        "uint4" => "u32x4",
        "double2" => "f64x2",
        "double3" => "f64x3",
        "double4" => "f64x4",
        "char2" => "i8x2",
        "char3" => "i8x3",
        "char4" => "i8x4",
        "uchar2" => "u8x2",
        "uchar3" => "u8x3",
        "uchar4" => "u8x4",
        "short2" => "i16x2",
        "short4" => "i16x4",
        "ushort2" => "u16x2",
        "ushort4" => "u16x4",
        "longlong2" => "i64x2",
        "ulonglong2" => "u64x2",
        "half2" | "__half2" => "f16x2",
        "__half" => "f16",
        "__nv_bfloat16" => "bf16",
        "__nv_bfloat162" => "bf16x2",
        "int8_t" => "i8",
        "int16_t" => "i16",
        "int32_t" => "i32",
        "int64_t" => "i64",
        "uint8_t" => "u8",
        "uint16_t" => "u16",
        "uint32_t" => "u32",
        "uint64_t" => "u64",
        "cudaStream_t" => "stream",
        _ => return None,
    })
}
