//! Messages as text for people and as JSON for tools.

use codespan_reporting::diagnostic as report;
use codespan_reporting::term::{self, termcolor};
use serde_json::{Value, json};

use super::excerpt::View;
use super::{Diagnostic, Severity};
use crate::source::{FileId, SourceMap, Span};

/// Messages for people: the source line with a caret, notes and a hint, one message after another. Of a line
/// of more than 400 characters only the text around the labels is shown.
///
/// With `color`, the text contains ANSI escapes for a terminal.
pub fn render(diagnostics: &[Diagnostic], sources: &SourceMap, color: bool) -> String {
    let config = term::Config::default();
    let mut buffer = if color { termcolor::Buffer::ansi() } else { termcolor::Buffer::no_color() };
    for diagnostic in diagnostics {
        let view = View::new(diagnostic, sources);
        let report = to_report(diagnostic, &view);
        if term::emit_to_write_style(&mut buffer, &config, &view, &report).is_err() {
            // A label lies outside its file: show the message without the source.
            let text = format!("error[{}]: {}\n\n", diagnostic.id, diagnostic.message);
            let _ = std::io::Write::write_all(&mut buffer, text.as_bytes());
        }
    }
    String::from_utf8_lossy(buffer.as_slice()).into_owned()
}

fn to_report(diagnostic: &Diagnostic, view: &View<'_>) -> report::Diagnostic<FileId> {
    let severity = match diagnostic.severity {
        Severity::Warning => report::Severity::Warning,
        Severity::Error => report::Severity::Error,
    };
    let labels = diagnostic.labels.iter().map(|label| {
        let style =
            if label.primary { report::LabelStyle::Primary } else { report::LabelStyle::Secondary };
        report::Label::new(style, label.span.file, view.range(label.span))
            .with_message(&label.message)
    });
    let notes = diagnostic.notes.iter().map(|note| format!("note: {}", indent(note)));
    let hint = diagnostic.hint.iter().map(|hint| format!("hint: {}", indent(hint)));
    report::Diagnostic::new(severity)
        .with_code(diagnostic.id)
        .with_message(&diagnostic.message)
        .with_labels(labels.collect())
        .with_notes(notes.chain(hint).collect())
}

/// Indents all lines after the first to align with it.
fn indent(text: &str) -> String {
    text.replace('\n', "\n      ")
}

/// A message as JSON: `severity`, `id`, `message`, `file`, `line`, `column`, `end_line`, `end_column`,
/// `labels`, `notes` and `hint` (null if there is none). Lines and columns count from 1, columns in
/// characters; ends are exclusive.
pub fn to_json(diagnostic: &Diagnostic, sources: &SourceMap) -> Value {
    let severity = match diagnostic.severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    let primary = diagnostic.labels.iter().find(|label| label.primary);
    let mut value = primary.map_or_else(|| json!({}), |label| position(label.span, sources));
    value["severity"] = severity.into();
    value["id"] = diagnostic.id.into();
    value["message"] = diagnostic.message.as_str().into();
    value["labels"] = diagnostic
        .labels
        .iter()
        .map(|label| {
            let mut value = position(label.span, sources);
            value["primary"] = label.primary.into();
            value["message"] = label.message.as_str().into();
            value
        })
        .collect();
    value["notes"] = diagnostic.notes.iter().map(String::as_str).collect();
    value["hint"] = diagnostic.hint.as_deref().into();
    value
}

