//! The cache of NVIDIA's compiler parts.
//!
//! `xtask` fills the cache that the compiler reads, and must build without the compiler, so it
//! includes this file by path. The file therefore uses only the standard library, and a change
//! affects both.
//!
//! ```text
//! <cache>/toolkit/<name>/nvidia/cu13/{bin,include,lib,nvvm}   as laid out in NVIDIA's wheels
//! <cache>/toolkit/<name>/complete                             written last: without it the toolkit
//! is ignored
//! ```

use std::cmp::Ordering;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder of a toolkit's `bin`, `include`, `lib` and `nvvm`, below `<cache>/toolkit/<name>`.
pub const TOOLKIT_ROOT: &str = "nvidia/cu13";

/// The file that marks a completely unpacked toolkit.
pub const COMPLETE: &str = "complete";

/// The cache folder of this process: see [`cache_dir_in`].
pub fn cache_dir() -> Option<PathBuf> {
    cache_dir_in(|name| std::env::var_os(name))
}

/// The cache folder according to the environment `env`, whether it exists or not: `GRIDLET_CACHE`,
/// else `$XDG_CACHE_HOME/gridlet`, else `$HOME/.cache/gridlet`. Empty variables count as unset, and
/// so does a relative `XDG_CACHE_HOME`, as the XDG base directory specification requires. `None` if
/// nothing is set.
pub fn cache_dir_in(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    path("GRIDLET_CACHE")
        .or_else(|| path("XDG_CACHE_HOME").filter(|p| p.is_absolute()).map(|p| p.join("gridlet")))
        .or_else(|| path("HOME").map(|p| p.join(".cache/gridlet")))
}

/// The complete toolkits of this process's cache, as `<cache>/toolkit/<name>`, sorted by name,
/// newest last.
pub fn toolkits() -> Vec<PathBuf> {
    cache_dir().map(|cache| toolkits_in(&cache)).unwrap_or_default()
}

/// The complete toolkits below `cache`, newest last. A missing or unreadable cache has none.
pub fn toolkits_in(cache: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(cache.join("toolkit")) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.join(COMPLETE).is_file())
        .collect();
    found.sort_by(|a, b| {
        let name = |path: &Path| {
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        };
        compare_names(&name(a), &name(b)).then_with(|| a.cmp(b))
    });
    found
}

/// Compares names, with runs of digits read as numbers, so that `13.10` is newer than `13.9`.
fn compare_names(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (text_a, rest_a) = split_run(a, |c| !c.is_ascii_digit());
        let (text_b, rest_b) = split_run(b, |c| !c.is_ascii_digit());
        let (number_a, end_a) = split_run(rest_a, |c| c.is_ascii_digit());
        let (number_b, end_b) = split_run(rest_b, |c| c.is_ascii_digit());
        // Without leading zeros, the longer number is larger; of equal length, the text decides.
        let (value_a, value_b) =
            (number_a.trim_start_matches('0'), number_b.trim_start_matches('0'));
        let order = text_a
            .cmp(text_b)
            .then_with(|| value_a.len().cmp(&value_b.len()))
            .then_with(|| value_a.cmp(value_b));
        if order != Ordering::Equal || (end_a.is_empty() && end_b.is_empty()) {
            return order;
        }
        (a, b) = (end_a, end_b);
    }
}

/// Splits `text` after its longest prefix of characters that `keep` accepts.
fn split_run(text: &str, keep: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !keep(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(variables: &[(&str, &str)]) -> Option<PathBuf> {
        cache_dir_in(|name| {
            variables.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v))
        })
    }

    #[test]
    fn the_most_specific_variable_names_the_cache() {
        let all = [("GRIDLET_CACHE", "here"), ("XDG_CACHE_HOME", "/xdg"), ("HOME", "/home/a")];
        assert_eq!(dir(&all), Some("here".into()));
        assert_eq!(dir(&all[1..]), Some("/xdg/gridlet".into()));
        assert_eq!(dir(&all[2..]), Some("/home/a/.cache/gridlet".into()));
        assert_eq!(dir(&[]), None);
        let weak = [("GRIDLET_CACHE", ""), ("XDG_CACHE_HOME", "relative"), ("HOME", "/home/a")];
        assert_eq!(dir(&weak), Some("/home/a/.cache/gridlet".into()));
    }

    #[test]
    fn only_complete_toolkits_count_and_the_newest_is_last() {
        let cache = tempfile::tempdir().unwrap();
        assert!(toolkits_in(cache.path()).is_empty());
        for (name, complete) in
            [("cuda-13.10.2", true), ("cuda-13.9.88", true), ("cuda-13.11.0.partial-7", false)]
        {
            let folder = cache.path().join("toolkit").join(name);
            std::fs::create_dir_all(&folder).unwrap();
            if complete {
                std::fs::write(folder.join(COMPLETE), "").unwrap();
            }
        }
        let names: Vec<_> = toolkits_in(cache.path())
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["cuda-13.9.88", "cuda-13.10.2"]);
    }

    #[test]
    fn names_compare_by_their_numbers() {
        assert_eq!(compare_names("cuda-13.0.88-1", "cuda-13.0.88-2"), Ordering::Less);
        assert_eq!(compare_names("cuda-13.0.88-10", "cuda-13.0.88-9"), Ordering::Greater);
        assert_eq!(compare_names("cuda-13.0", "cuda-13.0.1"), Ordering::Less);
        assert_eq!(compare_names("a", "a"), Ordering::Equal);
    }
}
