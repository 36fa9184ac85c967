//! A program from source text to IR and layouts: the stages that need no external tool.
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
use crate::deep;
use crate::diagnostics::{Diagnostic, Severity};
use crate::error::{Error, Result};
use crate::ir;
use crate::launch::{self, LaunchOptions, LaunchStrategy};
use crate::layout::{self, Layouts, ParamLayout};
use crate::source::SourceMap;

/// A program that passed all checks of the front end, with its IR and layouts.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Its source files.
    pub sources: Arc<SourceMap>,
    /// The IR; launches are still symbolic.
    pub module: ir::Module,
    /// Every parameter buffer.
    pub layouts: Layouts,
    /// Diagnostics that do not stop a build.
    pub warnings: Vec<Diagnostic>,
}

/// Parses and checks a program, builds its IR and lays out its parameter buffers.
///
/// # Errors
/// [`Error::Program`] with all diagnostics if the program is wrong.
pub fn check(sources: SourceMap) -> Result<Checked> {
    check_for(sources, &[])
}

/// As [`check()`], but also instantiates kernels that the host asks for: a kernel with const parameters, such
/// as `k::<8>`, is compiled only for the arguments that the program or the host names.
///
/// # Errors
/// As [`check()`], and also if a kernel does not accept the arguments; [`Error::Invalid`] if there is no such
/// kernel.
pub fn check_for(sources: SourceMap, wanted: &[KernelName]) -> Result<Checked> {
    let sources = Arc::new(sources);
    deep::with_room(&sources, || check_here(Arc::clone(&sources), wanted))
}

/// As [`check_for`], on this thread.
fn check_here(sources: Arc<SourceMap>, wanted: &[KernelName]) -> Result<Checked> {
    let (program, diagnostics) = check::parse_and_check_for(&sources, wanted);
    let Some(program) = program else {
        return Err(Error::Program(diagnostics));
    };
    for name in wanted.iter().map(KernelName::to_string) {
        if !program.functions.iter().any(|f| f.kernel.is_some() && f.name == name) {
            return Err(Error::Invalid(unknown_kernel(&name, &program)));
        }
    }
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

    /// SHA-256 over the names and texts of all sources, in hexadecimal.
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

    /// Whether its images for GPUs must be linked with CUDA's device runtime, for launches or otherwise.
    pub fn needs_device_runtime(&self, strategy: LaunchStrategy) -> bool {
        launch::needs_device_runtime(&self.module, strategy)
    }

    /// The parameter buffer of every kernel, in source order.
    pub fn parameter_buffers(&self) -> impl Iterator<Item = &ParamLayout> {
        self.layouts.kernels.iter()
    }

    /// The IR with launches and other device-runtime operations lowered, instrumented if the options count
    /// launches.
    ///
    /// # Errors
    /// Only internal errors.
    pub fn lower(&self, options: &LaunchOptions) -> Result<ir::Module> {
        if !options.count_launches {
            return launch::lower(&self.module, &self.layouts, options);
        }
        let module = launch::instrument(&self.module)?;
        let layouts = layout::compute_layouts(&module)?;
        launch::lower(&module, &layouts, options)
    }
}
