//! Source files and positions in them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// Index of a file in a [`SourceMap`]. A [`ProgramBuilder`](crate::builder::ProgramBuilder) has numbers of its own for its files
/// until the program is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A half-open range of bytes in one source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte, counted from the start of the file.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The position of code that is not in the sources.
    pub const NOWHERE: Span = Span { file: FileId(0), start: 0, end: 0 };

    /// A span over `range` of `file`.
    pub fn new(file: FileId, range: Range<usize>) -> Self {
        let clamp = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span { file, start: clamp(range.start), end: clamp(range.end) }
    }

    /// The smallest span that covers both. Both must lie in the same file.
    pub fn to(self, other: Span) -> Span {
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The byte range.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// How much of a source file its [`SourceFile::text`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Known {
    /// All of it.
    Text,
    /// At the lines that the program mentions, the text that was generated from them.
    Generated,
    /// The numbers of its lines only.
    Lines,
}

/// One source file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The name recorded in artifacts: the path relative to the folder of the program's first file.
    pub name: String,
    /// The text.
    pub text: String,
    /// How much of the file that is.
    pub known: Known,
    /// The text of the file if [`SourceFile::text`] is another one, and it was found.
    pub(crate) original: Option<String>,
    /// The folder that the name is relative to, if the program names one.
    pub folder: Option<PathBuf>,
    /// The byte at which each line starts; the first is 0.
    line_starts: Vec<u32>,
    /// The number of characters that start before each multiple of [`CHECKPOINT`] bytes.
    checkpoints: Vec<u32>,
    /// The `#line` directives, in the order of the text.
    directives: Vec<Directive>,
}

/// A `#line` directive: the position of the following lines in the text that they were generated from.
#[derive(Clone, Debug)]
struct Directive {
    /// The first line after it, counted from 0.
    first: usize,
    /// The number of that line in the other text, counted from 1.
    line: u32,
    /// The other text's name; `None` for that of the file itself.
    name: Option<String>,
}

/// The most lines of a text that others are generated from.
pub const MAX_LINES: u32 = 1_000_000;

/// Whether a name ends in that of a file. ptxas crashes over the name of a folder in debug information.
pub(crate) fn names_a_file(name: &str) -> bool {
    !matches!(name.rsplit('/').next(), Some("" | "." | ".."))
}

/// What is wrong with the name of a source file that a compiler made up. ptxas takes a quotation mark for the end of a name.
pub fn wrong_file_name(name: &str) -> Option<String> {
    let is_readable = names_a_file(name) && !name.contains(|c: char| c == '"' || c.is_control());
    (!is_readable).then(|| {
        format!(
            "{name:?} cannot be the name of a source file: give one with a file at its end, and without quotation marks, \
             line breaks and other control characters"
        )
    })
}

/// What is wrong with a `#line` directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrongDirective {
    /// It is something else than a number and a name.
    Form,
    /// No text has that line.
    Line,
    /// The name is not that of a file.
    Name,
}

/// The number and the name in a `#line` directive.
pub(crate) fn line_directive(text: &str) -> Result<(u32, Option<&str>), WrongDirective> {
    let rest = text.trim().strip_prefix("#line").ok_or(WrongDirective::Form)?;
    let (number, name) = match rest.split_once('"') {
        Some((number, rest)) => {
            let name = rest.strip_suffix('"').filter(|name| !name.contains('"'));
            (number, Some(name.ok_or(WrongDirective::Form)?))
        }
        None => (rest, None),
    };
    let number = number.strip_prefix([' ', '\t']).ok_or(WrongDirective::Form)?.trim();
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(WrongDirective::Form);
    }
    let line = number.parse().ok().filter(|line| (1..=MAX_LINES).contains(line));
    let line = line.ok_or(WrongDirective::Line)?;
    match name.is_none_or(names_a_file) {
        true => Ok((line, name)),
        false => Err(WrongDirective::Name),
    }
}

/// By line of a program, whether it starts inside a block comment.
fn starts_in_comments(text: &str) -> Vec<bool> {
    let bytes = text.as_bytes();
    let mut starts = vec![false];
    let (mut at, mut depth, mut is_string) = (0, 0usize, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        at += match rest {
            [b'\n', ..] => {
                is_string = false;
                starts.push(depth > 0);
                1
            }
            [b'/', b'*', ..] if !is_string => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] if depth > 0 => {
                depth -= 1;
                2
            }
            _ if depth > 0 => 1,
            [b'\\', other, ..] if is_string && *other != b'\n' => 2,
            [b'"', ..] => {
                is_string = !is_string;
                1
            }
            _ if is_string => 1,
            [b'/', b'/', ..] => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
            // Bytes such as `b'"'`.
            [b'\'', b'\\', _, b'\'', ..] => 4,
            [b'\'', _, b'\'', ..] => 3,
            _ => 1,
        };
    }
    starts
}

