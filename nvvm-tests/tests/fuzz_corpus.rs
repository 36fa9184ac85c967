//! The fuzz targets of `compiler/fuzz`, without a fuzzer: each with the files of its corpus and with pieces of them.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

#[path = "../../compiler/fuzz/src/lib.rs"]
#[expect(unreachable_pub, clippy::expect_used, reason = "written for a crate of its own")]
mod targets;

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
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
            // What a fuzzer would start with.
            let cuts = [data.len(), data.len() / 2, data.len().saturating_sub(1), 0];
            for cut in cuts {
                let answered = catch_unwind(|| target(&data[..cut]));
                assert!(answered.is_ok(), "{name}: {} at {cut}", file.display());
            }
        }
    }
}
