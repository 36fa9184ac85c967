//! Programs with and without messages: each file under `in/errors` and `in/warnings` marks the expected
//! messages on their lines; valid programs have none beyond those they mark. Also the reference of messages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gridlet_lang::check::parse_and_check;
use gridlet_lang::diagnostics::{Diagnostic, Severity, ids, reference, render};
use gridlet_lang::error::Error;
use gridlet_lang::load::{Memory, load};
use gridlet_lang::program::check;
use gridlet_lang::source::SourceMap;

/// The `.grid` files of a folder, sorted by name.
fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = crate::compiler().join(folder);
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
    (name, load(&crate::Disk, path).expect("the file can be read"))
}

/// The messages for a program.
fn messages(sources: &SourceMap) -> Vec<Diagnostic> {
    match check(sources.clone()) {
        Ok(program) => program.warnings,
        Err(Error::Program(messages)) => messages,
        Err(error) => panic!("{error}"),
    }
}

/// File and line of a message, and its id.
type Found = (String, String);

/// The position and id of each message.
fn found(diagnostics: &[Diagnostic], sources: &SourceMap) -> Vec<Found> {
    let place = |diagnostic: &Diagnostic| {
        let at = diagnostic.labels[0].span;
        format!("{}:{}", sources.file(at.file).name, sources.line(at))
    };
    let mut found: Vec<Found> = diagnostics.iter().map(|d| (place(d), d.id.to_string())).collect();
    found.sort();
    found
}

/// The position and id of each expected message: `//~ id id` in any file of the program.
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

/// The differences between the messages of a program and its marks.
fn differences(diagnostics: &[Diagnostic], sources: &SourceMap) -> String {
    let expected = expected(sources);
    let found = found(diagnostics, sources);
    let mut wrong = String::new();
    for (place, id) in difference(&expected, &found) {
        wrong += &format!("{place}: missing {id}\n");
    }
    for (place, id) in difference(&found, &expected) {
        wrong += &format!("{place}: unexpected {id}\n");
    }
    wrong
}

#[test]
fn right_programs_have_no_messages() {
    let folders = [
        "tests/in/ok",
        "tests/in/right",
        "tests/in/extern",
        "../examples/programs",
        "../examples/samples",
    ];
    let single = crate::compiler().join("tests/in/built_ins.grid");
    for path in folders.into_iter().flat_map(programs).chain([single]) {
        let (name, sources) = read(&path);
        let (program, diagnostics) = parse_and_check(&sources);
        let wrong = differences(&diagnostics, &sources);
        assert!(wrong.is_empty(), "{wrong}{}", render(&diagnostics, &sources, false));
        let program = program.expect("a program without errors");
        crate::tree_rules::verify(&program, &sources);
        assert!(program.functions.iter().any(|f| f.kernel.is_some()), "{name} has no kernel");
    }
}

#[test]
fn programs_that_go_wrong_when_run_are_warned_of_where_it_can_be_seen() {
    let mut warned = vec![];
    for path in programs("tests/in/wrong") {
        let (name, sources) = read(&path);
        let (_, diagnostics) = parse_and_check(&sources);
        for diagnostic in diagnostics {
            assert_eq!(diagnostic.id, ids::DIVERGENT_BARRIER, "{name}");
            warned.push(name.clone());
        }
    }
    warned.dedup();
    let seen = [
        "barrier_count.grid",
        "barrier_early_return.grid",
        "barrier_in_branch.grid",
        "barrier_in_loop.grid",
    ];
    assert_eq!(warned, seen);
}

/// The folders of programs with messages, and of their snapshots.
const WITH_MESSAGES: [(&str, &str); 2] = [
    ("tests/in/errors", "../../../tests/out/errors"),
    ("tests/in/warnings", "../../../tests/out/warnings"),
];

