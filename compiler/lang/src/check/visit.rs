//! Walks over the typed tree.

use super::tree::{Block, Expr, ExprKind, LocalId, Statement, StatementKind, StreamExpr};
use crate::types::Type;

/// The local variable that a place is a part of, if it is.
pub(crate) fn local_of_place(place: &Expr) -> Option<LocalId> {
    match &place.kind {
        ExprKind::Local(local) => Some(*local),
        ExprKind::Field { base, .. } => local_of_place(base),
        ExprKind::Index { base, .. } if matches!(base.ty, Type::Array(..)) => local_of_place(base),
        _ => None,
    }
}

/// The operands of `a + b + …`, from left to right: operators stand to any number in a row, so that nothing may go
/// down their left sides by recursion. `link` gives the operands of an operator that belongs to the row.
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

/// The first operand of a row of operators, and for each of these, from the left on, it and its right operand. A row
/// ends where `&&` and `||` begin or end.
pub(crate) fn row(expr: &Expr) -> (&Expr, Vec<(&Expr, &Expr)>) {
    let is_logical = matches!(expr.kind, ExprKind::Logical { .. });
    operands(expr, |expr| match &expr.kind {
        ExprKind::Binary(_, left, right) if !is_logical => Some((left, right)),
        ExprKind::Logical { left, right, .. } if is_logical => Some((left, right)),
        _ => None,
    })
}

/// As [`row`], with `&&` and `||` among the others.
pub(crate) fn mixed_row(expr: &Expr) -> (&Expr, Vec<(&Expr, &Expr)>) {
    operands(expr, |expr| match &expr.kind {
        ExprKind::Binary(_, left, right) | ExprKind::Logical { left, right, .. } => {
            Some((left, right))
        }
        _ => None,
    })
}

/// What [`visit_block`] shows.
pub(crate) enum Node<'t> {
    /// A statement.
    Statement(&'t Statement),
    /// An expression.
    Expr(&'t Expr),
}

/// Calls `visit` with every statement and expression in a block, the outer ones first.
pub(crate) fn visit_block<'t>(block: &'t Block, visit: &mut dyn FnMut(Node<'t>)) {
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
    match &expr.kind {
        ExprKind::Binary(..) | ExprKind::Logical { .. } => {}
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
        | ExprKind::ArrayRepeat(operand) => visit_expr(operand, visit),
        ExprKind::Index { base, index } => {
            visit_expr(base, visit);
            visit_expr(index, visit);
        }
        ExprKind::If { branches, otherwise } => {
            for (condition, then) in branches {
                visit_expr(condition, visit);
                visit_block(then, visit);
            }
            otherwise.iter().for_each(|block| visit_block(block, visit));
        }
        ExprKind::Block(block) => visit_block(block, visit),
        ExprKind::Call { arguments: parts, .. }
        | ExprKind::CallExtern { arguments: parts, .. }
        | ExprKind::Builtin { arguments: parts, .. }
        | ExprKind::Aggregate(parts)
        | ExprKind::Array(parts) => parts.iter().for_each(|part| visit_expr(part, visit)),
        ExprKind::Launch(launch) => {
            visit_expr(&launch.grid, visit);
            visit_expr(&launch.block, visit);
            launch.shared.iter().for_each(|shared| visit_expr(shared, visit));
            if let StreamExpr::Value(stream) = &launch.stream {
                visit_expr(stream, visit);
            }
            launch.arguments.iter().for_each(|argument| visit_expr(argument, visit));
        }
    }
    links.into_iter().for_each(|(_, right)| visit_expr(right, visit));
}
