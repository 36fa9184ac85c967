//! Programs of other front ends: a builder of [`ir::Module`](crate::ir::Module) that ends in a [`Checked`] program, from
//! which every artifact and the CPU device follow.
//!
//! [`ProgramBuilder`] declares kernels and functions, and [`Body`] emits their code at positions in the front end's own
//! source. Mistakes are the caller's errors ("your module: …"); [`crate::ir`] has the rules.
//!
//! [`Error`] is the error of this crate, which [`ProgramBuilder::finish`] and [`read`] return. Package `gridlet`, which has
//! this module as `gridlet::builder`, compiles and links too, and has an error of its own for that, `gridlet::Error`. `?` and
//! `From` turn this one into that one, so functions that also compile return `gridlet::Result`.
//!
//! ```
//! use gridlet_lang::builder::{Body, ProgramBuilder};
//! use gridlet_lang::types::Type;
//!
//! let mut program = ProgramBuilder::new("a.toy", "child\nparent launches child\n");
//! let lines = [1, 2].map(|line| program.line(program.first_file(), line));
//! let child = program.kernel("child", &[("p", Type::pointer_mut(Type::U32))], lines[0]);
//! let parent = program.kernel("parent", &[("p", Type::pointer_mut(Type::U32))], lines[1]);
//! let mut body = Body::new(lines[0]);
//! let one = body.number(1);
//! body.store(Body::parameter(0), one);
//! body.end();
//! program.define(child, body);
//! let mut body = Body::new(lines[1]);
//! let (grid, block) = (body.number(1), body.number(1));
//! body.launch(child, &[grid], &[block], &[Body::parameter(0)]);
//! body.end();
//! program.define(parent, body);
//! assert_eq!(program.finish()?.parameter_buffers().count(), 2);
//! # Ok::<(), gridlet_lang::Error>(())
//! ```

mod body;
mod declared;
mod dropped;
mod handles;
mod limits;
mod names;
mod texts;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use body::{Body, Geometry};
use declared::Declared;
use handles::{Handles, Owners};

use crate::diagnostics::{Diagnostic, ids};
pub use crate::error::Error;
use crate::error::Result;
use crate::extents;
use crate::ir::build::{Signature, build_entry};
use crate::ir::{
    Const, Extern, ExternId, Function, FunctionId, Global, GlobalId, Init, InstKind, Kernel,
    KernelId, LaunchBounds, Module, Operand, Parameter, Role, Space, Terminator, Variable, parse,
    pointed, symbol, verify,
};
use crate::layout::compute_layouts;
use crate::program::Checked;
use crate::source::{FileId, Known, SourceMap, Span, wrong_file_name};
use crate::types::nesting::{MAX_NESTING, cut, is_too_deep};
use crate::types::{Struct, Structs, Type};

/// A function under construction: a device function, the body of a kernel, or a kernel that is only declared.
enum Draft {
    Function(Signature),
    Kernel(KernelId, Signature),
    Extern(KernelId),
}

impl Draft {
    /// Its name in the caller's source.
    fn name<'n>(&'n self, kernels: &'n [Kernel]) -> &'n str {
        match self {
            Draft::Function(signature) => {
                signature.name.strip_prefix(symbol::OWN).unwrap_or(&signature.name)
            }
            Draft::Kernel(id, _) | Draft::Extern(id) => &kernels[id.index()].name,
        }
    }
}

/// A program under construction.
///
/// The ids of kernels, functions, structs and source files, positions, and the addresses of variables, belong to the program that
/// declared them. Their numbers differ from those of other programs, and from those in the finished [`Module`].
pub struct ProgramBuilder {
    /// The numbers of what it declares.
    handles: Handles,
    sources: SourceMap,
    structs: Structs,
    globals: Vec<Global>,
    /// The indices of the variables with constant texts.
    texts: BTreeMap<Vec<u8>, usize>,
    drafts: Vec<Draft>,
    /// The code of each draft.
    bodies: Vec<Option<Body>>,
    kernels: Vec<Kernel>,
    /// Functions that other modules define.
    externs: Vec<Extern>,
    /// By function of the finished module, the index of its draft.
    draft_of: Vec<usize>,
    /// The first mistake with declarations.
    mistake: Option<(Span, String)>,
}

