//! `gridlet probe`

mod launch_queue;
mod measure;
mod plot;

pub(crate) use measure::set_restart;

use super::report::Reporter;
use crate::report::Outcome;

/// Options of `gridlet probe`.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Measure how many launches fit before the host blocks, one process per setting
    LaunchQueue(launch_queue::Options),
}

/// Runs the chosen measurement.
pub(crate) fn run(options: &Options, reporter: &Reporter) -> Outcome {
    match &options.what {
        What::LaunchQueue(options) => launch_queue::run(options, reporter),
    }
}
