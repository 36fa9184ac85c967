use super::*;
use crate::diagnostics::Severity;

/// The ids of the messages for a text.
fn errors(text: &str) -> Vec<&'static str> {
    let sources = SourceMap::single("a.grid", text);
    let (_, diagnostics) = parse(&sources, FileId(0));
    assert!(diagnostics.iter().all(|d| d.severity == Severity::Error));
    diagnostics.iter().map(|d| d.id).collect()
}

/// The ids of the messages of parser and checker for a function body.
fn check_errors(body: &str) -> Vec<&'static str> {
    let text = format!("kernel k(p: *mut u32, n: u32) {{ {body} }}");
    let sources = SourceMap::single("a.grid", text);
    let (_, diagnostics) = crate::check::parse_and_check(&sources);
    let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error);
    errors.map(|d| d.id).collect()
}

fn repeat(part: &str, count: usize) -> String {
    part.repeat(count)
}

#[test]
fn unbalanced_delimiters_by_the_thousand_are_one_error() {
    for open in [
        "{",
        "(",
        "[",
        "if x {",
        "if ",
        "if !if ",
        "*const ",
        "- ",
        "&",
        "x.y(",
        "launch k<<<",
        "f::<{",
        "f::<[",
    ] {
        for around in ["", "fn f() ", "fn f() { let x = ", "kernel k(p: ", "const N: u32 = "] {
            let text = format!("{around}{}", repeat(open, 10_000));
            let found = errors(&text);
            assert!(!found.is_empty() && found.len() <= 2, "{around}{open}: {found:?}");
        }
    }
    for close in ["}", ")", "]"] {
        let found = errors(&format!("fn f() {{}} {}", repeat(close, 10_000)));
        assert!(!found.is_empty(), "{close}");
    }
}

#[test]
fn nesting_is_fine_up_to_the_limit_and_one_error_beyond() {
    // A main thread's stack on Linux; a test's thread has only a quarter.
    let stack = std::thread::Builder::new().stack_size(8 << 20);
    let thread = stack.spawn(check_nesting).expect("a thread can be started");
    thread.join().expect("the thread ends well");
}

fn check_nesting() {
    let no_errors: [&str; 0] = [];
    type Make = fn(usize) -> String;
    let kinds: [(&str, Make); 11] = [
        ("parentheses", |n| format!("let x = {}1{};", repeat("(", n), repeat(")", n))),
        ("blocks", |n| format!("{}{}", repeat("{", n), repeat("}", n))),
        ("ifs", |n| format!("{}{}", repeat("if n == 0 {", n), repeat("}", n))),
        ("loops", |n| format!("{}{}", repeat("while n == 0 {", n), repeat("}", n))),
        ("unary chain", |n| format!("let x = {}n;", repeat("!", n))),
        ("right sides", |n| format!("let x = {}n{};", repeat("n - (", n), repeat(")", n))),
        ("casts", |n| format!("let x = n{};", repeat(" as u64 as u32", n / 2))),
        ("array type", |n| format!("let mut _x: {}u32{};", repeat("[", n), repeat("; 1]", n))),
        ("pointer type", |n| format!("let mut x: {}u32;", repeat("*mut ", n))),
        ("assignments", |n| format!("let mut x = n; {}{}", repeat("x = {", n), repeat("x};", n))),
        ("indices", |n| format!("let x = p{};", repeat("[p", n) + "[0]" + &repeat("]", n))),
    ];
    for (kind, make) in kinds {
        if std::env::var("KIND").is_ok_and(|k| k != kind) {
            continue;
        }
        // The statement and the enclosing block take a few levels.
        assert_eq!(check_errors(&make(240)), no_errors, "{kind} of 240");
        assert_eq!(check_errors(&make(300)), [ids::NESTING_TOO_DEEP], "{kind} of 300");
        assert_eq!(check_errors(&make(100_000)), [ids::NESTING_TOO_DEEP], "{kind} of 100,000");
    }
}

/// The value of a constant expression, obtained as the length of an array.
fn value_of(expression: &str) -> u64 {
    let text = format!("kernel k(p: *mut [u8; {expression}]) {{}}");
    let sources = SourceMap::single("a.grid", text);
    let (program, diagnostics) = crate::check::parse_and_check(&sources);
    let rendered = crate::diagnostics::render(&diagnostics, &sources, false);
    let parameter = program.expect(&rendered).functions[0].parameters()[0].ty.clone();
    match parameter.pointee() {
        Some(crate::types::Type::Array(_, length)) => *length,
        other => panic!("{other:?}"),
    }
}

#[test]
fn operators_bind_as_in_rust() {
    // The expected values are Rust's.
    let numbers = [
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("100 - 10 - 5", 85),
        ("100 / 10 / 5", 2),
        ("100 / 10 * 5 % 7", 1),
        ("1 << 2 + 3", 32),
        ("64 >> 2 >> 1", 8),
        ("0xff & 0x3c | 0x80 ^ 0x81", 61),
        ("0xff & 1 + 2", 3),
        ("6 ^ 3 & 2 | 8", 12),
        ("1 | 2 << 3 & 24", 17),
        ("7 + 9 % 5 * 2 - 4 / 2", 13),
    ];
    for (text, value) in numbers {
        assert_eq!(value_of(text), value, "{text}");
    }
    let bools = [
        ("1 + 1 == 2 && 3 > 2 || false", true),
        ("true || false && false", true),
        ("!true == false", true),
        ("-1 < 1 && !(2 <= 1)", true),
        ("1 == 2 || 3 != 4 && 5 < 5", false),
        ("-2 * 3 == -6 && -(2 * 3) == -6", true),
        ("-1i32 as u8 as i32 == 255", true),
        ("true ^ true | true & false", false),
    ];
    for (text, value) in bools {
        assert_eq!(value_of(&format!("({text}) as u64 + 1")), u64::from(value) + 1, "{text}");
    }
}

