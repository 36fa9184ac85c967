//! Why something cannot be written. Where it stands is added by whoever knows: the loop over instructions,
//! the one over functions, the one over globals.

use crate::error::Error;

/// The tool's name in [`Error::Tool`].
const TOOL: &str = "legacy dialect writer";

/// Something that LLVM 7 or libNVVM's legacy dialect cannot say.
#[derive(Debug)]
pub(super) struct Refusal {
    why: String,
    instead: String,
}

/// What the writer's parts give.
pub(super) type Written<T> = std::result::Result<T, Refusal>;

/// Refuses: `why` it cannot be written, and what to use `instead`.
pub(super) fn refuse<T>(why: impl Into<String>, instead: impl Into<String>) -> Written<T> {
    Err(Refusal { why: why.into(), instead: instead.into() })
}

impl Refusal {
    /// The error for a caller: `what` was being written ("function `k`") when `text`, as LLVM 22 prints it,
    /// could not be.
    pub(super) fn at(self, what: &str, text: &str) -> Error {
        let quoted = if text.is_empty() { String::new() } else { format!("  {text}\n") };
        Error::Tool {
            tool: TOOL,
            operation: format!("writing {what}"),
            log: format!("{quoted}{}\nInstead: {}.", self.why, self.instead),
        }
    }
}
