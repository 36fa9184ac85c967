//! Finds values that are computed but not used.

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
            "the status of this launch is dropped, so a failure goes unnoticed",
            "check it, or remove `try`: the failure of a plain `launch` is reported to the host",
        ),
        ExprKind::Builtin { builtin: Builtin::Malloc, .. } => (
            "the address of this memory is dropped, so nothing can use or free it",
            "store it in a variable",
        ),
        _ if is_pure(value) => ("this value is computed but not used", "use it, or remove it"),
        _ => return None,
    };
    Some(Diagnostic::warning(ids::UNUSED_RESULT, value.span, message).hint(hint))
}
