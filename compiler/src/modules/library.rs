//! A module of another compiler that may have no kernels.

use std::sync::Arc;

use gridlet_lang::arch::CudaArch;
use gridlet_lang::source::SourceMap;
use inkwell::context::Context;
use inkwell::module::Module;

use super::check::{self, Finding};
use super::positions::{self, Mentions, Positions};
use super::{complete, logs, lost, record, runtime};
use super::{depth, files, kernels};
use crate::error::{Error, Mistake, Place, Result};
use crate::inputs::{read, without_mark};
use crate::nvvm::legacy::llvm::{self, Kind, Value};
use crate::nvvm::{legacy, short_pointers};

/// A module of another compiler that need not have kernels, such as a library of device functions. It has no manifest and no
/// layouts; PTX, objects and cubins are made from it.
pub struct Library<'ctx> {
    pub(super) name: String,
    pub(super) module: Module<'ctx>,
    /// First the module's text, then the files that its debug information names.
    pub(super) sources: Arc<SourceMap>,
}

impl<'ctx> Library<'ctx> {
    /// Reads NVVM IR in either dialect, as text or bitcode. `name` is its file's name.
    ///
    /// # Errors
    /// As [`read()`].
    pub fn read(context: &'ctx Context, name: &str, bytes: &[u8]) -> Result<Self> {
        let module = read(context, name, bytes)?;
        let mut sources = SourceMap::single(name, text(&module, bytes));
        refuse(name, &sources, depth::check(llvm::Module::new(&module)))?;
        short_pointers::settle(&module);
        refuse(name, &sources, check::reserved(llvm::Module::new(&module)))?;
        Mentions::of(llvm::Module::new(&module)).add_to(&mut sources, files::all(&module));
        Ok(Library { name: name.into(), module, sources: Arc::new(sources) })
    }

    /// The module.
    pub fn module(&self) -> &Module<'ctx> {
        &self.module
    }

    /// As [`super::Own::check`].
    ///
    /// # Errors
    /// As [`super::Own::check`].
    pub fn check(&self, arch: CudaArch) -> Result<()> {
        self.check_for(arch, true)
    }

    /// As [`super::Own::check_for`].
    pub(crate) fn check_for(&self, arch: CudaArch, by_libnvvm: bool) -> Result<()> {
        check(&self.name, &self.module, &self.sources, arch, by_libnvvm)
    }

    /// As [`super::Own::explain`].
    pub(crate) fn explain(&self, error: Error) -> Error {
        explain(&self.name, &self.module, &self.sources, error)
    }
}

/// The text of a module that was read from `bytes`: these, or as LLVM prints it.
pub(super) fn text(module: &Module<'_>, bytes: &[u8]) -> String {
    let text = std::str::from_utf8(without_mark(bytes)).ok().map(str::to_owned);
    text.unwrap_or_else(|| module.print_to_string().to_string())
}

/// Checks what no tool checks. `sources` starts with the module's text. `by_libnvvm`: libNVVM compiles it.
pub(super) fn check(
    name: &str,
    module: &Module<'_>,
    sources: &SourceMap,
    arch: CudaArch,
    by_libnvvm: bool,
) -> Result<()> {
    let module = llvm::Module::new(module);
    let target = check::target(module).into_iter().map(|(start, message)| {
        let place = line_that_starts(sources, start);
        Mistake::new(name, place, message)
    });
    let mut mistakes: Vec<Mistake> = target.collect();
    // Where the text has no data layout, LLVM takes that of the triple, which is the first mistake.
    if mistakes.len() > 1 {
        mistakes.retain(|mistake| mistake.place.is_some());
    }
    match refuse(name, sources, unnoticed(module, arch, by_libnvvm)) {
        Err(Error::Mistakes(others)) => mistakes.extend(others),
        other => other?,
    }
    if mistakes.is_empty() { Ok(()) } else { Err(Error::Mistakes(mistakes)) }
}

/// Checks a module that is linked into a program for GPUs, as [`check`] does, but for the target, which becomes the program's.
///
/// # Errors
/// [`Error::Module`] with what is wrong.
pub(crate) fn check_linked(
    name: &str,
    module: &Module<'_>,
    bytes: &[u8],
    arch: CudaArch,
    by_libnvvm: bool,
) -> Result<()> {
    let sources = SourceMap::single(name, text(module, bytes));
    let view = llvm::Module::new(module);
    let findings = depth::check(view).into_iter().chain(unnoticed(view, arch, by_libnvvm));
    refuse(name, &sources, findings).map_err(Error::in_nvvm_ir)
}

/// Records failures of the launches whose status a module drops that is linked into a program for GPUs, by the lines of its text.
pub(crate) fn record_linked(name: &str, module: &Module<'_>, bytes: &[u8]) -> Result<()> {
    let view = llvm::Module::new(module);
    if runtime::declared(view).is_empty() || complete::is_complete(module) {
        return Ok(());
    }
    let sources = SourceMap::single(name, text(module, bytes));
    let is_named = record::open(module);
    let is_needed = lost::record(module, &sources, true)?;
    if is_needed {
        complete::add_functions(module, false)?;
    }
    if is_named || is_needed {
        record::share(module);
    }
    Ok(())
}

