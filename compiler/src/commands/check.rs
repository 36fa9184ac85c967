//! `gridlet check`

use std::path::PathBuf;

use super::report::{Failure, Reporter};
use super::{Outcome, input};

/// Options of `gridlet check`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The programs
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Checks every file, also after one that is wrong. The worst status wins.
pub(crate) fn run(options: &Options, reporter: &Reporter) -> Outcome {
    let mut worst = 0;
    for file in &options.files {
        if let Err(failure) = input::checked(file, &[], reporter) {
            reporter.failure(&failure);
            worst = worst.max(failure.status());
        }
    }
    if worst == 0 { Ok(()) } else { Err(Failure::shown(worst)) }
}
