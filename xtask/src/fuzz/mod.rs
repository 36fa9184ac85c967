//! `cargo xtask fuzz`: runs the fuzz targets of `compiler/fuzz` with libFuzzer. `cargo xtask bundle --fuzz` packs them
//! for another machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{cli, process, report, setup};

/// The version of cargo-fuzz to install if there is none.
const CARGO_FUZZ: &str = "0.13.2";
/// Folders of programs to start with, below `compiler/tests/in`.
const PROGRAMS: [&str; 6] = ["ok", "errors", "format", "right", "warnings", "wrong"];
/// An input that takes longer or more memory is a finding. `run-fuzz` of the bundle has the same.
const LIMITS: [&str; 3] = ["-timeout=20", "-rss_limit_mb=4096", "-print_final_stats=1"];

/// Runs one target, or all of them one after another.
pub(crate) fn run(options: &cli::Fuzz) -> Result<()> {
    let environment = setup::ready()?;
    let package = package();
    let known = targets(&package)?;
    let chosen = match &options.target {
        None => known,
        Some(name) => {
            ensure!(known.contains(name), "no target `{name}`: there are {}", known.join(", "));
            vec![name.clone()]
        }
    };
    let mut found = vec![];
    for target in chosen {
        let mut command = cargo_fuzz("run", &environment)?;
        command.arg(&target);
        let own = found_folder(&target);
        std::fs::create_dir_all(&own)?;
        command.arg(own);
        for folder in corpora(&package, &target)? {
            command.arg(folder);
        }
        command.arg("--").arg(format!("-max_total_time={}", options.seconds));
        command.args(LIMITS);
        command.arg(format!("-dict={}", package.join("tokens.dict").display()));
        report::step(&process::shown(&command));
        if process::run(&mut command).is_err() {
            found.push(target);
        }
    }
    if !found.is_empty() {
        report::note(
            "The input that it failed on is under compiler/fuzz/artifacts. Mend the fault, then keep the input, made as small \
             as it goes with `cargo fuzz tmin`, in compiler/fuzz/corpus: a test tries all that is there.",
        );
        bail!("these targets ended badly: {}", found.join(", "));
    }
    Ok(())
}

/// The package of the targets.
pub(crate) fn package() -> PathBuf {
    process::workspace().join("compiler/fuzz")
}

/// The targets, by the folders of their corpora.
pub(crate) fn targets(package: &Path) -> Result<Vec<String>> {
    let mut names = vec![];
    for entry in
        std::fs::read_dir(package.join("corpus")).context("cannot list the fuzz targets")?
    {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// The folder with the initial inputs of a target.
pub(crate) fn corpora(package: &Path, target: &str) -> Result<Vec<PathBuf>> {
    let mut folders = vec![package.join("corpus").join(target)];
    if matches!(target, "parse" | "check" | "format") {
        let programs = process::workspace().join("compiler/tests/in");
        folders.extend(PROGRAMS.map(|name| programs.join(name)));
    }
    Ok(folders)
}

/// The folder with the inputs that a fuzzer found on this machine, outside of version control.
pub(crate) fn found_folder(target: &str) -> PathBuf {
    process::target_folder().join("fuzz/corpus").join(target)
}

/// Builds all targets and returns their programs, in the order of the targets.
pub(crate) fn build(environment: &setup::Environment, targets: &[String]) -> Result<Vec<PathBuf>> {
    let mut command = cargo_fuzz("build", environment)?;
    report::step(&process::shown(&command));
    process::run(&mut command)?;
    let folder = process::target_folder().join("fuzz").join(triple()).join("release");
    Ok(targets.iter().map(|target| folder.join(target)).collect())
}

/// The machine to build for, named explicitly so that the programs' folder is known.
fn triple() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// `cargo fuzz WORD` for the package: the program on PATH, or our own, which is installed first if need be.
fn cargo_fuzz(word: &str, environment: &setup::Environment) -> Result<Command> {
    let program = match process::find_program("cargo-fuzz") {
        Some(program) => program,
        None => own_cargo_fuzz()?,
    };
    let mut command = Command::new(program);
    environment.apply(&mut command);
    command.current_dir(process::workspace());
    // Without a sanitizer, which needs nightly Rust: the code that reads files has little `unsafe`.
    command.args(["fuzz", word, "--sanitizer", "none", "--target", &triple(), "--fuzz-dir"]);
    command.arg(package()).arg("--target-dir").arg(process::target_folder().join("fuzz"));
    Ok(command)
}

fn own_cargo_fuzz() -> Result<PathBuf> {
    let root = process::target_folder().join("tools");
    let program = root.join("bin/cargo-fuzz");
    if !program.exists() {
        report::step(&format!("installing cargo-fuzz {CARGO_FUZZ}"));
        let mut cargo = process::cargo();
        cargo
            .args(["install", "cargo-fuzz", "--locked", "--version", CARGO_FUZZ, "--root"])
            .arg(root);
        process::run(&mut cargo)?;
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_a_program_of_the_package() {
        let package = process::workspace().join("compiler/fuzz");
        let manifest = std::fs::read_to_string(package.join("Cargo.toml")).unwrap();
        let targets = targets(&package).unwrap();
        assert!(!targets.is_empty());
        for target in &targets {
            assert!(
                manifest
                    .contains(&format!("\nname = \"{target}\"\npath = \"targets/{target}.rs\"\n")),
                "{target}"
            );
            assert!(package.join("targets").join(format!("{target}.rs")).is_file(), "{target}");
        }
        assert_eq!(manifest.matches("[[bin]]").count(), targets.len());
    }
}
