//! `gridlet explain`

use std::fmt::Write as _;

use gridlet::diagnostics::{ids, reference};

use crate::output::print;
use crate::report::{Failure, Outcome};

/// Characters of an unknown id that its error shows.
const LONGEST_SHOWN: usize = 60;

/// Options of `gridlet explain`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The id, as messages show it in brackets; without it, all ids are listed
    #[arg(value_name = "ID")]
    id: Option<String>,
}

/// Prints the reference entry of an id, or the list of all ids.
pub(crate) fn run(options: &Options) -> Outcome {
    let Some(id) = &options.id else { return print(&list()) };
    // Accepts an id as copied from a message: `error[unknown-name]`.
    let bare = id.rsplit_once('[').map_or(id.as_str(), |(_, rest)| rest.trim_end_matches(']'));
    match reference::entry(bare) {
        Some(entry) => print(&format!("{bare}\n\n{}\n", entry.text)),
        None => {
            let near = match ids::nearest(bare) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`gridlet explain` lists them all".to_owned(),
            };
            Err(Failure::call(format!("no message has the id `{}`; {near}", excerpt(bare))))
        }
    }
}

/// An invalid id, cut short and with control characters escaped.
fn excerpt(text: &str) -> String {
    let begin: String = text.chars().take(LONGEST_SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST_SHOWN).is_some() { format!("{begin}…") } else { begin }
}

/// Every id with its meaning, one per line.
fn list() -> String {
    let width = ids::explained().map(|(id, _)| id.len()).max().unwrap_or(0);
    ids::explained().fold(String::new(), |mut text, (id, meaning)| {
        let _ = writeln!(text, "{id:width$}  {meaning}");
        text
    })
}
