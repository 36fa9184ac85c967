//! The errors of the stages that need no tool, by responsible party.

use std::path::PathBuf;

use crate::diagnostics::Diagnostic;

/// Why a stage gave no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is wrong. Warnings may stand among the errors.
    #[error("the program has {} error(s)", .0.len())]
    Program(Vec<Diagnostic>),
    /// A stage broke its own rules: a bug of Gridlet.
    #[error(
        "internal error in {stage}: {message}\nThis is a bug in Gridlet; please report it with the program."
    )]
    Internal {
        /// The stage, as its folder is called.
        stage: &'static str,
        /// What was found.
        message: String,
    },
    /// The input or an option asks for something that cannot be.
    #[error("{0}")]
    Invalid(String),
    /// A source file is not text.
    #[error("{0}")]
    Unreadable(String),
    /// A file could not be read or written.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Error {
    /// A bug of ours, found in `stage`.
    pub fn internal(stage: &'static str, message: impl Into<String>) -> Self {
        Error::Internal { stage, message: message.into() }
    }
}

/// What a stage gives.
pub type Result<T> = std::result::Result<T, Error>;
