//! How deep types nest. Everything that walks types recurses, so the limit keeps that from overflowing the stack; what is here
//! does not recurse.

use std::mem;

use super::{StructId, Structs, Type};
use crate::deep::SHALLOW;

/// The most pointers and arrays around a type, with it, and the most structs and arrays inside each other.
pub const MAX_NESTING: usize = SHALLOW as usize;

/// As [`MAX_NESTING`], in the IR: it adds the addresses of variables and of their parts.
pub(crate) const MAX_IR_NESTING: usize = MAX_NESTING + 8;

/// The number of pointers and arrays around a type, with it, and the innermost type.
pub(crate) fn innermost(ty: &Type) -> (usize, &Type) {
    let (mut height, mut ty) = (1, ty);
    while let Type::Array(inner, _) | Type::Pointer { pointee: inner, .. } = ty {
        (height, ty) = (height + 1, inner);
    }
    (height, ty)
}

/// Whether a type nests deeper than programs may.
pub(crate) fn is_too_deep(ty: &Type) -> bool {
    innermost(ty).0 > MAX_NESTING
}

/// The type, or another one in its place, and whether it nests deeper than programs may. To drop a type that does recurses.
pub(crate) fn cut(mut ty: Type) -> (Type, bool) {
    if !is_too_deep(&ty) {
        return (ty, false);
    }
    while let Type::Array(inner, _) | Type::Pointer { pointee: inner, .. } = ty {
        ty = *inner;
    }
    (Type::U32, true)
}

/// The structs that a type contains by value, and in how many arrays.
fn contained(ty: &Type) -> (usize, Option<StructId>) {
    let (mut arrays, mut ty) = (0, ty);
    while let Type::Array(element, _) = ty {
        (arrays, ty) = (arrays + 1, element);
    }
    match ty {
        Type::Struct(id) => (arrays, Some(*id)),
        _ => (arrays, None),
    }
}

impl Structs {
    /// Cuts fields whose types nest deeper than programs may. Gives the first struct with one.
    pub(crate) fn cut_fields(&mut self) -> Option<StructId> {
        let mut found = None;
        for (at, item) in self.items.iter_mut().enumerate() {
            for field in &mut item.fields {
                let (ty, is_cut) = cut(mem::replace(&mut field.ty, Type::Unit));
                field.ty = ty;
                if is_cut {
                    found.get_or_insert(StructId(at as u32));
                }
            }
        }
        found
    }

    /// By struct, how many structs and arrays are inside each other, with it.
    ///
    /// # Errors
    /// A struct that contains itself. All fields must have structs that exist.
    pub(crate) fn heights(&self) -> Result<Vec<usize>, StructId> {
        let parts = |id: StructId| self.get(id).fields.iter().map(|field| contained(&field.ty));
        // 0 while it is unknown. A struct is open while those that it contains are looked at.
        let mut heights = vec![0_usize; self.len()];
        let mut is_open = vec![false; self.len()];
        for (start, _) in self.iter() {
            let mut open = vec![start];
            while let Some(&id) = open.last() {
                let at = id.0 as usize;
                if heights[at] > 0 {
                    open.pop();
                    continue;
                }
                if !mem::replace(&mut is_open[at], true) {
                    let inner = parts(id).filter_map(|(_, inner)| inner);
                    let unknown = inner.filter(|inner| heights[inner.0 as usize] == 0);
                    for inner in unknown {
                        if is_open[inner.0 as usize] {
                            return Err(inner);
                        }
                        open.push(inner);
                    }
                    continue;
                }
                let of = |(arrays, inner): (usize, Option<StructId>)| {
                    arrays + inner.map_or(1, |inner| heights[inner.0 as usize])
                };
                heights[at] = 1 + parts(id).map(of).max().unwrap_or_default();
                open.pop();
            }
        }
        Ok(heights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Field, Struct};

    fn add(structs: &mut Structs, fields: &[Type]) -> Type {
        let fields = fields.iter().map(|ty| Field { name: "f".into(), ty: ty.clone() });
        let item = Struct { name: "S".into(), fields: fields.collect(), span: None };
        Type::Struct(structs.add(item))
    }

    #[test]
    fn heights_count_structs_and_arrays_inside_each_other() {
        let mut structs = Structs::new();
        let empty = add(&mut structs, &[]);
        let one = add(&mut structs, &[Type::U32, Type::pointer_mut(Type::pointer_mut(Type::U32))]);
        let both = add(&mut structs, &[Type::Array(Box::new(one.clone()), 2), one, empty]);
        add(&mut structs, &[Type::pointer_mut(both.clone()), Type::Array(Box::new(both), 1)]);
        assert_eq!(structs.heights(), Ok(vec![2, 3, 1, 2, 4, 6]));
    }

    #[test]
    fn structs_that_contain_themselves_are_found() {
        let mut structs = Structs::new();
        let first = add(&mut structs, &[]);
        let second = add(&mut structs, std::slice::from_ref(&first));
        add(&mut structs, &[second.clone(), first.clone()]);
        let field = Field { name: "f".into(), ty: Type::Array(Box::new(second), 1) };
        let Type::Struct(id) = first else { unreachable!() };
        assert!(structs.heights().is_ok());
        structs.get_mut(id).fields.push(field);
        assert_eq!(structs.heights(), Err(id));
    }
}
