//! A program from source text to IR and layouts: every stage that needs no tool.
//!
//! ```text
//! source → syntax → check → ir → layout → launch
//! ```
//! A [`Checked`] program is independent of the target; every image starts from it.

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

pub use crate::check::KernelName;
use crate::check::{self, tree};
use crate::diagnostics::{Diagnostic, Severity};
use crate::error::{Error, Result};
use crate::ir;
use crate::launch::{self, LaunchOptions};
use crate::layout::{self, Layouts, ParamLayout};
use crate::source::SourceMap;

/// A program that passed all checks that need no tool, with its IR and layouts.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The sources.
    pub sources: Arc<SourceMap>,
    /// The IR, launches still symbolic.
    pub module: ir::Module,
    /// Every parameter buffer.
    pub layouts: Layouts,
    /// Messages that do not stop a build.
    pub warnings: Vec<Diagnostic>,
}

/// Parses and checks a program, builds its IR and lays out its parameter buffers.
///
/// # Errors
/// [`Error::Program`] with every message if the program is wrong.
pub fn check(sources: SourceMap) -> Result<Checked> {
    check_for(sources, &[])
}

/// As [`check`], with kernels that a host wants beside those that the program launches: a kernel with const
/// parameters, `k::<8>`, is compiled for the arguments that somebody names.
///
/// # Errors
/// As [`check`], also if a kernel does not take the arguments; [`Error::Invalid`] if there is no such kernel.
pub fn check_for(sources: SourceMap, wanted: &[KernelName]) -> Result<Checked> {
    let (program, diagnostics) = check::parse_and_check_for(&sources, wanted);
    let Some(program) = program else {
        return Err(Error::Program(diagnostics));
    };
    for name in wanted.iter().map(KernelName::to_string) {
        if !program.functions.iter().any(|f| f.kernel.is_some() && f.name == name) {
            return Err(Error::Invalid(unknown_kernel(&name, &program)));
        }
    }
    let sources = Arc::new(sources);
    let module = ir::build::build_ir(&program, Arc::clone(&sources))?;
    ir::verify::verify(&module)?;
    let layouts = layout::compute_layouts(&module).map_err(|error| match error {
        Error::Program(more) => Error::Program(diagnostics.iter().cloned().chain(more).collect()),
        other => other,
    })?;
    debug_assert!(diagnostics.iter().all(|diagnostic| diagnostic.severity == Severity::Warning));
    Ok(Checked { sources, module, layouts, warnings: diagnostics })
}

/// The message for a kernel that a program does not have.
fn unknown_kernel(name: &str, program: &tree::Program) -> String {
    let kernels = program.functions.iter().filter(|function| function.kernel.is_some());
    let known: Vec<&str> = kernels.map(|kernel| kernel.name.as_str()).collect();
    format!("no kernel `{name}`; the program has {}", known.join(", "))
}

impl Checked {
    /// The program's name: the stem of its first file.
    pub fn name(&self) -> String {
        let name = &self.sources.files()[0].name;
        Path::new(name)
            .file_stem()
            .map_or_else(|| name.clone(), |stem| stem.to_string_lossy().into_owned())
    }

    /// SHA-256 over names and texts of all sources, in hexadecimal.
    pub fn source_sha256(&self) -> String {
        let mut hash = Sha256::new();
        for file in self.sources.files() {
            for part in [&file.name, &file.text] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part.as_bytes());
            }
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether any kernel launches another.
    pub fn launches(&self) -> bool {
        launch::launches(&self.module)
    }

    /// Whether it calls the device runtime, for launches or otherwise, and so is linked with it.
    pub fn needs_device_runtime(&self) -> bool {
        launch::needs_device_runtime(&self.module)
    }

    /// The parameter buffer of every kernel, in the order of the source.
    pub fn parameter_buffers(&self) -> impl Iterator<Item = &ParamLayout> {
        self.layouts.kernels.iter()
    }

    /// The IR with launches and other operations of the device runtime lowered, instrumented if the options count
    /// launches.
    ///
    /// # Errors
    /// Only internal ones.
    pub fn lower(&self, options: &LaunchOptions) -> Result<ir::Module> {
        if !options.count_launches {
            return launch::lower(&self.module, &self.layouts, options);
        }
        let module = launch::instrument(&self.module)?;
        let layouts = layout::compute_layouts(&module)?;
        launch::lower(&module, &layouts, options)
    }
}
