//! A program from source text to IR and layouts: the stages that need no external tool.
//!
//! ```text
//! source → syntax → check → ir → layout → launch
//! ```
//! A [`Checked`] program is independent of the target; every image starts from it.

use std::collections::{BTreeMap, HashSet};
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
use crate::source::{FileId, Known, SourceMap, Span, names_a_file};

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
    if let Some(file) = sources.files().iter().find(|file| !names_a_file(&file.name)) {
        let name = &file.name;
        return Err(Error::Invalid(format!(
            "{name:?} cannot be the name of a source file: give one with a file at its end"
        )));
    }
    let (program, diagnostics) = check::parse_and_check_for(&sources, wanted);
    let Some(program) = program else {
        return Err(Error::Program(diagnostics));
    };
    for name in wanted.iter().map(KernelName::to_string) {
        if !program.functions.iter().any(|f| is_defined_kernel(f) && f.name == name) {
            return Err(Error::Invalid(unknown_kernel(&name, &program)));
        }
    }
    let mut module = ir::build::build_ir(&program, Arc::clone(&sources))?;
    ir::verify::verify(&module)?;
    // What the checker cannot see in its tree, such as an address that was a number.
    let mut unreachable = ir::pointed::unreachable_arguments(&module);
    if !unreachable.is_empty() {
        // The instances of a kernel repeat its mistakes.
        let mut seen = HashSet::new();
        unreachable.retain(|error| {
            seen.insert((error.labels.first().map(|label| label.span), error.message.clone()))
        });
        return Err(Error::Program(diagnostics.into_iter().chain(unreachable).collect()));
    }
    let layouts = layout::compute_layouts(&module).map_err(|error| match error {
        Error::Program(more) => Error::Program(diagnostics.iter().cloned().chain(more).collect()),
        other => other,
    })?;
    if module.sources.has_directives() {
        to_origins(&mut module);
    }
    let sources = Arc::clone(&module.sources);
    debug_assert!(diagnostics.iter().all(|diagnostic| diagnostic.severity == Severity::Warning));
    Ok(Checked { sources, module, layouts, warnings: diagnostics })
}

/// Moves the positions of instructions and functions into the files that `#line` names. They become source files, in which
/// each line that was mentioned has the text that was generated from it.
fn to_origins(module: &mut ir::Module) {
    let old = Arc::clone(&module.sources);
    let mut spans: Vec<&mut Span> = vec![];
    for function in &mut module.functions {
        spans.push(&mut function.span);
        spans.extend(function.instructions.iter_mut().map(|inst| &mut inst.span));
    }
    spans.retain(|span| old.is_generated(**span));
    let mut generated: BTreeMap<&str, BTreeMap<u32, &str>> = BTreeMap::new();
    for span in &spans {
        let lines = generated.entry(old.name(**span)).or_default();
        lines.entry(old.line(**span)).or_insert_with(|| old.line_text(**span));
    }
    let mut sources = (*old).clone();
    // By file and line: the file's id, and the line's range.
    let mut places = BTreeMap::new();
    for (name, lines) in generated {
        let (mut text, mut next) = (String::new(), 1);
        let id = FileId(sources.files().len() as u32);
        for (line, shown) in lines {
            text.extend(std::iter::repeat_n('\n', (line - next) as usize));
            next = line;
            let start = text.len() as u32;
            text.push_str(shown);
            places.insert((name, line), (id, start, text.len() as u32));
        }
        sources.add_known(name, text, Known::Generated);
    }
    for span in spans {
        let (file, start, end) = places[&(old.name(*span), old.line(*span))];
        let at = (start + old.bytes_before(*span)).min(end) as usize;
        let at = sources.file(file).text.floor_char_boundary(at);
        *span = Span::new(file, at..at);
    }
    module.sources = Arc::new(sources);
}

/// The message for a kernel that a program does not have.
fn unknown_kernel(name: &str, program: &tree::Program) -> String {
    let kernels = program.functions.iter().filter(|function| is_defined_kernel(function));
    let known: Vec<&str> = kernels.map(|kernel| kernel.name.as_str()).collect();
    format!("no kernel `{name}`; the program has {}", known.join(", "))
}

