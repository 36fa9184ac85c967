//! The `//@` lines of programs: how a test launches them.

use std::collections::BTreeMap;

/// Words of 4 bytes that a buffer has unless the program says more.
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
