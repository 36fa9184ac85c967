//! Statements.

use super::blocks::Want;
use super::body::{Body, LoopFrame, Meaning, Origin};
use super::mismatch::{Why, is_number};
use super::tree::{
    BinaryOp, Declared, Expr, ExprKind, Local, SharedId, Statement, StatementKind, Unroll,
};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::Type;

/// The maximum for `#[unroll(n)]`: code size is proportional to it.
const MAX_UNROLL: i128 = 1024;

impl<'a> Body<'_, 'a> {
    /// A statement; `None` for one that only declares, or is erroneous.
    pub(super) fn statement(&mut self, statement: &'a ast::Statement) -> Option<Statement> {
        let kind = self.statement_kind(statement)?;
        Some(Statement { kind, span: statement.span })
    }

    fn statement_kind(&mut self, statement: &'a ast::Statement) -> Option<StatementKind> {
        let span = statement.span;
        match &statement.kind {
            ast::StatementKind::Let { mutable, name, ty, value } => {
                self.let_statement(*mutable, *name, ty.as_ref(), value.as_ref())
            }
            ast::StatementKind::Shared { name, ty } => {
                self.shared_statement(*name, ty, span);
                None
            }
            ast::StatementKind::DynamicShared { name, ty } => {
                self.dynamic_shared_statement(*name, ty, span);
                None
            }
            ast::StatementKind::Assign { place, op, op_span, value } => {
                self.assignment(place, *op, *op_span, value)
            }
            ast::StatementKind::Expr { value, semicolon } => {
                self.expression_statement(value, *semicolon)
            }
            ast::StatementKind::Loop(item) => self.loop_statement(item),
            ast::StatementKind::Jump { is_break, label } => self.jump(*is_break, *label, span),
            ast::StatementKind::Return(value) => self.return_statement(value.as_ref(), span),
        }
    }

    fn expression_statement(
        &mut self,
        value: &'a ast::Expr,
        semicolon: bool,
    ) -> Option<StatementKind> {
        let is_block = matches!(value.kind, ast::ExprKind::If { .. } | ast::ExprKind::Block(_));
        let value = match is_block {
            true if semicolon => self.block_like(value, Want::Infer(None)),
            // In the middle of a block the value would be lost.
            true => self.block_like(value, Want::Need(&Type::Unit, Why::Nothing)),
            false => self.infer(value, None),
        };
        value.map(StatementKind::Expr)
    }

    fn let_statement(
        &mut self,
        mutable: bool,
        name: ast::Name,
        ty: Option<&'a ast::TypeExpr>,
        value: Option<&'a ast::Expr>,
    ) -> Option<StatementKind> {
        let written = ty.map(|ty| (self.cx.resolve_type(ty), ty.span));
        let checked = value.map(|value| match &written {
            Some((Some(ty), at)) => self.need(value, ty, Why::Type(*at)),
            _ => self.infer(value, None),
        });
        let ty = match (&written, &checked) {
            (Some((ty, _)), _) => ty.clone(),
            (None, Some(value)) => value.as_ref().and_then(|value| self.type_of_value(value)),
            (None, None) => {
                let message = format!("the type of `{}` is not known", self.cx.text(name));
                let error = Diagnostic::error(ids::MISSING_TYPE, name.span, message);
                self.cx.report(error.hint("write its type after `:`, or initialise it"));
                None
            }
        };
        let is_wrong = matches!(checked, Some(None)) || ty.is_none();
        let points_to = checked.as_ref().and_then(|v| v.as_ref()).and_then(|v| self.points_to(v));
        let is_unset = checked.is_none();
        let default = checked.iter().flatten().map(|value| value.span);
        let default = default
            .filter(|_| written.is_none())
            .find(|span| is_number(self.cx.sources.text(*span)));
        let last = value.map(|value| value.span).or(written.as_ref().map(|(_, at)| *at));
        let scope = Span { start: last.unwrap_or(name.span).end, end: self.block_end, ..name.span };
        let local = self.declare_local(name, ty, mutable, Origin::Let, scope);
        let loops = self.loops.len();
        if let Some(variable) = self.variable_mut(local) {
            variable.loops = loops;
            variable.points_to = points_to;
            variable.is_unset = is_unset;
            variable.default = default;
        }
        (!is_wrong).then(|| StatementKind::Let { local, value: checked.flatten() })
    }

    /// The type of a variable initialised with a value.
    fn type_of_value(&mut self, value: &Expr) -> Option<Type> {
        if value.ty == Type::Unit {
            let message = "this has no value to store in the variable";
            let error = Diagnostic::error(ids::NOT_A_VALUE, value.span, message);
            self.cx.report(match value.kind {
                ExprKind::Launch(_) => error.hint("`try launch` returns the launch's status"),
                _ => error,
            });
            return None;
        }
        Some(value.ty.clone())
    }

    fn shared_statement(&mut self, name: ast::Name, ty: &'a ast::TypeExpr, span: Span) {
        self.check_shared_place(span);
        let ty = self.cx.resolve_type(ty);
        let id = SharedId(self.shared.len() as u32);
        let text = self.cx.text(name).to_string();
        let local = Local {
            name: text,
            ty: ty.clone().unwrap_or(Type::Unit),
            span: name.span,
            scope: Span { start: name.span.end, end: self.block_end, ..name.span },
            declared: Declared::Shared,
        };
        self.shared.push(local);
        self.declare(name, Meaning::Shared(id), ty);
    }

    fn dynamic_shared_statement(&mut self, name: ast::Name, ty: &'a ast::TypeExpr, span: Span) {
        self.check_shared_place(span);
        let element = match &ty.kind {
            ast::TypeExprKind::Slice(element) => self.cx.resolve_type(element),
            ast::TypeExprKind::Error => None,
            _ => {
                let message = "the launch determines the length of `dynamic shared` memory";
                let error = Diagnostic::error(ids::INVALID_TYPE, ty.span, message);
                self.cx.report(error.hint("write `[T]`, or remove `dynamic`"));
                None
            }
        };
        self.declare(name, Meaning::DynamicShared, element);
    }

    fn check_shared_place(&mut self, span: Span) {
        if self.block_depth > 1 {
            let message = "`shared` memory must be declared in the outermost block of a function";
            let error = Diagnostic::error(ids::MISPLACED_SHARED, span, message);
            self.cx.report(
                error.note("it exists once per block of threads, whichever threads get here"),
            );
        }
    }

    fn assignment(
        &mut self,
        place: &'a ast::Expr,
        op: Option<BinaryOp>,
        op_span: Span,
        value: &'a ast::Expr,
    ) -> Option<StatementKind> {
        let place = self.infer(place, None);
        let Some(place) = place else {
            self.infer(value, None);
            return None;
        };
        let first = if op.is_none() { self.unset_variable(&place) } else { None };
        self.forget_pointed(&place);
        let assignable = first.map_or_else(|| self.check_assignable(&place), |_| Some(()));
        let Some(op) = op else {
            let value = self.need(value, &place.ty, Why::Same(place.span))?;
            assignable?;
            if let Some(id) = first {
                let points_to = self.points_to(&value);
                if let Some(variable) = self.variable_mut(id) {
                    variable.points_to = variable.points_to.or(points_to);
                }
            }
            return Some(StatementKind::Assign { place, op: None, value });
        };
        let hint = place.ty.as_scalar().map(Type::Scalar);
        let hint = hint.filter(|_| !matches!(op, BinaryOp::Shl | BinaryOp::Shr));
        let value = self.infer(value, hint.as_ref())?;
        // The operator decides whether the types are compatible; its result is for run time.
        let variable = match place.kind {
            ExprKind::Local(id) => id,
            _ => super::tree::LocalId(0),
        };
        let left = Expr { kind: ExprKind::Local(variable), ty: place.ty.clone(), span: place.span };
        let value_span = value.span;
        let combined = self.combine(op, op_span, left, value, place.span.to(value_span))?;
        let ExprKind::Binary(_, _, value) = combined.kind else { return None };
        assignable?;
        if combined.ty != place.ty {
            let result = Expr { kind: ExprKind::Bool(false), ty: combined.ty, span: value_span };
            self.mismatch(&result, &place.ty, Why::Same(place.span));
            return None;
        }
        Some(StatementKind::Assign { place, op: Some(op), value: *value })
    }

    fn return_statement(
        &mut self,
        value: Option<&'a ast::Expr>,
        span: Span,
    ) -> Option<StatementKind> {
        let result = self.result.clone();
        let why = Why::Result(self.result_span);
        let value = match (value, &result) {
            (None, None) => None,
            (None, Some(Type::Unit)) => Some(None),
            (None, Some(ty)) => {
                let message = format!("`return` without a value; expected {}", self.cx.show(ty));
                let error = Diagnostic::error(ids::TYPE_MISMATCH, span, message);
                self.cx.report(error.label(self.result_span, "the function returns this"));
                None
            }
            (Some(value), None) => {
                self.infer(value, None);
                None
            }
            (Some(value), Some(Type::Unit)) => {
                self.infer(value, None);
                let message = "this function returns no value";
                let error = Diagnostic::error(ids::TYPE_MISMATCH, value.span, message);
                self.cx.report(error.label(self.result_span, "declared without `->`"));
                None
            }
            (Some(value), Some(ty)) => self.need(value, ty, why).map(Some),
        };
        self.alive = false;
        value.map(StatementKind::Return)
    }

    fn jump(
        &mut self,
        is_break: bool,
        label: Option<ast::Name>,
        span: Span,
    ) -> Option<StatementKind> {
        let word = if is_break { "break" } else { "continue" };
        let reached = std::mem::replace(&mut self.alive, false);
        let depth = match label {
            None => 0,
            Some(label) => {
                let text = self.cx.text(label);
                let found = self.loops.iter().rev().position(|frame| frame.label == Some(text));
                match found {
                    Some(depth) => depth,
                    None => {
                        let message = format!("no loop around this is labelled `{text}`");
                        let mut error = Diagnostic::error(ids::UNKNOWN_LABEL, label.span, message);
                        let loops = &self.loops;
                        error = self.cx.suggest(error, text, |_| {
                            loops.iter().filter_map(|frame| frame.label).collect()
                        });
                        self.cx.report(error);
                        return None;
                    }
                }
            }
        };
        let innermost = self.loops.len();
        let Some(frame) = innermost.checked_sub(depth + 1).and_then(|at| self.loops.get_mut(at))
        else {
            let message = format!("`{word}` outside a loop");
            self.cx.report(Diagnostic::error(ids::BREAK_OUTSIDE_LOOP, span, message));
            return None;
        };
        frame.left |= is_break && reached;
        frame.label_used |= label.is_some();
        let depth = depth as u32;
        Some(match is_break {
            true => StatementKind::Break { depth },
            false => StatementKind::Continue { depth },
        })
    }

    fn loop_statement(&mut self, item: &'a ast::Loop) -> Option<StatementKind> {
        let label = item.label.map(|label| self.cx.text(label));
        let unroll = item.unroll.as_ref().and_then(|attribute| self.unroll(attribute));
        match &item.head {
            ast::LoopHead::Loop => {
                let (body, left) = self.loop_body(item, label);
                self.alive &= left;
                Some(StatementKind::Loop { body: body?, unroll })
            }
            ast::LoopHead::While(condition) => {
                let condition = self.need(condition, &Type::BOOL, Why::Nothing);
                let is_false = matches!(condition, Some(Expr { kind: ExprKind::Bool(false), .. }));
                if is_false && self.discards() {
                    return None;
                }
                let (body, _) = self.loop_body(item, label);
                Some(StatementKind::While { condition: condition?, body: body?, unroll })
            }
            ast::LoopHead::For { name, range } => self.for_loop(item, *name, range, label, unroll),
        }
    }

    /// `#[unroll]` or `#[unroll(n)]`
    fn unroll(&mut self, attribute: &'a ast::Attribute) -> Option<Unroll> {
        let count = match &attribute.arguments[..] {
            [] => return Some(Unroll::Full),
            [count] => count,
            more => {
                let message = format!("`unroll` takes one value or none, not {}", more.len());
                let error = Diagnostic::error(ids::INVALID_UNROLL, attribute.span, message);
                self.cx.report(error.hint("`#[unroll(4)]`: four iterations at a time"));
                return None;
            }
        };
        let value = self.cx.const_value(count, &Type::U32, Why::Nothing)?;
        match value.kind {
            ExprKind::Int(value) if (1..=MAX_UNROLL).contains(&value) => {
                Some(Unroll::Count(value as u32))
            }
            _ => {
                let message =
                    format!("the number of iterations must be between 1 and {MAX_UNROLL}");
                self.cx.report(Diagnostic::error(ids::INVALID_UNROLL, count.span, message));
                None
            }
        }
    }

    /// The body of a loop, and whether a `break` exits the loop. Reachability is restored afterwards, because
    /// the loop may not run at all.
    fn loop_body(
        &mut self,
        item: &'a ast::Loop,
        label: Option<&'a str>,
    ) -> (Option<super::tree::Block>, bool) {
        let alive = self.alive;
        self.loops.push(LoopFrame { label, left: false, label_used: false });
        let body = self.unit_block(&item.body);
        let frame = self.loops.pop();
        let left = frame.as_ref().is_some_and(|frame| frame.left);
        if let (Some(label), false) = (item.label, frame.is_none_or(|frame| frame.label_used)) {
            self.unused_label(label);
        }
        self.alive = alive;
        (body, left)
    }

    fn unused_label(&mut self, label: ast::Name) {
        let text = self.cx.text(label);
        if !text.starts_with("'_") {
            let message = format!("no `break` or `continue` uses `{text}`");
            let warning = Diagnostic::warning(ids::UNUSED_LABEL, label.span, message);
            self.cx.warnings.push(warning.hint("remove it"));
        }
    }

    /// `for name in start..end` or `for name in (start..end).step(step)`
    fn for_loop(
        &mut self,
        item: &'a ast::Loop,
        name: ast::Name,
        range: &'a ast::Expr,
        label: Option<&'a str>,
        unroll: Option<Unroll>,
    ) -> Option<StatementKind> {
        let bounds = self.range(range);
        let ty = bounds.as_ref().map(|(start, ..)| start.ty.clone());
        let scope = self.begin_scope();
        let local = self.declare_local(name, ty, false, Origin::Loop, item.body.span);
        let numbers = bounds.as_ref().map(|(start, end, _)| [start.span, end.span]);
        let numbers =
            numbers.filter(|all| all.iter().all(|span| is_number(self.cx.sources.text(*span))));
        if let Some(variable) = self.variable_mut(local) {
            variable.default = numbers.map(|[start, end]| Span { end: end.end, ..start });
        }
        let (body, _) = self.loop_body(item, label);
        self.end_scope(scope);
        let (start, end, step) = bounds?;
        self.empty_range(&start, &end, step.as_ref());
        let (start, end, step) = (Box::new(start), Box::new(end), step.map(Box::new));
        Some(StatementKind::For { local, start, end, step, body: body?, unroll })
    }

    /// Warns of a loop that seems to count down. Of numbers only: a named constant may be too small for a loop on purpose.
    fn empty_range(&mut self, start: &Expr, end: &Expr, step: Option<&Expr>) {
        let is_name = |text: &str| text.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let constant = |expr: &Expr| match expr.kind {
            ExprKind::Int(value) if !is_name(self.cx.sources.text(expr.span)) => Some(value),
            _ => None,
        };
        let hint = "to count down from `n - 1`, write `for i in 0..n` and use `n - 1 - i`";
        if let (Some(first), Some(behind)) = (constant(start), constant(end))
            && first > behind
        {
            let message = format!("this loop never runs: {first} is greater than {behind}");
            let span = Span { end: end.span.end, ..start.span };
            let warning = Diagnostic::warning(ids::EMPTY_RANGE, span, message);
            self.cx.warnings.push(warning.hint(hint));
        } else if let Some(step) = step
            && constant(step).is_some_and(|number| number <= 0)
        {
            let message = "a loop ends after one iteration if its step is not positive";
            let warning = Diagnostic::warning(ids::EMPTY_RANGE, step.span, message);
            self.cx.warnings.push(warning.hint(hint));
        }
    }

    /// Start, end and step, all of the same integer type.
    fn range(&mut self, range: &'a ast::Expr) -> Option<(Expr, Expr, Option<Expr>)> {
        let (range, step) = match &range.kind {
            ast::ExprKind::MethodCall { base, name, arguments } => match &base.kind {
                ast::ExprKind::Range(..) => match (self.cx.text(*name), &arguments[..]) {
                    ("step", [step]) => (&**base, Some(step)),
                    _ => {
                        self.unknown_method(*name);
                        return None;
                    }
                },
                _ => (range, None),
            },
            _ => (range, None),
        };
        let ast::ExprKind::Range(start, end) = &range.kind else {
            if let Some(value) = self.infer(range, None) {
                let message = format!("expected a range, found {}", self.cx.show(&value.ty));
                let error = Diagnostic::error(ids::TYPE_MISMATCH, range.span, message);
                self.cx.report(error.hint("write `0..n`"));
            }
            return None;
        };
        let parts: Vec<&'a ast::Expr> = [&**start, &**end].into_iter().chain(step).collect();
        // A part with a type of its own determines the type of all.
        let first = parts.iter().position(|part| part.literal == ast::Literal::No).unwrap_or(0);
        let lead = self.infer(parts[first], None)?;
        if !lead.ty.as_scalar().is_some_and(|scalar| scalar.is_integer()) {
            let message =
                format!("a range must consist of integers, not of {}", self.cx.show(&lead.ty));
            self.cx.report(Diagnostic::error(ids::OPERAND_TYPE, lead.span, message));
            return None;
        }
        let (ty, at) = (lead.ty.clone(), lead.span);
        let mut lead = Some(lead);
        let mut values = vec![];
        for (index, part) in parts.iter().enumerate() {
            values.push(match index == first {
                true => lead.take(),
                false => self.need(part, &ty, Why::Same(at)),
            });
        }
        let mut values = values.into_iter();
        let (start, end) = (values.next()??, values.next()??);
        match values.next() {
            None => Some((start, end, None)),
            Some(step) => Some((start, end, Some(step?))),
        }
    }
}
