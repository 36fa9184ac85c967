//! `gridlet explain`

use std::fmt::Write as _;

use gridlet::diagnostics::{ids, reference};

use crate::output::print;
use crate::report::{Failure, Outcome};

/// Characters of a wrong id that are shown.
const LONGEST_SHOWN: usize = 60;

/// Options of `gridlet explain`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The id, as messages show it in brackets; without it, all are listed
    #[arg(value_name = "ID")]
    id: Option<String>,
}

/// Prints what the reference says of an id, or the list of all.
pub(crate) fn run(options: &Options) -> Outcome {
    let Some(id) = &options.id else { return print(&list()) };
    // As it stands in a message: `error[unknown-name]`.
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

/// The beginning of what cannot be an id, with nothing that a terminal obeys.
fn excerpt(text: &str) -> String {
    let begin: String = text.chars().take(LONGEST_SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST_SHOWN).is_some() { format!("{begin}…") } else { begin }
}

/// Every id with its meaning, one a line.
fn list() -> String {
    let width = ids::explained().map(|(id, _)| id.len()).max().unwrap_or(0);
    ids::explained().fold(String::new(), |mut text, (id, meaning)| {
        let _ = writeln!(text, "{id:width$}  {meaning}");
        text
    })
}
