//! What a message shows of the sources: lines of any length cut to what matters, and nothing in them that a
//! terminal would obey.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use codespan_reporting::files::{Error, Files};

use super::Label;
use crate::source::{FileId, SourceMap, Span};

/// The longest line, in bytes, that is shown whole.
const MAX_LINE: usize = 400;

/// Bytes that are shown of a longer one before and after the place.
const AROUND: usize = 100;

/// The most lines that a label is drawn along.
const MAX_LINES: usize = 1000;

/// The sources as one message shows them.
pub(super) struct Excerpts<'s> {
    sources: &'s SourceMap,
    texts: Vec<Cow<'s, str>>,
    /// What is shown of long lines that labels point into, by file and line.
    windows: BTreeMap<(usize, usize), Range<usize>>,
}

impl<'s> Excerpts<'s> {
    pub(super) fn new(sources: &'s SourceMap) -> Self {
        let texts = sources.files().iter().map(|file| printable(&file.text)).collect();
        Excerpts { sources, texts, windows: BTreeMap::new() }
    }

    /// Forgets the message before this one.
    pub(super) fn clear(&mut self) {
        self.windows.clear();
    }

    /// The number of the first line, counted from 1, of which this message does not show all.
    pub(super) fn cut_line(&self) -> Option<usize> {
        self.windows.keys().next().map(|(_, line)| line + 1)
    }

    /// The part of a label that is shown. None of it is if an earlier label has cut it off.
    pub(super) fn clip(&mut self, label: &Label) -> Option<Range<usize>> {
        let (file, Range { start, mut end }) = (label.span.file, label.span.range());
        let first = self.sources.files().get(file.0 as usize)?.line_of(label.span.start);
        let last = self.sources.file(file).line_of(label.span.end);
        let shown = self.window(file, first, start);
        if !(shown.start..=shown.end).contains(&start) {
            return None;
        }
        // Without the line break.
        let edge = shown.start + self.texts[file.0 as usize].get(shown.clone())?.trim_end().len();
        if last == first {
            end = end.min(shown.end);
        } else if last - first > MAX_LINES {
            end = edge.max(start);
        } else {
            let at_end = self.window(file, last, end);
            if !(at_end.start..=at_end.end).contains(&end) {
                end = edge.max(start);
            }
        }
        Some(start..end)
    }

    /// What is shown of a line. A long one is cut around `at`, if it is not cut already.
    fn window(&mut self, file: FileId, line: usize, at: usize) -> Range<usize> {
        let key = (file.0 as usize, line);
        let whole = self.sources.file(file).line_range(line);
        if whole.len() <= MAX_LINE {
            return whole;
        }
        let text = &self.texts[key.0];
        self.windows.entry(key).or_insert_with(|| cut(text, whole, at)).clone()
    }
}

/// The part of a long line around `at`.
fn cut(text: &str, line: Range<usize>, at: usize) -> Range<usize> {
    let start = at.saturating_sub(AROUND).max(line.start);
    let end = (at.max(start) + AROUND).min(line.end);
    let (mut start, mut end) = (start, end);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    start..end
}

/// The text with another character of as many bytes in place of those that a terminal obeys.
fn printable(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| (c.is_control() && !matches!(c, '\n' | '\r' | '\t')) || is_bidi(c);
    // A carriage return before a line break is part of it.
    let returns = |(at, _): (usize, &str)| !text[at + 1..].starts_with('\n');
    if !text.contains(obeyed) && !text.match_indices('\r').any(returns) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let returns = c == '\r' && rest.peek() != Some(&'\n');
        shown.push(match c.len_utf8() {
            _ if !obeyed(c) && !returns => c,
            1 => '?',
            2 => '\u{bf}',
            _ => char::REPLACEMENT_CHARACTER,
        });
    }
    Cow::Owned(shown)
}

/// Whether a character changes the order in which text is shown (Unicode Standard Annex #9, "Explicit
/// Directional Formatting Characters").
pub(crate) fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl<'a> Files<'a> for Excerpts<'_> {
    type FileId = usize;
    type Name = &'a str;
    type Source = &'a str;

    fn name(&'a self, id: usize) -> Result<&'a str, Error> {
        Ok(&self.sources.files().get(id).ok_or(Error::FileMissing)?.name)
    }

    fn source(&'a self, id: usize) -> Result<&'a str, Error> {
        Ok(self.texts.get(id).ok_or(Error::FileMissing)?)
    }

    fn line_index(&'a self, id: usize, byte: usize) -> Result<usize, Error> {
        let file = self.sources.files().get(id).ok_or(Error::FileMissing)?;
        Ok(file.line_of(u32::try_from(byte).unwrap_or(u32::MAX)))
    }

    fn column_number(&'a self, id: usize, _line: usize, byte: usize) -> Result<usize, Error> {
        Ok(self.sources.position(Span::new(FileId(id as u32), byte..byte)).column as usize)
    }

    fn line_range(&'a self, id: usize, line: usize) -> Result<Range<usize>, Error> {
        let file = self.sources.files().get(id).ok_or(Error::FileMissing)?;
        let max = file.line_count();
        if line >= max {
            return Err(Error::LineTooLarge { given: line, max });
        }
        let whole = file.line_range(line);
        Ok(match self.windows.get(&(id, line)) {
            Some(window) => window.clone(),
            None if whole.len() > MAX_LINE => cut(&self.texts[id], whole.clone(), whole.start),
            None => whole,
        })
    }
}
