//! Builds IR from the checked tree, following the rules of [`crate::ir`].

mod analysis;
mod arithmetic;
mod body;
mod builtin;
mod expression;
mod function;
mod launch;
mod nonzero;
mod place;
mod rounds;
mod statement;
mod static_value;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use body::{BodyBuilder, Signature};

use super::{
    Extern, Function, FunctionId, Global, GlobalId, Init, InstKind, Kernel, KernelId, Module,
};
use super::{Operand, Parameter, Role, Space, Terminator, Variable};
use crate::check::tree;
use crate::diagnostics::{Collector, Diagnostic, ids};
use crate::error::{Error, Result};
use crate::ir::symbol;
use crate::source::{SourceMap, Span};
use crate::types::{Scalar, Type};

/// Builds the IR of a checked program. Every kernel becomes a body, `<kernel>.body`, and an entry,
/// `<kernel>`; launches stay symbolic.
///
/// # Errors
/// [`Error::Program`] with `reserved-name` if a kernel or a `static` variable has the name of a symbol of the
/// device runtime; [`Error::Internal`] if the tree violates the invariants of [`crate::check::tree`].
pub fn build_ir(program: &tree::Program, sources: Arc<SourceMap>) -> Result<Module> {
    let mut program = ProgramBuilder::new(program, Arc::clone(&sources))?;
    program.add_statics()?;
    let mut functions = vec![];
    let mut kernels = vec![];
    for index in 0..program.tree.functions.len() {
        let source = &program.tree.functions[index];
        if let (Some(id), true) = (program.targets[index].kernel, is_extern(source)) {
            let entry = program.targets[index].function;
            let item = Kernel {
                name: source.name.clone(),
                parameters: parameters_of(source),
                body: entry,
                entry,
                whole: None,
                launch_bounds: None,
                noalias: false,
                fast_math: false,
                span: source.span,
            };
            functions.push(item.declared_entry(id));
            kernels.push(item);
            continue;
        }
        program.add_shared(index);
        let body = function::build(&mut program, index)?;
        let Some(kernel) = program.targets[index].kernel else {
            functions.push(body);
            continue;
        };
        let source = &program.tree.functions[index];
        let function = program.targets[index].function;
        let item = Kernel {
            name: source.name.clone(),
            parameters: parameters_of(source),
            body: function,
            entry: FunctionId(function.0 + 1),
            whole: None,
            launch_bounds: source.kernel.and_then(|attributes| attributes.launch_bounds),
            noalias: source.kernel.is_some_and(|attributes| attributes.noalias),
            fast_math: source.kernel.is_some_and(|attributes| attributes.fast_math),
            span: source.span,
        };
        functions.extend([body, build_entry(&item, kernel)?]);
        kernels.push(item);
    }
    Ok(Module {
        sources,
        structs: program.tree.structs.clone(),
        globals: program.globals,
        externs: program.tree.externs.iter().map(declaration).collect(),
        functions,
        kernels,
        lowered: false,
        resident: None,
    })
}

/// Whether a function is an `extern kernel`.
fn is_extern(function: &tree::Function) -> bool {
    function.kernel.is_some_and(|kernel| kernel.is_extern)
}

/// The declaration of an `extern fn`, which keeps its name.
fn declaration(item: &tree::Extern) -> Extern {
    Extern {
        name: item.name.clone(),
        parameters: item.parameters.clone(),
        result: item.result.clone(),
        span: Some(item.span),
    }
}

/// The IR counterpart of a function of the tree.
struct Target {
    /// Its symbol.
    name: String,
    /// The function, or the kernel's body, which its entry directly follows, or the entry of an `extern kernel`.
    function: FunctionId,
    kernel: Option<KernelId>,
    takes_geometry: bool,
    /// Its `shared` variables, once its body is built.
    shared: Vec<GlobalId>,
}

/// The state of building a program.
struct ProgramBuilder<'t> {
    tree: &'t tree::Program,
    sources: Arc<SourceMap>,
    targets: Vec<Target>,
    globals: Vec<Global>,
    /// All symbols in use.
    symbols: BTreeSet<String>,
    /// The existing string globals, by content.
    strings: BTreeMap<Vec<u8>, GlobalId>,
}