impl ProgramBuilder {
    /// A program whose first source file has that name and text. Messages and reports of lost launches show its lines. The
    /// text is in a language of your own: `#line`, which Gridlet has, means nothing in it. A name without a file at its end, or with
    /// quotation marks or control characters, is an error of [`ProgramBuilder::finish`], because tools cannot read it.
    pub fn new(name: &str, text: &str) -> Self {
        let mut sources = SourceMap::default();
        sources.add_known(name, text, Known::Text);
        let handles = Handles::new();
        ProgramBuilder {
            handles,
            sources,
            structs: handles.structs(),
            globals: vec![],
            texts: BTreeMap::new(),
            drafts: vec![],
            bodies: vec![],
            kernels: vec![],
            externs: vec![],
            draft_of: vec![],
            mistake: None,
        }
    }

    /// The first source file.
    pub fn first_file(&self) -> FileId {
        FileId(self.handles.give(0))
    }

    /// Adds a source file, as [`ProgramBuilder::new`] does. Two of one name are an error of [`ProgramBuilder::finish`].
    pub fn source(&mut self, name: &str, text: &str) -> FileId {
        let file = self.sources.add_known(name, text, Known::Text);
        FileId(self.handles.give(file.0 as usize))
    }

    /// A whole line of the first source file, as [`ProgramBuilder::line`].
    pub fn at(&self, line: u32) -> Span {
        self.line(self.first_file(), line)
    }

    /// A whole line of a source file, counted from 1. A line that the file does not have, or a file that the program does not
    /// have, gives a position that [`ProgramBuilder::finish`] refuses wherever it is used. An empty file has one line, and a
    /// line feed at the end of the text begins another line.
    pub fn line(&self, file: FileId, line: u32) -> Span {
        let index = self.declared().file(file).0 as usize;
        let Some(source) = self.sources.files().get(index) else {
            return Span::new(file, 0..0);
        };
        let whole = line.checked_sub(1).and_then(|line| source.line_range(line as usize));
        let Some(whole) = whole else {
            // Behind the end, which `is_inside` refuses.
            let nowhere = source.text.len() + 1;
            return Span::new(file, nowhere..nowhere);
        };
        let length = source.text[whole.clone()].trim_end().len();
        Span::new(file, whole.start..whole.start + length)
    }

    /// The structs, to add to.
    pub fn structs(&mut self) -> &mut Structs {
        &mut self.structs
    }

    /// Adds a variable of which each block has its own; its address is the result. Several may have one name, such as those of
    /// two kernels.
    pub fn shared(&mut self, name: &str, ty: Type) -> Operand {
        self.global(symbol::own(name), name, Space::Shared, ty, Init::Unset, false)
    }

    /// Adds a variable in device memory, zero at the start, which the host finds by name; its address is the result.
    pub fn variable(&mut self, name: &str, ty: Type) -> Operand {
        self.global(name.into(), name, Space::Device, ty, Init::Zero, true)
    }

    fn global(
        &mut self,
        symbol: String,
        name: &str,
        space: Space,
        ty: Type,
        init: Init,
        exported: bool,
    ) -> Operand {
        let span = Span::new(self.first_file(), 0..0);
        let ty = self.fits(&format!("`{name}`"), ty, span);
        let variable = Some(variable(name, span));
        self.globals.push(Global { name: symbol, space, ty, init, exported, variable });
        Operand::Global(GlobalId(self.handles.give(self.globals.len() - 1)))
    }

    /// Declares a kernel. Its name and those of its parameters consist of letters, digits and `_`, and begin with no digit.
    pub fn kernel(&mut self, name: &str, parameters: &[(&str, Type)], span: Span) -> KernelId {
        // Its entry follows its body.
        let [body, entry] = [(); 2].map(|()| self.next_function());
        let parameters = self.named(name, parameters, span);
        let id = self.add_kernel(name, parameters.clone(), (body, entry), span);
        let name = format!("{name}.body");
        let signature = signature(name, Role::Body(id), parameters, Type::Unit, span);
        self.drafts.push(Draft::Kernel(id, signature));
        self.bodies.push(None);
        KernelId(self.handles.give(id.index()))
    }

