//! What the checker knows of pointers: those to memory that a child grid, or any other thread, cannot reach.

use super::body::{Body, Meaning};
use super::tree::{Expr, ExprKind};
use crate::source::Span;

/// Memory that a child grid cannot reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointed {
    pub(super) memory: Memory,
    /// Where the address is taken.
    pub(super) span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    Local,
    Shared,
}

impl Body<'_, '_> {
    /// The local or shared memory that a value points to, or contains a pointer to, as far as known.
    pub(super) fn points_to(&self, value: &Expr) -> Option<Pointed> {
        let mut value = value;
        while let ExprKind::Binary(_, pointer, _) = &value.kind
            && value.ty.is_pointer()
        {
            value = pointer;
        }
        match &value.kind {
            ExprKind::AddressOf(place) => {
                let pointed = self.memory_of(place)?;
                Some(Pointed { span: value.span, ..pointed })
            }
            ExprKind::DynamicShared => Some(Pointed { memory: Memory::Shared, span: value.span }),
            ExprKind::Cast(pointer) if value.ty.is_pointer() => self.points_to(pointer),
            ExprKind::Local(id) => {
                let variable = self.variable(*id)?;
                // A later iteration of a loop may see a value that is assigned further down.
                let is_mutable = matches!(variable.meaning, Meaning::Local { mutable: true, .. });
                variable.points_to.filter(|_| !is_mutable || variable.loops == self.loops.len())
            }
            ExprKind::Aggregate(parts) | ExprKind::Array(parts) => {
                parts.iter().find_map(|part| self.points_to(part))
            }
            ExprKind::ArrayRepeat(part) => self.points_to(part),
            ExprKind::If { branches, otherwise } => {
                let blocks = branches.iter().map(|(_, block)| block).chain(otherwise);
                blocks.filter_map(|b| b.value.as_deref()).find_map(|value| self.points_to(value))
            }
            ExprKind::Block(block) => self.points_to(block.value.as_deref()?),
            _ => None,
        }
    }

    /// Forgets the memory that a mutable variable points to, because it is assigned or its address escapes.
    pub(super) fn forget_pointed(&mut self, place: &Expr) {
        let Some(ExprKind::Local(id)) = self.root_of(place).map(|root| &root.kind) else { return };
        let id = *id;
        if let Some(variable) = self.variable_mut(id)
            && matches!(variable.meaning, Meaning::Local { mutable: true, .. })
        {
            variable.points_to = None;
        }
    }

    /// The local or shared memory that contains a place.
    pub(super) fn memory_of(&self, place: &Expr) -> Option<Pointed> {
        let root = self.root_of(place)?;
        match &root.kind {
            ExprKind::Local(_) => Some(Pointed { memory: Memory::Local, span: place.span }),
            ExprKind::Shared(_) => Some(Pointed { memory: Memory::Shared, span: place.span }),
            ExprKind::Deref(pointer) | ExprKind::Index { base: pointer, .. } => {
                self.points_to(pointer)
            }
            _ => None,
        }
    }
}
