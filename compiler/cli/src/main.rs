//! The `gridlet` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(gridlet_cli::run(std::env::args_os().collect(), None))
}
