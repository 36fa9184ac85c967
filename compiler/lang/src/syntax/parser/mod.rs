//! The parser: recursive descent, with an operator stack for binary expressions.
//!
//! Parsing functions return `None` after reporting an error. So do their callers, up to one that can recover:
//! the block (at the next statement) or the file (at the next item).

mod expressions;
mod foreign;
mod items;
mod primary;
mod statements;
mod types;

pub(crate) use expressions::infix_power;

use super::ast::{Expr, ExprKind, MAX_BLOCKS, Name};
use super::lexer::Lexeme;
use super::token::Token;
use crate::deep;
use crate::diagnostics::{Collector, Diagnostic, ids};
use crate::source::{FileId, Span};

/// The parser over the tokens of one file.
pub(super) struct Parser<'a> {
    text: &'a str,
    file: FileId,
    /// Never empty: the last is `End`.
    tokens: &'a [Lexeme],
    /// Index of the next token.
    at: usize,
    /// Value of `at` at the last error; further errors at the same token are suppressed.
    last_error: Option<usize>,
    /// Errors that the lexer already reported.
    unreported: usize,
    /// Open delimiters.
    depth: u16,
    /// Open blocks and array literals.
    blocks: u16,
    /// Whether `Name {` starts a struct literal. It does not in the head of an `if` or a loop.
    struct_literals: bool,
    diagnostics: &'a mut Collector,
}

impl<'a> Parser<'a> {
    pub(super) fn new(
        text: &'a str,
        file: FileId,
        tokens: &'a [Lexeme],
        diagnostics: &'a mut Collector,
    ) -> Self {
        Parser {
            text,
            file,
            tokens,
            at: 0,
            last_error: None,
            unreported: 0,
            depth: 0,
            blocks: 0,
            struct_literals: true,
            diagnostics,
        }
    }

