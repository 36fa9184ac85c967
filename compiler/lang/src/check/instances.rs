//! Functions with const parameters: their arguments and instances.
//!
//! Such a function is checked twice. First generically, for all values of its parameters at once: a parameter
//! is an unknown value, and everything that depends on it (such as the length of an array) stays unknown,
//! without further errors. Then, if that found no mistake, once for each combination of arguments that the
//! program uses, with the parameters as constants. In an instance, unreachable code is discarded: the block
//! of an `if` whose condition is false, and code after a `return`. So a function may instantiate itself
//! recursively and terminate.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;
use std::rc::Rc;

use super::body::Body;
use super::expressions::typed;
use super::kernel_name::{KernelName, instance_name};
use super::mismatch::Why;
use super::tree::{Expr, ExprKind, Function, FunctionId};
use super::{Context, Signature, fold};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::{Scalar, Type};

/// The maximum length of a chain of instances that each need the next.
const MAX_DEPTH: usize = 128;

/// The maximum number of functions in a program, instances included.
const MAX_INSTANCES: usize = 1 << 16;

/// The maximum size of the source that instances are made from, in bytes, counted once per instance: time and
/// memory are proportional to it.
const MAX_INSTANCE_BYTES: usize = 1 << 23;

/// The number of instances that a message names at each end of a chain.
const SHOWN: usize = 4;

/// A function or kernel as written.
pub(super) struct FunctionItem<'a> {
    pub(super) item: &'a ast::Function,
    /// The types of its const parameters.
    pub(super) constants: Vec<Option<Type>>,
    /// Its generic signature.
    pub(super) signature: Rc<Signature<'a>>,
    /// Whether an error in it is reported: its instances are not checked.
    pub(super) wrong: bool,
}

/// A function or kernel to compile: one without const parameters, or with arguments for them.
pub(super) struct Instance<'a> {
    /// Index in [`Context::functions`].
    pub(super) function: usize,
    pub(super) signature: Rc<Signature<'a>>,
    environment: Environment<'a>,
    /// The length of the chain of instances that led to this one.
    depth: usize,
    /// The instance that needs this one, and where; `None` for the host.
    asked: Option<(FunctionId, Span)>,
}

/// The const parameters in scope.
#[derive(Clone, Default)]
pub(super) struct Environment<'a> {
    /// Name, type and value; no value while it is unknown.
    constants: Vec<(&'a str, Option<Type>, Option<ExprKind>)>,
    by_name: HashMap<&'a str, usize>,
    /// The instance being checked; `None` for a generic check.
    instance: Option<FunctionId>,
}

impl Environment<'_> {
    /// Whether unreachable code is discarded.
    pub(super) fn discards(&self) -> bool {
        // Either all have a value or none has.
        self.constants.first().is_some_and(|(_, _, value)| value.is_some())
    }

    /// Whether the const parameters have no values yet.
    pub(super) fn is_open(&self) -> bool {
        self.constants.first().is_some_and(|(_, _, value)| value.is_none())
    }
}

/// A number of constants, in words.
fn constants(count: usize) -> String {
    match count {
        0 => "no constants".to_string(),
        1 => "one constant".to_string(),
        _ => format!("{count} constants"),
    }
}

