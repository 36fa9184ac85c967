//! The checker: names, types and constants.
//!
//! It resolves names of items, constants (in order of dependency), structs, signatures and bodies, in this
//! order. Anything that could not be resolved is `None`, and checks that meet a `None` stay silent: one
//! mistake gives one message.
//!
//! Recursion follows the syntax tree, whose height the parser bounds. Dependencies between names (constants,
//! structs in structs) are followed with explicit stacks.

mod aggregates;
mod blocks;
mod body;
mod builtin_calls;
mod builtin_types;
mod calls;
mod consts;
mod expressions;
mod externs;
mod flow;
mod fold;
mod instances;
mod items;
mod kernel_name;
mod launches;
mod literals;
mod mismatch;
mod operators;
mod places;
mod pointed;
pub mod printf;
mod statements;
mod statics;
mod structs;
pub mod tree;
mod types;
mod visible;
pub mod visit;

pub(crate) use calls::counted_arguments;
pub use kernel_name::KernelName;
use std::collections::{HashMap, HashSet};

use crate::builtins::Builtin;
use crate::diagnostics::{Collector, Diagnostic, Severity, ids};
use crate::source::{FileId, SourceMap, Span};
use crate::syntax::{self, ast};
use crate::types::{StructId, Structs, Type};

/// Checks a parsed program. Returns the tree if there was no error; the messages are in source order.
pub fn check(file: &ast::File, sources: &SourceMap) -> (Option<tree::Program>, Vec<Diagnostic>) {
    let (program, diagnostics) = Context::new(file, sources).run(file, &[], true);
    (program.filter(|_| no_errors(&diagnostics)), diagnostics)
}

/// Parses and checks all files of the map as one program; each file sees the files it uses. Returns the tree
/// if there was no error.
pub fn parse_and_check(sources: &SourceMap) -> (Option<tree::Program>, Vec<Diagnostic>) {
    parse_and_check_for(sources, &[])
}

/// As [`parse_and_check`], but also instantiates kernels with const parameters that the host wants. Ignores
/// unknown kernels.
pub fn parse_and_check_for(
    sources: &SourceMap,
    wanted: &[KernelName],
) -> (Option<tree::Program>, Vec<Diagnostic>) {
    let (program, diagnostics) = parse_and_run(sources, wanted);
    (program.filter(|_| no_errors(&diagnostics)), diagnostics)
}

/// As [`parse_and_check`], for a part of a program, which needs no kernel.
pub(crate) fn parse_and_check_part(
    sources: &SourceMap,
) -> (Option<tree::Program>, Vec<Diagnostic>) {
    let (program, mut diagnostics) = parse_and_run(sources, &[]);
    diagnostics.retain(|diagnostic| diagnostic.id != ids::EMPTY_PROGRAM);
    (program.filter(|_| no_errors(&diagnostics)), diagnostics)
}

/// The tree has the parts without errors.
fn parse_and_run(
    sources: &SourceMap,
    wanted: &[KernelName],
) -> (Option<tree::Program>, Vec<Diagnostic>) {
    let mut whole = ast::File::empty(Span::new(FileId(0), 0..0));
    let mut diagnostics = vec![];
    for (id, file) in (0..).map(FileId).zip(sources.files()) {
        let (parsed, errors) = syntax::parse(sources, id);
        if id == FileId(0) {
            whole.span = Span::new(id, 0..file.text.len());
        }
        whole.extend(parsed);
        diagnostics.extend(errors);
    }
    let unread = !diagnostics.is_empty();
    let (program, found) = Context::new(&whole, sources).run(&whole, wanted, !unread);
    // A missing kernel is not an error where one could not be parsed.
    diagnostics.extend(found.into_iter().filter(|d| !(unread && d.id == ids::EMPTY_PROGRAM)));
    crate::diagnostics::sort(&mut diagnostics);
    (program, diagnostics)
}

fn no_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error)
}

/// The meaning of a value's name outside functions.
#[derive(Clone, Copy, Debug)]
enum ValueName {
    /// Index in [`Context::consts`].
    Const(usize),
    /// A `static` variable.
    Static(tree::StaticId),
    /// A function or kernel: index in [`Context::functions`].
    Function(usize),
    /// An erroneous declaration, already reported.
    Opaque,
}

