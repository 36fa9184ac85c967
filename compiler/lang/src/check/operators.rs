//! Operators and `as`.

use super::body::Body;
use super::expressions::typed;
use super::fold::{self, Folded};
use super::mismatch::{DEFAULT, Why, becomes_const, is_plain_integer};
use super::tree::{BinaryOp, Block, Expr, ExprKind, UnaryOp};
use crate::chain::Left;
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::{Scalar, Type};

/// The operator in the language's syntax.
fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Rem => "%",
        BinaryOp::And => "&",
        BinaryOp::Or => "|",
        BinaryOp::Xor => "^",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
    }
}

fn is_shift(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Shl | BinaryOp::Shr)
}

fn is_integer(ty: &Type) -> bool {
    ty.as_scalar().is_some_and(Scalar::is_integer)
}

/// Whether `op` accepts two values of type `ty`. Shifts and pointers are handled elsewhere.
fn supports(op: BinaryOp, ty: &Type) -> bool {
    let Type::Scalar(scalar) = ty else { return false };
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => {
            *scalar != Scalar::Bool
        }
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {
            *scalar == Scalar::Bool || scalar.is_integer()
        }
        BinaryOp::Shl | BinaryOp::Shr => scalar.is_integer(),
        BinaryOp::Eq | BinaryOp::Ne => true,
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => *scalar != Scalar::Bool,
    }
}

