//! Traversal of the typed tree.

use super::tree::{Block, Expr, ExprKind, LocalId, Statement, StatementKind, StreamExpr};
use crate::types::Type;

/// The local variable that contains a place, if any.
pub(crate) fn local_of_place(place: &Expr) -> Option<LocalId> {
    match &place.kind {
        ExprKind::Local(local) => Some(*local),
        ExprKind::Field { base, .. } => local_of_place(base),
        ExprKind::Index { base, .. } if matches!(base.ty, Type::Array(..)) => local_of_place(base),
        _ => None,
    }
}

/// The operands of `a + b + …`, from left to right. Chains of operators can be arbitrarily long, so their
/// left sides must not be walked by recursion. `link` returns the operands of an operator that belongs to the
/// chain.
fn operands<'t>(
    expr: &'t Expr,
    link: impl Fn(&'t Expr) -> Option<(&'t Expr, &'t Expr)>,
) -> (&'t Expr, Vec<(&'t Expr, &'t Expr)>) {
    let mut first = expr;
    let mut links = vec![];
    while let Some((left, right)) = link(first) {
        links.push((first, right));
        first = left;
    }
    links.reverse();
    (first, links)
}

/// The first operand of a chain of operators, then each operator, from left to right, with its right operand.
/// The chain ends where it switches between `&&` or `||` and other operators.
pub(crate) fn row(expr: &Expr) -> (&Expr, Vec<(&Expr, &Expr)>) {
    let is_logical = matches!(expr.kind, ExprKind::Logical { .. });
    operands(expr, |expr| match &expr.kind {
        ExprKind::Binary(_, left, right) if !is_logical => Some((left, right)),
        ExprKind::Logical { left, right, .. } if is_logical => Some((left, right)),
        _ => None,
    })
}

/// As [`row`], but `&&` and `||` do not end the chain.
pub(crate) fn mixed_row(expr: &Expr) -> (&Expr, Vec<(&Expr, &Expr)>) {
    operands(expr, |expr| match &expr.kind {
        ExprKind::Binary(_, left, right) | ExprKind::Logical { left, right, .. } => {
            Some((left, right))
        }
        _ => None,
    })
}

/// A statement or an expression, as visited by [`visit_block`].
#[derive(Clone, Copy, Debug)]
pub enum Node<'t> {
    /// A statement.
    Statement(&'t Statement),
    /// An expression.
    Expr(&'t Expr),
}

/// Calls `visit` with every statement and expression in a block, outer ones first.
pub fn visit_block<'t>(block: &'t Block, visit: &mut dyn FnMut(Node<'t>)) {
    for statement in &block.statements {
        visit(Node::Statement(statement));
        match &statement.kind {
            StatementKind::Let { value, .. } => value.iter().for_each(|e| visit_expr(e, visit)),
            StatementKind::Assign { place, value, .. } => {
                visit_expr(place, visit);
                visit_expr(value, visit);
            }
            StatementKind::Expr(expr) => visit_expr(expr, visit),
            StatementKind::While { condition, body, .. } => {
                visit_expr(condition, visit);
                visit_block(body, visit);
            }
            StatementKind::Loop { body, .. } => visit_block(body, visit),
            StatementKind::For { start, end, step, body, .. } => {
                visit_expr(start, visit);
                visit_expr(end, visit);
                step.iter().for_each(|step| visit_expr(step, visit));
                visit_block(body, visit);
            }
            StatementKind::Break { .. } | StatementKind::Continue { .. } => {}
            StatementKind::Return(value) => value.iter().for_each(|e| visit_expr(e, visit)),
        }
    }
    block.value.iter().for_each(|value| visit_expr(value, visit));
}

fn visit_expr<'t>(expr: &'t Expr, visit: &mut dyn FnMut(Node<'t>)) {
    let (expr, links) = mixed_row(expr);
    links.iter().rev().for_each(|(operator, _)| visit(Node::Expr(operator)));
    visit(Node::Expr(expr));
    expr.for_each_child(|child| match child {
        Child::Expr(expr) => visit_expr(expr, visit),
        Child::Block(block) => visit_block(block, visit),
    });
    links.into_iter().for_each(|(_, right)| visit_expr(right, visit));
}

/// A direct part of an expression.
#[derive(Clone, Copy, Debug)]
pub enum Child<'t> {
    /// An operand, an argument, a condition.
    Expr(&'t Expr),
    /// A block, or a branch of an `if`.
    Block(&'t Block),
}

impl Expr {
    /// Calls `visit` with each direct part of the expression, in evaluation order.
    ///
    /// A chain of operators can have any length, so a recursive walk must handle `Binary` and `Logical`
    /// itself, with a loop down the left sides.
    pub fn for_each_child<'t>(&'t self, mut visit: impl FnMut(Child<'t>)) {
        let mut exprs = |parts: &[&'t Expr]| parts.iter().for_each(|part| visit(Child::Expr(part)));
        match &self.kind {
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Text(_)
            | ExprKind::Local(_)
            | ExprKind::Shared(_)
            | ExprKind::Static(_)
            | ExprKind::DynamicShared
            | ExprKind::Geometry(_) => {}
            ExprKind::Unary(_, operand)
            | ExprKind::Cast(operand)
            | ExprKind::Field { base: operand, .. }
            | ExprKind::Deref(operand)
            | ExprKind::AddressOf(operand)
            | ExprKind::ArrayRepeat(operand) => exprs(&[operand]),
            ExprKind::Binary(_, left, right) | ExprKind::Logical { left, right, .. } => {
                exprs(&[left, right]);
            }
            ExprKind::Index { base, index } => exprs(&[base, index]),
            ExprKind::If { branches, otherwise } => {
                for (condition, then) in branches {
                    visit(Child::Expr(condition));
                    visit(Child::Block(then));
                }
                otherwise.iter().for_each(|block| visit(Child::Block(block)));
            }
            ExprKind::Block(block) => visit(Child::Block(block)),
            ExprKind::Call { arguments: parts, .. }
            | ExprKind::CallExtern { arguments: parts, .. }
            | ExprKind::Builtin { arguments: parts, .. }
            | ExprKind::Aggregate(parts)
            | ExprKind::Array(parts) => parts.iter().for_each(|part| visit(Child::Expr(part))),
            ExprKind::Launch(launch) => {
                exprs(&[&launch.grid, &launch.block]);
                launch.shared.iter().for_each(|shared| exprs(&[shared]));
                if let StreamExpr::Value(stream) = &launch.stream {
                    exprs(&[stream]);
                }
                launch.arguments.iter().for_each(|argument| exprs(&[argument]));
            }
        }
    }
}
