//! Messages to the person who wrote the program.

mod excerpt;
pub mod ids;
mod nearest;
pub mod reference;
mod render;

pub(crate) use excerpt::is_bidi;
pub use excerpt::shown_line;
pub(crate) use nearest::nearest;
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
        Diagnostic::new(Severity::Error, id, shortened(message)).primary(span)
    }

    /// A warning at a place.
    pub fn warning(id: &'static str, span: Span, message: impl Into<String>) -> Self {
        Diagnostic::new(Severity::Warning, id, shortened(message)).primary(span)
    }

    /// A warning about no place in particular.
    pub fn general_warning(id: &'static str, message: impl Into<String>) -> Self {
        Diagnostic::new(Severity::Warning, id, shortened(message))
    }

    fn new(severity: Severity, id: &'static str, message: String) -> Self {
        Diagnostic { severity, id, message, labels: vec![], notes: vec![], hint: None }
    }

    fn primary(mut self, span: Span) -> Self {
        self.labels.push(Label { span, message: String::new(), primary: true });
        self
    }

    /// Says something beside the caret of the first label.
    pub fn at_caret(mut self, message: impl Into<String>) -> Self {
        if let Some(label) = self.labels.first_mut() {
            label.message = shortened(message);
        }
        self
    }

    /// Points at another place that explains.
    pub fn label(mut self, span: Span, message: impl Into<String>) -> Self {
        self.labels.push(Label { span, message: shortened(message), primary: false });
        self
    }

    /// Adds a note under the source.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(shortened(note));
        self
    }

    /// Says what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(shortened(hint));
        self
    }
}

/// The longest name, in characters, that a message has whole.
const MAX_NAME: usize = 80;

/// A message in which names that are too long have a `…` in place of their middle.
fn shortened(message: impl Into<String>) -> String {
    let message = message.into();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if message.len() <= MAX_NAME
        || message.split(|c| !is_part(c)).all(|word| word.len() <= MAX_NAME)
    {
        return message;
    }
    let mut text = String::new();
    let mut rest = message.as_str();
    while !rest.is_empty() {
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        match word.len() > MAX_NAME {
            true => text.extend([&word[..MAX_NAME / 2], "…", &word[word.len() - MAX_NAME / 4..]]),
            false => text.push_str(word),
        }
        let other = after.find(is_part).unwrap_or(after.len());
        text.push_str(&after[..other]);
        rest = &after[other..];
    }
    text
}

/// The most errors, or else warnings, that one run reports; those of a program that is wrong all over help
/// nobody.
pub const MAX_MESSAGES: usize = 200;

/// Collects the errors of a stage, or its warnings.
#[derive(Debug, Default)]
pub struct Collector {
    list: Vec<Diagnostic>,
}

impl Collector {
    /// Adds a message. After [`MAX_MESSAGES`] it only says, once, that there are more.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.list.len() < MAX_MESSAGES {
            self.list.push(diagnostic);
        } else if let (MAX_MESSAGES, Some(label)) = (self.list.len(), diagnostic.labels.first()) {
            let (id, what) = match diagnostic.severity {
                Severity::Warning => (ids::TOO_MANY_WARNINGS, "warnings"),
                Severity::Error => (ids::TOO_MANY_ERRORS, "errors"),
            };
            let message = format!("more than {MAX_MESSAGES} {what}; the rest is not shown");
            let last = Diagnostic::new(diagnostic.severity, id, message);
            self.list.push(last.primary(label.span));
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

    /// Whether no more messages are shown.
    pub fn is_full(&self) -> bool {
        self.list.len() > MAX_MESSAGES
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
        (matches!(diagnostic.id, ids::TOO_MANY_ERRORS | ids::TOO_MANY_WARNINGS), at)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_long_names_is_left_out() {
        let name = "a".repeat(80);
        assert_eq!(shortened(format!("no `{name}` é")), format!("no `{name}` é"));
        let long = format!("{}{}", "b".repeat(40), "c".repeat(3000));
        let short = format!("`{}…{}`, `{name}`", "b".repeat(40), "c".repeat(20));
        assert_eq!(shortened(format!("`{long}`, `{name}`")), short);
    }
}
