//! The lines of a source that a message shows. Of a long line it shows what stands around the labels, so that a
//! message has a bounded length wherever it points to.

use std::collections::BTreeMap;
use std::ops::Range;

use codespan_reporting::files::{Error, Files};

use super::Diagnostic;
use crate::source::{FileId, SourceFile, SourceMap, Span};

/// Most characters of a line that is shown whole.
const MAX_COLUMNS: usize = 400;

/// Characters that are shown on either side of where a label starts or ends in a longer line.
const CONTEXT_COLUMNS: usize = 60;

/// What stands for text that is left out.
const OMISSION: &str = "…";

/// Lines after the start and before the end of a label that may be shown with it.
const CONTEXT_LINES: usize = 4;

/// The sources as one message shows them. What codespan-reporting calls a byte of a source is a byte of its
/// excerpt, where it has one.
pub(super) struct View<'s> {
    sources: &'s SourceMap,
    excerpts: BTreeMap<FileId, Excerpt>,
}

/// A part of a source that has long lines.
struct Excerpt {
    text: String,
    /// In the order of the source.
    lines: Vec<Line>,
}

/// A line of an excerpt.
struct Line {
    /// Its number in the source, from 0.
    index: usize,
    /// Where it lies in the excerpt.
    range: Range<usize>,
    /// The parts of the source that it shows.
    pieces: Vec<Piece>,
}

struct Piece {
    source: Range<usize>,
    /// Where it starts in the excerpt.
    at: usize,
}

impl<'s> View<'s> {
    /// The sources for one message.
    pub(super) fn new(diagnostic: &Diagnostic, sources: &'s SourceMap) -> Self {
        // By file and line, where labels start and end.
        let mut shown: BTreeMap<FileId, BTreeMap<usize, Vec<usize>>> = BTreeMap::new();
        for span in diagnostic.labels.iter().map(|label| label.span) {
            let Some(file) = sources.files().get(span.file.0 as usize) else { continue };
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
            let is_long = |line: &usize| {
                file.line_range(*line).is_some_and(|range| is_long(&file.text[range]))
            };
            lines.keys().any(is_long).then(|| (id, Excerpt::new(file, &lines)))
        });
        View { sources, excerpts: excerpts.collect() }
    }

    /// Where a span lies in what is shown.
    pub(super) fn range(&self, span: Span) -> Range<usize> {
        let Some(excerpt) = self.excerpts.get(&span.file) else { return span.range() };
        let file = self.sources.file(span.file);
        let shown = |at: u32| excerpt.shown(file, file.text.floor_char_boundary(at as usize));
        shown(span.start)..shown(span.end)
    }

    fn file(&self, id: FileId) -> Result<&'s SourceFile, Error> {
        self.sources.files().get(id.0 as usize).ok_or(Error::FileMissing)
    }
}

impl<'a> Files<'a> for View<'_> {
    type FileId = FileId;
    type Name = &'a str;
    type Source = &'a str;

    fn name(&'a self, id: FileId) -> Result<&'a str, Error> {
        Ok(&self.file(id)?.name)
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
        // A line that is not in the excerpt is within a label, and not shown.
        let found = excerpt.lines.binary_search_by_key(&line, |line| line.index);
        Ok(found.map_or(0..0, |at| excerpt.lines[at].range.clone()))
    }
}

impl Excerpt {
    /// The lines of a file, with where labels start and end in each.
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
        let content =
            line.start..line.start + text[line.clone()].trim_end_matches(['\r', '\n']).len();
        let mut wanted: Vec<Range<usize>> = match is_long(&text[content.clone()]) {
            false => vec![content.clone()],
            true if edges.is_empty() => vec![around(text, &content, content.start)],
            true => edges.iter().map(|&edge| around(text, &content, edge)).collect(),
        };
        wanted.sort_by_key(|piece| piece.start);
        let mut pieces: Vec<Piece> = vec![];
        let mut shown_to = content.start;
        for source in wanted {
            // What is shown already comes from the piece before.
            let source = source.start.max(shown_to)..source.end.max(shown_to);
            if source.start > shown_to {
                self.text += OMISSION;
            }
            let at = self.text.len();
            self.text += &text[source.clone()];
            shown_to = source.end;
            pieces.push(Piece { source, at });
        }
        if shown_to < content.end {
            self.text += OMISSION;
        }
        self.text.push('\n');
        pieces
    }

    /// Where a byte of the source, at which a label starts or ends, is shown.
    fn shown(&self, file: &SourceFile, at: usize) -> usize {
        let index = file.line_of(u32::try_from(at).unwrap_or(u32::MAX));
        let found = self.lines.binary_search_by_key(&index, |line| line.index);
        let piece = found.ok().and_then(|line| {
            self.lines[line].pieces.iter().rev().find(|piece| piece.source.start <= at)
        });
        piece.map_or(0, |piece| piece.at + at.min(piece.source.end) - piece.source.start)
    }

    /// The byte of the source that is shown at a byte of the excerpt.
    fn source(&self, at: usize) -> usize {
        let pieces = self.line(at).map_or(&[][..], |line| &line.pieces);
        let piece = pieces.iter().rev().find(|piece| piece.at <= at);
        piece.map_or(0, |piece| piece.source.end.min(piece.source.start + at - piece.at))
    }

    /// The line of a byte of the excerpt.
    fn line(&self, at: usize) -> Option<&Line> {
        let after = self.lines.partition_point(|line| line.range.start <= at);
        self.lines.get(after.saturating_sub(1))
    }
}

/// A line of a file, counted from 1, as messages show it that know no place in it: of a long one the start.
/// `None` if the file has fewer lines.
pub fn shown_line(file: &SourceFile, number: u32) -> Option<String> {
    let range = file.line_range((number as usize).checked_sub(1)?)?;
    let line = file.text[range].trim_end_matches(['\r', '\n']);
    if !is_long(line) {
        return Some(line.to_owned());
    }
    let end = around(line, &(0..line.len()), 0).end;
    Some(line[..end].to_owned() + OMISSION)
}

/// Whether a line is not shown whole.
fn is_long(line: &str) -> bool {
    line.len() > MAX_COLUMNS && line.chars().nth(MAX_COLUMNS).is_some()
}

/// What is shown of a long line because of a byte in it.
fn around(text: &str, line: &Range<usize>, at: usize) -> Range<usize> {
    let at = at.clamp(line.start, line.end);
    let before = text[line.start..at].char_indices().rev().nth(CONTEXT_COLUMNS - 1);
    let after = text[at..line.end].char_indices().nth(CONTEXT_COLUMNS);
    line.start + before.map_or(0, |(start, _)| start)
        ..at + after.map_or(line.end - at, |(end, _)| end)
}

#[cfg(test)]
mod tests {
    use super::shown_line;
    use crate::source::SourceMap;

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
}
