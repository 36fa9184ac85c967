//! Numbers.

use super::body::Body;
use super::expressions::typed;
use super::fold;
use super::tree::{Expr, ExprKind};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::{Scalar, Type};

impl<'a> Body<'_, 'a> {
    /// An integer, `negative` if a `-` stands right before it.
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
            // A mistake that is the type's and not the number's: let no range get in its way.
            (None, Some(hint)) if hint.is_float() && magnitude > 0x7fff_ffff => Scalar::U64,
            _ => Scalar::I32,
        };
        let (min, max) = fold::range(scalar);
        let value = i128::try_from(magnitude).unwrap_or(i128::MAX);
        let value = if negative { -value } else { value };
        if !(min..=max).contains(&value) {
            self.out_of_range(value, magnitude, scalar, suffix.is_none(), span);
            return None;
        }
        Some(typed(ExprKind::Int(value), Type::Scalar(scalar), span))
    }

    fn out_of_range(
        &mut self,
        value: i128,
        magnitude: u128,
        scalar: Scalar,
        unsuffixed: bool,
        span: Span,
    ) {
        let (min, max) = fold::range(scalar);
        let name = scalar.name();
        let sign = if value < 0 { "-" } else { "" };
        let message = if magnitude > u128::from(u64::MAX) {
            "no integer type is large enough for this number".to_string()
        } else {
            format!("{sign}{magnitude} does not fit `{name}`")
        };
        let mut error = Diagnostic::error(ids::LITERAL_OUT_OF_RANGE, span, message)
            .note(format!("`{name}` holds {min} to {max}"));
        let wider = [Scalar::U32, Scalar::I64, Scalar::U64].into_iter().find(|wider| {
            let (min, max) = fold::range(*wider);
            (min..=max).contains(&value)
        });
        if let (true, Scalar::I32, Some(wider)) = (unsuffixed, scalar, wider) {
            let text = self.cx.sources.text(span);
            error = error.hint(format!(
                "a number is an `i32` if nothing else says its type: `{text}{}`",
                wider.name()
            ));
        } else if value == -1 && scalar.is_unsigned() {
            error = error.hint("for all bits set, write `!0`");
        } else if let (Scalar::I32, true) = (scalar, (0..=i128::from(u32::MAX)).contains(&value)) {
            error = error.hint("for its bits, write the unsigned number and `as i32`");
        }
        self.cx.report(error);
    }

    /// A number with a point or an exponent.
    pub(super) fn float(&mut self, e: &'a ast::Expr, hint: Option<&Type>) -> Option<Expr> {
        let ast::ExprKind::Float { double, single, suffix } = e.kind else { return None };
        let hint = hint.and_then(Type::as_scalar).filter(|scalar| scalar.is_float());
        let scalar = suffix.or(hint).unwrap_or(Scalar::F32);
        let value = match scalar {
            Scalar::F64 => double,
            Scalar::F32 => f64::from(single),
            _ => {
                self.half_precision(scalar, e.span);
                return None;
            }
        };
        if !value.is_finite() {
            let message = format!("this number is too large for `{}`", scalar.name());
            self.cx.report(Diagnostic::error(ids::LITERAL_OUT_OF_RANGE, e.span, message));
            return None;
        }
        Some(typed(ExprKind::Float(value), Type::Scalar(scalar), e.span))
    }

    /// Reports work on a type that can only be stored and passed on.
    pub(super) fn half_precision(&mut self, scalar: Scalar, span: Span) {
        let name = scalar.name();
        let message = format!("`{name}` values can only be stored and passed on for now");
        self.cx.report(Diagnostic::error(ids::HALF_PRECISION, span, message));
    }
}
