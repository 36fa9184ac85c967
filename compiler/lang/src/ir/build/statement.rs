//! Statements.

use super::arithmetic::wrap;
use super::function::{FunctionBuilder, Loop, Storage};
use crate::check::tree::{BinaryOp, Block, Expr, ExprKind, LocalId, Statement, StatementKind};
use crate::error::Result;
use crate::ir::{BlockId, Const, InstKind, Operand, Terminator, Unroll};
use crate::source::Span;
use crate::types::{Scalar, Type};

impl FunctionBuilder<'_, '_> {
    pub(super) fn statement(&mut self, statement: &Statement) -> Result<()> {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Let { local, value: None } => {
                if let Some(storage @ Storage::Unused) = self.locals.get_mut(local.0 as usize) {
                    *storage = Storage::Unset;
                }
                Ok(())
            }
            StatementKind::Let { local, value: Some(value) } => {
                let slot = self.variable(*local)?;
                self.initialize(slot, value)
            }
            StatementKind::Assign { place, op, value } => self.assign(place, *op, value, span),
            StatementKind::Expr(expr) => self.lower(expr).map(drop),
            StatementKind::While { condition, body, unroll } => {
                let [head, inside, end] = self.body.blocks("while", ["head", "body", "end"]);
                self.body.unroll(head, *unroll);
                self.body.jump(head);
                self.body.place(head);
                self.condition(condition, inside, end)?;
                self.body.place(inside);
                self.loop_body(body, head, end)?;
                self.body.jump(head);
                self.body.place(end);
                Ok(())
            }
            StatementKind::Loop { body, unroll } => {
                let [inside, end] = self.body.blocks("loop", ["body", "end"]);
                self.body.unroll(inside, *unroll);
                self.body.jump(inside);
                self.body.place(inside);
                self.loop_body(body, inside, end)?;
                self.body.jump(inside);
                self.body.place(end);
                Ok(())
            }
            StatementKind::For { local, start, end, step, body, unroll } => {
                let range = Range { start, end, step: step.as_deref() };
                self.for_loop(*local, range, body, *unroll, span)
            }
            StatementKind::Break { depth } => {
                let target = self.loop_at(*depth)?.break_to;
                self.body.jump(target);
                Ok(())
            }
            StatementKind::Continue { depth } => {
                let target = self.loop_at(*depth)?.continue_to;
                self.body.jump(target);
                Ok(())
            }
            StatementKind::Return(value) => {
                let value = match value {
                    Some(value) => self.lower(value)?,
                    None => None,
                };
                self.body.terminate(Terminator::Return(value));
                Ok(())
            }
        }
    }

    /// The address of a variable that must be in memory.
    fn variable(&mut self, local: LocalId) -> Result<Operand> {
        match self.storage(local)? {
            Storage::Memory(slot) => Ok(slot),
            _ => Err(self.broken("a parameter is redeclared")),
        }
    }

    fn assign(
        &mut self,
        place: &Expr,
        op: Option<BinaryOp>,
        value: &Expr,
        span: Span,
    ) -> Result<()> {
        let address = self.address(place)?;
        let mut new = self.value(value)?;
        if let Some(op) = op {
            let old = self.body.load(address.clone(), &place.ty, span);
            new = self.binary(op, (old, &place.ty), (new, &value.ty), &place.ty, span)?;
        }
        self.body.store(address, new, span);
        Ok(())
    }

    fn loop_at(&self, depth: u32) -> Result<Loop> {
        let outermost_first = self.loops.len().checked_sub(1 + depth as usize);
        let found = outermost_first.and_then(|at| self.loops.get(at)).copied();
        found.ok_or_else(|| self.broken("a jump out of a loop that does not exist"))
    }

    fn loop_body(&mut self, body: &Block, continue_to: BlockId, break_to: BlockId) -> Result<()> {
        self.loops.push(Loop { continue_to, break_to });
        let result = self.block(body);
        self.loops.pop();
        result.map(drop)
    }

    /// The semantics are those of [`StatementKind::For`]. The head tests `i < end`. After the body, the loop
    /// continues with `i + step` only if that is above `i`: otherwise it overflowed the type, or the step is
    /// not positive. The second test is omitted where `i < end` implies it.
    fn for_loop(
        &mut self,
        local: LocalId,
        range: Range<'_>,
        body: &Block,
        unroll: Option<Unroll>,
        span: Span,
    ) -> Result<()> {
        let Range { start, end, step } = range;
        let variable = self.variable(local)?;
        let scalar = self.scalar(&start.ty)?;
        let ty = &start.ty;
        let first = self.value(start)?;
        let limit = self.value(end)?;
        let stride = Stride::of(scalar, step, end);
        let step = match step {
            Some(step) => self.value(step)?,
            None => Operand::Const(Const::Int(scalar, 1)),
        };
        let step = match stride {
            // Replace a negative step by zero: then no next value is above the last, even if it wraps.
            Stride::Unknown if scalar.is_signed() => {
                let zero = Operand::Const(Const::Int(scalar, 0));
                let kind = InstKind::Binary(BinaryOp::Gt, step.clone(), zero.clone());
                let positive = self.body.emit(kind, Type::BOOL, span);
                self.body.emit(InstKind::Select(positive, step, zero), ty.clone(), span)
            }
            _ => step,
        };
        let [head, inside, next, after] = self.body.blocks("for", ["head", "body", "next", "end"]);
        self.body.unroll(head, unroll);
        self.body.store(variable.clone(), first, span);
        self.body.jump(head);

        self.body.place(head);
        let current = self.body.load(variable.clone(), ty, span);
        let kind = InstKind::Binary(BinaryOp::Lt, current, limit);
        let go_on = self.body.emit(kind, Type::BOOL, span);
        self.body.branch(go_on, inside, after);

        self.body.place(inside);
        let continue_to = if stride == Stride::Never { after } else { next };
        self.loop_body(body, continue_to, after)?;
        self.body.jump(continue_to);

        self.body.place(next);
        let current = self.body.load(variable.clone(), ty, span);
        let kind = InstKind::Binary(BinaryOp::Add, current.clone(), step);
        let sum = self.body.emit(kind, ty.clone(), span);
        self.body.store(variable, sum.clone(), span);
        if stride == Stride::Fits {
            self.body.jump(head);
        } else {
            let kind = InstKind::Binary(BinaryOp::Gt, sum, current);
            let is_next = self.body.emit(kind, Type::BOOL, span);
            self.body.branch(is_next, head, after);
        }
        self.body.place(after);
        Ok(())
    }
}