impl<'a> Context<'a> {
    /// Resolves the generic signature of every function. Functions without const parameters become the first
    /// instances.
    pub(super) fn resolve_functions(&mut self, items: &[&'a ast::Function]) {
        for item in items {
            let before = self.diagnostics.len();
            let mut types: Vec<Option<Type>> = vec![];
            let mut declared = HashMap::new();
            for parameter in &item.const_parameters {
                self.declare_parameter(&mut declared, parameter.name);
                types.push(self.const_parameter_type(&parameter.ty));
            }
            self.environment = self.environment_of(item, &types, None);
            let signature = Rc::new(self.signature(item));
            self.environment = Environment::default();
            let wrong = self.diagnostics.len() > before;
            let function = self.functions.len();
            self.functions.push(FunctionItem { item, constants: types, signature, wrong });
            if item.body.is_none() {
                self.add_extern(function, wrong);
            }
            if item.body.is_none() && !item.is_kernel {
                continue;
            }
            if item.const_parameters.is_empty() {
                self.instance(function, vec![], None);
            }
        }
    }

    /// Declares a parameter. Reports one whose name another parameter of the function already has.
    pub(super) fn declare_parameter(
        &mut self,
        declared: &mut HashMap<&'a str, Span>,
        name: ast::Name,
    ) {
        let text = self.text(name);
        match declared.entry(text) {
            Entry::Occupied(first) => self.report_duplicate(name.span, text, Some(*first.get())),
            Entry::Vacant(free) => _ = free.insert(name.span),
        }
    }

    fn const_parameter_type(&mut self, ty: &'a ast::TypeExpr) -> Option<Type> {
        let resolved = self.resolve_type(ty)?;
        if matches!(resolved, Type::Scalar(scalar) if scalar.is_integer() || scalar == Scalar::Bool)
        {
            return Some(resolved);
        }
        let message = format!("a const parameter cannot be {}", self.show(&resolved));
        let error = Diagnostic::error(ids::INVALID_TYPE, ty.span, message);
        self.report(error.note("const parameters are integers or `bool`"));
        None
    }

    /// The const parameters of a function, with values if given.
    fn environment_of(
        &self,
        item: &'a ast::Function,
        types: &[Option<Type>],
        values: Option<&[i128]>,
    ) -> Environment<'a> {
        let parameters = item.const_parameters.iter().zip(types).enumerate();
        let constants: Vec<_> = parameters
            .map(|(at, (parameter, ty))| {
                let value = values.and_then(|values| values.get(at));
                let value = value.map(|value| match ty {
                    Some(Type::Scalar(Scalar::Bool)) => ExprKind::Bool(*value != 0),
                    _ => ExprKind::Int(*value),
                });
                (self.text(parameter.name), ty.clone(), value)
            })
            .collect();
        let by_name = constants.iter().enumerate().map(|(at, (name, ..))| (*name, at)).collect();
        Environment { constants, by_name, instance: None }
    }

    /// The value of a const parameter in scope: `None` if there is no such parameter, `Some(None)` if its
    /// value is needed and unknown.
    pub(super) fn const_parameter(
        &self,
        name: &str,
        constant: bool,
        span: Span,
    ) -> Option<Option<Expr>> {
        let at = *self.environment.by_name.get(name)?;
        let (_, ty, value) = &self.environment.constants[at];
        Some((|| match (ty.clone()?, value) {
            (ty, Some(value)) => Some(typed(value.clone(), ty, span)),
            (_, None) if constant => None,
            // A value that is not a literal, so that nothing can be folded.
            (ty, None) => {
                let unknown = match ty {
                    Type::BOOL => ExprKind::Bool(false),
                    _ => ExprKind::Int(0),
                };
                let unknown = Box::new(typed(unknown, ty.clone(), span));
                Some(typed(ExprKind::Cast(unknown), ty, span))
            }
        })())
    }

    /// The values of the arguments for a function's const parameters; `None` if they are wrong or unknown.
    pub(super) fn const_arguments(
        &mut self,
        function: usize,
        generics: Option<&'a ast::Generics>,
        callee: ast::Name,
    ) -> Option<Vec<i128>> {
        let item = self.functions.get(function)?.item;
        let types = self.functions[function].constants.clone();
        let given = generics.map_or(&[][..], |generics| &generics.arguments);
        if given.len() != types.len() {
            let name = self.text(callee);
            let message = format!("`{name}` takes {}, not {}", constants(types.len()), given.len());
            let at = generics.map_or(callee.span, |generics| generics.span);
            let mut error = Diagnostic::error(ids::CONST_ARGUMENTS, at, message);
            error = error.label(item.name.span, "declared here");
            self.report(match (types.len(), generics) {
                (0, _) => error.hint("remove the `::<…>`"),
                (_, None) => error.hint(format!("write `{name}::<8>`, for example")),
                _ => error,
            });
            return None;
        }
        let mut values = vec![];
        for (argument, (ty, parameter)) in
            given.iter().zip(types.iter().zip(&item.const_parameters))
        {
            values.push(self.const_argument(argument, ty.as_ref(), parameter));
        }
        values.into_iter().collect()
    }

