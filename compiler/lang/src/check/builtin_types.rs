//! Built-ins that take a type, and `assert`, whose default message is the source of its condition.

use super::body::Body;
use super::expressions::typed;
use super::mismatch::Why;
use super::tree::{Block, Expr, ExprKind, Statement, StatementKind, UnaryOp};
use crate::builtins::{Builtin, bitcast_supports};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::Type;
use crate::types::layout::type_layout;

impl<'a> Body<'_, 'a> {
    /// The type of `::<T>`, if `builtin` takes one. `None` after an error.
    pub(super) fn type_argument(
        &mut self,
        builtin: Builtin,
        callee: ast::Name,
        generics: Option<&'a ast::Generics>,
        span: Span,
    ) -> Option<Option<Type>> {
        let name = self.cx.text(callee);
        match (builtin.properties().takes_type(), generics) {
            (false, None) => Some(None),
            (false, Some(generics)) => {
                let message = format!("`{name}` takes no type");
                let error = Diagnostic::error(ids::TYPE_ARGUMENT, generics.span, message);
                self.cx.report(error.hint("remove the `::<…>`"));
                None
            }
            (true, None) => {
                let message = format!("`{name}` needs a type");
                let error = Diagnostic::error(ids::TYPE_ARGUMENT, span, message);
                self.cx.report(error.hint(format!("write `{name}::<u32>(…)`, for example")));
                None
            }
            (true, Some(generics)) => match &generics.arguments[..] {
                [ast::GenericArgument::Name(name)] => self.cx.named_type(*name).map(Some),
                [ast::GenericArgument::Type(ty)] => self.cx.resolve_type(ty).map(Some),
                _ => {
                    let message = format!("`{name}` takes one type");
                    let error = Diagnostic::error(ids::TYPE_ARGUMENT, generics.span, message);
                    self.cx.report(error);
                    None
                }
            },
        }
    }

    /// `size_of::<T>()`, `align_of::<T>()`, `bitcast::<T>(value)`.
    pub(super) fn with_type(
        &mut self,
        builtin: Builtin,
        callee: ast::Name,
        target: Type,
        arguments: &'a [ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        if !self.cx.has_size(&target) {
            return None;
        }
        let layout = type_layout(&target, &self.cx.structs);
        let bytes = match builtin {
            Builtin::SizeOf => layout.size,
            Builtin::AlignOf => layout.alignment,
            _ => return self.bitcast(callee, target, &arguments[0], span),
        };
        Some(typed(ExprKind::Int(i128::from(bytes)), Type::U64, span))
    }

    fn bitcast(
        &mut self,
        callee: ast::Name,
        target: Type,
        argument: &'a ast::Expr,
        span: Span,
    ) -> Option<Expr> {
        let value = self.infer(argument, None)?;
        if value.ty == target {
            return Some(value);
        }
        if !bitcast_supports(&value.ty, &target) {
            let (from, to) = (self.cx.show(&value.ty), self.cx.show(&target));
            let message = format!("{from} cannot be bitcast to {to}");
            let error = Diagnostic::error(ids::INVALID_CAST, callee.span, message);
            let error = error.label(value.span, format!("this is {from}"));
            let what = "`bitcast` converts between numbers and vectors of numbers of equal size";
            self.cx.report(error.note(what));
            return None;
        }
        let kind =
            ExprKind::Builtin { builtin: Builtin::Bitcast, arguments: vec![value], format: None };
        Some(typed(kind, target, span))
    }

    /// `assert(condition)` or `assert(condition, "message")`: `if !condition { … }`, or without the `if` for
    /// the literal `false`. The default message is the source text of the condition.
    pub(super) fn assert(
        &mut self,
        callee: ast::Name,
        arguments: &'a [ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        let (condition, message) = match arguments {
            [condition] => (condition, None),
            [condition, message] => (condition, Some(message)),
            _ => {
                let name = self.cx.text(callee);
                let message =
                    format!("`{name}` takes a condition and a message, not {}", arguments.len());
                let error = Diagnostic::error(ids::CALL_ARITY, span, message);
                self.cx.report(error.hint("write `assert(n > 0, \"n is not zero\")`"));
                return None;
            }
        };
        let checked = self.need(condition, &Type::BOOL, Why::Nothing);
        let message = match message {
            None => Some(self.cx.sources.text(condition.span).to_string()),
            Some(ast::Expr { kind: ast::ExprKind::Str(text), .. }) => {
                (!text.damaged).then(|| text.text.clone())
            }
            Some(other) => {
                let message = "the message of `assert` must be a string";
                self.cx.report(Diagnostic::error(ids::TYPE_MISMATCH, other.span, message));
                None
            }
        };
        let checked = Box::new(checked?);
        let fails = ExprKind::Builtin {
            builtin: Builtin::Assert,
            arguments: vec![],
            format: Some(message?),
        };
        let fails = typed(fails, Type::Unit, span);
        // Not for other constants: in another instance of the function, they may be true.
        if matches!(condition.kind, ast::ExprKind::Bool(false)) {
            self.alive = false;
            return Some(fails);
        }
        let at = checked.span;
        let condition = typed(ExprKind::Unary(UnaryOp::Not, checked), Type::BOOL, at);
        let fails = StatementKind::Expr(fails);
        let then = Block { statements: vec![Statement { kind: fails, span }], value: None };
        let kind = ExprKind::If { branches: vec![(condition, then)], otherwise: None };
        Some(typed(kind, Type::Unit, span))
    }
}
