//! Finds useless variables: never read, or `mut` and never changed.

use super::super::tree::{Declared, Expr, ExprKind, Function, Local, StatementKind};
use super::super::visit::{Node, local_of_place, visit_block};
use super::{Found, may_be_unused};
use crate::diagnostics::{Diagnostic, ids};
use crate::types::Type;

/// How a variable is used.
#[derive(Clone, Copy, Default)]
struct Usage {
    /// The number of mentions.
    named: u32,
    /// The number of assignments to it or to a part of it.
    assigned: u32,
    /// The number of assignments to a part of it.
    parts_assigned: u32,
    /// The number of times its address is taken, possibly to write through it.
    addresses: i32,
}

impl Usage {
    fn is_read(self) -> bool {
        self.named > self.assigned
    }
}

/// `changed` tells for each variable whether it is assigned when it may already have a value.
pub(super) fn analyse(function: &Function, changed: &[bool], found: &mut Found) {
    let mut locals = vec![Usage::default(); function.locals.len()];
    let mut shared = vec![Usage::default(); function.shared.len()];
    visit_block(&function.body, &mut |node| match node {
        Node::Expr(expr) => match &expr.kind {
            ExprKind::Local(id) => locals[id.0 as usize].named += 1,
            ExprKind::Shared(id) => shared[id.0 as usize].named += 1,
            ExprKind::AddressOf(place) => {
                if let Some(id) = local_of_place(place) {
                    locals[id.0 as usize].addresses += 1;
                }
            }
            // `&x` where a `*const` is expected.
            ExprKind::Cast(inner) if matches!(expr.ty, Type::Pointer { mutable: false, .. }) => {
                if let ExprKind::AddressOf(place) = &inner.kind
                    && let Some(id) = local_of_place(place)
                {
                    locals[id.0 as usize].addresses -= 1;
                }
            }
            _ => {}
        },
        Node::Statement(statement) => {
            let StatementKind::Assign { place, .. } = &statement.kind else { return };
            if let Some(id) = local_of_place(place) {
                locals[id.0 as usize].assigned += 1;
                let is_part = !matches!(place.kind, ExprKind::Local(_));
                locals[id.0 as usize].parts_assigned += u32::from(is_part);
            } else if let Some(at) = shared_of_place(place) {
                shared[at].assigned += 1;
            }
        }
    });
    for (at, (local, usage)) in function.locals.iter().zip(&locals).enumerate() {
        let changed = changed.get(at).copied().unwrap_or(false);
        found.extend(local_warning(function, local, *usage, changed));
    }
    for (local, usage) in function.shared.iter().zip(&shared) {
        if !usage.is_read() && !may_be_unused(&local.name) {
            let message = format!("the shared memory `{}` is never {}", local.name, verb(*usage));
            let warning = Diagnostic::warning(ids::UNUSED_SHARED, local.span, message);
            found.push(warning.hint("remove it"));
        }
    }
}

/// The verb for how a variable is never used.
fn verb(usage: Usage) -> &'static str {
    if usage.assigned > 0 { "read" } else { "used" }
}

fn local_warning(
    function: &Function,
    local: &Local,
    usage: Usage,
    changed: bool,
) -> Option<Diagnostic> {
    let name = &local.name;
    let (what, mutable) = match local.declared {
        Declared::Let { mutable } => ("variable", mutable),
        Declared::Parameter { mutable } => ("parameter", mutable),
        Declared::Loop => ("variable", false),
        Declared::Shared | Declared::Checker => return None,
    };
    // A kernel's parameters are its interface to its launchers.
    let is_interface = what == "parameter" && function.kernel.is_some();
    if !usage.is_read() && !is_interface {
        if may_be_unused(name) {
            return None;
        }
        let message = format!("the {what} `{name}` is never {}", verb(usage));
        let warning = Diagnostic::warning(ids::UNUSED_VARIABLE, local.span, message);
        return Some(match local.declared {
            Declared::Loop => warning.hint("rename it to `_`"),
            _ => warning.hint(format!("remove it, or rename it to `_{name}` if this is intended")),
        });
    }
    let needs_mut = changed || usage.parts_assigned > 0 || usage.addresses > 0;
    if mutable && !needs_mut {
        let message = format!("`{name}` is never changed");
        let warning = Diagnostic::warning(ids::UNUSED_MUT, local.span, message);
        return Some(warning.hint("remove `mut`"));
    }
    None
}

/// The index of the `shared` variable that contains a place.
fn shared_of_place(place: &Expr) -> Option<usize> {
    match &place.kind {
        ExprKind::Shared(id) => Some(id.0 as usize),
        ExprKind::Field { base, .. } => shared_of_place(base),
        ExprKind::Index { base, .. } if matches!(base.ty, Type::Array(..)) => shared_of_place(base),
        _ => None,
    }
}
