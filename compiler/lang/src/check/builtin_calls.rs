//! Calls of built-ins: their arguments and results.

use super::body::Body;
use super::expressions::typed;
use super::fold::{self, Folded};
use super::mismatch::Why;
use super::tree::{Expr, ExprKind};
use crate::builtins::{
    BitOp, Builtin, MathOp, Order, ReduceOp, atomic_supports, is_wide_number, reduce_supports,
    shuffle_supports,
};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::{Scalar, Type};

/// What messages call the integers that most hardware operations take.
const WIDE_INTEGER: &str = "an integer of 32 or 64 bits";

/// How many arguments a built-in takes. `printf` and `assert` count their own.
fn arity(builtin: Builtin) -> usize {
    if let Some((arguments, _)) = builtin.fixed_signature() {
        return arguments.len();
    }
    match builtin {
        Builtin::SizeOf | Builtin::AlignOf => 0,
        Builtin::Bit(_) | Builtin::Bitcast => 1,
        Builtin::Atomic(..)
        | Builtin::AtomicLoad(_)
        | Builtin::MatchAny
        | Builtin::Reduce(_)
        | Builtin::MulHi => 2,
        Builtin::Shuffle(_) | Builtin::AtomicCas(_) | Builtin::AtomicStore(_) => 3,
        Builtin::Math(op) => {
            MathOp::ALL.iter().find(|(known, ..)| *known == op).map_or(1, |(.., count)| *count)
        }
        _ => 1,
    }
}

