//! Tokens and the comments between them.

use super::closes;
use crate::diagnostics::Collector;
use crate::source::FileId;
use crate::syntax::{Lexeme, Token, lex};

/// A comment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comment {
    start: usize,
    end: usize,
    /// Whether a blank line precedes it.
    pub(super) blank: bool,
}

/// The gap between a token and its predecessor.
#[derive(Clone, Debug, Default)]
pub(super) struct Gap {
    /// The comments, in order.
    pub(super) comments: Vec<Comment>,
    /// The number of comments on the line of the previous token.
    pub(super) trailing: usize,
    /// Index of the first comment on the line of the next token.
    pub(super) inline: usize,
    /// Whether there is a line break.
    pub(super) newline: bool,
    /// Whether a blank line precedes the token or the comments on its line.
    pub(super) blank: bool,
    /// Whether a line break is mandatory: after a comment that ended its line, or within one.
    pub(super) hard: bool,
}

impl Gap {
    /// Whether it has a comment on a line of its own.
    pub(super) fn has_own_lines(&self) -> bool {
        self.trailing < self.inline
    }

    /// Whether the previous line ends with a comment, or a comment on its own line follows.
    pub(super) fn breaks(&self) -> bool {
        self.inline > 0
    }

    /// Whether a blank line follows the previous line.
    pub(super) fn starts_blank(&self) -> bool {
        match self.has_own_lines() {
            true => self.comments[self.trailing].blank,
            false => self.blank,
        }
    }
}

/// A text, split into tokens and gaps.
pub(super) struct Source<'a> {
    text: &'a str,
    /// The tokens; the last is `End`. Commas before a closing delimiter are left out.
    pub(super) tokens: Vec<Lexeme>,
    /// The gap before each token.
    pub(super) gaps: Vec<Gap>,
}

impl<'a> Source<'a> {
    /// Splits a text whose lines end with `\n`.
    pub(super) fn read(text: &'a str) -> Self {
        let lexemes = lex(text, FileId(0), &mut Collector::default());
        let mut source = Source { text, tokens: vec![], gaps: vec![] };
        let mut at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let mut pieces = vec![];
        for (index, lexeme) in lexemes.iter().enumerate() {
            pieces_of(text, at..lexeme.start as usize, &mut pieces);
            at = lexeme.end as usize;
            let next = lexemes.get(index + 1).map(|next| next.token);
            if lexeme.token == Token::Comma && next.is_some_and(closes) {
                continue;
            }
            source.gaps.push(gap(text, &pieces, source.tokens.is_empty(), lexeme.token));
            source.tokens.push(*lexeme);
            pieces.clear();
        }
        source
    }

    /// The text of a token.
    pub(super) fn token_text(&self, index: usize) -> &'a str {
        let lexeme = self.tokens[index];
        &self.text[lexeme.start as usize..lexeme.end as usize]
    }

    /// The text of a comment. Trailing spaces of a line comment are removed.
    pub(super) fn comment_text(&self, comment: Comment) -> &'a str {
        trim_end(&self.text[comment.start..comment.end])
    }

    /// The texts of all tokens.
    pub(super) fn texts(&self) -> impl Iterator<Item = &'a str> {
        (0..self.tokens.len()).map(|index| self.token_text(index))
    }

    /// The lines of all comments, without surrounding space, which may change.
    pub(super) fn comment_lines(&self) -> impl Iterator<Item = &'a str> {
        self.gaps
            .iter()
            .flat_map(|gap| &gap.comments)
            .flat_map(|comment| self.comment_text(*comment).split('\n').map(trim))
    }
}

/// A piece of a gap.
enum Piece {
    Newline,
    Comment(usize, usize),
}

/// Adds the line breaks and comments in a range without tokens.
fn pieces_of(text: &str, range: std::ops::Range<usize>, pieces: &mut Vec<Piece>) {
    let bytes = &text.as_bytes()[..range.end];
    let mut at = range.start;
    while at < bytes.len() {
        let start = at;
        match &bytes[at..] {
            [b'\n', ..] => {
                pieces.push(Piece::Newline);
                at += 1;
            }
            [b'/', b'/', ..] | [b'#', b'l', ..] => {
                at += bytes[at..].iter().take_while(|byte| **byte != b'\n').count();
                pieces.push(Piece::Comment(start, at));
            }
            [b'/', b'*', ..] => {
                let mut depth = 0usize;
                loop {
                    match &bytes[at..] {
                        [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
                        [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
                        [] => break,
                        _ => at += 1,
                    }
                    if depth == 0 {
                        break;
                    }
                }
                pieces.push(Piece::Comment(start, at));
            }
            _ => at += 1,
        }
    }
}

/// Makes a gap from its pieces.
fn gap(text: &str, pieces: &[Piece], is_first: bool, token: Token) -> Gap {
    let mut gap = Gap::default();
    let mut newlines = 0;
    let mut seen_newline = is_first;
    for piece in pieces {
        match *piece {
            Piece::Newline => {
                newlines += 1;
                if !seen_newline {
                    gap.trailing = gap.comments.len();
                }
                seen_newline = true;
                gap.inline = gap.comments.len();
            }
            Piece::Comment(start, end) => {
                gap.hard |= text[start..end].contains('\n');
                gap.comments.push(Comment { start, end, blank: newlines > 1 });
                newlines = 0;
            }
        }
    }
    if token == Token::End {
        // Nothing follows on their line.
        gap.inline = gap.comments.len();
        if !seen_newline {
            gap.trailing = gap.inline;
        }
    }
    gap.newline = pieces.iter().any(|piece| matches!(piece, Piece::Newline)) || gap.hard;
    gap.hard |= gap.inline > 0;
    // The last line break may precede comments on the token's line.
    gap.blank = match gap.comments.get(gap.inline) {
        Some(comment) => comment.blank,
        None => newlines > 1,
    };
    gap
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\x0c')
}

/// Removes trailing spaces.
pub(super) fn trim_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

/// Removes surrounding spaces.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}
