//! The parser: recursive descent, operators by a stack.
//!
//! A function that reads something gives `None` after it has reported an error; its caller gives up too,
//! until one that can find its feet again: the block (at the next statement) or the file (at the next item).

mod expressions;
mod foreign;
mod items;
mod primary;
mod statements;
mod types;

pub(crate) use expressions::infix_power;

use super::ast::{Expr, ExprKind, MAX_HEIGHT, Name};
use super::lexer::Lexeme;
use super::token::Token;
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
    /// Where `Parser::at` was at the last error: a second one at the same token says nothing new.
    last_error: Option<usize>,
    /// Errors that the lexer reported already.
    unreported: usize,
    /// Open delimiters.
    depth: u16,
    /// Whether `Name {` starts a struct literal: not in the head of an `if` or a loop.
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

    /// Where the next token stands.
    fn span(&self) -> Span {
        self.span_of(self.lexeme(0))
    }

    /// Where the last token stood.
    fn previous_span(&self) -> Span {
        self.span_of(self.tokens[self.at.saturating_sub(1)])
    }

    /// Takes the next token and gives its span.
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

    /// Reports that something else should stand here.
    fn expected(&mut self, what: &str) {
        let found = self.peek();
        let mut error = Diagnostic::error(
            ids::SYNTAX_ERROR,
            self.span(),
            format!("expected {what}, found {}", found.describe()),
        );
        if what == Token::Semicolon.describe() && self.at > 0 {
            // The mistake is at the end of what stands before, often a line up.
            let end = self.previous_span().end;
            error.labels[0].span = Span { file: self.file, start: end, end };
            error = error.at_caret("put a `;` here");
        } else if found.is_keyword() && what == Token::Name.describe() {
            error = error.hint(format!("{} is a word of the language", found.describe()));
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
            // The lexer has said what is wrong.
            self.unreported += 1;
        } else if self.last_error != Some(self.at) {
            self.diagnostics.push(error);
        }
        self.last_error = Some(self.at);
    }

    /// Gives the error at the next token a hint, if it is the one that was reported last and has none.
    fn hint_last(&mut self, hint: &str) {
        let at = self.span();
        if let Some(last) = self.diagnostics.last_mut()
            && last.labels.first().is_some_and(|label| label.span == at)
        {
            last.hint.get_or_insert_with(|| hint.to_owned());
        }
    }

    /// Grows with every error.
    fn error_count(&self) -> usize {
        self.diagnostics.len() + self.unreported
    }

    fn name(&mut self) -> Option<Name> {
        if self.peek() == Token::Name {
            return Some(Name { span: self.bump() });
        }
        self.expected(Token::Name.describe());
        // A word of the language in place of a name starts nothing, unless it is on a line of its own.
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

    /// Reports nesting beyond the limit, once, and stops reading: whatever follows such input is noise.
    fn too_deep(&mut self, span: Span) {
        let message = format!("this is nested over {MAX_HEIGHT} levels deep");
        let error = Diagnostic::error(ids::NESTING_TOO_DEEP, span, message);
        self.report(error.hint("give parts of it names of their own, with `let` or `fn`"));
        self.at = self.tokens.len() - 1;
        self.last_error = Some(self.at);
    }

    /// Takes `open`, what `inner` reads, and `close`.
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

    /// Skips past the `close` of delimiters whose inside could not be read, if it is there.
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

    /// Counts a delimiter that was opened; the caller takes one off `depth` again.
    fn enter(&mut self, opened: Span) -> Option<()> {
        if self.depth >= MAX_HEIGHT {
            self.too_deep(opened);
            return None;
        }
        self.depth += 1;
        Some(())
    }

    /// Takes the delimiter that closes the one at `opened`.
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
                    .label(inner, "this one may be what is not closed")
                    .label(closing, "by its indentation, this `}` is not its end");
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

    /// The first `{` since `opened` that is closed by a `}` of other indentation, with that one.
    fn suspicious_brace(&self, opened: Span) -> Option<(Span, Span)> {
        // Once for each place: nested blocks end there one after the other.
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

    /// A list of what `item` reads with commas between, up to `close`, which is not taken.
    fn list<T>(
        &mut self,
        close: Token,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut list = vec![];
        // An item here means that `close` is missing, which the caller reports.
        while self.peek() != close && !self.peek().starts_item() {
            list.push(item(self)?);
            if !self.eat(Token::Comma) {
                break;
            }
        }
        Some(list)
    }

    /// Skips to the end of the statement that could not be read: past its `;`, or up to a `}`, a
    /// statement or an item. `start` is the index of its first token.
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
                // A block ends its statement, unless an operator goes on with it.
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

    /// Skips a token, and if it opens a delimiter all up to its partner. Stops before an item: no item
    /// stands within delimiters.
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

    /// Makes a node, unless it would be too high.
    fn node(&mut self, kind: ExprKind, span: Span) -> Option<Expr> {
        let height = kind.height();
        if height > MAX_HEIGHT {
            self.too_deep(span);
            return None;
        }
        let literal = kind.literal();
        Some(Expr { kind, span, height, literal })
    }

    /// Stands for an expression that could not be read.
    fn error_expr(&self, span: Span) -> Expr {
        Expr { kind: ExprKind::Error, span, height: 1, literal: super::ast::Literal::No }
    }
}
