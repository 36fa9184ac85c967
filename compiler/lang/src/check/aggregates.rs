//! Literals and constructors of structs, vectors, `dim3` and arrays.

use super::body::Body;
use super::expressions::typed;
use super::mismatch::Why;
use super::tree::{Block, Expr, ExprKind, Statement, StatementKind};
use super::types::builtin_type;
use super::visit::Child;
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::{StructId, Type};

impl<'a> Body<'_, 'a> {
    /// `Name { field: e, … }`
    pub(super) fn struct_literal(
        &mut self,
        name: ast::Name,
        fields: &'a [(ast::Name, ast::Expr)],
        span: Span,
    ) -> Option<Expr> {
        let Some(id) = self.struct_id(name) else {
            // To report errors in them.
            for (_, value) in fields {
                self.infer(value, None);
            }
            return None;
        };
        let count = self.cx.struct_items[id.0 as usize].fields.len();
        let damaged = self.cx.struct_items[id.0 as usize].damaged;
        // For each field its value and its position in the evaluation order.
        let mut values: Vec<Option<(usize, Expr)>> = (0..count).map(|_| None).collect();
        let mut given: Vec<Option<Span>> = vec![None; count];
        let mut wrong = damaged;
        for (at, (field, value)) in fields.iter().enumerate() {
            let Some((index, ty)) = self.struct_field(id, *field) else {
                self.infer(value, None);
                self.mark_given(id, *field, &mut given);
                wrong = true;
                continue;
            };
            let index = index as usize;
            let declared = self.cx.struct_items[id.0 as usize].fields[index].1;
            let why = declared.map_or(Why::Nothing, Why::Field);
            let value = self.need(value, &ty, why);
            if let Some(first) = given[index] {
                let message = format!("the field `{}` is given twice", self.cx.text(*field));
                let error = Diagnostic::error(ids::DUPLICATE_FIELD, field.span, message);
                self.cx.report(error.label(first, "first given here"));
                wrong = true;
            }
            given[index] = Some(field.span);
            wrong |= value.is_none();
            values[index] = value.map(|value| (at, value));
        }
        if !damaged {
            wrong |= self.missing_fields(id, name, &given);
        }
        if wrong {
            return None;
        }
        let values: Vec<(usize, Expr)> = values.into_iter().flatten().collect();
        Some(self.ordered_aggregate(values, Type::Struct(id), span))
    }

    /// Marks a field as given although its type is unknown.
    fn mark_given(&self, id: StructId, field: ast::Name, given: &mut [Option<Span>]) {
        let item = &self.cx.struct_items[id.0 as usize];
        if let Some(index) = item.by_name.get(self.cx.text(field)) {
            given[*index as usize] = Some(field.span);
        }
    }

    fn struct_id(&mut self, name: ast::Name) -> Option<StructId> {
        let text = self.cx.text(name);
        match self.cx.struct_named(text, name.span.file) {
            Some(id) => id,
            None if builtin_type(text).is_some() => {
                let message = format!("`{text}` is not a struct");
                let error = Diagnostic::error(ids::UNKNOWN_TYPE, name.span, message);
                self.cx.report(match builtin_type(text) {
                    Some(Type::Vector(..)) => error.hint(format!("write `{text}(…)`")),
                    _ => error,
                });
                None
            }
            None => {
                self.cx.report_unknown(text, name.span.file, |cx| {
                    let message = format!("there is no struct `{text}`");
                    let error = Diagnostic::error(ids::UNKNOWN_TYPE, name.span, message);
                    cx.suggest(error, text, |cx| cx.struct_names())
                });
                None
            }
        }
    }

    fn missing_fields(&mut self, id: StructId, name: ast::Name, given: &[Option<Span>]) -> bool {
        let owner = self.cx.structs.get(id);
        let missing: Vec<String> = owner
            .fields
            .iter()
            .zip(given)
            .filter(|(_, given)| given.is_none())
            .map(|(field, _)| format!("`{}`", field.name))
            .collect();
        if missing.is_empty() {
            return false;
        }
        let what = if missing.len() == 1 { "the field" } else { "the fields" };
        let message = format!("{what} {} of `{}` are missing", missing.join(", "), owner.name);
        let message = match missing.len() {
            1 => message.replace(" are missing", " is missing"),
            _ => message,
        };
        let mut error = Diagnostic::error(ids::MISSING_FIELD, name.span, message);
        if let Some(span) = owner.span {
            error = error.label(span, "declared here");
        }
        self.cx.report(error);
        true
    }

    /// An aggregate of values in field order, each with its position in source order. If the orders differ
    /// and evaluation order is observable, the values are evaluated in source order into variables.
    fn ordered_aggregate(&mut self, values: Vec<(usize, Expr)>, ty: Type, span: Span) -> Expr {
        let in_order = values.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if in_order || values.iter().all(|(_, value)| is_pure(value)) {
            let values = values.into_iter().map(|(_, value)| value).collect();
            return typed(ExprKind::Aggregate(values), ty, span);
        }
        let mut lets: Vec<(usize, Statement)> = vec![];
        let mut reads = vec![];
        for (at, value) in values {
            let (ty, span) = (value.ty.clone(), value.span);
            let local = self.add_local("field", ty.clone(), span, None);
            let kind = StatementKind::Let { local, value: Some(value) };
            lets.push((at, Statement { kind, span }));
            reads.push(typed(ExprKind::Local(local), ty, span));
        }
        lets.sort_by_key(|(at, _)| *at);
        let statements = lets.into_iter().map(|(_, statement)| statement).collect();
        let value = typed(ExprKind::Aggregate(reads), ty.clone(), span);
        let block = Block { statements, value: Some(Box::new(value)) };
        typed(ExprKind::Block(block), ty, span)
    }

    /// `f32x2(a, b)` or `dim3(x, y, z)`
    pub(super) fn constructor(
        &mut self,
        ty: Type,
        name: &str,
        arguments: &'a [ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        let (element, count) = match &ty {
            Type::Vector(scalar, count) => (Type::Scalar(*scalar), usize::from(*count)),
            _ => (Type::U32, 3),
        };
        let values: Vec<Option<Expr>> =
            arguments.iter().map(|argument| self.need(argument, &element, Why::Nothing)).collect();
        if values.len() != count {
            let message = format!("`{name}` takes {count} values, not {}", values.len());
            let error = Diagnostic::error(ids::CALL_ARITY, span, message);
            self.cx.report(match &ty {
                // CUDA's constructor accepts fewer.
                Type::Struct(_) if values.len() < count => error.hint("use 1 for the others"),
                _ => error,
            });
            return None;
        }
        let values = values.into_iter().collect::<Option<Vec<_>>>()?;
        Some(typed(ExprKind::Aggregate(values), ty, span))
    }

    /// `[a, b, c]`
    pub(super) fn array(
        &mut self,
        elements: &'a [ast::Expr],
        span: Span,
        hint: Option<&Type>,
    ) -> Option<Expr> {
        if elements.is_empty() {
            let message = "an array needs at least one element";
            self.cx.report(Diagnostic::error(ids::ARRAY_LENGTH, span, message));
            return None;
        }
        let hint = match hint {
            Some(Type::Array(element, _)) => Some(&**element),
            _ => None,
        };
        // The first element with a type of its own determines the type of all.
        let lead = elements.iter().position(|e| e.literal == ast::Literal::No).unwrap_or(0);
        let mut lead_value = Some(self.infer(&elements[lead], hint)?);
        let (ty, at) = match &lead_value {
            Some(value) => (value.ty.clone(), value.span),
            None => return None,
        };
        if ty == Type::Unit {
            let message = "this has no value to store in the array";
            self.cx.report(Diagnostic::error(ids::NOT_A_VALUE, at, message));
            return None;
        }
        let values: Vec<Option<Expr>> = elements
            .iter()
            .enumerate()
            .map(|(index, element)| match index == lead {
                true => lead_value.take(),
                false => self.need(element, &ty, Why::Same(at)),
            })
            .collect();
        let values = values.into_iter().collect::<Option<Vec<_>>>()?;
        let ty = Type::Array(Box::new(ty), values.len() as u64);
        self.cx.check_nesting(&ty, span)?;
        Some(typed(ExprKind::Array(values), ty, span))
    }

    /// `[value; length]`
    pub(super) fn array_repeat(
        &mut self,
        value: &'a ast::Expr,
        length: &'a ast::Expr,
        span: Span,
        hint: Option<&Type>,
    ) -> Option<Expr> {
        let hint = match hint {
            Some(Type::Array(element, _)) => Some(&**element),
            _ => None,
        };
        let value = self.infer(value, hint);
        let length = self.cx.array_length(length);
        let (value, length) = (value?, length?);
        if value.ty == Type::Unit {
            let message = "this has no value to store in the array";
            self.cx.report(Diagnostic::error(ids::NOT_A_VALUE, value.span, message));
            return None;
        }
        let ty = Type::Array(Box::new(value.ty.clone()), length);
        self.cx.check_nesting(&ty, span)?;
        if self.cx.leaves(&ty) > super::types::MAX_LEAVES {
            self.cx.report_size(span);
            return None;
        }
        Some(typed(ExprKind::ArrayRepeat(Box::new(value)), ty, span))
    }
}

/// Whether evaluation order does not matter for a value: it has no side effects and cannot stop the thread.
pub(super) fn is_pure(value: &Expr) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match &value.kind {
            ExprKind::Builtin { builtin, .. } if !builtin.properties().effect.is_pure() => {
                return false;
            }
            ExprKind::Text(_)
            | ExprKind::If { .. }
            | ExprKind::Block(_)
            | ExprKind::Call { .. }
            | ExprKind::CallExtern { .. }
            | ExprKind::Launch(_) => return false,
            _ => value.for_each_child(|child| match child {
                Child::Expr(part) => open.push(part),
                Child::Block(_) => {}
            }),
        }
    }
    true
}