/// A constant.
struct ConstItem<'a> {
    item: &'a ast::Const,
    ty: Option<Type>,
    /// A literal, once successfully evaluated.
    value: Option<tree::ExprKind>,
    /// The variable that holds a vector, a struct or an array.
    variable: Option<tree::StaticId>,
}

/// A `static` variable, or a constant that is not a single number.
struct StaticItem<'a> {
    name: ast::Name,
    declared: &'a ast::TypeExpr,
    value: &'a ast::Expr,
    is_constant: bool,
    /// The type, once resolved.
    ty: Option<Type>,
}

/// The interface of a function or kernel.
struct Signature<'a> {
    item: &'a ast::Function,
    /// Its name, including const arguments in an instance.
    name: String,
    parameters: Vec<Parameter>,
    /// `Unit` without `->`.
    result: Option<Type>,
    kernel: Option<tree::KernelAttributes>,
}

struct Parameter {
    ty: Option<Type>,
    span: Span,
}

/// Further properties of a struct, beside its entry in [`Structs`].
#[derive(Default)]
struct StructItem<'a> {
    fields: Vec<(Option<Type>, Option<Span>)>,
    by_name: HashMap<&'a str, u32>,
    /// Number of scalars in a value.
    leaves: u64,
    /// Nesting depth of structs and arrays.
    height: u32,
    /// Whether part of it could not be parsed.
    damaged: bool,
    /// Whether its fields and size are known.
    resolved: bool,
}

/// The state shared by all checks of a program.
struct Context<'a> {
    sources: &'a SourceMap,
    diagnostics: Collector,
    visibility: visible::Visibility,
    /// Whether a used file could not be read: names may be declared there.
    incomplete: bool,
    /// Unknown names that are reported, each with the file that uses it and the id of the message.
    unknown: HashSet<(FileId, &'a str, &'static str)>,
    /// Warnings. Shown only if there are no errors.
    warnings: Collector,
    structs: Structs,
    /// By [`StructId`].
    struct_items: Vec<StructItem<'a>>,
    /// Types with their declaration, `None` if built in. The id is `None` for erroneous declarations.
    type_names: HashMap<&'a str, (Option<StructId>, Option<Span>)>,
    value_names: HashMap<&'a str, (ValueName, Span)>,
    consts: Vec<ConstItem<'a>>,
    /// By `StaticId`.
    statics: Vec<StaticItem<'a>>,
    /// Functions and kernels as written.
    functions: Vec<instances::FunctionItem<'a>>,
    /// By `FunctionId`.
    instances: Vec<instances::Instance<'a>>,
    /// Functions that other modules define, if their types are valid.
    externs: Vec<tree::Extern>,
    /// The externs by function; `None` for an erroneous one.
    extern_ids: HashMap<usize, Option<tree::ExternId>>,
    /// The instances by function and const arguments; `None` for one that could not be made.
    instance_ids: HashMap<(usize, Vec<i128>), Option<tree::FunctionId>>,
    /// Source bytes of all instances with const arguments, counted once per instance.
    instance_bytes: usize,
    /// The const parameters in scope.
    environment: instances::Environment<'a>,
    /// Functions for which too many instances are already reported.
    endless: HashSet<usize>,
    /// Messages already reported for some instance, by id and position.
    reported_in_instances: HashSet<(&'static str, Option<Span>)>,
    builtins: HashMap<&'static str, Builtin>,
    /// Names in scope in the body being checked, in order of declaration.
    scope: Vec<&'a str>,
    /// The remaining number of searches by [`Context::suggest`].
    suggestions_left: u32,
}

