//! The source lines that a message shows. Of a long line only the text around the labels is shown, so that a
//! message has a bounded length wherever it points.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use codespan_reporting::files::{Error, Files};

use super::Diagnostic;
use crate::source::{FileId, Known, SourceFile, SourceMap, Span};

/// Lines of up to this many characters are shown whole.
const MAX_COLUMNS: usize = 400;

/// Characters shown on either side of a label's start and end in a longer line.
const CONTEXT_COLUMNS: usize = 60;

/// Marks omitted text.
const OMISSION: &str = "…";

/// Lines shown after the start and before the end of a label.
const CONTEXT_LINES: usize = 4;

/// The maximum number of lines that a label is drawn along; a label over more lines is drawn on its first
/// line.
const MAX_LINES: usize = 1000;

/// The sources as one message shows them. For a source with an excerpt, the byte positions given to
/// codespan-reporting are positions in the excerpt.
pub(super) struct View<'s> {
    sources: &'s SourceMap,
    /// The place of the message, whose file is named.
    place: Option<Span>,
    excerpts: BTreeMap<FileId, Excerpt>,
}

/// The shown parts of a source that has long lines or unprintable characters.
struct Excerpt {
    text: String,
    /// The lines in source order.
    lines: Vec<Line>,
}

/// A line of an excerpt.
struct Line {
    /// Its number in the source, from 0.
    index: usize,
    /// Its range in the excerpt.
    range: Range<usize>,
    /// The parts of the source line that are shown.
    pieces: Vec<Piece>,
}

struct Piece {
    source: Range<usize>,
    /// Its start in the excerpt.
    at: usize,
}

impl<'s> View<'s> {
    /// A view of the sources for one message.
    pub(super) fn new(diagnostic: &Diagnostic, sources: &'s SourceMap) -> Self {
        // By file and line: where labels start and end.
        let mut shown: BTreeMap<FileId, BTreeMap<usize, Vec<usize>>> = BTreeMap::new();
        for span in diagnostic.labels.iter().map(|label| label.span) {
            let Some(file) = sources.files().get(span.file.0 as usize) else { continue };
            let span = drawn(file, span);
            let lines = shown.entry(span.file).or_default();
            let (first, last) = (file.line_of(span.start), file.line_of(span.end));
            let around_end = last.saturating_sub(CONTEXT_LINES).max(first)..=last;
            for line in (first..=first + CONTEXT_LINES).chain(around_end) {
                lines.entry(line).or_default();
            }
            for at in [span.start, span.end] {
                let at = file.text.floor_char_boundary(at as usize);
                lines.entry(file.line_of(at as u32)).or_default().push(at);
            }
        }
        let excerpts = shown.into_iter().filter_map(|(id, lines)| {
            let file = sources.file(id);
            let is_changed = |line: &usize| {
                let text = file.line_range(*line).map(|range| line_of(&file.text, range));
                text.is_some_and(|text| is_long(text) || text.contains(is_obeyed))
            };
            lines.keys().any(is_changed).then(|| (id, Excerpt::new(file, &lines)))
        });
        let primary = diagnostic.labels.iter().find(|label| label.primary);
        let place = primary.map(|label| label.span);
        View { sources, place, excerpts: excerpts.collect() }
    }

    /// A span as a range of the shown text.
    pub(super) fn range(&self, span: Span) -> Range<usize> {
        let Ok(file) = self.file(span.file) else { return span.range() };
        let span = drawn(file, span);
        let Some(excerpt) = self.excerpts.get(&span.file) else { return span.range() };
        let shown = |at: u32| excerpt.shown(file, file.text.floor_char_boundary(at as usize));
        shown(span.start)..shown(span.end)
    }

    fn file(&self, id: FileId) -> Result<&'s SourceFile, Error> {
        self.sources.files().get(id.0 as usize).ok_or(Error::FileMissing)
    }
}

