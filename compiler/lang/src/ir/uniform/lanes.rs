//! What all lanes of a warp have in common because of how threads are numbered ([`Scope::AlignedWarp`]).
//!
//! There, `thread_idx.x` is a multiple of 32 plus the lane, and `thread_idx.y` and `thread_idx.z` are the same in all lanes
//! (CUDA C++ Programming Guide, "Thread Hierarchy").

use super::{Scope, THREAD_IDX};
use crate::ir::guards::stored_once;
use crate::ir::{BinaryOp, Const, Function, InstKind, Operand};
use crate::types::Type;

/// The threads of a warp (CUDA C++ Programming Guide, "SIMT Architecture").
const LANES: i128 = 32;

/// Finds values that all lanes have in common.
pub(super) struct Lanes<'m> {
    function: &'m Function,
    /// By slot, its only value; nothing in other scopes.
    stored: Option<Vec<Option<Operand>>>,
}

impl<'m> Lanes<'m> {
    pub(super) fn of(function: &'m Function, scope: Scope) -> Self {
        let stored = (scope == Scope::AlignedWarp).then(|| stored_once(function));
        Lanes { function, stored }
    }

    /// Whether all lanes get the same from an operation on the index of a thread.
    pub(super) fn is_common(&self, kind: &InstKind) -> bool {
        let Some(stored) = &self.stored else { return false };
        let is_index = |operand: &Operand| self.is_index(operand, stored);
        match kind {
            InstKind::Extract { base, index: 1 | 2 } => self.is_thread_index(base),
            InstKind::Binary(op, index, Operand::Const(Const::Int(_, with))) if is_index(index) => {
                is_common(*op, *with)
            }
            InstKind::Binary(op, Operand::Const(Const::Int(_, with)), index) if is_index(index) => {
                mirrored(*op).is_some_and(|op| is_common(op, *with))
            }
            _ => false,
        }
    }

    /// Whether a value is `thread_idx`.
    fn is_thread_index(&self, value: &Operand) -> bool {
        let Operand::Inst(id) = value else { return false };
        match &self.function.instructions[id.index()].kind {
            InstKind::Extract { base: Operand::Parameter(0), index: THREAD_IDX } => {
                self.function.takes_geometry
            }
            _ => false,
        }
    }

    /// Whether a value is `thread_idx.x`, in any type of integer that has its values.
    fn is_index(&self, value: &Operand, stored: &[Option<Operand>]) -> bool {
        let Operand::Inst(id) = value else { return false };
        let inst = &self.function.instructions[id.index()];
        match &inst.kind {
            InstKind::Extract { base, index: 0 } => self.is_thread_index(base),
            InstKind::Cast(from) => {
                let is_wide = matches!(&inst.ty, Type::Scalar(scalar)
                    if !scalar.is_float() && scalar.bits() >= 16);
                is_wide && self.is_index(from, stored)
            }
            InstKind::Load(Operand::Slot(slot)) => {
                stored[slot.index()].as_ref().is_some_and(|value| self.is_index(value, stored))
            }
            _ => false,
        }
    }
}

/// Whether `index op with` is the same for all numbers from a multiple of [`LANES`] to the next.
fn is_common(op: BinaryOp, with: i128) -> bool {
    let is_multiple = |value: i128| value % LANES == 0;
    match op {
        BinaryOp::Div => with > 0 && is_multiple(with),
        BinaryOp::Shr => (5..64).contains(&with),
        BinaryOp::And => is_multiple(with),
        BinaryOp::Lt | BinaryOp::Ge => is_multiple(with),
        BinaryOp::Le | BinaryOp::Gt => is_multiple(with + 1),
        _ => false,
    }
}

/// The operator for exchanged operands.
fn mirrored(op: BinaryOp) -> Option<BinaryOp> {
    match op {
        BinaryOp::Lt => Some(BinaryOp::Gt),
        BinaryOp::Gt => Some(BinaryOp::Lt),
        BinaryOp::Le => Some(BinaryOp::Ge),
        BinaryOp::Ge => Some(BinaryOp::Le),
        BinaryOp::And => Some(op),
        _ => None,
    }
}