impl<'a> Context<'a> {
    fn new(file: &ast::File, sources: &'a SourceMap) -> Self {
        let mut context = Context {
            sources,
            diagnostics: Collector::default(),
            visibility: visible::Visibility::new(file, sources),
            incomplete: false,
            unknown: HashSet::new(),
            warnings: Collector::default(),
            structs: Structs::new(),
            struct_items: vec![],
            type_names: HashMap::from([("dim3", (Some(StructId::DIM3), None))]),
            value_names: HashMap::new(),
            consts: vec![],
            statics: vec![],
            functions: vec![],
            instances: vec![],
            externs: vec![],
            extern_ids: HashMap::new(),
            instance_ids: HashMap::new(),
            instance_bytes: 0,
            environment: instances::Environment::default(),
            endless: HashSet::new(),
            reported_in_instances: HashSet::new(),
            builtins: Builtin::ALL.iter().map(|builtin| (builtin.name(), *builtin)).collect(),
            scope: vec![],
            suggestions_left: 100,
        };
        context.add_builtin_structs();
        context
    }

    /// `all_read` if no file of the program is missing from `file`.
    fn run(
        mut self,
        file: &'a ast::File,
        wanted: &[KernelName],
        all_read: bool,
    ) -> (Option<tree::Program>, Vec<Diagnostic>) {
        self.resolve_uses(file);
        let items = self.declare(file);
        self.evaluate_consts_and_structs(&items.structs);
        let statics = self.evaluate_statics();
        self.resolve_functions(&items.functions);
        let functions = self.check_functions(wanted);
        if self.diagnostics.is_empty()
            && items.functions.iter().all(|item| !item.is_kernel || item.body.is_none())
        {
            self.report_empty(file);
        }
        let look_further = all_read && self.diagnostics.is_empty();
        let program =
            tree::Program { structs: self.structs, statics, externs: self.externs, functions };
        let mut diagnostics = self.diagnostics.into_vec();
        if look_further {
            let mut errors = Collector::default();
            flow::analyse(&program, &mut errors, &mut self.warnings);
            // A warning may be caused by an error, so warnings are shown only without errors.
            diagnostics = if errors.is_empty() { self.warnings } else { errors }.into_vec();
        }
        crate::diagnostics::sort(&mut diagnostics);
        // A function checked for several const arguments repeats its messages.
        diagnostics.dedup();
        (Some(program), diagnostics)
    }

    fn report_empty(&mut self, file: &ast::File) {
        let at = Span { start: file.span.end, ..file.span };
        let error = Diagnostic::error(ids::EMPTY_PROGRAM, at, "the program has no kernel");
        self.report(error.hint("declare one for the host to launch: `kernel name(…) { … }`"));
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Replaces the hint of the last reported message.
    fn hint_last(&mut self, hint: &str) {
        if let Some(last) = self.diagnostics.last_mut() {
            last.hint = Some(hint.to_string());
        }
    }

    fn text(&self, name: ast::Name) -> &'a str {
        name.text(self.sources)
    }

    /// The type as shown in messages.
    fn show(&self, ty: &Type) -> String {
        format!("`{}`", ty.display(&self.structs))
    }

    /// Adds a hint with the candidate nearest to `name`. Limited in number, because each search compares all
    /// candidates.
    fn suggest(
        &mut self,
        error: Diagnostic,
        name: &str,
        candidates: impl FnOnce(&Self) -> Vec<&'a str>,
    ) -> Diagnostic {
        if self.suggestions_left == 0 {
            return error;
        }
        self.suggestions_left -= 1;
        // Sorted, so that the choice between equally near candidates is deterministic.
        let mut candidates = candidates(self);
        candidates.sort_unstable();
        match crate::diagnostics::nearest(name, candidates.into_iter()) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error,
        }
    }

    /// The names of all structs that programs can name.
    fn struct_names(&self) -> Vec<&'a str> {
        let declared = self.structs.iter().filter_map(|(_, item)| item.span);
        declared.map(|span| self.sources.text(span)).chain(["dim3"]).collect()
    }

    /// The names of all functions and kernels, or only of the kernels.
    fn function_names(&self, only_kernels: bool) -> Vec<&'a str> {
        let functions = self.functions.iter().filter(|f| f.item.is_kernel || !only_kernels);
        functions.map(|function| self.text(function.item.name)).collect()
    }
}

#[cfg(test)]
mod tests;
