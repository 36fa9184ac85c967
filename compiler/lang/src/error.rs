//! Errors of the front end, by responsible party.

use std::path::PathBuf;

use crate::diagnostics::{self, Diagnostic};

/// Why a stage failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program is wrong. The messages may include warnings.
    #[error("{}", diagnostics::listed(.0))]
    Program(Vec<Diagnostic>),
    /// A stage violated an invariant: a bug in Gridlet.
    #[error(
        "internal error in {stage}: {message}\nThis is a bug in Gridlet; please report it with the program."
    )]
    Internal {
        /// The name of the stage's folder.
        stage: &'static str,
        /// The violation.
        message: String,
    },
    /// The input or an option asks for something impossible.
    #[error("{0}")]
    Invalid(String),
    /// A source file is not UTF-8 text.
    #[error("{0}")]
    Unreadable(String),
    /// A file could not be read or written.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl Error {
    /// A bug of Gridlet in `stage`.
    pub fn internal(stage: &'static str, message: impl Into<String>) -> Self {
        Error::Internal { stage, message: message.into() }
    }
}

/// The result of a stage.
pub type Result<T> = std::result::Result<T, Error>;