    /// What it has declared so far.
    fn declared(&self) -> Declared {
        Declared {
            handles: self.handles,
            kernels: self.kernels.len(),
            functions: self.draft_of.len(),
            variables: self.globals.len(),
            externs: self.externs.len(),
            files: self.sources.files().len(),
        }
    }

    /// Makes a kernel, and the functions that it calls, compute with `f32` on GPUs as nvcc's `-use_fast_math` does. Kernels
    /// that call the same functions without it compute exactly.
    pub fn fast_math(&mut self, kernel: KernelId) {
        self.change("fast_math", kernel, |kernel| kernel.fast_math = true);
    }

    /// Limits the threads of the kernel's blocks, as `#[launch_bounds]` of the language: `max_threads` is 1 to 1,024, and
    /// `min_blocks` 1 to 64. A launch with more threads fails.
    pub fn launch_bounds(&mut self, kernel: KernelId, bounds: LaunchBounds) {
        self.change("launch_bounds", kernel, |kernel| kernel.launch_bounds = Some(bounds));
    }

    /// Promises about each grid of the kernel what `#[noalias]` of the language promises (docs/language.md) of its `*const` and
    /// `*mut` parameters.
    pub fn noalias(&mut self, kernel: KernelId) {
        self.change("noalias", kernel, |kernel| kernel.noalias = true);
    }

    fn change(&mut self, what: &str, kernel: KernelId, change: impl FnOnce(&mut Kernel)) {
        let index = self.declared().kernel(kernel).index();
        match self.kernels.get_mut(index) {
            Some(kernel) => change(kernel),
            None => self.note(
                Span::NOWHERE,
                format!("`{what}`: a kernel of another program; declare it in this one"),
            ),
        }
    }

    /// Declares a kernel that another module defines: one of CUDA C++ (`extern "C"`), or of a program that is compiled apart. It
    /// has no code here, and the program only launches it, by `cdp`. The build is given that module, and compares the
    /// declared parameters with its machine code.
    pub fn extern_kernel(
        &mut self,
        name: &str,
        parameters: &[(&str, Type)],
        span: Span,
    ) -> KernelId {
        let entry = self.next_function();
        let parameters = self.named(name, parameters, span);
        let id = self.add_kernel(name, parameters, (entry, entry), span);
        self.drafts.push(Draft::Extern(id));
        self.bodies.push(None);
        KernelId(self.handles.give(id.index()))
    }

    /// Declares a device function that another module defines, with the convention of `extern fn` of the language:
    /// `extern "C" __device__` of CUDA C++ on GPUs, that of C on the CPU. Types are those that such a function takes and gives.
    /// The build is given that module.
    pub fn extern_function(
        &mut self,
        name: &str,
        parameters: &[Type],
        result: Type,
        span: Span,
    ) -> ExternId {
        let types: Vec<_> = (1..)
            .zip(parameters)
            .map(|(at, ty)| {
                // To clone a deep type recurses, as to drop it does.
                let is_deep = is_too_deep(ty);
                if is_deep {
                    let what = format!("the type of parameter {at} of `{name}`");
                    self.note(span, nests_too_deep(&what));
                }
                if is_deep { Type::U32 } else { ty.clone() }
            })
            .collect();
        let result = self.fits(&format!("the result of `{name}`"), result, span);
        self.externs.push(Extern {
            name: name.into(),
            parameters: types,
            result,
            span: Some(span),
        });
        ExternId(self.handles.give(self.externs.len() - 1))
    }

    fn add_kernel(
        &mut self,
        name: &str,
        parameters: Vec<Parameter>,
        (body, entry): (FunctionId, FunctionId),
        span: Span,
    ) -> KernelId {
        self.kernels.push(Kernel {
            name: name.into(),
            parameters,
            body,
            entry,
            whole: None,
            launch_bounds: None,
            noalias: false,
            fast_math: false,
            span,
        });
        KernelId(self.kernels.len() as u32 - 1)
    }

