//! A module of another compiler that may have no kernels.

use std::sync::Arc;

use gridlet_lang::arch::CudaArch;
use gridlet_lang::source::SourceMap;
use inkwell::context::Context;
use inkwell::module::Module;

use super::check::{self, Finding};
use super::positions::{self, Mentions, Positions};
use super::{kernels, source_files};
use crate::error::{Error, Result};
use crate::inputs::read;
use crate::nvvm::legacy::llvm::{self, Kind, Value};

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
        Mentions::of(llvm::Module::new(&module)).add_to(&mut sources, source_files(&module));
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
        check(&self.name, &self.module, &self.sources, arch)
    }
}

/// The text of a module that was read from `bytes`: these, or as LLVM prints it.
pub(super) fn text(module: &Module<'_>, bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).ok().map(str::to_owned);
    text.unwrap_or_else(|| module.print_to_string().to_string())
}

/// Checks what no tool checks. `sources` starts with the module's text.
pub(super) fn check(
    name: &str,
    module: &Module<'_>,
    sources: &SourceMap,
    arch: CudaArch,
) -> Result<()> {
    let findings = check::all(llvm::Module::new(module), arch);
    if findings.is_empty() {
        return Ok(());
    }
    let known = Positions::of(sources);
    let line = |finding: &Finding<'_>| {
        let place = finding.at.map(|at| place(at, &known, sources)).unwrap_or_default();
        format!("{name}:{place} {}", finding.message)
    };
    let lines: Vec<String> = findings.iter().map(line).collect();
    Err(Error::Invalid(lines.join("\n")))
}

/// The position of an instruction or a function, as it follows the module's name in a message.
fn place(value: Value<'_>, known: &Positions, sources: &SourceMap) -> String {
    let is_function = value.kind() == Kind::Function;
    let position =
        if is_function { positions::subprogram(value) } else { positions::position(value) };
    if let Some(position) = position {
        return format!(" {}:{}:", position.file, position.line);
    }
    let span = if is_function {
        Some(known.first_line(&kernels::name(value)))
    } else {
        let Some(function) = value.function() else { return String::new() };
        known.instructions(&kernels::name(function), function).get(&value).copied()
    };
    span.map_or_else(String::new, |span| format!("{}:", sources.line(span)))
}