impl<'t> ProgramBuilder<'t> {
    fn new(tree: &'t tree::Program, sources: Arc<SourceMap>) -> Result<Self> {
        let takes_geometry = analysis::takes_geometry(tree);
        let mut program = ProgramBuilder {
            tree,
            sources,
            targets: vec![],
            globals: vec![],
            symbols: BTreeSet::new(),
            strings: BTreeMap::new(),
        };
        // Kernels and variables choose their symbols first, because the host looks them up by name.
        let mut reserved = Collector::default();
        let mut claim = |name: &str, what: &str, span| {
            if symbol::is_reserved(name) {
                let message = format!("the name `{name}` is reserved");
                reserved.push(
                    Diagnostic::error(ids::RESERVED_NAME, span, message)
                        .note("it belongs to CUDA, its assembler, C or Gridlet")
                        .hint(format!("give the {what} another name")),
                );
            }
            program.symbols.insert(name.to_string());
        };
        for variable in tree.statics.iter().filter(|variable| !variable.is_constant) {
            claim(&variable.name, "variable", variable.span);
        }
        for item in &tree.externs {
            claim(&item.name, "function", item.span);
        }
        for kernel in tree.functions.iter().filter(|function| function.kernel.is_some()) {
            claim(&kernel.name, "kernel", kernel.span);
        }
        let bodies = tree.functions.iter().filter(|function| function.kernel.is_some());
        program.symbols.extend(bodies.map(|kernel| format!("{}.body", kernel.name)));
        if !reserved.is_empty() {
            return Err(Error::Program(reserved.into_vec()));
        }
        let (mut next_function, mut next_kernel) = (0, 0);
        for (function, takes_geometry) in tree.functions.iter().zip(takes_geometry) {
            let kernel = function.kernel.map(|_| KernelId(next_kernel));
            let name = match kernel {
                Some(_) => format!("{}.body", function.name),
                None => program.unique_symbol(&function.name),
            };
            program.targets.push(Target {
                name,
                function: FunctionId(next_function),
                kernel,
                takes_geometry,
                shared: vec![],
            });
            next_function += if kernel.is_some() && !is_extern(function) { 2 } else { 1 };
            next_kernel += u32::from(kernel.is_some());
        }
        Ok(program)
    }

    /// `name` if it is free, otherwise with a number as suffix; a reserved name first gets a prefix, because
    /// some names are reserved by their prefix. Names in the language never contain a dot.
    fn unique_symbol(&mut self, name: &str) -> String {
        let own = if symbol::is_reserved(name) { symbol::own(name) } else { name.to_owned() };
        let mut symbol = own.clone();
        let mut number = 2;
        while !self.symbols.insert(symbol.clone()) {
            symbol = format!("{own}.{number}");
            number += 1;
        }
        symbol
    }

    fn add_global(
        &mut self,
        name: &str,
        space: Space,
        ty: Type,
        init: Init,
        variable: Option<Variable>,
    ) -> GlobalId {
        let name = self.unique_symbol(name);
        self.globals.push(Global { name, space, ty, init, exported: false, variable });
        GlobalId(self.globals.len() as u32 - 1)
    }

    /// Adds the `static` variables and the constants, which are the first globals.
    fn add_statics(&mut self) -> Result<()> {
        for variable in &self.tree.statics {
            let init = static_value::initial_value(&variable.value, &self.tree.structs)?;
            let (ty, source) =
                (variable.ty.clone(), global_variable(&variable.name, variable.span));
            if variable.is_constant {
                self.add_global(&variable.name, Space::Constant, ty, init, Some(source));
                continue;
            }
            self.globals.push(Global {
                name: variable.name.clone(),
                space: Space::Device,
                ty,
                init,
                exported: true,
                variable: Some(source),
            });
        }
        Ok(())
    }

    fn add_shared(&mut self, index: usize) {
        let function = &self.tree.functions[index];
        for shared in &function.shared {
            let name = format!("{}.{}", function.name, shared.name);
            let variable = Some(global_variable(&shared.name, shared.span));
            let ty = shared.ty.clone();
            let global = self.add_global(&name, Space::Shared, ty, Init::Unset, variable);
            self.targets[index].shared.push(global);
        }
    }

    /// A NUL-terminated string in constant memory; equal strings are shared.
    fn string(&mut self, text: &str) -> GlobalId {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        if let Some(known) = self.strings.get(&bytes) {
            return *known;
        }
        let name = format!("str.{}", self.strings.len());
        let ty = Type::Array(Box::new(Type::Scalar(Scalar::U8)), bytes.len() as u64);
        let init = Init::Bytes(bytes.clone());
        let global = self.add_global(&name, Space::Constant, ty, init, None);
        self.strings.insert(bytes, global);
        global
    }
}

fn global_variable(name: &str, span: Span) -> Variable {
    Variable { name: name.into(), span, scope: None, parameter: None }
}

fn parameters_of(function: &tree::Function) -> Vec<Parameter> {
    let parameters = function.parameters().iter();
    parameters.map(|local| Parameter { name: local.name.clone(), ty: local.ty.clone() }).collect()
}

/// The ordinary entry of a kernel: reads the geometry and calls the body.
///
/// # Errors
/// None for a kernel whose body exists.
pub fn build_entry(kernel: &Kernel, id: KernelId) -> Result<Function> {
    let mut entry = BodyBuilder::new();
    let geometry = entry.emit(InstKind::HardwareGeometry, Type::GEOMETRY, kernel.span);
    let parameters = (0..kernel.parameters.len() as u32).map(Operand::Parameter);
    let arguments = std::iter::once(geometry).chain(parameters).collect();
    entry.emit(InstKind::Call { function: kernel.body, arguments }, Type::Unit, kernel.span);
    entry.terminate(Terminator::Return(None));
    entry.finish(Signature {
        name: kernel.name.clone(),
        role: Role::Entry(id),
        takes_geometry: false,
        parameters: kernel.parameters.clone(),
        result: Type::Unit,
        span: kernel.span,
    })
}

#[cfg(test)]
mod tests;