/// A position as an editor shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
}

/// Why the file of a `use` is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UseFailure {
    /// The id of the message, from [`crate::diagnostics::ids`].
    pub id: &'static str,
    /// The problem.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

/// The source files of one program. File 0 is the program's first file.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
    /// The folder of the first file, for messages.
    folder: PathBuf,
    /// The outcome of each `use`, by its file and the first byte of its path.
    uses: BTreeMap<(FileId, u32), Result<FileId, UseFailure>>,
}

impl SourceMap {
    /// A map of one file.
    pub fn single(name: impl Into<String>, text: impl Into<String>) -> Self {
        let mut map = SourceMap::default();
        map.add(name, text);
        map
    }

    /// Adds a file of the language, where `#line` names other positions, and returns its id.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let id = self.add_known(name, text, Known::Text);
        let file = &mut self.files[id.0 as usize];
        if file.text.contains("#line") {
            let is_comment = starts_in_comments(&file.text);
            for (at, line) in file.text.split('\n').enumerate() {
                if !is_comment[at]
                    && let Ok((line, name)) = line_directive(line)
                {
                    let name = name.map(Into::into);
                    file.directives.push(Directive { first: at + 1, line, name });
                }
            }
        }
        id
    }

    /// Adds a text in which `#line` means nothing: it may not be the file's, or is not in the language.
    pub(crate) fn add_known(
        &mut self,
        name: impl Into<String>,
        text: impl Into<String>,
        known: Known,
    ) -> FileId {
        let text = text.into();
        let line_starts: Vec<u32> = std::iter::once(0)
            .chain(
                text.match_indices('\n').map(|(at, _)| u32::try_from(at + 1).unwrap_or(u32::MAX)),
            )
            .collect();
        let checkpoints = text.as_bytes().chunks(CHECKPOINT).scan(0u32, |before, chunk| {
            Some(std::mem::replace(before, *before + starts_in(chunk)))
        });
        let checkpoints = checkpoints.collect();
        let id = FileId(self.files.len() as u32);
        self.files.push(SourceFile {
            name: name.into(),
            text,
            known,
            original: None,
            folder: None,
            line_starts,
            checkpoints,
            directives: vec![],
        });
        id
    }

    /// Adds a file of which only the numbers of some lines are known, counted from 1 and ascending. The span of the line at an
    /// index of `lines` is that byte. `folder` is what the name is relative to.
    pub fn add_lines(
        &mut self,
        name: impl Into<String>,
        folder: Option<PathBuf>,
        lines: &[u32],
    ) -> FileId {
        let id = self.add_known(name, "\n".repeat(lines.len()), Known::Lines);
        let numbered = lines.iter().enumerate();
        let file = &mut self.files[id.0 as usize];
        file.folder = folder;
        file.directives =
            numbered.map(|(first, &line)| Directive { first, line, name: None }).collect();
        id
    }

    /// Gives a file the text that [`Known`] says is unknown, for messages. Spans still point into [`SourceFile::text`].
    pub fn set_original(&mut self, id: FileId, text: String) {
        if let Some(file) = self.files.get_mut(id.0 as usize) {
            file.original = Some(text);
        }
    }

    /// Makes messages show files by their path from the current folder, for a program in `folder`. Artifacts
    /// record only the names, which do not depend on the program's location.
    pub fn set_folder(&mut self, folder: &Path) {
        self.folder = folder.to_path_buf();
    }

    /// The name of a file in messages.
    pub fn shown_name(&self, file: &SourceFile) -> String {
        self.folder.join(&file.name).display().to_string()
    }

    /// Records the file that a `use` names; `path` is the span of its path.
    pub fn set_used(&mut self, path: Span, used: Result<FileId, UseFailure>) {
        self.uses.insert((path.file, path.start), used);
    }

    /// The file that a `use` names; `None` if it was not looked up. `path` is the span of its path.
    pub fn used(&self, path: Span) -> Option<&Result<FileId, UseFailure>> {
        self.uses.get(&(path.file, path.start))
    }

    /// The files, in the order of ids.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The file with an id that this map returned.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// The text that a span covers.
    pub fn text(&self, span: Span) -> &str {
        &self.file(span.file).text[span.range()]
    }

    /// The line and column at which a span starts; the line is that of the text which `#line` names.
    pub fn position(&self, span: Span) -> LineColumn {
        let file = self.file(span.file);
        let line = file.line_of(span.start);
        let column = file.starts_before(span.start) - file.starts_before(file.line_starts[line]);
        LineColumn { line: file.origin(line).1, column: column + 1 }
    }

    /// The line, counted from 1, at which a span starts: that of the text which `#line` names.
    pub fn line(&self, span: Span) -> u32 {
        let file = self.file(span.file);
        file.origin(file.line_of(span.start)).1
    }

    /// The name of the file of a span: the one that `#line` names.
    pub fn name(&self, span: Span) -> &str {
        let file = self.file(span.file);
        file.origin(file.line_of(span.start)).0
    }

    /// As [`SourceMap::name`], for messages.
    pub fn shown_name_of(&self, span: Span) -> String {
        self.folder.join(self.name(span)).display().to_string()
    }

    /// The line at which a span starts, without its line break.
    pub(crate) fn line_text(&self, span: Span) -> &str {
        let file = self.file(span.file);
        let range = file.line_range(file.line_of(span.start));
        range.map_or("", |range| file.text[range].trim_end())
    }

    /// The bytes between the start of the line and the start of a span.
    pub(crate) fn bytes_before(&self, span: Span) -> u32 {
        let file = self.file(span.file);
        span.start - file.line_starts[file.line_of(span.start)]
    }

    /// Whether a `#line` directive precedes a span in its file.
    pub(crate) fn is_generated(&self, span: Span) -> bool {
        let file = self.file(span.file);
        let line = file.line_of(span.start);
        file.directives.first().is_some_and(|directive| directive.first <= line)
    }

    /// Whether a file has a `#line` directive.
    pub(crate) fn has_directives(&self) -> bool {
        self.files.iter().any(|file| !file.directives.is_empty())
    }
}

