//! The input files of the commands.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use gridlet::Error;
use gridlet::builder;
use gridlet::compile::{self, Checked, KernelName};
use gridlet::disk;
use gridlet::inkwell::context::Context;
use gridlet::modules::Own;
use gridlet::source::SourceMap;

use super::report::{Failure, Reporter};

/// Reads and checks a `.grid` file and the files that it uses, or the text of Gridlet's IR (`.gir`), and shows the messages. `wanted` are
/// kernel instances to compile in addition to those that the program launches.
pub(crate) fn checked(
    path: &Path,
    wanted: &[KernelName],
    reporter: &Reporter,
) -> Result<Checked, Failure> {
    let checked = read(path, wanted, reporter)?;
    reporter.diagnostics(&checked.warnings, &checked.sources);
    Ok(checked)
}

/// As [`checked`], but shows only errors.
pub(crate) fn read(
    path: &Path,
    wanted: &[KernelName],
    reporter: &Reporter,
) -> Result<Checked, Failure> {
    if FileKind::of(path) == FileKind::Artifact {
        let shown = path.display();
        let hint = format!(
            "give the program's source; `gridlet layout {shown}` shows the parameters of its kernels, and `gridlet run {shown} \
             --check` checks its kernels while they run"
        );
        let message = format!("{shown}: a built program, which was checked when it was built");
        return Err(Failure::call(message).with_hint(Some(hint)));
    }
    if path.extension().is_some_and(|ending| ending == "gir") {
        return ir(path, wanted, reporter);
    }
    let mut sources = compile::load(path)?;
    sources.set_folder(path.parent().unwrap_or(Path::new("")));
    let shown = sources.clone();
    compile::check_for(sources, wanted).map_err(|error| reporter.program(error, &shown))
}

/// Reads a program from the text of Gridlet's IR.
fn ir(path: &Path, wanted: &[KernelName], reporter: &Reporter) -> Result<Checked, Failure> {
    let is_instance = |name: &&KernelName| name.to_string() != name.kernel;
    if let Some(instance) = wanted.iter().find(is_instance) {
        let message =
            format!("{}: Gridlet's IR has no instances such as `{instance}`", path.display());
        return Err(Failure::call(message));
    }
    let text = String::from_utf8(disk::bytes(path)?).map_err(|error| {
        let source = io::Error::new(ErrorKind::InvalidData, error);
        Error::Io { path: path.to_path_buf(), source }
    })?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut sources = SourceMap::default();
    let read = builder::read_into(&mut sources, &name, &text);
    read.map_err(|error| reporter.program(error.into(), &sources))
}

/// Reads a module of NVVM IR.
pub(crate) fn module<'ctx>(context: &'ctx Context, path: &Path) -> Result<Own<'ctx>, Failure> {
    let bytes = disk::bytes(path)?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut own = Own::read(context, &name, &bytes).map_err(foreign)?;
    let written = fs::metadata(path).and_then(|found| found.modified()).ok();
    own.find_sources(path.parent().unwrap_or(Path::new("")), written);
    Ok(own)
}

/// When a module that the user supplied is refused, the module is at fault.
pub(crate) fn foreign(error: Error) -> Failure {
    Error::in_nvvm_ir(error).into()
}

/// The kind of a file, by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Gridlet source, or Gridlet's IR: `.gir`.
    Source,
    /// NVVM IR: `.ll`, `.bc`.
    Nvvm,
    /// A bundle or a manifest.
    Artifact,
}

impl FileKind {
    /// The kind of a path. An unknown extension counts as source: the parser then reports the
    /// problem.
    pub(crate) fn of(path: &Path) -> FileKind {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("ll" | "bc") => FileKind::Nvvm,
            Some("gridlet" | "json") => FileKind::Artifact,
            _ => FileKind::Source,
        }
    }
}

/// A path without its extension, the base name of outputs.
pub(crate) fn stem(path: &Path) -> PathBuf {
    path.file_stem().map_or_else(|| PathBuf::from("out"), PathBuf::from)
}
