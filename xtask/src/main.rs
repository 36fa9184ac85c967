//! Every developer command of Gridlet, as `cargo xtask <command>`.
//!
//! This program prepares the machine for the other crates, so it depends on none of them and builds with
//! neither LLVM nor NVIDIA's compiler parts. All its output goes to standard error.

mod bundle;
#[path = "../../compiler/src/toolchain/cache.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "written for the compiler's library, which uses the rest"
)]
mod cache;
mod cli;
mod conformance;
mod fuzz;
mod package;
mod process;
mod programs;
mod report;
mod semver;
mod setup;
mod snapshots;
mod test;
mod wheel;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Setup(options) => setup::run(&options),
        Command::Demo(options) => programs::demo(&options),
        Command::Test(options) => test::run(&options),
        Command::Bless(options) => test::bless(&options),
        Command::Bench(options) => programs::bench(&options),
        Command::Bundle(options) => bundle::run(&options),
        Command::Package => package::run(),
        Command::Semver => semver::run(),
        Command::Conformance(options) => conformance::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Wheel => wheel::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::error(&error);
            ExitCode::FAILURE
        }
    }
}