/// The range of a `for`.
#[derive(Clone, Copy)]
struct Range<'e> {
    start: &'e Expr,
    end: &'e Expr,
    step: Option<&'e Expr>,
}

/// Static knowledge about the step of a `for` loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stride {
    /// Zero or less: there is no second iteration.
    Never,
    /// Positive, and `i < end` implies that `i + step` fits the type.
    Fits,
    /// Positive, or of an unsigned type.
    Positive,
    /// Unknown.
    Unknown,
}

impl Stride {
    fn of(scalar: Scalar, step: Option<&Expr>, end: &Expr) -> Stride {
        let constant = |expr: &Expr| match &expr.kind {
            ExprKind::Int(value) => Some(wrap(scalar, *value)),
            _ => None,
        };
        match step.map_or(Some(1), constant) {
            Some(step) if step <= 0 => Stride::Never,
            Some(1) => Stride::Fits,
            Some(step) => {
                let largest = wrap(scalar, -1).max(wrap(scalar, (1 << (scalar.bits() - 1)) - 1));
                match constant(end) {
                    Some(end) if end - 1 + step <= largest => Stride::Fits,
                    _ => Stride::Positive,
                }
            }
            None if scalar.is_unsigned() => Stride::Positive,
            None => Stride::Unknown,
        }
    }
}