#[test]
fn programs_have_the_messages_they_mark() {
    let mut wrong = String::new();
    for (folder, _) in WITH_MESSAGES {
        for path in programs(folder) {
            let (_, sources) = read(&path);
            wrong += &differences(&messages(&sources), &sources);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// The elements that occur more often in `left` than in `right`.
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
fn messages_read_as_before() {
    for (folder, snapshots) in WITH_MESSAGES {
        for path in programs(folder) {
            let (_, sources) = read(&path);
            let diagnostics = messages(&sources);
            let source = &sources.files()[0].text;
            let content = format!(
                "----- source\n{source}\n----- messages\n{}",
                render(&diagnostics, &sources, false)
            );
            let stem = path.file_stem().expect("a file").to_string_lossy().into_owned();
            insta::with_settings!({
                prepend_module_to_snapshot => false, omit_expression => true, snapshot_path => snapshots,
            }, { insta::assert_snapshot!(stem, content) });
        }
    }
}

#[test]
fn every_id_has_a_program() {
    let covered: BTreeSet<String> = WITH_MESSAGES
        .iter()
        .flat_map(|(folder, _)| programs(folder))
        .flat_map(|path| expected(&read(&path).1))
        .map(|(_, id)| id)
        .collect();
    for id in &covered {
        assert!(ids::lookup(id).is_some(), "`{id}` is not an id");
    }
    // These need a file of 64 MiB, 257 files, a linker, machine code, a tool that warns, a GPU as target, or NVVM IR; `syntax`, `load`,
    // `items_cpu`, `locals`, `barriers`, `compile`, `nvvm_ir_refused` and `nvvm_ir_unread` test them.
    let elsewhere = [
        ids::FILE_TOO_LARGE,
        ids::TOO_MANY_FILES,
        ids::UNDEFINED_EXTERN,
        ids::SHARED_TOO_LARGE,
        ids::LOCAL_TOO_LARGE,
        ids::LOST_LANES,
        ids::TOOL_WARNING,
        ids::UNDEFINED_FUNCTION,
        ids::UNUSED_BUFFER,
    ];
    for (id, _) in ids::ALL.iter().filter(|(id, _)| !elsewhere.contains(id)) {
        assert!(covered.contains(*id), "no program for `{id}`");
    }
}

#[test]
fn the_list_of_warnings_is_right() {
    for (folder, _) in WITH_MESSAGES {
        for path in programs(folder) {
            let (name, sources) = read(&path);
            for diagnostic in messages(&sources) {
                let is_warning = diagnostic.severity == Severity::Warning;
                assert_eq!(ids::WARNINGS.contains(&diagnostic.id), is_warning, "{name}");
                assert_eq!(folder.ends_with("warnings"), is_warning, "{name}");
            }
        }
    }
}

#[test]
fn the_reference_has_every_id_in_order() {
    let entries: Vec<&str> = reference::entries().map(|entry| entry.id).collect();
    assert_eq!(entries, ids::explained().map(|(id, _)| id).collect::<Vec<_>>());
}

/// A file used by programs of the reference.
const SHAPES: &str = "fn area(width: u32, height: u32) -> u32 { return width * height; }\n";

#[test]
fn programs_of_the_reference_behave_as_documented() {
    // Ids whose programs would be too long, need a tool, or would show nothing.
    let without = [
        ids::FILE_TOO_LARGE,
        ids::TOO_MANY_FILES,
        ids::TEXT_DIRECTION,
        ids::NESTING_TOO_DEEP,
        ids::TOO_MANY_ERRORS,
        ids::TOO_MANY_WARNINGS,
        ids::UNDEFINED_EXTERN,
        ids::SHARED_TOO_LARGE,
        ids::LOCAL_TOO_LARGE,
        ids::LOST_LANES,
        ids::TOOL_WARNING,
        ids::UNDEFINED_FUNCTION,
        ids::UNUSED_BUFFER,
    ];
    let mut wrong = String::new();
    for entry in reference::entries() {
        let programs: Vec<&str> = entry.programs().collect();
        let is_failure = ids::FAILURES.iter().any(|(id, _)| *id == entry.id);
        let wanted = if is_failure || without.contains(&entry.id) { 0 } else { 2 };
        assert_eq!(programs.len(), wanted, "programs of `{}`", entry.id);
        // `run_cpu.rs` runs these.
        if ids::lookup(entry.id).is_none() {
            continue;
        }
        for (at, program) in programs.into_iter().enumerate() {
            let files = Memory::new([("example.grid", program), ("shapes.grid", SHAPES)]);
            let sources = load(&files, Path::new("example.grid")).expect("a file in memory");
            let diagnostics = messages(&sources);
            let is_as_said = match at {
                0 => !diagnostics.is_empty() && diagnostics.iter().all(|d| d.id == entry.id),
                _ => diagnostics.is_empty(),
            };
            if !is_as_said {
                let shown = render(&diagnostics, &sources, false);
                wrong += &format!("`{}`, program {at}:\n{program}\n{shown}\n", entry.id);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
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
        let calls = ["Diagnostic::error(", "Diagnostic::warning(", "Diagnostic::general_warning("];
        let calls = calls.into_iter().flat_map(|call| text.match_indices(call));
        for (at, call) in calls {
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
