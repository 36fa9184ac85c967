//! Reads single constructs and damaged texts. `tests/suite/ir.rs` reads whole programs.

use super::*;
use crate::ir::print::print;

/// Every construct once.
const ALL: &str = include_str!("tests/all.gir");

#[test]
fn every_construct_is_read_as_it_is_printed() {
    let module = parse(ALL).unwrap();
    assert_eq!(print(&module), ALL);
    assert!(module.externs[0].span.is_some() && module.externs[1].span.is_none());
    let names: Vec<_> = module.sources.files().iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, [FIRST_FILE, "other.grid"]);
}

#[test]
fn values_have_any_number_and_comments_are_skipped() {
    let text = "launches symbolic\n; of no use\n\nfn @f(%x: i32) -> i32 {\nentry:\n\n  \
                %7: i32 = add %x, 1i32\n  ; half done\n  %3: i32 = mul %7, %7\n  return %3\n}\n";
    let printed = print(&parse(text).unwrap());
    assert!(printed.contains("%0: i32 = add %x, 1i32\n  %1: i32 = mul %0, %0\n"), "{printed}");
}

/// A function with these lines.
fn function(lines: &str) -> String {
    format!("launches symbolic\n\nfn @f(%p: *mut u32) {{\nentry:\n{lines}\n  return\n}}\n")
}

#[test]
fn errors_have_a_position_and_the_expected_element() {
    let cases = [
        ("".into(), "1:1: expected `launches`, found the end of the text"),
        ("launches often\n".into(), "1:10: expected `symbolic` or `lowered`, found `often`"),
        (function("  frobnicate %p"), "5:3: expected an instruction, found `frobnicate`"),
        (function("  store %p 1u32"), "5:12: expected `,`, found `1u32`"),
        (function("  store %p, 1"), "5:13: expected an operand, found `1`"),
        (function("  store %p, %q"), "5:14: expected the name of a parameter, found `q`"),
        (function("  store %p, $q"), "5:14: expected the name of a slot, found `q`"),
        (
            function("  store @q, 1u32"),
            "5:10: expected the name of a global or a kernel, found `q`",
        ),
        (function("  store %p, %0"), "5:14: value %0 is not defined"),
        (function("  %0: f33 = load %p"), "5:7: expected a type, found `f33`"),
        (function("  %0: u32 = extract %p .x"), "5:24: no field `x` here"),
        (function("  call @g()"), "5:9: expected the name of a function, found `g`"),
        (
            function("  store %p, 1u32 ; 3"),
            "5:20: expected a position such as `line 3` or `a.grid:3`, found `3`",
        ),
        (
            function("").replace("%p: *mut u32", "%p: u8, %p: u8"),
            "3:7: parameter `p` is declared twice",
        ),
        (function("  jump away\nmore:"), "5:8: block `away` is not defined"),
        (function("  jump entry\nentry:"), "6:1: block `entry` is defined twice"),
        (function("  trap() trap()"), "5:10: expected the end of the line, found `trap`"),
        (function("  return\n}\nfn @f() {"), "7:5: `f` is declared twice"),
        (
            "launches symbolic\nkernel @ma-in() body @ma-in.body\nentry @ma-in() {\n".into(),
            "2:11: a name cannot contain `-`: names consist of letters, digits, `_`, `.` and `$`",
        ),
        (
            function("  store %p, 1u32  ; t.toy:0"),
            "5:27: expected a line from 1 to 1000000, found `0`",
        ),
        ("launches symbolic\nbody @f() {\n}\n".into(), "2:6: `f` is not the body of any kernel"),
        (
            "launches symbolic\nkernel @k() body @k.body\n".into(),
            "2:19: expected the name of a function, found `k.body`",
        ),
        (
            "launches symbolic\nkernel @k() body @b\nbody @b() {\n}\n".into(),
            "2:8: kernel `k` has no `entry @k`",
        ),
        (
            format!("launches symbolic\nshared @x: {}u8\n", "*mut ".repeat(100_000)),
            "2:1332: expected a type of at most 256 levels, found `*`",
        ),
    ];
    for (text, expected) in cases {
        let error = parse(&text).map(|module| print(&module)).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text:.200}");
    }
}

mod damaged {
    use proptest::prelude::*;

    use super::*;

    /// Words of the grammar, and some other words.
    const WORDS: &[&str] = &[
        "launches",
        "@k",
        "%0",
        "%x",
        "$a",
        "::<",
        "<<<",
        ">>>",
        "(",
        ")",
        "{",
        "}",
        "[u8; 3]",
        "*mut ",
        ",",
        ":",
        ";",
        "=",
        "\n",
        "zero",
        "fn ",
        "struct ",
        "1e9f32",
        "-",
        "\"",
        "\\x",
        "é",
        "99999999999999999999",
        "?",
        "; line 4",
        ".x",
        "#7",
        "entry",
        "body",
        "extern",
    ];

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

        /// A damaged text that can still be read can also be printed, and the printed text reads the same.
        #[test]
        fn texts_give_a_module_or_an_error(
            edits in prop::collection::vec((0..ALL.len(), 0..20usize, 0..WORDS.len()), 1..4),
        ) {
            let mut text = ALL.to_string();
            for (at, length, word) in edits {
                let at = at.min(text.len());
                let start = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap();
                let end = (at + length).min(text.len());
                let end = (end..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap();
                text.replace_range(start..end, WORDS[word]);
            }
            if let Ok(module) = parse(&text) {
                let printed = print(&module);
                let again = parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
                prop_assert_eq!(print(&again), printed);
            }
        }
    }
}
