//! Structs: resolves their fields, and reports structs that contain themselves.

use super::consts::State;
use super::types::{MAX_LEAVES, builtin_type};
use super::{Context, StructItem};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast::{self, MAX_BLOCKS};
use crate::types::{Field, Struct, StructId, Type};

impl<'a> Context<'a> {
    /// Adds the built-in structs to the lists parallel to [`crate::types::Structs`].
    pub(super) fn add_builtin_structs(&mut self) {
        let dim3 = StructItem {
            fields: ["x", "y", "z"].map(|_| (Some(Type::U32), None)).to_vec(),
            by_name: ["x", "y", "z"].into_iter().zip(0..).collect(),
            leaves: 3,
            height: 1,
            damaged: false,
            resolved: true,
        };
        // Programs cannot name the geometry.
        self.struct_items = vec![dim3, StructItem::default()];
    }

    /// Declares a struct and returns its id, or `None` if the name is taken.
    pub(super) fn declare_struct(&mut self, item: &'a ast::Struct) -> Option<StructId> {
        let name = self.text(item.name);
        let is_builtin = builtin_type(name).is_some() || name == "dim3";
        if is_builtin || self.type_names.contains_key(name) {
            let first = self.type_names.get(name).and_then(|(_, declared)| *declared);
            self.report_duplicate(item.name.span, name, first);
            return None;
        }
        let span = Some(item.name.span);
        let id = self.structs.add(Struct { name: name.into(), fields: vec![], span });
        self.struct_items.push(StructItem { damaged: item.damaged, ..StructItem::default() });
        self.type_names.insert(name, (Some(id), span));
        Some(id)
    }

    /// Resolves the fields of a struct. All structs it contains are resolved, except those not yet `Done`,
    /// which contain it in turn.
    pub(super) fn resolve_struct(&mut self, id: StructId, item: &'a ast::Struct, states: &[State]) {
        if item.fields.is_empty() && !item.damaged {
            let message = format!("the struct `{}` has no fields", self.text(item.name));
            self.report(Diagnostic::error(ids::EMPTY_STRUCT, item.name.span, message));
            self.struct_items[id.0 as usize].damaged = true;
        }
        for field in &item.fields {
            self.resolve_field(id, field);
        }
        for field in 0..self.struct_items[id.0 as usize].fields.len() {
            let (ty, span) = &self.struct_items[id.0 as usize].fields[field];
            let (inner, span) = (ty.as_ref().and_then(by_value), *span);
            if let Some(inner) = inner.filter(|inner| states[inner.0 as usize] != State::Done) {
                self.struct_items[id.0 as usize].fields[field].0 = None;
                // So that walks down the fields terminate.
                self.structs.get_mut(id).fields[field].ty = Type::Unit;
                self.report_recursion(inner, span);
            }
        }
        self.measure_struct(id);
    }

    fn resolve_field(&mut self, id: StructId, field: &'a ast::Field) {
        let ty = self.resolve_type(&field.ty);
        let name = self.text(field.name);
        let entry = &mut self.struct_items[id.0 as usize];
        if let Some(first) = entry.by_name.get(name) {
            let first = entry.fields[*first as usize].1;
            let message = format!("the field `{name}` is declared twice");
            let mut error = Diagnostic::error(ids::DUPLICATE_FIELD, field.name.span, message);
            if let Some(first) = first {
                error = error.label(first, "first declared here");
            }
            self.report(error);
            return;
        }
        entry.by_name.insert(name, entry.fields.len() as u32);
        entry.fields.push((ty.clone(), Some(field.name.span)));
        // The placeholder is never used: there was an error.
        let ty = ty.unwrap_or(Type::Unit);
        self.structs.get_mut(id).fields.push(Field { name: name.into(), ty });
    }

    fn report_recursion(&mut self, id: StructId, field: Option<Span>) {
        let item = self.structs.get(id);
        let (name, span) = (item.name.clone(), item.span);
        let Some(at) = field.or(span) else { return };
        let message = format!("the struct `{name}` contains itself");
        let mut error = Diagnostic::error(ids::RECURSIVE_STRUCT, at, message);
        if let Some(span) = span {
            error = error.label(span, "declared here");
        }
        self.report(error.hint(format!("store a pointer: `*mut {name}`")));
    }

    fn measure_struct(&mut self, id: StructId) {
        let (mut leaves, mut height) = (0u64, 0u32);
        for (ty, _) in &self.struct_items[id.0 as usize].fields {
            let Some(ty) = ty else { continue };
            leaves = leaves.saturating_add(self.leaves(ty));
            height = height.max(self.type_height(ty));
        }
        let entry = &mut self.struct_items[id.0 as usize];
        (entry.leaves, entry.height) = (leaves, height.saturating_add(1));
        entry.resolved = true;
        let Some(span) = self.structs.get(id).span else { return };
        if leaves > MAX_LEAVES {
            self.struct_items[id.0 as usize].leaves = 1;
            self.report_size(span);
        }
        if height >= u32::from(MAX_BLOCKS) {
            // So that enclosing structs are not reported too, and walks down them terminate.
            self.struct_items[id.0 as usize].height = 1;
            let item = self.structs.get_mut(id);
            item.fields.iter_mut().for_each(|field| field.ty = Type::Unit);
            let name = item.name.clone();
            let message = format!("the struct `{name}` is nested over {MAX_BLOCKS} levels deep");
            self.report(Diagnostic::error(ids::NESTING_TOO_DEEP, span, message));
        }
    }

    /// Whether a type has a size. A struct that needs its own size for a field has none; that is reported at
    /// the field.
    pub(super) fn has_size(&self, ty: &Type) -> bool {
        by_value(ty).is_none_or(|id| self.struct_items[id.0 as usize].resolved)
    }

    fn type_height(&self, ty: &Type) -> u32 {
        let mut height = 0u32;
        let mut ty = ty;
        while let Type::Array(element, _) = ty {
            height += 1;
            ty = element;
        }
        match ty {
            Type::Struct(id) => height.saturating_add(self.struct_items[id.0 as usize].height),
            _ => height + 1,
        }
    }
}

/// The struct that a value of the type contains by value, possibly in arrays.
fn by_value(ty: &Type) -> Option<StructId> {
    let mut ty = ty;
    while let Type::Array(element, _) = ty {
        ty = element;
    }
    match ty {
        Type::Struct(id) => Some(*id),
        _ => None,
    }
}