    /// Declares a device function.
    pub fn function(
        &mut self,
        name: &str,
        parameters: &[(&str, Type)],
        result: Type,
        span: Span,
    ) -> FunctionId {
        let id = self.next_function();
        let parameters = self.named(name, parameters, span);
        let result = self.fits(&format!("the result of `{name}`"), result, span);
        let signature = signature(symbol::own(name), Role::Device, parameters, result, span);
        self.drafts.push(Draft::Function(signature));
        self.bodies.push(None);
        FunctionId(self.handles.give(id.index()))
    }

    fn named(&mut self, of: &str, parameters: &[(&str, Type)], span: Span) -> Vec<Parameter> {
        let mut all = Vec::with_capacity(parameters.len());
        for (name, ty) in parameters {
            // To clone a deep type recurses, as to drop it does.
            let is_deep = is_too_deep(ty);
            if is_deep {
                let what = format!("the type of the parameter `{name}` of `{of}`");
                self.note(span, nests_too_deep(&what));
            }
            let ty = if is_deep { Type::U32 } else { ty.clone() };
            all.push(Parameter { name: (*name).into(), ty });
        }
        all
    }

    /// A type of the caller's.
    fn fits(&mut self, of: &str, ty: Type, span: Span) -> Type {
        let (ty, is_cut) = cut(ty);
        if is_cut {
            self.note(span, nests_too_deep(&format!("the type of {of}")));
        }
        ty
    }

    /// The id of a function of the next draft.
    fn next_function(&mut self) -> FunctionId {
        self.draft_of.push(self.drafts.len());
        FunctionId(self.draft_of.len() as u32 - 1)
    }

    /// Gives a kernel its code, once. One that another module defines has none.
    pub fn define(&mut self, kernel: KernelId, body: Body) {
        let kernel = self.kernels.get(self.declared().kernel(kernel).index());
        self.set(kernel.map(|kernel| self.draft_of[kernel.body.index()]), body);
    }

    /// Gives a function its code, once.
    pub fn define_function(&mut self, function: FunctionId, body: Body) {
        let is_function = |at: &usize| matches!(self.drafts[*at], Draft::Function(..));
        let index = self.declared().function(function).index();
        self.set(self.draft_of.get(index).copied().filter(is_function), body);
    }

    fn set(&mut self, draft: Option<usize>, body: Body) {
        let Some(at) = draft else {
            return self.note(body.span, "a body for a function of another program".into());
        };
        let span = body.span;
        if self.bodies[at].replace(body).is_some() {
            let name = self.drafts[at].name(&self.kernels);
            self.note(span, format!("`{name}` is defined twice"));
        }
    }

    fn note(&mut self, span: Span, mistake: String) {
        self.mistake.get_or_insert((span, mistake));
    }

    /// Moves all positions into the files of the finished program; those of other programs into one that it does not have.
    fn place(&mut self, declared: Declared) {
        let place = |span: &mut Span| declared.place(span);
        for id in self.structs.iter().map(|(id, _)| id).collect::<Vec<_>>() {
            if self.structs.get(id).span.is_some() {
                self.structs.get_mut(id).span.iter_mut().for_each(place);
            }
        }
        let variables = self.globals.iter_mut().filter_map(|global| global.variable.as_mut());
        variables.for_each(|variable| place(&mut variable.span));
        self.kernels.iter_mut().for_each(|kernel| place(&mut kernel.span));
        self.externs.iter_mut().filter_map(|item| item.span.as_mut()).for_each(place);
        for draft in &mut self.drafts {
            if let Draft::Function(signature) | Draft::Kernel(_, signature) = draft {
                place(&mut signature.span);
            }
        }
        self.bodies.iter_mut().flatten().for_each(|body| body.for_each_span(&place));
        self.mistake.iter_mut().for_each(|(span, _)| place(span));
    }

