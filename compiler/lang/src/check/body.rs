//! The state of the walk over one body: variables, scopes, loops, and reachability.

use std::collections::HashMap;

use super::mismatch::Why;
use super::pointed::Pointed;
use super::tree::{
    Block, Declared, Expr, ExprKind, Function, Local, LocalId, SharedId, Statement, StatementKind,
};
use super::{Context, Signature};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::Type;

/// The kind of a variable's declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Let,
    Parameter,
    /// `for`.
    Loop,
}

/// The meaning of a name in a body.
#[derive(Clone, Debug)]
pub(super) enum Meaning {
    Local {
        id: LocalId,
        mutable: bool,
        origin: Origin,
    },
    Shared(SharedId),
    /// A `dynamic shared` name.
    DynamicShared,
    /// An erroneous declaration, already reported.
    Opaque,
}

/// A name in a body.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) meaning: Meaning,
    /// The type of its value; for a `dynamic shared` name, the element type.
    pub(super) ty: Option<Type>,
    /// Its declaration.
    pub(super) span: Span,
    /// The memory that its value points to, if known.
    pub(super) points_to: Option<Pointed>,
    /// The number of loops around its declaration.
    pub(super) loops: usize,
    /// Whether it is declared without an initial value.
    pub(super) is_unset: bool,
    /// The literal, or the range of literals, that its type comes from, if nothing else determined the type.
    pub(super) default: Option<Span>,
    /// Whether it is used. Maintained only for names that do not appear in the typed tree.
    pub(super) is_used: bool,
}

impl Variable {
    fn new(meaning: Meaning, ty: Option<Type>, span: Span) -> Self {
        Variable {
            meaning,
            ty,
            span,
            points_to: None,
            loops: 0,
            is_unset: false,
            default: None,
            is_used: false,
        }
    }
}

/// An enclosing loop.
pub(super) struct LoopFrame<'a> {
    /// Its label, quote included.
    pub(super) label: Option<&'a str>,
    /// Whether a `break` exits it.
    pub(super) left: bool,
    /// Whether a `break` or `continue` names the label.
    pub(super) label_used: bool,
}

/// The walk over one body, or over one constant expression.
pub(super) struct Body<'c, 'a> {
    pub(super) cx: &'c mut Context<'a>,
    /// Whether only constant expressions are allowed.
    pub(super) constant: bool,
    /// With `constant`: whether structs, arrays and vectors are also allowed.
    pub(super) aggregates: bool,
    pub(super) locals: Vec<Local>,
    pub(super) shared: Vec<Local>,
    /// Every variable in order of declaration, including those out of scope.
    pub(super) variables: Vec<Variable>,
    /// The variable of each local; `None` for locals added by the checker.
    variable_of_local: Vec<Option<usize>>,
    /// For each name, its variables, the visible one last.
    names: HashMap<&'a str, Vec<usize>>,
    /// The number of open blocks.
    pub(super) block_depth: usize,
    /// Where the innermost open block ends in its file.
    pub(super) block_end: u32,
    pub(super) loops: Vec<LoopFrame<'a>>,
    /// The type that the body must return; `None` if that could not be resolved.
    pub(super) result: Option<Type>,
    /// Where the return type is declared.
    pub(super) result_span: Span,
    pub(super) is_kernel: bool,
    /// Whether the current point is reachable.
    pub(super) alive: bool,
}

impl<'c, 'a> Body<'c, 'a> {
    pub(super) fn new(cx: &'c mut Context<'a>) -> Self {
        Body {
            cx,
            constant: false,
            aggregates: false,
            locals: vec![],
            shared: vec![],
            variables: vec![],
            variable_of_local: vec![],
            names: HashMap::new(),
            block_depth: 0,
            block_end: 0,
            loops: vec![],
            result: None,
            result_span: Span { file: crate::source::FileId(0), start: 0, end: 0 },
            is_kernel: false,
            alive: true,
        }
    }

    /// A walk over a constant expression.
    pub(super) fn constant(cx: &'c mut Context<'a>) -> Self {
        let mut body = Body::new(cx);
        body.constant = true;
        body
    }

