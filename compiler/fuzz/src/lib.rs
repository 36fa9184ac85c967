//! The bodies of the fuzz targets. Each must handle any bytes without panicking: a panic is a bug.
//!
//! A test of `nvvm-tests` calls the same functions with the files in `corpus/`, which hold a small
//! sample of every kind of input and every input that ever failed.

#[path = "../../c/tests/calls/mod.rs"]
mod calls;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use gridlet::arch::CudaArch;
use gridlet::compile::{self, BuildOptions, Checked, CpuOptions, DialectChoice};
use gridlet::diagnostics::{Diagnostic, Severity, ids, reference, render};
use gridlet::error::Error;
use gridlet::format::format as layout_of;
use gridlet::ir::{build::build_ir, print, verify::verify};
use gridlet::launch::{self, LaunchOptions, LaunchStrategy};
use gridlet::layout::compute_layouts;
use gridlet::link::{Cubin, cubin};
use gridlet::source::{FileId, SourceMap};
use gridlet::{arch::Dialect, check::parse_and_check, syntax};
use gridlet_compiler_c::gridlet_compile_status;
use gridlet_runtime::Artifact;
use nvvm_tests::generate;

/// A target: its name and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 7] = [
    ("parse", parse),
    ("format", format),
    ("check", check),
    ("generated", generated),
    ("artifact", artifact),
    ("cubin", cubin),
    ("c_api", c_api),
];

/// Runs lexer and parser.
pub fn parse(data: &[u8]) {
    let sources = program(data);
    let (_, diagnostics) = syntax::parse(&sources, FileId(0));
    look_at(&diagnostics, &sources);
}

/// Runs the formatter, which must preserve the tokens and be idempotent.
pub fn format(data: &[u8]) {
    let sources = program(data);
    let Some(once) = accept(layout_of(&sources)) else { return };
    let again = SourceMap::single("fuzz.grid", once.as_str());
    assert!(words(&sources) == words(&again), "other tokens:\n{once}");
    let twice = accept(layout_of(&again)).expect("what was formatted can be formatted");
    assert!(once == twice, "formatted again, it is\n{twice}\ninstead of\n{once}");
}

/// Runs the checker with its flow analyses, and the later stages that need no tool.
pub fn check(data: &[u8]) {
    through_ir(&program(data));
}

/// Mutates a generated program: the first four bytes are the generator's seed, every further four
/// bytes one mutation. Programs that still pass the checker continue to LLVM.
pub fn generated(data: &[u8]) {
    let Some((seed, damages)) = data.split_first_chunk::<4>() else { return };
    let source = generate::program(u64::from(u32::from_le_bytes(*seed) % 4096)).source;
    let mut pieces = pieces(&source);
    for damage in damages.chunks_exact(4).take(16) {
        let at = usize::from(u16::from_le_bytes([damage[1], damage[2]])) % pieces.len();
        let other = (at + usize::from(damage[3])) % pieces.len();
        match damage[0] % 6 {
            0 => pieces[at] = "",
            1 => pieces.insert(at, pieces[other]),
            2 => pieces.swap(at, other),
            3 => pieces[at] = pieces[other],
            4 => pieces[at] = WORDS[usize::from(damage[3]) % WORDS.len()],
            _ => pieces.truncate(at.max(1)),
        }
    }
    let sources = SourceMap::single("fuzz.grid", pieces.concat());
    if let Some(checked) = through_ir(&sources) {
        through_llvm(&checked);
    }
}

/// Reads a bundle, as the runtime does.
pub fn artifact(data: &[u8]) {
    if let Ok(artifact) = Artifact::from_bytes(data) {
        let again = artifact.to_bytes().expect("what was read can be written");
        assert!(Artifact::from_bytes(&again) == Ok(artifact), "written and read, it is another");
    }
}

/// Reads a cubin, as the link stage does.
pub fn cubin(data: &[u8]) {
    let cubin = Cubin(data.to_vec());
    // Errors are valid results.
    let _ = cubin::parameter_records(&cubin);
    let _ = cubin::kernel_resources(&cubin);
}

