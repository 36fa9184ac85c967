//! Names, sizes and alignments of the manifest's types.

use std::fmt;

use crate::manifest::{Manifest, Struct, Type};

/// A scalar type of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarType {
    /// One byte, 0 or 1.
    Bool,
    /// 8 bits, signed.
    I8,
    /// 16 bits, signed.
    I16,
    /// 32 bits, signed.
    I32,
    /// 64 bits, signed.
    I64,
    /// 8 bits.
    U8,
    /// 16 bits.
    U16,
    /// 32 bits.
    U32,
    /// 64 bits.
    U64,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl ScalarType {
    /// All scalar types, in the language reference's order.
    pub const ALL: [ScalarType; 13] = [
        ScalarType::Bool,
        ScalarType::I8,
        ScalarType::I16,
        ScalarType::I32,
        ScalarType::I64,
        ScalarType::U8,
        ScalarType::U16,
        ScalarType::U32,
        ScalarType::U64,
        ScalarType::F16,
        ScalarType::Bf16,
        ScalarType::F32,
        ScalarType::F64,
    ];

    /// Looks up a scalar type by name; `None` if the language has no such type.
    pub fn from_name(name: &str) -> Option<ScalarType> {
        ScalarType::ALL.into_iter().find(|scalar| scalar.name() == name)
    }

    /// Name in the language and in manifests.
    pub const fn name(self) -> &'static str {
        match self {
            ScalarType::Bool => "bool",
            ScalarType::I8 => "i8",
            ScalarType::I16 => "i16",
            ScalarType::I32 => "i32",
            ScalarType::I64 => "i64",
            ScalarType::U8 => "u8",
            ScalarType::U16 => "u16",
            ScalarType::U32 => "u32",
            ScalarType::U64 => "u64",
            ScalarType::F16 => "f16",
            ScalarType::Bf16 => "bf16",
            ScalarType::F32 => "f32",
            ScalarType::F64 => "f64",
        }
    }

    /// Size in bytes, which is also the alignment.
    pub const fn size(self) -> u64 {
        match self {
            ScalarType::Bool | ScalarType::I8 | ScalarType::U8 => 1,
            ScalarType::I16 | ScalarType::U16 | ScalarType::F16 | ScalarType::Bf16 => 2,
            ScalarType::I32 | ScalarType::U32 | ScalarType::F32 => 4,
            ScalarType::I64 | ScalarType::U64 | ScalarType::F64 => 8,
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Spelled as in the language: `*mut f32`, `f32x2`, `[u8; 4]`, `View`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Scalar(name) | Type::Struct(name) => f.write_str(name),
            Type::Vector { element, count } => write!(f, "{element}x{count}"),
            Type::Array { element, count } => write!(f, "[{element}; {count}]"),
            Type::Pointer { mutable: true, to } => write!(f, "*mut {to}"),
            Type::Pointer { mutable: false, to } => write!(f, "*const {to}"),
            Type::Stream => f.write_str("stream"),
        }
    }
}

/// Size and alignment of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub alignment: u64,
}

/// Size and alignment of a type.
///
/// The compiler's layout pass lays out structs; this function reads struct layouts from the manifest and computes the
/// rest. Vectors of 2 and 4 elements align to their size, up to 16 bytes; vectors of 3 align to their element (CUDA
/// C++ Programming Guide, Built-in Vector Types).
///
/// # Errors
/// Names the unknown or impossible part of the type.
pub fn extent(ty: &Type, structs: &[Struct]) -> Result<Extent, String> {
    match ty {
        Type::Scalar(name) => {
            let size = scalar(name)?.size();
            Ok(Extent { size, alignment: size })
        }
        Type::Vector { element, count } => {
            let element = scalar(element)?.size();
            let size = element * u64::from(*count);
            match count {
                2 | 4 => Ok(Extent { size, alignment: size.min(16) }),
                3 => Ok(Extent { size, alignment: element }),
                _ => Err(format!("a vector of {count} elements")),
            }
        }
        Type::Array { element, count } => {
            let element = extent(element, structs)?;
            let size =
                element.size.checked_mul(*count).ok_or_else(|| format!("the size of `{ty}`"))?;
            Ok(Extent { size, alignment: element.alignment })
        }
        Type::Struct(name) => structs
            .iter()
            .find(|s| s.name == *name)
            .map(|s| Extent { size: s.size, alignment: s.alignment })
            .ok_or_else(|| format!("the struct `{name}`")),
        Type::Pointer { .. } | Type::Stream => Ok(Extent { size: 8, alignment: 8 }),
    }
}

impl Manifest {
    /// Size in bytes of a value of this type, and the stride of an array of it; `None` if the type names an unknown
    /// scalar or struct.
    pub fn size_of(&self, ty: &Type) -> Option<u64> {
        extent(ty, &self.structs).ok().map(|extent| extent.size)
    }
}

fn scalar(name: &str) -> Result<ScalarType, String> {
    ScalarType::from_name(name).ok_or_else(|| format!("the scalar type `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(element: &str, count: u32) -> Type {
        Type::Vector { element: element.into(), count }
    }

    #[test]
    fn extents_follow_cudas_vector_rules() {
        let cases = [
            (Type::Scalar("bool".into()), 1, 1),
            (vector("f32", 2), 8, 8),
            (vector("f32", 3), 12, 4),
            (vector("f32", 4), 16, 16),
            (vector("f64", 4), 32, 16),
            (vector("u8", 4), 4, 4),
            (Type::Array { element: Box::new(vector("u8", 3)), count: 5 }, 15, 1),
            (Type::Stream, 8, 8),
        ];
        for (ty, size, alignment) in cases {
            assert_eq!(extent(&ty, &[]), Ok(Extent { size, alignment }), "{ty}");
        }
    }

    #[test]
    fn unknown_parts_are_named() {
        assert_eq!(extent(&Type::Scalar("u128".into()), &[]), Err("the scalar type `u128`".into()));
        assert_eq!(extent(&Type::Struct("S".into()), &[]), Err("the struct `S`".into()));
        assert_eq!(extent(&vector("f32", 5), &[]), Err("a vector of 5 elements".into()));
        let huge = Type::Array { element: Box::new(Type::Stream), count: u64::MAX };
        assert!(extent(&huge, &[]).is_err());
    }

    #[test]
    fn scalar_names_round_trip() {
        for scalar in ScalarType::ALL {
            assert_eq!(ScalarType::from_name(scalar.name()), Some(scalar));
        }
    }
}
