//! Prints a document in one pass: a group stays on one line if it fits there.

use super::document::{Break, BreakKind, Document, GroupId, Part};
use super::trivia::{Comment, Source, trim, trim_end};
use super::{INDENT, MAX_INDENT, WIDTH};
use crate::syntax::Token;

/// Prints a document.
pub(super) fn print(source: &Source<'_>, document: &Document) -> String {
    let mut printer = Printer {
        source,
        document,
        measures: Measures::of(source, document),
        out: String::new(),
        column: 0,
        fresh: true,
        line_indent: 0,
        open: vec![],
        was_broken: vec![false; document.groups.len()],
        next: 0,
        flushed: 0,
        own_printed: false,
        closing: false,
    };
    for (index, part) in document.parts.iter().enumerate() {
        printer.part(index, part);
    }
    let printed = printer.out.trim_end_matches('\n').len();
    printer.out.truncate(printed);
    if printed > 0 {
        printer.out.push('\n');
    }
    printer.out
}

/// The widths of parts printed without line breaks.
struct Measures {
    /// The total width of the parts before each part.
    before: Vec<usize>,
    /// The width from each part to the next possible line break.
    tail: Vec<usize>,
    /// The number of forced groups that start before each part.
    forced: Vec<usize>,
    /// The number of mandatory line breaks before each token.
    hard: Vec<usize>,
}

impl Measures {
    fn of(source: &Source<'_>, document: &Document) -> Self {
        let count = document.parts.len();
        let mut measures = Measures {
            before: Vec::with_capacity(count + 1),
            tail: vec![0; count + 1],
            forced: vec![0; count + 1],
            hard: Vec::with_capacity(source.gaps.len()),
        };
        let width = |part: &Part| match part {
            Part::Token(index) => {
                let gap = &source.gaps[*index];
                let comments = gap.comments[gap.inline..].iter().map(|comment| {
                    // The indentation of the following lines may change.
                    let line = source.comment_text(*comment).split('\n').next();
                    trim_end(line.unwrap_or_default()).chars().count() + 1
                });
                source.token_text(*index).chars().count() + comments.sum::<usize>()
            }
            Part::Break(place) => usize::from(place.space),
            Part::Value(_) => 1,
            Part::Comma | Part::Open(_) | Part::Close => 0,
        };
        let mut sum = 0;
        for part in &document.parts {
            measures.before.push(sum);
            sum += width(part);
        }
        measures.before.push(sum);
        for (index, part) in document.parts.iter().enumerate().rev() {
            let rest = measures.tail[index + 1];
            measures.tail[index] = match part {
                Part::Break(Break { kind: BreakKind::Together | BreakKind::Fill, .. })
                | Part::Value(_) => 0,
                Part::Comma => 1 + rest,
                other => width(other) + rest,
            };
        }
        for group in document.groups.iter().filter(|group| group.forced) {
            measures.forced[group.start + 1] += 1;
        }
        for index in 0..count {
            measures.forced[index + 1] += measures.forced[index];
        }
        let mut hard = 0;
        for gap in &source.gaps {
            hard += usize::from(gap.hard);
            measures.hard.push(hard);
        }
        measures
    }
}

/// A group being printed.
#[derive(Clone, Copy)]
struct Frame {
    /// The indentation of the line on which it started.
    base: usize,
    /// Whether its breaks become line breaks.
    broken: bool,
}

struct Printer<'a> {
    source: &'a Source<'a>,
    document: &'a Document,
    measures: Measures,
    out: String,
    /// The current column, including pending indentation.
    column: usize,
    /// Whether the line is still empty; its indentation is written with the first text.
    fresh: bool,
    line_indent: usize,
    open: Vec<Frame>,
    was_broken: Vec<bool>,
    /// Index of the next token.
    next: usize,
    /// The trailing comments before this token have been printed.
    flushed: usize,
    /// Whether the comments on their own lines before the next token have been printed.
    own_printed: bool,
    /// Whether the last possible break was before a closing delimiter.
    closing: bool,
}

