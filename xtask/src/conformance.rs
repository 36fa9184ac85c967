//! `cargo xtask conformance`: the corpora through the toolkits that Gridlet claims to work with.

use anyhow::Result;

use crate::{cli, process, setup};

/// Fetches the toolkits and runs the test of `nvvm-tests` that reads them.
pub(crate) fn run(options: &cli::Conformance) -> Result<()> {
    let environment = setup::ready()?;
    let toolkits = match options.toolkits.is_empty() {
        true => setup::conformance_toolkits()?,
        false => options.toolkits.iter().map(std::path::absolute).collect::<Result<_, _>>()?,
    };
    let mut cargo = process::cargo();
    environment.apply(&mut cargo);
    cargo.env("GRIDLET_TOOLKITS", std::env::join_paths(toolkits)?);
    cargo.args(["test", "--package", "nvvm-tests", "--test", "suite", "--"]);
    cargo.args(["--exact", "toolkits::every_toolkit_takes_every_program", "--nocapture"]);
    process::run(&mut cargo)
}
