//! Values that are computed and dropped.

use super::super::aggregates::is_pure;
use super::super::tree::{Expr, ExprKind, Function, StatementKind};
use super::super::visit::{Node, visit_block};
use super::Found;
use crate::builtins::Builtin;
use crate::diagnostics::{Diagnostic, ids};
use crate::types::Type;

pub(super) fn analyse(function: &Function, found: &mut Found) {
    visit_block(&function.body, &mut |node| {
        if let Node::Statement(statement) = node
            && let StatementKind::Expr(value) = &statement.kind
        {
            found.extend(dropped(value));
        }
    });
}

fn dropped(value: &Expr) -> Option<Diagnostic> {
    let (message, hint) = match &value.kind {
        _ if value.ty == Type::Unit => return None,
        ExprKind::Launch(launch) if launch.is_try => (
            "the status of this launch is dropped, so nobody learns of it if it fails",
            "look at it, or leave `try` out: the host is told of a plain `launch` that fails",
        ),
        ExprKind::Builtin { builtin: Builtin::Malloc, .. } => (
            "the address of this memory is dropped, so nothing can use or free it",
            "give it to a variable",
        ),
        _ if is_pure(value) => ("this value is computed and dropped", "use it, or remove it"),
        _ => return None,
    };
    Some(Diagnostic::warning(ids::UNUSED_RESULT, value.span, message).hint(hint))
}