/// Bytes between two counts of characters: the most that finding a column examines, however long the line is.
const CHECKPOINT: usize = 1024;

/// The number of characters that start in a piece of text.
fn starts_in(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count() as u32
}

impl SourceFile {
    /// The text of the whole file, if it is known.
    pub fn whole(&self) -> Option<&str> {
        let text = (self.known == Known::Text).then_some(&self.text);
        self.original.as_ref().or(text).map(String::as_str)
    }

    /// SHA-256 of the text of the whole file in hexadecimal, if it is known.
    pub fn sha256(&self) -> Option<String> {
        let hash = Sha256::digest(self.whole()?);
        Some(hash.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The line of a byte, counted from 0; the last line for a position past the end.
    pub(crate) fn line_of(&self, at: u32) -> usize {
        self.line_starts.partition_point(|&start| start <= at).max(1) - 1
    }

    /// The file and line, counted from 1, of a line counted from 0, as `#line` says.
    pub(crate) fn origin(&self, line: usize) -> (&str, u32) {
        let before = self.directives.partition_point(|directive| directive.first <= line);
        match before.checked_sub(1).map(|at| &self.directives[at]) {
            None => (&self.name, line as u32 + 1),
            Some(directive) => {
                let number = directive.line.saturating_add((line - directive.first) as u32);
                (directive.name.as_deref().unwrap_or(&self.name), number.min(MAX_LINES))
            }
        }
    }

    /// The bytes of a line, counted from 0, with its line break.
    pub(crate) fn line_range(&self, line: usize) -> Option<Range<usize>> {
        let start = *self.line_starts.get(line)? as usize;
        let end = self.line_starts.get(line + 1).map_or(self.text.len(), |&end| end as usize);
        Some(start..end)
    }

    /// The number of characters that start before a byte.
    fn starts_before(&self, at: u32) -> u32 {
        let at = (at as usize).min(self.text.len());
        let block = at / CHECKPOINT;
        let Some(before) = self.checkpoints.get(block) else {
            // The text ends where a block would start.
            let rest = block.saturating_sub(1) * CHECKPOINT;
            let before = self.checkpoints.get(block.saturating_sub(1)).copied().unwrap_or(0);
            return before + starts_in(&self.text.as_bytes()[rest..at]);
        };
        before + starts_in(&self.text.as_bytes()[block * CHECKPOINT..at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let map = SourceMap::single("a.grid", "é=1\n\nxyz");
        let at = |start: usize| map.position(Span::new(FileId(0), start..start));
        assert_eq!(at(0), LineColumn { line: 1, column: 1 });
        assert_eq!(at(2), LineColumn { line: 1, column: 2 });
        assert_eq!(at(5), LineColumn { line: 2, column: 1 });
        assert_eq!(at(8), LineColumn { line: 3, column: 3 });
    }

    #[test]
    fn columns_of_long_lines_are_counted_in_characters() {
        let text = "aé".repeat(2000) + "\n" + &"é".repeat(1024);
        let map = SourceMap::single("a.grid", text.as_str());
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let line_start = text[..at].rfind('\n').map_or(0, |end| end + 1);
            let column = text[line_start..at].chars().count() as u32 + 1;
            let line = text[..at].matches('\n').count() as u32 + 1;
            let span = Span::new(FileId(0), at..at);
            assert_eq!(map.position(span), LineColumn { line, column }, "at {at}");
            assert_eq!(map.line(span), line);
        }
    }

    #[test]
    fn files_of_line_numbers_keep_them() {
        let mut map = SourceMap::single("a.ll", "x\n");
        let id = map.add_lines("m.toy", None, &[7, 8, 900]);
        let at = |map: &SourceMap, at: usize| {
            let span = Span::new(id, at..at);
            (map.name(span).to_owned(), map.line(span), map.position(span).line)
        };
        for (index, line) in [7, 8, 900].into_iter().enumerate() {
            assert_eq!(at(&map, index), ("m.toy".to_owned(), line, line));
        }
        assert_eq!(map.file(id).sha256(), None);
        map.set_original(id, "one\ntwo\n".into());
        assert_eq!(at(&map, 1).1, 8);
        assert_eq!(map.file(id).sha256().map(|hash| hash.len()), Some(64));
    }

    #[test]
    fn line_directives_in_comments_are_none() {
        let line = |text: &str| {
            let map = SourceMap::single("a.grid", text);
            map.line(Span::new(FileId(0), text.len()..text.len()))
        };
        for comment in ["/*\n#line 7\n", "/* /* */\n#line 7\n*/", "\"/\"/*\n#line 7\n"] {
            assert!(line(comment) < 7, "{comment}");
        }
        let code = ["/* */", "\"/*\"", "\"\\\"/*\"", "// /*", "b'\"' /* */ b'\\'' '/", "\"/*"];
        for code in code {
            assert_eq!(line(&format!("{code}\n#line 7\n")), 7, "{code}");
        }
    }

    #[test]
    fn line_directives_name_another_file_and_line() {
        let text = "a\n#line 12 \"m.toy\"\nb\nc\n  #line 3\nd\n#line x\ne";
        let map = SourceMap::single("a.grid", text);
        let of = |part: &str| {
            let at = text.find(part).unwrap();
            let span = Span::new(FileId(0), at..at + 1);
            (map.name(span), map.line(span), map.position(span).line)
        };
        assert_eq!(of("a\n"), ("a.grid", 1, 1));
        assert_eq!(of("b\n"), ("m.toy", 12, 12));
        assert_eq!(of("c\n"), ("m.toy", 13, 13));
        assert_eq!(of("d\n"), ("a.grid", 3, 3));
        // Not a directive: the lexer reports it.
        assert_eq!(text.rfind('e').map(|at| map.line(Span::new(FileId(0), at..at))), Some(5));
        for (wrong, why) in [
            ("#line", WrongDirective::Form),
            ("#line 0", WrongDirective::Line),
            ("#line12", WrongDirective::Form),
            ("#line +1", WrongDirective::Form),
            ("#line 1 \"a", WrongDirective::Form),
            ("#line 1 a", WrongDirective::Form),
            ("#line 2000000", WrongDirective::Line),
            ("#line 99999999999999999999", WrongDirective::Line),
            ("#line 1 \"\"", WrongDirective::Name),
            ("#line 1 \"models/\"", WrongDirective::Name),
        ] {
            assert_eq!(line_directive(wrong), Err(why), "{wrong}");
        }
        assert_eq!(line_directive("\t#line\t7 \"a b.toy\" \r"), Ok((7, Some("a b.toy"))));
    }
}
