//! Writes the figures of a suite.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use crate::plot::plot_file;

/// Results of the repository, written where the benchmark runs in a checkout.
const RESULTS: &str = "docs/results";

/// Writes `NAME.json` and `NAME.svg` to the folder and, in a checkout, beside the repository's results.
pub(crate) fn write(name: &str, figures: &Value, folder: &Path) -> anyhow::Result<()> {
    let text = serde_json::to_vec_pretty(figures)?;
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
