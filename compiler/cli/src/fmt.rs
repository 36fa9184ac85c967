//! `gridlet fmt`

use std::fs;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use gridlet::Error;
use gridlet::diagnostics::ids;
use gridlet::source::SourceMap;
use similar::{ChangeTag, TextDiff};

use crate::files;
use crate::output::print;
use crate::report::{Failure, Outcome, Reporter, has_colors};
use crate::status;

/// Options of `gridlet fmt`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Programs, or folders to search for `.grid` files; `-` formats standard input to standard
    /// output
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write nothing: show the changes, and fail if there are any
    #[arg(long)]
    check: bool,
}

/// Formats every file, even after one fails. The worst status wins.
pub(crate) fn run(options: &Options, reporter: &Reporter) -> Outcome {
    let mut worst = 0;
    for name in &options.files {
        let files = match name.as_os_str() == "-" || !name.is_dir() {
            true => vec![Ok(name.clone())],
            false => programs(name),
        };
        for file in files {
            let outcome = file.and_then(|file| one(&file, options.check, reporter));
            if let Err(failure) = outcome {
                reporter.failure(&failure);
                worst = worst.max(failure.status());
            }
        }
    }
    if worst == 0 { Ok(()) } else { Err(Failure::shown(worst)) }
}

/// The `.grid` files below a folder, sorted by name, without hidden ones.
fn programs(folder: &Path) -> Vec<Result<PathBuf, Failure>> {
    let is_hidden = |entry: &walkdir::DirEntry| {
        entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".")
    };
    let walk = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter();
    let entries = walk.filter_entry(|entry| !is_hidden(entry)).filter_map(|entry| match entry {
        Err(error) => Some(Err(Failure::new(status::CALL, ids::FILE, error.to_string()))),
        Ok(entry) => {
            let path = entry.into_path();
            let is_program = path.extension().is_some_and(|ending| ending == "grid");
            (is_program && path.is_file()).then_some(Ok(path))
        }
    });
    entries.collect()
}

/// Formats one file, or standard input.
fn one(path: &Path, check: bool, reporter: &Reporter) -> Outcome {
    let is_input = path.as_os_str() == "-";
    let name = if is_input { "<stdin>".to_owned() } else { path.display().to_string() };
    let sources = SourceMap::single(name.clone(), read(path, is_input)?);
    let formatted = gridlet::format::format(&sources)
        .map_err(|error| reporter.program(error.into(), &sources))?;
    let text = &sources.files()[0].text;
    match (check, is_input) {
        (true, _) if formatted == *text => Ok(()),
        (true, _) => {
            print(&diff(&name, text, &formatted))?;
            Err(Failure::new(
                status::PROGRAM,
                ids::NOT_FORMATTED,
                format!("{name}: is not formatted"),
            ))
        }
        (false, true) => print(&formatted),
        (false, false) if formatted == *text => Ok(()),
        (false, false) => files::write_all(&[(path.into(), formatted.as_bytes())]),
    }
}

fn read(path: &Path, is_input: bool) -> Result<String, Failure> {
    let io = |source| Failure::from(Error::Io { path: path.into(), source });
    let mut bytes = vec![];
    match is_input {
        true => drop(std::io::stdin().lock().read_to_end(&mut bytes).map_err(io)?),
        false => bytes = fs::read(path).map_err(io)?,
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message =
            format!("{}: not UTF-8 text at byte {at}; save the file as UTF-8", path.display());
        Failure::from(Error::Unreadable(message))
    })
}

/// Maximum number of lines, before and after together, from the first change to the last: the time
/// to compare them is quadratic.
const MAX_COMPARED: usize = 10_000;

/// The changes with three lines of context, as `diff -u` shows them.
fn diff(name: &str, before: &str, after: &str) -> String {
    let colours = has_colors(std::io::stdout().is_terminal());
    let mut shown = format!("--- {name}\n+++ {name}, formatted\n");
    let same = before.lines().zip(after.lines()).take_while(|(a, b)| a == b).count();
    let lines = |text: &str| text.lines().count() - same;
    let same_end = before.lines().rev().zip(after.lines().rev()).take_while(|(a, b)| a == b);
    let same_end = same_end.count().min(lines(before)).min(lines(after));
    if lines(before) + lines(after) - 2 * same_end > MAX_COMPARED {
        let (first, last) = (same + 1, same + lines(before) - same_end);
        return shown + &format!("too many changes to show, in lines {first} to {last}\n");
    }
    let diff = TextDiff::from_lines(before, after);
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        shown += &format!("{}\n", hunk.header());
        for change in hunk.iter_changes() {
            let (sign, colour) = match change.tag() {
                ChangeTag::Equal => (' ', ""),
                ChangeTag::Delete => ('-', "\x1b[31m"),
                ChangeTag::Insert => ('+', "\x1b[32m"),
            };
            // Without this, a change of line endings alone would be invisible.
            let line = change.value().trim_end_matches('\n').replace('\r', "\\r");
            match colours && !colour.is_empty() {
                true => shown += &format!("{colour}{sign}{line}\x1b[0m\n"),
                false => shown += &format!("{sign}{line}\n"),
            }
            if change.missing_newline() {
                shown += "\\ No newline at end of file\n";
            }
        }
    }
    shown
}
