//! Finds unreachable code.

use super::super::tree::{Block, Declared, Expr, ExprKind, Function, Statement, StatementKind};
use super::super::visit::{Child, mixed_row};
use super::Found;
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;

pub(super) fn analyse(function: &Function, found: &mut Found) {
    let mut walk = Reach { function, found, loops: vec![] };
    walk.block(&function.body);
}

struct Reach<'t, 'f> {
    function: &'t Function,
    found: &'f mut Found,
    /// For each enclosing loop, whether a `break` exits it.
    loops: Vec<bool>,
}

/// The place where control flow stops, if it does.
type End = Option<Stop>;

#[derive(Clone, Copy)]
struct Stop {
    /// The code after which nothing runs.
    at: Span,
    /// Whether the unreachable code is reported already.
    is_reported: bool,
}

impl Stop {
    fn at(at: Span) -> Self {
        Stop { at, is_reported: false }
    }
}

impl<'t> Reach<'t, '_> {
    /// Walks over the reachable code of a block. Returns where it stops, if its end is unreachable.
    fn block(&mut self, block: &'t Block) -> End {
        let mut statements = block.statements.iter();
        let mut end = None;
        for statement in statements.by_ref() {
            end = self.statement(statement);
            if end.is_some() {
                break;
            }
        }
        let Some(mut stop) = end else {
            return block.value.as_deref().and_then(|value| self.expr(value));
        };
        let written = |statement: &&Statement| match &statement.kind {
            StatementKind::Let { local, .. } => self.is_written(*local),
            _ => true,
        };
        let next = statements.find(written).map(|statement| statement.span);
        let value = block.value.as_deref().filter(|value| match &value.kind {
            ExprKind::Local(local) => self.is_written(*local),
            _ => true,
        });
        if let (false, Some(span)) = (stop.is_reported, next.or(value.map(|value| value.span))) {
            stop.is_reported = true;
            let warning = Diagnostic::warning(ids::UNREACHABLE_CODE, span, "this never runs");
            self.found.push(warning.label(stop.at, "nothing after this is reachable"));
        }
        Some(stop)
    }

    /// Whether a variable is from the source, not added by the checker.
    fn is_written(&self, local: super::super::tree::LocalId) -> bool {
        self.function.locals[local.0 as usize].declared != Declared::Checker
    }

    fn statement(&mut self, statement: &'t Statement) -> End {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Let { value, .. } => value.as_ref().and_then(|value| self.expr(value)),
            StatementKind::Assign { place, value, .. } => self.all([place, value]),
            StatementKind::Expr(value) => self.expr(value).map(|stop| Stop { at: span, ..stop }),
            StatementKind::While { condition, body, .. } => self.all([condition]).or_else(|| {
                self.loop_body(body);
                None
            }),
            StatementKind::Loop { body, .. } => (!self.loop_body(body)).then_some(Stop::at(span)),
            StatementKind::For { start, end, step, body, .. } => {
                self.all([start, end].into_iter().chain(step).map(|e| &**e)).or_else(|| {
                    self.loop_body(body);
                    None
                })
            }
            StatementKind::Break { depth } => {
                let at = self.loops.len().checked_sub(*depth as usize + 1);
                if let Some(left) = at.and_then(|at| self.loops.get_mut(at)) {
                    *left = true;
                }
                Some(Stop::at(span))
            }
            StatementKind::Continue { .. } => Some(Stop::at(span)),
            StatementKind::Return(value) => {
                value.as_ref().and_then(|value| self.expr(value)).or(Some(Stop::at(span)))
            }
        }
    }

    /// Returns whether a `break` exits the loop.
    fn loop_body(&mut self, body: &'t Block) -> bool {
        self.loops.push(false);
        self.block(body);
        self.loops.pop().unwrap_or(false)
    }

    /// Walks over expressions up to the one that stops control flow.
    fn all(&mut self, parts: impl IntoIterator<Item = &'t Expr>) -> End {
        parts.into_iter().find_map(|part| self.expr(part))
    }

    /// Operators, from left to right. The right operand of `&&` or `||` may not be evaluated.
    fn chain(&mut self, expr: &'t Expr) -> End {
        let (first, links) = mixed_row(expr);
        let mut end = self.expr(first);
        for (operator, right) in links {
            if end.is_some() {
                break;
            }
            let always = matches!(operator.kind, ExprKind::Binary(..));
            end = self.expr(right).filter(|_| always);
        }
        end
    }

    /// An `if`: stops control flow if all its branches do.
    fn branches(&mut self, branches: &'t [(Expr, Block)], otherwise: Option<&'t Block>) -> End {
        let mut goes_on = false;
        let mut is_reported = false;
        for (condition, then) in branches {
            if let Some(stop) = self.expr(condition) {
                return Some(stop).filter(|_| !goes_on);
            }
            let end = self.block(then);
            goes_on |= end.is_none();
            is_reported |= end.is_some_and(|stop| stop.is_reported);
        }
        let end = otherwise.and_then(|block| self.block(block));
        goes_on |= end.is_none();
        end.filter(|_| !goes_on)
            .map(|stop| Stop { is_reported: is_reported || stop.is_reported, ..stop })
    }

    fn expr(&mut self, expr: &'t Expr) -> End {
        match &expr.kind {
            ExprKind::Binary(..) | ExprKind::Logical { .. } => self.chain(expr),
            ExprKind::If { branches, otherwise } => self.branches(branches, otherwise.as_ref()),
            ExprKind::Builtin { builtin, .. } => {
                self.children(expr).or_else(|| builtin.ends().then_some(Stop::at(expr.span)))
            }
            _ => self.children(expr),
        }
    }

    /// Walks over the parts of an expression up to the one that stops control flow.
    fn children(&mut self, expr: &'t Expr) -> End {
        let mut end = None;
        expr.for_each_child(|child| {
            end = end.or_else(|| match child {
                Child::Expr(part) => self.expr(part),
                Child::Block(block) => self.block(block),
            });
        });
        end
    }
}
