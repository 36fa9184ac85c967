//! Calls of built-ins: their arguments and results.

use super::body::Body;
use super::expressions::typed;
use super::mismatch::Why;
use super::tree::{Expr, ExprKind};
use crate::builtins::{BitOp, Builtin, MathOp, VoteMode, atomic_supports};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::{Scalar, Type};

/// How many arguments a built-in takes. `printf` counts its own.
fn arity(builtin: Builtin) -> usize {
    match builtin {
        Builtin::SyncThreads
        | Builtin::ActiveMask
        | Builtin::LaneId
        | Builtin::Fence(_)
        | Builtin::Trap
        | Builtin::Clock64
        | Builtin::GlobalTimer
        | Builtin::SmId => 0,
        Builtin::SyncWarp | Builtin::Bit(_) => 1,
        Builtin::Vote(_) | Builtin::Atomic(_) => 2,
        Builtin::Shuffle(_) | Builtin::AtomicCas => 3,
        Builtin::Math(op) => {
            MathOp::ALL.iter().find(|(known, ..)| *known == op).map_or(1, |(.., count)| *count)
        }
        Builtin::Printf => 1,
    }
}

/// The result of a built-in without arguments that set it.
fn fixed_result(builtin: Builtin) -> Type {
    match builtin {
        Builtin::ActiveMask | Builtin::LaneId | Builtin::SmId => Type::U32,
        Builtin::Clock64 | Builtin::GlobalTimer => Type::U64,
        _ => Type::Unit,
    }
}

