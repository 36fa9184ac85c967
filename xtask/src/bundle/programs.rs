//! Builds the programs of a bundle.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::process;
use crate::setup::Environment;

/// Programs, by package and name; they go to `bin`.
const PROGRAMS: [(&str, &str); 6] = [
    ("gridlet-cli", "gridlet"),
    ("gridlet-examples", "demo"),
    ("gridlet-examples", "bench"),
    ("nvvm-tests", "differential"),
    ("nvvm-tests", "layouts"),
    ("nvvm-tests", "trees"),
];
/// The tests that need a GPU, by package and name of the test; they go to `tests/<package>-<name>`.
const TESTS: [(&str, &str); 5] = [
    ("gridlet", "devices"),
    ("gridlet-cli", "gpu"),
    ("gridlet-examples", "gpu"),
    ("gridlet-examples", "typed"),
    ("gridlet-runtime", "gpu"),
];

/// The library for hosts in C, by package and name.
const LIBRARY: (&str, &str) = ("gridlet-c", "gridlet_c");

/// A program of the bundle, or a library.
pub(super) struct Program {
    /// Where cargo put it.
    pub(super) file: PathBuf,
    /// Where it goes, below the folder that is packed.
    pub(super) place: PathBuf,
}

/// Builds all of them, optimised.
pub(super) fn build(environment: &Environment) -> Result<Vec<Program>> {
    // In one call: for each package by itself, cargo would rebuild the shared ones with other features.
    let mut cargo = process::cargo();
    environment.apply(&mut cargo);
    cargo.args(["build", "--release", "--message-format", "json-render-diagnostics"]);
    let packages: BTreeSet<&str> =
        PROGRAMS.iter().chain(&TESTS).chain([&LIBRARY]).map(|(package, _)| *package).collect();
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    cargo.arg("--lib");
    cargo.args(PROGRAMS.iter().flat_map(|(_, name)| ["--bin", name]));
    let tests: BTreeSet<&str> = TESTS.iter().map(|(_, name)| *name).collect();
    cargo.args(tests.iter().flat_map(|name| ["--test", name]));
    let output = cargo.stderr(Stdio::inherit()).output().context("could not start cargo")?;
    if !output.status.success() {
        bail!("{} ended with {}", process::shown(&cargo), output.status);
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let found = |package, kind, name, place: String| {
        let file = find(&messages, package, kind, name)
            .with_context(|| format!("{} made no program `{name}`", process::shown(&cargo)))?;
        Ok(Program { file, place: place.into() })
    };
    let programs =
        PROGRAMS.iter().map(|(package, name)| found(package, "bin", name, format!("bin/{name}")));
    let tests = TESTS
        .iter()
        .map(|(package, name)| found(package, "test", name, format!("tests/{package}-{name}")));
    let library = found(LIBRARY.0, "cdylib", LIBRARY.1, format!("c/lib{}.so", LIBRARY.1));
    programs.chain(tests).chain([library]).collect()
}

/// Cargo's message about a target it built; other messages lack these fields.
#[derive(Deserialize)]
struct Message {
    package_id: Option<String>,
    target: Option<Target>,
    executable: Option<PathBuf>,
    /// What a library was written to: one file for each of its kinds.
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

/// The program, or the shared library, of that package, kind and name.
fn find(messages: &str, package: &str, kind: &str, name: &str) -> Option<PathBuf> {
    messages.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok()).find_map(
        |message| {
            let target = message.target?;
            let is_shared = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "so");
            let file = match kind {
                "cdylib" => message.filenames.into_iter().find(is_shared),
                _ => message.executable,
            };
            (is_of(&message.package_id?, package)
                && target.name == name
                && target.kind.iter().any(|k| k == kind))
            .then_some(file)?
        },
    )
}

/// Whether a package id is of the package: `path+file:///folder#package@1.0.0`, or without the name where the folder has
/// it (cargo's reference, Package ID Specifications).
fn is_of(id: &str, package: &str) -> bool {
    let Some((source, rest)) = id.split_once('#') else { return false };
    let name = rest.split_once('@').map(|(name, _)| name);
    name.or_else(|| source.rsplit('/').next()) == Some(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","package_id":"path+file:///p/a#b@0.1.0","target":{"kind":["lib"],"name":"gpu"},"executable":null}
{"reason":"compiler-artifact","package_id":"path+file:///p/a#b@0.1.0","target":{"kind":["bin"],"name":"gpu"},"executable":"/t/release/gpu"}
{"reason":"compiler-artifact","package_id":"path+file:///p/c#0.1.0","target":{"kind":["test"],"name":"gpu"},"executable":"/t/release/deps/gpu-1"}
{"reason":"compiler-artifact","package_id":"path+file:///p/a#b@0.1.0","target":{"kind":["test"],"name":"gpu"},"executable":"/t/release/deps/gpu-2"}
{"reason":"compiler-artifact","package_id":"path+file:///p/c#0.1.0","target":{"kind":["cdylib","rlib"],"name":"c"},"filenames":["/t/release/libc.rlib","/t/release/libc.so"],"executable":null}
not JSON
{"reason":"build-finished","success":true}"#;
        assert_eq!(find(messages, "c", "test", "gpu"), Some("/t/release/deps/gpu-1".into()));
        assert_eq!(find(messages, "b", "test", "gpu"), Some("/t/release/deps/gpu-2".into()));
        assert_eq!(find(messages, "b", "bin", "gpu"), Some("/t/release/gpu".into()));
        assert_eq!(find(messages, "a", "bin", "gpu"), None);
        assert_eq!(find(messages, "c", "cdylib", "c"), Some("/t/release/libc.so".into()));
        assert_eq!(find(messages, "b", "test", "other"), None);
    }
}
