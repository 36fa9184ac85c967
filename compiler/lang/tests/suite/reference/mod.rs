//! Checks `docs/language.md` against the compiler.

mod grammar;
mod page;

use std::path::{Path, PathBuf};

use grammar::Grammar;
use gridlet_lang::diagnostics::{Diagnostic, ids, render};
use gridlet_lang::load::{Memory, load};
use gridlet_lang::source::{FileId, SourceMap};
use gridlet_lang::syntax::{self, TokenKind, keywords, tokens};
use proptest::prelude::*;

fn read_grammar() -> Grammar {
    let page = page::text();
    let fences = page::fences(&page);
    let grammar = fences.iter().find(|fence| fence.tag == "ebnf").expect("a grammar in the page");
    Grammar::read(&grammar.text)
}

/// The `.grid` files of the repository, sorted.
fn programs() -> Vec<PathBuf> {
    let root = crate::compiler().join("..");
    let is_source = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0 || name != "target" && !name.starts_with('.')
    };
    let files = walkdir::WalkDir::new(root).sort_by_file_name().into_iter().filter_entry(is_source);
    let files = files.map(|entry| entry.expect("the folder can be read").into_path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "grid")).collect()
}

/// The tokens of a text as the grammar's terminals. `None` if some of it is not a token.
fn terminals(grammar: &Grammar, sources: &SourceMap) -> Option<Vec<usize>> {
    let (tokens, errors) = tokens(sources, FileId(0));
    if !errors.is_empty() {
        return None;
    }
    let text = &sources.files()[0].text;
    let terminals = tokens.into_iter().map(|(kind, range)| {
        let name = match kind {
            TokenKind::Fixed => &text[range],
            TokenKind::Name => "NAME",
            TokenKind::Label => "LABEL",
            TokenKind::Int => "INTEGER",
            TokenKind::Float => "FLOAT",
            TokenKind::String => "STRING",
            TokenKind::Byte => "BYTE",
        };
        let known = grammar.terminals.iter().position(|known| known == name);
        // No sentence contains any other token.
        known.unwrap_or(grammar.terminals.len())
    });
    Some(terminals.collect())
}

/// The parser's messages, without those that the grammar does not cover.
fn syntax_errors(sources: &SourceMap) -> Vec<Diagnostic> {
    let (_, mut messages) = syntax::parse(sources, FileId(0));
    let of_grammar = [ids::SYNTAX_ERROR, ids::UNCLOSED_DELIMITER, ids::CHAINED_COMPARISON];
    messages.retain(|message| of_grammar.contains(&message.id));
    messages
}

#[test]
fn the_grammar_has_every_program_that_parses_and_no_other() {
    let grammar = read_grammar();
    let (mut right, mut wrong) = (0, 0);
    for path in programs() {
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        let sources = SourceMap::single("a.grid", text);
        // Recognition takes quadratic time where the grammar is ambiguous.
        let Some(sentence) = terminals(&grammar, &sources).filter(|s| s.len() < 6000) else {
            continue;
        };
        let (_, messages) = syntax::parse(&sources, FileId(0));
        if messages.is_empty() {
            assert!(grammar.derives(&sentence), "{} is not derivable", path.display());
            right += 1;
        } else if !syntax_errors(&sources).is_empty() {
            assert!(!grammar.derives(&sentence), "{} is derivable", path.display());
            wrong += 1;
        }
    }
    assert!(right > 100 && wrong > 8, "only {right} right and {wrong} wrong programs");
}

