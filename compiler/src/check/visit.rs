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
    let mut expr = expr;
    let mut rights = vec![];
    while let ExprKind::Binary(_, left, right) | ExprKind::Logical { left, right, .. } = &expr.kind
    {
        visit(Node::Expr(expr));
        rights.push(&**right);
        expr = left;
    }
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
    for right in rights.into_iter().rev() {
        visit_expr(right, visit);
    }
}
