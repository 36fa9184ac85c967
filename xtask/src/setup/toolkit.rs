//! An installed CUDA toolkit.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::report;

/// The variable that overrides every other way to find a toolkit.
pub(crate) const VARIABLE: &str = "GRIDLET_TOOLKIT";
/// 12.8, as `cuda.h` writes it: the first release whose libNVVM has compute_100 and compute_120.
const OLDEST: u32 = 12080;

/// A toolkit with every part.
#[derive(Debug)]
pub(crate) struct Toolkit {
    /// Its folder.
    pub(crate) root: PathBuf,
    /// `13.0`
    pub(crate) version: String,
    /// The variable that names it, or `found`.
    pub(crate) named_by: &'static str,
}

/// The first toolkit that is new enough and has every part, by `GRIDLET_TOOLKIT`, `CUDA_HOME`, `CUDA_PATH` and
/// `/usr/local/cuda`. If `tell`, says why the others are not used; a wrong `GRIDLET_TOOLKIT` is an error, since it
/// can only be meant for Gridlet.
pub(crate) fn find(tell: bool) -> Result<Option<Toolkit>> {
    find_in(|name| std::env::var_os(name), Path::new("/usr/local/cuda"), tell)
}

fn find_in(
    env: impl Fn(&str) -> Option<OsString>,
    usual: &Path,
    tell: bool,
) -> Result<Option<Toolkit>> {
    let named = [VARIABLE, "CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(|name| Some((name, env(name).filter(|value| !value.is_empty())?)))
        .map(|(name, value)| (name, PathBuf::from(value)));
    let found = usual.exists().then(|| ("found", usual.to_path_buf()));
    for (named_by, root) in named.chain(found) {
        match inspect(&root) {
            // Commands run in the workspace's folder, so a relative path would lead elsewhere.
            Ok(version) => {
                let root = std::path::absolute(&root)?;
                return Ok(Some(Toolkit { root, version, named_by }));
            }
            Err(problem) if named_by == VARIABLE => {
                bail!(
                    "{VARIABLE} is {}, which {problem}: set it to a CUDA toolkit of version 12.8 or newer, or unset it",
                    root.display()
                );
            }
            Err(problem) if tell => {
                report::skipped(
                    "CUDA toolkit",
                    &format!("{}: not used, it {problem}", root.display()),
                );
            }
            Err(_) => {}
        }
    }
    Ok(None)
}

/// The version of the toolkit in `root`, or why it cannot be used.
fn inspect(root: &Path) -> Result<String, String> {
    let Some(version) = version(root) else {
        return Err("has no include/cuda.h that tells its version".into());
    };
    let text = format!("{}.{}", version / 1000, version % 1000 / 10);
    if version < OLDEST {
        return Err(format!("is version {text}, older than 12.8"));
    }
    let missing = missing_parts(root);
    if missing.is_empty() { Ok(text) } else { Err(format!("lacks {}", missing.join(", "))) }
}

/// Folders below a toolkit's: its own, and the one of its target in packages for several.
fn bases(root: &Path) -> Vec<PathBuf> {
    let mut bases = vec![root.to_path_buf()];
    bases.extend(["x86_64-linux", "sbsa-linux"].map(|target| root.join("targets").join(target)));
    bases
}

fn version(root: &Path) -> Option<u32> {
    let header = bases(root)
        .iter()
        .find_map(|base| std::fs::read_to_string(base.join("include/cuda.h")).ok())?;
    header.lines().find_map(|line| line.strip_prefix("#define CUDA_VERSION ")?.trim().parse().ok())
}

/// The parts that Gridlet and its tests use and that `root` lacks.
pub(crate) fn missing_parts(root: &Path) -> Vec<&'static str> {
    let bases = bases(root);
    let has_file = |path: &str| bases.iter().any(|base| base.join(path).is_file());
    let has_library = |start: &str, folders: &[&str]| {
        bases.iter().any(|base| folders.iter().any(|folder| has_prefix(&base.join(folder), start)))
    };
    let mut missing = Vec::new();
    let mut need = |name, there: bool| {
        if !there {
            missing.push(name);
        }
    };
    need("libNVVM", has_library("libnvvm.so", &["nvvm/lib64", "nvvm/lib", "lib64", "lib"]));
    need("libdevice", has_file("nvvm/libdevice/libdevice.10.bc"));
    need("nvJitLink", has_library("libnvJitLink.so", &["lib64", "lib"]));
    need("libcudadevrt.a", has_library("libcudadevrt.a", &["lib64", "lib"]));
    need("the CUDA runtime's headers", has_file("include/cuda_runtime.h"));
    need("nvcc", has_file("bin/nvcc"));
    need("ptxas", has_file("bin/ptxas"));
    need("nvlink", has_file("bin/nvlink"));
    need("cuobjdump", has_file("bin/cuobjdump"));
    need("nvdisasm", has_file("bin/nvdisasm"));
    missing
}

fn has_prefix(folder: &Path, start: &str) -> bool {
    std::fs::read_dir(folder).is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with(start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(root: &Path, version: u32) {
        let tools =
            ["nvcc", "ptxas", "nvlink", "cuobjdump", "nvdisasm"].map(|t| format!("bin/{t}"));
        let others = [
            "nvvm/lib64/libnvvm.so.4",
            "nvvm/libdevice/libdevice.10.bc",
            "targets/x86_64-linux/lib/libnvJitLink.so.13",
            "lib64/libcudadevrt.a",
            "include/cuda_runtime.h",
        ];
        for path in tools.iter().map(String::as_str).chain(others) {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), "").unwrap();
        }
        let header = format!("/* a header */\n#define CUDA_VERSION {version}\n");
        std::fs::write(root.join("include/cuda.h"), header).unwrap();
    }

    #[test]
    fn the_first_usable_toolkit_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
        make(&old, 12040);
        make(&new, 13000);
        let env = |name: &str| (name == "CUDA_HOME").then(|| old.clone().into_os_string());
        let found = find_in(env, &new, false).unwrap().unwrap();
        assert_eq!((found.root, found.version.as_str(), found.named_by), (new, "13.0", "found"));
        assert!(find_in(env, &folder.path().join("none"), false).unwrap().is_none());
    }

    #[test]
    fn a_named_toolkit_that_cannot_serve_is_an_error_that_says_why() {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), 12090);
        let env = |name: &str| (name == VARIABLE).then(|| folder.path().as_os_str().into());
        assert_eq!(find_in(env, Path::new("/none"), false).unwrap().unwrap().version, "12.9");
        std::fs::remove_file(folder.path().join("lib64/libcudadevrt.a")).unwrap();
        std::fs::remove_file(folder.path().join("bin/ptxas")).unwrap();
        let error = find_in(env, Path::new("/none"), false).unwrap_err().to_string();
        assert!(error.contains("lacks libcudadevrt.a, ptxas"), "{error}");
        make(folder.path(), 12060);
        let error = find_in(env, Path::new("/none"), false).unwrap_err().to_string();
        assert!(error.contains("version 12.6, older than 12.8"), "{error}");
    }
}
