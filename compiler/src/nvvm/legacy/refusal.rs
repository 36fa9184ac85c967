//! Why a construct cannot be written. The loops over instructions, functions and globals add its
//! position.

use crate::error::Error;

/// The tool's name in [`Error::Tool`].
pub(crate) const TOOL: &str = "legacy dialect writer";

/// A construct that LLVM 7 or libNVVM's legacy dialect cannot express.
#[derive(Debug)]
pub(super) struct Refusal {
    why: String,
    instead: String,
}

/// The result of the writer's functions.
pub(super) type Written<T> = std::result::Result<T, Refusal>;

/// Refuses a construct: `why` it cannot be written, and what to use `instead`.
pub(super) fn refuse<T>(why: impl Into<String>, instead: impl Into<String>) -> Written<T> {
    Err(Refusal { why: why.into(), instead: instead.into() })
}

impl Refusal {
    /// The error for a caller: the item being written, as in "function `k`", and the refused
    /// construct `text`, as LLVM 22 prints it.
    pub(super) fn at(self, what: &str, text: &str) -> Error {
        let quoted = if text.is_empty() { String::new() } else { format!("  {text}\n") };
        Error::Tool {
            tool: TOOL,
            operation: format!("writing {what}"),
            log: format!("{quoted}{}\nInstead: {}.", self.why, self.instead),
        }
    }
}