    /// The value of a constant expression, as a literal.
    pub(super) fn const_expression(
        &mut self,
        e: &'a ast::Expr,
        need: Option<(&Type, Why)>,
    ) -> Option<Expr> {
        let value = match need {
            Some((ty, why)) => self.need(e, ty, why)?,
            None => self.infer(e, None)?,
        };
        match value.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => Some(value),
            _ => {
                self.not_constant(e.span);
                None
            }
        }
    }

    pub(super) fn not_constant(&mut self, span: Span) {
        let message = "this is not known at compile time";
        let error = Diagnostic::error(ids::CONST_EXPRESSION, span, message);
        self.cx.report(error.note(
            "constants consist of literals, other constants that are numbers, operators, `as`, sizes of types and a \
             few built-ins on integers",
        ));
    }

    /// Checks a function or kernel. `None` if part of its body could not be checked.
    pub(super) fn function(mut self, signature: &Signature<'a>) -> Option<Function> {
        let item = signature.item;
        self.cx.scope.clear();
        let mut declared = HashMap::new();
        for parameter in &item.const_parameters {
            let name = self.cx.text(parameter.name);
            self.cx.scope.push(name);
            declared.entry(name).or_insert(parameter.name.span);
        }
        for (at, parameter) in item.parameters.iter().enumerate() {
            let resolved = &signature.parameters[at];
            self.cx.declare_parameter(&mut declared, parameter.name);
            self.declare_local(
                parameter.name,
                resolved.ty.clone(),
                parameter.mutable,
                Origin::Parameter,
                item.body.as_ref().map_or(parameter.name.span, |body| body.span),
            );
        }
        self.result = signature.result.clone();
        self.is_kernel = signature.kernel.is_some();
        self.result_span = item.result.as_ref().map_or(item.name.span, |ty| ty.span);
        let body = match &item.body {
            Some(body) => self.function_block(item, body),
            None => Some(Block { statements: vec![], value: None }),
        };
        self.unused_dynamic_shared();
        Some(Function {
            name: signature.name.clone(),
            kernel: signature.kernel,
            parameter_count: item.parameters.len(),
            locals: self.locals,
            shared: self.shared,
            result: signature.result.clone()?,
            body: body?,
            span: item.name.span,
        })
    }

    /// The body of a function, with its final value as the result.
    fn function_block(&mut self, item: &'a ast::Function, source: &'a ast::Block) -> Option<Block> {
        let result = self.result.clone();
        let (statements, value) = self.open_block(source, |body| {
            let value = source.value.as_ref().filter(|_| !body.is_discarded())?;
            match &result {
                Some(ty) => body.need(value, ty, Why::Result(body.result_span)),
                None => body.infer(value, None),
            }
        });
        let mut block = Block { statements, value: None };
        match value {
            Some(value) if value.ty == Type::Unit => block.statements.push(drop_value(value)),
            value => block.value = value.map(Box::new),
        }
        let result = result?;
        let is_left_out = source.value.is_none() || self.is_discarded();
        if result != Type::Unit && block.value.is_none() && is_left_out {
            if !self.alive {
                block.value =
                    Some(Box::new(self.unset(&result, source.span, &mut block.statements)));
            } else if !item.damaged {
                self.missing_return(item, source, &result);
            }
        }
        Some(block)
    }

    fn missing_return(&mut self, item: &'a ast::Function, source: &'a ast::Block, result: &Type) {
        let name = self.cx.text(item.name);
        let end = source.span.end;
        let at = Span { start: end.saturating_sub(1), end, ..source.span };
        let message = format!("`{name}` can end without returning a value");
        let mut error = Diagnostic::error(ids::MISSING_RETURN, at, message)
            .at_caret("the end is reachable")
            .label(self.result_span, format!("must return {}", self.cx.show(result)));
        if let Some(ast::Statement { kind: ast::StatementKind::Expr { value, .. }, span }) =
            source.statements.last()
        {
            // A guess, made only where it is cheap to see that it is plausible.
            if matches!(value.kind, ast::ExprKind::Name(_) | ast::ExprKind::Binary { .. }) {
                let last = Span { start: span.end.saturating_sub(1), ..*span };
                error = error.label(last, "without this `;` the expression would be the value");
            }
        }
        self.cx.report(error);
    }

    /// A placeholder of type `ty` for a value that is never used: a variable that is never set.
    pub(super) fn unset(&mut self, ty: &Type, span: Span, statements: &mut Vec<Statement>) -> Expr {
        let id = self.add_local("unreached", ty.clone(), span, None);
        let kind = StatementKind::Let { local: id, value: None };
        statements.push(Statement { kind, span });
        Expr { kind: ExprKind::Local(id), ty: ty.clone(), span }
    }

    pub(super) fn add_local(
        &mut self,
        name: &str,
        ty: Type,
        span: Span,
        variable: Option<usize>,
    ) -> LocalId {
        let id = LocalId(self.locals.len() as u32);
        let name = name.to_string();
        self.locals.push(Local { name, ty, span, scope: span, declared: Declared::Checker });
        self.variable_of_local.push(variable);
        id
    }

    /// Declares a local variable, which its name means in `scope`. A missing type is one that could not be resolved.
    pub(super) fn declare_local(
        &mut self,
        name: ast::Name,
        ty: Option<Type>,
        mutable: bool,
        origin: Origin,
        scope: Span,
    ) -> LocalId {
        let text = self.cx.text(name);
        let variable = Some(self.variables.len());
        // The placeholder type is never used: there was an error.
        let id = self.add_local(text, ty.clone().unwrap_or(Type::Unit), name.span, variable);
        let local = &mut self.locals[id.0 as usize];
        local.scope = scope;
        local.declared = match origin {
            Origin::Let => Declared::Let { mutable },
            Origin::Parameter => Declared::Parameter { mutable },
            Origin::Loop => Declared::Loop,
        };
        self.declare(name, Meaning::Local { id, mutable, origin }, ty);
        id
    }

    /// Binds a name from here to the end of the block.
    pub(super) fn declare(&mut self, name: ast::Name, meaning: Meaning, ty: Option<Type>) {
        let text = self.cx.text(name);
        self.names.entry(text).or_default().push(self.variables.len());
        self.cx.scope.push(text);
        self.variables.push(Variable::new(meaning, ty, name.span));
    }

    /// Prevents further reports of an undeclared name in this body.
    pub(super) fn declare_forever(&mut self, name: &'a str, span: Span) {
        self.names.entry(name).or_default().insert(0, self.variables.len());
        self.variables.push(Variable::new(Meaning::Opaque, None, span));
    }

    /// Opens a scope. Returns the number of names in scope, for [`Body::end_scope`].
    pub(super) fn begin_scope(&self) -> usize {
        self.cx.scope.len()
    }

    /// Closes a scope: removes the names declared since.
    pub(super) fn end_scope(&mut self, begin: usize) {
        for name in self.cx.scope.drain(begin..) {
            if let Some(variables) = self.names.get_mut(name) {
                variables.pop();
            }
        }
    }

    /// The visible variable of a name.
    pub(super) fn lookup(&self, name: &str) -> Option<&Variable> {
        let at = self.names.get(name)?.last()?;
        Some(&self.variables[*at])
    }

    /// The visible variable of a name, marked as used.
    pub(super) fn use_variable(&mut self, name: &str) -> Option<&Variable> {
        let at = *self.names.get(name)?.last()?;
        let variable = self.variables.get_mut(at)?;
        variable.is_used = true;
        Some(variable)
    }

    /// Warns of unused dynamic shared memory, whose names do not appear in the typed tree.
    fn unused_dynamic_shared(&mut self) {
        for variable in &self.variables {
            let name = self.cx.sources.text(variable.span);
            let unused = matches!(variable.meaning, Meaning::DynamicShared) && !variable.is_used;
            if unused && !name.starts_with('_') {
                let message = format!("the shared memory `{name}` is never used");
                let warning = Diagnostic::warning(ids::UNUSED_SHARED, variable.span, message);
                self.cx.warnings.push(warning.hint("remove it"));
            }
        }
    }

    /// The variable of a local; `None` for locals added by the checker.
    pub(super) fn variable(&self, id: LocalId) -> Option<&Variable> {
        let at = (*self.variable_of_local.get(id.0 as usize)?)?;
        self.variables.get(at)
    }

    /// The variable of a local, mutably.
    pub(super) fn variable_mut(&mut self, id: LocalId) -> Option<&mut Variable> {
        let at = (*self.variable_of_local.get(id.0 as usize)?)?;
        self.variables.get_mut(at)
    }

    /// The name of a local; empty for the temporary variable of a compound assignment, which is not in the list.
    pub(super) fn local_name(&self, id: LocalId) -> &str {
        self.locals.get(id.0 as usize).map_or("", |local| &local.name)
    }
}

/// The statement that evaluates `value` and drops it.
pub(super) fn drop_value(value: Expr) -> Statement {
    let span = value.span;
    Statement { kind: StatementKind::Expr(value), span }
}