/// Whether the host can ask for a function: a kernel that the program defines.
fn is_defined_kernel(function: &tree::Function) -> bool {
    function.kernel.is_some_and(|kernel| !kernel.is_extern)
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

    /// The parameter buffer of every kernel, `extern kernel`s included, in source order.
    pub fn parameter_buffers(&self) -> impl Iterator<Item = &ParamLayout> {
        self.layouts.kernels.iter()
    }

    /// The IR with launches and other device-runtime operations lowered, instrumented if the options count
    /// launches.
    ///
    /// # Errors
    /// As [`launch::lower`].
    pub fn lower(&self, options: &LaunchOptions) -> Result<ir::Module> {
        if !options.count_launches {
            return launch::lower(&self.module, &self.layouts, options);
        }
        let module = launch::instrument(&self.module)?;
        let layouts = layout::compute_layouts(&module)?;
        launch::lower(&module, &layouts, options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::{ids, render};
    use crate::format::format;

    const GENERATED: &str = "kernel c(p: *mut u32) { *p = 1; }
#line 7 \"model.toy\"
kernel k(p: *mut u32) {
    assert(*p == 0);
    launch c<<<1, 1>>>(p);
#line 90 \"other.toy\"
    launch c<<<1, 2>>>(p);
}
";

    #[test]
    fn generated_lines_are_those_of_the_generator_in_the_ir() {
        let checked = check(SourceMap::single("a.grid", GENERATED)).unwrap();
        let names: Vec<&str> =
            checked.sources.files().iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["a.grid", "model.toy", "other.toy"]);
        let text = ir::print::print(&checked.module);
        let launches: Vec<&str> = text.lines().filter(|line| line.contains("launch @")).collect();
        assert!(launches[0].ends_with("; model.toy:9"), "{text}");
        assert!(launches[1].ends_with("; other.toy:90"), "{text}");
        assert!(text.contains("call @c.body(%0, %p)  ; line 1"), "{text}");
        ir::verify::verify(&checked.module).unwrap();
    }

    /// ptxas crashes over a folder in debug information.
    #[test]
    fn source_files_have_the_names_of_files() {
        let named = |name: &str| {
            check(SourceMap::single(name, "kernel k() {}\n")).map_err(|e| e.to_string())
        };
        for wrong in ["", "models/", "models/..", "."] {
            let error = named(wrong).unwrap_err();
            assert!(error.contains("cannot be the name of a source file"), "{error}");
        }
        assert!(named("models/a \"b\".grid").is_ok());
    }

    #[test]
    fn messages_name_the_generators_file_and_line() {
        let sources = SourceMap::single("a.grid", GENERATED.replace("1, 2", "1, x"));
        let Err(Error::Program(messages)) = check(sources.clone()) else { panic!("no error") };
        let shown = render(&messages, &sources, false);
        assert!(shown.contains("other.toy:90:19"), "{shown}");
        assert!(shown.contains("90 │     launch c<<<1, x>>>(p);"), "{shown}");
        let json = crate::diagnostics::to_json(&messages[0], &sources);
        assert_eq!((&json["file"], &json["line"]), (&"other.toy".into(), &90.into()));
    }

    #[test]
    fn directives_are_whole_lines_and_survive_the_formatter() {
        for wrong in ["#line x\n", "let y = 1; #line 3\n", "#line 3 4\n"] {
            let text = GENERATED.replace("#line 90 \"other.toy\"\n", wrong);
            let Err(Error::Program(messages)) = check(SourceMap::single("a.grid", text)) else {
                panic!("{wrong} is accepted")
            };
            assert_eq!(messages[0].id, ids::SYNTAX_ERROR, "{wrong}");
        }
        let mut seen = String::new();
        for wrong in ["#line x\n", "#line 1000001 \"m.toy\"\n", "#line 0\n", "#line 7 \"dir/\"\n"] {
            let sources = SourceMap::single("a.grid", wrong.to_owned() + "kernel k() {}\n");
            let Err(Error::Program(messages)) = check(sources.clone()) else { panic!("{wrong}") };
            seen += &render(&messages, &sources, false);
        }
        insta::assert_snapshot!(seen);
        let formatted = format(&SourceMap::single("a.grid", GENERATED)).unwrap();
        assert!(formatted.contains("\n#line 7 \"model.toy\"\n"), "{formatted}");
        assert!(formatted.contains("    #line 90 \"other.toy\"\n    launch"), "{formatted}");
    }
}
