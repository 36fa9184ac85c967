//! Types, as LLVM 7 spells them.

use std::collections::{BTreeMap, HashMap};

use super::llvm::{Shape, Type};
use super::names::{Names, spell};
use super::refusal::{Written, refuse};

/// The pointee of pointers without a known type.
pub(super) const ERASED: &str = "i8";

/// The structure types of a module, in the order in which the text first names them.
#[derive(Default)]
pub(super) struct Types<'m> {
    names: Names,
    named: HashMap<Type<'m>, String>,
    definitions: Vec<String>,
    /// The structures named by hints, with the index of their definition.
    hinted: BTreeMap<String, usize>,
}

impl<'m> Types<'m> {
    /// The definitions of the structure types in the text, one per line.
    pub(super) fn definitions(&self) -> &[String] {
        &self.definitions
    }

    /// `ty` with its pointers erased to `i8*`.
    pub(super) fn text(&mut self, ty: Type<'m>) -> Written<String> {
        Ok(match ty.shape() {
            Shape::Void => "void".to_owned(),
            Shape::Half => "half".to_owned(),
            Shape::Float => "float".to_owned(),
            Shape::Double => "double".to_owned(),
            Shape::Int(width) => format!("i{width}"),
            Shape::Pointer(_) => self.pointer(ty, ERASED)?,
            Shape::Array(element, count) => format!("[{count} x {}]", self.text(element)?),
            Shape::Vector(element, count) => format!("<{count} x {}>", self.text(element)?),
            Shape::Struct => return self.structure(ty),
            Shape::Metadata => {
                return refuse(
                    "LLVM 7 text for NVPTX cannot contain metadata as a value",
                    "remove it",
                );
            }
            Shape::Function => {
                return refuse("a function type is used as a value's type", "use a pointer to it");
            }
            Shape::Foreign(text) if text == "bfloat" => {
                return refuse(
                    "LLVM 7 has no type `bfloat`",
                    "carry the bits as `i16` and compute in `float`",
                );
            }
            Shape::Foreign(text) => {
                return refuse(
                    format!("LLVM 7 for NVPTX has no type `{text}`"),
                    "use integers, floats, pointers, fixed vectors, arrays or structures",
                );
            }
        })
    }

    /// A pointer to `pointee`, or vector of pointers, with the address space and length of `ty`.
    pub(super) fn pointer(&mut self, ty: Type<'m>, pointee: &str) -> Written<String> {
        match ty.shape() {
            Shape::Pointer(0) => Ok(format!("{pointee}*")),
            Shape::Pointer(space @ (1 | 3 | 4 | 5)) => Ok(format!("{pointee} addrspace({space})*")),
            Shape::Pointer(space) => refuse(
                format!("libNVVM's legacy dialect has no address space {space}"),
                "use generic (0), global (1), shared (3), constant (4) or local (5) pointers",
            ),
            Shape::Vector(element, count) => {
                Ok(format!("<{count} x {}>", self.pointer(element, pointee)?))
            }
            _ => refuse("a pointer was expected here", "report this module: the writer misread it"),
        }
    }

    fn structure(&mut self, ty: Type<'m>) -> Written<String> {
        if ty.is_literal() {
            return self.body(ty);
        }
        if let Some(spelled) = self.named.get(&ty) {
            return Ok(spelled.clone());
        }
        let base = ty.struct_name().unwrap_or_else(|| "struct.anonymous".to_owned());
        let (spelled, place) = match self.hinted.get(&base) {
            Some(&place) => (spell('%', base.as_bytes()), place),
            None => {
                // Reserve the index before writing the fields, so that a structure precedes its
                // parts.
                self.definitions.push(String::new());
                (spell('%', self.names.fresh(&base).as_bytes()), self.definitions.len() - 1)
            }
        };
        self.named.insert(ty, spelled.clone());
        let body = if ty.is_opaque() { "opaque".to_owned() } else { self.body(ty)? };
        self.definitions[place] = format!("{spelled} = type {body}");
        Ok(spelled)
    }

    fn body(&mut self, ty: Type<'m>) -> Written<String> {
        let fields: Vec<String> =
            ty.fields().into_iter().map(|field| self.text(field)).collect::<Written<_>>()?;
        let inner = if fields.is_empty() {
            "{}".to_owned()
        } else {
            format!("{{ {} }}", fields.join(", "))
        };
        Ok(if ty.is_packed() { format!("<{inner}>") } else { inner })
    }

    /// The structure that a hint names: `%struct.CUstream_st`. It is opaque unless the module
    /// defines a structure of that name.
    pub(super) fn hinted(&mut self, name: &str) -> String {
        let spelled = spell('%', name.as_bytes());
        let known = self.named.values().any(|named| *named == spelled);
        if !known && !self.hinted.contains_key(name) {
            self.names.take(name.as_bytes());
            self.hinted.insert(name.to_owned(), self.definitions.len());
            self.definitions.push(format!("{spelled} = type opaque"));
        }
        spelled
    }

    /// The type that a `getelementptr` on `source` points to: `indices` are all but the first, each
    /// with its value if it is constant.
    pub(super) fn indexed(&mut self, source: Type<'m>, indices: &[Option<u64>]) -> Written<String> {
        let mut ty = source;
        for index in indices {
            ty = match (ty.shape(), index) {
                (Shape::Array(element, _) | Shape::Vector(element, _), _) => element,
                (Shape::Struct, &Some(field)) => match usize::try_from(field)
                    .ok()
                    .and_then(|at| ty.fields().get(at).copied())
                {
                    Some(field) => field,
                    None => return refuse("the structure has no such field", "correct the index"),
                },
                _ => return refuse("the index does not fit the type", "correct the index"),
            };
        }
        self.text(ty)
    }
}

/// The mangled type in an intrinsic's name: `i32`, `f64`, `v2f32`, `p3i8`.
pub(super) fn mangled(ty: Type<'_>) -> Written<String> {
    Ok(match ty.shape() {
        Shape::Half => "f16".to_owned(),
        Shape::Float => "f32".to_owned(),
        Shape::Double => "f64".to_owned(),
        Shape::Int(width) => format!("i{width}"),
        Shape::Pointer(space) => format!("p{space}i8"),
        Shape::Vector(element, count) => format!("v{count}{}", mangled(element)?),
        _ => {
            return refuse(
                format!("no intrinsic of LLVM 7 is overloaded on `{}`", ty.print()),
                "use a scalar or vector type",
            );
        }
    })
}
