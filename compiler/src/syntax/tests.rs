use super::*;
use crate::diagnostics::Severity;

/// The ids of the messages for a text.
fn errors(text: &str) -> Vec<&'static str> {
    let sources = SourceMap::single("a.grid", text);
    let (_, diagnostics) = parse(&sources, FileId(0));
    assert!(diagnostics.iter().all(|d| d.severity == Severity::Error));
    diagnostics.iter().map(|d| d.id).collect()
}

/// What is read by way of the parser and checked, in a function body.
fn check_errors(body: &str) -> Vec<&'static str> {
    let text = format!("kernel k(p: *mut u32, n: u32) {{ {body} }}");
    let sources = SourceMap::single("a.grid", text);
    crate::check::parse_and_check(&sources).1.iter().map(|d| d.id).collect()
}

fn repeat(part: &str, count: usize) -> String {
    part.repeat(count)
}

#[test]
fn unbalanced_delimiters_by_the_thousand_are_one_error() {
    for open in ["{", "(", "[", "fn f() {", "if x {", "*const ", "- ", "&", "x.y(", "launch k<<<"] {
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
    // As much as a main thread has on Linux; that of a test has a quarter.
    let stack = std::thread::Builder::new().stack_size(8 << 20);
    let thread = stack.spawn(check_nesting).expect("a thread can be started");
    thread.join().expect("the thread ends well");
}

fn check_nesting() {
    let no_errors: [&str; 0] = [];
    type Make = fn(usize) -> String;
    let kinds: [(&str, Make); 13] = [
        ("parentheses", |n| format!("let x = {}1{};", repeat("(", n), repeat(")", n))),
        ("blocks", |n| format!("{}{}", repeat("{", n), repeat("}", n))),
        ("ifs", |n| format!("{}{}", repeat("if n == 0 {", n), repeat("}", n))),
        ("loops", |n| format!("{}{}", repeat("while n == 0 {", n), repeat("}", n))),
        ("unary chain", |n| format!("let x = {}n;", repeat("!", n))),
        ("binary chain", |n| format!("let x = n{};", repeat(" + n", n))),
        ("logical chain", |n| format!("let x = true{};", repeat(" && n == 1", n))),
        ("casts", |n| format!("let x = n{};", repeat(" as u64 as u32", n / 2))),
        ("else ifs", |n| format!("if n == 0 {{}}{}", repeat(" else if n == 1 {}", n))),
        ("array type", |n| format!("let mut x: {}u32{};", repeat("[", n), repeat("; 1]", n))),
        ("pointer type", |n| format!("let mut x: {}u32;", repeat("*mut ", n))),
        ("assignments", |n| format!("let mut x = n; {}{}", repeat("x = {", n), repeat("x};", n))),
        ("indices", |n| format!("let x = p{};", repeat("[p", n) + "[0]" + &repeat("]", n))),
    ];
    for (kind, make) in kinds {
        if std::env::var("KIND").is_ok_and(|k| k != kind) {
            continue;
        }
        // The statement and the block around it take a few levels.
        assert_eq!(check_errors(&make(240)), no_errors, "{kind} of 240");
        assert_eq!(check_errors(&make(300)), [ids::NESTING_TOO_DEEP], "{kind} of 300");
        assert_eq!(check_errors(&make(100_000)), [ids::NESTING_TOO_DEEP], "{kind} of 100,000");
    }
}
