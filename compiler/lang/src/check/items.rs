//! Declaring items and resolving signatures.

use super::body::Body;
use super::mismatch::Why;
use super::tree::{ExprKind, KernelAttributes, LaunchBounds, StaticId};
use super::{ConstItem, Context, Parameter, Signature, StaticItem, ValueName};
use crate::diagnostics::{Diagnostic, ids};
use crate::extents::{MAX_BLOCK_THREADS, MAX_MIN_BLOCKS};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::{StructId, Type};

/// The items by kind, after all names are declared.
pub(super) struct Items<'a> {
    pub(super) structs: Vec<(StructId, &'a ast::Struct)>,
    pub(super) functions: Vec<&'a ast::Function>,
}

impl<'a> Context<'a> {
    /// Declares the name of every item. Of two items with the same name, the first keeps it.
    pub(super) fn declare(&mut self, file: &'a ast::File) -> Items<'a> {
        let mut items = Items { structs: vec![], functions: vec![] };
        for item in &file.items {
            match item {
                ast::Item::Use(_) => {}
                ast::Item::Const(item) => {
                    let id = ValueName::Const(self.consts.len());
                    if self.declare_value(item.name, id) {
                        self.consts.push(ConstItem { item, ty: None, value: None, variable: None });
                    }
                }
                ast::Item::Static(item) => {
                    let id = ValueName::Static(StaticId(self.statics.len() as u32));
                    if self.declare_value(item.name, id) {
                        self.statics.push(StaticItem {
                            name: item.name,
                            declared: &item.ty,
                            value: &item.value,
                            is_constant: false,
                            ty: None,
                        });
                    }
                }
                ast::Item::Struct(item) => {
                    if let Some(id) = self.declare_struct(item) {
                        items.structs.push((id, item));
                    }
                }
                ast::Item::Function(item) => {
                    let at = items.functions.len();
                    if self.declare_value(item.name, ValueName::Function(at)) {
                        items.functions.push(item);
                    }
                }
                // It may have been meant as either a type or a value.
                ast::Item::Opaque(name) => {
                    let text = self.text(*name);
                    self.type_names.entry(text).or_insert((None, Some(name.span)));
                    self.value_names.entry(text).or_insert((ValueName::Opaque, name.span));
                }
            }
        }
        items
    }

    fn declare_value(&mut self, name: ast::Name, value: ValueName) -> bool {
        let text = self.text(name);
        match self.value_names.get(text) {
            None => {
                self.value_names.insert(text, (value, name.span));
                true
            }
            Some((_, first)) => {
                let first = *first;
                self.report_duplicate(name.span, text, Some(first));
                false
            }
        }
    }

    /// Reports a second declaration of a name. Without `first`, the name is built in.
    pub(super) fn report_duplicate(&mut self, span: Span, name: &str, first: Option<Span>) {
        let error = Diagnostic::error(
            ids::DUPLICATE_NAME,
            span,
            format!("the name `{name}` is declared twice"),
        );
        self.report(match first {
            Some(first) => error.label(first, "first declared here"),
            None => error.note(format!("`{name}` is a built-in type")),
        });
    }

    /// Resolves the parameters, result and attributes of a function, with its const parameters in scope.
    pub(super) fn signature(&mut self, item: &'a ast::Function) -> Signature<'a> {
        let mut parameters: Vec<Parameter> = Vec::with_capacity(item.parameters.len());
        for parameter in &item.parameters {
            let ty = self.resolve_type(&parameter.ty);
            parameters.push(Parameter { ty, span: parameter.name.span });
        }
        let result = match &item.result {
            None => Some(Type::Unit),
            Some(ty) if item.is_kernel => {
                let error = Diagnostic::error(
                    ids::KERNEL_RESULT,
                    ty.span,
                    "a kernel cannot return a value",
                );
                self.report(error.hint("pass a pointer and write the result through it"));
                None
            }
            Some(ty) => self.resolve_type(ty),
        };
        let kernel = self.attributes(item);
        let name = self.text(item.name).to_string();
        Signature { item, name, parameters, result, kernel }
    }

    /// Reads the attributes; `None` for a device function.
    fn attributes(&mut self, item: &'a ast::Function) -> Option<KernelAttributes> {
        let mut attributes = KernelAttributes::default();
        let mut bounds_at: Option<Span> = None;
        for attribute in &item.attributes {
            match self.text(attribute.name) {
                name @ ("launch_bounds" | "noalias" | "fast_math") if !item.is_kernel => {
                    let message = match name {
                        "noalias" => "only kernels promise that their pointers do not overlap",
                        "fast_math" => "a device function computes as the kernels that call it do",
                        _ => "only kernels have launch bounds",
                    };
                    let error =
                        Diagnostic::error(ids::MISPLACED_ATTRIBUTE, attribute.span, message);
                    self.report(error.label(item.name.span, "a device function"));
                }
                "launch_bounds" => match bounds_at {
                    Some(first) => {
                        let message = "`launch_bounds` is given twice";
                        let error =
                            Diagnostic::error(ids::INVALID_LAUNCH_BOUNDS, attribute.span, message);
                        self.report(error.label(first, "first here"));
                    }
                    None => {
                        bounds_at = Some(attribute.span);
                        attributes.launch_bounds = self.launch_bounds(attribute);
                    }
                },
                name @ ("noalias" | "fast_math") if !attribute.arguments.is_empty() => {
                    let applies_to = match name {
                        "noalias" => "all pointer parameters",
                        _ => "everything that the kernel computes with `f32`",
                    };
                    let message = format!("`{name}` takes no values: it applies to {applies_to}");
                    let error =
                        Diagnostic::error(ids::MISPLACED_ATTRIBUTE, attribute.span, message);
                    self.report(error.hint(format!("write `#[{name}]`")));
                }
                "noalias" => attributes.noalias = true,
                "fast_math" => attributes.fast_math = true,
                "unroll" => {
                    let message = "`unroll` belongs before a loop";
                    let error =
                        Diagnostic::error(ids::MISPLACED_ATTRIBUTE, attribute.span, message);
                    self.report(error);
                }
                name => {
                    let message = format!("there is no attribute `{name}`");
                    let error =
                        Diagnostic::error(ids::UNKNOWN_ATTRIBUTE, attribute.name.span, message);
                    let known = || vec!["launch_bounds", "noalias", "fast_math", "unroll"];
                    let error = self.suggest(error, name, |_| known());
                    self.report(error);
                }
            }
        }
        attributes.is_extern = item.body.is_none();
        item.is_kernel.then_some(attributes)
    }

    fn launch_bounds(&mut self, attribute: &'a ast::Attribute) -> Option<LaunchBounds> {
        let arguments = &attribute.arguments;
        if !(1..=2).contains(&arguments.len()) {
            let message =
                format!("`launch_bounds` takes one or two values, not {}", arguments.len());
            let error = Diagnostic::error(ids::INVALID_LAUNCH_BOUNDS, attribute.span, message);
            self.report(error.hint(
                "`#[launch_bounds(256)]`: maximum threads per block; \
                 `#[launch_bounds(256, 2)]`: also the minimum number of blocks per SM",
            ));
            return None;
        }
        let most = [MAX_BLOCK_THREADS, MAX_MIN_BLOCKS];
        let what = ["threads per block", "blocks per SM"];
        let mut values = vec![];
        for (at, argument) in arguments.iter().enumerate() {
            let value = self.const_value(argument, &Type::U32, Why::Nothing)?;
            let ExprKind::Int(value) = value.kind else { return None };
            if !(1..=i128::from(most[at])).contains(&value) {
                let message = format!("{value} {}: must be between 1 and {}", what[at], most[at]);
                self.report(Diagnostic::error(ids::INVALID_LAUNCH_BOUNDS, argument.span, message));
                return None;
            }
            values.push(value as u32);
        }
        Some(LaunchBounds { max_threads: values[0], min_blocks: values.get(1).copied() })
    }

    /// The value of an expression that must be constant, as a literal of type `ty`.
    pub(super) fn const_value(
        &mut self,
        value: &'a ast::Expr,
        ty: &Type,
        why: Why,
    ) -> Option<super::tree::Expr> {
        Body::constant(self).const_expression(value, Some((ty, why)))
    }

    /// The value of a constant integer of any type; `u64` if the type is open.
    pub(super) fn const_integer(&mut self, value: &'a ast::Expr) -> Option<i128> {
        let value = match value.literal {
            ast::Literal::No => Body::constant(self).const_expression(value, None)?,
            _ => self.const_value(value, &Type::U64, Why::Nothing)?,
        };
        match value.kind {
            ExprKind::Int(number) => Some(number),
            _ => {
                let message = format!("expected an integer, found {}", self.show(&value.ty));
                self.report(Diagnostic::error(ids::TYPE_MISMATCH, value.span, message));
                None
            }
        }
    }

    /// Whether constants can be of this type.
    pub(super) fn is_const_type(ty: &Type) -> bool {
        matches!(ty, Type::Scalar(_))
    }
}
