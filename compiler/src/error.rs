//! Compilation errors, by responsible party.

use std::path::PathBuf;

use gridlet_lang::diagnostics::{self, Diagnostic, ids};

/// An error of a stage.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program is wrong. The diagnostics may include warnings.
    #[error("{}", diagnostics::listed(.0))]
    Program(Vec<Diagnostic>),
    /// A stage violated its own rules: a bug in Gridlet.
    #[error(
        "internal error in {stage}: {message}\nThis is a bug in Gridlet; please report it with the program."
    )]
    Internal {
        /// The stage, by the name of its folder.
        stage: &'static str,
        /// A description of the violation.
        message: String,
    },
    /// A tool (libNVVM, nvJitLink, LLVM) refused its input.
    #[error("{tool}: {operation} failed{}", if .log.is_empty() { String::new() } else { format!(":\n{}", .log) })]
    Tool {
        /// `libNVVM`
        tool: &'static str,
        /// The attempted operation, with the tool's error code if it has one.
        operation: String,
        /// The tool's log, trimmed.
        log: String,
    },
    /// A tool or library is missing or too old.
    #[error("{what}\n{help}")]
    Missing {
        /// The missing part, and the places searched.
        what: String,
        /// What to install, or which variable to set.
        help: String,
    },
    /// The input or an option is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The input is invalid, at places that are known.
    #[error("{}", texts(.0))]
    Mistakes(Vec<Mistake>),
    /// A module of another front end or compiler is wrong.
    #[error("{message}")]
    Module {
        /// The id of the message, from [`gridlet_lang::diagnostics::ids`].
        id: &'static str,
        /// The description, with the module's name.
        message: String,
        /// What the description consists of, if that is known.
        mistakes: Vec<Mistake>,
    },
    /// A source file is not text.
    #[error("{0}")]
    Unreadable(String),
    /// The C compiler refuses the modules given to link, or cannot link them.
    #[error("the C compiler refuses a linked module:\n{log}")]
    Input {
        /// The compiler's messages.
        log: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The file's path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// Something that is wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mistake {
    /// Where it is, if that is known.
    pub place: Option<Place>,
    /// What is wrong. It names the input only if there is no place.
    pub message: String,
    /// The whole description, with the input's name and the place.
    pub text: String,
}

/// A line of an input, or of the source that its debug information names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The file's name.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1, if it is known.
    pub column: Option<u32>,
}

#[cfg(feature = "llvm")]
impl Mistake {
    /// A mistake in the input `name`.
    pub(crate) fn new(name: &str, place: Option<Place>, message: String) -> Self {
        let text = match &place {
            None => format!("{name}: {message}"),
            Some(Place { file, line, column }) => {
                let file = if file == name { file.clone() } else { format!("{name}: {file}") };
                let column = column.map_or_else(String::new, |column| format!("{column}:"));
                format!("{file}:{line}:{column} {message}")
            }
        };
        let message = if place.is_some() { message } else { text.clone() };
        Mistake { place, message, text }
    }
}

fn texts(mistakes: &[Mistake]) -> String {
    let texts: Vec<&str> = mistakes.iter().map(|mistake| mistake.text.as_str()).collect();
    texts.join("\n")
}

impl Error {
    /// A bug in Gridlet, found in `stage`.
    pub fn internal(stage: &'static str, message: impl Into<String>) -> Self {
        Error::Internal { stage, message: message.into() }
    }

    /// An error about a module of another front end, at no known place.
    pub fn module(id: &'static str, message: impl Into<String>) -> Self {
        Error::Module { id, message: message.into(), mistakes: vec![] }
    }

    /// The parts of the error, if it consists of some.
    pub fn mistakes(&self) -> &[Mistake] {
        match self {
            Error::Mistakes(mistakes) | Error::Module { mistakes, .. } => mistakes,
            _ => &[],
        }
    }

    /// An error about a module of NVVM IR: the module is at fault if a stage or a tool refuses it.
    pub fn in_nvvm_ir(error: Error) -> Self {
        match error {
            Error::Tool { .. } | Error::Invalid(_) => {
                Error::module(ids::NVVM_IR, error.to_string())
            }
            Error::Mistakes(mistakes) => {
                Error::Module { id: ids::NVVM_IR, message: texts(&mistakes), mistakes }
            }
            other => other,
        }
    }

    /// The id under which the reference of messages explains it. [`Error::Program`] has an id for each diagnostic.
    pub fn id(&self) -> &'static str {
        match self {
            Error::Program(_) => ids::PROGRAM,
            Error::Unreadable(_) => ids::UNREADABLE_SOURCE,
            Error::Module { id, .. } => id,
            Error::Input { .. } => ids::LINKED_SOURCE,
            Error::Internal { .. } => ids::INTERNAL_ERROR,
            Error::Tool { .. } => ids::TOOL_FAILED,
            Error::Missing { .. } => ids::MISSING_TOOL,
            Error::Invalid(_) | Error::Mistakes(_) => ids::WRONG_CALL,
            Error::Io { .. } => ids::FILE,
        }
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
            other => Error::Invalid(other.to_string()),
        }
    }
}

/// The result of a stage.
pub type Result<T> = std::result::Result<T, Error>;
