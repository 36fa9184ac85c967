//! The variables that the IR names for debuggers, and where in the text their names mean them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use gridlet_lang::builder::{self, Body, ProgramBuilder};
use gridlet_lang::ir::{Function, Module, Variable};
use gridlet_lang::program::check;
use gridlet_lang::source::{FileId, SourceMap, Span};
use gridlet_lang::types::Type;

fn function<'m>(module: &'m Module, name: &str) -> &'m Function {
    module.functions.iter().find(|function| function.name == name).unwrap()
}

/// The variables of a function's slots, each with the parameter that it holds.
fn variables(function: &Function) -> Vec<&Variable> {
    function.slots.iter().filter_map(|slot| slot.variable.as_ref()).collect()
}

#[test]
fn a_variable_is_known_from_its_declaration_to_the_end_of_its_block() {
    let source = "\
kernel k(out: *mut u32, mut n: u32) {
    let x: u32;
    x = 3;
    let x = x + 1; n = 5;
    for i in 0..n {
        let filled = [x; 100];
        out[i] = filled[0];
    }
}
";
    let sources = SourceMap::single("a.grid", source);
    let program = check(sources).unwrap();
    let found: Vec<(&str, &str, Option<u32>)> = variables(function(&program.module, "k.body"))
        .into_iter()
        .map(|one| (&*one.name, &source[one.scope.unwrap().range()], one.parameter))
        .collect();
    let after = |text: &str| &source[source.find(text).unwrap() + text.len()..source.len() - 1];
    let to_brace = |text: &str| {
        let rest = after(text);
        &rest[..=rest.find("    }\n").unwrap() + 4]
    };
    let body = &source[source.find('{').unwrap()..source.len() - 1];
    // `out` is a parameter that needs no slot, and the counter that fills an array is none of the source.
    let expected = [
        ("n", body, Some(2)),
        ("x", after("let x: u32"), None),
        ("x", after("let x = x + 1"), None),
        ("i", to_brace("in 0..n "), None),
        ("filled", to_brace("[x; 100]"), None),
    ];
    assert_eq!(found, expected);
}

#[test]
fn shared_and_static_variables_have_the_names_of_the_source() {
    let source =
        "static a: u32 = 1;\nkernel k() { shared b: [u32; 4]; b[0] = a; printf(\"%d\", 1); }\n";
    let program = check(SourceMap::single("a.grid", source)).unwrap();
    let globals = program.module.globals.iter();
    let found: Vec<_> = globals.map(|one| one.variable.as_ref().map(|one| &*one.name)).collect();
    assert_eq!(found, [Some("a"), Some("b"), None]);
}

#[test]
fn front_ends_name_their_variables() {
    let mut program = ProgramBuilder::new("a.toy", "first\nsecond\n");
    let lines = [1, 2].map(|line| program.line(program.first_file(), line));
    let kernel = program.kernel("k", &[], lines[0]);
    program.shared("tile", Type::U32);
    let mut body = Body::new(lines[0]);
    body.at(lines[1]);
    let seen = body.local("seen", Type::U32);
    let number = body.number(3);
    body.store(seen, number);
    body.temporary("hidden", Type::U32);
    body.end();
    program.define(kernel, body);
    let program = program.finish().unwrap();
    let found = variables(function(&program.module, "k.body"));
    // Files of the finished program have other numbers.
    let span = Span { file: FileId(0), ..lines[1] };
    let expected = Variable { name: "seen".into(), span, scope: None, parameter: None };
    assert_eq!(found, [&expected]);
    assert_eq!(program.module.globals[0].variable.as_ref().unwrap().name, "tile");
}

#[test]
fn slots_of_the_text_form_are_variables() {
    let source = "kernel k(p: *mut u32) { let a = 3u32; *p = a; }";
    let printed =
        gridlet_lang::ir::print::print(&check(SourceMap::single("a.grid", source)).unwrap().module);
    let read = builder::read("a.gir", &printed).unwrap();
    let found = variables(function(&read.module, "k.body"));
    assert_eq!(found.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["a"]);
}
