//! What the IR of a program's source has.

use crate::ir::print::print;
use crate::ir::{Module, Unroll};
use crate::program::check;
use crate::source::SourceMap;

fn module(source: &str) -> Module {
    let program = check(SourceMap::single("test.grid", source));
    program.unwrap_or_else(|error| panic!("{error}\n{source}")).module
}

#[test]
fn a_divisor_is_tested_once_on_a_way() {
    let cases = [
        ("*p = n / d + n % d;", 1),
        ("let q = n / d; *p = q; *p = n % d;", 1),
        ("let e = p[0]; *p = n / e + n % e;", 1),
        ("let mut e = d; let q = n / e; *p = q + n % e;", 1),
        ("*p = n / d / (n % (d + 1));", 3),
        // The variable has another value, or may have it through an address.
        ("let mut e = d; let q = n / e; *p = q; *p = n % e;", 2),
        ("let mut e = d; let q = n / e; e = n; *p = q + n % e;", 2),
        ("let mut e = d; let q = n / e; set(&e); *p = q + n % e;", 2),
        ("let mut e = d; let a = &e; let q = n / e; *a = n; *p = q + n % e;", 2),
        // The division of a read value, not of what the variable holds by then.
        ("let mut e = d; let q = n / { let old = e; e = n; old }; *p = q + n % e;", 2),
        // Other ways lead to the second division.
        ("if n > 3 { *p = n / d; } p[1] = n % d;", 2),
        ("for i in 0..n { p[i] = i / d; } *p = n % d;", 2),
        ("while n > p[0] && n / d > 2 { *p = n % d; } *p = n / d;", 3),
    ];
    for (body, expected) in cases {
        let set = "fn set(p: *mut u32) { *p = 0; }";
        let kernel = format!("kernel k(p: *mut u32, n: u32, d: u32) {{ {body} }} {set}");
        let text = print(&module(&kernel));
        assert_eq!(text.matches(", div.by_zero").count(), expected, "{body}\n{text}");
    }
}

#[test]
fn loops_of_few_rounds_and_between_ends_from_memory_are_left_to_ptxas() {
    let cases = [
        (
            "let mut r = Reader { have: n }; while r.have <= 32 { p[r.have] = 0; r.have += 32; }",
            true,
        ),
        ("let mut i = n; while i < 64 { p[i] = 0; i += 16; }", true),
        ("let mut i = n; while i < 65 { p[i] = 0; i += 16; }", false),
        ("let mut i = n as i32; while i <= 32 { p[0] = 0; i += 32; }", false),
        ("let mut i = n; let mut j = n; while i <= 32 { p[i] = 0; i += 1; j += 32; }", false),
        ("let mut q = p + p[0]; let end = p + p[1]; while q < end { *q = 0; q = q + 1; }", true),
        ("for i in (p[0]..p[1]).step(2) { p[i] = 0; }", true),
        ("let mut q = p; let end = p + p[1]; while q < end { *q = 0; q = q + 1; }", false),
        ("let mut i = p[0]; let end = p[1]; while i < end { p[i] = 0; i += 1; }", false),
        ("for i in (p[0]..n).step(2) { p[i] = 0; }", false),
        ("for i in p[0]..p[1] { p[i] = 0; }", false),
    ];
    for (body, expected) in cases {
        let module = module(&format!(
            "struct Reader {{ have: u32 }} kernel k(p: *mut u32, n: u32) {{ {body} }}"
        ));
        let function = module.function(module.kernels[0].body);
        let is_left = function.blocks.iter().any(|block| block.unroll == Some(Unroll::Known));
        assert_eq!(is_left, expected, "{body}");
    }
}
