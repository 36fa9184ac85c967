//! The checker: names, types and constants.
//!
//! It works in the order in which facts are needed: names of items, constants (in the order in which they
//! need each other), structs, signatures, bodies. What could not be resolved is `None` from there on, and
//! whatever meets a `None` keeps silent: one mistake gives one message.
//!
//! Its recursion follows the syntax tree, whose height the parser bounds; all that follows names
//! (constants, structs in structs) works with lists.

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
mod printf;
mod statements;
mod statics;
mod structs;
pub mod tree;
mod types;
mod visible;
pub(crate) mod visit;

pub use kernel_name::KernelName;
use std::collections::{HashMap, HashSet};

use crate::builtins::Builtin;
use crate::diagnostics::{Collector, Diagnostic, Severity, ids};
use crate::source::{FileId, SourceMap, Span};
use crate::syntax::{self, ast};
use crate::types::{StructId, Structs, Type};

/// Checks a parsed program. The tree is there if there was no error; the messages are in the order of the
/// source.
pub fn check(file: &ast::File, sources: &SourceMap) -> (Option<tree::Program>, Vec<Diagnostic>) {
    let (program, diagnostics) = Context::new(file, sources).run(file, &[], true);
    (program.filter(|_| no_errors(&diagnostics)), diagnostics)
}

/// Parses and checks all files of the map as one program; each sees what it uses. The tree is there if there was no error.
pub fn parse_and_check(sources: &SourceMap) -> (Option<tree::Program>, Vec<Diagnostic>) {
    parse_and_check_for(sources, &[])
}

/// As [`parse_and_check`], with instances of kernels with const parameters that a host wants beside those
/// that the program launches. A kernel that is not there is left out.
pub fn parse_and_check_for(
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
    // A program without a kernel is no news where the kernel could not be read.
    diagnostics.extend(found.into_iter().filter(|d| !(unread && d.id == ids::EMPTY_PROGRAM)));
    crate::diagnostics::sort(&mut diagnostics);
    (program.filter(|_| no_errors(&diagnostics)), diagnostics)
}

fn no_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error)
}

/// What a name of a value means outside functions.
#[derive(Clone, Copy, Debug)]
enum ValueName {
    /// Index in [`Context::consts`].
    Const(usize),
    /// A `static` variable.
    Static(tree::StaticId),
    /// A function or kernel: index in [`Context::functions`].
    Function(usize),
    /// Reported where it is declared.
    Opaque,
}

/// A constant.
struct ConstItem<'a> {
    item: &'a ast::Const,
    ty: Option<Type>,
    /// A literal, once it is evaluated and right.
    value: Option<tree::ExprKind>,
}

/// A `static` variable.
struct StaticItem<'a> {
    item: &'a ast::Static,
    /// Once it is resolved.
    ty: Option<Type>,
}

/// What a caller knows of a function or kernel.
struct Signature<'a> {
    item: &'a ast::Function,
    /// Its name, with its const arguments once it has some.
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

/// A struct's fields, beside what [`Structs`] says: whether they could be resolved, and by name.
#[derive(Default)]
struct StructItem<'a> {
    fields: Vec<(Option<Type>, Option<Span>)>,
    by_name: HashMap<&'a str, u32>,
    /// Scalars in a value of it.
    leaves: u64,
    /// Levels of structs and arrays in it.
    height: u32,
    /// Part of it could not be read.
    damaged: bool,
    /// Its fields are known, and so is its size.
    resolved: bool,
}

