//! Failures and how they are reported.

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};

use gridlet::Error;
use gridlet::diagnostics::{self, Diagnostic, ids};
use gridlet::error::Mistake;
use gridlet::source::SourceMap;
use gridlet_runtime::Findings;
use gridlet_runtime::cpu::check::{Report, render_all};
use serde_json::json;

use clap::ValueEnum;

use crate::arguments::Refused;
use crate::status;

/// The format of errors.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub(crate) enum MessageFormat {
    /// For people: the source line with a caret.
    Human,
    /// For tools: one JSON object per line.
    Json,
}

/// The result of a command.
pub(crate) type Outcome = Result<(), Failure>;

/// Why a command failed. Its messages about the program may have been shown already.
#[derive(Debug)]
pub(crate) struct Failure {
    status: u8,
    /// A stable id for tools, and the message; `None` if everything was already reported.
    message: Option<(&'static str, String)>,
    /// The remedy.
    hint: Option<String>,
    /// The file and the line that the whole message is about.
    place: Option<Box<(String, u32)>>,
    /// What the message consists of, if that is known.
    mistakes: Vec<Mistake>,
}

impl Failure {
    /// A failure whose message has no place in the source.
    pub(crate) fn new(status: u8, id: &'static str, message: impl Into<String>) -> Self {
        debug_assert!(ids::explained().any(|(known, _)| known == id), "`{id}` is not explained");
        Failure { message: Some((id, message.into())), ..Failure::shown(status) }
    }

    /// Adds a hint: the remedy.
    pub(crate) fn with_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hint = hint.map(Into::into);
        self
    }

    /// Adds the line that the failure is about.
    pub(crate) fn with_place(mut self, file: &str, line: u32) -> Self {
        self.place = Some(Box::new((file.to_owned(), line)));
        self
    }

    /// A wrong command line.
    pub(crate) fn call(message: impl Into<String>) -> Self {
        Failure::new(status::CALL, ids::WRONG_CALL, message)
    }

    /// A failure that was already reported.
    pub(crate) fn shown(status: u8) -> Self {
        Failure { status, message: None, hint: None, place: None, mistakes: vec![] }
    }

    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        self.status
    }
}

/// Whether the machine, not the command line, keeps a file from being written.
fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, OutOfMemory, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge | OutOfMemory)
}

/// For errors that are shown without source; `Program` errors go through [`Reporter::program`].
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Program(_)
            | Error::Unreadable(_)
            | Error::Module { .. }
            | Error::Input { .. } => status::PROGRAM,
            Error::Internal { .. } => status::INTERNAL,
            Error::Tool { .. } | Error::Missing { .. } => status::MISSING,
            Error::Io { source, .. } if is_full(source) => status::MISSING,
            // The command line, or a file that it names.
            _ => status::CALL,
        };
        let mistakes = error.mistakes().to_vec();
        Failure { mistakes, ..Failure::new(status, error.id(), error.to_string()) }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Text(message) => Failure::call(message),
            Refused::Memory(bytes) => {
                gridlet_runtime::Error::CpuMemory { bytes: bytes as u64 }.into()
            }
        }
    }
}

impl From<gridlet_artifact::ArtifactError> for Failure {
    fn from(error: gridlet_artifact::ArtifactError) -> Self {
        gridlet_runtime::Error::from(error).into()
    }
}

impl From<gridlet_runtime::Error> for Failure {
    fn from(error: gridlet_runtime::Error) -> Self {
        use gridlet_runtime::Error;
        let (status, id) = match &error {
            _ if error.is_missing() => (status::MISSING, ids::MISSING_DEVICE),
            Error::LostLaunches(_) => (status::RUN, ids::LOST_LAUNCHES),
            Error::Cuda(_)
            | Error::Fault(_)
            | Error::CpuFault(_)
            | Error::CpuMemory { .. }
            | Error::TimedOut { .. }
            | Error::Unusable { .. } => (status::RUN, ids::RUN_FAILED),
            Error::Checked(_) => (status::RUN, ids::CHECK_FAILED),

            Error::ParameterMismatch { .. } => (status::INTERNAL, ids::INTERNAL_ERROR),
            // The command line, or the artifact that it names.
            _ => (status::CALL, ids::WRONG_CALL),
        };
        Failure::new(status, id, error.to_string()).with_hint(error.hint())
    }
}

/// Whether to write colours to a stream: to terminals that can show them, unless `NO_COLOR` is set.
pub(crate) fn has_colors(is_terminal: bool) -> bool {
    let variable = |name| std::env::var_os(name);
    is_terminal && allows_colors(variable("NO_COLOR"), variable("TERM"))
}

fn allows_colors(no_color: Option<OsString>, terminal: Option<OsString>) -> bool {
    no_color.is_none() && terminal.is_none_or(|terminal| terminal != "dumb")
}

/// Writes to standard error. A failure to write is ignored: the exit status still tells the result.
fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Shows messages in the requested format.
pub(crate) struct Reporter {
    format: MessageFormat,
}

impl Reporter {
    pub(crate) fn new(format: MessageFormat) -> Self {
        Reporter { format }
    }

    /// Shows messages about a program.
    pub(crate) fn diagnostics(&self, diagnostics: &[Diagnostic], sources: &SourceMap) {
        match self.format {
            MessageFormat::Human => {
                let color = has_colors(std::io::stderr().is_terminal());
                say(&diagnostics::render(diagnostics, sources, color));
            }
            MessageFormat::Json => {
                for diagnostic in diagnostics {
                    say(&format!("{}\n", diagnostics::to_json(diagnostic, sources)));
                }
            }
        }
    }