/// A text for a sentence.
fn spelled(grammar: &Grammar, sentence: &[usize]) -> String {
    let words = sentence.iter().enumerate().map(|(at, terminal)| {
        let pick = |spellings: &[&'static str]| spellings[at % spellings.len()].to_owned();
        match grammar.terminals[*terminal].as_str() {
            "NAME" => pick(&["a", "b2", "_c", "View", "f32"]),
            "LABEL" => pick(&["'a", "'outer"]),
            "INTEGER" => pick(&["0", "1_000u64", "0xff"]),
            "FLOAT" => pick(&["1.5", "2.", "1e-3f64"]),
            "BYTE" => pick(&["b'a'", "b'\\n'", "b'\\''"]),
            "STRING" => pick(&["\"\"", "\"text\\n\""]),
            fixed => fixed.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn the_parser_takes_every_sentence(
        choices in prop::collection::vec(any::<u16>(), 1..400), depth in 4usize..60, start in 0usize..4,
    ) {
        let grammar = read_grammar();
        let mut at = 0;
        let mut choose = |count: usize| {
            at += 1;
            // When the choices are used up, take the shortest alternative.
            choices.get(at - 1).map_or(0, |choice| usize::from(*choice) % count)
        };
        let (start, before, after) = [
            ("Program", "", ""),
            ("Block", "fn a ( ) ", ""),
            ("Statement", "fn a ( ) { loop { } ", " }"),
            ("Expression", "const A : u32 = ", " ;"),
        ][start];
        let sentence = grammar.sentence(start, &mut choose, depth);
        prop_assume!(sentence.len() < 4000);
        let text = format!("{before}{}{after}", spelled(&grammar, &sentence));
        let sources = SourceMap::single("a.grid", text.as_str());
        let errors = syntax_errors(&sources);
        prop_assert!(errors.is_empty(), "{text}\n{}", render(&errors, &sources, false));
        let read_back = terminals(&grammar, &sources).unwrap_or_default();
        prop_assert!(read_back.windows(sentence.len().max(1)).any(|part| part == sentence)
            || sentence.is_empty(), "other tokens: {}", text);
        if sentence.len() < 600 {
            prop_assert!(grammar.derives(&read_back), "not recognised: {}", text);
        }
    }
}

#[test]
fn the_grammar_and_the_page_have_every_word() {
    let grammar = read_grammar();
    let page = page::text();
    let line =
        page.split("The keywords of the language cannot be names:").nth(1).expect("the words");
    let listed = page::quoted(
        line.split(".\n").next().expect("a sentence").split("\n\n").next().expect("a paragraph"),
    );
    assert_eq!(listed, keywords());
    for word in keywords() {
        assert!(
            grammar.terminals.iter().any(|known| known == word),
            "`{word}` is not in the grammar"
        );
    }
}

/// A program around statements.
fn in_kernel(statements: &str) -> String {
    format!("kernel fragment(p: *mut u32, n: u32) {{\n{statements}}}\n")
}

#[test]
fn the_code_in_the_page_matches_its_tags() {
    let page = page::text();
    let mut seen = 0;
    let mut files: Vec<(String, String)> = vec![];
    for fence in page::fences(&page) {
        let mut tags = fence.tag.split_whitespace();
        match tags.next() {
            Some("grid") => {}
            Some("ebnf") => continue,
            other => panic!("line {}: unknown tag {other:?}", fence.line),
        }
        let tags: Vec<&str> = tags.collect();
        let expected = tags.iter().find_map(|tag| tag.strip_prefix("error="));
        let text =
            if tags.contains(&"fragment") { in_kernel(&fence.text) } else { fence.text.clone() };
        // A file that later blocks use.
        if let Some(name) = tags.iter().find_map(|tag| tag.strip_prefix("file=")) {
            files.push((name.to_owned(), text.clone()));
            continue;
        }
        let known = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        let memory = Memory::new(known.chain([("page.grid", text.as_str())]));
        let sources = load(&memory, Path::new("page.grid")).expect("a file in memory");
        let mut messages = match gridlet_lang::program::check(sources.clone()) {
            Ok(checked) => checked.warnings,
            Err(gridlet_lang::Error::Program(messages)) => messages,
            Err(error) => panic!("line {}: {error}", fence.line),
        };
        // The names that a fragment declares may be used elsewhere.
        let is_fragment = tags.contains(&"fragment");
        messages.retain(|message| !is_fragment || message.id != ids::UNUSED_VARIABLE);
        let found: Vec<&str> = messages.iter().map(|message| message.id).collect();
        let shown = render(&messages, &sources, false);
        assert_eq!(found, Vec::from_iter(expected), "line {}:\n{shown}", fence.line);
        // Fragments are indented by the enclosing kernel.
        if !is_fragment {
            let formatted =
                gridlet_lang::format::format(&sources).expect("code without syntax errors");
            assert_eq!(formatted, text, "line {}: not formatted", fence.line);
        }
        seen += 1;
    }
    assert!(seen > 10 && !files.is_empty(), "only {seen} blocks of code");
}

#[test]
fn the_limits_are_those_of_the_compiler() {
    let page = page::text();
    let has = |text: &str| assert!(page.contains(text), "no `{text}` in the page");
    let height = syntax::ast::MAX_HEIGHT;
    has(&format!("| Nesting of expressions | {},{:03} levels |", height / 1000, height % 1000));
    let blocks = syntax::ast::MAX_BLOCKS;
    has(&format!("| Nesting of blocks, array literals and types | {blocks} levels |"));
    has(&format!("| Files of a program | {} |", gridlet_lang::load::MAX_FILES));
    has(&format!("| A source file | {} MiB |", syntax::MAX_FILE_BYTES >> 20));
    has(&format!(
        "| Errors shown, or warnings if there are no errors | {} |",
        gridlet_lang::diagnostics::MAX_MESSAGES
    ));
}
