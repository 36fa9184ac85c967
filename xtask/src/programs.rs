//! `cargo xtask demo` and `cargo xtask bench`: programs of the examples' package.

use anyhow::Result;

use crate::cli::Passed;
use crate::{process, setup};

/// Compiles and, with a GPU, runs the example programs.
pub(crate) fn demo(options: &Passed) -> Result<()> {
    run("demo", options)
}

/// Measures.
pub(crate) fn bench(options: &Passed) -> Result<()> {
    run("bench", options)
}

fn run(program: &str, options: &Passed) -> Result<()> {
    let environment = setup::ready()?;
    let mut cargo = process::cargo();
    // Paths in the arguments are relative to the user's current folder.
    cargo.current_dir(std::env::current_dir()?);
    cargo.args(["run", "--release", "--package", "gridlet-examples", "--bin", program]);
    cargo.arg("--manifest-path").arg(process::workspace().join("Cargo.toml"));
    cargo.arg("--").args(&options.arguments);
    environment.apply(&mut cargo);
    process::run(&mut cargo)
}