    fn lexeme(&self, ahead: usize) -> Lexeme {
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    fn peek(&self) -> Token {
        self.lexeme(0).token
    }

    fn peek_at(&self, ahead: usize) -> Token {
        self.lexeme(ahead).token
    }

    fn span_of(&self, lexeme: Lexeme) -> Span {
        Span { file: self.file, start: lexeme.start, end: lexeme.end }
    }

    /// The span of the next token.
    fn span(&self) -> Span {
        self.span_of(self.lexeme(0))
    }

    /// The span of the previous token.
    fn previous_span(&self) -> Span {
        self.span_of(self.tokens[self.at.saturating_sub(1)])
    }

    /// Consumes the next token and returns its span.
    fn bump(&mut self) -> Span {
        let span = self.span();
        if self.at < self.tokens.len() - 1 {
            self.at += 1;
        }
        span
    }

    fn eat(&mut self, token: Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, token: Token) -> Option<Span> {
        if self.peek() == token {
            return Some(self.bump());
        }
        self.expected(token.describe());
        None
    }

    /// Reports an unexpected token.
    fn expected(&mut self, what: &str) {
        let found = self.peek();
        let mut error = Diagnostic::error(
            ids::SYNTAX_ERROR,
            self.span(),
            format!("expected {what}, found {}", found.describe()),
        );
        if what == Token::Semicolon.describe() && self.at > 0 {
            // The error belongs at the end of the previous token, often a line above.
            let end = self.previous_span().end;
            error.labels[0].span = Span { file: self.file, start: end, end };
            error = error.at_caret("put a `;` here");
        } else if found.is_keyword() && what == Token::Name.describe() {
            error = error.hint(format!("{} is a keyword", found.describe()));
        }
        if what.starts_with("an item") {
            let text = &self.text[self.span().range()];
            error.hint = foreign::foreign_item(text).map(str::to_owned).or(error.hint);
        }
        self.report(error);
    }

    fn report(&mut self, error: Diagnostic) {
        let previous = self.tokens[self.at.saturating_sub(1)].token;
        if self.peek() == Token::Error || previous == Token::Error {
            // The lexer has reported it.
            self.unreported += 1;
        } else if self.last_error != Some(self.at) {
            self.diagnostics.push(error);
        }
        self.last_error = Some(self.at);
    }

    /// Adds a hint to the last reported error, if that is at the next token and has no hint.
    fn hint_last(&mut self, hint: &str) {
        let at = self.span();
        if let Some(last) = self.diagnostics.last_mut()
            && last.labels.first().is_some_and(|label| label.span == at)
        {
            last.hint.get_or_insert_with(|| hint.to_owned());
        }
    }

    /// A count that grows with every error.
    fn error_count(&self) -> usize {
        self.diagnostics.len() + self.unreported
    }

    fn name(&mut self) -> Option<Name> {
        if self.peek() == Token::Name {
            return Some(Name { span: self.bump() });
        }
        self.expected(Token::Name.describe());
        // A keyword in place of a name starts no statement, unless it is on a new line.
        let gap = self.previous_span().end as usize..self.span().start as usize;
        if self.peek().is_keyword() && !self.text[gap].contains('\n') {
            self.bump();
            // `let mut mut x`
            if self.peek() == Token::Name {
                return Some(Name { span: self.bump() });
            }
        }
        None
    }

    /// Reports nesting beyond the limit, once, and stops parsing: further errors would be noise.
    fn too_deep(&mut self, span: Span, limit: u16) {
        let message = format!("this is nested over {limit} levels deep");
        let error = Diagnostic::error(ids::NESTING_TOO_DEEP, span, message);
        self.report(error.hint("give parts of it names, with `let` or `fn`"));
        self.at = self.tokens.len() - 1;
        self.last_error = Some(self.at);
    }

    /// `open`, the result of `inner`, and `close`.
    fn delimited<T>(
        &mut self,
        open: Token,
        close: Token,
        inner: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<(T, Span)> {
        let opened = self.expect(open)?;
        self.enter(opened)?;
        let struct_literals = std::mem::replace(&mut self.struct_literals, true);
        let result = inner(self);
        self.struct_literals = struct_literals;
        self.depth -= 1;
        let closed = match &result {
            Some(_) => self.close(opened, close),
            None => None,
        };
        if closed.is_none() {
            self.skip_to_close(close);
        }
        Some((result?, opened.to(closed?)))
    }

    /// Skips past the `close` of delimiters whose contents could not be parsed, if it is there.
    fn skip_to_close(&mut self, close: Token) {
        loop {
            let token = self.peek();
            match token {
                _ if token == close => {
                    self.bump();
                    return;
                }
                Token::End
                | Token::Semicolon
                | Token::RightBrace
                | Token::RightParen
                | Token::RightBracket
                | Token::LaunchClose => return,
                _ if token.starts_item() || token.starts_statement() => return,
                _ => self.skip_delimited(),
            }
        }
    }

    /// Counts an opened delimiter; the caller decrements `depth` again.
    fn enter(&mut self, opened: Span) -> Option<()> {
        if self.depth >= deep::limit() {
            self.too_deep(opened, deep::limit());
            return None;
        }
        self.depth += 1;
        Some(())
    }

    /// Counts an opened block or array literal; the caller decrements `blocks` again.
    fn enter_block(&mut self, opened: Span) -> Option<()> {
        if self.blocks >= MAX_BLOCKS {
            self.too_deep(opened, MAX_BLOCKS);
            return None;
        }
        self.blocks += 1;
        Some(())
    }

    /// Consumes the delimiter that closes the one at `opened`.
    fn close(&mut self, opened: Span, close: Token) -> Option<Span> {
        let found = self.peek();
        if found == close {
            return Some(self.bump());
        }
        let found_text = found.describe();
        let error = if found == Token::End || found.starts_item() {
            let opener = &self.text[opened.range()];
            let message = format!("this `{opener}` is never closed");
            let mut error = Diagnostic::error(ids::UNCLOSED_DELIMITER, opened, message);
            if let Some((inner, closing)) = self.suspicious_brace(opened) {
                error = error
                    .label(inner, "this one may be unclosed")
                    .label(closing, "this `}` may not close it: its indentation differs");
            }
            error.label(self.span(), format!("{} is missing before {found_text}", close.describe()))
        } else {
            let message = format!("expected {}, found {found_text}", close.describe());
            let error = Diagnostic::error(ids::SYNTAX_ERROR, self.span(), message);
            error.label(opened, "opened here")
        };
        self.report(error);
        None
    }

    /// The first `{` since `opened` whose closing `}` has a different indentation, with that `}`.
    fn suspicious_brace(&self, opened: Span) -> Option<(Span, Span)> {
        // Once per place: nested blocks end at the same place.
        if self.last_error == Some(self.at) || &self.text[opened.range()] != "{" {
            return None;
        }
        let indentation = |at: u32| {
            let start = self.text[..at as usize].rfind('\n').map_or(0, |end| end + 1);
            let line = &self.text[start..at as usize];
            line.len() - line.trim_start().len()
        };
        let first = self.tokens.partition_point(|lexeme| lexeme.start < opened.end);
        let mut open = vec![];
        let mut found: Option<(Lexeme, Lexeme)> = None;
        for lexeme in self.tokens.get(first..self.at)? {
            match lexeme.token {
                Token::LeftBrace => open.push(*lexeme),
                Token::RightBrace => {
                    let Some(start) = open.pop() else { continue };
                    let differs = indentation(start.start) != indentation(lexeme.start);
                    if differs && found.is_none_or(|(earlier, _)| start.start < earlier.start) {
                        found = Some((start, *lexeme));
                    }
                }
                _ => {}
            }
        }
        found.map(|(start, end)| (self.span_of(start), self.span_of(end)))
    }

    /// A comma-separated list of `item`s up to `close`, which is not consumed.
    fn list<T>(
        &mut self,
        close: Token,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut list = vec![];
        // An item keyword here means that `close` is missing; the caller reports it.
        while self.peek() != close && !self.peek().starts_item() {
            list.push(item(self)?);
            if !self.eat(Token::Comma) {
                break;
            }
        }
        Some(list)
    }

    /// Skips to the end of a statement that could not be parsed: past its `;`, or up to a `}`, a statement or
    /// an item. `start` is the index of its first token.
    fn skip_statement(&mut self, start: usize) {
        if self.at == start && self.peek() != Token::RightBrace && !self.peek().starts_item() {
            self.skip_delimited();
        }
        loop {
            match self.peek() {
                Token::Semicolon => {
                    self.bump();
                    return;
                }
                Token::End | Token::RightBrace => return,
                token if token.starts_statement() || token.starts_item() => return,
                // A block ends its statement, unless an operator follows.
                Token::LeftBrace => {
                    self.skip_delimited();
                    if !matches!(
                        self.peek(),
                        Token::Else | Token::Dot | Token::RightParen | Token::Comma
                    ) {
                        self.eat(Token::Semicolon);
                        return;
                    }
                }
                _ => self.skip_delimited(),
            }
        }
    }

    /// Skips a token, and if it opens a delimiter, everything up to the closing one. Stops before an item,
    /// which cannot occur within delimiters.
    fn skip_delimited(&mut self) {
        let mut open = 0usize;
        loop {
            match self.peek() {
                Token::End => return,
                Token::LeftBrace | Token::LeftParen | Token::LeftBracket => open += 1,
                Token::RightBrace | Token::RightParen | Token::RightBracket => {
                    open = open.saturating_sub(1);
                }
                token if open > 0 && token.starts_item() => return,
                _ => {}
            }
            self.bump();
            if open == 0 {
                return;
            }
        }
    }

    /// Makes a node, unless the tree would become too high.
    fn node(&mut self, kind: ExprKind, span: Span) -> Option<Expr> {
        let height = kind.height();
        if height > deep::limit() {
            self.too_deep(span, deep::limit());
            return None;
        }
        let literal = kind.literal();
        Some(Expr { kind, span, height, literal })
    }

    /// A placeholder for an expression that could not be parsed.
    fn error_expr(&self, span: Span) -> Expr {
        Expr { kind: ExprKind::Error, span, height: 1, literal: super::ast::Literal::No }
    }
}