impl<'a> Body<'_, 'a> {
    /// `callee(arguments)` or `callee::<T>(arguments)` of a built-in.
    pub(super) fn builtin(
        &mut self,
        builtin: Builtin,
        callee: ast::Name,
        generics: Option<&'a ast::Generics>,
        arguments: &'a [ast::Expr],
        span: Span,
        hint: Option<&Type>,
    ) -> Option<Expr> {
        let target = self.type_argument(builtin, callee, generics, span)?;
        match builtin {
            Builtin::Printf => return self.printf(callee, arguments, span),
            Builtin::Assert => return self.assert(callee, arguments, span),
            _ => {}
        }
        let expected = arity(builtin);
        if arguments.len() != expected {
            let name = self.cx.text(callee);
            let takes = super::calls::arguments(expected);
            let message = format!("`{name}` takes {takes}, not {}", arguments.len());
            self.cx.report(Diagnostic::error(ids::CALL_ARITY, span, message));
            return None;
        }
        if let Some(target) = target {
            return self.with_type(builtin, callee, target, arguments, span);
        }
        let mut builtin = builtin;
        let (arguments, ty) = match builtin {
            Builtin::Shuffle(_) => self.shuffle(arguments, hint)?,
            Builtin::MatchAny => self.match_any(arguments)?,
            Builtin::Reduce(op) => self.reduce(op, callee, arguments, hint)?,
            Builtin::Atomic(op, _) => {
                self.atomic(callee, arguments, true, |scalar| atomic_supports(op, scalar))?
            }
            Builtin::AtomicCas(_) => {
                let works = |scalar: Scalar| scalar.is_integer() && is_wide_number(scalar);
                self.atomic(callee, arguments, true, works)?
            }
            Builtin::AtomicLoad(_) => {
                let order = self.order(&arguments[1], Order::Acquire);
                let checked = self.atomic(callee, &arguments[..1], false, is_wide_number)?;
                builtin = Builtin::AtomicLoad(order?);
                checked
            }
            Builtin::AtomicStore(_) => {
                let order = self.order(&arguments[2], Order::Release);
                let (checked, _) = self.atomic(callee, &arguments[..2], true, is_wide_number)?;
                builtin = Builtin::AtomicStore(order?);
                (checked, Type::Unit)
            }
            Builtin::Math(op) => self.math(op, callee, arguments, hint)?,
            Builtin::MulHi => {
                let works = |scalar: Scalar| scalar.is_integer() && is_wide_number(scalar);
                self.same_type_arguments(callee, arguments, hint, WIDE_INTEGER, works)?
            }
            Builtin::Bit(op) => self.bits(op, callee, &arguments[0], hint)?,
            _ => self.fixed(builtin, arguments)?,
        };
        self.alive &= !builtin.ends();
        if self.constant && builtin.is_constant() {
            return match fold::builtin(builtin, &arguments, &ty) {
                Folded::Value(kind) => Some(typed(kind, ty, span)),
                Folded::Wrapped(kind) => Some(typed(self.wrapped(kind, &ty, span)?, ty, span)),
                Folded::No => {
                    self.not_constant(span);
                    None
                }
            };
        }
        Some(typed(ExprKind::Builtin { builtin, arguments, format: None }, ty, span))
    }

    /// The arguments of a built-in that is not generic. Any pointer serves as one to bytes.
    fn fixed(&mut self, builtin: Builtin, arguments: &'a [ast::Expr]) -> Option<(Vec<Expr>, Type)> {
        let (wanted, result) = builtin.fixed_signature()?;
        let mut values = vec![];
        for (argument, ty) in arguments.iter().zip(&wanted) {
            values.push(match ty {
                Type::Pointer { mutable, .. } => self.bytes(builtin, argument, *mutable, ty),
                Type::Stream => self.stream_value(argument),
                ty => self.need(argument, ty, Why::Nothing),
            });
        }
        Some((values.into_iter().collect::<Option<_>>()?, result))
    }

    /// A pointer to anything as one to bytes.
    fn bytes(
        &mut self,
        builtin: Builtin,
        argument: &'a ast::Expr,
        mutable: bool,
        ty: &Type,
    ) -> Option<Expr> {
        let value = self.infer(argument, None)?;
        let writes = matches!(value.ty, Type::Pointer { mutable: true, .. });
        if !value.ty.is_pointer() || mutable && !writes {
            let wanted = if mutable { "a `*mut` pointer" } else { "a pointer" };
            self.wrong_argument(builtin.name(), &value, wanted);
            return None;
        }
        if matches!(builtin, Builtin::MemcpyAsync | Builtin::MemsetAsync)
            && let Some(pointed) = self.points_to(&value)
        {
            let who = format!("`{}`", builtin.name());
            let others = "the work of a stream is done by others";
            let hint = "write a loop, or pass a pointer to device memory";
            self.unreachable_memory(&value, pointed, &who, others, hint);
            return None;
        }
        if value.ty == *ty {
            return Some(value);
        }
        let span = value.span;
        Some(typed(ExprKind::Cast(Box::new(value)), ty.clone(), span))
    }

    /// The order of an atomic access: `relaxed`, or the other one that the access can have.
    fn order(&mut self, argument: &'a ast::Expr, other: Order) -> Option<Order> {
        let allowed = [Order::Relaxed, other];
        let word = match argument.kind {
            ast::ExprKind::Name(name) => self.cx.text(name),
            _ => "",
        };
        let order = Order::ALL.iter().find(|(_, name)| *name == word).map(|(order, _)| *order);
        if let Some(order) = order.filter(|order| allowed.contains(order)) {
            return Some(order);
        }
        let (what, names) = match other {
            Order::Acquire => ("a load is", "`relaxed` or `acquire`"),
            _ => ("a store is", "`relaxed` or `release`"),
        };
        let message = format!("{what} {names}");
        self.cx.report(Diagnostic::error(ids::INVALID_ORDER, argument.span, message));
        None
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
        if !value.ty.as_scalar().is_some_and(shuffle_supports) {
            self.wrong_argument("shfl", &value, "a number of 16, 32 or 64 bits");
            return None;
        }
        let ty = value.ty.clone();
        Some((vec![mask?, value, lane?], ty))
    }

    /// `match_any(mask, value)`
    fn match_any(&mut self, arguments: &'a [ast::Expr]) -> Option<(Vec<Expr>, Type)> {
        let mask = self.mask(&arguments[0]);
        let value = self.infer(&arguments[1], None)?;
        if !value.ty.as_scalar().is_some_and(is_wide_number) {
            self.wrong_argument("match_any", &value, "a scalar of 32 or 64 bits");
            return None;
        }
        Some((vec![mask?, value], Type::U32))
    }

    /// `reduce_…(mask, value)`
    fn reduce(
        &mut self,
        op: ReduceOp,
        callee: ast::Name,
        arguments: &'a [ast::Expr],
        hint: Option<&Type>,
    ) -> Option<(Vec<Expr>, Type)> {
        let mask = self.mask(&arguments[0]);
        let value = self.infer(&arguments[1], hint)?;
        if !value.ty.as_scalar().is_some_and(|scalar| reduce_supports(op, scalar)) {
            let takes_floats = reduce_supports(op, Scalar::F32);
            let wanted = if takes_floats { "a number of 32 or 64 bits" } else { WIDE_INTEGER };
            self.wrong_argument(self.cx.text(callee), &value, wanted);
            return None;
        }
        let ty = value.ty.clone();
        Some((vec![mask?, value], ty))
    }

    /// An atomic operation: a pointer, then values of what it points to. `writes` says whether it needs a
    /// `*mut`.
    fn atomic(
        &mut self,
        callee: ast::Name,
        arguments: &'a [ast::Expr],
        writes: bool,
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
            let floats = "integers of 32 or 64 bits; `atomic_add`, `atomic_exch`, `atomic_load` and \
                          `atomic_store` also `f32` and `f64`";
            self.cx.report(error.note(format!("atomics work on {floats}")));
            return None;
        }
        let wanted = Type::Pointer { mutable: writes, pointee: Box::new(pointee.clone()) };
        let pointer = self.coerce(pointer, &wanted, Why::Nothing);
        let mut all = vec![pointer?];
        all.extend(values.into_iter().collect::<Option<Vec<_>>>()?);
        Some((all, pointee))
    }

    fn math(
        &mut self,
        op: MathOp,
        callee: ast::Name,
        arguments: &'a [ast::Expr],
        hint: Option<&Type>,
    ) -> Option<(Vec<Expr>, Type)> {
        let what = match op {
            _ if op.on_integers() => "a float or an integer",
            _ if op.on_halves() => "a float",
            _ => "an `f32` or `f64`",
        };
        self.same_type_arguments(callee, arguments, hint, what, |scalar| op.supports(scalar))
    }

    /// All arguments and the result have one type; the first with a type of its own says which.
    fn same_type_arguments(
        &mut self,
        callee: ast::Name,
        arguments: &'a [ast::Expr],
        hint: Option<&Type>,
        wanted: &str,
        works: impl Fn(Scalar) -> bool,
    ) -> Option<(Vec<Expr>, Type)> {
        let lead = arguments.iter().position(|e| e.literal == ast::Literal::No).unwrap_or(0);
        // `sqrt(2)` is no integer's root.
        let hint = hint.filter(|ty| matches!(ty, Type::Scalar(_)));
        let lead_value = self.infer(&arguments[lead], hint)?;
        let (ty, at) = (lead_value.ty.clone(), lead_value.span);
        if !ty.as_scalar().is_some_and(works) {
            let name = self.cx.text(callee);
            self.wrong_argument(name, &lead_value, wanted);
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
            self.wrong_argument(name, &value, WIDE_INTEGER);
            return None;
        }
        let ty = if op == BitOp::Brev { value.ty.clone() } else { Type::U32 };
        Some((vec![value], ty))
    }

    pub(super) fn wrong_argument(&mut self, name: &str, value: &Expr, wanted: &str) {
        let message = format!("`{name}` takes {wanted}, not {}", self.cx.show(&value.ty));
        let mut error = Diagnostic::error(ids::OPERAND_TYPE, value.span, message);
        let wants_float = wanted.contains("f32") || wanted == "a float";
        if matches!(value.kind, ExprKind::Int(_)) && wants_float {
            let text = self.cx.sources.text(value.span);
            error = error.hint(format!("write `{text}.0`"));
        } else if wanted == "an `f32` or `f64`"
            && matches!(value.ty, Type::Scalar(Scalar::F16 | Scalar::Bf16))
        {
            let text = self.cx.sources.text(value.span);
            error = error.hint(format!("convert it, and what comes out back: `{text} as f32`"));
        }
        self.cx.report(error);
    }
}
