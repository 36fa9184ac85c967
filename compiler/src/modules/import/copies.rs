//! Copies and fills of memory: at once if they are small and of a constant size, otherwise byte by byte.

use gridlet_lang::ir::{Const, InstKind, Operand};
use gridlet_lang::operators::BinaryOp;
use gridlet_lang::types::{Scalar, Type};

use super::Step;
use super::body::Body;
use crate::modules::layout::pointer;
use crate::nvvm::legacy::llvm::Value;

/// The largest number of bytes that are copied at once: each becomes an access of its own.
const AT_ONCE: u64 = 256;

impl<'m> Body<'_, 'm> {
    /// `memcpy` and `memmove`; `may_overlap` for the latter.
    pub(super) fn copy(&mut self, value: Value<'m>, may_overlap: bool) -> Step<Option<Operand>> {
        let (to, from) = (self.operand(value.operand(0))?, self.operand(value.operand(1))?);
        if let Some(bytes) = at_once(value) {
            self.copy_array(to, from, bytes);
            return Ok(None);
        }
        let bytes = self.length(value)?;
        let is_back = if may_overlap {
            let [to, from] = [&to, &from].map(|at| self.cast(at.clone(), &pointer(), &Type::U64));
            self.emit(InstKind::Binary(BinaryOp::Gt, to, from), Type::BOOL)
        } else {
            Operand::Const(Const::Bool(false))
        };
        let last = self.word(BinaryOp::Sub, bytes.clone(), Body::number(Scalar::U64, 1));
        self.each_byte(bytes, |body, at| {
            let back = body.word(BinaryOp::Sub, last, at.clone());
            let at = body.emit(InstKind::Select(is_back, back, at), Type::U64);
            let [to, from] = [to, from].map(|base| body.byte_at(base, at.clone()));
            // An array, because a copy of one may have unset parts.
            body.copy_array(to, from, 1);
        });
        Ok(None)
    }

    /// `memset`.
    pub(super) fn fill(&mut self, value: Value<'m>) -> Step<Option<Operand>> {
        let (to, byte) = (self.operand(value.operand(0))?, self.operand(value.operand(1))?);
        if let Some(bytes) = at_once(value) {
            let ty = array(bytes);
            let to = self.cast(to, &pointer(), &Type::pointer_mut(ty.clone()));
            let whole = self.emit(InstKind::Aggregate(vec![byte; bytes as usize]), ty);
            self.builder.store(to, whole, self.span);
            return Ok(None);
        }
        let bytes = self.length(value)?;
        self.each_byte(bytes, |body, at| {
            let to = body.byte_at(to, at);
            body.builder.store(to, byte, body.span);
        });
        Ok(None)
    }

    fn copy_array(&mut self, to: Operand, from: Operand, bytes: u64) {
        let ty = array(bytes);
        let target = Type::pointer_mut(ty.clone());
        let [to, from] = [to, from].map(|at| self.cast(at, &pointer(), &target));
        let whole = self.emit(InstKind::Load(from), ty);
        self.builder.store(to, whole, self.span);
    }

    /// The number of bytes, as 64 bits.
    fn length(&mut self, value: Value<'m>) -> Step<Operand> {
        let (ty, bytes) = (self.type_of(value.operand(2))?, self.operand(value.operand(2))?);
        Ok(self.cast(bytes, &ty, &Type::U64))
    }

    fn word(&mut self, op: BinaryOp, left: Operand, right: Operand) -> Operand {
        self.emit(InstKind::Binary(op, left, right), Type::U64)
    }

    fn byte_at(&mut self, base: Operand, index: Operand) -> Operand {
        self.emit(InstKind::ElementAddress { base, index }, pointer())
    }

    /// A loop over the numbers from 0 to below `bytes`.
    fn each_byte(&mut self, bytes: Operand, of_one: impl FnOnce(&mut Self, Operand)) {
        let counter = self.builder.slot("byte", Type::U64);
        self.builder.store(counter.clone(), Body::number(Scalar::U64, 0), self.span);
        let [head, one, end] = self.builder.blocks("bytes", ["head", "one", "end"]);
        self.builder.end_at(self.span);
        self.builder.jump(head);
        self.builder.place(head);
        let at = self.builder.load(counter.clone(), &Type::U64, self.span);
        let is_inside = self.emit(InstKind::Binary(BinaryOp::Lt, at.clone(), bytes), Type::BOOL);
        self.builder.end_at(self.span);
        self.builder.branch(is_inside, one, end);
        self.builder.place(one);
        of_one(self, at.clone());
        let next = self.word(BinaryOp::Add, at, Body::number(Scalar::U64, 1));
        self.builder.store(counter, next, self.span);
        self.builder.end_at(self.span);
        self.builder.jump(head);
        self.builder.place(end);
    }
}

/// The number of bytes of a call, if it is constant and small.
fn at_once(value: Value<'_>) -> Option<u64> {
    value.operand(2).unsigned().filter(|bytes| *bytes <= AT_ONCE)
}

fn array(bytes: u64) -> Type {
    Type::Array(Box::new(Type::Scalar(Scalar::U8)), bytes)
}
