//! Turns tokens into a document, along the grammar.
//!
//! The text parses, so nothing here checks for errors; an unexpected token is printed in place. The parser's
//! limit on nesting bounds the recursion.

mod expressions;
mod items;
mod statements;

use super::document::{Break, BreakKind, Document, Group, GroupId, Part};
use super::trivia::Source;
use crate::syntax::Token;

/// Makes the document of a source.
pub(super) fn build(source: &Source<'_>) -> Document {
    let mut builder = Builder { source, document: Document::default(), at: 0, blocks: 0 };
    builder.file();
    builder.document
}

struct Builder<'a> {
    source: &'a Source<'a>,
    document: Document,
    /// Index of the next token.
    at: usize,
    /// The number of blocks so far.
    blocks: usize,
}

/// The layout of a delimited list.
#[derive(Clone, Copy, Default)]
struct ListStyle {
    /// Whether there are spaces inside the delimiters.
    spaced: bool,
    /// Whether blank lines between its elements are kept.
    blank: bool,
    /// Whether it was written over several lines and stays that way.
    forced: bool,
    /// Whether short elements share lines.
    fill: bool,
}

/// Elements up to this width share lines, like rustfmt's `short_array_element_width_threshold`.
const SHORT_ELEMENT: usize = 10;

impl Builder<'_> {
    fn peek(&self) -> Token {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Token {
        self.source.tokens.get(self.at + ahead).map_or(Token::End, |lexeme| lexeme.token)
    }

    /// Adds the next token.
    fn token(&mut self) {
        if self.at < self.source.tokens.len() {
            self.document.parts.push(Part::Token(self.at));
            self.at += 1;
        }
    }

    /// Adds the next token if it is `token`.
    fn eat(&mut self, token: Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.token();
        }
        found
    }

    fn place(&mut self, place: Break) {
        self.document.parts.push(Part::Break(place));
    }

    /// Adds a space.
    fn space(&mut self) {
        self.place(Break::STAY);
    }

    fn open(&mut self) -> GroupId {
        let id = self.new_group(self.document.parts.len(), self.at);
        self.document.parts.push(Part::Open(vec![id]));
        id
    }

    fn new_group(&mut self, start: usize, first: usize) -> GroupId {
        self.document.groups.push(Group { start, end: start, first, last: first, forced: false });
        self.document.groups.len() - 1
    }

    fn close(&mut self, id: GroupId) {
        let end = self.document.parts.len();
        let group = &mut self.document.groups[id];
        group.end = end;
        group.last = self.at.saturating_sub(1).max(group.first);
        self.document.parts.push(Part::Close);
    }

    /// Whether the source has a line break between the first token of a group and the last one so far.
    fn has_newline(&self, id: GroupId) -> bool {
        let first = self.document.groups[id].first;
        let gaps = self.source.gaps.get(first + 1..self.at);
        gaps.is_some_and(|gaps| gaps.iter().any(|gap| gap.newline))
    }

    /// `open a, b close`, as one group.
    fn list(&mut self, close: Token, style: ListStyle, mut element: impl FnMut(&mut Self)) {
        let id = self.open();
        self.token();
        if self.peek() == close {
            let kind = BreakKind::Never;
            self.place(Break { kind, closing: true, deeper: false, ..Break::TIGHT });
            self.token();
            self.close(id);
            return;
        }
        self.document.groups[id].forced = style.forced;
        let edge = Break { space: style.spaced, ..Break::SPACE };
        self.place(edge);
        let mut places = vec![];
        let mut is_short = true;
        let mut takes_comma = true;
        while !matches!(self.peek(), Token::End) && self.peek() != close {
            let first = self.at;
            element(self);
            if self.at == first {
                self.token();
            }
            // `[e; n]`, the only list without commas.
            let repeats = self.eat(Token::Semicolon);
            if repeats {
                self.space();
                element(self);
                takes_comma = false;
            }
            let widths = (first..self.at).map(|at| self.source.token_text(at).len() + 1);
            is_short &= widths.sum::<usize>() <= SHORT_ELEMENT + 1;
            if self.eat(Token::Comma) {
                places.push(self.document.parts.len());
                self.place(Break { blank: style.blank, ..Break::SPACE });
            }
        }
        if style.fill && is_short {
            for place in places {
                if let Some(Part::Break(place)) = self.document.parts.get_mut(place) {
                    place.kind = BreakKind::Fill;
                }
            }
        }
        if takes_comma {
            self.document.parts.push(Part::Comma);
        }
        self.place(Break { closing: true, deeper: false, blank: style.blank, ..edge });
        self.token();
        self.close(id);
    }

    /// A type.
    fn ty(&mut self) {
        while self.eat(Token::Star) {
            if matches!(self.peek(), Token::Const | Token::Mut) {
                self.token();
            }
            self.space();
        }
        if self.peek() != Token::LeftBracket {
            self.token();
            return;
        }
        self.token();
        self.ty();
        if self.eat(Token::Semicolon) {
            self.space();
            self.expression(true);
        }
        self.eat(Token::RightBracket);
    }

    /// `= e`; the value moves to its own line if that makes it fit.
    fn value(&mut self) {
        self.space();
        self.token();
        let place = self.document.parts.len();
        self.document.parts.push(Part::Value(0));
        let id = self.open();
        self.document.parts[place] = Part::Value(id);
        self.expression(true);
        self.close(id);
    }

    /// `#[name(…)]`, possibly repeated, each on a line of its own.
    fn attributes(&mut self, deeper: bool) {
        while self.peek() == Token::Hash {
            self.token();
            self.eat(Token::LeftBracket);
            self.token();
            if self.peek() == Token::LeftParen {
                self.arguments();
            }
            self.eat(Token::RightBracket);
            self.place(Break { deeper, ..Break::SPACE });
        }
    }
}
