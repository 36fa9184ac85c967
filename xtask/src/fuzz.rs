//! `cargo xtask fuzz`: runs the fuzz targets of `compiler/fuzz` with libFuzzer.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{cli, process, report, setup};

/// The version of cargo-fuzz that is installed where there is none.
const CARGO_FUZZ: &str = "0.13.2";

/// Runs one target, or all of them one after another.
pub(crate) fn run(options: &cli::Fuzz) -> Result<()> {
    let environment = setup::ready()?;
    let package = process::workspace().join("compiler/fuzz");
    let known = targets(&package)?;
    let chosen = match &options.target {
        None => known,
        Some(name) => {
            ensure!(known.contains(name), "no target `{name}`: there are {}", known.join(", "));
            vec![name.clone()]
        }
    };
    let program = cargo_fuzz()?;
    let mut found = vec![];
    for target in chosen {
        let mut command = Command::new(&program);
        environment.apply(&mut command);
        command.current_dir(process::workspace());
        // Without a sanitizer, which only a nightly Rust has: there is little `unsafe` in what reads files.
        command.args(["fuzz", "run", "--sanitizer", "none", "--fuzz-dir"]).arg(&package);
        command.arg("--target-dir").arg(process::target_folder().join("fuzz")).arg(&target);
        for folder in corpora(&package, &target)? {
            command.arg(folder);
        }
        command.arg("--").arg(format!("-max_total_time={}", options.seconds));
        command.args(["-timeout=20", "-rss_limit_mb=4096", "-print_final_stats=1"]);
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

/// The targets, by the folders of their corpora.
fn targets(package: &Path) -> Result<Vec<String>> {
    let mut names = vec![];
    for entry in
        std::fs::read_dir(package.join("corpus")).context("cannot list the fuzz targets")?
    {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Where a target's inputs lie. The fuzzer writes new ones to the first, which is no part of the repository.
fn corpora(package: &Path, target: &str) -> Result<Vec<PathBuf>> {
    let own = process::target_folder().join("fuzz/corpus").join(target);
    std::fs::create_dir_all(&own)?;
    let mut folders = vec![own, package.join("corpus").join(target)];
    if matches!(target, "parse" | "check" | "format") {
        let programs = process::workspace().join("compiler/tests/in");
        folders.extend(["ok", "errors"].map(|name| programs.join(name)));
    }
    Ok(folders)
}

/// The program `cargo-fuzz`: the one on PATH, or our own, which is installed first if need be.
fn cargo_fuzz() -> Result<PathBuf> {
    if let Some(program) = process::find_program("cargo-fuzz") {
        return Ok(program);
    }
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