    /// Shows the diagnostics of a failed program, and returns the failure that remains to be
    /// reported.
    pub(crate) fn program(&self, error: Error, sources: &SourceMap) -> Failure {
        match error {
            Error::Program(messages) => {
                self.diagnostics(&messages, sources);
                Failure::shown(status::PROGRAM)
            }
            other => other.into(),
        }
    }

    /// Shows the findings of `--check`, with lines of `sources` if available, and returns the
    /// failure that remains to be reported.
    pub(crate) fn findings(&self, findings: &Findings, sources: Option<&SourceMap>) -> Failure {
        // Artifacts hold machine-independent names; messages use the path from the current folder.
        let file = |name: &str| sources?.files().iter().find(|known| known.name == name);
        let mut reports = findings.reports.clone();
        for place in reports.iter_mut().flat_map(Report::places_mut) {
            if let (Some(sources), Some(file)) = (sources, file(&place.file)) {
                place.file = sources.shown_name(file);
            }
        }
        let line = |shown: &str, line: u32| {
            let sources = sources?;
            let mut files = sources.files().iter().filter(|file| sources.shown_name(file) == shown);
            // Two files may have one name; which of them is meant is unknown then.
            let file = files.next().filter(|_| files.next().is_none())?;
            diagnostics::shown_line(file, line)
        };
        match self.format {
            MessageFormat::Human => {
                say(&render_all(&reports, findings.further, &line));
            }
            MessageFormat::Json => {
                for report in &reports {
                    let value = json!({
                        "file": report.place.file,
                        "line": report.place.line,
                        "severity": "error",
                        "id": report.kind.id(),
                        "message": report.message,
                        "hint": report.help,
                        "finding": report,
                    });
                    say(&format!("{value}\n"));
                }
            }
        }
        Failure::shown(status::RUN)
    }

    /// Shows a warning that is not about a place in the source.
    pub(crate) fn warning(&self, id: &str, message: &str) {
        self.aside("warning", id, message);
    }

    /// Shows a note.
    pub(crate) fn note(&self, id: &str, message: &str) {
        self.aside("note", id, message);
    }

    fn aside(&self, severity: &str, id: &str, message: &str) {
        match self.format {
            MessageFormat::Human => {
                say(&format!("{severity}: {}\n", diagnostics::shown_text(message)));
            }
            MessageFormat::Json => {
                let value = json!({"severity": severity, "id": id, "message": message});
                say(&format!("{value}\n"));
            }
        }
    }

    /// Shows a failure.
    pub(crate) fn failure(&self, failure: &Failure) {
        if let Some(text) = self.text(failure) {
            say(&format!("{text}\n"));
        }
    }

    /// The rendered failure; `None` if everything was already reported.
    fn text(&self, failure: &Failure) -> Option<String> {
        let (id, message) = failure.message.as_ref()?;
        let hint = failure.hint.as_deref();
        Some(match self.format {
            // Matches the layout of diagnostics' notes that have no source line above them.
            MessageFormat::Human => {
                let hint = hint.map_or_else(String::new, |hint| format!("\n  = hint: {hint}"));
                // Tools quote the program, names and files in their messages.
                diagnostics::shown_text(&format!("error: {message}{hint}"))
            }
            MessageFormat::Json if failure.mistakes.is_empty() => {
                let mut value =
                    json!({"severity": "error", "id": id, "message": message, "hint": hint});
                if let Some((file, line)) = failure.place.as_deref() {
                    value["file"] = file.as_str().into();
                    value["line"] = (*line).into();
                }
                value.to_string()
            }
            MessageFormat::Json => {
                let lines = failure.mistakes.iter().map(|mistake| {
                    let mut value = json!({
                        "severity": "error", "id": id, "message": mistake.message, "hint": hint
                    });
                    if let Some(place) = &mistake.place {
                        value["file"] = place.file.as_str().into();
                        value["line"] = place.line.into();
                    }
                    if let Some(column) = mistake.place.as_ref().and_then(|place| place.column) {
                        value["column"] = column.into();
                    }
                    value.to_string()
                });
                lines.collect::<Vec<_>>().join("\n")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumb_terminals_get_no_colors() {
        let allows = |no_color: Option<&str>, terminal: Option<&str>| {
            allows_colors(no_color.map(OsString::from), terminal.map(OsString::from))
        };
        assert!(allows(None, Some("xterm-256color")) && allows(None, None));
        assert!(!allows(None, Some("dumb")) && !allows(Some("1"), Some("xterm")));
    }

    #[test]
    fn failures_are_shown_with_their_hint() {
        let with = Failure::from(gridlet_runtime::Error::NotRecorded);
        let without = Failure::call("no such file");
        let shown =
            |format, failure: &Failure| Reporter::new(format).text(failure).unwrap_or_default();
        let human = |failure: &Failure| shown(MessageFormat::Human, failure);
        let json = |failure: &Failure| shown(MessageFormat::Json, failure);
        let hint = "call `Stream::record` before reading the event's time";
        assert_eq!(human(&with), format!("error: the event was never recorded\n  = hint: {hint}"));
        assert_eq!(human(&without), "error: no such file");
        assert_eq!(human(&Failure::shown(1)), "");
        assert_eq!(
            json(&with),
            format!(
                r#"{{"severity":"error","id":"wrong-call","message":"the event was never recorded","hint":"{hint}"}}"#
            )
        );
        assert!(json(&without).ends_with(r#""message":"no such file","hint":null}"#));
    }
}