    fn const_argument(
        &mut self,
        argument: &'a ast::GenericArgument,
        ty: Option<&Type>,
        parameter: &ast::ConstParameter,
    ) -> Option<i128> {
        let ty = ty?;
        let why = Why::Parameter(parameter.name.span);
        let value = match argument {
            ast::GenericArgument::Value(value) => self.const_value(value, ty, why)?,
            ast::GenericArgument::Name(name) => {
                let mut body = Body::constant(self);
                let value = body.named_value(*name)?;
                body.coerce(value, ty, why)?
            }
            ast::GenericArgument::Type(wrong) => {
                let message = "expected a constant, found a type";
                let error = Diagnostic::error(ids::CONST_ARGUMENTS, wrong.span, message);
                self.report(error.label(parameter.name.span, "the parameter is declared here"));
                return None;
            }
        };
        match value.kind {
            ExprKind::Int(value) => Some(value),
            ExprKind::Bool(value) => Some(i128::from(value)),
            _ => None,
        }
    }

    /// The instance of a function for these arguments, to be checked later. `None` after an error.
    pub(super) fn instance(
        &mut self,
        function: usize,
        arguments: Vec<i128>,
        asked: Option<Span>,
    ) -> Option<FunctionId> {
        let item = self.functions.get(function)?;
        let (source, wrong) = (item.item, item.wrong);
        let is_generic = !source.const_parameters.is_empty();
        let is_function = source.body.is_none() && !source.is_kernel;
        if is_function || (wrong && is_generic) {
            return None;
        }
        let key = (function, arguments);
        if let Some(known) = self.instance_ids.get(&key) {
            return *known;
        }
        let by = self.environment.instance;
        let depth = match by.map(|by| &self.instances[by.0 as usize]) {
            Some(by) if is_generic => by.depth + 1,
            _ => 0,
        };
        let asked = by.zip(asked);
        let bytes = source.body.as_ref().map_or(0, |body| body.span.range().len());
        if is_generic {
            self.instance_bytes += bytes;
        }
        let too_many = self.instances.len() >= MAX_INSTANCES
            || self.instance_bytes > MAX_INSTANCE_BYTES.max(bytes);
        if depth > MAX_DEPTH || (is_generic && too_many) {
            self.instance_ids.insert(key, None);
            self.report_too_many(function, asked, depth);
            return None;
        }
        let id = FunctionId(self.instances.len() as u32);
        let before = self.diagnostics.len();
        let (signature, environment) = if is_generic {
            self.instantiate(function, &key.1, id)
        } else {
            (
                Rc::clone(&item.signature),
                Environment { instance: Some(id), ..Environment::default() },
            )
        };
        self.instances.push(Instance { function, signature, environment, depth, asked });
        self.name_instance(id, before);
        self.instance_ids.insert(key, Some(id));
        Some(id)
    }

    /// Makes an instance: its signature and const parameters.
    fn instantiate(
        &mut self,
        function: usize,
        arguments: &[i128],
        id: FunctionId,
    ) -> (Rc<Signature<'a>>, Environment<'a>) {
        let source = self.functions[function].item;
        let types = &self.functions[function].constants;
        let mut environment = self.environment_of(source, types, Some(arguments));
        environment.instance = Some(id);
        let outer = std::mem::replace(&mut self.environment, environment);
        let mut signature = self.signature(source);
        let environment = std::mem::replace(&mut self.environment, outer);
        let values = environment.constants.iter().filter_map(|(_, _, value)| match value {
            Some(ExprKind::Bool(value)) => Some(value.to_string()),
            Some(ExprKind::Int(value)) => Some(value.to_string()),
            _ => None,
        });
        signature.name = instance_name(&signature.name, values);
        (Rc::new(signature), environment)
    }

    fn report_too_many(
        &mut self,
        function: usize,
        asked: Option<(FunctionId, Span)>,
        depth: usize,
    ) {
        // Report a function once: further instances are most likely of the same chain.
        if !self.endless.insert(function) {
            return;
        }
        let item = self.functions[function].item;
        let name = self.text(item.name);
        let message = match depth > MAX_DEPTH {
            true => format!("a chain of more than {MAX_DEPTH} instances leads to `{name}`"),
            _ if self.instances.len() >= MAX_INSTANCES => {
                format!("the program has more than {MAX_INSTANCES} function instances")
            }
            _ => {
                let most = MAX_INSTANCE_BYTES >> 20;
                format!("the function instances have more than {most} MiB of source")
            }
        };
        let at = asked.map_or(item.name.span, |(_, at)| at);
        let mut error = Diagnostic::error(ids::TOO_MANY_INSTANCES, at, message);
        let mut chain = vec![];
        let mut next = asked.map(|(by, _)| by);
        while let Some(by) = next {
            let instance = &self.instances[by.0 as usize];
            chain.push(instance.signature.name.clone());
            next = instance.asked.map(|(by, _)| by);
        }
        chain.reverse();
        let mut text = String::from("instantiated by ");
        for (at, name) in chain.iter().enumerate() {
            if at == SHOWN && chain.len() > 2 * SHOWN {
                text.push_str(", …");
            }
            if at < SHOWN || at + SHOWN >= chain.len() || chain.len() <= 2 * SHOWN {
                let _ = write!(text, "{}`{name}`", if at == 0 { "" } else { ", " });
            }
        }
        if !chain.is_empty() {
            error = error.note(text);
        }
        self.report(error.hint("end the chain: `if K == 0 { return; }` before the next instance"));
    }

