//! Number literals.

use super::body::Body;
use super::expressions::typed;
use super::tree::{Expr, ExprKind};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::{Scalar, Type};

impl<'a> Body<'_, 'a> {
    /// An integer; `negative` if a `-` directly precedes it.
    pub(super) fn integer(
        &mut self,
        magnitude: u128,
        negative: bool,
        suffix: Option<Scalar>,
        span: Span,
        hint: Option<&Type>,
    ) -> Option<Expr> {
        let hint = hint.and_then(Type::as_scalar);
        let scalar = match (suffix, hint) {
            (Some(suffix), _) => suffix,
            (None, Some(hint)) if hint.is_integer() => hint,
            // The type is wrong here, not the number: avoid a range error.
            (None, Some(hint)) if hint.is_float() && magnitude > 0x7fff_ffff => Scalar::U64,
            _ => Scalar::I32,
        };
        let (min, max) = scalar.range();
        let value = i128::try_from(magnitude).unwrap_or(i128::MAX);
        let value = if negative { -value } else { value };
        if !(min..=max).contains(&value) {
            let by_default = suffix.is_none() && hint.is_none();
            self.out_of_range(value, magnitude, scalar, by_default, suffix.is_some(), span);
            return None;
        }
        Some(typed(ExprKind::Int(value), Type::Scalar(scalar), span))
    }

    /// Reports an integer outside the range of `scalar`. `by_default` if the type is only the default, `has_suffix` if the number names it.
    fn out_of_range(
        &mut self,
        value: i128,
        magnitude: u128,
        scalar: Scalar,
        by_default: bool,
        has_suffix: bool,
        span: Span,
    ) {
        if magnitude > u128::from(u64::MAX) {
            let message = "no integer type is large enough for this number";
            self.cx.report(Diagnostic::error(ids::LITERAL_OUT_OF_RANGE, span, message));
            return;
        }
        let (min, max) = scalar.range();
        let name = scalar.name();
        let error = Diagnostic::error(
            ids::LITERAL_OUT_OF_RANGE,
            span,
            format!("{value} does not fit `{name}`"),
        )
        .note(format!("`{name}` holds {min} to {max}"));
        let holds = |wider: &Scalar| {
            let (min, max) = wider.range();
            (min..=max).contains(&value)
        };
        let wider = [Scalar::U32, Scalar::I64, Scalar::U64].into_iter().find(holds);
        let text = self.cx.sources.text(span);
        self.cx.report(match wider {
            Some(wider) if by_default => error.hint(format!(
                "a number is an `i32` unless its context determines another type: `{text}{}`",
                wider.name()
            )),
            Some(Scalar::U32) if scalar == Scalar::I32 => {
                error.hint(format!("for its bits, write `{text} as i32`"))
            }
            _ if value == -1 && scalar.is_unsigned() => error.hint("for all bits set, write `!0`"),
            Some(wider) if scalar.bits() < 32 && !has_suffix => error.hint(format!(
                "if a computation with another `{name}` asks for one here, convert that: `x as {}`",
                wider.name()
            )),
            _ => error,
        });
    }

    /// A number with a point or an exponent.
    pub(super) fn float(&mut self, e: &'a ast::Expr, hint: Option<&Type>) -> Option<Expr> {
        let ast::ExprKind::Float { double, single, half, bfloat, suffix } = e.kind else {
            return None;
        };
        let hint = hint.and_then(Type::as_scalar).filter(|scalar| scalar.is_float());
        let scalar = suffix.or(hint).unwrap_or(Scalar::F32);
        let value = match scalar {
            Scalar::F64 => double,
            Scalar::F16 => half.to_f64(),
            Scalar::Bf16 => bfloat.to_f64(),
            _ => f64::from(single),
        };
        if !value.is_finite() {
            let message = format!("this number is too large for `{}`", scalar.name());
            self.cx.report(Diagnostic::error(ids::LITERAL_OUT_OF_RANGE, e.span, message));
            return None;
        }
        Some(typed(ExprKind::Float(value), Type::Scalar(scalar), e.span))
    }
}
