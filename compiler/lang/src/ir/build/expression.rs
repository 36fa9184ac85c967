//! Expressions: their values, and conditions as control flow.

use super::analysis::{
    is_place, is_same_variable, is_worth_speculation, local_of_place, mixes_operators,
};
use super::function::{FunctionBuilder, Storage};
use crate::check::tree::{Block, Expr, ExprKind, FunctionId, GeometryField, UnaryOp};
use crate::error::Result;
use crate::float;
use crate::ir::{BlockId, Const, ExternId, GEOMETRY_DYNAMIC_SHARED, InstKind, Operand, same_type};
use crate::source::Span;
use crate::types::{Scalar, Type};

/// An operator of a chain whose left side is being evaluated.
enum Link<'e> {
    /// An operator evaluated after both sides, or an `&&` or `||` whose right side may be speculated.
    Plain(&'e Expr),
    /// `&&` or `||`, with the block of its right side, the block after it, and the slot of its value.
    Branch { node: &'e Expr, more: BlockId, end: BlockId, slot: Operand },
}

impl FunctionBuilder<'_, '_> {
    /// The value of an expression that has one.
    pub(super) fn value(&mut self, expr: &Expr) -> Result<Operand> {
        match self.lower(expr)? {
            Some(value) => Ok(value),
            None => self.placeholder(&expr.ty),
        }
    }

    /// The values of expressions, in order.
    pub(super) fn values<'e>(
        &mut self,
        expressions: impl IntoIterator<Item = &'e Expr>,
    ) -> Result<Vec<Operand>> {
        expressions.into_iter().map(|expr| self.value(expr)).collect()
    }

    /// Evaluates an expression; `None` if its type is `Unit` or its evaluation never ends.
    pub(super) fn lower(&mut self, expr: &Expr) -> Result<Option<Operand>> {
        let span = expr.span;
        let value = match &expr.kind {
            ExprKind::Int(value) => Operand::Const(Const::Int(self.scalar(&expr.ty)?, *value)),
            ExprKind::Float(value) => {
                let scalar = self.scalar(&expr.ty)?;
                Operand::Const(Const::Float(scalar, float::round(*value, scalar)))
            }
            ExprKind::Bool(value) => Operand::Const(Const::Bool(*value)),
            ExprKind::Text(text) => self.string_address(text, span),
            ExprKind::Local(local) => match self.storage(*local)? {
                Storage::Value(value) => value,
                Storage::Memory(slot) => self.body.load(slot, &expr.ty, span),
                Storage::Unused => {
                    return Err(self.broken("a local variable without a slot"));
                }
            },
            ExprKind::Shared(_)
            | ExprKind::Static(_)
            | ExprKind::Deref(_)
            | ExprKind::Index { .. } => {
                let address = self.address(expr)?;
                self.body.load(address, &expr.ty, span)
            }
            ExprKind::Field { base, index } => {
                if self.is_in_memory(base) {
                    let address = self.address(expr)?;
                    self.body.load(address, &expr.ty, span)
                } else {
                    let base = self.value(base)?;
                    let kind = InstKind::Extract { base, index: *index };
                    self.body.emit(kind, expr.ty.clone(), span)
                }
            }
            ExprKind::DynamicShared => {
                let base = self.geometry()?;
                let kind = InstKind::Extract { base, index: GEOMETRY_DYNAMIC_SHARED };
                let bytes = Type::pointer_mut(Type::Scalar(Scalar::U8));
                let base = self.body.emit(kind, bytes.clone(), span);
                self.cast(base, &bytes, expr)
            }
            ExprKind::Geometry(field) => {
                let index = match field {
                    GeometryField::ThreadIdx => 0,
                    GeometryField::BlockIdx => 1,
                    GeometryField::BlockDim => 2,
                    GeometryField::GridDim => 3,
                };
                let kind = InstKind::Extract { base: self.geometry()?, index };
                self.body.emit(kind, expr.ty.clone(), span)
            }
            ExprKind::Unary(op, operand) => {
                let operand = self.value(operand)?;
                self.body.emit(InstKind::Unary(*op, operand), expr.ty.clone(), span)
            }
            ExprKind::Binary(..) | ExprKind::Logical { .. } => self.chain(expr)?,
            ExprKind::Cast(operand) => {
                let value = self.value(operand)?;
                self.cast(value, &operand.ty, expr)
            }
            ExprKind::AddressOf(place) => self.address(place)?,
            ExprKind::If { branches, otherwise } => {
                return self.if_expression(expr, branches, otherwise.as_ref());
            }
            ExprKind::Block(block) => return self.block(block),
            ExprKind::CallExtern { function, arguments } => {
                let arguments = self.values(arguments)?;
                let function = ExternId(function.0);
                let kind = InstKind::CallExtern { function, arguments };
                self.body.emit(kind, expr.ty.clone(), span)
            }
            ExprKind::Call { function, arguments } => {
                return self.call(expr, *function, arguments);
            }
            ExprKind::Builtin { builtin, arguments, format } => {
                return self.builtin(expr, *builtin, arguments, format.as_deref());
            }
            ExprKind::Aggregate(parts) | ExprKind::Array(parts) => {
                let parts = self.values(parts)?;
                self.body.emit(InstKind::Aggregate(parts), expr.ty.clone(), span)
            }
            ExprKind::ArrayRepeat(element) => self.array_repeat(expr, element)?,
            ExprKind::Launch(launch) => return self.launch(expr, launch),
        };
        Ok(Some(value))
    }

    /// Casts to the type of `expr`. Types that are the same in the IR need no instruction.
    fn cast(&mut self, value: Operand, from: &Type, expr: &Expr) -> Operand {
        if same_type(from, &expr.ty) {
            value
        } else {
            self.body.emit(InstKind::Cast(value), expr.ty.clone(), expr.span)
        }
    }

    pub(super) fn scalar(&self, ty: &Type) -> Result<Scalar> {
        ty.as_scalar().ok_or_else(|| self.broken("expected a scalar"))
    }

    /// Whether an expression is a place with an address. Only parameters kept as plain values are not.
    fn is_in_memory(&self, expr: &Expr) -> bool {
        let storage = local_of_place(expr).and_then(|local| self.locals.get(local.0 as usize));
        is_place(expr) && !matches!(storage, Some(Storage::Value(_)))
    }

    /// Branches on a condition. `&&`, `||` and `!` become control flow, without a value.
    pub(super) fn condition(&mut self, expr: &Expr, yes: BlockId, no: BlockId) -> Result<()> {
        let mut rights = vec![];
        let (mut expr, mut yes, mut no) = (expr, yes, no);
        loop {
            match &expr.kind {
                ExprKind::Unary(UnaryOp::Not, operand) => {
                    expr = operand;
                    std::mem::swap(&mut yes, &mut no);
                }
                ExprKind::Logical { is_and, left, right } => {
                    let [more] = self.body.blocks(if *is_and { "and" } else { "or" }, ["right"]);
                    rights.push((more, right, yes, no));
                    *(if *is_and { &mut yes } else { &mut no }) = more;
                    expr = left;
                }
                _ => break,
            }
        }
        let condition = self.value(expr)?;
        self.body.branch(condition, yes, no);
        for (more, right, yes, no) in rights.into_iter().rev() {
            self.body.place(more);
            self.condition(right, yes, no)?;
        }
        Ok(())
    }

    /// A chain of operators, walked down its left side and back.
    fn chain(&mut self, expr: &Expr) -> Result<Operand> {
        let mut links = vec![];
        let mut node = expr;
        let mut is_outermost = true;
        let is_mixed = loop {
            node = match &node.kind {
                ExprKind::Logical { right, .. }
                    if is_outermost && !is_worth_speculation(right) && mixes_operators(node) =>
                {
                    break true;
                }
                ExprKind::Logical { is_and, left, right } if !is_worth_speculation(right) => {
                    let name = if *is_and { "and" } else { "or" };
                    let [more, end] = self.body.blocks(name, ["right", "end"]);
                    let slot = self.body.slot(name, Type::BOOL);
                    links.push(Link::Branch { node, more, end, slot });
                    left
                }
                ExprKind::Binary(_, left, _) | ExprKind::Logical { left, .. } => {
                    links.push(Link::Plain(node));
                    left
                }
                _ => break false,
            };
            is_outermost &= !matches!(links.last(), Some(Link::Branch { .. }));
        };
        let mut value = if is_mixed { self.decided(node)? } else { self.value(node)? };
        while let Some(link) = links.pop() {
            value = self.link(link, value)?;
        }
        Ok(value)
    }

    /// The value of a condition that is decided by control flow alone, which back ends join: [`crate::ir::conditions`].
    fn decided(&mut self, expr: &Expr) -> Result<Operand> {
        let [yes, no, end] = self.body.blocks("decided", ["true", "false", "end"]);
        let slot = self.body.slot("decided", Type::BOOL);
        self.condition(expr, yes, no)?;
        for (block, value) in [(yes, true), (no, false)] {
            self.body.place(block);
            self.body.store(slot.clone(), Operand::Const(Const::Bool(value)), expr.span);
            self.body.jump(end);
        }
        self.body.place(end);
        Ok(self.body.load(slot, &Type::BOOL, expr.span))
    }

    /// An operator of a chain, once its left side is evaluated.
    fn link(&mut self, link: Link<'_>, left_value: Operand) -> Result<Operand> {
        let node = match &link {
            Link::Plain(node) | Link::Branch { node, .. } => *node,
        };
        match (&node.kind, link) {
            (ExprKind::Binary(op, left, right), _) => {
                // Back ends recognise `x == x`, a test for NaN, by its equal operands.
                let right_value = match is_same_variable(left, right) {
                    true => left_value.clone(),
                    false => self.value(right)?,
                };
                let left = (left_value, &left.ty);
                self.binary(*op, left, (right_value, right), &node.ty, node.span)
            }
            (ExprKind::Logical { is_and, right, .. }, Link::Plain(_)) => {
                let right = self.value(right)?;
                let decided = Operand::Const(Const::Bool(!is_and));
                let kind = if *is_and {
                    InstKind::Select(left_value, right, decided)
                } else {
                    InstKind::Select(left_value, decided, right)
                };
                Ok(self.body.emit(kind, Type::BOOL, node.span))
            }
            (ExprKind::Logical { is_and, right, .. }, Link::Branch { more, end, slot, .. }) => {
                self.body.store(slot.clone(), left_value.clone(), node.span);
                let (yes, no) = if *is_and { (more, end) } else { (end, more) };
                self.body.branch(left_value, yes, no);
                self.body.place(more);
                let right = self.value(right)?;
                self.body.store(slot.clone(), right, node.span);
                self.body.jump(end);
                self.body.place(end);
                Ok(self.body.load(slot, &Type::BOOL, node.span))
            }
            _ => Err(self.broken("a link of a chain is not an operator")),
        }
    }

    fn if_expression(
        &mut self,
        expr: &Expr,
        branches: &[(Expr, Block)],
        otherwise: Option<&Block>,
    ) -> Result<Option<Operand>> {
        let mut slot = None;
        let mut ends: Vec<BlockId> = vec![];
        let mut rest = branches;
        let last = loop {
            let Some(((condition, then), more)) = rest.split_first() else {
                break match otherwise {
                    Some(block) => self.block(block)?,
                    None => None,
                };
            };
            // The span of an `else if` starts at its condition.
            let start = if ends.is_empty() { expr.span.start } else { condition.span.start };
            let span = Span { start, ..expr.span };
            let plain = otherwise.filter(|_| more.is_empty() && expr.ty != Type::Unit);
            if let (Some(yes), Some(no)) = (simple_value(then), plain.and_then(simple_value)) {
                let condition = self.value(condition)?;
                let yes = self.value(yes)?;
                let no = self.value(no)?;
                let kind = InstKind::Select(condition, yes, no);
                break Some(self.body.emit(kind, expr.ty.clone(), span));
            }
            let [yes, other, end] = self.body.blocks("if", ["then", "else", "end"]);
            if ends.is_empty() && expr.ty != Type::Unit {
                slot = Some(self.body.slot("if", expr.ty.clone()));
            }
            let end = match ends.first() {
                Some(first) if branches.len() > MOST_NESTED => *first,
                _ => {
                    ends.push(end);
                    end
                }
            };
            let has_else = !more.is_empty() || otherwise.is_some();
            let no = if has_else { other } else { end };
            self.condition(condition, yes, no)?;
            self.body.place(yes);
            let value = self.block(then)?;
            self.leave(&slot, value, expr, span, end)?;
            if !has_else {
                break None;
            }
            self.body.place(no);
            if !self.body.is_live() {
                break None;
            }
            rest = more;
        };
        let Some(end) = ends.pop() else { return Ok(last) };
        self.leave(&slot, last, expr, expr.span, end)?;
        self.body.place(end);
        for end in ends.into_iter().rev() {
            self.body.jump(end);
            self.body.place(end);
        }
        Ok(slot.map(|slot| self.body.load(slot, &expr.ty, expr.span)))
    }

    /// Ends a branch of an `if` with its value, if its end is reachable.
    fn leave(
        &mut self,
        slot: &Option<Operand>,
        value: Option<Operand>,
        expr: &Expr,
        span: Span,
        end: BlockId,
    ) -> Result<()> {
        match (slot, value) {
            (Some(slot), Some(value)) => self.body.store(slot.clone(), value, span),
            (Some(_), None) => drop(self.placeholder(&expr.ty)?),
            (None, _) => {}
        }
        self.body.jump(end);
        Ok(())
    }

    fn call(
        &mut self,
        expr: &Expr,
        callee: FunctionId,
        arguments: &[Expr],
    ) -> Result<Option<Operand>> {
        let mut values = self.values(arguments)?;
        let Some(target) = self.program.targets.get(callee.0 as usize) else {
            return Err(self.broken("the called function does not exist"));
        };
        if target.kernel.is_some() {
            return Err(self.broken("the call target is a kernel"));
        }
        let function = target.function;
        if target.takes_geometry {
            values.insert(0, self.geometry()?);
        }
        let kind = InstKind::Call { function, arguments: values };
        let value = self.body.emit(kind, expr.ty.clone(), expr.span);
        Ok((expr.ty != Type::Unit).then_some(value))
    }
}

/// How many branches of a chain of `else if` may end in blocks of their own, inside those before: libNVVM computes both sides of a branch that
/// joins only these two. ptxas has convergence barriers for only 12 blocks that lanes wait in at a time, so longer chains end in one block.
const MOST_NESTED: usize = 8;

/// The value of a block that consists only of a value worth speculating.
fn simple_value(block: &Block) -> Option<&Expr> {
    let value = block.value.as_deref().filter(|_| block.statements.is_empty())?;
    // Such a value may be nested in blocks.
    let value = match &value.kind {
        ExprKind::Block(inner) => simple_value(inner)?,
        _ => value,
    };
    is_worth_speculation(value).then_some(value)
}