impl<'a> Files<'a> for View<'_> {
    type FileId = FileId;
    type Name = String;
    type Source = &'a str;

    fn name(&'a self, id: FileId) -> Result<String, Error> {
        let file = self.file(id)?;
        let place = self.place.filter(|place| place.file == id);
        Ok(match place {
            Some(place) => self.sources.shown_name_of(place),
            None => self.sources.shown_name(file),
        })
    }

    fn source(&'a self, id: FileId) -> Result<&'a str, Error> {
        match self.excerpts.get(&id) {
            Some(excerpt) => Ok(&excerpt.text),
            None => Ok(&self.file(id)?.text),
        }
    }

    fn line_index(&'a self, id: FileId, at: usize) -> Result<usize, Error> {
        match self.excerpts.get(&id) {
            Some(excerpt) => Ok(excerpt.line(at).map_or(0, |line| line.index)),
            None => Ok(self.file(id)?.line_of(u32::try_from(at).unwrap_or(u32::MAX))),
        }
    }

    fn line_number(&'a self, id: FileId, line: usize) -> Result<usize, Error> {
        Ok(self.file(id)?.origin(line).1 as usize)
    }

    fn column_number(&'a self, id: FileId, _line: usize, at: usize) -> Result<usize, Error> {
        let at = self.excerpts.get(&id).map_or(at, |excerpt| excerpt.source(at));
        self.file(id)?;
        Ok(self.sources.position(Span::new(id, at..at)).column as usize)
    }

    fn line_range(&'a self, id: FileId, line: usize) -> Result<Range<usize>, Error> {
        let Some(excerpt) = self.excerpts.get(&id) else {
            let max = self.file(id)?.line_of(u32::MAX);
            let range = self.file(id)?.line_range(line);
            return range.ok_or(Error::LineTooLarge { given: line, max });
        };
        // A line missing from the excerpt is in the middle of a label and not shown.
        let found = excerpt.lines.binary_search_by_key(&line, |line| line.index);
        Ok(found.map_or(0..0, |at| excerpt.lines[at].range.clone()))
    }
}

impl Excerpt {
    /// An excerpt of these lines; each comes with the positions where labels start and end in it.
    fn new(file: &SourceFile, lines: &BTreeMap<usize, Vec<usize>>) -> Self {
        let mut excerpt = Excerpt { text: String::new(), lines: vec![] };
        for (&index, edges) in lines {
            let Some(range) = file.line_range(index) else { continue };
            let start = excerpt.text.len();
            let pieces = excerpt.push(&file.text, &range, edges);
            excerpt.lines.push(Line { index, range: start..excerpt.text.len(), pieces });
        }
        excerpt
    }

    fn push(&mut self, text: &str, line: &Range<usize>, edges: &[usize]) -> Vec<Piece> {
        let content = line.start..line.start + line_of(text, line.clone()).len();
        let mut wanted: Vec<Range<usize>> = match is_long(&text[content.clone()]) {
            false => vec![content.clone()],
            true if edges.is_empty() => vec![around(text, &content, content.start)],
            true => edges.iter().map(|&edge| around(text, &content, edge)).collect(),
        };
        wanted.sort_by_key(|piece| piece.start);
        let mut pieces: Vec<Piece> = vec![];
        let mut shown_to = content.start;
        for source in wanted {
            // The previous piece already shows the start of this one.
            let source = source.start.max(shown_to)..source.end.max(shown_to);
            if source.start > shown_to {
                self.text += OMISSION;
            }
            let at = self.text.len();
            self.text += &printable(&text[source.clone()]);
            shown_to = source.end;
            pieces.push(Piece { source, at });
        }
        if shown_to < content.end {
            self.text += OMISSION;
        }
        self.text.push('\n');
        pieces
    }

    /// The excerpt position of a source position at which a label starts or ends.
    fn shown(&self, file: &SourceFile, at: usize) -> usize {
        let index = file.line_of(u32::try_from(at).unwrap_or(u32::MAX));
        let found = self.lines.binary_search_by_key(&index, |line| line.index);
        let piece = found.ok().and_then(|line| {
            self.lines[line].pieces.iter().rev().find(|piece| piece.source.start <= at)
        });
        piece.map_or(0, |piece| piece.at + at.min(piece.source.end) - piece.source.start)
    }

    /// The source position of an excerpt position.
    fn source(&self, at: usize) -> usize {
        let pieces = self.line(at).map_or(&[][..], |line| &line.pieces);
        let piece = pieces.iter().rev().find(|piece| piece.at <= at);
        piece.map_or(0, |piece| piece.source.end.min(piece.source.start + at - piece.at))
    }

    /// The line of an excerpt position.
    fn line(&self, at: usize) -> Option<&Line> {
        let after = self.lines.partition_point(|line| line.range.start <= at);
        self.lines.get(after.saturating_sub(1))
    }
}

/// A line of a file, counted from 1, for messages without a position in the line: of a long line, the start.
/// `None` if the file has fewer lines, or its text is unknown.
pub fn shown_line(file: &SourceFile, number: u32) -> Option<String> {
    let index = (number as usize).checked_sub(1)?;
    let line = match &file.original {
        Some(text) => text.lines().nth(index)?,
        None if file.known == Known::Lines => return None,
        None => line_of(&file.text, file.line_range(index)?),
    };
    let line = printable(line);
    if !is_long(&line) {
        return Some(line.into_owned());
    }
    let end = around(&line, &(0..line.len()), 0).end;
    Some(line[..end].to_owned() + OMISSION)
}

