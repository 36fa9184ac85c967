//! Places, and values that are constructed in place.

use super::analysis::is_place;
use super::function::{FunctionBuilder, Storage};
use crate::check::tree::{BinaryOp, Expr, ExprKind, LocalId};
use crate::error::Result;
use crate::ir::{Const, GlobalId, InstKind, Operand};
use crate::source::Span;
use crate::types::{Scalar, Type};

/// Up to this many elements, `[value; N]` is written out instead of filled by a loop.
const REPEAT_LIMIT: u64 = 8;

impl FunctionBuilder<'_, '_> {
    /// The location of a local variable. Allocates its slot on first use.
    pub(super) fn storage(&mut self, local: LocalId) -> Result<Storage> {
        let at = local.0 as usize;
        let Some(storage) = self.locals.get(at) else {
            return Err(self.broken("a local variable does not exist"));
        };
        if !matches!(storage, Storage::Unused) {
            return Ok(storage.clone());
        }
        let storage = Storage::Memory(self.slot_of(&self.source.locals[at], None, false));
        self.locals[at] = storage.clone();
        Ok(storage)
    }

    /// Allocates the slot of a variable that is declared without a value: the order of slots is that of the declarations, which decides
    /// what ptxas loads together.
    pub(super) fn declare(&mut self, local: LocalId) -> Result<()> {
        let at = local.0 as usize;
        let (Some(Storage::Unused), Some(variable)) =
            (self.locals.get(at), self.source.locals.get(at))
        else {
            return Err(self.broken("a variable is declared twice"));
        };
        self.locals[at] = Storage::Memory(self.slot_of(variable, None, true));
        Ok(())
    }

    /// The address of a place.
    pub(super) fn address(&mut self, place: &Expr) -> Result<Operand> {
        match &place.kind {
            ExprKind::Local(local) => match self.storage(*local)? {
                Storage::Memory(slot) => Ok(slot),
                _ => Err(self.broken("a plain value has no address")),
            },
            ExprKind::Shared(shared) => {
                let globals = &self.program.targets[self.index].shared;
                match globals.get(shared.0 as usize) {
                    Some(global) => Ok(Operand::Global(*global)),
                    None => Err(self.broken("a shared variable does not exist")),
                }
            }
            // Static variables are the first globals: see `ProgramBuilder::add_statics`.
            ExprKind::Static(id) => Ok(Operand::Global(GlobalId(id.0))),
            ExprKind::Deref(pointer) => self.value(pointer),
            ExprKind::Field { base, index } => {
                let base = self.address(base)?;
                let kind = InstKind::FieldAddress { base, index: *index };
                Ok(self.body.emit(kind, pointer_to(place), place.span))
            }
            ExprKind::Index { base, index } => {
                let start = if base.ty.is_pointer() {
                    self.value(base)?
                } else {
                    self.array_address(base)?
                };
                let index = self.value(index)?;
                let kind = InstKind::ElementAddress { base: start, index };
                Ok(self.body.emit(kind, pointer_to(place), place.span))
            }
            _ => Err(self.broken("a value has no address")),
        }
    }

    /// The address of an array; an array that is only a value is stored in a slot first.
    fn array_address(&mut self, array: &Expr) -> Result<Operand> {
        if is_place(array) {
            return self.address(array);
        }
        let slot = self.body.slot("array", array.ty.clone());
        self.initialize(slot.clone(), array)?;
        Ok(slot)
    }

    fn element_address(
        &mut self,
        base: Operand,
        index: Operand,
        element: &Type,
        span: Span,
    ) -> Operand {
        let kind = InstKind::ElementAddress { base, index };
        self.body.emit(kind, Type::pointer_mut(element.clone()), span)
    }

