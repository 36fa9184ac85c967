//! The bundle of the fuzz targets.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::programs::Program;
use super::{COMMON, copy_libraries, copy_programs, pack, write_scripts};
use crate::{fuzz, setup};

const SCRIPTS: [(&str, &str); 2] = [COMMON, ("run-fuzz", include_str!("run-fuzz"))];
const USE: &str = "\
./run-fuzz [SECONDS [OUT]]    runs all fuzz targets at once, for 600 seconds otherwise

It unpacks programs.tar.xz on first use and writes to OUT, or to ./out.
";

/// Makes the bundle in an empty folder: the targets in `bin`, and in `corpus` their initial inputs and those that a
/// fuzzer found on this machine.
pub(super) fn make(environment: &setup::Environment, out: &Path) -> Result<()> {
    let package = fuzz::package();
    let targets = fuzz::targets(&package)?;
    let files = fuzz::build(environment, &targets)?;
    let place = |target: &String| PathBuf::from("bin").join(target);
    let programs: Vec<Program> = targets
        .iter()
        .zip(files)
        .map(|(target, file)| Program { file, place: place(target) })
        .collect();
    let unpacked = tempfile::tempdir()?;
    copy_programs(&programs, unpacked.path())?;
    copy_libraries(&programs, &unpacked.path().join("lib"))?;
    for target in &targets {
        let to = unpacked.path().join("corpus").join(target);
        std::fs::create_dir_all(&to)?;
        for folder in fuzz::corpora(&package, target)? {
            copy_inputs(&folder, &to)?;
        }
        let found = fuzz::found_folder(target);
        if found.is_dir() {
            copy_inputs(&found, &to)?;
        }
    }
    std::fs::copy(package.join("tokens.dict"), unpacked.path().join("tokens.dict"))?;
    pack(unpacked.path(), &out.join("programs.tar.xz"))?;
    write_scripts(&SCRIPTS, USE, out)
}

/// Copies the files of a folder, each under a name that includes the folder's.
fn copy_inputs(from: &Path, to: &Path) -> Result<()> {
    let folder = from.file_name().unwrap_or_default().to_string_lossy();
    let read = || format!("cannot read {}", from.display());
    for entry in std::fs::read_dir(from).with_context(read)? {
        let entry = entry?;
        let name = format!("{folder}-{}", entry.file_name().to_string_lossy());
        std::fs::copy(entry.path(), to.join(name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_of_one_name_are_both_copied() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("to");
        std::fs::create_dir(&to).unwrap();
        for (name, text) in [("ok", "1"), ("errors", "2")] {
            let from = folder.path().join(name);
            std::fs::create_dir(&from).unwrap();
            std::fs::write(from.join("a.grid"), text).unwrap();
            copy_inputs(&from, &to).unwrap();
        }
        assert_eq!(std::fs::read_to_string(to.join("ok-a.grid")).unwrap(), "1");
        assert_eq!(std::fs::read_to_string(to.join("errors-a.grid")).unwrap(), "2");
    }
}
