//! Writes the figures of a suite.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

use crate::plot::plot_file;

/// Results of the repository, written where the benchmark runs in a checkout.
const RESULTS: &str = "docs/results";
/// The environment variable with the commit of a bundle.
const COMMIT: &str = "GRIDLET_COMMIT";

/// Adds the day, and the commit if it is known.
fn with_origin(mut figures: Value) -> Value {
    figures["date"] = output(Command::new("date").args(["-u", "+%F"])).into();
    let describe = ["describe", "--always", "--dirty", "--exclude=*"];
    let commit = std::env::var(COMMIT).ok();
    figures["commit"] = commit.or_else(|| output(Command::new("git").args(describe))).into();
    figures
}

/// What a command prints, if it succeeds.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Writes `NAME.json` and `NAME.svg` to the folder and, in a checkout, beside the repository's results.
pub(crate) fn write(name: &str, figures: Value, folder: &Path) -> anyhow::Result<()> {
    let text = serde_json::to_vec_pretty(&with_origin(figures))?;
    let mut folders = vec![folder];
    let results = Path::new(RESULTS);
    if results.parent().is_some_and(Path::is_dir) {
        fs::create_dir_all(results)?;
        folders.push(results);
    }
    for folder in folders {
        let file = folder.join(format!("{name}.json"));
        fs::write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;
        let plot = plot_file(&file)?;
        println!("the suite's figures are in {} and {}", file.display(), plot.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_have_a_day() {
        let figures = with_origin(json!({"device": "a GPU"}));
        let date = figures["date"].as_str().unwrap_or_default();
        assert!(date.len() == 10 && date.starts_with("20"), "{figures}");
        assert_eq!(figures["device"], "a GPU");
    }
}