fn position(span: Span, sources: &SourceMap) -> Value {
    let start = sources.position(span);
    let end = sources.position(Span { start: span.end, ..span });
    json!({
        "file": sources.shown_name_of(span),
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> (Diagnostic, SourceMap) {
        let sources = SourceMap::single("a.grid", "fn f() {\n    é = bad;\n}\n");
        let at = Span::new(FileId(0), 18..21);
        let diagnostic = Diagnostic::error(super::super::ids::UNKNOWN_NAME, at, "no `bad`")
            .at_caret("not found")
            .label(Span::new(FileId(0), 3..4), "in `f`")
            .note("first line\nsecond line")
            .hint("write `good`");
        (diagnostic, sources)
    }

    #[test]
    fn text_has_id_caret_labels_notes_and_hint() {
        let (diagnostic, sources) = example();
        insta::assert_snapshot!(render(&[diagnostic], &sources, false), @"
        error[unknown-name]: no `bad`
          ┌─ a.grid:2:9
          │
        1 │ fn f() {
          │    - in `f`
        2 │     é = bad;
          │         ^^^ not found
          │
          = note: first line
                  second line
          = hint: write `good`
        ");
    }

    #[test]
    fn color_adds_escapes_and_nothing_else() {
        let (diagnostic, sources) = example();
        let plain = render(std::slice::from_ref(&diagnostic), &sources, false);
        let colored = render(&[diagnostic], &sources, true);
        assert!(colored.contains("\u{1b}["));
        let mut stripped = String::new();
        let mut rest = colored.as_str();
        while let Some(at) = rest.find("\u{1b}[") {
            stripped.push_str(&rest[..at]);
            rest = rest[at..].split_once('m').map_or("", |(_, after)| after);
        }
        stripped.push_str(rest);
        assert_eq!(stripped, plain);
    }

    #[test]
    fn json_counts_lines_and_characters_from_one() {
        let (diagnostic, sources) = example();
        let value = to_json(&diagnostic, &sources);
        assert_eq!(value["id"], "unknown-name");
        assert_eq!(value["severity"], "error");
        assert_eq!(value["file"], "a.grid");
        assert_eq!((value["line"].as_u64(), value["column"].as_u64()), (Some(2), Some(9)));
        assert_eq!((value["end_line"].as_u64(), value["end_column"].as_u64()), (Some(2), Some(12)));
        assert_eq!(value["labels"][1]["message"], "in `f`");
        assert_eq!(value["notes"][0], "first line\nsecond line");
        assert_eq!(value["hint"], "write `good`");
    }

    /// A long line: a name of five letters between `before` and `after` bytes of comments.
    fn long_line(before: usize, after: usize) -> (String, usize) {
        let comment = |bytes: usize| format!("/*{}*/", "é ".repeat(bytes / 3));
        let before = comment(before);
        (format!("{before} wrong {}\n", comment(after)), before.len() + 1)
    }

    #[test]
    fn of_a_long_line_the_surroundings_of_labels_are_shown() {
        let (line, at) = long_line(3000, 5000);
        let text = format!("short {{\n{line}}}\n");
        let at = at + "short {\n".len();
        let sources = SourceMap::single("a.grid", text.as_str());
        let span = |range| Span::new(FileId(0), range);
        let in_the_line = Diagnostic::error("unknown-name", span(at..at + 5), "no `wrong`")
            .at_caret("not found")
            .label(span(at - 30..at - 30), "near it")
            .label(span(8..10), "the line starts");
        let whole = Diagnostic::error("type-mismatch", span(6..text.len() - 1), "a block")
            .at_caret("this one")
            .label(span(at..text.len() - 3), "to the end of the line");
        insta::assert_snapshot!(render(&[in_the_line, whole], &sources, false));
    }

    #[test]
    fn lines_of_400_characters_are_shown_whole() {
        for (length, whole) in [(400, true), (401, false)] {
            let text = "é".repeat(length);
            let sources = SourceMap::single("a.grid", text.as_str());
            let at = Span::new(FileId(0), text.len()..text.len());
            let shown = render(&[Diagnostic::error("syntax-error", at, "no end")], &sources, false);
            assert_eq!(shown.contains(&text), whole, "{shown}");
            assert_eq!(shown.contains('…'), !whole, "{shown}");
            assert!(shown.contains(&format!("a.grid:1:{}\n", length + 1)), "{shown}");
        }
    }

    #[test]
    fn messages_on_a_huge_line_are_short_and_many_are_quick() {
        let (line, at) = long_line(16 << 20, 16 << 20);
        let sources = SourceMap::single("a.grid", line);
        let at = Span::new(FileId(0), at..at + 5);
        let message = Diagnostic::error("unknown-name", at, "no `wrong`")
            .label(Span::new(FileId(0), 0..1), "one")
            .label(Span::new(FileId(0), 1 << 22..1 << 23), "two");
        let mut shown = String::new();
        let seconds = crate::time::seconds(|| {
            shown = render(&vec![message; 200], &sources, false);
        });
        assert!(shown.len() < 200 * 5000, "{} bytes", shown.len());
        // Scanning the line once per message takes minutes.
        assert!(seconds < 20.0, "{seconds} s");
    }

    #[test]
    fn a_label_outside_its_file_still_gives_the_message() {
        let sources = SourceMap::single("a.grid", "x");
        let at = Span::new(FileId(0), 100..200);
        let text = render(&[Diagnostic::error("syntax-error", at, "lost")], &sources, false);
        assert!(text.contains("error[syntax-error]: lost"), "{text}");
    }
}
