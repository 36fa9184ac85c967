//! The TextMate grammar of `editors/`: compares its lists with the compiler's, and highlights a sample.

mod textmate;

use std::path::PathBuf;

use gridlet_lang::builtins::Builtin;
use gridlet_lang::source::{FileId, SourceMap};
use gridlet_lang::syntax::{TokenKind, keywords, tokens};
use gridlet_lang::types::Scalar;
use serde_json::Value;
use textmate::Grammar;

fn root() -> PathBuf {
    crate::compiler().join("..")
}

fn json(path: &str) -> Value {
    let text = std::fs::read_to_string(root().join(path)).expect("the file can be read");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn grammar() -> Value {
    json("editors/vscode/syntaxes/gridlet.tmLanguage.json")
}

/// The alternatives in a rule's first group.
fn choices(rule: &str) -> Vec<String> {
    let grammar = grammar();
    let pattern = grammar["repository"][rule]["match"].as_str().expect("a pattern").to_owned();
    let group = pattern.split('(').nth(1).and_then(|rest| rest.split(')').next()).expect("a group");
    group.trim_start_matches("?:").split('|').map(str::to_owned).collect()
}

#[test]
fn the_words_are_those_of_the_compiler() {
    let rules = ["control", "storage", "modifiers", "operator-words", "booleans"];
    let mut words: Vec<String> = rules.iter().flat_map(|rule| choices(rule)).collect();
    words.sort();
    assert_eq!(words, keywords());
}

#[test]
fn the_built_ins_are_those_of_the_compiler() {
    let mut known: Vec<&str> = Builtin::ALL.iter().map(|builtin| builtin.name()).collect();
    known.sort_unstable();
    assert_eq!(choices("built-ins"), known);
}

#[test]
fn the_types_are_those_of_the_compiler() {
    let grammar = Grammar::new(&grammar());
    let is_type = |name: &str| {
        let tokens = grammar.line(name, &mut vec![]);
        tokens.len() == 1 && tokens[0].1 == "support.type.gridlet"
    };
    for scalar in Scalar::ALL {
        assert!(is_type(scalar.name()), "{}", scalar.name());
        for count in ["x2", "x3", "x4"] {
            let vector = format!("{}{count}", scalar.name());
            assert_eq!(is_type(&vector), scalar != Scalar::Bool, "{vector}");
        }
    }
    assert!(is_type("dim3") && is_type("stream"));
    assert!(!is_type("f32x5") && !is_type("f8") && !is_type("u32x"));
}

#[test]
fn a_sample_gets_its_colours() {
    let path = root().join("compiler/tests/in/editors/sample.grid");
    let text = std::fs::read_to_string(path).expect("the file can be read");
    let grammar = Grammar::new(&grammar());
    let mut open = vec![];
    let mut shown = String::new();
    for line in text.lines() {
        shown += &format!("{line}\n");
        for (part, scope) in grammar.line(line, &mut open) {
            // Everything except names and space has a scope.
            if !scope.is_empty() {
                shown += &format!("    {part:24} {}\n", scope.trim_end_matches(".gridlet"));
            } else {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ' ';
                assert!(part.chars().all(is_name), "no scope for {part:?} in {line:?}");
            }
        }
    }
    assert!(open.is_empty(), "something is still open at the end");
    insta::with_settings!({
        prepend_module_to_snapshot => false, omit_expression => true, snapshot_path => "../../../../tests/out/editors",
    }, { insta::assert_snapshot!("sample", shown) });
}

#[test]
fn every_program_ends_with_nothing_open() {
    let grammar = Grammar::new(&grammar());
    let mut seen = 0;
    for folder in ["examples", "compiler/tests/in/ok"] {
        for entry in walkdir::WalkDir::new(root().join(folder)) {
            let path = entry.expect("the folder can be read").into_path();
            if path.extension().is_none_or(|ending| ending != "grid") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("the file can be read");
            let mut open = vec![];
            for line in text.lines() {
                for (part, scope) in grammar.line(line, &mut open) {
                    assert!(!scope.starts_with("invalid"), "{}: {part:?}", path.display());
                }
            }
            assert!(open.is_empty(), "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} programs");
}

#[test]
fn the_extension_refers_to_existing_files() {
    let package = json("editors/vscode/package.json");
    let folder = root().join("editors/vscode");
    let contributes = &package["contributes"];
    let grammar_path = contributes["grammars"][0]["path"].as_str().expect("a path");
    let configuration = contributes["languages"][0]["configuration"].as_str().expect("a path");
    assert!(folder.join(grammar_path).is_file() && folder.join(configuration).is_file());
    assert_eq!(contributes["grammars"][0]["scopeName"], grammar()["scopeName"]);
    assert_eq!(contributes["languages"][0]["extensions"][0], ".grid");
    assert_eq!(package["version"], env!("CARGO_PKG_VERSION"));
    let configuration = json("editors/vscode/language-configuration.json");
    assert_eq!(configuration["comments"]["lineComment"], "//");
    let indentation = &configuration["indentationRules"];
    for rule in ["increaseIndentPattern", "decreaseIndentPattern"] {
        let pattern = indentation[rule].as_str().expect("a pattern");
        regex::Regex::new(pattern).unwrap_or_else(|error| panic!("{rule}: {error}"));
    }
}

/// Whether a part with this scope may be a token of this kind.
fn agrees(kind: TokenKind, text: &str, scope: &str) -> bool {
    let scope = scope.trim_end_matches(".gridlet");
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic());
    match kind {
        TokenKind::Int => scope == "constant.numeric.integer",
        TokenKind::Float => scope == "constant.numeric.float",
        TokenKind::String => scope == "string.quoted.double",
        TokenKind::Byte => scope == "constant.character.byte",
        TokenKind::Label => scope == "entity.name.label",
        TokenKind::Fixed if is_word => {
            let starts =
                ["keyword.", "storage.", "constant.language.", "variable.parameter.launch"];
            starts.iter().any(|start| scope.starts_with(start))
        }
        TokenKind::Fixed => {
            let starts = ["keyword.operator", "punctuation", "meta.attribute"];
            starts.iter().any(|start| scope.starts_with(start))
        }
        TokenKind::Name => {
            let starts = ["entity.", "support.", "variable.", "meta.attribute"];
            scope.is_empty() || starts.iter().any(|start| scope.starts_with(start))
        }
    }
}

#[test]
fn tokens_have_the_scope_of_their_kind() {
    let grammar = Grammar::new(&grammar());
    let mut seen = 0;
    for folder in ["examples", "compiler/tests/in/ok", "compiler/tests/in/editors"] {
        for entry in walkdir::WalkDir::new(root().join(folder)) {
            let path = entry.expect("the folder can be read").into_path();
            if path.extension().is_none_or(|ending| ending != "grid") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("the file can be read");
            let sources = SourceMap::single("p.grid", text.as_str());
            let (tokens, errors) = tokens(&sources, FileId(0));
            assert!(errors.is_empty(), "{}", path.display());
            let mut open = vec![];
            let mut parts = vec![];
            for line in text.lines() {
                for (part, scope) in grammar.line(line, &mut open) {
                    let start = part.as_ptr() as usize - text.as_ptr() as usize;
                    parts.push((start..start + part.len(), scope));
                }
            }
            for (kind, range) in tokens {
                let at = parts.partition_point(|(part, _)| part.end <= range.start);
                let (part, scope) = &parts[at];
                let token = &text[range.clone()];
                let place = format!("{}: {token:?} is {scope:?}", path.display());
                assert!(agrees(kind, token, scope), "{place}");
                // Adjacent names without a scope form one part; strings have parts of their own.
                let is_whole = *part == range || kind == TokenKind::String || scope.is_empty();
                assert!(
                    is_whole || scope.starts_with("meta."),
                    "{place} as {:?}",
                    &text[part.clone()]
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 10_000, "only {seen} tokens");
}