/// Gives a program of any form, or a module to link, to the C API of the compiler, and asks for outputs that need none of NVIDIA's
/// compiler parts. The first byte chooses the form.
pub fn c_api(data: &[u8]) {
    const FORMS: [&str; 4] = ["a.grid", "a.gir", "a.ll", "a.bc"];
    const LINKS: [&str; 6] = ["a.o", "a.a", "a.cubin", "a.fatbin", "a.ptx", "a.ll"];
    let Some((form, data)) = data.split_first() else { return };
    let form = usize::from(*form) % (FORMS.len() + LINKS.len());
    let answer = |program, link, kind, target| {
        let ((status, error), _) = calls::build(program, link, kind, target);
        assert!(status != gridlet_compile_status::Internal, "{error:?}");
        assert!((status == gridlet_compile_status::Ok) == error.is_none(), "{error:?}");
        error.is_none()
    };
    match FORMS.get(form) {
        None => {
            let link = Some((LINKS[form - FORMS.len()], data));
            answer(("a.grid", b"kernel k() {}"), link, c"layout", c"cpu");
        }
        Some(name) => {
            if answer((name, data), None, c"layout", c"cpu") {
                for target in [c"sm_90", c"sm_100", c"cpu"] {
                    answer((name, data), None, c"nvvm", target);
                }
            }
        }
    }
}

/// Words that `generated` inserts at random.
const WORDS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "255u8",
    "0xffff_ffff",
    "1e39",
    "0.5f64",
    "true",
    "bool",
    "f32x4",
    "*mut u8",
    "&",
    "*",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ";",
    "return",
    "break",
    "launch",
    "as u64",
];

fn program(data: &[u8]) -> SourceMap {
    SourceMap::single("fuzz.grid", String::from_utf8_lossy(data))
}

/// Splits a text into words, single punctuation characters and white space.
fn pieces(text: &str) -> Vec<&str> {
    let is_word = |sign: char| sign.is_alphanumeric() || sign == '_';
    let mut pieces = vec![];
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match is_word(first) {
            true => rest.find(|sign| !is_word(sign)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// The texts of the tokens, without commas before a closing bracket, which a formatter may add and
/// remove.
fn words(sources: &SourceMap) -> Vec<&str> {
    let text = &sources.file(FileId(0)).text;
    let mut words: Vec<&str> = vec![];
    for (_, range) in syntax::tokens(sources, FileId(0)).0 {
        let word = &text[range];
        if matches!(word, ")" | "]" | "}" | ">>>" | ">") && words.last() == Some(&",") {
            words.pop();
        }
        words.push(word);
    }
    words
}

/// Checks that diagnostics have known, explained ids, point into the text, and can be rendered.
fn look_at(diagnostics: &[Diagnostic], sources: &SourceMap) {
    static EXPLAINED: OnceLock<BTreeSet<&str>> = OnceLock::new();
    let explained = EXPLAINED.get_or_init(|| reference::entries().map(|entry| entry.id).collect());
    for diagnostic in diagnostics {
        assert!(ids::lookup(diagnostic.id).is_some(), "`{}` is not an id", diagnostic.id);
        assert!(explained.contains(diagnostic.id), "`{}` is not explained", diagnostic.id);
        assert!(!diagnostic.labels.is_empty(), "{diagnostic:?} points nowhere");
        for label in &diagnostic.labels {
            let text = &sources.file(label.span.file).text;
            assert!(text.get(label.span.range()).is_some(), "{diagnostic:?} points outside");
        }
    }
    render(diagnostics, sources, false);
}

/// Builds and lowers the IR of a source that the checker accepts; later stages may refuse it only
/// for reasons of their own.
fn through_ir(sources: &SourceMap) -> Option<Checked> {
    let (program, diagnostics) = parse_and_check(sources);
    look_at(&diagnostics, sources);
    assert_eq!(program.is_none(), diagnostics.iter().any(|d| d.severity == Severity::Error));
    let program = program?;
    let sources = Arc::new(sources.clone());
    let built = build_ir(&program, Arc::clone(&sources)).and_then(|module| {
        verify(&module)?;
        let layouts = compute_layouts(&module)?;
        verify(&launch::lower(
            &module,
            &layouts,
            &LaunchOptions::for_arch(LaunchStrategy::Cdp, CudaArch::DEFAULT),
        )?)?;
        Ok(Checked { sources, module, layouts, warnings: diagnostics })
    });
    let checked = accept(built)?;
    print::print(&checked.module);
    Some(checked)
}

/// Builds the LLVM modules of both back ends.
fn through_llvm(checked: &Checked) {
    for dialect in [Dialect::Legacy, Dialect::Modern] {
        let options = BuildOptions::default().with_dialect(DialectChoice::Fixed(dialect));
        accept(compile::nvvm(checked, &options));
    }
    accept(compile::cpu_llvm(checked, &CpuOptions::default().with_check(true)));
}

/// The user's errors are valid results; internal errors are bugs.
fn accept<T>(result: Result<T, impl Into<Error>>) -> Option<T> {
    match result.map_err(Into::into) {
        Ok(value) => Some(value),
        Err(Error::Program(_) | Error::Invalid(_) | Error::Mistakes(_)) => None,
        Err(error) => panic!("{error}"),
    }
}
