//! Values where a certain type is expected.

use super::body::{Body, Variable};
use super::tree::{Declared, Expr, ExprKind, LocalId};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::{Scalar, Type};

/// The label of a variable whose type is only a literal's default.
pub(super) const DEFAULT: &str = "nothing here asks for another type";

/// The origin of an expected type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Why {
    /// The construct itself.
    Nothing,
    /// A type annotation.
    Type(Span),
    /// The type of a parameter.
    Parameter(Span),
    /// The type of a parameter of a launched kernel.
    KernelParameter(Span),
    /// The type of a field.
    Field(Span),
    /// The function's result type.
    Result(Span),
    /// Another value of the same type.
    Same(Span),
}

impl<'a> Body<'_, 'a> {
    /// The value of `e`, which must have type `ty`.
    pub(super) fn need(&mut self, e: &'a ast::Expr, ty: &Type, why: Why) -> Option<Expr> {
        match &e.kind {
            ast::ExprKind::If { .. } | ast::ExprKind::Block(_) => {
                self.block_like(e, super::blocks::Want::Need(ty, why))
            }
            _ => {
                let value = self.infer(e, Some(ty))?;
                self.coerce(value, ty, why)
            }
        }
    }

    /// `value` converted to `ty`: a `*mut T` is accepted as a `*const T`; there are no other implicit
    /// conversions.
    pub(super) fn coerce(&mut self, value: Expr, ty: &Type, why: Why) -> Option<Expr> {
        if value.ty == *ty {
            return Some(value);
        }
        if becomes_const(&value.ty, ty) {
            let span = value.span;
            return Some(Expr { kind: ExprKind::Cast(Box::new(value)), ty: ty.clone(), span });
        }
        self.mismatch(&value, ty, why);
        None
    }

    /// Reports that `value` is not of type `ty`.
    pub(super) fn mismatch(&mut self, value: &Expr, ty: &Type, why: Why) {
        let expected = self.cx.show(ty);
        let found = self.cx.show(&value.ty);
        let message = format!("expected {expected}, found {found}");
        let mut error = Diagnostic::error(ids::TYPE_MISMATCH, value.span, message);
        error = match value.ty {
            Type::Unit => error.at_caret("this has no value"),
            _ => error.at_caret(format!("this is {found}")),
        };
        error = match why {
            Why::Nothing => error,
            Why::Type(span) => error.label(span, "the type is given here"),
            Why::Parameter(span) | Why::KernelParameter(span) => {
                error.label(span, "the parameter is declared here")
            }
            Why::Field(span) => error.label(span, "the field is declared here"),
            Why::Result(span) if *ty == Type::Unit => error.label(span, "declared without `->`"),
            Why::Result(span) => error.label(span, "the function returns this"),
            Why::Same(span) => error.label(span, format!("this is {expected}")),
        };
        if let Some((declared, hint)) = self.default_hint(value, ty) {
            error = error.label(declared, DEFAULT).hint(hint);
        } else if let Some(hint) = self.mismatch_hint(value, ty, why) {
            error = error.hint(hint);
        }
        self.cx.report(error);
    }

    /// For a value that has its type from a variable whose type is only a literal's default, and should have been
    /// `ty`: the variable's declaration, and a hint.
    pub(super) fn default_hint(&self, value: &Expr, ty: &Type) -> Option<(Span, String)> {
        let (id, variable) = self.default_variable(value)?;
        let literal = variable.default?;
        let (Type::Scalar(from), Type::Scalar(to)) = (&value.ty, ty) else { return None };
        let is_of_kind =
            (from.is_integer() && to.is_integer()) || (from.is_float() && to.is_float());
        let (name, to) = (self.local_name(id), to.name());
        let hint = match self.locals[id.0 as usize].declared {
            Declared::Loop => {
                let (start, end) = self.cx.sources.text(literal).split_once("..")?;
                let (start, end) = (start.trim(), end.trim());
                format!("give the type in the loop: `for {name} in {start}{to}..{end}`")
            }
            _ => format!("declare it with its type: `{name}: {to}`"),
        };
        is_of_kind.then_some((variable.span, hint))
    }

    /// The first variable of a value, if the value is computed from variables whose types are only literals' defaults,
    /// and from literals.
    fn default_variable(&self, value: &Expr) -> Option<(LocalId, &Variable)> {
        let mut found = None;
        let mut left = value;
        loop {
            let text = self.cx.sources.text(left.span);
            match &left.kind {
                ExprKind::Unary(_, operand) => left = operand,
                ExprKind::Binary(_, next, right) => {
                    match self.default_variable(right) {
                        Some(variable) => found = Some(variable),
                        None if is_plain_integer(right, self.cx.sources.text(right.span)) => {}
                        None => return None,
                    }
                    left = next;
                }
                // The left side of `p[0] += 1` is checked as a temporary variable.
                ExprKind::Local(id) if text == self.local_name(*id) => {
                    let variable = self.variable(*id)?;
                    return variable.default.is_some().then_some((*id, variable));
                }
                _ if is_plain_integer(left, text) => return found,
                _ => return None,
            }
        }
    }

    fn mismatch_hint(&self, value: &Expr, ty: &Type, why: Why) -> Option<String> {
        let text = self.cx.sources.text(value.span);
        // Long or multi-line text is not repeated.
        let text = (text.len() <= 40 && !text.contains('\n')).then_some(text)?;
        let simple = text.chars().all(|c| c.is_ascii_alphanumeric() || "_.()[]".contains(c));
        let operand = if simple { text.to_string() } else { format!("({text})") };
        match (&value.ty, ty) {
            (_, Type::Unit) if matches!(why, Why::Result(_)) && !self.is_kernel => Some(format!(
                "declare the result type: `-> {}`; or end it with `;` to drop the value",
                self.cx.show(&value.ty).to_string().trim_matches('`')
            )),
            (_, Type::Unit) => Some("end it with `;` to drop the value".into()),
            // In C, `!n` tests for zero; here it flips the bits.
            (Type::Scalar(from), Type::Scalar(Scalar::Bool))
                if from.is_integer() && text.starts_with('!') =>
            {
                Some(format!("compare it: `{} == 0`", text[1..].trim_start()))
            }
            (Type::Scalar(from), Type::Scalar(Scalar::Bool)) if from.is_integer() => {
                Some(format!("compare it: `{operand} != 0`"))
            }
            (Type::Scalar(Scalar::Bool), Type::Scalar(to)) if to.is_float() => {
                Some(format!("use `if {text} {{ 1.0 }} else {{ 0.0 }}`"))
            }
            (Type::Scalar(_), Type::Scalar(to))
                if to.is_float() && is_plain_integer(value, text) =>
            {
                Some(format!("write `{text}.0`"))
            }
            (Type::Scalar(_), Type::Scalar(to)) => {
                Some(format!("convert it: `{operand} as {}`", to.name()))
            }
            (
                Type::Pointer { mutable: false, pointee: from },
                Type::Pointer { mutable: true, pointee: to },
            ) if from == to => Some(match (&value.kind, self.address_of_local(value)) {
                (ExprKind::AddressOf(_), Some(name)) => {
                    format!("declare it `mut {name}` to write through its address")
                }
                _ => "memory cannot be written through a `*const`; use a `*mut`".into(),
            }),
            (Type::Pointer { pointee, .. }, ty) if **pointee == *ty => {
                if matches!(value.kind, ExprKind::AddressOf(_)) {
                    return Some("remove the `&`".into());
                }
                Some(format!("dereference it: `*{operand}`"))
            }
            // The address of a variable is useless to a child grid.
            (_, Type::Pointer { .. })
                if !value.ty.is_pointer() && matches!(why, Why::KernelParameter(_)) =>
            {
                Some("pass a pointer to device memory".into())
            }
            (Type::Array(element, _), Type::Pointer { pointee, .. }) if element == pointee => {
                Some(format!("take the address of its first element: `&{operand}[0]`"))
            }
            (from, Type::Pointer { pointee, .. }) if **pointee == *from => {
                Some(format!("take its address: `&{operand}`"))
            }
            _ => None,
        }
    }

    /// The name of the variable whose address `value` is.
    fn address_of_local(&self, value: &Expr) -> Option<&str> {
        let ExprKind::AddressOf(place) = &value.kind else { return None };
        match &self.root_of(place)?.kind {
            ExprKind::Local(id) => Some(self.local_name(*id)),
            _ => None,
        }
    }
}

/// Whether a value of type `from` is accepted as `to`, which permits less.
pub(super) fn becomes_const(from: &Type, to: &Type) -> bool {
    match (from, to) {
        (
            Type::Pointer { mutable: true, pointee: from },
            Type::Pointer { mutable: false, pointee: to },
        ) => from == to,
        _ => false,
    }
}

/// Whether a text is a decimal number without a type suffix.
pub(super) fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    digits.first().is_some_and(u8::is_ascii_digit)
        && digits.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'_' | b'.'))
}

/// Whether a value is written with decimal digits only, so that appending `.0` makes it a float.
pub(super) fn is_plain_integer(value: &Expr, text: &str) -> bool {
    matches!(value.kind, ExprKind::Int(_))
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_' || byte == b'-')
}
