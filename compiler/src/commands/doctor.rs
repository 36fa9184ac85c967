//! `gridlet doctor`

use std::fmt::Write as _;

use gridlet::toolchain::Toolchain;
use serde_json::json;

use super::report::Failure;
use super::{Outcome, print, print_json, status};

/// Options of `gridlet doctor`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Shows every component; fails if one that building needs is missing.
pub(crate) fn run(options: &Options) -> Outcome {
    let toolchain = Toolchain::discover();
    let report = toolchain.report();
    let driver = match gridlet_runtime::Device::list() {
        Ok(devices) if devices.is_empty() => Err("the driver is there, but no GPU".to_owned()),
        Ok(devices) => Ok(devices.iter().map(|device| device.name.clone()).collect::<Vec<_>>().join(", ")),
        Err(error) => Err(error.to_string()),
    };
    let missing: Vec<&str> =
        report.iter().filter(|part| part.required && !part.found()).map(|part| part.name.as_str()).collect();

    if options.json {
        let gpu = match &driver {
            Ok(names) => json!({"found": true, "devices": names}),
            Err(why) => json!({"found": false, "why": why}),
        };
        print_json(&json!({"components": report, "gpu": gpu}))?;
    } else {
        let width = report.iter().map(|part| part.name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for part in &report {
            let mark = if part.found() { "ok" } else { "--" };
            let _ = writeln!(text, "{mark}  {:width$}  {}", part.name, part.summary());
        }
        match &driver {
            Ok(names) => _ = writeln!(text, "ok  {:width$}  {names}", "GPU"),
            Err(why) => {
                let why = why.lines().next().unwrap_or_default();
                _ = writeln!(text, "--  {:width$}  {why} (compiling needs none; running does)", "GPU");
            }
        }
        print(&text)?;
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        status::MISSING,
        "missing-tool",
        format!("building needs {}; `cargo xtask setup` gets what is missing", missing.join(", ")),
    ))
}
