//! Damaged programs: whatever is done to a program's tokens, the front end returns messages that point into
//! the file, or a tree that keeps its invariants.

use std::path::Path;
use std::sync::Arc;

use gridlet_lang::arch::CudaArch;
use gridlet_lang::check::{parse_and_check, tree::Program};
use gridlet_lang::diagnostics::{Severity, ids, render};
use gridlet_lang::error::Error;
use gridlet_lang::ir::{build::build_ir, verify::verify};
use gridlet_lang::launch::{self, LaunchOptions, LaunchStrategy};
use gridlet_lang::layout::compute_layouts;
use gridlet_lang::load::{Memory, load};
use gridlet_lang::source::SourceMap;

/// A small deterministic random number generator (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }
}

/// Splits a text into words, single signs and white space.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = vec![];
    let mut start = 0;
    let kind = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => 1,
        c if c.is_whitespace() => 2,
        _ => 0,
    };
    let mut last = 0;
    for (at, c) in text.char_indices() {
        if at > 0 && (kind(c) == 0 || kind(c) != last) {
            pieces.push(&text[start..at]);
            start = at;
        }
        last = kind(c);
    }
    pieces.push(&text[start..]);
    pieces
}

/// The files that the seeds use.
fn used() -> Memory {
    let file = |name: &str| {
        let path = format!("{}/tests/in/used/{name}", crate::compiler().display());
        (format!("used/{name}").into(), std::fs::read(path).expect("the file can be read"))
    };
    Memory(["shapes.grid", "numbers.grid"].map(file).into())
}

fn check(text: &str) -> bool {
    let mut files = used();
    files.0.insert("ok/mutant.grid".into(), text.into());
    let sources = load(&files, Path::new("ok/mutant.grid")).expect("a text");
    let (program, diagnostics) = parse_and_check(&sources);
    for diagnostic in &diagnostics {
        assert!(ids::lookup(diagnostic.id).is_some(), "`{}` is not an id", diagnostic.id);
        assert!(!diagnostic.labels.is_empty(), "{diagnostic:?} points nowhere");
        for label in &diagnostic.labels {
            assert!(label.span.start <= label.span.end);
            let text = &sources.file(label.span.file).text;
            assert!(text.get(label.span.range()).is_some(), "{diagnostic:?} points outside");
        }
    }
    let rendered = render(&diagnostics, &sources, false);
    let shown = rendered.matches("error[").count() + rendered.matches("warning[").count();
    assert!(shown >= diagnostics.len());
    assert_eq!(program.is_none(), diagnostics.iter().any(|d| d.severity == Severity::Error));
    if let Some(program) = &program {
        crate::tree_rules::verify(program, &sources);
        build(program, &sources);
    }
    program.is_some()
}

/// The stages after the checker accept everything that it accepts, except errors of their own.
fn build(program: &Program, sources: &SourceMap) {
    let lowered = build_ir(program, Arc::new(sources.clone())).and_then(|module| {
        verify(&module)?;
        let layouts = compute_layouts(&module)?;
        let options = LaunchOptions::for_arch(LaunchStrategy::Cdp, CudaArch::DEFAULT);
        verify(&launch::lower(&module, &layouts, &options)?)
    });
    match lowered {
        Ok(()) | Err(Error::Program(_)) => {}
        Err(error) => panic!("{error}\n{}", sources.files()[0].text),
    }
}

fn seeds() -> Vec<String> {
    let root = crate::compiler();
    let mut seeds = vec![];
    for folder in ["../examples/programs", "tests/in/ok", "tests/in/extern"] {
        let mut files: Vec<_> = walkdir::WalkDir::new(root.join(folder))
            .into_iter()
            .map(|entry| entry.expect("the folder can be read").into_path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "grid"))
            .collect();
        files.sort();
        seeds.extend(files.iter().map(|path| std::fs::read_to_string(path).expect("a text")));
    }
    seeds
}

#[test]
fn damaged_programs_never_panic_and_messages_point_into_the_file() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let seeds = seeds();
    let all: Vec<&str> = seeds.iter().flat_map(|seed| pieces(seed)).collect();
    let mut right = 0;
    let mutants = 7200 / seeds.len();
    for seed in &seeds {
        // The files that a program uses are missing.
        assert!(check(seed) || seed.contains("use \""), "{seed}");
        for _ in 0..mutants {
            let mut mutant = pieces(seed);
            for _ in 0..=random.below(3) {
                if mutant.is_empty() {
                    break;
                }
                let at = random.below(mutant.len());
                match random.below(5) {
                    0 => drop(mutant.remove(at)),
                    1 => mutant.insert(at, mutant[at]),
                    2 => {
                        let other = random.below(mutant.len());
                        mutant.swap(at, other);
                    }
                    3 => mutant[at] = all[random.below(all.len())],
                    _ => mutant.truncate(at + 1),
                }
            }
            right += u32::from(check(&mutant.concat()));
        }
    }
    // Some mutants must be valid, or the tree's invariants were never checked.
    assert!(right > 100, "only {right} mutants were right");
}

#[test]
fn every_prefix_of_a_program_is_answered() {
    for seed in seeds().iter().take(3) {
        for (at, _) in seed.char_indices().step_by(7) {
            check(&seed[..at]);
        }
    }
}

#[test]
fn noise_is_answered() {
    let mut random = Random(42);
    let alphabet: Vec<char> =
        "{}()[]<>=+-*/%&|^!.,:;#'\"\\ \n\t0x1e_afu8é\u{0}\u{feff}🦀launch".chars().collect();
    for length in 0..400 {
        let text: String = (0..length).map(|_| alphabet[random.below(alphabet.len())]).collect();
        check(&text);
    }
}

