//! Whether the libraries' public interfaces keep what their version numbers promise, compared with the last release.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{package, process, report};

/// The tags of releases: `v0.1.0`.
const RELEASES: &str = "v[0-9]*";

const INSTALL: &str = "install it with `cargo install cargo-semver-checks --locked`";

/// What [`check`] found out.
pub(crate) enum Verdict {
    /// There is nothing to compare with, for this reason.
    NoRelease(String),
    /// cargo-semver-checks is not installed; this says how to install it.
    NoTool(String),
    /// Each library keeps its promises.
    Kept(String),
}

/// `cargo xtask semver`.
pub(crate) fn run() -> Result<()> {
    match check(process::cargo)? {
        Verdict::NoRelease(why) => report::skipped("semver", &why),
        Verdict::NoTool(why) => bail!(why),
        Verdict::Kept(text) => report::done("semver", &text),
    }
    Ok(())
}

/// Compares each library with the last release by cargo-semver-checks. `cargo` makes a cargo command for the workspace.
///
/// # Errors
/// If a library changes more than its version number says, or cannot be compared.
pub(crate) fn check(cargo: impl Fn() -> Command) -> Result<Verdict> {
    let Some(release) = last_release()? else {
        return Ok(Verdict::NoRelease(format!("there is no release yet: no tag `{RELEASES}`")));
    };
    if !process::succeeds(cargo().args(["semver-checks", "--version"])) {
        return Ok(Verdict::NoTool(format!("cargo-semver-checks is not installed: {INSTALL}")));
    }
    let mut compared = 0;
    for library in package::libraries(cargo())?.iter().filter(|name| is_in(&release, name)) {
        let mut cargo = cargo();
        cargo.args(["semver-checks", "--package", library, "--baseline-rev", &release]);
        // Neither version needs LLVM then. Of the others' features not all can be chosen at a time.
        match library.as_str() {
            "gridlet" => cargo.args(["--only-explicit-features", "--features", "llvm-unlinked"]),
            _ => cargo.arg("--default-features"),
        };
        report::step(&process::shown(&cargo));
        process::run(&mut cargo).with_context(|| {
            format!("{library} changes more than its version allows since {release}")
        })?;
        compared += 1;
    }
    if compared == 0 {
        bail!("{release} has none of the libraries");
    }
    Ok(Verdict::Kept(format!("{compared} libraries, compared with {release}")))
}

/// The newest release among the ancestors of the checked-out commit.
fn last_release() -> Result<Option<String>> {
    let mut git = Command::new("git");
    git.args(["tag", "--list", RELEASES, "--merged", "HEAD", "--sort=-version:refname"]);
    let tags = process::output(git.current_dir(process::workspace()))?;
    Ok(tags.lines().next().map(str::to_owned))
}

/// Whether a release has a package of that name; a new one has nothing to keep.
fn is_in(release: &str, name: &str) -> bool {
    let mut git = Command::new("git");
    git.args(["grep", "--quiet", "--basic-regexp"]);
    git.args([format!("^name = \"{name}\"$").as_str(), release, "--", "*Cargo.toml"]);
    process::succeeds(git.current_dir(process::workspace()))
}
