//! The `//@` lines of programs, which set a test's launches.

use std::collections::BTreeMap;

/// Default size of a buffer in 4-byte words.
pub(crate) const WORDS: usize = 64;

/// The values of a program's `//@` lines: `//@ grid=2 block=64 shared=16 n=64 data=100`.
pub(crate) fn settings(text: &str) -> BTreeMap<&str, u32> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("//@"));
    let pairs = lines.flat_map(|line| line.split_whitespace());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').expect("`name=value`");
            (name, value.parse().expect("a number"))
        })
        .collect()
}
