//! Constants, evaluated in the order in which they need each other.

use super::mismatch::Why;
use super::{Context, ValueName};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprKind, Name};

/// How far the walk over a constant is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unseen,
    Open,
    Done,
}

impl<'a> Context<'a> {
    /// Evaluates every constant after those that it uses. A list of open constants stands for the stack
    /// of a recursive walk, so that a chain of any length is fine.
    pub(super) fn evaluate_consts(&mut self) {
        let mut states = vec![State::Unseen; self.consts.len()];
        for root in 0..self.consts.len() {
            if states[root] != State::Unseen {
                continue;
            }
            states[root] = State::Open;
            let mut open = vec![(root, self.consts_in(root))];
            while let Some((at, uses)) = open.last_mut() {
                let at = *at;
                match uses.pop() {
                    None => {
                        self.evaluate_const(at);
                        states[at] = State::Done;
                        open.pop();
                    }
                    Some((used, span)) => match states[used] {
                        State::Done => {}
                        State::Open => self.report_cycle(used, span),
                        State::Unseen => {
                            states[used] = State::Open;
                            open.push((used, self.consts_in(used)));
                        }
                    },
                }
            }
        }
    }

    /// The constants that the value of constant `at` names, the last one first.
    fn consts_in(&self, at: usize) -> Vec<(usize, Span)> {
        let mut uses = vec![];
        for name in names_in(&self.consts[at].item.value) {
            let meaning = self.value(self.text(name), name.span.file);
            if let Some((ValueName::Const(used), _)) = meaning {
                uses.push((used, name.span));
            }
        }
        uses.reverse();
        uses
    }

    fn evaluate_const(&mut self, at: usize) {
        let item = self.consts[at].item;
        let Some(ty) = self.resolve_type(&item.ty) else { return };
        if !Self::is_const_type(&ty) {
            let message = format!("a constant cannot be {}", self.show(&ty));
            let error = Diagnostic::error(ids::INVALID_TYPE, item.ty.span, message);
            self.report(error.note("constants are integers, floats or `bool`"));
            return;
        }
        let value = self.const_value(&item.value, &ty, Why::Type(item.ty.span));
        let entry = &mut self.consts[at];
        entry.ty = Some(ty);
        entry.value = value.map(|value| value.kind);
    }

    fn report_cycle(&mut self, used: usize, span: Span) {
        let name = self.consts[used].item.name;
        let message = format!("the constant `{}` needs its own value", self.text(name));
        let error = Diagnostic::error(ids::RECURSIVE_CONST, span, message);
        self.report(error.label(name.span, "declared here"));
    }
}

/// The names in those parts of an expression that a constant may have, from left to right.
fn names_in(value: &Expr) -> Vec<Name> {
    let mut names = vec![];
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match &value.kind {
            ExprKind::Name(name) => names.push(*name),
            ExprKind::Unary(_, value) | ExprKind::Cast(value, _) => open.push(value),
            ExprKind::Binary { left, right, .. } | ExprKind::Logical { left, right, .. } => {
                open.push(right);
                open.push(left);
            }
            _ => {}
        }
    }
    names
}