    /// Writes the value of `expr` to memory that `expr` cannot access, such as the variable it initialises.
    /// Aggregates are written part by part, so that large ones never pass through registers.
    pub(super) fn initialize(&mut self, pointer: Operand, expr: &Expr) -> Result<()> {
        match (&expr.kind, &expr.ty) {
            (ExprKind::Array(parts), Type::Array(element, _)) => {
                for (at, part) in parts.iter().enumerate() {
                    let index = Operand::Const(Const::Int(Scalar::U64, at as i128));
                    let target = self.element_address(pointer.clone(), index, element, part.span);
                    self.initialize(target, part)?;
                }
                Ok(())
            }
            (ExprKind::ArrayRepeat(element), Type::Array(_, count)) if !element.is_zero() => {
                self.fill(pointer, element, *count, expr.span)
            }
            (ExprKind::Aggregate(parts), Type::Struct(_)) if parts.iter().any(is_array) => {
                for (at, part) in parts.iter().enumerate() {
                    let kind = InstKind::FieldAddress { base: pointer.clone(), index: at as u32 };
                    let ty = Type::pointer_mut(part.ty.clone());
                    let target = self.body.emit(kind, ty, part.span);
                    self.initialize(target, part)?;
                }
                Ok(())
            }
            _ => {
                let value = self.value(expr)?;
                self.body.store(pointer, value, expr.span);
                Ok(())
            }
        }
    }

    /// `[element; count]` as a value.
    pub(super) fn array_repeat(&mut self, expr: &Expr, element: &Expr) -> Result<Operand> {
        let Type::Array(_, count) = &expr.ty else {
            return Err(self.broken("an array literal has the wrong type"));
        };
        if element.is_zero() {
            return Ok(Operand::Const(Const::Zero(expr.ty.clone())));
        }
        if *count <= REPEAT_LIMIT {
            let value = self.value(element)?;
            let parts = vec![value; *count as usize];
            return Ok(self.body.emit(InstKind::Aggregate(parts), expr.ty.clone(), expr.span));
        }
        let slot = self.body.slot("array", expr.ty.clone());
        self.fill(slot.clone(), element, *count, expr.span)?;
        Ok(self.body.load(slot, &expr.ty, expr.span))
    }

    /// Writes `count` copies of a value that is evaluated once.
    fn fill(&mut self, array: Operand, element: &Expr, count: u64, span: Span) -> Result<()> {
        let value = self.value(element)?;
        if count == 0 {
            return Ok(());
        }
        let number = |value: u64| Operand::Const(Const::Int(Scalar::U64, i128::from(value)));
        let counter = self.body.slot("fill", Type::U64);
        let [each, end] = self.body.blocks("fill", ["body", "end"]);
        self.body.store(counter.clone(), number(0), span);
        self.body.jump(each);
        self.body.place(each);
        let at = self.body.load(counter.clone(), &Type::U64, span);
        let target = self.element_address(array, at.clone(), &element.ty, span);
        self.body.store(target, value, span);
        let next = InstKind::Binary(BinaryOp::Add, at, number(1));
        let next = self.body.emit(next, Type::U64, span);
        self.body.store(counter, next.clone(), span);
        let more = InstKind::Binary(BinaryOp::Lt, next, number(count));
        let more = self.body.emit(more, Type::BOOL, span);
        self.body.branch(more, each, end);
        self.body.place(end);
        Ok(())
    }
}

/// The type of a place's address: `*const` if a pointer on the path to it is `*const`.
fn pointer_to(place: &Expr) -> Type {
    fn is_mutable(place: &Expr) -> bool {
        match &place.kind {
            ExprKind::Deref(base) => !matches!(base.ty, Type::Pointer { mutable: false, .. }),
            ExprKind::Index { base, .. } => match base.ty {
                Type::Pointer { mutable, .. } => mutable,
                _ => is_mutable(base),
            },
            ExprKind::Field { base, .. } => is_mutable(base),
            _ => true,
        }
    }
    Type::Pointer { mutable: is_mutable(place), pointee: Box::new(place.ty.clone()) }
}

fn is_array(expr: &Expr) -> bool {
    matches!(expr.ty, Type::Array(..))
}
