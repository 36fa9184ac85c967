//! The text form of the IR from other front ends: where its mistakes are.

use super::super::{read, read_into};
use crate::diagnostics::render;
use crate::error::Error;
use crate::source::SourceMap;

/// A program of `child(p, n)` and `main(p, n)` with these declarations, lines in the body of each, and functions. Only the
/// launches have positions.
pub(super) fn text(declarations: &str, child: &str, main: &str, functions: &str) -> String {
    let mut text = "launches symbolic\n\n".to_owned() + declarations;
    for name in ["child", "main"] {
        text += &format!("kernel @{name}(p: *mut u32, n: u32) body @{name}.body\n");
    }
    for (name, body) in [("child", child), ("main", main)] {
        let body = if body.is_empty() { "  return\n" } else { body };
        text += &format!("\nbody @{name}.body(%geometry: geometry, %p: *mut u32, %n: u32) {{\n");
        text += &format!("entry:\n{body}}}\n");
        text += &format!("\nentry @{name}(%p: *mut u32, %n: u32) {{\nentry:\n");
        text += "  %0: geometry = hardware_geometry\n";
        text += &format!("  call @{name}.body(%0, %p, %n)\n  return\n}}\n");
    }
    text + functions
}

/// A launch of `child` from `main` with these sizes and arguments.
fn launch(sizes: [&str; 2], arguments: &str, position: &str) -> String {
    let [grid, block] = sizes;
    format!(
        "  %0: *mut u32 = element_address @tile, 0u32\n  %1: dim3 = aggregate {grid}u32, 1u32, 1u32\n  \
         %2: dim3 = aggregate {block}u32, 1u32, 1u32\n  launch @child<<<%1, %2, shared = 0u32, stream = \
         default>>>({arguments}){position}\n  return\n"
    )
}

/// What is wrong with a text, as users see it.
pub(super) fn wrong(text: &str) -> String {
    let mut sources = SourceMap::default();
    match read_into(&mut sources, "a.gir", text) {
        Err(Error::Program(messages)) => render(&messages, &sources, false),
        other => format!("{other:?}"),
    }
}