impl<'a> Body<'_, 'a> {
    /// `-e` or `!e`
    pub(super) fn unary(
        &mut self,
        op: UnaryOp,
        operand: &'a ast::Expr,
        span: Span,
        hint: Option<&Type>,
    ) -> Option<Expr> {
        if let (UnaryOp::Neg, ast::ExprKind::Int { value, suffix }) = (op, &operand.kind) {
            return self.integer(*value, true, *suffix, span, hint);
        }
        let value = self.infer(operand, hint)?;
        let works = match (op, &value.ty) {
            (UnaryOp::Neg, Type::Scalar(scalar)) => scalar.is_signed() || scalar.is_float(),
            (UnaryOp::Not, Type::Scalar(scalar)) => *scalar == Scalar::Bool || scalar.is_integer(),
            _ => false,
        };
        if !works {
            self.wrong_unary(op, &value, span);
            return None;
        }
        let kind = match fold::unary(op, &value.kind, &value.ty) {
            Folded::Value(kind) => kind,
            Folded::Wrapped(kind) => self.wrapped(kind, &value.ty, span)?,
            Folded::No => {
                let ty = value.ty.clone();
                return Some(typed(ExprKind::Unary(op, Box::new(value)), ty, span));
            }
        };
        Some(typed(kind, value.ty, span))
    }

    fn wrong_unary(&mut self, op: UnaryOp, value: &Expr, span: Span) {
        let sign = if op == UnaryOp::Neg { "-" } else { "!" };
        let message = format!("`{sign}` does not work on {}", self.cx.show(&value.ty));
        let mut error = Diagnostic::error(ids::OPERAND_TYPE, span, message);
        if is_integer(&value.ty) {
            error = error.hint("an unsigned number has no sign; `0 - x` wraps");
        }
        self.cx.report(error);
    }

    /// A folded constant that overflowed: wraps, as at run time, but is an error in a constant expression.
    pub(super) fn wrapped(&mut self, kind: ExprKind, ty: &Type, span: Span) -> Option<ExprKind> {
        if !self.constant {
            return Some(kind);
        }
        let message = format!("the value does not fit {}", self.cx.show(ty));
        self.cx.report(Diagnostic::error(ids::CONST_OVERFLOW, span, message));
        None
    }

    /// A chain of operators, walked down its left side and back. The operand that has a type of its own is
    /// typed first and determines the other's.
    pub(super) fn chain(&mut self, e: &'a ast::Expr, hint: Option<&Type>) -> Option<Expr> {
        let mut links = vec![];
        let mut hint = hint.cloned();
        let mut node = e;
        loop {
            match &node.kind {
                ast::ExprKind::Binary { op, left, right, .. } => {
                    hint = hint.filter(|_| !op.is_comparison());
                    let is_open = left.literal != ast::Literal::No
                        && right.literal == ast::Literal::No
                        && !is_shift(*op);
                    let first = is_open.then(|| {
                        let right = self.infer(right, hint.as_ref());
                        hint = right.as_ref().map(|right| right.ty.clone());
                        right
                    });
                    links.push((node, first));
                    node = left;
                }
                ast::ExprKind::Logical { left, .. } => {
                    hint = Some(Type::BOOL);
                    links.push((node, None));
                    node = left;
                }
                _ => break,
            }
        }
        let is_logical = |link: &ast::Expr| matches!(link.kind, ast::ExprKind::Logical { .. });
        let mut value = match links.last() {
            Some((link, _)) if is_logical(link) => self.need(node, &Type::BOOL, Why::Nothing),
            _ => self.infer(node, hint.as_ref()),
        };
        while let Some((link, first)) = links.pop() {
            value = match &link.kind {
                ast::ExprKind::Binary { op, op_span, right, .. } => {
                    let right = first.unwrap_or_else(|| {
                        let hint = value.as_ref().filter(|_| !is_shift(*op)).map(|left| &left.ty);
                        self.infer(right, hint)
                    });
                    match (value, right) {
                        (Some(left), Some(right)) => {
                            self.combine(*op, *op_span, left, right, link.span)
                        }
                        _ => None,
                    }
                }
                ast::ExprKind::Logical { is_and, right, .. } => {
                    self.logical(*is_and, value, right, link.span)
                }
                _ => value,
            };
        }
        value
    }

    /// `&&` or `||`, given its left operand.
    fn logical(
        &mut self,
        is_and: bool,
        left: Option<Expr>,
        right: &'a ast::Expr,
        span: Span,
    ) -> Option<Expr> {
        let left = left.and_then(|left| self.coerce(left, &Type::BOOL, Why::Nothing));
        // In an instance, the right side may only make sense for other arguments.
        if let Some(Expr { kind: ExprKind::Bool(value), .. }) = &left
            && *value != is_and
            && self.discards()
        {
            return Some(typed(ExprKind::Bool(*value), Type::BOOL, span));
        }
        // The right side may not be evaluated.
        let alive = self.alive;
        let right = self.need(right, &Type::BOOL, Why::Nothing);
        self.alive = alive;
        let (left, right) = (left?, right?);
        let kind = match (&left.kind, &right.kind) {
            (ExprKind::Bool(left), ExprKind::Bool(right)) => {
                ExprKind::Bool(if is_and { *left && *right } else { *left || *right })
            }
            _ => ExprKind::Logical { is_and, left: Left::new(left), right: Box::new(right) },
        };
        Some(typed(kind, Type::BOOL, span))
    }

    /// `left op right` of typed operands.
    pub(super) fn combine(
        &mut self,
        op: BinaryOp,
        op_span: Span,
        left: Expr,
        right: Expr,
        span: Span,
    ) -> Option<Expr> {
        let ty = match (op, &left.ty, &right.ty) {
            (BinaryOp::Add | BinaryOp::Sub, Type::Pointer { .. }, right) if is_integer(right) => {
                left.ty.clone()
            }
            (_, Type::Pointer { .. }, Type::Pointer { .. })
                if op == BinaryOp::Sub || op.is_comparison() =>
            {
                return self.pointers(op, op_span, left, right, span);
            }
            (BinaryOp::Shl | BinaryOp::Shr, from, count) => {
                if !is_integer(from) || !is_integer(count) {
                    let wrong = if is_integer(from) { &right } else { &left };
                    self.wrong_operand(op, wrong);
                    return None;
                }
                left.ty.clone()
            }
            (_, from, to) if from != to => {
                self.different_operands(op, op_span, &left, &right);
                return None;
            }
            (_, from, _) if !supports(op, from) => {
                self.wrong_operand(op, &left);
                return None;
            }
            _ if op.is_comparison() => Type::BOOL,
            (_, from, _) => from.clone(),
        };
        let divides = matches!(op, BinaryOp::Div | BinaryOp::Rem);
        if divides && matches!(right.kind, ExprKind::Int(0)) {
            let message = "this divides by zero";
            self.cx.report(Diagnostic::error(ids::DIVISION_BY_ZERO, right.span, message));
            return None;
        }
        let kind = match fold::binary(op, &left.kind, &right.kind, &left.ty) {
            Folded::Value(kind) => kind,
            Folded::Wrapped(kind) => self.wrapped(kind, &ty, span)?,
            Folded::No => ExprKind::Binary(op, Left::new(left), Box::new(right)),
        };
        Some(typed(kind, ty, span))
    }

    /// A difference or comparison of pointers.
    fn pointers(
        &mut self,
        op: BinaryOp,
        op_span: Span,
        left: Expr,
        right: Expr,
        span: Span,
    ) -> Option<Expr> {
        if left.ty.pointee() != right.ty.pointee() {
            self.different_operands(op, op_span, &left, &right);
            return None;
        }
        let ty = if op.is_comparison() { Type::BOOL } else { Type::I64 };
        let (left, right) = if becomes_const(&left.ty, &right.ty) {
            let to = right.ty.clone();
            (self.coerce(left, &to, Why::Nothing)?, right)
        } else {
            let to = left.ty.clone();
            (left, self.coerce(right, &to, Why::Nothing)?)
        };
        Some(typed(ExprKind::Binary(op, Left::new(left), Box::new(right)), ty, span))
    }

    fn wrong_operand(&mut self, op: BinaryOp, operand: &Expr) {
        let shown = self.cx.show(&operand.ty);
        let message = format!("`{}` does not work on {shown}", symbol(op));
        let mut error = Diagnostic::error(ids::OPERAND_TYPE, operand.span, message)
            .at_caret(format!("this is {shown}"));
        error = match &operand.ty {
            Type::Pointer { .. } => {
                error.note("pointers support `p + n`, `p - n`, `p - q` and comparisons")
            }
            Type::Vector(..) => error.hint("use its fields, `.x`, `.y`, …"),
            Type::Struct(_) => error.hint("use its fields"),
            _ => error,
        };
        self.cx.report(error);
    }

    fn different_operands(&mut self, op: BinaryOp, op_span: Span, left: &Expr, right: &Expr) {
        let (from, to) = (self.cx.show(&left.ty), self.cx.show(&right.ty));
        let message = format!("`{}` between {from} and {to}", symbol(op));
        let mut error = Diagnostic::error(ids::TYPE_MISMATCH, op_span, message)
            .label(left.span, format!("this is {from}"))
            .label(right.span, format!("this is {to}"));
        let plain = [left, right].into_iter().find_map(|value| {
            let text = self.cx.sources.text(value.span);
            is_plain_integer(value, text).then_some(text)
        });
        let default = self.default_hint(left, &right.ty);
        if let Some((declared, hint)) = default.or_else(|| self.default_hint(right, &left.ty)) {
            self.cx.report(error.label(declared, DEFAULT).hint(hint));
            return;
        }
        error = match (&left.ty, &right.ty) {
            (Type::Scalar(a), Type::Scalar(b))
                if a.is_float() != b.is_float() && plain.is_some() =>
            {
                error.hint(format!("write `{}.0`", plain.unwrap_or_default()))
            }
            (Type::Scalar(a), Type::Scalar(b)) if *a != Scalar::Bool && *b != Scalar::Bool => {
                error.hint("convert one of them with `as`")
            }
            (left, Type::Pointer { .. }) if is_integer(left) && op == BinaryOp::Add => {
                error.hint("write the pointer first: `p + n`")
            }
            _ => error,
        };
        self.cx.report(error);
    }

    /// `operand as ty`
    pub(super) fn cast(
        &mut self,
        operand: &'a ast::Expr,
        ty: &'a ast::TypeExpr,
        span: Span,
    ) -> Option<Expr> {
        let target = self.cx.resolve_type(ty);
        let hint = target.as_ref().and_then(|target| cast_hint(operand, target));
        let value = self.infer(operand, hint.as_ref())?;
        let target = target?;
        if value.ty == target {
            return Some(self.cast_to_same(value, span));
        }
        if !casts(&value.ty, &target) {
            self.invalid_cast(&value, &target, span);
            return None;
        }
        let folded = target.as_scalar().map(|scalar| fold::cast(&value.kind, scalar));
        let kind = match folded {
            Some(Folded::Value(kind)) => kind,
            _ => ExprKind::Cast(Box::new(value)),
        };
        Some(typed(kind, target, span))
    }

    /// A cast to the same type, which only turns a place into a value.
    fn cast_to_same(&mut self, value: Expr, span: Span) -> Expr {
        let ty = value.ty.clone();
        let kind = match self.root_of(&value) {
            None => value.kind,
            Some(_) => ExprKind::Block(Block { statements: vec![], value: Some(Box::new(value)) }),
        };
        typed(kind, ty, span)
    }

    fn invalid_cast(&mut self, value: &Expr, target: &Type, span: Span) {
        let (from, to) = (self.cx.show(&value.ty), self.cx.show(target));
        let message = format!("{from} does not convert to {to}");
        let error = Diagnostic::error(ids::INVALID_CAST, span, message);
        self.cx.report(match (&value.ty, target) {
            (Type::Scalar(_), Type::Scalar(Scalar::Bool)) => error.hint("compare it: `x != 0`"),
            (Type::Scalar(Scalar::Bool), _) => {
                error.hint("convert to an integer first: `as u32 as f32`")
            }
            (Type::Pointer { .. }, Type::Scalar(_)) | (Type::Scalar(_), Type::Pointer { .. }) => {
                error.hint("a pointer converts to and from `u64` and `i64`")
            }
            (Type::Array(..), Type::Pointer { .. }) => {
                error.hint("take the address of its first element: `&a[0]`")
            }
            _ => error,
        });
    }
}

