//! `static` variables, and constants that are vectors, structs or arrays: their types and initial values.

use super::body::Body;
use super::mismatch::Why;
use super::tree::{Expr, ExprKind, Static};
use super::{Context, StaticItem};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::types::layout::type_layout;

/// The maximum size of a variable with a nonzero initial value, in bytes: the image contains all of them.
const MAX_INITIAL_BYTES: u64 = 1 << 24;

/// The maximum total size of variables with nonzero initial values, in bytes.
const MAX_ALL_INITIAL_BYTES: u64 = 1 << 26;

impl Context<'_> {
    /// Resolves every variable. Erroneous ones are reported and left out.
    pub(super) fn evaluate_statics(&mut self) -> Vec<Static> {
        let mut statics = vec![];
        let mut bytes = 0;
        for at in 0..self.statics.len() {
            let Some(made) = self.evaluate_static(at) else { continue };
            if made.is_constant || !made.value.is_zero() {
                bytes += type_layout(&made.ty, &self.structs).size;
            }
            if bytes > MAX_ALL_INITIAL_BYTES {
                self.report_initial_bytes(made.span);
                break;
            }
            statics.push(made);
        }
        statics
    }

    fn report_initial_bytes(&mut self, at: Span) {
        let most = MAX_ALL_INITIAL_BYTES >> 20;
        let message = format!(
            "the constants and the variables with nonzero initial values up to here take more than {most} MiB"
        );
        let error = Diagnostic::error(ids::TYPE_TOO_LARGE, at, message);
        self.report(error.hint("initialise some of them in a kernel, or from the host"));
    }

    fn evaluate_static(&mut self, at: usize) -> Option<Static> {
        let StaticItem { name, declared, value: initial, is_constant, .. } = self.statics[at];
        let ty = self.resolve_type(declared)?;
        self.statics[at].ty = Some(ty.clone());
        let mut body = Body::constant(self);
        body.aggregates = true;
        let value = body.need(initial, &ty, Why::Type(declared.span))?;
        if let Some(wrong) = not_constant(&value) {
            body.not_constant(wrong.span);
            return None;
        }
        let bytes = type_layout(&ty, &self.structs).size;
        if bytes > MAX_INITIAL_BYTES && (is_constant || !value.is_zero()) {
            let (message, hint) = match is_constant {
                false => (
                    format!("a variable of {bytes} bytes can only be zero-initialised"),
                    "initialise it in a kernel",
                ),
                true => (
                    format!(
                        "a constant has at most {} MiB, not {bytes} bytes",
                        MAX_INITIAL_BYTES >> 20
                    ),
                    "declare a `static` variable and initialise it in a kernel, or from the host",
                ),
            };
            let error = Diagnostic::error(ids::TYPE_TOO_LARGE, initial.span, message);
            self.report(error.hint(hint));
            return None;
        }
        let text = self.text(name).to_string();
        Some(Static { name: text, ty, value, is_constant, span: name.span })
    }
}

/// The first part of a value that is not known at compile time.
fn not_constant(value: &Expr) -> Option<&Expr> {
    match &value.kind {
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => None,
        ExprKind::Cast(number) if matches!(number.kind, ExprKind::Int(_)) => {
            (!value.ty.is_pointer()).then_some(value)
        }
        ExprKind::Aggregate(parts) | ExprKind::Array(parts) => parts.iter().find_map(not_constant),
        ExprKind::ArrayRepeat(part) => not_constant(part),
        _ => Some(value),
    }
}
