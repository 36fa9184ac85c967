//! Compilation in a child process, for modules of other producers: compilers of PTX end the process over some of them.

use std::fmt;
#[cfg(feature = "llvm")]
use std::sync::RwLockReadGuard;
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use serde::{Deserialize, Serialize};

use super::Ptx;
use super::libnvvm::PtxOutput;
use crate::child::{self, End, Limits};
use crate::error::{Error, Result};

/// The process in which a module is compiled to PTX.
#[derive(Clone, Copy)]
pub(crate) enum Process {
    /// This one: for modules that Gridlet made, over which the compiler does not end.
    #[cfg(feature = "llvm")]
    This,
    /// A child process.
    Child,
}

/// Why there is no PTX.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The compiler ended its process.
    Ended(Ended),
    /// Any other error.
    Failed(Error),
}

/// The end of a compiler's process.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// `libNVVM`
    pub(crate) tool: &'static str,
    /// The compiler's last words, or how the process ended.
    pub(crate) said: String,
    /// Whether it did not end, but refused the module.
    pub(crate) is_refusal: bool,
}

impl Ended {
    /// What the compiler does with the module.
    pub(crate) fn deed(&self) -> &'static str {
        if self.is_refusal { "refuses" } else { "ends over" }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the compiler {} the module: {}", self.deed(), self.said)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Ended(ended) => Error::Tool {
                tool: ended.tool,
                operation: COMPILING.into(),
                log: ended.to_string(),
            },
            Stop::Failed(error) => error,
        }
    }
}

/// The operation in messages.
pub(crate) const COMPILING: &str = "compilation";

/// The compilations in this process, which hold locks of their compiler and initialise its variables: a child must not start during one.
static INSIDE: RwLock<()> = RwLock::new(());

/// To be held during a compilation in this process.
#[cfg(feature = "llvm")]
pub(super) fn inside() -> RwLockReadGuard<'static, ()> {
    INSIDE.read().unwrap_or_else(PoisonError::into_inner)
}

fn none_inside() -> RwLockWriteGuard<'static, ()> {
    INSIDE.write().unwrap_or_else(PoisonError::into_inner)
}

/// The answer of the child.
#[derive(Serialize, Deserialize)]
enum Answer {
    Done { ptx: String, log: String },
    Refused { operation: String, log: String },
    Failed(String),
}

/// Runs a compilation by `tool` in a child process. No compilation runs in this process when the child starts.
///
/// # Errors
/// Those of `work`, if they are [`Error::Tool`] of that tool; [`Stop::Ended`].
pub(super) fn apart(
    tool: &'static str,
    work: impl FnOnce() -> Result<PtxOutput> + Send,
) -> std::result::Result<PtxOutput, Stop> {
    let answer = || {
        let answer = match work() {
            Ok(PtxOutput { ptx: Ptx(ptx), log }) => Answer::Done { ptx, log },
            Err(Error::Tool { operation, log, .. }) => Answer::Refused { operation, log },
            Err(other) => Answer::Failed(other.to_string()),
        };
        Ok(serde_json::to_vec(&answer).unwrap_or_default())
    };
    let ended = |said: String| Err(Stop::Ended(Ended { tool, said, is_refusal: false }));
    let bytes = match child::run(COMPILING, Limits::Working, none_inside, answer)? {
        End::Done(Ok(bytes)) => bytes,
        End::Done(Err(fatal)) => return ended(last_words(&fatal)),
        End::Died { how, said } if said.is_empty() => return ended(how.into()),
        End::Died { said, .. } => return ended(last_words(&said)),
    };
    match serde_json::from_slice(&bytes) {
        Ok(Answer::Done { ptx, log }) => Ok(PtxOutput { ptx: Ptx(ptx), log }),
        Ok(Answer::Refused { operation, log }) => Err(Error::Tool { tool, operation, log }.into()),
        Ok(Answer::Failed(message)) => Err(Error::internal("ptx", message).into()),
        Err(error) => Err(Error::internal("ptx", error.to_string()).into()),
    }
}

/// The first line of what LLVM says before it ends, without a stack trace and without addresses.
fn last_words(said: &str) -> String {
    let line = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line = line.split_once("LLVM ERROR: ").map_or(line, |(_, reason)| reason);
    let words = line.split(' ').filter(|word| !is_address(word));
    words.collect::<Vec<_>>().join(" ")
}

/// Whether a word is an address in the compiler's memory, `0x7f43ec05e290:`, which differs from run to run.
fn is_address(word: &str) -> bool {
    let digits = word.trim_end_matches([':', ',']).strip_prefix("0x");
    digits.is_some_and(|digits| {
        digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn last_words_have_no_addresses() {
        let said = "LLVM ERROR: Cannot select: 0x7f43ec05e290: f32 = fsin 0x7f43ec05e140\nstack";
        assert_eq!(last_words(said), "Cannot select: f32 = fsin");
        assert_eq!(last_words("no 0x10 here"), "no 0x10 here");
    }
}