impl Printer<'_> {
    fn frame(&self) -> Frame {
        self.open.last().copied().unwrap_or(Frame { base: 0, broken: true })
    }

    /// Whether a group fits on a line, starting at a column.
    fn fits(&self, id: GroupId, column: usize) -> bool {
        let group = &self.document.groups[id];
        let measures = &self.measures;
        let width = measures.before[group.end] - measures.before[group.start];
        measures.forced[group.end] == measures.forced[group.start]
            && measures.hard[group.last] == measures.hard[group.first]
            && column + width + measures.tail[group.end] <= WIDTH
    }

    fn part(&mut self, index: usize, part: &Part) {
        match part {
            Part::Token(token) => self.token(*token),
            Part::Break(place) => self.place(index, *place),
            Part::Comma => {
                if self.frame().broken {
                    self.write(",");
                }
            }
            Part::Open(ids) => {
                for id in ids {
                    let broken = self.frame().broken && !self.fits(*id, self.column);
                    self.was_broken[*id] = broken;
                    self.open.push(Frame { base: self.line_indent, broken });
                }
            }
            Part::Close => {
                self.open.pop();
            }
            Part::Value(id) => {
                let frame = self.frame();
                let deeper = frame.base + INDENT;
                let moves = self.breaks_here()
                    || (frame.broken && !self.fits(*id, self.column + 1) && self.fits(*id, deeper));
                let kind = BreakKind::Never;
                match moves {
                    true => self.break_line(Break { kind, ..Break::SPACE }),
                    false => self.write(" "),
                }
            }
        }
    }

    /// Whether comments before the next token end the line.
    fn breaks_here(&self) -> bool {
        self.source.gaps.get(self.next).is_some_and(|gap| gap.breaks())
    }

    fn place(&mut self, index: usize, place: Break) {
        let broken = self.frame().broken;
        let breaks = self.breaks_here()
            || match place.kind {
                BreakKind::Together => broken,
                BreakKind::Fill => {
                    broken && self.column + 1 + self.measures.tail[index + 1] > WIDTH
                }
                BreakKind::With(id) => self.was_broken[id],
                BreakKind::Never => false,
            };
        if breaks {
            self.break_line(place);
        } else if place.space {
            self.write(" ");
        }
    }

    fn break_line(&mut self, place: Break) {
        self.flush_trailing();
        let base = self.frame().base;
        let gap = &self.source.gaps[self.next.min(self.source.gaps.len() - 1)];
        let keeps_blank = place.blank && gap.starts_blank();
        if place.closing && gap.has_own_lines() {
            self.newline(base + INDENT);
            if keeps_blank {
                self.out.push('\n');
            }
            self.own_comments(false);
            // The comments ended with a line break.
            self.set_indent(base);
        } else {
            self.newline(base + if place.deeper { INDENT } else { 0 });
            if keeps_blank && !place.closing {
                self.out.push('\n');
            }
        }
        self.closing = place.closing;
    }

    fn newline(&mut self, indent: usize) {
        self.out.push('\n');
        self.set_indent(indent);
    }

    fn set_indent(&mut self, indent: usize) {
        self.fresh = true;
        // Without a limit, the text would grow with the square of the nesting.
        self.line_indent = indent.min(MAX_INDENT);
        self.column = self.line_indent;
    }

    /// Writes text without line breaks.
    fn write(&mut self, text: &str) {
        if self.fresh && !text.is_empty() {
            self.out.extend(std::iter::repeat_n(' ', self.line_indent));
            self.fresh = false;
        }
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    /// Prints the comments that end the line of the last token.
    fn flush_trailing(&mut self) {
        let source = self.source;
        let Some(gap) = source.gaps.get(self.next).filter(|_| self.flushed <= self.next) else {
            return;
        };
        self.flushed = self.next + 1;
        for comment in &gap.comments[..gap.trailing] {
            self.write(" ");
            self.comment(*comment);
        }
    }

    /// Prints the comments on their own lines before the next token, and a line break.
    fn own_comments(&mut self, keeps_last_blank: bool) {
        let source = self.source;
        let gap = &source.gaps[self.next];
        let indent = self.line_indent;
        for (index, comment) in gap.comments[gap.trailing..gap.inline].iter().enumerate() {
            if index > 0 && comment.blank {
                self.out.push('\n');
            }
            self.comment(*comment);
            self.newline(indent);
        }
        if keeps_last_blank && gap.blank {
            self.out.push('\n');
        }
        self.own_printed = true;
    }

    fn comment(&mut self, comment: Comment) {
        let text = self.source.comment_text(comment);
        let starred = text.split('\n').skip(1).all(|line| trim(line).starts_with('*'));
        for (index, line) in text.split('\n').enumerate() {
            match (index, starred) {
                (0, _) => self.write(trim_end(line)),
                (_, true) => {
                    let indent = self.line_indent;
                    self.newline(indent);
                    self.write(" ");
                    self.write(trim(line));
                }
                (_, false) => {
                    self.out.push('\n');
                    self.out.push_str(trim_end(line));
                    self.column = trim_end(line).chars().count();
                }
            }
        }
    }

    fn token(&mut self, index: usize) {
        let source = self.source;
        let gap = &source.gaps[index];
        let token = source.tokens[index].token;
        self.flush_trailing();
        if gap.breaks() && !self.fresh {
            let indent = self.frame().base + INDENT;
            self.newline(indent);
        }
        if gap.has_own_lines() && !self.own_printed {
            self.own_comments(!self.closing && token != Token::End);
        }
        for comment in &gap.comments[gap.inline..] {
            if !self.fresh && !self.out.ends_with([' ', '(', '[']) && !self.out.ends_with("<<<") {
                self.write(" ");
            }
            self.comment(*comment);
        }
        let tight = matches!(
            token,
            Token::Comma
                | Token::Semicolon
                | Token::RightParen
                | Token::RightBracket
                | Token::LaunchClose
                | Token::Dot
        );
        let text = source.token_text(index);
        let joins = |c: char| !self.fresh && self.out.ends_with(c) && text.starts_with(c);
        if gap.inline < gap.comments.len() && !tight || joins('.') || joins('&') {
            self.write(" ");
        }
        self.write(text);
        self.next = index + 1;
        self.own_printed = false;
        self.closing = false;
    }
}
