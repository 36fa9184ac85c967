//! How a grid fails.

use std::fmt;

/// The kinds of [`Failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// `trap()`
    Trap,
    /// A failed `assert`.
    Assert,
    /// Something undefined, such as an access outside an allocation, or something that the model lacks.
    Wrong,
    /// Every thread waits.
    Deadlock,
    /// The grid did not end within [`crate::Options::max_steps`].
    Endless,
}

/// A grid that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What happened.
    pub kind: FailureKind,
    /// What happened, in words.
    pub message: String,
    /// The thread that failed and its calls, if one thread did.
    pub place: String,
    /// Where every thread is.
    pub threads: String,
    /// The output of `printf` before.
    pub printed: String,
    /// The number of operations before, over all threads.
    pub steps: u64,
    /// The pairs of accesses before that nothing orders, if they were looked for.
    pub races: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { kind, message, place, threads, printed, steps, races } = self;
        write!(
            f,
            "{kind:?} after {steps} operations: {message}\n{place}\n{threads}{printed}{}",
            races.join("\n")
        )
    }
}

impl std::error::Error for Failure {}
