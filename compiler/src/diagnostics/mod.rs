//! Messages to the person who wrote the program.

pub mod ids;
mod render;

pub use render::{render, to_json};

use crate::source::Span;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Does not stop a build.
    Warning,
    /// Stops a build.
    Error,
}

/// A place in the source with a remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is to be said of it; may be empty.
    pub message: String,
    /// Whether this is where the problem is; other labels explain.
    pub primary: bool,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Stable, kebab-case: `launch-arity`.
    pub id: &'static str,
    /// One line, no final full stop.
    pub message: String,
    /// Where; the first primary label gives the position.
    pub labels: Vec<Label>,
    /// More lines under the source.
    pub notes: Vec<String>,
    /// What to do.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(id: &'static str, span: Span, message: impl Into<String>) -> Self {
        let label = Label { span, message: String::new(), primary: true };
        Diagnostic {
            severity: Severity::Error,
            id,
            message: message.into(),
            labels: vec![label],
            notes: vec![],
            hint: None,
        }
    }

    /// Says something beside the caret of the first label.
    pub fn at_caret(mut self, message: impl Into<String>) -> Self {
        if let Some(label) = self.labels.first_mut() {
            label.message = message.into();
        }
        self
    }

    /// Points at another place that explains.
    pub fn label(mut self, span: Span, message: impl Into<String>) -> Self {
        self.labels.push(Label { span, message: message.into(), primary: false });
        self
    }

    /// Adds a note under the source.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Says what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The most errors that one run reports; those of a program that is wrong all over help nobody.
pub const MAX_ERRORS: usize = 200;

/// Collects the messages of a stage.
#[derive(Debug, Default)]
pub struct Collector {
    list: Vec<Diagnostic>,
}

impl Collector {
    /// Adds a message. After [`MAX_ERRORS`] it only says, once, that there are more.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.list.len() < MAX_ERRORS {
            self.list.push(diagnostic);
        } else if let (MAX_ERRORS, Some(label)) = (self.list.len(), diagnostic.labels.first()) {
            let message = format!("more than {MAX_ERRORS} errors; the rest is not shown");
            self.list.push(Diagnostic::error(ids::TOO_MANY_ERRORS, label.span, message));
        }
    }

    /// Adds messages.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        diagnostics.into_iter().for_each(|diagnostic| self.push(diagnostic));
    }

    /// The message that was added last.
    pub fn last_mut(&mut self) -> Option<&mut Diagnostic> {
        self.list.last_mut()
    }

    /// Takes the messages out that came after the first `count`.
    pub fn take_since(&mut self, count: usize) -> Vec<Diagnostic> {
        self.list.split_off(count.min(self.list.len()))
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The messages, in the order in which they came.
    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.list
    }
}

/// Sorts messages by where they point, files in the order of their ids.
pub fn sort(diagnostics: &mut [Diagnostic]) {
    // The remark that there are more stays last.
    diagnostics.sort_by_key(|diagnostic| {
        let at = diagnostic.labels.first().map(|label| (label.span.file, label.span.start));
        (diagnostic.id == ids::TOO_MANY_ERRORS, at)
    });
}
