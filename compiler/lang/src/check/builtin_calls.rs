//! Calls of built-ins: their arguments and results.

use super::body::Body;
use super::expressions::typed;
use super::fold::{self, Folded};
use super::mismatch::Why;
use super::pointed::{self, Pointed};
use super::tree::{Expr, ExprKind};
use crate::builtins::{Access, Builtin, Effect, Memory, Order, Properties, TypePattern, Types};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::{Scalar, Type};

impl<'a> Body<'_, 'a> {
    /// `callee(arguments)` or `callee::<T>(arguments)`, for a built-in.
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
        let properties = builtin.properties();
        if let Some(expected) = properties.arity().filter(|arity| *arity != arguments.len()) {
            let name = self.cx.text(callee);
            let takes = super::calls::counted_arguments(expected);
            let message = format!("`{name}` takes {takes}, not {}", arguments.len());
            self.cx.report(Diagnostic::error(ids::CALL_ARITY, span, message));
            return None;
        }
        if let Some(target) = target {
            return self.with_type(builtin, callee, target, arguments, span);
        }
        let (builtin, arguments, ty) = match properties.memory {
            Memory::Atomic(access) => {
                self.atomic(builtin, &properties, access, callee, arguments)?
            }
            Memory::None | Memory::Fence | Memory::Heap | Memory::Strings | Memory::Stream => {
                let (arguments, ty) = self.by_properties(&properties, callee, arguments, hint)?;
                (builtin, arguments, ty)
            }
        };
        self.alive &= !builtin.ends();
        if self.constant && properties.effect == Effect::Constant {
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

    /// The arguments of a built-in and the type of its result. The first argument of type `T` that has a type
    /// of its own determines `T`.
    fn by_properties(
        &mut self,
        properties: &Properties,
        callee: ast::Name,
        arguments: &'a [ast::Expr],
        hint: Option<&Type>,
    ) -> Option<(Vec<Expr>, Type)> {
        let pattern = |at: usize| properties.arguments.get(at).copied();
        let is_generic = |at: usize| pattern(at) == Some(TypePattern::T);
        let generic = (0..arguments.len()).filter(|at| is_generic(*at));
        let lead = generic
            .clone()
            .find(|at| arguments[*at].literal == ast::Literal::No)
            .or(generic.clone().next());
        // In `sqrt(2)` the literal must not become an integer.
        let hint =
            hint.filter(|ty| properties.result == TypePattern::T && matches!(ty, Type::Scalar(_)));
        let mut values: Vec<Option<Expr>> = arguments.iter().map(|_| None).collect();
        for at in (0..arguments.len()).filter(|at| !is_generic(*at) || Some(*at) == lead) {
            values[at] = match is_generic(at) {
                true => self.infer(&arguments[at], hint),
                false => self.fixed(properties, pattern(at)?, callee, &arguments[at]),
            };
        }
        let mut decided = None;
        if let Some(lead) = lead {
            let value = values[lead].as_ref()?;
            if !value.ty.as_scalar().is_some_and(|scalar| properties.types.has(scalar)) {
                let name = self.cx.text(callee);
                self.wrong_argument(name, value, properties.types);
                return None;
            }
            let (ty, at) = (value.ty.clone(), value.span);
            for other in generic.filter(|other| *other != lead) {
                values[other] = self.need(&arguments[other], &ty, Why::Same(at));
            }
            decided = Some(ty);
        }
        let result = properties.result.with(decided.as_ref())?;
        Some((values.into_iter().collect::<Option<_>>()?, result))
    }

    /// An argument whose type does not depend on the others. Any pointer is accepted as a pointer to bytes.
    fn fixed(
        &mut self,
        properties: &Properties,
        pattern: TypePattern,
        callee: ast::Name,
        argument: &'a ast::Expr,
    ) -> Option<Expr> {
        match pattern.with(None)? {
            ty @ Type::Pointer { .. } => self.bytes(properties, callee, argument, &ty),
            Type::Stream => self.stream_value(argument),
            ty => self.need(argument, &ty, Why::Nothing),
        }
    }

    /// A pointer of any type, converted to a pointer to bytes.
    fn bytes(
        &mut self,
        properties: &Properties,
        callee: ast::Name,
        argument: &'a ast::Expr,
        ty: &Type,
    ) -> Option<Expr> {
        let name = self.cx.text(callee);
        let value = self.infer(argument, None)?;
        let mutable = matches!(ty, Type::Pointer { mutable: true, .. });
        let writes = matches!(value.ty, Type::Pointer { mutable: true, .. });
        if !value.ty.is_pointer() || mutable && !writes {
            let wanted = if mutable { "a `*mut` pointer" } else { "a pointer" };
            self.not_taken(name, &value, wanted);
            return None;
        }
        if properties.memory == Memory::Stream
            && let Some(pointed) = self.points_to(&value)
        {
            let who = format!("`{name}`");
            let others = "other threads do the work of a stream";
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

    /// The order of an atomic access: `relaxed`, or the other order that the access supports.
    fn order(&mut self, argument: &'a ast::Expr, access: Access) -> Option<Order> {
        let word = match argument.kind {
            ast::ExprKind::Name(name) => self.cx.text(name),
            _ => "",
        };
        let order = Order::ALL.iter().find(|(_, name)| *name == word).map(|(order, _)| *order);
        if let Some(order) = order.filter(|order| order.suits(access)) {
            return Some(order);
        }
        let (what, names) = match access {
            Access::Load => ("the order of a load must be", "`relaxed` or `acquire`"),
            Access::Store => ("the order of a store must be", "`relaxed` or `release`"),
            Access::Update => ("the order of this operation must be", "`relaxed`"),
        };
        let message = format!("{what} {names}");
        self.cx.report(Diagnostic::error(ids::INVALID_ORDER, argument.span, message));
        None
    }

    /// An atomic operation: a pointer, values of its target type, and for some a memory order, which becomes
    /// part of the operation.
    fn atomic(
        &mut self,
        builtin: Builtin,
        properties: &Properties,
        access: Access,
        callee: ast::Name,
        arguments: &'a [ast::Expr],
    ) -> Option<(Builtin, Vec<Expr>, Type)> {
        let name = self.cx.text(callee);
        let (arguments, order) = match (properties.arguments, arguments) {
            ([.., TypePattern::Order], [arguments @ .., order]) => {
                (arguments, Some(self.order(order, access)))
            }
            _ => (arguments, None),
        };
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
            self.not_taken(name, &pointer, "a pointer to its target");
            return None;
        };
        if !pointee.as_scalar().is_some_and(|scalar| properties.types.has(scalar)) {
            let what = format!("{} is not a type for `{name}`", self.cx.show(&pointee));
            let error = Diagnostic::error(ids::OPERAND_TYPE, pointer.span, what);
            let floats = "integers of 32 or 64 bits; `atomic_add`, `atomic_exch`, `atomic_load` and \
                          `atomic_store` also `f32` and `f64`";
            self.cx.report(error.note(format!("atomics work on {floats}")));
            return None;
        }
        if let Some(pointed) = self.points_to(&pointer)
            && pointed.memory == pointed::Memory::Local
        {
            self.atomic_on_local(name, &pointer, pointed);
            return None;
        }
        let wanted = properties.arguments.first()?.with(Some(&pointee))?;
        let pointer = self.coerce(pointer, &wanted, Why::Nothing);
        let mut all = vec![pointer?];
        all.extend(values.into_iter().collect::<Option<Vec<_>>>()?);
        let builtin = match order {
            Some(order) => builtin.with_order(order?),
            None => builtin,
        };
        Some((builtin, all, properties.result.with(Some(&pointee))?))
    }

    /// Reports an atomic operation on a local variable.
    fn atomic_on_local(&mut self, name: &str, pointer: &Expr, pointed: Pointed) {
        let message = format!("`{name}` on a local variable, which only this thread can reach");
        let mut error = Diagnostic::error(ids::ATOMIC_ON_LOCAL, pointer.span, message);
        if pointed.span != pointer.span {
            error = error.label(pointed.span, "the address is taken here");
        }
        let note = "GPUs have atomic operations on global and `shared` memory only";
        let hint =
            "use the variable directly, or one that other threads reach: `static` or `shared`";
        self.cx.report(error.note(note).hint(hint));
    }

    /// Reports an argument whose type is not one of `types`.
    fn wrong_argument(&mut self, name: &str, value: &Expr, types: Types) {
        let mut error = self.argument_error(name, value, types.describe());
        let text = self.cx.sources.text(value.span);
        let wants_float = matches!(types, Types::Floats | Types::WideFloats);
        let is_half = matches!(value.ty, Type::Scalar(Scalar::F16 | Scalar::Bf16));
        if matches!(value.kind, ExprKind::Int(_)) && wants_float {
            error = error.hint(format!("write `{text}.0`"));
        } else if is_half && types == Types::WideFloats {
            error = error.hint(format!("convert it, and the result back: `{text} as f32`"));
        }
        self.cx.report(error);
    }

    /// Reports an argument that is not what is `wanted`.
    pub(super) fn not_taken(&mut self, name: &str, value: &Expr, wanted: &str) {
        let error = self.argument_error(name, value, wanted);
        self.cx.report(error);
    }

    fn argument_error(&self, name: &str, value: &Expr, wanted: &str) -> Diagnostic {
        let message = format!("`{name}` takes {wanted}, not {}", self.cx.show(&value.ty));
        Diagnostic::error(ids::OPERAND_TYPE, value.span, message)
    }
}
