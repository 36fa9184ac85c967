//! Messages to the person who wrote the program.

mod excerpt;
pub mod ids;
mod nearest;
pub mod reference;
mod render;

pub(crate) use excerpt::is_bidi;
pub use excerpt::{shown_line, shown_text};
pub(crate) use nearest::nearest;
pub use render::{render, to_json};

use crate::source::Span;

/// The severity of a message.
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
    /// The place.
    pub span: Span,
    /// The remark; may be empty.
    pub message: String,
    /// Whether the problem is here; other labels give context.
    pub primary: bool,
}

/// A message to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// Stable, kebab-case: `launch-arity`.
    pub id: &'static str,
    /// One line, no final full stop.
    pub message: String,
    /// The places; the first primary label gives the message its position.
    pub labels: Vec<Label>,
    /// Further lines, shown below the source.
    pub notes: Vec<String>,
    /// How to fix the problem.
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

    /// An error about no place in particular.
    pub fn general_error(id: &'static str, message: impl Into<String>) -> Self {
        Diagnostic::new(Severity::Error, id, shortened(message))
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

    /// Sets the remark at the first label.
    pub fn at_caret(mut self, message: impl Into<String>) -> Self {
        if let Some(label) = self.labels.first_mut() {
            label.message = shortened(message);
        }
        self
    }

    /// Adds a secondary label at another place.
    pub fn label(mut self, span: Span, message: impl Into<String>) -> Self {
        self.labels.push(Label { span, message: shortened(message), primary: false });
        self
    }

    /// Adds a note under the source.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(shortened(note));
        self
    }

    /// Sets the hint: how to fix the problem.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(shortened(hint));
        self
    }

    /// The message, its notes and its hint, one a line, without a place.
    pub(crate) fn text(&self) -> String {
        let more = self.notes.iter().chain(&self.hint).map(|more| format!("\n  {more}"));
        self.message.clone() + &more.collect::<String>()
    }
}

/// The most errors that [`listed`] shows.
const MAX_LISTED: usize = 10;

/// The texts of the errors among messages, for those who do not have the sources that [`render`] needs.
pub fn listed(messages: &[Diagnostic]) -> String {
    let errors = || messages.iter().filter(|one| one.severity == Severity::Error);
    let mut texts: Vec<String> = errors().take(MAX_LISTED).map(Diagnostic::text).collect();
    let count = errors().count();
    if count > MAX_LISTED {
        texts.push(format!("and {} more errors", count - MAX_LISTED));
    }
    texts.join("\n")
}

/// The maximum length of a name in a message, in characters; longer names are shortened.
const MAX_NAME: usize = 80;

/// A message in which the middle of each overlong name is replaced by `…`.
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

/// The maximum number of errors, and of warnings, that one run reports; more would not help anyone.
pub const MAX_MESSAGES: usize = 200;

/// Collects the errors of a stage, or its warnings.
#[derive(Debug, Default)]
pub struct Collector {
    list: Vec<Diagnostic>,
}

impl Collector {
    /// Adds a message. Once there are [`MAX_MESSAGES`], adds a single note that there are more, then nothing.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.list.len() < MAX_MESSAGES {
            self.list.push(diagnostic);
        } else if let (MAX_MESSAGES, Some(label)) = (self.list.len(), diagnostic.labels.first()) {
            let (id, what) = match diagnostic.severity {
                Severity::Warning => (ids::TOO_MANY_WARNINGS, "warnings"),
                Severity::Error => (ids::TOO_MANY_ERRORS, "errors"),
            };
            let message = format!("more than {MAX_MESSAGES} {what}; the rest are not shown");
            let last = Diagnostic::new(diagnostic.severity, id, message);
            self.list.push(last.primary(label.span));
        }
    }

    /// Adds messages.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        diagnostics.into_iter().for_each(|diagnostic| self.push(diagnostic));
    }

    /// The last message added.
    pub fn last_mut(&mut self) -> Option<&mut Diagnostic> {
        self.list.last_mut()
    }

    /// Removes and returns the messages after the first `count`.
    pub fn take_since(&mut self, count: usize) -> Vec<Diagnostic> {
        self.list.split_off(count.min(self.list.len()))
    }

    /// The number of messages.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether further messages are dropped.
    pub fn is_full(&self) -> bool {
        self.list.len() > MAX_MESSAGES
    }

    /// The messages, in the order in which they were added.
    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.list
    }
}

/// Sorts messages by position, files in the order of their ids.
pub fn sort(diagnostics: &mut [Diagnostic]) {
    // The note that there are more stays last.
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