#[test]
fn mistakes_of_launches_are_at_their_positions() {
    let tile = "shared @tile: [u32; 64]\n";
    let of = |main: &str| wrong(&text(tile, "", main, ""));
    let mut seen = String::new();
    for position in ["", "  ; m.toy:5", "  ; line 7"] {
        seen += &of(&launch(["1", "4"], "%0, %n", position));
        seen += &of(&launch(["0", "2000"], "%p, %n", position));
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn broken_rules_are_at_their_lines() {
    let cases = [
        text("", "", "  store %p, 1i32  ; m.toy:9\n  return\n", ""),
        text("", "", "  store %p, 1i32\n  return\n", ""),
        text("", "  %0: u32 = load %p  ; m.toy:3\n  return %0\n", "", ""),
        text("", "  %0: u32 = load %p\n  return %0\n", "", ""),
        text("device @a: u32 = \"abc\"\n", "", "", ""),
        text("device @a: u32 = zero\ndevice @a: u32 = zero\n", "", "", ""),
        text("struct S { a: u32, a: u32 }\n", "", "", ""),
        text("", "", "", "\nfn @f() {\nslot $x: [(); 3]\nentry:\n  return\n}\n"),
        text("", "", "", "\nfn @f(%x: [(); 3]) {\nentry:\n  return\n}\n"),
        text("extern @f(u32)\n", "", "", ""),
        text("", "", "", "").replace("symbolic", "lowered"),
        "launches symbolic\n".into(),
        text("", "", "  store %p, 1u32  ; m.toy:0\n  return\n", ""),
        text("", "", "  store %p, 1u32  ; models/:3\n  return\n", ""),
        text("", "", "  %0: bool = cast 0.5f32\n  return\n", ""),
        text("", "", "  %0: bool = cast %p\n  return\n", ""),
    ];
    insta::assert_snapshot!(cases.map(|case| wrong(&case)).join("\n"));
}

#[test]
fn errors_without_sources_name_file_and_line() {
    let error = |main: &str| read("a.gir", &text("", "", main, "")).unwrap_err().to_string();
    let wrong = error("  store %p, 1i32\n  return\n");
    assert!(wrong.starts_with("your module: a.gir:20: function `main.body`"), "{wrong}");
    let unknown = error("  store %q, 1i32\n  return\n");
    assert!(unknown.starts_with("your module: a.gir:20: expected the name of"), "{unknown}");
}

/// `text`, with another entry of `main`.
fn with_entry(lines: &str) -> String {
    let own = "  %0: geometry = hardware_geometry\n  call @main.body(%0, %p, %n)\n";
    text("", "", "", "\nfn @f() {\nentry:\n  return\n}\n").replacen(own, lines, 1)
}

#[test]
fn entries_only_call_their_body() {
    let geometry = "  %0: geometry = hardware_geometry\n";
    let call = |name: &str, arguments: &str| format!("  call @{name}.body(%0, {arguments})\n");
    let main = call("main", "%p, %n");
    let cases = [
        format!("{geometry}{}", call("child", "%p, %n")),
        geometry.into(),
        format!("{geometry}{main}{main}"),
        format!("{geometry}{}", call("main", "%p, 7u32")),
        format!("{geometry}  store %p, 1u32\n{main}"),
        format!("{geometry}{main}  call @f()\n"),
        format!("{geometry}{main}  jump end\nend:\n"),
        "  call @main.body(zero geometry, %p, %n)\n".into(),
    ];
    insta::assert_snapshot!(cases.map(|case| wrong(&with_entry(&case))).join("\n"));
    assert!(read("a.gir", &with_entry(&format!("{geometry}{main}"))).is_ok());
}

#[test]
fn arrays_have_elements() {
    let variable = "device @a: [u32; 0] = zero\n";
    let cases = [
        text("struct S { a: [[u8; 0]; 3] }\n", "", "", ""),
        text(variable, "", "", ""),
        text("shared @a: [u32; 0]\n", "", "", ""),
        text("extern fn @f([u32; 0])\n", "", "", ""),
        text("", "", "", "").replace("p: *mut u32", "p: *mut [u32; 0]"),
        text("", "", "", "\nfn @f() -> [u32; 0] {\nentry:\n  return zero [u32; 0]\n}\n"),
        text("", "", "", "\nfn @f() {\n  slot $a: [u32; 0]\nentry:\n  return\n}\n"),
        text("", "  %0: *mut [u32; 0] = cast %p\n  return\n", "", ""),
    ];
    insta::assert_snapshot!(cases.map(|case| wrong(&case)).join("\n"));
}

#[test]
fn extern_functions_have_types_and_names_of_c() {
    let declared = |item: &str| text(&format!("extern fn @{item}\n"), "", "", "");
    let cases = ["f(f16)", "f() -> [u32; 2]", "a.b(u32)"].map(declared);
    insta::assert_snapshot!(cases.map(|case| wrong(&case)).join("\n"));
    assert!(read("a.gir", &declared("f(f32, *mut f16) -> dim3")).is_ok());
}

#[test]
fn launch_bounds_are_those_of_the_language() {
    let bounded =
        |bounds: &str| text("", "", "", "").replacen(" body", &format!(" {bounds} body"), 1);
    let cases = ["launch_bounds(2000)", "launch_bounds(32, 99)", "launch_bounds(0)"];
    insta::assert_snapshot!(cases.map(|case| wrong(&bounded(case))).join("\n"));
    for right in ["launch_bounds(1024, 64)", "launch_bounds(1, 1)"] {
        assert!(read("a.gir", &bounded(right)).is_ok(), "{right}");
    }
}

#[test]
fn nothing_writes_to_constants() {
    let constant = "constant @c: [u32; 4] = zero\nconstant @d: u32 = zero\n";
    let element = "  %0: *mut u32 = element_address @c, %n\n";
    let cases = [
        "  store @d, 1u32\n  return\n".to_owned(),
        format!("{element}  store %0, 1u32\n  return\n"),
        format!("{element}  %1: *mut i32 = cast %0\n  %2: i32 = atomic_add(%1, 1i32)\n  return\n"),
    ];
    insta::assert_snapshot!(cases.map(|case| wrong(&text(constant, &case, "", ""))).join("\n"));
    let load = format!("{element}  %1: u32 = load %0\n  store %p, %1\n  return\n");
    assert!(read("a.gir", &text(constant, &load, "", "")).is_ok());
}

/// Functions and variables that only the module sees, beside those that lowering adds.
#[test]
fn names_of_gridlet_and_cuda_are_reserved() {
    let of_function =
        |name: &str| text("", "", "", &format!("\nfn @{name}(%x: u32) {{\nentry:\n  return\n}}\n"));
    let of_variable = |name: &str| text(&format!("device @{name}: u32 = zero\n"), "", "", "");
    let cases = [
        of_function("cudaLaunchDeviceV2"),
        of_function("gridlet.record_lost_launch"),
        of_function("own.gridlet.turns"),
        of_variable("__gridlet_lost_launches"),
        of_variable("cudaLaunchDeviceV2"),
        text("shared @__x: u32\n", "", "", ""),
        text("extern fn @malloc(u64)\n", "", "", ""),
        text("device @own.f: u32 = zero\n", "", "", "\nfn @f() {\nentry:\n  return\n}\n"),
    ];
    insta::assert_snapshot!(cases.map(|case| wrong(&case)).join("\n"));
    for right in ["own.malloc", "f", "own.f", "f.2", "f::<8>"] {
        assert!(read("a.gir", &of_function(right)).is_ok(), "{right}");
    }
}

#[test]
fn integers_convert_to_bool_and_back() {
    let code = "  %0: bool = cast %n\n  %1: f32 = cast %0\n  %2: u32 = cast %0\n  store %p, %2\n  return\n";
    assert!(read("a.gir", &text("", code, "", "")).is_ok());
}

/// Without a position, code is at its own line.
#[test]
fn code_without_a_position_is_at_its_own_line() {
    let lines = |text: &str| {
        let program = read("a.gir", text).unwrap();
        let sources = &program.sources;
        let body = &program.module.functions[0];
        let spans = body.instructions.iter().map(|inst| inst.span);
        let ends = body.blocks.iter().filter_map(|block| block.end);
        let at = |span| format!("{}:{}", sources.name(span), sources.line(span));
        spans.chain(ends).chain([body.span]).map(at).collect::<Vec<_>>()
    };
    let code = "  %0: u32 = load %p\n  store %p, %0  ; m.toy:4\n  return\n";
    let own = text("", code, "", "");
    assert_eq!(lines(&own), ["a.gir:8", "m.toy:4", "a.gir:6"]);
    let code = "  %0: u32 = load %p  ; line 90\n  store %p, %0\n  return\n";
    let own = text("", code, "", "");
    assert_eq!(lines(&own), ["a.gir:90", "a.gir:9", "a.gir:10", "a.gir:6"]);
}
