//! What a command reads.

use std::path::{Path, PathBuf};

use gridlet::compile::{self, Checked, KernelName};

use super::report::{Failure, Reporter};

/// Reads and checks a `.grid` file and what it uses, and shows the messages. `wanted` are kernels with const
/// arguments to compile beside those that the program launches.
pub(crate) fn checked(
    path: &Path,
    wanted: &[KernelName],
    reporter: &Reporter,
) -> Result<Checked, Failure> {
    let checked = read(path, wanted, reporter)?;
    reporter.diagnostics(&checked.warnings, &checked.sources);
    Ok(checked)
}

/// The same, and shows errors alone.
pub(crate) fn read(
    path: &Path,
    wanted: &[KernelName],
    reporter: &Reporter,
) -> Result<Checked, Failure> {
    let mut sources = compile::load(path)?;
    sources.set_folder(path.parent().unwrap_or(Path::new("")));
    let shown = sources.clone();
    compile::check_for(sources, wanted).map_err(|error| reporter.program(error, &shown))
}

/// What a file holds, by its ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Gridlet source.
    Source,
    /// NVVM IR: `.ll`, `.bc`.
    Nvvm,
    /// A bundle or a manifest.
    Artifact,
}

impl FileKind {
    /// The kind of a path. Anything unknown is read as source, so that its own error says what is wrong.
    pub(crate) fn of(path: &Path) -> FileKind {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("ll" | "bc") => FileKind::Nvvm,
            Some("gridlet" | "json") => FileKind::Artifact,
            _ => FileKind::Source,
        }
    }
}

/// A path's stem, as outputs are called.
pub(crate) fn stem(path: &Path) -> PathBuf {
    path.file_stem().map_or_else(|| PathBuf::from("out"), PathBuf::from)
}
