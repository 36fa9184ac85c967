//! The fuzz targets of `compiler/fuzz`, without a fuzzer: each with the files of its corpus and with pieces of them.

#[path = "../../../compiler/fuzz/src/lib.rs"]
#[expect(unreachable_pub, clippy::expect_used, reason = "written for a crate of its own")]
mod targets;

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use gridlet::source::{FileId, SourceMap};
use gridlet::syntax;

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The dictionary's entries, quoted, one per line, without quotes or backslashes inside.
fn dictionary() -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/fuzz/tokens.dict");
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let entry = |line: &str| {
        let entry = line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        entry.unwrap_or_else(|| panic!("{line} is no entry")).to_owned()
    };
    lines.map(entry).collect()
}

#[test]
fn the_dictionary_has_the_words_and_signs_of_the_language() {
    let entries = dictionary();
    let fixed = [syntax::keywords(), syntax::signs()].concat();
    let missing: Vec<_> =
        fixed.iter().filter(|word| !entries.iter().any(|entry| entry == *word)).collect();
    assert!(missing.is_empty(), "the dictionary lacks {missing:?}");
    let mut sorted = entries.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), entries.len(), "an entry stands there twice");
    for entry in entries {
        let sources = SourceMap::single("a.grid", entry.as_str());
        let (tokens, messages) = syntax::tokens(&sources, FileId(0));
        // Pieces of comments and numbers are not tokens.
        let is_part = ["//", "/*", "*/", "0x"].contains(&entry.as_str());
        assert!(is_part || tokens.len() == 1 && messages.is_empty(), "`{entry}` is no token");
    }
}

#[test]
fn every_target_answers_its_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/fuzz/corpus");
    let folders: Vec<_> =
        files(&corpus).iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    let mut names: Vec<_> = targets::TARGETS.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(folders, names, "a folder for each target");
    for (name, target) in targets::TARGETS {
        for file in files(&corpus.join(name)) {
            let data = fs::read(&file).unwrap();
            // A fuzzer would start with these.
            let cuts = [data.len(), data.len() / 2, data.len().saturating_sub(1), 0];
            for cut in cuts {
                let answered = catch_unwind(|| target(&data[..cut]));
                assert!(answered.is_ok(), "{name}: {} at {cut}", file.display());
            }
        }
    }
}
