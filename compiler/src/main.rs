//! The `gridlet` program. docs: `gridlet --help`, README.md.

mod commands;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::main()
}
