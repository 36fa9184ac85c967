//! The `gridlet` program: one file per subcommand, and the code they share. `main.rs` and the Python package call
//! [`run`].
//!
//! Results go to standard output, everything else to standard error. The exit status tells whether
//! the program, the command line, the machine or Gridlet is at fault: `report.rs` says how.

mod arguments;
mod build;
mod cache;
mod check;
mod device;
mod doctor;
mod explain;
mod files;
mod fmt;
mod input;
mod interrupt;
mod layout;
mod output;
mod probe;
mod quotes;
mod report;
mod run;
mod statistics;
mod status;
mod value;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use report::{Failure, MessageFormat, Reporter};

/// Compiles kernels that launch kernels.
#[derive(Parser)]
#[command(name = "gridlet", version, about, max_term_width = 100)]
struct Cli {
    /// The format of errors
    #[arg(long, value_enum, global = true, default_value = "human", value_name = "FORMAT")]
    message_format: MessageFormat,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check programs for errors without building them
    Check(check::Options),
    /// Format programs in the language's one style
    Fmt(fmt::Options),
    /// Compile a program
    Build(build::Options),
    /// Show the parameter buffers of a program's kernels
    Layout(layout::Options),
    /// Run a kernel on a GPU or on the CPU
    Run(run::Options),
    /// List the devices and their capabilities
    Device(device::Options),
    /// Measure the behaviour of the driver
    Probe(probe::Options),
    /// Explain a message and how to resolve it
    Explain(explain::Options),
    /// Show or clear the cache of compiled programs
    Cache(cache::Options),
    /// Show which compiler parts were found, and how to install missing ones
    Doctor(doctor::Options),
}

/// Parses the command line, whose first word is the program's own name, and runs it. Returns the exit status.
///
/// `restart` is the command that starts the program again, if it is not this process's file: `gridlet probe` measures in
/// processes of their own.
pub fn run(arguments: Vec<OsString>, restart: Option<Vec<OsString>>) -> u8 {
    if let Some(command) = restart {
        probe::set_restart(command);
    }
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return refused(&error, &arguments),
    };
    let reporter = Reporter::new(cli.message_format);
    interrupt::install();
    let outcome = match cli.command {
        Command::Check(options) => check::run(&options, &reporter),
        Command::Fmt(options) => fmt::run(&options, &reporter),
        Command::Build(options) => build::run(&options, &reporter),
        Command::Layout(options) => layout::run(&options, &reporter),
        Command::Run(options) => run::run(&options, &reporter),
        Command::Device(options) => device::run(&options),
        Command::Probe(options) => probe::run(&options, &reporter),
        Command::Explain(options) => explain::run(&options),
        Command::Cache(options) => cache::run(&options),
        Command::Doctor(options) => doctor::run(&options),
    };
    match outcome {
        Ok(()) => status::SUCCESS,
        Err(failure) => {
            reporter.failure(&failure);
            failure.status()
        }
    }
}

/// Shows an error of the command line, in the format that the command line asks for, or the help.
fn refused(error: &clap::Error, arguments: &[OsString]) -> u8 {
    let is_json = arguments.iter().any(|argument| argument == "--message-format=json")
        || arguments.windows(2).any(|pair| pair[0] == "--message-format" && pair[1] == "json");
    if !error.use_stderr() || !is_json {
        let _ = error.print();
        return u8::try_from(error.exit_code()).unwrap_or(status::CALL);
    }
    let text = error.render().to_string();
    let text = text.trim().trim_start_matches("error: ");
    let (message, hint) =
        text.split_once("\n\n").map_or((text, None), |(message, hint)| (message, Some(hint)));
    let failure = Failure::call(message).with_hint(hint);
    Reporter::new(MessageFormat::Json).failure(&failure);
    failure.status()
}
