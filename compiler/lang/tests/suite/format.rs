//! The formatter: pairs of texts, the repository's own programs, and texts with space and comments anywhere.

use std::path::{Path, PathBuf};

use crate::time::seconds_on_processor;
use gridlet_lang::format::{WIDTH, format};
use gridlet_lang::source::{FileId, SourceMap};
use gridlet_lang::syntax::tokens;
use proptest::prelude::*;

/// The `.grid` files of the repository, sorted.
fn repository() -> Vec<PathBuf> {
    let root = crate::compiler().join("..");
    let skipped = |name: &str| name == "target" || name.starts_with('.') && name != "..";
    let mut files: Vec<PathBuf> = walkdir::WalkDir::new(&root)
        .into_iter()
        .filter_entry(|entry| entry.depth() == 0 || !skipped(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.expect("the folder can be read").into_path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "grid"))
        .collect();
    files.sort();
    assert!(files.len() > 150, "only {} programs found", files.len());
    files
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("the file can be read")
}

fn formatted(text: &str) -> Option<String> {
    match format(&SourceMap::single("a.grid", text)) {
        Ok(formatted) => Some(formatted),
        Err(gridlet_lang::Error::Program(_)) => None,
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// The texts of the tokens, without commas before a closing delimiter.
fn token_texts(text: &str) -> Vec<String> {
    let sources = SourceMap::single("a.grid", text);
    let (tokens, _) = tokens(&sources, FileId(0));
    let mut texts: Vec<String> =
        tokens.into_iter().map(|(_, range)| text[range].to_string()).collect();
    let closes = |text: &String| matches!(text.as_str(), ")" | "]" | "}" | ">>>" | ">");
    let mut at = 0;
    while at + 1 < texts.len() {
        match texts[at] == "," && closes(&texts[at + 1]) {
            true => drop(texts.remove(at)),
            false => at += 1,
        }
    }
    texts
}

/// Formats a text and holds the result against what every result has.
fn check(text: &str) -> Option<String> {
    let once = formatted(text)?;
    assert_eq!(token_texts(text), token_texts(&once), "other tokens\n{text}\n{once}");
    let twice = formatted(&once).expect("what was formatted can be formatted");
    assert_eq!(once, twice, "not stable: {text}");
    assert!(once.is_empty() || once.ends_with('\n') && !once.ends_with("\n\n"), "{once:?}");
    assert!(!once.contains("\n\n\n"), "two blank lines:\n{once}");
    Some(once)
}

/// Programs that are laid out badly on purpose, or that must not be touched: the three of `examples/programs` are
/// the language's samples, word for word. `bundle` is what xtask makes.
fn is_exempt(path: &Path) -> bool {
    let path = path.to_string_lossy().replace('\\', "/");
    ["/in/errors/", "/in/format/", "/fuzz/", "/bundle/"].iter().any(|folder| path.contains(folder))
        || ["mandelbrot", "segment_sum"]
            .iter()
            .any(|name| path.ends_with(&format!("/examples/programs/{name}.grid")))
}

#[test]
fn the_programs_of_the_repository_are_formatted() {
    let mut wrong = String::new();
    for path in repository().iter().filter(|path| !is_exempt(path)) {
        let text = read(path);
        if formatted(&text).is_none_or(|formatted| formatted != text) {
            wrong += &format!("{}\n", path.display());
        }
    }
    assert!(wrong.is_empty(), "run `gridlet fmt` on these:\n{wrong}");
}

#[test]
fn the_result_is_stable_and_has_the_tokens_and_comments_of_the_source() {
    let read_well = repository().iter().filter_map(|path| check(&read(path))).count();
    assert!(read_well > 120, "only {read_well} programs could be formatted");
}

#[test]
fn texts_come_out_as_before() {
    let folder = crate::compiler().join("tests/in/format");
    let mut seen = 0;
    for path in repository().iter().filter(|path| path.to_string_lossy().contains("/in/format/")) {
        let after = check(&read(path)).expect("a program without syntax errors");
        let stem = path.file_stem().expect("a file").to_string_lossy().into_owned();
        insta::with_settings!({
            prepend_module_to_snapshot => false, omit_expression => true, snapshot_path => "../../../tests/out/format",
        }, { insta::assert_snapshot!(stem, after) });
        seen += 1;
    }
    assert!(seen > 5, "only {seen} programs in {}", folder.display());
}

#[test]
fn lines_are_as_long_as_they_may_be() {
    let name = |length: usize| "x".repeat(length);
    // `    let a = …;` has 13 characters beside the name.
    for (length, lines) in [(WIDTH - 13, 3), (WIDTH - 12, 4)] {
        let text = format!("fn f() {{\n    let a = {};\n}}\n", name(length));
        let formatted = check(&text).expect("a program");
        assert_eq!(formatted.lines().count(), lines, "{formatted}");
    }
}

#[test]
fn texts_with_syntax_errors_are_refused() {
    assert_eq!(formatted("kernel k( {"), None);
    assert_eq!(formatted("kernel k() { let x = 1 }"), None);
    assert_eq!(formatted("kernel k() {} $"), None);
}

#[test]
fn line_endings_stay_and_byte_order_marks_go() {
    let text = "\u{feff}// a \r\nkernel  k( ) {\r\n  /* b\r\n c */ }\r\n";
    let formatted = check(text).expect("a program");
    assert_eq!(formatted, "// a\r\nkernel k() { /* b\r\n c */ }\r\n");
    assert_eq!(check("\r\n").as_deref(), Some(""));
    assert_eq!(check("// only\r\n\r\n").as_deref(), Some("// only\r\n"));
}

#[test]
fn time_grows_with_the_length() {
    let statement = "    p[0] = foo(1, 2, bar(3, a + b * c), [1, 2, 3]) + 4; // note\n";
    let text = |count: usize| format!("fn f() {{\n{}}}\n", statement.repeat(count));
    let time = |count: usize| {
        let text = text(count);
        let (start, ran) = (std::time::Instant::now(), seconds_on_processor());
        assert_eq!(formatted(&text).expect("a program").len(), text.len());
        match (ran, seconds_on_processor()) {
            (Some(before), Some(after)) => after - before,
            _ => start.elapsed().as_secs_f64(),
        }
    };
    // The best of a few: the machine may be busy.
    let short = (0..4).map(|_| time(1000)).fold(f64::MAX, f64::min);
    // Eight times the text; a square would take 64 times as long, and half a minute at most for all tries.
    let is_linear = (0..3).any(|_| time(8000) < short * 30.0);
    assert!(is_linear, "{short} s for 1,000 lines, and more than 30 times that for 8,000");
}

#[test]
fn a_number_before_a_dot_and_a_comment_stays_an_integer() {
    let text = "fn f() { for i in 0..8 . // two at a time\n step(2) {} }";
    assert!(check(text).is_some(), "a syntax error");
}

#[test]
fn deep_texts_are_formatted() {
    let stack = std::thread::Builder::new().stack_size(8 << 20);
    let thread = stack.spawn(|| {
        let texts = [
            format!("let x = {}1{};", "(".repeat(240), ")".repeat(240)),
            format!("{}{}", "if n == 0 {".repeat(240), "}".repeat(240)),
            format!("let x = {}n;", "!".repeat(240)),
            format!("let x = n{};", " + n".repeat(240)),
            format!("if n == 0 {{}}{}", " else if n == 1 {}".repeat(240)),
            format!("let x: {}u32{};", "[".repeat(240), "; 1]".repeat(240)),
            format!("let x = {}1{};", "f(".repeat(240), ")".repeat(240)),
        ];
        for text in texts {
            assert!(check(&format!("fn f() {{ {text} }}")).is_some(), "{text}");
        }
    });
    thread.expect("a thread can be started").join().expect("the thread ends well");
}

/// A text with other space and comments between its tokens.
fn scattered(text: &str, choices: &[u8]) -> String {
    let sources = SourceMap::single("a.grid", text);
    let (tokens, _) = tokens(&sources, FileId(0));
    let mut scattered = String::new();
    for (at, (_, range)) in tokens.into_iter().enumerate() {
        let choice = choices[at % choices.len()];
        scattered += match choice % 24 {
            0 => "\n",
            1 => "\n\n\n",
            2 => " // line\n",
            3 => "\n\n// own line\n",
            4 => " /* block */ ",
            5 => "/* block */\n",
            6 => "\n/* own\n   lines */\n",
            7 => "\n    /* a\n     * b\n     */ ",
            8 => "// one\n// two\n\n// three\n\n",
            9 => "\r\n",
            10 => "\n/* before */ ",
            11 => "\t",
            12 => "\n/// doc\n",
            _ => " ",
        };
        scattered += &text[range];
    }
    scattered
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn space_and_comments_may_stand_anywhere(
        file in any::<prop::sample::Index>(),
        choices in prop::collection::vec(any::<u8>(), 1..200),
    ) {
        let programs = repository();
        // The longest only slow the search.
        let programs: Vec<String> =
            programs.iter().map(|path| read(path)).filter(|text| text.len() < 4000).collect();
        check(&scattered(file.get::<String>(&programs), &choices));
    }

    #[test]
    fn no_text_makes_it_panic(text in "[a-z0-9{}()\\[\\]<>,;:.=+*&#'\"/ \n!-]{0,80}") {
        check(&text);
        check(&format!("fn f() {{ {text} }}"));
    }
}
