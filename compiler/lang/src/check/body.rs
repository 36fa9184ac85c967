//! The state of the walk over one body: variables, scopes, loops, and whether the end is reached.

use std::collections::HashMap;

use super::launches::Pointed;
use super::mismatch::Why;
use super::tree::{
    Block, Declared, Expr, ExprKind, Function, Local, LocalId, SharedId, Statement, StatementKind,
};
use super::{Context, Signature};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::Type;

/// What declares a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Let,
    Parameter,
    /// `for`.
    Loop,
}

/// What a name in a body means.
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
    /// Reported where it is declared.
    Opaque,
}

/// A name in a body.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) meaning: Meaning,
    /// The type of its value; of what it points to for a `dynamic shared` name.
    pub(super) ty: Option<Type>,
    /// Its declaration.
    pub(super) span: Span,
    /// What memory its value points to, where that is known.
    pub(super) points_to: Option<Pointed>,
    /// How many loops are around its declaration.
    pub(super) loops: usize,
    /// Whether it is declared without a value.
    pub(super) is_unset: bool,
    /// The literal that gave it its type, one that a literal has where nothing asks for another.
    pub(super) default: Option<Span>,
    /// Whether it is named somewhere. Only for what the typed tree does not name.
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

/// A loop around the walk.
pub(super) struct LoopFrame<'a> {
    /// Its label, quote included.
    pub(super) label: Option<&'a str>,
    /// Whether a `break` leaves it.
    pub(super) left: bool,
    /// Whether a `break` or `continue` names the label.
    pub(super) label_used: bool,
}

/// The walk over one body, or over one constant expression.
pub(super) struct Body<'c, 'a> {
    pub(super) cx: &'c mut Context<'a>,
    /// Only what is known at compile time is allowed.
    pub(super) constant: bool,
    /// With `constant`: also structs, arrays and vectors.
    pub(super) aggregates: bool,
    pub(super) locals: Vec<Local>,
    pub(super) shared: Vec<Local>,
    /// Every variable, in the order of declaration; gone ones too.
    pub(super) variables: Vec<Variable>,
    /// Of each local, which variable it is; none for those that the checker adds.
    variable_of_local: Vec<Option<usize>>,
    /// For each name, the variables that have it, the visible one last.
    names: HashMap<&'a str, Vec<usize>>,
    /// Open blocks.
    pub(super) block_depth: usize,
    pub(super) loops: Vec<LoopFrame<'a>>,
    /// What the body must return; `None` if that could not be resolved.
    pub(super) result: Option<Type>,
    /// Where that is said.
    pub(super) result_span: Span,
    pub(super) is_kernel: bool,
    /// Whether this point of the program is reached.
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
            loops: vec![],
            result: None,
            result_span: Span { file: crate::source::FileId(0), start: 0, end: 0 },
            is_kernel: false,
            alive: true,
        }
    }

    /// For a constant expression.
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
            "constants are made of literals, other constants, operators, `as`, sizes of types and a few built-ins \
             on integers",
        ));
    }

    /// Checks a function or kernel. `None` if its body was not read to the end.
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
            );
        }
        self.result = signature.result.clone();
        self.is_kernel = signature.kernel.is_some();
        self.result_span = item.result.as_ref().map_or(item.name.span, |ty| ty.span);
        let body = self.function_block(item, item.body.as_ref()?);
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

    /// The body of a function, with its value as the result.
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
        let message = format!("`{name}` can end without a value");
        let mut error = Diagnostic::error(ids::MISSING_RETURN, at, message)
            .at_caret("the end can be reached")
            .label(self.result_span, format!("{} is to be returned", self.cx.show(result)));
        if let Some(ast::Statement { kind: ast::StatementKind::Expr { value, .. }, span }) =
            source.statements.last()
        {
            // Only a guess, so only where it is cheap to see that it may be meant.
            if matches!(value.kind, ast::ExprKind::Name(_) | ast::ExprKind::Binary { .. }) {
                let last = Span { start: span.end.saturating_sub(1), ..*span };
                error = error.label(last, "without this `;` the expression would be the value");
            }
        }
        self.cx.report(error);
    }

    /// A value of type `ty` where none is ever needed: a variable that nothing sets.
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
        self.locals.push(Local { name, ty, span, declared: Declared::Checker });
        self.variable_of_local.push(variable);
        id
    }

    /// Declares a local variable. Without a type it is one that could not be resolved.
    pub(super) fn declare_local(
        &mut self,
        name: ast::Name,
        ty: Option<Type>,
        mutable: bool,
        origin: Origin,
    ) -> LocalId {
        let text = self.cx.text(name);
        let variable = Some(self.variables.len());
        // The placeholder is never seen: there was an error.
        let id = self.add_local(text, ty.clone().unwrap_or(Type::Unit), name.span, variable);
        self.locals[id.0 as usize].declared = match origin {
            Origin::Let => Declared::Let { mutable },
            Origin::Parameter => Declared::Parameter { mutable },
            Origin::Loop => Declared::Loop,
        };
        self.declare(name, Meaning::Local { id, mutable, origin }, ty);
        id
    }

    /// Gives a name its meaning from here to the end of the block.
    pub(super) fn declare(&mut self, name: ast::Name, meaning: Meaning, ty: Option<Type>) {
        let text = self.cx.text(name);
        self.names.entry(text).or_default().push(self.variables.len());
        self.cx.scope.push(text);
        self.variables.push(Variable::new(meaning, ty, name.span));
    }

    /// Keeps a name that nothing declares from being reported again in this body.
    pub(super) fn declare_forever(&mut self, name: &'a str, span: Span) {
        self.names.entry(name).or_default().insert(0, self.variables.len());
        self.variables.push(Variable::new(Meaning::Opaque, None, span));
    }

    /// How many names are in scope; [`Body::end_scope`] takes it.
    pub(super) fn begin_scope(&self) -> usize {
        self.cx.scope.len()
    }

    /// Forgets the names declared since.
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

    /// The visible variable of a name, which is used here.
    pub(super) fn use_variable(&mut self, name: &str) -> Option<&Variable> {
        let at = *self.names.get(name)?.last()?;
        let variable = self.variables.get_mut(at)?;
        variable.is_used = true;
        Some(variable)
    }

    /// Warns of names of dynamic shared memory that nothing uses. The typed tree has no names for it.
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

    /// The variable of a local, but for those that the checker added.
    pub(super) fn variable(&self, id: LocalId) -> Option<&Variable> {
        let at = (*self.variable_of_local.get(id.0 as usize)?)?;
        self.variables.get(at)
    }

    /// The variable of a local, to change it.
    pub(super) fn variable_mut(&mut self, id: LocalId) -> Option<&mut Variable> {
        let at = (*self.variable_of_local.get(id.0 as usize)?)?;
        self.variables.get_mut(at)
    }

    pub(super) fn local_name(&self, id: LocalId) -> &str {
        &self.locals[id.0 as usize].name
    }
}

/// The statement that evaluates `value` and drops it.
pub(super) fn drop_value(value: Expr) -> Statement {
    let span = value.span;
    Statement { kind: StatementKind::Expr(value), span }
}