    /// Checks the program and lays out its parameter buffers.
    ///
    /// # Errors
    /// [`Error::Invalid`], with file and line of the caller's source where they are known, if the program breaks a rule of
    /// [`crate::ir`], a name is reserved, used twice or not one of letters, digits and `_`, a body is missing or given twice,
    /// it has no kernel, a value or a block of another function or a declaration of another program is used, a jump leads to a block without code, code comes after the end of a block, a position is not in its file, parameters or types are too large or nest too deep, a launch has a
    /// constant size that no launch can have, or an argument of a launch certainly points to a local variable or to shared
    /// memory, which a child grid cannot reach.
    pub fn finish(mut self) -> Result<Checked> {
        let declared = self.declared();
        self.place(declared);
        let settle = self.structs.settle();
        self.globals.iter_mut().for_each(|global| settle(&mut global.ty));
        self.kernels.iter_mut().for_each(|kernel| settle_all(&mut kernel.parameters, &settle));
        for item in &mut self.externs {
            item.parameters.iter_mut().chain([&mut item.result]).for_each(&settle);
        }
        if let Some(id) = self.structs.cut_fields() {
            let Struct { name, span, .. } = self.structs.get(id);
            let message = nests_too_deep(&format!("the type of a field of the struct `{name}`"));
            self.note(span.unwrap_or(Span::NOWHERE), message);
        }
        let mut functions = Vec::<Function>::new();
        let (sources, mut globals) = (self.sources, self.globals);
        if let Some((span, mistake)) = self.mistake.or_else(|| names::of_variables(&globals)) {
            return Err(yours_at(&sources, span, &mistake));
        }
        let owners = Owners::of(&self.drafts, &self.bodies, &self.kernels);
        for (mut draft, body) in self.drafts.into_iter().zip(self.bodies) {
            if let Draft::Function(signature) | Draft::Kernel(_, signature) = &mut draft {
                settle_all(&mut signature.parameters, &settle);
                settle(&mut signature.result);
            }
            let signature = match &draft {
                Draft::Function(signature) | Draft::Kernel(_, signature) => signature,
                Draft::Extern(id) => {
                    let kernel = &self.kernels[id.index()];
                    if body.is_some() {
                        let why =
                            format!("`{}` has a body, but another module defines it", kernel.name);
                        return Err(yours_at(&sources, kernel.span, &why));
                    }
                    functions.push(kernel.declared_entry(*id));
                    continue;
                }
            };
            let (name, span) = (draft.name(&self.kernels), signature.span);
            let missing = || yours_at(&sources, span, &format!("`{name}` has no body"));
            let mut body = body.ok_or_else(missing)?;
            if let Some((mistake, at)) = body.mistake(declared, &self.kernels, &sources, &owners) {
                return Err(yours_at(&sources, at, &format!("`{name}`: {mistake}")));
            }
            body.builder.place_division_trap();
            let function = body.builder.finish(signature.clone());
            let mut function = function.map_err(|error| theirs(&sources, body.span, error))?;
            declared.settle(&mut function, &settle);
            if let Some((span, wrong)) = names::of_function(name, &draft, &function) {
                return Err(yours_at(&sources, span, &wrong));
            }
            functions.push(function);
            if let Draft::Kernel(id, _) = draft {
                functions.push(build_entry(&self.kernels[id.index()], id)?);
            }
        }
        if let Some((span, wrong)) = names::of_functions(&functions) {
            return Err(yours_at(&sources, span, &wrong));
        }
        names::make_symbols_unique(&mut globals, &functions);
        check_positions(&sources, &functions)?;
        let sources = Arc::new(sources);
        let module = Module {
            sources: Arc::clone(&sources),
            structs: self.structs,
            globals,
            externs: self.externs,
            functions,
            kernels: self.kernels,
            lowered: false,
            resident: None,
        };
        let checked = check_rules(&module).and_then(|()| complete(module));
        checked.map_err(|error| as_text(error, &sources))
    }
}

fn settle_all(parameters: &mut [Parameter], settle: &impl Fn(&mut Type)) {
    parameters.iter_mut().for_each(|parameter| settle(&mut parameter.ty));
}

/// Whether a position is in a source file.
fn is_inside(sources: &SourceMap, span: Span) -> bool {
    let file = sources.files().get(span.file.0 as usize);
    file.is_some_and(|file| file.text.get(span.range()).is_some())
}

/// The name of a function in the caller's source.
fn shown_name(function: &str) -> &str {
    let name = function.strip_suffix(".body").unwrap_or(function);
    name.strip_prefix(symbol::OWN).unwrap_or(name)
}

