//! Expressions that are never zero, as far as their form tells: divisors that need no test.

use std::collections::BTreeSet;

use super::arithmetic::wrap;
use crate::builtins::{Builtin, MathOp};
use crate::check::tree::{
    BinaryOp, Declared, Expr, ExprKind, Function, GeometryField, LocalId, Statement, StatementKind,
};
use crate::check::visit::{Node, local_of_place, visit_block};
use crate::types::Scalar;

/// The variables of a function that are never zero: their value is set once, to an expression that is never zero, and
/// nothing has their address.
pub(super) fn variables(function: &Function) -> BTreeSet<LocalId> {
    let mut found = BTreeSet::new();
    let mut exposed = BTreeSet::new();
    visit_block(&function.body, &mut |node| match node {
        Node::Statement(Statement {
            kind: StatementKind::Let { local, value: Some(value) },
            ..
        }) => {
            let declared = function.locals.get(local.0 as usize).map(|local| local.declared);
            if declared == Some(Declared::Let { mutable: false }) && is_nonzero(value, &found) {
                found.insert(*local);
            }
        }
        Node::Expr(Expr { kind: ExprKind::AddressOf(place), .. }) => {
            exposed.extend(local_of_place(place));
        }
        _ => {}
    });
    &found - &exposed
}

/// Whether an integer expression is never zero, given the variables that are not.
pub(super) fn is_nonzero(expr: &Expr, variables: &BTreeSet<LocalId>) -> bool {
    let Some(scalar) = expr.ty.as_scalar().filter(|scalar| scalar.is_integer()) else {
        return false;
    };
    let is_positive = |expr: &Expr| match &expr.kind {
        ExprKind::Int(value) => wrap(scalar, *value) > 0,
        _ => scalar.is_unsigned() && is_nonzero(expr, variables),
    };
    match &expr.kind {
        ExprKind::Int(value) => wrap(scalar, *value) != 0,
        ExprKind::Local(local) => variables.contains(local),
        // A grid has at least one block, and a block one thread.
        ExprKind::Field { base, .. } => matches!(
            base.kind,
            ExprKind::Geometry(GeometryField::BlockDim | GeometryField::GridDim)
        ),
        ExprKind::Cast(from) => {
            let fits = |from: Scalar| from.is_integer() && from.bits() <= scalar.bits();
            from.ty.as_scalar().is_some_and(fits) && is_nonzero(from, variables)
        }
        ExprKind::Binary(BinaryOp::Or, ..) => {
            let mut node = expr;
            while let ExprKind::Binary(BinaryOp::Or, left, right) = &node.kind {
                if is_nonzero(right, variables) {
                    return true;
                }
                node = left;
            }
            is_nonzero(node, variables)
        }
        ExprKind::Builtin { builtin: Builtin::Math(MathOp::Max), arguments, .. } => {
            arguments.iter().any(is_positive)
        }
        ExprKind::Builtin { builtin: Builtin::Math(MathOp::Min), arguments, .. } => {
            arguments.iter().all(is_positive)
        }
        _ => false,
    }
}
