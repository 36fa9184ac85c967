//! Where toolkits that were unpacked for Gridlet lie.
//!
//! xtask, which unpacks them, includes this file with `#[path]`, so that both agree; it needs nothing but
//! the standard library.
//!
//! ```text
//! <cache>/toolkit/<name>/complete             written last, so that a broken unpacking does not count
//! <cache>/toolkit/<name>/nvidia/cu13/{bin,include,lib,nvvm}
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The file in a toolkit's folder that says that it is whole.
pub const COMPLETE: &str = "complete";

/// The toolkit's root in its folder: where NVIDIA's wheels put their files.
pub const ROOT: &str = "nvidia/cu13";

/// The cache folder: `GRIDLET_CACHE`, else `$XDG_CACHE_HOME/gridlet`, else `$HOME/.cache/gridlet`; `None`
/// if none of the three is set. `variable` reads an environment variable; an empty one counts as unset,
/// and so does a relative `XDG_CACHE_HOME` (XDG Base Directory Specification, "Basics").
pub fn cache_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("GRIDLET_CACHE")
        .or_else(|| {
            set("XDG_CACHE_HOME").filter(|path| path.is_absolute()).map(|path| path.join("gridlet"))
        })
        .or_else(|| set("HOME").map(|path| path.join(".cache").join("gridlet")))
}

/// The folder of all toolkits in a cache.
pub fn toolkits_folder(cache: &Path) -> PathBuf {
    cache.join("toolkit")
}

/// The roots of the whole toolkits in a cache, the newest first: names compare by their numbers, so that
/// `cuda-13.10` is newer than `cuda-13.9`.
pub fn complete_toolkits(cache: &Path) -> Vec<PathBuf> {
    let mut found: Vec<(Vec<u64>, String, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(toolkits_folder(cache)).into_iter().flatten().flatten() {
        let folder = entry.path();
        if folder.join(COMPLETE).is_file() {
            let name = entry.file_name().to_string_lossy().into_owned();
            found.push((numbers(&name), name, folder.join(ROOT)));
        }
    }
    found.sort();
    found.into_iter().rev().map(|(_, _, root)| root).collect()
}

fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}