/// Checks that all positions are in the sources.
fn check_positions(sources: &SourceMap, functions: &[Function]) -> Result<()> {
    for function in functions {
        let ends = function.blocks.iter().filter_map(|block| block.end);
        let instructions = function.instructions.iter().map(|inst| inst.span);
        let variables = function.slots.iter().filter_map(|slot| slot.variable.as_ref());
        let variables = variables.map(|variable| variable.span);
        let mut spans = instructions.chain(variables).chain(ends).chain([function.span]);
        let Some(wrong) = spans.find(|span| !is_inside(sources, *span)) else { continue };
        let why = match sources.files().get(wrong.file.0 as usize) {
            Some(file) => {
                let lines = file.text.split('\n').count();
                format!("is not in `{}`, whose lines are 1 to {lines}", file.name)
            }
            None => "is in a source file that the program does not have".into(),
        };
        let name = shown_name(&function.name);
        return Err(yours_at(sources, function.span, &format!("a position in `{name}` {why}")));
    }
    Ok(())
}

/// Messages about a program as text, for those who do not have its sources.
fn as_text(error: Error, sources: &SourceMap) -> Error {
    match error {
        Error::Program(messages) => Error::Invalid(described(sources, &messages)),
        other => other,
    }
}

/// Messages with their places, one a line.
fn described(sources: &SourceMap, messages: &[Diagnostic]) -> String {
    let one = |message: &Diagnostic| {
        let text = message.text();
        match message.labels.first() {
            Some(label) => yours_at(sources, label.span, &text).to_string(),
            None => yours(text).to_string(),
        }
    };
    messages.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// Reads a program from the text form of the IR, whose grammar is at the top of [`crate::ir::print`]. Any instruction may end
/// in a position in the front end's own source, `; line 3` or `; other.toy:3`; without one, it is at its own line of this text.
/// `name` is that of the text, which is the program's first file: `; line 3` is in it.
/// A `try launch` whose status nothing reads records its failure, as [`Body::try_launch_into`] says.
///
/// # Errors
/// [`Error::Invalid`], with file and line, for the first violation of the grammar, of the IR's rules or of those for names, and
/// for launches that are wrong: a constant size that no launch can have, an argument that certainly points to a local variable
/// or to shared memory, parameters of more than 4,096 bytes. [`read_into`] gives messages with positions instead.
pub fn read(name: &str, text: &str) -> Result<Checked> {
    let mut sources = SourceMap::default();
    read_into(&mut sources, name, text).map_err(|error| as_text(error, &sources))
}

/// As [`read`], for programs that show messages. `sources` becomes the files in which the messages of an error are: the text, and
/// those that its positions name.
///
/// # Errors
/// [`Error::Program`], in the cases of [`read`].
pub fn read_into(sources: &mut SourceMap, name: &str, text: &str) -> Result<Checked> {
    *sources = SourceMap::default();
    sources.add_known(name, text, Known::Text);
    let mut module = parse::parse_own(name, text).map_err(|error| {
        let lines = text.split_inclusive('\n').take(error.position.line as usize - 1);
        let before: usize = lines.map(str::len).sum();
        let characters = text[before..].chars().take(error.position.column as usize - 1);
        let at = before + characters.map(char::len_utf8).sum::<usize>();
        broken(Span::new(FileId(0), at..at), error.message)
    })?;
    *sources = (*module.sources).clone();
    check_rules(&module)?;
    // Debuggers show no constants of the front end.
    for global in &mut module.globals {
        if !global.exported && global.space != Space::Shared {
            global.variable = None;
        }
    }
    complete(module)
}

/// An error about the rules of the IR or the names in it, without a place if that is unknown.
fn broken(span: Span, message: String) -> Error {
    let message = match span == Span::NOWHERE {
        true => Diagnostic::general_error(ids::GRIDLET_IR, message),
        false => Diagnostic::error(ids::GRIDLET_IR, span, message),
    };
    Error::Program(vec![message])
}

/// Checks the names that the host uses, and the rules of the IR.
fn check_rules(module: &Module) -> Result<()> {
    let files = module.sources.files();
    if let Some(wrong) = files.iter().find_map(|file| wrong_file_name(&file.name)) {
        return Err(broken(Span::NOWHERE, wrong));
    }
    if let Some(name) = names::twice(files.iter().map(|file| file.name.as_str())) {
        let why = format!("two source files are called `{name}`; rename one");
        return Err(broken(Span::NOWHERE, why));
    }
    if let Some((span, wrong)) = names::of_module(module) {
        return Err(broken(span, wrong));
    }
    verify::find(module)
        .map_err(|wrong| broken(wrong.span.unwrap_or(Span::NOWHERE), wrong.message))?;
    if module.kernels.is_empty() {
        let why = "the program has no kernel; declare one for the host to launch";
        return Err(broken(Span::NOWHERE, why.into()));
    }
    match limits::of_module(module) {
        Some((span, wrong)) => Err(broken(span, wrong)),
        None => Ok(()),
    }
}

/// Makes launches whose status is dropped record their failures, checks the launches, and lays out the parameter buffers.
fn complete(mut module: Module) -> Result<Checked> {
    // The condition of such a branch is not read.
    for block in module.functions.iter_mut().flat_map(|function| &mut function.blocks) {
        match block.terminator {
            Terminator::Branch { then, otherwise, .. } if then == otherwise => {
                block.terminator = Terminator::Jump(then);
            }
            _ => {}
        }
    }
    dropped::record(&mut module.functions);
    let mut wrong = impossible_launches(&module);
    wrong.extend(pointed::unreachable_arguments(&module));
    if !wrong.is_empty() {
        return Err(Error::Program(wrong));
    }
    let layouts = compute_layouts(&module)?;
    Ok(Checked { sources: Arc::clone(&module.sources), module, layouts, warnings: vec![] })
}

/// Launches with constant sizes that no launch can have.
fn impossible_launches(module: &Module) -> Vec<Diagnostic> {
    let mut found = vec![];
    for function in &module.functions {
        let constant = |operand: &Operand| match operand {
            Operand::Const(constant) => constant.integer(),
            _ => None,
        };
        let sizes = |operand: &Operand| match operand {
            Operand::Const(Const::Zero(_)) => vec![Some(0); 3],
            Operand::Inst(id) => match &function.instructions[id.index()].kind {
                InstKind::Aggregate(parts) => parts.iter().map(constant).collect(),
                _ => vec![],
            },
            _ => vec![],
        };
        for inst in &function.instructions {
            let InstKind::Launch(launch) = &inst.kind else { continue };
            let kernel = module.kernel(launch.kernel);
            let bounds = kernel.launch_bounds.map(|bounds| (&*kernel.name, bounds.max_threads));
            let mut problems = extents::grid(&sizes(&launch.grid));
            problems.extend(extents::block(&sizes(&launch.block), bounds));
            problems.extend(constant(&launch.shared).and_then(extents::shared));
            found.extend(problems.into_iter().map(|problem| problem.at(inst.span)));
        }
    }
    found
}

/// A variable for debuggers, known in its whole function.
fn variable(name: &str, span: Span) -> Variable {
    Variable { name: name.into(), span, scope: None, parameter: None }
}

/// The message about a type that nests too deep.
fn nests_too_deep(what: &str) -> String {
    format!("{what} is nested over {MAX_NESTING} levels deep; write types that nest less")
}

/// Every function takes the geometry first.
fn signature(
    name: String,
    role: Role,
    mut parameters: Vec<Parameter>,
    result: Type,
    span: Span,
) -> Signature {
    parameters.insert(0, Parameter { name: "geometry".into(), ty: Type::GEOMETRY });
    Signature { name, role, takes_geometry: true, parameters, result, span }
}

fn yours(message: String) -> Error {
    Error::Invalid(format!("your module: {message}"))
}

/// A mistake at a place of the caller's source, if it is one.
fn yours_at(sources: &SourceMap, span: Span, message: &str) -> Error {
    match is_inside(sources, span) && span != Span::NOWHERE {
        true => yours(format!("{}:{}: {message}", sources.name(span), sources.line(span))),
        false => yours(message.into()),
    }
}

/// The message of building the IR, which is about the caller's module here.
fn theirs(sources: &SourceMap, span: Span, error: Error) -> Error {
    match error {
        Error::Internal { message, .. } => yours_at(sources, span, &message),
        other => other,
    }
}

#[cfg(test)]
mod tests;