/// Text for a terminal, such as a message with a line of a file in it: characters that a terminal would interpret are
/// replaced, except line breaks and tabs.
pub fn shown_text(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

/// The part of a label to draw.
fn drawn(file: &SourceFile, span: Span) -> Span {
    let first = file.line_of(span.start);
    match file.line_range(first) {
        Some(line) if file.line_of(span.end) - first > MAX_LINES => {
            let end = line.start + line_of(&file.text, line).len();
            Span { end: span.start.max(end as u32), ..span }
        }
        _ => span,
    }
}

/// The text of a line without its line break.
fn line_of(text: &str, line: Range<usize>) -> &str {
    text[line].trim_end_matches(['\r', '\n'])
}

/// Whether a terminal would interpret a character rather than show it.
fn is_obeyed(c: char) -> bool {
    (c.is_control() && c != '\t') || is_bidi(c)
}

/// Whether a character changes the order in which text is shown (Unicode Standard Annex #9, "Explicit
/// Directional Formatting Characters").
pub(crate) fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A part of a line in which each character that a terminal would interpret is replaced by one of the same
/// length in bytes.
fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let shown = text.chars().map(|c| match c.len_utf8() {
        _ if !is_obeyed(c) => c,
        1 => '?',
        2 => '\u{bf}',
        _ => char::REPLACEMENT_CHARACTER,
    });
    Cow::Owned(shown.collect())
}

/// Whether a line is too long to be shown whole.
fn is_long(line: &str) -> bool {
    line.len() > MAX_COLUMNS && line.chars().nth(MAX_COLUMNS).is_some()
}

/// The part of a long line to show because of a label at a byte of it.
fn around(text: &str, line: &Range<usize>, at: usize) -> Range<usize> {
    let at = at.clamp(line.start, line.end);
    let before = text[line.start..at].char_indices().rev().nth(CONTEXT_COLUMNS - 1);
    let after = text[at..line.end].char_indices().nth(CONTEXT_COLUMNS);
    line.start + before.map_or(0, |(start, _)| start)
        ..at + after.map_or(line.end - at, |(end, _)| end)
}

#[cfg(test)]
mod tests {
    use super::{is_obeyed, shown_line};
    use crate::diagnostics::{Diagnostic, ids, render};
    use crate::source::{FileId, SourceMap, Span};

    #[test]
    fn a_line_without_a_place_is_shown_from_its_start() {
        let long = "é".repeat(401);
        let sources = SourceMap::single("a.grid", format!("short\r\n{long}\n\nlast"));
        let shown = |number| shown_line(&sources.files()[0], number);
        assert_eq!(shown(1).as_deref(), Some("short"));
        assert_eq!(shown(2), Some("é".repeat(60) + "…"));
        assert_eq!(shown(3).as_deref(), Some(""));
        assert_eq!(shown(4).as_deref(), Some("last"));
        assert_eq!((shown(0), shown(5)), (None, None));
    }

    #[test]
    fn nothing_is_shown_that_a_terminal_obeys() {
        let text = "kernel k() {\t\u{1b}[31m \u{9b} \u{202e} é\rx\r\n}";
        let sources = SourceMap::single("a.grid", text);
        let shown = shown_line(&sources.files()[0], 1);
        assert_eq!(shown.as_deref(), Some("kernel k() {\t?[31m \u{bf} \u{fffd} é?x"));
        let (at, _) = text.match_indices('é').next().expect("it is there");
        let span = Span::new(FileId(0), at..at + 2);
        let message =
            render(&[Diagnostic::error(ids::SYNTAX_ERROR, span, "message")], &sources, false);
        assert!(!message.contains(|c| is_obeyed(c) && c != '\n'), "{message:?}");
        assert!(message.contains("a.grid:1:24"), "{message}");
    }

    #[test]
    fn a_label_of_very_many_lines_is_drawn_along_the_first() {
        let sources = SourceMap::single("a.grid", format!("ab{}c", "\n".repeat(5000)));
        let message = |range| {
            let label =
                Diagnostic::error(ids::SYNTAX_ERROR, Span::new(FileId(0), range), "message");
            render(&[label], &sources, false)
        };
        assert_eq!(message(1..5000), message(1..2));
        assert_ne!(message(1..500), message(1..2));
    }
}