impl<'a> Body<'_, 'a> {
    /// `callee(arguments)` of a built-in.
    pub(super) fn builtin(
        &mut self,
        builtin: Builtin,
        callee: ast::Name,
        arguments: &'a [ast::Expr],
        span: Span,
        hint: Option<&Type>,
    ) -> Option<Expr> {
        if builtin == Builtin::Printf {
            return self.printf(callee, arguments, span);
        }
        let expected = arity(builtin);
        if arguments.len() != expected {
            let name = self.cx.text(callee);
            let takes = super::calls::arguments(expected);
            let message = format!("`{name}` takes {takes}, not {}", arguments.len());
            self.cx.report(Diagnostic::error(ids::CALL_ARITY, span, message));
            return None;
        }
        let (arguments, ty) = match builtin {
            Builtin::SyncWarp => (vec![self.mask(&arguments[0])?], Type::Unit),
            Builtin::Vote(mode) => {
                let mask = self.mask(&arguments[0]);
                let predicate = self.need(&arguments[1], &Type::BOOL, Why::Nothing);
                let ty = if mode == VoteMode::Ballot { Type::U32 } else { Type::BOOL };
                (vec![mask?, predicate?], ty)
            }
            Builtin::Shuffle(_) => self.shuffle(arguments, hint)?,
            Builtin::Atomic(op) => {
                self.atomic(callee, arguments, |scalar| atomic_supports(op, scalar))?
            }
            Builtin::AtomicCas => {
                self.atomic(callee, arguments, |scalar| scalar.is_integer() && scalar.size() >= 4)?
            }
            Builtin::Math(op) => self.math(op, callee, arguments, hint)?,
            Builtin::Bit(op) => self.bits(op, callee, &arguments[0], hint)?,
            _ => (vec![], fixed_result(builtin)),
        };
        if builtin == Builtin::Trap {
            self.alive = false;
        }
        Some(typed(ExprKind::Builtin { builtin, arguments, format: None }, ty, span))
    }

    fn mask(&mut self, argument: &'a ast::Expr) -> Option<Expr> {
        self.need(argument, &Type::U32, Why::Nothing)
    }

    fn shuffle(
        &mut self,
        arguments: &'a [ast::Expr],
        hint: Option<&Type>,
    ) -> Option<(Vec<Expr>, Type)> {
        let mask = self.mask(&arguments[0]);
        let value = self.infer(&arguments[1], hint);
        let lane = self.need(&arguments[2], &Type::U32, Why::Nothing);
        let value = value?;
        let works = value.ty.as_scalar().is_some_and(|scalar| scalar.size() >= 4);
        if !works {
            self.wrong_argument("shfl", &value, "a scalar of 32 or 64 bits");
            return None;
        }
        let ty = value.ty.clone();
        Some((vec![mask?, value, lane?], ty))
    }

    /// An atomic operation: a pointer, then values of what it points to.
    fn atomic(
        &mut self,
        callee: ast::Name,
        arguments: &'a [ast::Expr],
        works: impl Fn(Scalar) -> bool,
    ) -> Option<(Vec<Expr>, Type)> {
        let name = self.cx.text(callee);
        let pointer = self.infer(&arguments[0], None);
        let pointee = pointer.as_ref().and_then(|pointer| pointer.ty.pointee().cloned());
        let values: Vec<Option<Expr>> = arguments[1..]
            .iter()
            .map(|value| match (&pointee, &pointer) {
                (Some(ty), Some(pointer)) if ty.as_scalar().is_some() => {
                    self.need(value, ty, Why::Same(pointer.span)).map(Some)
                }
                _ => Some(self.infer(value, None)),
            }?)
            .collect();
        let pointer = pointer?;
        let Some(pointee) = pointee else {
            self.wrong_argument(name, &pointer, "a pointer to what it changes");
            return None;
        };
        if !pointee.as_scalar().is_some_and(works) {
            let what = format!("{} is not a type for `{name}`", self.cx.show(&pointee));
            let error = Diagnostic::error(ids::OPERAND_TYPE, pointer.span, what);
            let floats =
                "integers of 32 or 64 bits; `atomic_add` and `atomic_exch` also `f32` and `f64`";
            self.cx.report(error.note(format!("atomics work on {floats}")));
            return None;
        }
        let pointer = self.coerce(pointer, &Type::pointer_mut(pointee.clone()), Why::Nothing);
        let mut all = vec![pointer?];
        all.extend(values.into_iter().collect::<Option<Vec<_>>>()?);
        Some((all, pointee))
    }

    /// All arguments and the result have one type; the first with a type of its own says which.
    fn math(
        &mut self,
        op: MathOp,
        callee: ast::Name,
        arguments: &'a [ast::Expr],
        hint: Option<&Type>,
    ) -> Option<(Vec<Expr>, Type)> {
        let lead = arguments.iter().position(|e| e.literal == ast::Literal::No).unwrap_or(0);
        // `sqrt(2)` is no integer's root.
        let hint = hint.filter(|ty| matches!(ty, Type::Scalar(_)));
        let lead_value = self.infer(&arguments[lead], hint)?;
        let (ty, at) = (lead_value.ty.clone(), lead_value.span);
        let works = match ty {
            Type::Scalar(Scalar::F32 | Scalar::F64) => true,
            Type::Scalar(scalar) => op.on_integers() && scalar.is_integer(),
            _ => false,
        };
        if !works {
            let what =
                if op.on_integers() { "an `f32`, `f64` or integer" } else { "an `f32` or `f64`" };
            let name = self.cx.text(callee);
            self.wrong_argument(name, &lead_value, what);
            return None;
        }
        let mut lead_value = Some(lead_value);
        let values: Vec<Option<Expr>> = arguments
            .iter()
            .enumerate()
            .map(|(index, argument)| match index == lead {
                true => lead_value.take(),
                false => self.need(argument, &ty, Why::Same(at)),
            })
            .collect();
        Some((values.into_iter().collect::<Option<Vec<_>>>()?, ty))
    }

    fn bits(
        &mut self,
        op: BitOp,
        callee: ast::Name,
        argument: &'a ast::Expr,
        hint: Option<&Type>,
    ) -> Option<(Vec<Expr>, Type)> {
        // The counts are u32 whatever is counted.
        let value = self.infer(argument, hint.filter(|_| op == BitOp::Brev))?;
        let works =
            matches!(&value.ty, Type::Scalar(scalar) if scalar.is_integer() && scalar.size() >= 4);
        if !works {
            let name = self.cx.text(callee);
            self.wrong_argument(name, &value, "an integer of 32 or 64 bits");
            return None;
        }
        let ty = if op == BitOp::Brev { value.ty.clone() } else { Type::U32 };
        Some((vec![value], ty))
    }

    fn wrong_argument(&mut self, name: &str, value: &Expr, wanted: &str) {
        let message = format!("`{name}` takes {wanted}, not {}", self.cx.show(&value.ty));
        let mut error = Diagnostic::error(ids::OPERAND_TYPE, value.span, message);
        if matches!(value.kind, ExprKind::Int(_)) && wanted.contains("f32") {
            let text = self.cx.sources.text(value.span);
            error = error.hint(format!("write `{text}.0`"));
        }
        self.cx.report(error);
    }
}