/// The type for an open literal before `as`: the target type, if it is of the same kind and can hold the
/// value.
fn cast_hint(operand: &ast::Expr, target: &Type) -> Option<Type> {
    let (magnitude, negative) = match &operand.kind {
        ast::ExprKind::Int { value, suffix: None } => (*value, false),
        ast::ExprKind::Unary(UnaryOp::Neg, inner) => match &inner.kind {
            ast::ExprKind::Int { value, suffix: None } => (*value, true),
            _ => return open_cast_hint(operand, target),
        },
        _ => return open_cast_hint(operand, target),
    };
    let value = i128::try_from(magnitude).unwrap_or(i128::MAX);
    let value = if negative { -value } else { value };
    let wanted = match target {
        Type::Pointer { .. } => Some(Scalar::U64),
        _ => target.as_scalar().filter(|scalar| scalar.is_integer()),
    };
    let candidates = [Scalar::I32, Scalar::U32, Scalar::I64, Scalar::U64];
    wanted.into_iter().chain(candidates).find_map(|scalar| {
        let (min, max) = scalar.range();
        (min..=max).contains(&value).then_some(Type::Scalar(scalar))
    })
}

fn open_cast_hint(operand: &ast::Expr, target: &Type) -> Option<Type> {
    let scalar = target.as_scalar()?;
    let same_kind = match operand.literal {
        ast::Literal::No => false,
        ast::Literal::Int => scalar.is_integer(),
        ast::Literal::Float => scalar.is_float(),
    };
    same_kind.then_some(Type::Scalar(scalar))
}

/// Whether `as` converts from one type to the other.
fn casts(from: &Type, to: &Type) -> bool {
    let is_address = |ty: &Type| matches!(ty, Type::Scalar(Scalar::U64 | Scalar::I64));
    match (from, to) {
        (Type::Scalar(Scalar::Bool), Type::Scalar(to)) => to.is_integer(),
        (Type::Scalar(_), Type::Scalar(to)) => *to != Scalar::Bool,
        (Type::Pointer { .. }, Type::Pointer { .. }) => true,
        (Type::Pointer { .. }, to) => is_address(to),
        (from, Type::Pointer { .. }) => is_address(from),
        _ => false,
    }
}
