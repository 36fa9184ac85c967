//! Whether the crates can be published: packs them, unpacks them outside the workspace, and builds them there as a
//! registry's users and docs.rs do, without LLVM.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{process, report};

/// The feature of `gridlet` with which it needs no LLVM to be checked and documented.
const WITHOUT_LLVM: &str = "gridlet/llvm-unlinked";

/// What every package must carry beside its sources.
const REQUIRED_FILES: [&str; 4] = ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// `cargo xtask package`.
pub(crate) fn run() -> Result<()> {
    report::done("packages", &check(process::cargo)?);
    Ok(())
}

/// Packs the crates that can be published, and checks and documents what the packages hold. `cargo` makes a cargo
/// command for the workspace. Returns a line for the summary.
pub(crate) fn check(cargo: impl Fn() -> Command) -> Result<String> {
    let packages = publishable(cargo())?;
    pack(cargo(), &packages)?;
    let folder = unpack(&packages)?;
    let outside = |arguments: &[&str]| {
        let mut cargo = cargo();
        cargo.args(arguments).args(["--quiet", "--offline", "--features", WITHOUT_LLVM]);
        cargo.current_dir(&folder).env("CARGO_TARGET_DIR", process::target_folder());
        // What these builds need of LLVM would be missing on docs.rs, too.
        cargo.env("LLVM_SYS_221_PREFIX", "/nonexistent").env("CARGO_INCREMENTAL", "0");
        cargo.env("RUSTDOCFLAGS", "--deny warnings");
        process::run(&mut cargo)
    };
    outside(&["check", "--workspace"])
        .context("the packages do not build outside the workspace")?;
    outside(&["doc", "--no-deps", "--package", "gridlet"])
        .context("the documentation of `gridlet` does not build without LLVM")?;
    Ok(format!("{} packages", packages.len()))
}

/// A package of the workspace.
#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    /// The registries that it may be published to; all without a list.
    publish: Option<Vec<String>>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

impl Package {
    fn stem(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// The names of the libraries that can be published.
pub(crate) fn libraries(cargo: Command) -> Result<Vec<String>> {
    let is_library = |target: &Target| target.kind.iter().any(|kind| kind == "lib");
    let all = publishable(cargo)?.into_iter();
    Ok(all.filter(|it| it.targets.iter().any(is_library)).map(|it| it.name).collect())
}

/// The packages without `publish = false`.
fn publishable(mut cargo: Command) -> Result<Vec<Package>> {
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let metadata: Metadata = serde_json::from_str(&process::output(&mut cargo)?)?;
    let all = metadata.packages.into_iter();
    Ok(all.filter(|package| package.publish.as_ref().is_none_or(|list| !list.is_empty())).collect())
}

fn pack(mut cargo: Command, packages: &[Package]) -> Result<()> {
    // Cargo's own verification would build each package and LLVM's part of it from nothing.
    cargo.args(["package", "--quiet", "--offline", "--no-verify", "--allow-dirty"]);
    for package in packages {
        cargo.args(["--package", &package.name]);
    }
    // It warns of every test that a package leaves out, and of the missing repository address.
    process::output(&mut cargo).map(drop)
}

/// Unpacks the packages side by side into a workspace that takes each from there in place of the registry.
fn unpack(packages: &[Package]) -> Result<std::path::PathBuf> {
    let packed = process::target_folder().join("package");
    let folder = packed.join("unpacked");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("deleting {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    for package in packages {
        let file = packed.join(format!("{}.crate", package.stem()));
        // Packed files have no time of their own; `--touch` gives them one at which cargo rebuilds.
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--gzip", "--touch", "--file"]).arg(file).arg("--directory");
        process::run(tar.arg(&folder))?;
        complete(&folder, package)?;
    }
    fs::write(folder.join("Cargo.toml"), workspace_manifest(packages))?;
    fs::copy(process::workspace().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(folder)
}

/// Checks that a package has the files that a registry's users look for.
fn complete(folder: &Path, package: &Package) -> Result<()> {
    for name in REQUIRED_FILES {
        if !folder.join(package.stem()).join(name).is_file() {
            bail!("the package {} has no {name}", package.name);
        }
    }
    Ok(())
}

fn workspace_manifest(packages: &[Package]) -> String {
    let mut text = String::from("[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\n\n");
    // As in the root's manifest, so that dependencies are built once.
    text.push_str("[profile.dev]\ndebug = \"line-tables-only\"\n\n[patch.crates-io]\n");
    for package in packages {
        text.push_str(&format!("{} = {{ path = \"{}\" }}\n", package.name, package.stem()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str) -> Package {
        Package { name: name.into(), version: "0.1.0".into(), publish: None, targets: vec![] }
    }

    #[test]
    fn packages_of_one_workspace_take_each_other() {
        let text = workspace_manifest(&[package("a"), package("b")]);
        assert!(
            text.ends_with("a = { path = \"a-0.1.0\" }\nb = { path = \"b-0.1.0\" }\n"),
            "{text}"
        );
    }

    #[test]
    fn a_package_without_its_licence_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let package = package("a");
        let root = folder.path().join("a-0.1.0");
        fs::create_dir(&root).unwrap();
        for name in REQUIRED_FILES {
            let error = complete(folder.path(), &package).unwrap_err().to_string();
            assert_eq!(error, format!("the package a has no {name}"));
            fs::write(root.join(name), "").unwrap();
        }
        complete(folder.path(), &package).unwrap();
    }
}
