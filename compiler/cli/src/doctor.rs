//! `gridlet doctor`

use std::fmt::Write as _;

use gridlet::diagnostics::ids;
use gridlet::doctor::{self, Report, Status};
use gridlet::toolchain::Toolchain;
use serde_json::json;

use crate::output::{print, print_json};
use crate::report::{Failure, Outcome};
use crate::status;

/// Options of `gridlet doctor`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Shows every component; fails if a required one is missing.
pub(crate) fn run(options: &Options) -> Outcome {
    let report = doctor::report(&Toolchain::discover());
    let gpu = match gridlet_runtime::Device::list() {
        Ok(devices) if devices.is_empty() => {
            Err("the driver is installed, but lists no GPU".to_owned())
        }
        Ok(devices) => Ok(devices.into_iter().map(|device| device.name).collect::<Vec<_>>()),
        Err(error) => Err(error.to_string()),
    };
    if options.json {
        let gpu = match &gpu {
            Ok(names) => json!({"found": true, "devices": names}),
            Err(why) => json!({"found": false, "why": why}),
        };
        print_json(&json!({"toolchain": report, "gpu": gpu}))?;
    } else {
        print(&describe(&report, &gpu))?;
    }
    if report.can_build() {
        return Ok(());
    }
    let missing: Vec<&str> = report
        .components
        .iter()
        .filter(|part| part.required && part.status != Status::Found)
        .map(|part| part.name)
        .collect();
    Err(Failure::new(
        status::MISSING,
        ids::MISSING_TOOL,
        format!(
            "building needs {}; `cargo xtask setup` installs the missing parts",
            missing.join(", ")
        ),
    ))
}

/// One line per component: where it was found, or the problem and its remedy.
fn describe(report: &Report, gpu: &Result<Vec<String>, String>) -> String {
    let width = report.components.iter().map(|part| part.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for part in &report.components {
        let version = part.version.as_deref().unwrap_or_default();
        let found = match (&part.path, &part.problem) {
            (_, Some(problem)) => problem.split(". Looked in").next().unwrap_or(problem),
            (Some(path), None) => path,
            (None, None) => part.purpose,
        };
        let mark = if part.status == Status::Found { "ok" } else { "--" };
        let _ = writeln!(text, "{mark}  {:width$}  {version:<14}  {found}", part.name);
        let optional = if part.required { "" } else { " (only tests and benchmarks need it)" };
        if part.status != Status::Found {
            let _ = writeln!(text, "    {:width$}  for: {}{optional}", "", part.purpose);
        }
    }
    let _ = match gpu {
        Ok(names) => writeln!(text, "ok  {:width$}  {:<14}  {}", "GPU", "", names.join(", ")),
        Err(why) => {
            let why = why.lines().next().unwrap_or_default();
            writeln!(
                text,
                "--  {:width$}  {:<14}  {why} (compiling needs no GPU; `--device cpu` runs without one)",
                "GPU", ""
            )
        }
    };
    text.push_str("\nsearched:\n");
    for place in &report.places {
        let folder = place.folder.as_deref().unwrap_or("not set");
        let _ = writeln!(text, "    {}: {folder}", place.origin);
    }
    text
}