    /// Adds the instance's name to the messages since `before`, and drops those already reported for another
    /// instance.
    fn name_instance(&mut self, id: FunctionId, before: usize) {
        let instance = &self.instances[id.0 as usize];
        if !instance.environment.discards() {
            return;
        }
        let (name, asked) = (instance.signature.name.clone(), instance.asked);
        for error in self.diagnostics.take_since(before) {
            let at = error.labels.first().map(|label| label.span);
            if error.id == ids::TOO_MANY_INSTANCES {
                self.report(error);
                continue;
            }
            if !self.reported_in_instances.insert((error.id, at)) {
                continue;
            }
            let error = error.note(format!("this is in `{name}`"));
            let error = match asked {
                Some((_, at)) => error.label(at, format!("`{name}` is instantiated here")),
                None => error,
            };
            self.report(error);
        }
    }

    /// Instantiates the kernels that the host wants. Ignores unknown kernels.
    pub(super) fn ask_for(&mut self, wanted: &[KernelName]) {
        for wanted in wanted.iter().filter(|wanted| !wanted.arguments.is_empty()) {
            let found = self.functions.iter().position(|function| {
                function.item.is_kernel && self.text(function.item.name) == wanted.kernel
            });
            let Some(at) = found else { continue };
            let function = &self.functions[at];
            if function.wrong {
                continue;
            }
            let name = function.item.name;
            let types = function.constants.clone();
            let fits = |((value, is_bool), ty): (&(i128, bool), &Option<Type>)| match ty {
                Some(Type::Scalar(Scalar::Bool)) => *is_bool,
                Some(Type::Scalar(scalar)) => !*is_bool && fold::wrap(*value, *scalar) == *value,
                _ => false,
            };
            if types.len() != wanted.arguments.len()
                || !wanted.arguments.iter().zip(&types).all(fits)
            {
                let message = format!("there cannot be a kernel `{wanted}`");
                let takes: Vec<String> = types.iter().flatten().map(|ty| self.show(ty)).collect();
                let error = Diagnostic::error(ids::CONST_ARGUMENTS, name.span, message);
                let note = match types.is_empty() {
                    true => format!("`{}` takes no constants", wanted.kernel),
                    false => {
                        format!("the constants of `{}` are: {}", wanted.kernel, takes.join(", "))
                    }
                };
                self.report(error.note(note));
                continue;
            }
            self.instance(at, wanted.arguments.iter().map(|(value, _)| *value).collect(), None);
        }
    }

    /// Checks every function with const parameters generically, then every instance. The result has functions
    /// in source order, then instances in the order of their first use.
    pub(super) fn check_functions(&mut self, wanted: &[KernelName]) -> Vec<Function> {
        for at in 0..self.functions.len() {
            let function = &self.functions[at];
            if function.item.const_parameters.is_empty() || function.item.body.is_none() {
                continue;
            }
            let signature = Rc::clone(&function.signature);
            let before = self.diagnostics.len();
            self.environment = self.environment_of(function.item, &function.constants, None);
            Body::new(self).function(&signature);
            self.functions[at].wrong |= self.diagnostics.len() > before;
        }
        self.environment = Environment::default();
        self.ask_for(wanted);
        let mut functions = vec![];
        let mut next = 0;
        // Checking an instance may add more.
        while let Some(instance) = self.instances.get(next) {
            let id = FunctionId(next as u32);
            next += 1;
            if self.functions[instance.function].wrong && instance.environment.discards() {
                continue;
            }
            let signature = Rc::clone(&instance.signature);
            self.environment = instance.environment.clone();
            let before = self.diagnostics.len();
            functions.extend(Body::new(self).function(&signature));
            self.name_instance(id, before);
        }
        self.environment = Environment::default();
        functions
    }
}