/// The items of a valid text.
fn items(text: &str) -> (SourceMap, Vec<ast::Item>) {
    let sources = SourceMap::single("a.grid", text);
    let (file, diagnostics) = parse(&sources, FileId(0));
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    (sources, file.items)
}

#[test]
fn const_arguments_nest_up_to_the_limit() {
    let text = |n: usize| {
        let (open, close) = (repeat("f::<{", n), repeat("}>()", n));
        format!("kernel k() {{ let x = {open}1{close}; }}")
    };
    // Each level has two delimiters; the statement and the enclosing block take a few more.
    assert_eq!(errors(&text(120)), [""; 0]);
    assert_eq!(errors(&text(130)), [ids::NESTING_TOO_DEEP]);
    assert_eq!(errors(&text(100_000)), [ids::NESTING_TOO_DEEP]);
}

#[test]
fn uses_and_extern_functions_are_items() {
    let (sources, items) = items("use \"a/b.grid\";\nextern fn g(mut x: f32, p: *mut u8) -> f32;");
    let [ast::Item::Use(path), ast::Item::Function(function)] = &items[..] else {
        panic!("{items:?}");
    };
    assert_eq!(path.path.text, "a/b.grid");
    assert_eq!(sources.text(path.path_span), "\"a/b.grid\"");
    assert_eq!(sources.text(path.span), "use \"a/b.grid\";");
    assert_eq!(function.name.text(&sources), "g");
    assert_eq!(function.parameters.len(), 2);
    assert!(function.body.is_none() && function.result.is_some() && !function.is_kernel);
}

#[test]
fn const_arguments_are_names_types_or_values() {
    let text = "fn f<const K: u32, const FLAG: bool,>() -> u32 {
        return g::<N, *mut u32, [u8; 4], -1, !true, { N + 1 > 2 }, 0x8u8,>(1) >> 1;
    }
    kernel k() { launch k::<8><<<1, g::<1>()>>>(); }";
    let (sources, items) = items(text);
    let [ast::Item::Function(f), _] = &items[..] else { panic!("{items:?}") };
    let names = f.const_parameters.iter().map(|p| p.name.text(&sources));
    assert_eq!(names.collect::<Vec<_>>(), ["K", "FLAG"]);
    let body = f.body.as_ref().expect("it has one");
    let ast::StatementKind::Return(Some(value)) = &body.statements[0].kind else { panic!() };
    let ast::ExprKind::Binary { left, .. } = &value.kind else { panic!("{value:?}") };
    let ast::ExprKind::Call { generics: Some(generics), .. } = &left.kind else {
        panic!("{left:?}")
    };
    let found = generics.arguments.iter().map(|argument| {
        let kind = match argument {
            ast::GenericArgument::Name(_) => "name",
            ast::GenericArgument::Type(_) => "type",
            ast::GenericArgument::Value(_) => "value",
        };
        format!("{kind} {}", sources.text(argument.span()))
    });
    let expected = [
        "name N",
        "type *mut u32",
        "type [u8; 4]",
        "value -1",
        "value !true",
        "value { N + 1 > 2 }",
        "value 0x8u8",
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn a_file_too_large_is_one_error() {
    let text = " ".repeat(MAX_FILE_BYTES + 1);
    assert_eq!(errors(&text), [ids::FILE_TOO_LARGE]);
}

#[test]
fn any_number_of_comments_may_follow_each_other() {
    for skipped in ["// a comment\n", "/**/", "/**/\n", "//\r\n\r\n"] {
        let text = format!("{}kernel k() {{}} @", repeat(skipped, 200_000));
        assert_eq!(errors(&text), [ids::UNEXPECTED_CHARACTER], "{skipped:?}");
    }
}

#[test]
fn line_endings_and_byte_order_marks_change_nothing() {
    let text =
        "\u{feff}// comment\r\nkernel k() {\r\n    printf(\"x\\n\");\r\n    let a = $;\r\n}\r\n";
    let sources = SourceMap::single("a.grid", text);
    let (file, diagnostics) = parse(&sources, FileId(0));
    assert_eq!(file.items.len(), 1);
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(sources.line(diagnostics[0].labels[0].span), 4);
}

#[test]
fn numbers_end_where_ranges_and_fields_begin() {
    assert_eq!(
        check_errors(
            "for i in 0..4 { p[i] = 1; } let a = 1.; let b = 1.5e3 + 2.0e1; let c = p[0];"
        ),
        [""; 0]
    );
    assert_eq!(check_errors("let a = 1.max(2);"), [ids::UNKNOWN_METHOD]);
}

#[test]
fn the_heads_of_loops_and_ifs_take_no_struct_literals() {
    let text = "struct S { a: u32 } const x: bool = true;
        kernel k(s: S) { if x { } while x { } if (S { a: 1 }).a == s.a { } for _ in 0..s.a { } }";
    let sources = SourceMap::single("a.grid", text);
    let (_, diagnostics) = crate::check::parse_and_check(&sources);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
}
