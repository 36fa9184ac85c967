//! Fields, elements, pointers, and assignability.

use super::body::{Body, Meaning, Origin};
use super::expressions::typed;
use super::tree::{Expr, ExprKind, LocalId};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::{Scalar, StructId, Type};

impl<'a> Body<'_, 'a> {
    /// `base.name`, also through a pointer.
    pub(super) fn field(
        &mut self,
        base: &'a ast::Expr,
        name: ast::Name,
        span: Span,
    ) -> Option<Expr> {
        let base = self.infer(base, None)?;
        let base = match &base.ty {
            Type::Pointer { pointee, .. }
                if matches!(**pointee, Type::Struct(_) | Type::Vector(..)) =>
            {
                let (ty, span) = ((**pointee).clone(), base.span);
                typed(ExprKind::Deref(Box::new(base)), ty, span)
            }
            _ => base,
        };
        let (index, ty) = match &base.ty {
            Type::Struct(id) => self.struct_field(*id, name)?,
            Type::Vector(scalar, count) => self.vector_field(*scalar, *count, name)?,
            ty => {
                let message = format!("{} has no fields", self.cx.show(ty));
                let error = Diagnostic::error(ids::UNKNOWN_FIELD, name.span, message);
                self.cx.report(match ty {
                    Type::Pointer { pointee, .. } if pointee.is_pointer() => {
                        error.hint("dereference the pointer first: `(*p).field`")
                    }
                    _ => error,
                });
                return None;
            }
        };
        Some(typed(ExprKind::Field { base: Box::new(base), index }, ty, span))
    }

    /// Index and type of a field.
    pub(super) fn struct_field(&mut self, id: StructId, name: ast::Name) -> Option<(u32, Type)> {
        let text = self.cx.text(name);
        let item = &self.cx.struct_items[id.0 as usize];
        if let Some(index) = item.by_name.get(text) {
            let (ty, _) = &item.fields[*index as usize];
            return Some((*index, ty.clone()?));
        }
        if !item.damaged {
            let owner = self.cx.structs.get(id);
            let message = format!("`{}` has no field `{text}`", owner.name);
            let mut error = Diagnostic::error(ids::UNKNOWN_FIELD, name.span, message);
            if let Some(span) = owner.span {
                error = error.label(span, "declared here");
            }
            let error = self.cx.suggest(error, text, |cx| {
                let spans =
                    cx.struct_items[id.0 as usize].fields.iter().filter_map(|field| field.1);
                spans.map(|span| cx.sources.text(span)).collect()
            });
            self.cx.report(error);
        }
        None
    }

    fn vector_field(&mut self, scalar: Scalar, count: u8, name: ast::Name) -> Option<(u32, Type)> {
        let text = self.cx.text(name);
        let index = ["x", "y", "z", "w"].iter().position(|known| *known == text);
        match index.filter(|index| *index < usize::from(count)) {
            Some(index) => Some((index as u32, Type::Scalar(scalar))),
            None => {
                let ty = self.cx.show(&Type::Vector(scalar, count));
                let message = format!("{ty} has no field `{text}`");
                let fields = [".x` and `.y", ".x`, `.y` and `.z", ".x`, `.y`, `.z` and `.w"];
                let fields = fields[usize::from(count.clamp(2, 4)) - 2];
                let error = Diagnostic::error(ids::UNKNOWN_FIELD, name.span, message);
                self.cx.report(error.note(format!("its fields are `{fields}`")));
                None
            }
        }
    }

    /// `base[index]` of an array or a pointer.
    pub(super) fn index(
        &mut self,
        base: &'a ast::Expr,
        index: &'a ast::Expr,
        span: Span,
    ) -> Option<Expr> {
        let base = self.infer(base, None);
        let index = self.infer(index, None);
        let (base, index) = (base?, index?);
        let Some(element) = element_type(&base.ty) else {
            self.no_elements(&base);
            return None;
        };
        self.check_index(&base, &index)?;
        let kind = ExprKind::Index { base: Box::new(base), index: Box::new(index) };
        Some(typed(kind, element, span))
    }

    fn no_elements(&mut self, base: &Expr) {
        let message = format!("{} has no elements", self.cx.show(&base.ty));
        let error = Diagnostic::error(ids::OPERAND_TYPE, base.span, message);
        self.cx.report(match base.ty {
            Type::Vector(..) => error.hint("use the fields: `.x`, `.y`, …"),
            _ => error.note("only arrays and pointers have elements"),
        });
    }

    /// Reports an index that is not an integer, or a constant index outside the array.
    fn check_index(&mut self, base: &Expr, index: &Expr) -> Option<()> {
        if !index.ty.as_scalar().is_some_and(Scalar::is_integer) {
            let message = format!("an index must be an integer, not {}", self.cx.show(&index.ty));
            self.cx.report(Diagnostic::error(ids::OPERAND_TYPE, index.span, message));
            return None;
        }
        let (Type::Array(_, length), ExprKind::Int(value)) = (&base.ty, &index.kind) else {
            return Some(());
        };
        if (0..i128::from(*length)).contains(value) {
            return Some(());
        }
        let message = format!("there is no element {value} in {length}");
        let error = Diagnostic::error(ids::INDEX_OUT_OF_RANGE, index.span, message);
        let ty = self.cx.show(&base.ty);
        self.cx.report(error.label(base.span, format!("this is {ty}")));
        None
    }

    /// `*operand`
    pub(super) fn deref(&mut self, operand: &'a ast::Expr, span: Span) -> Option<Expr> {
        let value = self.infer(operand, None)?;
        let Some(pointee) = value.ty.pointee().cloned() else {
            let message = format!("{} is not a pointer", self.cx.show(&value.ty));
            self.cx.report(Diagnostic::error(ids::OPERAND_TYPE, value.span, message));
            return None;
        };
        Some(typed(ExprKind::Deref(Box::new(value)), pointee, span))
    }

    /// `&operand`: a `*mut` if the operand can be assigned to.
    pub(super) fn address_of(&mut self, operand: &'a ast::Expr, span: Span) -> Option<Expr> {
        let place = self.infer(operand, None)?;
        let Some(root) = self.root_of(&place) else {
            let message = "this is a value without an address";
            let error = Diagnostic::error(ids::NOT_A_PLACE, place.span, message);
            self.cx.report(match place.kind {
                ExprKind::DynamicShared => error.hint("the name is already a pointer"),
                _ => error.hint("store it in a variable first"),
            });
            return None;
        };
        let mutable = self.is_mutable(root);
        self.forget_pointed(&place);
        let pointee = Box::new(place.ty.clone());
        let ty = Type::Pointer { mutable, pointee };
        self.cx.check_nesting(&ty, span)?;
        Some(typed(ExprKind::AddressOf(Box::new(place)), ty, span))
    }

    /// The variable or pointer access at the root of a place: a `Local`, a `Shared`, a `Deref` or an `Index`
    /// of a pointer. `None` for an expression that is not a place.
    pub(super) fn root_of<'e>(&self, place: &'e Expr) -> Option<&'e Expr> {
        let mut root = place;
        loop {
            match &root.kind {
                ExprKind::Local(_)
                | ExprKind::Shared(_)
                | ExprKind::Static(_)
                | ExprKind::Deref(_) => return Some(root),
                ExprKind::Index { base, .. } if base.ty.is_pointer() => return Some(root),
                ExprKind::Index { base, .. } | ExprKind::Field { base, .. } => root = base,
                _ => return None,
            }
        }
    }

    /// Whether the place with this root can be assigned to.
    fn is_mutable(&self, root: &Expr) -> bool {
        match &root.kind {
            ExprKind::Shared(_) => true,
            ExprKind::Static(id) => !self.cx.statics[id.0 as usize].is_constant,
            ExprKind::Local(id) => match self.variable(*id).map(|variable| &variable.meaning) {
                Some(Meaning::Local { mutable, .. }) => *mutable,
                _ => false,
            },
            ExprKind::Deref(pointer) | ExprKind::Index { base: pointer, .. } => {
                matches!(pointer.ty, Type::Pointer { mutable: true, .. })
            }
            _ => false,
        }
    }

    /// The variable that `place` is, if it is declared without `mut` and without a value, and so can be
    /// assigned once.
    pub(super) fn unset_variable(&self, place: &Expr) -> Option<LocalId> {
        let ExprKind::Local(id) = place.kind else { return None };
        let variable = self.variable(id)?;
        let immutable = matches!(variable.meaning, Meaning::Local { mutable: false, .. });
        (variable.is_unset && immutable).then_some(id)
    }

    /// Reports a place that cannot be assigned to.
    pub(super) fn check_assignable(&mut self, place: &Expr) -> Option<()> {
        let Some(root) = self.root_of(place) else {
            let message = "this is a value; it cannot be assigned to";
            let error = Diagnostic::error(ids::NOT_A_PLACE, place.span, message);
            self.cx.report(match place.kind {
                ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => {
                    error.note("constants cannot be changed")
                }
                _ => error,
            });
            return None;
        };
        if self.is_mutable(root) {
            return Some(());
        }
        let error = match &root.kind {
            ExprKind::Local(id) => {
                let name = self.local_name(*id);
                let message = format!("cannot assign to `{name}`, which is not `mut`");
                let error = Diagnostic::error(ids::IMMUTABLE_ASSIGN, place.span, message);
                let variable = self.variable(*id)?;
                let error = error.label(variable.span, "declared here");
                match variable.meaning {
                    Meaning::Local { origin: Origin::Let, .. } => {
                        error.hint(format!("declare it `let mut {name}`"))
                    }
                    Meaning::Local { origin: Origin::Parameter, .. } => {
                        error.hint(format!("declare it `mut {name}`"))
                    }
                    _ => error.note("the loop itself assigns its variable"),
                }
            }
            ExprKind::Static(id) => {
                let name = self.cx.statics[id.0 as usize].name;
                let text = self.cx.text(name);
                let message = format!("cannot assign to `{text}`, which is a constant");
                Diagnostic::error(ids::IMMUTABLE_ASSIGN, place.span, message)
                    .label(name.span, "declared here")
                    .hint(format!("declare it `static {text}`"))
            }
            _ => {
                let pointer = match &root.kind {
                    ExprKind::Deref(pointer) | ExprKind::Index { base: pointer, .. } => pointer,
                    _ => return None,
                };
                let shown = self.cx.show(&pointer.ty);
                let message = format!("cannot assign through {shown}");
                Diagnostic::error(ids::CONST_POINTER_ASSIGN, place.span, message)
                    .label(pointer.span, format!("this is {shown}"))
                    .hint("declare the pointer `*mut` where it comes from")
            }
        };
        self.cx.report(error);
        None
    }
}

/// The type of an indexed element.
fn element_type(ty: &Type) -> Option<Type> {
    match ty {
        Type::Array(element, _) | Type::Pointer { pointee: element, .. } => {
            Some((**element).clone())
        }
        _ => None,
    }
}
