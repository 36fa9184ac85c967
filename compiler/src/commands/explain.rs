//! `gridlet explain`

use std::fmt::Write as _;

use gridlet::diagnostics::{ids, reference};

use super::report::Failure;
use super::{Outcome, print};

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
            Err(Failure::call(format!("no message has the id `{bare}`; {near}")))
        }
    }
}

/// Every id with its meaning, one a line.
fn list() -> String {
    let width = ids::explained().map(|(id, _)| id.len()).max().unwrap_or(0);
    ids::explained().fold(String::new(), |mut text, (id, meaning)| {
        let _ = writeln!(text, "{id:width$}  {meaning}");
        text
    })
}
