//! Which programs travel, and building them.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::process;
use crate::setup::Environment;

/// Programs, by package and name; they go to `bin`.
const PROGRAMS: [(&str, &str); 4] = [
    ("gridlet", "gridlet"),
    ("gridlet-examples", "demo"),
    ("gridlet-examples", "bench"),
    ("nvvm-tests", "differential"),
];
/// The tests that need a GPU, by package and name of the test; they go to `tests/<package>-<name>`.
const TESTS: [(&str, &str); 8] = [
    ("gridlet", "built_ins"),
    ("gridlet", "corpus"),
    ("gridlet", "edge_values"),
    ("gridlet", "gpu"),
    ("gridlet", "language"),
    ("gridlet-examples", "gpu"),
    ("gridlet-examples", "typed"),
    ("gridlet-runtime", "gpu"),
];

/// A program of the bundle.
pub(super) struct Program {
    /// Where cargo put it.
    pub(super) file: PathBuf,
    /// Where it goes, below the folder that is packed.
    pub(super) place: PathBuf,
}

/// Builds all of them, optimised.
pub(super) fn build(environment: &Environment) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for (package, name) in PROGRAMS {
        let file =
            executable(environment, &["build", "--package", package, "--bin", name], "bin", name)?;
        programs.push(Program { file, place: PathBuf::from("bin").join(name) });
    }
    for (package, name) in TESTS {
        let words = ["test", "--no-run", "--package", package, "--test", name];
        let file = executable(environment, &words, "test", name)?;
        programs.push(Program { file, place: PathBuf::from(format!("tests/{package}-{name}")) });
    }
    Ok(programs)
}

/// What cargo says of a thing it built; other messages lack the fields.
#[derive(Deserialize)]
struct Message {
    target: Option<Target>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

/// Runs cargo with `words` and gives the program of that kind and name.
fn executable(
    environment: &Environment,
    words: &[&str],
    kind: &str,
    name: &str,
) -> Result<PathBuf> {
    let mut cargo = process::cargo();
    environment.apply(&mut cargo);
    cargo.args(words).args(["--release", "--message-format", "json-render-diagnostics"]);
    let output = cargo.stderr(Stdio::inherit()).output().context("could not start cargo")?;
    if !output.status.success() {
        bail!("{} ended with {}", process::shown(&cargo), output.status);
    }
    find(&String::from_utf8_lossy(&output.stdout), kind, name)
        .with_context(|| format!("{} made no program `{name}`", process::shown(&cargo)))
}

fn find(messages: &str, kind: &str, name: &str) -> Option<PathBuf> {
    messages.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok()).find_map(
        |message| {
            let target = message.target?;
            (target.name == name && target.kind.iter().any(|k| k == kind))
                .then_some(message.executable)?
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_among_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"gpu"},"executable":null}
{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"gpu"},"executable":"/t/release/gpu"}
{"reason":"compiler-artifact","target":{"kind":["test"],"name":"gpu"},"executable":"/t/release/deps/gpu-1"}
not JSON
{"reason":"build-finished","success":true}"#;
        assert_eq!(find(messages, "test", "gpu"), Some("/t/release/deps/gpu-1".into()));
        assert_eq!(find(messages, "bin", "gpu"), Some("/t/release/gpu".into()));
        assert_eq!(find(messages, "test", "other"), None);
    }
}
