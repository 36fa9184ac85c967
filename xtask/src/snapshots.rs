//! Finds snapshot files that no test uses any more.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// An empty file for insta to add the name of each snapshot to that a test asserts
/// (`INSTA_SNAPSHOT_REFERENCES_FILE`, which cargo-insta uses for the same purpose).
pub(crate) fn references_file() -> Result<PathBuf> {
    let folder = crate::process::target_folder().join("xtask");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("snapshot-references");
    std::fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

/// The `.snap` files below `root` that `references` does not list, sorted.
pub(crate) fn unused(root: &Path, references: &Path) -> Result<Vec<PathBuf>> {
    let listed = std::fs::read_to_string(references)
        .with_context(|| format!("cannot read {}", references.display()))?;
    // insta may write `tests/../tests/x.snap`.
    let used: BTreeSet<PathBuf> =
        listed.lines().filter_map(|line| Path::new(line).canonicalize().ok()).collect();
    let mut files = Vec::new();
    find(root, &mut files)?;
    files.sort();
    files.retain(|file| file.canonicalize().is_ok_and(|file| !used.contains(&file)));
    Ok(files)
}

/// Adds to `files` the snapshots below `folder`, outside of build outputs and hidden folders.
fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let kind = entry.file_type()?;
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        // Cargo puts CACHEDIR.TAG into every target folder, whatever its name.
        if kind.is_dir() && !hidden && !path.join("CACHEDIR.TAG").exists() {
            find(&path, files)?;
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "snap") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_snapshots_that_no_test_names_are_unused() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("compiler/tests/snapshots");
        let target = root.path().join("build");
        for folder in [&folder, &target] {
            std::fs::create_dir_all(folder).unwrap();
        }
        for name in ["a.snap", "b.snap", "c.txt"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        std::fs::write(target.join("CACHEDIR.TAG"), "").unwrap();
        std::fs::write(target.join("d.snap"), "").unwrap();
        let references = root.path().join("references");
        let used = folder.join("../snapshots/a.snap");
        std::fs::write(&references, format!("{}\n/gone.snap\n", used.display())).unwrap();
        assert_eq!(unused(root.path(), &references).unwrap(), [folder.join("b.snap")]);
        std::fs::write(&references, "").unwrap();
        assert_eq!(unused(root.path(), &references).unwrap().len(), 2);
    }
}
