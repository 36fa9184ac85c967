//! The scalars, vectors, pointers and stream handles that make up a type.

use super::layout::{array_stride, field_offset};
use super::{Structs, Type};

/// A part of a type that is loaded and stored in one piece: a scalar, vector, pointer or stream handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The first byte within the type.
    pub offset: u64,
    /// Its type. A vector is one leaf, even one of three elements.
    pub ty: Type,
    /// Field or element numbers that lead to it, outermost first; empty if the type itself is a leaf.
    pub path: Vec<u64>,
}

/// Iterator over [`Leaf`]s: see [`leaves`].
#[derive(Clone, Debug)]
pub struct Leaves<'t> {
    structs: &'t Structs,
    /// The aggregates around the next leaf, outermost first, each with its next part to visit.
    around: Vec<Around<'t>>,
    /// The type itself, if it is a leaf and has not been yielded yet.
    only: Option<&'t Type>,
}

#[derive(Clone, Debug)]
struct Around<'t> {
    ty: &'t Type,
    offset: u64,
    next: u64,
}

/// The leaves of a type in ascending order of offset, without padding. Arrays are walked lazily, element by
/// element.
pub fn leaves<'t>(ty: &'t Type, structs: &'t Structs) -> Leaves<'t> {
    match ty {
        Type::Unit => Leaves { structs, around: vec![], only: None },
        Type::Array(..) | Type::Struct(_) => {
            Leaves { structs, around: vec![Around { ty, offset: 0, next: 0 }], only: None }
        }
        _ => Leaves { structs, around: vec![], only: Some(ty) },
    }
}

/// Whether a type has any leaf. Checked first, so that an array of a billion empty structs is not walked.
fn has_leaf(ty: &Type, structs: &Structs) -> bool {
    match ty {
        Type::Unit => false,
        Type::Array(element, count) => *count > 0 && has_leaf(element, structs),
        Type::Struct(id) => {
            structs.get(*id).fields.iter().any(|field| has_leaf(&field.ty, structs))
        }
        _ => true,
    }
}

impl Iterator for Leaves<'_> {
    type Item = Leaf;

    fn next(&mut self) -> Option<Leaf> {
        if let Some(ty) = self.only.take() {
            return Some(Leaf { offset: 0, ty: ty.clone(), path: vec![] });
        }
        loop {
            let around = self.around.last_mut()?;
            let at = around.next;
            around.next += 1;
            let part = match around.ty {
                Type::Array(element, count) if at < *count && has_leaf(element, self.structs) => {
                    Some((&**element, around.offset + at * array_stride(element, self.structs)))
                }
                Type::Struct(id) => {
                    let fields = &self.structs.get(*id).fields;
                    let index = u32::try_from(at).unwrap_or(u32::MAX);
                    fields.get(index as usize).map(|field| {
                        (&field.ty, around.offset + field_offset(*id, index, self.structs))
                    })
                }
                _ => None,
            };
            match part {
                None => {
                    self.around.pop();
                }
                Some((ty @ (Type::Array(..) | Type::Struct(_)), offset)) => {
                    self.around.push(Around { ty, offset, next: 0 });
                }
                Some((ty, offset)) => {
                    let path = self.around.iter().map(|around| around.next - 1).collect();
                    return Some(Leaf { offset, ty: ty.clone(), path });
                }
            }
        }
    }
}