/// What holds for the whole program.
struct Context<'a> {
    sources: &'a SourceMap,
    diagnostics: Collector,
    visibility: visible::Visibility,
    /// A file that is used could not be read: names may be declared there.
    incomplete: bool,
    /// Names that nothing declares and that are reported, each with the file that says it and the id of the
    /// message.
    unknown: HashSet<(FileId, &'a str, &'static str)>,
    /// What does not stop a build. Shown if nothing does.
    warnings: Collector,
    structs: Structs,
    /// By [`StructId`].
    struct_items: Vec<StructItem<'a>>,
    /// With its declaration, but for those of the language. `None` for what is reported where it is declared.
    type_names: HashMap<&'a str, (Option<StructId>, Option<Span>)>,
    value_names: HashMap<&'a str, (ValueName, Span)>,
    consts: Vec<ConstItem<'a>>,
    /// By `StaticId`.
    statics: Vec<StaticItem<'a>>,
    /// Functions and kernels as they are written.
    functions: Vec<instances::FunctionItem<'a>>,
    /// By `FunctionId`.
    instances: Vec<instances::Instance<'a>>,
    /// Functions that other modules define, once their types are right.
    externs: Vec<tree::Extern>,
    /// The externs by function; `None` for one that is reported.
    extern_ids: HashMap<usize, Option<tree::ExternId>>,
    /// The instances by function and const arguments; `None` for one that could not be made.
    instance_ids: HashMap<(usize, Vec<i128>), Option<tree::FunctionId>>,
    /// Bytes of source that the instances with const arguments are made of, each counted.
    instance_bytes: usize,
    /// The const parameters in sight.
    environment: instances::Environment<'a>,
    /// Functions of which it is reported that there are too many instances.
    endless: HashSet<usize>,
    /// Messages about instances, by id and place.
    told: HashSet<(&'static str, Option<Span>)>,
    builtins: HashMap<&'static str, Builtin>,
    /// Names in scope in the body that is checked, in the order of declaration.
    scope: Vec<&'a str>,
    /// How often more [`Context::suggest`] looks for a name.
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
            told: HashSet::new(),
            builtins: Builtin::all().into_iter().collect(),
            scope: vec![],
            suggestions_left: 100,
        };
        context.add_builtin_structs();
        context
    }

    /// `all_read` says that there is no more in the program than `file` has.
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
        if self.diagnostics.is_empty() && items.functions.iter().all(|item| !item.is_kernel) {
            self.report_empty(file);
        }
        let look_further = all_read && self.diagnostics.is_empty();
        let program =
            tree::Program { structs: self.structs, statics, externs: self.externs, functions };
        let mut diagnostics = self.diagnostics.into_vec();
        if look_further {
            let mut errors = Collector::default();
            flow::analyse(&program, &mut errors, &mut self.warnings);
            // A warning may be an error's doing, so one is shown only where there are no errors.
            diagnostics = if errors.is_empty() { self.warnings } else { errors }.into_vec();
        }
        crate::diagnostics::sort(&mut diagnostics);
        // Those of functions that are checked for several values of their const parameters.
        diagnostics.dedup();
        (Some(program), diagnostics)
    }

    fn report_empty(&mut self, file: &ast::File) {
        let at = Span { start: file.span.end, ..file.span };
        let error = Diagnostic::error(ids::EMPTY_PROGRAM, at, "the program has no kernel");
        self.report(error.hint("a kernel is what a host can launch: `kernel name(…) { … }`"));
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Gives the message that was reported last a better hint.
    fn hint_last(&mut self, hint: &str) {
        if let Some(last) = self.diagnostics.last_mut() {
            last.hint = Some(hint.to_string());
        }
    }

    fn text(&self, name: ast::Name) -> &'a str {
        name.text(self.sources)
    }

    /// The type as messages write it.
    fn show(&self, ty: &Type) -> String {
        format!("`{}`", ty.display(&self.structs))
    }

    /// Adds that one of the candidates as a hint which is nearest to `name`. Only so often: each time costs
    /// a look at all of them.
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
        // Sorted, so that of two equally near ones always the same is taken.
        let mut candidates = candidates(self);
        candidates.sort_unstable();
        match crate::diagnostics::nearest(name, candidates.into_iter()) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error,
        }
    }

    /// The names of all structs that can be named.
    fn struct_names(&self) -> Vec<&'a str> {
        let declared = self.structs.iter().filter_map(|(_, item)| item.span);
        declared.map(|span| self.sources.text(span)).chain(["dim3"]).collect()
    }

    /// The names of all functions and kernels, or of the kernels alone.
    fn function_names(&self, only_kernels: bool) -> Vec<&'a str> {
        let functions = self.functions.iter().filter(|f| f.item.is_kernel || !only_kernels);
        functions.map(|function| self.text(function.item.name)).collect()
    }
}

#[cfg(test)]
mod tests;