/// Refuses a module that is linked into a program for the CPU device and launches: only images' own code reaches its device runtime.
///
/// # Errors
/// [`Error::Module`] with the first call.
pub(crate) fn check_linked_for_cpu(name: &str, module: &Module<'_>, bytes: &[u8]) -> Result<()> {
    let declared = runtime::declared(llvm::Module::new(module)).into_iter();
    let called = declared.filter_map(|(function, _)| {
        let first = runtime::calls(function).last().copied()?;
        Some((first, kernels::name(function)))
    });
    let findings: Vec<_> = called
        .map(|(at, symbol)| Finding {
            at: Some(at),
            message: format!(
                "the CPU device has no `{symbol}` for modules that are linked in; launch in the program itself, or build for GPUs only"
            ),
        })
        .collect();
    if findings.is_empty() {
        return Ok(());
    }
    let sources = SourceMap::single(name, text(module, bytes));
    refuse(name, &sources, findings).map_err(Error::in_nvvm_ir)
}

/// What no tool notices, apart from the target.
fn unnoticed(module: llvm::Module<'_>, arch: CudaArch, by_libnvvm: bool) -> Vec<Finding<'_>> {
    let mut findings = check::all(module, arch, by_libnvvm);
    findings.extend(check::lacking(module, arch, by_libnvvm));
    findings
}

/// The first line of the module's text that starts with these words.
fn line_that_starts(sources: &SourceMap, words: &str) -> Option<Place> {
    let file = sources.files().first()?;
    let (line, _) = (1..).zip(file.text.lines()).find(|(_, line)| line.starts_with(words))?;
    Some(Place { file: file.name.clone(), line, column: None })
}

/// Finds in a log what it is about.
type Find = for<'m> fn(llvm::Module<'m>, &str) -> Vec<Finding<'m>>;

/// Turns an error of a compiler or a linker into one that names the lines at fault, as far as it says which.
pub(super) fn explain(name: &str, module: &Module<'_>, sources: &SourceMap, error: Error) -> Error {
    let Error::Tool { tool, operation, log } = &error else { return error };
    let module = llvm::Module::new(module);
    let known: &[Find] = match *tool {
        // It says itself which instruction it cannot write, and why.
        legacy::TOOL => &[],
        _ => &[
            check::not_linked,
            logs::assembly,
            check::named,
            check::refused,
            logs::quoted,
            check::newer,
        ],
    };
    let found = known.iter().map(|find| find(module, log)).find(|found| !found.is_empty());
    let mut findings = found.unwrap_or_default();
    if findings.is_empty() {
        let at = mentioned(module, operation, log);
        findings = vec![Finding { at, message: error.to_string() }];
    }
    refuse(name, sources, findings).err().unwrap_or(error)
}

/// What the writer of the legacy dialect refuses: its operation has the name of the function or variable, its log starts with an
/// instruction.
fn mentioned<'m>(module: llvm::Module<'m>, operation: &str, log: &str) -> Option<Value<'m>> {
    let symbol = operation.split_once('`')?.1.rsplit_once('`')?.0;
    let is_it = |value: &Value<'m>| kernels::name(*value) == symbol;
    let Some(function) = module.functions().into_iter().find(is_it) else {
        return module.variables().into_iter().chain(module.aliases()).find(is_it);
    };
    let refused = check::bare(log.lines().next().unwrap_or_default());
    let blocks = function.blocks().into_iter();
    let instructions: Vec<_> = blocks.flat_map(|block| block.instructions()).collect();
    // Of several that look the same, the one that is refused is not known. Those with a result do not.
    if instructions.len() > MOST_PRINTED && !refused.starts_with('%') {
        return Some(function);
    }
    // LLVM takes long to print one of many.
    let printed = instructions.into_iter().take(MOST_PRINTED);
    let mut shown = printed.filter(|one| check::bare(&one.print()) == refused);
    match (shown.next(), shown.next()) {
        (Some(one), None) => Some(one),
        _ => Some(function),
    }
}

/// The most instructions that are compared with a message.
pub(super) const MOST_PRINTED: usize = 2000;

/// Refuses a module with findings. `sources` as for [`check`].
pub(super) fn refuse<'m>(
    name: &str,
    sources: &SourceMap,
    findings: impl IntoIterator<Item = Finding<'m>>,
) -> Result<()> {
    let mut findings = findings.into_iter().peekable();
    if findings.peek().is_none() {
        return Ok(());
    }
    let known = Positions::of(sources);
    let mistakes = findings.map(|finding| {
        let place = finding.at.and_then(|at| place(at, &known, sources));
        Mistake::new(name, place, finding.message)
    });
    Err(Error::Mistakes(mistakes.collect()))
}

/// The position of an instruction, a function or a variable.
fn place(value: Value<'_>, known: &Positions, sources: &SourceMap) -> Option<Place> {
    let is_instruction = value.kind() == Kind::Instruction;
    let position = match value.kind() {
        Kind::Instruction => positions::position(value),
        Kind::Function => positions::subprogram(value),
        _ => None,
    };
    if let Some(position) = position {
        return Some(Place { file: position.file, line: position.line, column: None });
    }
    let span = if is_instruction {
        known.instruction(value)
    } else {
        known.line_of(&kernels::name(value))
    };
    // The text of a module that was built in memory has a name of its own.
    let span = span?;
    Some(Place { file: sources.name(span).to_owned(), line: sources.line(span), column: None })
}
