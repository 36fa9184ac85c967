//! Diagnostics in the form that C reads.

use std::ffi::{CString, c_char};
use std::ptr;

use gridlet::diagnostics::{self, Diagnostic, Severity};
use gridlet::error::{Error, Place};
use gridlet::source::{SourceMap, Span};

use crate::boundary::c_string;

/// The severity of a diagnostic.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum gridlet_severity {
    /// Does not stop a build.
    Warning = 0,
    /// Stops a build.
    Error = 1,
}

/// A range in a source file. All numbers are 0, and `file` is NULL, if there is no place. Of a place in NVVM IR only the line is known, and
/// sometimes the column; the other numbers are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gridlet_place {
    /// The file's name.
    pub file: *const c_char,
    /// The first line, counted from 1.
    pub line: u32,
    /// The first column in characters, counted from 1.
    pub column: u32,
    /// The line of the end.
    pub end_line: u32,
    /// The column of the end, which is not part of the range.
    pub end_column: u32,
    /// The first byte in the file, counted from 0.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A place with a remark.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gridlet_label {
    /// The place.
    pub place: gridlet_place,
    /// The remark; may be empty.
    pub message: *const c_char,
    /// Nonzero if the problem is here; other labels give context.
    pub primary: u32,
}

/// A message about a program, or the reason why a call failed. Later versions add fields at the end only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gridlet_diagnostic {
    /// The severity.
    pub severity: gridlet_severity,
    /// A stable id, which `gridlet_explain` explains.
    pub id: *const c_char,
    /// What is wrong: one line, or several where it quotes text or a tool's log.
    pub message: *const c_char,
    /// The place of the first primary label.
    pub place: gridlet_place,
    /// All places, with remarks.
    pub labels: *const gridlet_label,
    /// The number of places.
    pub label_count: usize,
    /// Further remarks.
    pub notes: *const *const c_char,
    /// The number of further remarks.
    pub note_count: usize,
    /// How to fix the problem; NULL if there is no hint.
    pub hint: *const c_char,
    /// All of it as text, with the source lines.
    pub rendered: *const c_char,
}

const NOWHERE: gridlet_place = gridlet_place {
    file: ptr::null(),
    line: 0,
    column: 0,
    end_line: 0,
    end_column: 0,
    start: 0,
    end: 0,
};

/// The messages of a call.
#[derive(Default)]
pub struct gridlet_diagnostics {
    pub(crate) list: Vec<gridlet_diagnostic>,
    /// What the pointers of `list` point to.
    strings: Vec<CString>,
    labels: Vec<Box<[gridlet_label]>>,
    notes: Vec<Box<[*const c_char]>>,
}

// SAFETY: the pointers lead to memory that the value owns and that nobody changes.
unsafe impl Send for gridlet_diagnostics {}
// SAFETY: as above.
unsafe impl Sync for gridlet_diagnostics {}

impl gridlet_diagnostics {
    /// Adds messages about a program.
    pub(crate) fn extend(&mut self, diagnostics: &[Diagnostic], sources: &SourceMap) {
        for diagnostic in diagnostics {
            self.add(diagnostic, sources);
        }
    }

    /// Adds an error that is not about a program of the language.
    pub(crate) fn error(&mut self, error: &Error) {
        let (id, mistakes) = (error.id(), error.mistakes());
        for mistake in mistakes {
            self.add_error(id, mistake.place.as_ref(), &mistake.message, &mistake.text);
        }
        if mistakes.is_empty() {
            let message = error.to_string();
            self.add_error(id, None, &message, &message);
        }
    }

    /// Adds an error, and as `text` how it is rendered.
    pub(crate) fn add_error(&mut self, id: &str, place: Option<&Place>, message: &str, text: &str) {
        let rendered = self.string(&format!("error[{id}]: {text}\n"));
        let (id, message) = (self.string(id), self.string(message));
        let place = place.map(|place| gridlet_place {
            file: self.string(&place.file),
            line: place.line,
            column: place.column.unwrap_or_default(),
            ..NOWHERE
        });
        self.list.push(gridlet_diagnostic {
            severity: gridlet_severity::Error,
            id,
            message,
            place: place.unwrap_or(NOWHERE),
            labels: ptr::null(),
            label_count: 0,
            notes: ptr::null(),
            note_count: 0,
            hint: ptr::null(),
            rendered,
        });
    }

    /// Whether an error is among the messages.
    pub(crate) fn has_error(&self) -> bool {
        self.list.iter().any(|diagnostic| diagnostic.severity == gridlet_severity::Error)
    }

    fn add(&mut self, diagnostic: &Diagnostic, sources: &SourceMap) {
        let labels: Box<[gridlet_label]> = diagnostic
            .labels
            .iter()
            .map(|label| gridlet_label {
                place: self.place(label.span, sources),
                message: self.string(&label.message),
                primary: label.primary.into(),
            })
            .collect();
        let notes: Box<[*const c_char]> =
            diagnostic.notes.iter().map(|note| self.string(note)).collect();
        let primary = labels.iter().find(|label| label.primary != 0);
        let made = gridlet_diagnostic {
            severity: match diagnostic.severity {
                Severity::Warning => gridlet_severity::Warning,
                Severity::Error => gridlet_severity::Error,
            },
            id: self.string(diagnostic.id),
            message: self.string(&diagnostic.message),
            place: primary.map_or(NOWHERE, |label| label.place),
            labels: labels.as_ptr(),
            label_count: labels.len(),
            notes: notes.as_ptr(),
            note_count: notes.len(),
            hint: diagnostic.hint.as_deref().map_or(ptr::null(), |hint| self.string(hint)),
            rendered: self.string(&diagnostics::render(
                std::slice::from_ref(diagnostic),
                sources,
                false,
            )),
        };
        self.list.push(made);
        self.labels.push(labels);
        self.notes.push(notes);
    }

    fn place(&mut self, span: Span, sources: &SourceMap) -> gridlet_place {
        let start = sources.position(span);
        let end = sources.position(Span { start: span.end, ..span });
        gridlet_place {
            file: self.string(&sources.shown_name_of(span)),
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
            start: span.start,
            end: span.end,
        }
    }

    /// A string that lives as long as these messages.
    fn string(&mut self, text: &str) -> *const c_char {
        let text = c_string(text);
        let pointer = text.as_ptr();
        self.strings.push(text);
        pointer
    }
}
