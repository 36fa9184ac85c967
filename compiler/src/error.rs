//! Compilation errors, by responsible party.

use std::path::PathBuf;

use gridlet_lang::diagnostics::Diagnostic;

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
    /// A tool (libNVVM, nvJitLink, LLVM) refused its input.
    #[error("{tool}: {operation} failed{}", if .log.is_empty() { String::new() } else { format!(":\n{}", .log) })]
    Tool {
        /// `libNVVM`
        tool: &'static str,
        /// What was asked of it, with the tool's error code where it has one.
        operation: String,
        /// What the tool wrote, trimmed.
        log: String,
    },
    /// A tool or library is not there, or too old.
    #[error("{what}\n{help}")]
    Missing {
        /// What is missing, and where it was looked for.
        what: String,
        /// What to install or which variable to set.
        help: String,
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

impl From<gridlet_lang::Error> for Error {
    fn from(error: gridlet_lang::Error) -> Self {
        match error {
            gridlet_lang::Error::Program(diagnostics) => Error::Program(diagnostics),
            gridlet_lang::Error::Internal { stage, message } => Error::Internal { stage, message },
            gridlet_lang::Error::Invalid(message) => Error::Invalid(message),
            gridlet_lang::Error::Unreadable(message) => Error::Unreadable(message),
            gridlet_lang::Error::Io { path, source } => Error::Io { path, source },
        }
    }
}

/// What a stage gives.
pub type Result<T> = std::result::Result<T, Error>;
