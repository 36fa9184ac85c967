//! How often the body of a `while` can run at most.

use crate::check::tree::{BinaryOp, Block, Expr, ExprKind, StatementKind};
use crate::types::Type;

/// A loop with no more rounds than this has few. Unrolling by as many would leave only its remainder to run.
const FEW: i128 = 4;

/// Whether a loop counts with an unsigned variable, in steps so large that it has few rounds, like
/// `while have <= 32 { …; have += 32; }`.
pub(super) fn has_few(condition: &Expr, body: &Block) -> bool {
    let ExprKind::Binary(op @ (BinaryOp::Lt | BinaryOp::Le), counter, end) = &condition.kind else {
        return false;
    };
    let ExprKind::Int(end) = end.kind else { return false };
    let is_unsigned =
        matches!(counter.ty, Type::Scalar(scalar) if scalar.is_integer() && !scalar.is_signed());
    let last = if *op == BinaryOp::Lt { end - 1 } else { end };
    let steps_far = |step: i128| step > 0 && last / step < FEW;
    is_unsigned
        && body.statements.iter().any(|statement| match &statement.kind {
            StatementKind::Assign { place, op: Some(BinaryOp::Add), value } => {
                matches!(value.kind, ExprKind::Int(step) if steps_far(step))
                    && is_same_place(place, counter)
            }
            _ => false,
        })
}

/// Whether two places without computed indices are the same.
fn is_same_place(one: &Expr, other: &Expr) -> bool {
    match (&one.kind, &other.kind) {
        (ExprKind::Local(one), ExprKind::Local(other)) => one == other,
        (ExprKind::Deref(one), ExprKind::Deref(other)) => is_same_place(one, other),
        (ExprKind::Field { base: one, index: a }, ExprKind::Field { base: other, index: b }) => {
            a == b && is_same_place(one, other)
        }
        _ => false,
    }
}
