//! Compares the reference's tables of built-ins with the compiler's table and with generated code.

use std::collections::BTreeMap;

use gridlet::arch::CudaArch;
use gridlet::builtins::Builtin;
use gridlet::codegen;
use gridlet::compile::{self, BuildOptions, check};
use gridlet::diagnostics::render;
use gridlet::ptx::{PtxOptions, nvptx};
use gridlet::source::SourceMap;
use gridlet::{Error, Result};
use inkwell::context::Context;

/// The language reference.
const PAGE: &str = include_str!("../../../docs/language.md");

/// The rows about built-ins: their cells, by name.
fn built_ins() -> BTreeMap<String, Vec<String>> {
    let rows = rows(PAGE, "Name");
    let count = rows.len();
    let rows: BTreeMap<String, Vec<String>> =
        rows.into_iter().map(|row| (row[0].trim_matches('`').to_owned(), row)).collect();
    assert_eq!(rows.len(), count, "a built-in has two rows");
    rows
}

#[test]
fn the_tables_have_every_built_in() {
    let rows = built_ins();
    let mut known: Vec<&str> = Builtin::ALL.iter().map(|builtin| builtin.name()).collect();
    known.sort_unstable();
    let listed: Vec<&str> = rows.keys().map(String::as_str).collect();
    assert_eq!(listed, known);
    for (name, row) in rows {
        assert_eq!(row.len(), 5, "`{name}` has other cells: {row:?}");
    }
}

/// The code generated for a call: the LLVM module, and PTX if that needs no libdevice.
fn generated(call: &str) -> Result<String> {
    // A call may be a statement; if it has a value, the value must be used, or the call would be
    // removed.
    let parameters = "m: u32, n: u32, i: i32, w: u64, x: f32, y: f32, z: f32, c: bool, \
        p: *mut u32, f: *mut f32, b: *mut u8, s: stream";
    let used = format!("kernel k({parameters}) {{ let used = {call}; keep(&used as u64, p); }}");
    let keep = "fn keep(a: u64, p: *mut u32) { *p = *(a as *mut u32); }";
    let plain = format!("kernel k({parameters}) {{ {call}; }}");
    let with_value = SourceMap::single("k.grid", format!("{keep} {used}"));
    let checked = match check(with_value) {
        Ok(checked) => checked,
        Err(Error::Program(_)) => {
            let sources = SourceMap::single("k.grid", plain);
            check(sources.clone()).inspect_err(|error| {
                if let Error::Program(messages) = error {
                    panic!("{call}:\n{}", render(messages, &sources, false));
                }
            })?
        }
        Err(error) => return Err(error),
    };
    let arch: CudaArch = "sm_90".parse().expect("a known architecture");
    let context = Context::create();
    let lowered = compile::lower(&checked, &BuildOptions::for_arch(arch))?;
    let module = codegen::build_module(&context, &lowered)?;
    let mut text = module.print_to_string().to_string();
    if !codegen::uses_libdevice(&module) {
        text += &nvptx::compile(&module, None, arch, &PtxOptions::default())?.0;
    }
    Ok(text)
}

#[test]
fn calls_compile_as_the_tables_say() {
    let mut missing = String::new();
    let mut checked = 0;
    for (name, row) in built_ins() {
        let calls = quoted(&row[1]);
        let [call] = calls[..] else { panic!("`{name}` has no call: {row:?}") };
        assert!(call.starts_with(&name), "`{call}` does not call `{name}`");
        let text = generated(call).unwrap_or_else(|error| panic!("{call}: {error}"));
        for becomes in quoted(&row[4]) {
            // LLVM may omit a state space that it can infer.
            let words: Vec<&str> = becomes.split('.').collect();
            let found = text.lines().any(|line| match becomes.starts_with("atom.") {
                true => {
                    let parts: Vec<&str> = line.trim().split(['.', ' ', '\t']).collect();
                    let scope = |list: &[&str]| ["cta", "sys"].map(|scope| list.contains(&scope));
                    let mut rest = parts.iter();
                    scope(&parts) == scope(&words)
                        && words.iter().all(|word| rest.any(|part| part == word))
                }
                false => line.contains(becomes) || line.replace(".global.", ".").contains(becomes),
            });
            if !found {
                missing += &format!("`{call}`: no `{becomes}` in\n{text}\n");
            }
            checked += 1;
        }
    }
    assert!(missing.is_empty(), "{missing}");
    assert!(checked > 90, "only {checked} names");
}

/// The rows of all tables whose first column is headed `head`, as cells.
fn rows(page: &str, head: &str) -> Vec<Vec<String>> {
    let mut rows = vec![];
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("|---") {
            continue;
        }
        let Some(row) = line.strip_prefix('|').and_then(|row| row.strip_suffix('|')) else {
            inside = false;
            continue;
        };
        let cells: Vec<String> = row.split('|').map(|cell| cell.trim().to_owned()).collect();
        if cells[0] == head {
            inside = true;
        } else if inside {
            rows.push(cells);
        }
    }
    rows
}

/// The texts between backquotes.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}
