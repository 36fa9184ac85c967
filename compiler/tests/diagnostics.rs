//! Error programs and right ones: each file under `in/errors` says on its lines which errors belong there,
//! each under `in/ok` has none.

mod tree_rules;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridlet::check::parse_and_check;
use gridlet::diagnostics::{Diagnostic, ids, render};
use gridlet::error::Error;
use gridlet::ir::build::build_ir;
use gridlet::layout::compute_layouts;
use gridlet::source::SourceMap;

/// The `.grid` files of a folder, sorted by name.
fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> = walkdir::WalkDir::new(&folder)
        .into_iter()
        .map(|entry| entry.expect("the folder can be read").into_path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "grid"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no programs in {}", folder.display());
    files
}

fn read(path: &Path) -> (String, SourceMap) {
    let name = path.file_name().expect("a file").to_string_lossy().into_owned();
    (name, gridlet::compile::load(path).expect("the file can be read"))
}

/// The messages for a program: those of the checker or, where it has none, of the stages after it that
/// have some.
fn messages(sources: &SourceMap) -> Vec<Diagnostic> {
    let (program, diagnostics) = parse_and_check(sources);
    let Some(program) = program else { return diagnostics };
    let later = build_ir(&program, Arc::new(sources.clone())).and_then(|ir| compute_layouts(&ir));
    match later {
        Ok(_) => diagnostics,
        Err(Error::Program(later)) => later,
        Err(error) => panic!("{error}"),
    }
}

/// File and line, and the id, of a message.
type Found = (String, String);

/// Where each message stands, and its id.
fn found(diagnostics: &[Diagnostic], sources: &SourceMap) -> Vec<Found> {
    let place = |diagnostic: &Diagnostic| {
        let at = diagnostic.labels[0].span;
        format!("{}:{}", sources.file(at.file).name, sources.line(at))
    };
    let mut found: Vec<Found> = diagnostics.iter().map(|d| (place(d), d.id.to_string())).collect();
    found.sort();
    found
}

/// Where each message shall stand, and its id: `//~ id id` in any file of the program.
fn expected(sources: &SourceMap) -> Vec<Found> {
    let mut expected = vec![];
    for file in sources.files() {
        for (line, text) in (1u32..).zip(file.text.lines()) {
            let Some((_, list)) = text.split_once("//~") else { continue };
            let place = format!("{}:{line}", file.name);
            expected.extend(list.split_whitespace().map(|id| (place.clone(), id.to_string())));
        }
    }
    expected.sort();
    expected
}

#[test]
fn right_programs_have_no_messages() {
    let folders = ["tests/in/ok", "tests/in/extern", "../examples/programs"];
    for path in folders.into_iter().flat_map(programs) {
        let (name, sources) = read(&path);
        let (program, diagnostics) = parse_and_check(&sources);
        assert!(diagnostics.is_empty(), "{name}:\n{}", render(&diagnostics, &sources, false));
        let program = program.expect("a program without errors");
        tree_rules::verify(&program, &sources);
        assert!(program.functions.iter().any(|f| f.kernel.is_some()), "{name} has no kernel");
    }
}

#[test]
fn error_programs_have_the_errors_that_they_say() {
    let mut wrong = String::new();
    for path in programs("tests/in/errors") {
        let (_, sources) = read(&path);
        let diagnostics = messages(&sources);
        let expected = expected(&sources);
        let found = found(&diagnostics, &sources);
        for (place, id) in difference(&expected, &found) {
            wrong += &format!("{place}: missing {id}\n");
        }
        for (place, id) in difference(&found, &expected) {
            wrong += &format!("{place}: unexpected {id}\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// What is in `left` more often than in `right`.
fn difference(left: &[Found], right: &[Found]) -> Vec<Found> {
    let mut rest = right.to_vec();
    let mut difference = vec![];
    for entry in left {
        match rest.iter().position(|other| other == entry) {
            Some(at) => drop(rest.remove(at)),
            None => difference.push(entry.clone()),
        }
    }
    difference
}

#[test]
fn error_messages_read_as_before() {
    for path in programs("tests/in/errors") {
        let (_, sources) = read(&path);
        let diagnostics = messages(&sources);
        let source = &sources.files()[0].text;
        let content = format!(
            "----- source\n{source}\n----- messages\n{}",
            render(&diagnostics, &sources, false)
        );
        let stem = path.file_stem().expect("a file").to_string_lossy().into_owned();
        insta::with_settings!({
            prepend_module_to_snapshot => false, omit_expression => true, snapshot_path => "out/errors",
        }, { insta::assert_snapshot!(stem, content) });
    }
}

#[test]
fn every_id_has_an_error_program() {
    let covered: BTreeSet<String> = programs("tests/in/errors")
        .iter()
        .flat_map(|path| expected(&read(path).1))
        .map(|(_, id)| id)
        .collect();
    for id in &covered {
        assert!(ids::lookup(id).is_some(), "`{id}` is not an id");
    }
    // These need a file of 64 MiB, 257 files, and a linker; `syntax`, `load` and `items_cpu` test them.
    let elsewhere = [ids::FILE_TOO_LARGE, ids::TOO_MANY_FILES, ids::UNDEFINED_EXTERN];
    for (id, _) in ids::ALL.iter().filter(|(id, _)| !elsewhere.contains(id)) {
        assert!(covered.contains(*id), "no error program for `{id}`");
    }
}

#[test]
fn every_id_in_the_compiler_is_in_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = 0;
    for entry in walkdir::WalkDir::new(root) {
        let path = entry.expect("the folder can be read").into_path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        for (at, call) in text.match_indices("Diagnostic::error(") {
            let first = text[at + call.len()..].trim_start();
            seen += 1;
            // Otherwise it is a constant of the table.
            if let Some(id) = first.strip_prefix('"').and_then(|rest| rest.split('"').next()) {
                assert!(ids::lookup(id).is_some(), "{}: `{id}` is not an id", path.display());
            }
        }
    }
    assert!(seen > 50, "only {seen} errors found");
}
