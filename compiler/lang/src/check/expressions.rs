//! Names, and the dispatch of each expression to its check.

use super::ValueName;
use super::blocks::Want;
use super::body::{Body, Meaning};
use super::launches::NAMED_STREAMS;
use super::tree::{Expr, ExprKind, GeometryField, StaticId};
use super::types::builtin_type;
use crate::builtins::Effect;
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::Type;

/// Threads of a warp: 32 on every GPU so far (CUDA C++ Programming Guide, "Compute Capabilities").
const WARP_SIZE: i128 = 32;

/// The predeclared values.
const BUILTIN_VALUES: [(&str, Option<GeometryField>); 5] = [
    ("thread_idx", Some(GeometryField::ThreadIdx)),
    ("block_idx", Some(GeometryField::BlockIdx)),
    ("block_dim", Some(GeometryField::BlockDim)),
    ("grid_dim", Some(GeometryField::GridDim)),
    ("warp_size", None),
];

impl<'a> Body<'_, 'a> {
    /// The typed expression, or `None` after an error. An open type (of an unsuffixed literal) becomes `hint`
    /// if possible.
    pub(super) fn infer(&mut self, e: &'a ast::Expr, hint: Option<&Type>) -> Option<Expr> {
        // No more messages are shown, and some take time proportional to the number of names in scope.
        if self.cx.diagnostics.is_full() {
            return None;
        }
        let is_aggregate = self.aggregates && may_be_aggregate(&e.kind);
        if self.constant && !is_aggregate && !self.may_be_constant(&e.kind) {
            self.not_constant(e.span);
            return None;
        }
        match &e.kind {
            ast::ExprKind::Error => None,
            ast::ExprKind::Int { value, suffix } => {
                self.integer(*value, false, *suffix, e.span, hint)
            }
            ast::ExprKind::Float { .. } => self.float(e, hint),
            ast::ExprKind::Bool(value) => Some(typed(ExprKind::Bool(*value), Type::BOOL, e.span)),
            ast::ExprKind::Str(_) => self.misplaced_string(e.span),
            ast::ExprKind::Name(name) => self.name(*name, e.span),
            ast::ExprKind::Unary(op, operand) => self.unary(*op, operand, e.span, hint),
            ast::ExprKind::Deref(operand) => self.deref(operand, e.span),
            ast::ExprKind::AddressOf(operand) => self.address_of(operand, e.span),
            ast::ExprKind::Binary { .. } | ast::ExprKind::Logical { .. } => self.chain(e, hint),
            ast::ExprKind::Range(..) => self.misplaced_range(e.span),
            ast::ExprKind::Cast(operand, ty) => self.cast(operand, ty, e.span),
            ast::ExprKind::Call { callee, generics, arguments } => {
                self.call(*callee, generics.as_deref(), arguments, e.span, hint)
            }
            ast::ExprKind::MethodCall { base, name, .. } => self.method(base, *name),
            ast::ExprKind::Field(base, name) => self.field(base, *name, e.span),
            ast::ExprKind::Index(base, index) => self.index(base, index, e.span),
            ast::ExprKind::Struct { name, fields } => self.struct_literal(*name, fields, e.span),
            ast::ExprKind::Array(elements) => self.array(elements, e.span, hint),
            ast::ExprKind::ArrayRepeat(value, length) => {
                self.array_repeat(value, length, e.span, hint)
            }
            ast::ExprKind::If { .. } | ast::ExprKind::Block(_) => {
                self.block_like(e, Want::Infer(hint))
            }
            ast::ExprKind::Launch(launch) => self.launch(launch, e.span),
        }
    }

    fn may_be_constant(&self, kind: &ast::ExprKind) -> bool {
        match kind {
            ast::ExprKind::Error
            | ast::ExprKind::Int { .. }
            | ast::ExprKind::Float { .. }
            | ast::ExprKind::Bool(_)
            | ast::ExprKind::Name(_)
            | ast::ExprKind::Unary(..)
            | ast::ExprKind::Binary { .. }
            | ast::ExprKind::Logical { .. }
            | ast::ExprKind::Cast(..) => true,
            ast::ExprKind::Call { callee, .. } => {
                let name = self.cx.text(*callee);
                let builtin = self.cx.builtins.get(name).copied();
                builtin.is_some_and(|builtin| builtin.properties().effect == Effect::Constant)
                    && self.cx.value(name, callee.span.file).is_none()
            }
            _ => false,
        }
    }

    /// The value of a name.
    pub(super) fn named_value(&mut self, name: ast::Name) -> Option<Expr> {
        self.name(name, name.span)
    }

    /// A variable outside functions, which constant expressions cannot use.
    fn variable_outside(&mut self, id: StaticId, span: Span) -> Option<Expr> {
        if self.constant {
            self.not_constant(span);
            return None;
        }
        let ty = self.cx.statics[id.0 as usize].ty.clone()?;
        Some(typed(ExprKind::Static(id), ty, span))
    }

    /// The value of a name: a variable, a constant or a predeclared value.
    fn name(&mut self, name: ast::Name, span: Span) -> Option<Expr> {
        let text = self.cx.text(name);
        if let Some(variable) = self.use_variable(text) {
            let (meaning, ty) = (variable.meaning.clone(), variable.ty.clone()?);
            return match meaning {
                Meaning::Local { id, .. } => Some(typed(ExprKind::Local(id), ty, span)),
                Meaning::Shared(id) => Some(typed(ExprKind::Shared(id), ty, span)),
                Meaning::DynamicShared => {
                    Some(typed(ExprKind::DynamicShared, Type::pointer_mut(ty), span))
                }
                Meaning::Opaque => None,
            };
        }
        if let Some(constant) = self.cx.const_parameter(text, self.constant, span) {
            return constant;
        }
        match self.cx.value(text, span.file) {
            Some((ValueName::Const(at), _)) => {
                let item = &self.cx.consts[at];
                if let Some(id) = item.variable {
                    return self.variable_outside(id, span);
                }
                return Some(typed(item.value.clone()?, item.ty.clone()?, span));
            }
            Some((ValueName::Static(id), _)) => return self.variable_outside(id, span),
            Some((ValueName::Opaque, _)) => return None,
            Some((ValueName::Function(function), at)) => {
                self.function_as_value(text, function, at, span);
                return None;
            }
            None => {}
        }
        if let Some((_, field)) = BUILTIN_VALUES.iter().find(|(known, _)| *known == text) {
            return match field {
                None => Some(typed(ExprKind::Int(WARP_SIZE), Type::U32, span)),
                Some(_) if self.constant => {
                    self.not_constant(span);
                    None
                }
                Some(field) => Some(typed(ExprKind::Geometry(*field), Type::DIM3, span)),
            };
        }
        self.unknown_value(text, span);
        None
    }

    fn function_as_value(&mut self, name: &str, function: usize, declared: Span, span: Span) {
        let is_kernel = self.cx.functions.get(function).is_some_and(|f| f.item.is_kernel);
        let what = if is_kernel { "kernel" } else { "function" };
        let message = format!("`{name}` is a {what}, not a value");
        let error = Diagnostic::error(ids::NOT_A_VALUE, span, message);
        let error = error.label(declared, "declared here");
        self.cx.report(match is_kernel {
            true => error.hint(format!("launch it: `launch {name}<<<grid, block>>>(…)`")),
            false => error.hint(format!("call it: `{name}(…)`")),
        });
    }

    fn unknown_value(&mut self, text: &'a str, span: Span) {
        if builtin_type(text).is_some() || self.cx.struct_named(text, span.file).is_some() {
            let message = format!("`{text}` is a type, not a value");
            self.cx.report(Diagnostic::error(ids::NOT_A_VALUE, span, message));
            return;
        }
        if self.cx.builtins.contains_key(text) {
            let message = format!("`{text}` is a function, not a value");
            let error = Diagnostic::error(ids::NOT_A_VALUE, span, message);
            self.cx.report(error.hint(format!("call it: `{text}(…)`")));
            return;
        }
        if self.constant && self.cx.scope.contains(&text) {
            // A variable in the length of an array.
            self.not_constant(span);
            return;
        }
        if NAMED_STREAMS.contains(&text) {
            let message = format!("there is no `{text}` here");
            let hint = "use a named stream in a launch: `<<<grid, block, stream = ";
            let error = Diagnostic::error(ids::UNKNOWN_NAME, span, message);
            self.cx.report(error.hint(format!("{hint}{text}>>>`")));
            self.declare_forever(text, span);
            return;
        }
        self.cx.report_unknown(text, span.file, |cx| {
            let message = format!("there is no `{text}` here");
            let error = Diagnostic::error(ids::UNKNOWN_NAME, span, message);
            if ["NULL", "nullptr", "null"].contains(&text) {
                return error.hint("write the null pointer as `0 as *mut T`");
            }
            cx.suggest(error, text, |cx| {
                let constants = cx.consts.iter().map(|item| cx.text(item.item.name));
                let statics = cx.statics.iter().filter(|item| !item.is_constant);
                let statics = statics.map(|item| cx.text(item.name));
                let builtins = BUILTIN_VALUES.iter().map(|(name, _)| *name);
                cx.scope.iter().copied().chain(constants).chain(statics).chain(builtins).collect()
            })
        });
        // Report an unknown name once per body.
        self.declare_forever(text, span);
    }

    fn misplaced_string(&mut self, span: Span) -> Option<Expr> {
        let message = "a string can only be an argument of `printf` or the message of `assert`";
        self.cx.report(Diagnostic::error(ids::MISPLACED_STRING, span, message));
        None
    }

    fn misplaced_range(&mut self, span: Span) -> Option<Expr> {
        let message = "a range can only be used in a `for` loop";
        self.cx.report(Diagnostic::error(ids::MISPLACED_RANGE, span, message));
        None
    }

    fn method(&mut self, base: &'a ast::Expr, name: ast::Name) -> Option<Expr> {
        match &base.kind {
            ast::ExprKind::Range(..) => self.misplaced_range(base.span),
            ast::ExprKind::Error => None,
            _ => {
                self.unknown_method(name);
                None
            }
        }
    }

    pub(super) fn unknown_method(&mut self, name: ast::Name) {
        let text = self.cx.text(name);
        let error = Diagnostic::error(
            ids::UNKNOWN_METHOD,
            name.span,
            format!("there is no method `{text}`"),
        );
        let is_function =
            self.cx.builtins.contains_key(text) || self.cx.value(text, name.span.file).is_some();
        self.cx.report(match is_function {
            true => error.hint(format!("call the function: `{text}(…)`")),
            false if text == "rev" => error.hint(
                "loops count up: for the last one first, write `n - 1 - i` where `i` counts to `n`",
            ),
            false => error.note("only ranges have a method, with one argument: `(a..b).step(n)`"),
        });
    }
}

/// An expression with its type.
pub(super) fn typed(kind: ExprKind, ty: Type, span: Span) -> Expr {
    Expr { kind, ty, span }
}

/// Whether an expression may initialise a `static` variable although it is not a constant. Its own check
/// looks at the parts.
fn may_be_aggregate(kind: &ast::ExprKind) -> bool {
    matches!(
        kind,
        ast::ExprKind::Struct { .. }
            | ast::ExprKind::Array(_)
            | ast::ExprKind::ArrayRepeat(..)
            | ast::ExprKind::Call { .. }
    )
}
