//! Statements.

use super::arithmetic::wrap;
use super::function::{FunctionBuilder, Loop, Storage};
use super::rounds;
use crate::check::tree::{BinaryOp, Block, Expr, ExprKind, LocalId, Statement, StatementKind};
use crate::error::Result;
use crate::ir::{BlockId, Const, InstKind, Operand, Terminator, Unroll};
use crate::source::Span;
use crate::types::{Scalar, Type};

impl FunctionBuilder<'_, '_> {
    pub(super) fn statement(&mut self, statement: &Statement) -> Result<()> {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Let { local, value: None } => self.declare(*local),
            StatementKind::Let { local, value: Some(value) } => {
                let slot = self.variable(*local)?;
                self.initialize(slot, value)
            }
            StatementKind::Assign { place, op, value } => self.assign(place, *op, value, span),
            StatementKind::Expr(expr) => self.lower(expr).map(drop),
            StatementKind::While { condition, body, unroll } => {
                let [head, inside, end] = self.body.blocks("while", ["head", "body", "end"]);
                self.body.jump(head);
                self.body.place(head);
                self.condition(condition, inside, end)?;
                // Between pointers whose distance is from memory: as a `for` with a step, see there.
                let is_short = self.body.compares_pointers_from_memory(head)
                    || rounds::has_few(condition, body);
                self.body.unroll(head, unroll.or(is_short.then_some(Unroll::Known)));
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
            new = self.binary(op, (old, &place.ty), (new, value), &place.ty, span)?;
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

    /// The semantics are those of [`StatementKind::For`]. Where `i < end` does not imply that `i + step` fits the
    /// type, a bound computed before the loop replaces the test for that, so that the loop has a single exit.
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
        let first = self.value(start)?;
        let limit = self.value(end)?;
        let stride = Stride::of(scalar, step, end);
        let step = match step {
            Some(step) => self.value(step)?,
            None => Operand::Const(Const::Int(scalar, 1)),
        };
        let counter = Counter { variable, scalar, step, span };
        self.body.store(counter.variable.clone(), first.clone(), span);
        match stride {
            Stride::Fits => self.plain_loop(&counter, limit, body, unroll),
            Stride::Never => {
                let [inside, after] = self.body.blocks("for", ["body", "end"]);
                let is_any = self.compare(BinaryOp::Lt, first, limit, span);
                self.body.branch(is_any, inside, after);
                self.body.place(inside);
                self.loop_body(body, after, after)?;
                self.body.jump(after);
                self.body.place(after);
                Ok(())
            }
            Stride::Positive | Stride::Unknown => {
                // Rows of a sparse matrix and lists of neighbours are often shorter than the steps of a warp, and the
                // remainder of a loop unrolled here would run one iteration after another. ptxas unrolls such a loop better.
                let is_short = self.body.is_from_memory(&first) && self.body.is_from_memory(&limit);
                let unroll =
                    unroll.or((is_short && stride == Stride::Positive).then_some(Unroll::Known));
                let bound = self.last_bound(&counter, &limit, stride);
                let [inside, next, again, after] =
                    self.body.blocks("for", ["body", "next", "again", "end"]);
                self.body.unroll(inside, unroll);
                let is_any = self.compare(BinaryOp::Lt, first, limit, span);
                self.body.branch(is_any, inside, after);
                self.body.place(inside);
                self.loop_body(body, next, after)?;
                self.body.jump(next);
                self.body.place(next);
                let current = self.current(&counter);
                let go_on = self.compare(BinaryOp::Lt, current, bound, span);
                self.body.branch(go_on, again, after);
                self.body.place(again);
                // A trip count would cost a division by an unknown step.
                let kind = match stride {
                    Stride::Positive => InstKind::Advance,
                    _ => add,
                };
                self.advance(&counter, kind);
                self.body.jump(inside);
                self.body.place(after);
                Ok(())
            }
        }
    }

    /// A loop whose counter cannot overflow: its head tests `i < end`.
    fn plain_loop(
        &mut self,
        counter: &Counter,
        limit: Operand,
        body: &Block,
        unroll: Option<Unroll>,
    ) -> Result<()> {
        let [head, inside, next, after] = self.body.blocks("for", ["head", "body", "next", "end"]);
        self.body.unroll(head, unroll);
        self.body.jump(head);
        self.body.place(head);
        let current = self.current(counter);
        let go_on = self.compare(BinaryOp::Lt, current, limit, counter.span);
        self.body.branch(go_on, inside, after);
        self.body.place(inside);
        self.loop_body(body, next, after)?;
        self.body.jump(next);
        self.body.place(next);
        // nvcc knows as much of `int` but not of `unsigned`. With both, libNVVM makes loops over short rows longer.
        let kind = match counter.scalar.is_signed() {
            true => InstKind::Advance,
            false => add,
        };
        self.advance(counter, kind);
        self.body.jump(head);
        self.body.place(after);
        Ok(())
    }

    /// The loop continues after an iteration with `i` exactly if `i` is below this bound: `end - step`, or the least value
    /// of the type if the difference would be below that or the step is not positive.
    fn last_bound(&mut self, counter: &Counter, limit: &Operand, stride: Stride) -> Operand {
        let Counter { scalar, step, span, .. } = counter;
        let (ty, span) = (Type::Scalar(*scalar), *span);
        let least = if scalar.is_signed() { -1 << (scalar.bits() - 1) } else { 0 };
        let int = |value| Operand::Const(Const::Int(*scalar, value));
        let first_end = match step {
            Operand::Const(Const::Int(_, step)) => int(least + wrap(*scalar, *step)),
            step if least == 0 => step.clone(),
            step => {
                let kind = InstKind::Binary(BinaryOp::Add, step.clone(), int(least));
                self.body.emit(kind, ty.clone(), span)
            }
        };
        let is_later = self.compare(BinaryOp::Gt, limit.clone(), first_end.clone(), span);
        let kind = InstKind::Select(is_later, limit.clone(), first_end);
        let end = self.body.emit(kind, ty.clone(), span);
        let kind = InstKind::Binary(BinaryOp::Sub, end, step.clone());
        let bound = self.body.emit(kind, ty.clone(), span);
        if stride == Stride::Positive {
            return bound;
        }
        let is_positive = self.compare(BinaryOp::Gt, step.clone(), int(0), span);
        self.body.emit(InstKind::Select(is_positive, bound, int(least)), ty, span)
    }

    fn current(&mut self, counter: &Counter) -> Operand {
        self.body.load(counter.variable.clone(), &Type::Scalar(counter.scalar), counter.span)
    }

    fn advance(&mut self, counter: &Counter, kind: impl Fn(Operand, Operand) -> InstKind) {
        let current = self.current(counter);
        let kind = kind(current, counter.step.clone());
        let next = self.body.emit(kind, Type::Scalar(counter.scalar), counter.span);
        self.body.store(counter.variable.clone(), next, counter.span);
    }

    fn compare(&mut self, op: BinaryOp, left: Operand, right: Operand, span: Span) -> Operand {
        self.body.emit(InstKind::Binary(op, left, right), Type::BOOL, span)
    }
}

/// A sum that may wrap around.
fn add(counter: Operand, step: Operand) -> InstKind {
    InstKind::Binary(BinaryOp::Add, counter, step)
}

/// The counter of a `for` loop.
struct Counter {
    /// The address of the variable.
    variable: Operand,
    scalar: Scalar,
    step: Operand,
    span: Span,
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
    /// Positive.
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
            None => Stride::Unknown,
        }
    }
}