#[test]
fn programs_as_deep_as_allowed_go_through_every_stage() {
    // A main thread's stack on Linux; a test's thread has only a quarter.
    let stack = std::thread::Builder::new().stack_size(8 << 20);
    let thread = stack.spawn(|| {
        let n = 240;
        let nested = |open: &str, close: &str| open.repeat(n) + &close.repeat(n);
        let bodies = [
            format!("let x = {}n{};", "(".repeat(n), ")".repeat(n)),
            nested("{ ", "}"),
            nested("if n == 0 { ", "}"),
            nested("while n == 0 { ", "}"),
            nested("for i in 0..n { ", "}"),
            format!("let x = {}n;", "!".repeat(n)),
            format!("let x = n{};", " + n".repeat(n)),
            format!("let x = true{};", " && n == 1".repeat(n)),
            format!("let x = n{};", " as u64 as u32".repeat(n / 2)),
            format!("if n == 0 {{ }}{}", " else if n == 1 { }".repeat(n)),
            format!("let x = if n == 0 {{ 1 }}{} else {{ n }};", " else if n == 1 { 2 }".repeat(n)),
            format!("let x = {}p[0]{};", "p[".repeat(n), "]".repeat(n)),
            format!("let x = {}n{};", "f(".repeat(n), ")".repeat(n)),
            format!("let mut x: {}u32{}; let p = &x; x = *p;", "[".repeat(n), "; 1]".repeat(n)),
        ];
        for body in bodies {
            let text = format!(
                "fn f(n: u32) -> u32 {{ return n; }} kernel k(p: *mut u32, n: u32) {{ {body} }}"
            );
            assert!(check(&text), "{body}");
        }
    });
    thread.expect("a thread can be started").join().expect("every program is built");
}

/// Runs `test` on a thread whose stack is a small part of a main thread's, but should be enough.
fn on_small_stack(test: impl FnOnce() + Send + 'static) {
    let stack = std::thread::Builder::new().stack_size(512 << 10);
    let thread = stack.spawn(test).expect("a thread can be started");
    thread.join().expect("the stack is large enough");
}

#[test]
fn chains_have_any_length() {
    on_small_stack(|| {
        let many = |part: &str| part.repeat(10_000);
        let bodies = [
            format!("let x = n{};", " + n".repeat(100_000)),
            format!("if n == 0{} {{ }}", " && n == 1".repeat(100_000)),
            format!("let x = 1{} + n;", many(" + 1")),
            format!("let x = (n{}) * (n{});", many(" - n"), many(" ^ n")),
            format!("let x = n{} < n;", many(" * n + 2 / n")),
            format!("let mut x = n; x += n{};", many(" | n & n << 1")),
            format!("let x = true{};", many(" && n == 1")),
            format!("let x = true{};", many(" && p[0] == 1")),
            format!("let x = n == 0{};", many(" || p[n] == 1 && f(n) == 2")),
            format!("if n == 0{} {{ p[0] = 1; }}", many(" || n == 1")),
            format!("while n == 0{} {{ p[0] = 1; }}", many(" && n == 1 || n < 5")),
            format!("if n == 0 {{ }}{}", many(" else if n == 1 { }")),
            format!("let x = if n == 0 {{ 1 }}{} else {{ n }};", many(" else if n == 1 { 2 }")),
            format!("let x = {{ n{} }};", many(" + n")),
            format!("let q = p{};", many(" + 1")),
            format!("launch k<<<1, 1>>>(p{}, n);", many(" + 1")),
            format!("let x = p[n{}];", many(" + n")),
            format!("assert(n == 0{});", many(" && n == 1")),
        ];
        for body in bodies {
            let text = format!(
                "fn f(n: u32) -> u32 {{ return n; }} kernel k(p: *mut u32, n: u32) {{ {body} }}"
            );
            assert!(check(&text), "{}", &body[..80.min(body.len())]);
        }
        let constant = format!("const N: u64 = 1{}; kernel k() {{}}", many(" + 1"));
        assert!(check(&constant));
    });
}

#[test]
fn long_chains_with_mistakes_are_answered() {
    on_small_stack(|| {
        let many = |part: &str| part.repeat(10_000);
        for body in [
            format!("let x = n{};", many(" + y")),
            format!("let x = 1.0{};", many(" + n")),
            format!("let x = n{};", many(" && n")),
            format!("let x = n{} + ;", many(" + n")),
            format!("if n {{ }}{}", many(" else if n { }")),
            format!("let x = if n == 0 {{ 1 }}{};", many(" else if n == 1 { 2.0 }")),
        ] {
            let text = format!("kernel k(p: *mut u32, n: u32) {{ {body} }}");
            assert!(!check(&text), "{}", &body[..80.min(body.len())]);
        }
        let endless = format!("const A: u32 = B; const B: u32 = A{};", many(" + A"));
        assert!(!check(&endless));
    });
}

#[test]
fn long_chains_can_be_cloned() {
    on_small_stack(|| {
        let text = format!("kernel k(n: u32) {{ let x = n{}; }}", " + n".repeat(100_000));
        let sources = SourceMap::single("a.grid", text);
        let (file, _) = gridlet_lang::syntax::parse(&sources, gridlet_lang::source::FileId(0));
        assert_eq!(file.clone().items.len(), 1);
        let (program, _) = gridlet_lang::check::parse_and_check(&sources);
        assert_eq!(program.clone().map(|program| program.functions.len()), Some(1));
    });
}
