//! A position in the text, and the basic tokens of the grammar.

use std::ops::Range;
use std::str::FromStr;

use super::ParseError;
use crate::source::LineColumn;

/// Moves over the text from left to right. Spaces before a word are skipped, newlines only between lines.
#[derive(Clone)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Cursor { text, at: 0 }
    }

    /// The remaining text, without leading spaces.
    pub(super) fn rest(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start_matches([' ', '\t', '\r']);
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    /// Moves to the next line that is not empty. Lines that start with `;` are comments.
    pub(super) fn skip_blank_lines(&mut self) {
        loop {
            let rest = self.rest();
            if rest.starts_with('\n') {
                self.at += 1;
            } else if rest.starts_with(';') {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else {
                return;
            }
        }
    }

    pub(super) fn is_at_end(&mut self) -> bool {
        self.rest().is_empty()
    }

    /// Whether the rest of the line is empty or a comment.
    pub(super) fn is_at_end_of_line(&mut self) -> bool {
        let rest = self.rest();
        rest.is_empty() || rest.starts_with(['\n', ';'])
    }

    pub(super) fn end_of_line(&mut self) -> Result<(), ParseError> {
        match self.rest() {
            "" => Ok(()),
            rest if rest.starts_with('\n') => {
                self.at += 1;
                Ok(())
            }
            _ => Err(self.expected("the end of the line")),
        }
    }

    /// The rest of the line, without the newline.
    pub(super) fn line(&mut self) -> &'t str {
        let rest = self.rest();
        let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
        self.at += line.len();
        line.trim_end()
    }

    /// The bytes of the line at which it is, without the white space around it.
    pub(super) fn line_range(&self) -> Range<usize> {
        let start = self.text[..self.at].rfind('\n').map_or(0, |end| end + 1);
        let end = self.text[self.at..].find('\n').map_or(self.text.len(), |end| self.at + end);
        let line = &self.text[start..end];
        let start = start + line.len() - line.trim_start().len();
        start..start + line.trim().len()
    }

    /// The place some bytes later in the same line.
    pub(super) fn past(mut self, bytes: usize) -> Self {
        self.at += bytes;
        self
    }

    /// Consumes a punctuation mark, if it comes next. Returns whether it did.
    pub(super) fn eat(&mut self, symbol: &str) -> bool {
        let found = self.rest().starts_with(symbol);
        if found {
            self.at += symbol.len();
        }
        found
    }

    pub(super) fn expect(&mut self, symbol: &str) -> Result<(), ParseError> {
        if self.eat(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    /// The next word, without consuming it; empty if there is none.
    pub(super) fn peek_word(&mut self) -> &'t str {
        let rest = self.rest();
        &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())]
    }

    /// Consumes this word, if it comes next. Returns whether it did.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == word;
        if found {
            self.at += word.len();
        }
        found
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Result<(), ParseError> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    pub(super) fn word(&mut self, what: &str) -> Result<&'t str, ParseError> {
        let word = self.peek_word();
        if word.is_empty() {
            return Err(self.expected(what));
        }
        self.at += word.len();
        Ok(word)
    }

    /// A name, possibly with const arguments: `k::<8, true>.body`.
    pub(super) fn name(&mut self, what: &str) -> Result<&'t str, ParseError> {
        let start = self.text.len() - self.rest().len();
        self.word(what)?;
        while self.text[self.at..].starts_with("::<") {
            let line = &self.text[self.at..];
            let line = &line[..line.find('\n').unwrap_or(line.len())];
            let Some(end) = line.find('>') else {
                self.at += line.len();
                return Err(self.expected("`>` after const arguments"));
            };
            self.at += end + 1;
            let after = &self.text[self.at..];
            self.at += after.find(|c| !is_word(c)).unwrap_or(after.len());
        }
        Ok(&self.text[start..self.at])
    }

    pub(super) fn number<N: FromStr>(&mut self, what: &str) -> Result<N, ParseError> {
        let word = self.peek_word();
        let number = word.parse().map_err(|_| self.expected(what))?;
        self.at += word.len();
        Ok(number)
    }

    /// A literal with its type suffix: `-3i32`, `1e-9f64`, `NaNf32`.
    pub(super) fn literal(&mut self) -> &'t str {
        let rest = self.rest();
        let mut end = 0;
        let mut before = '\0';
        for c in rest.chars() {
            let is_sign = c == '-' && (end == 0 || before == 'e') || c == '+' && before == 'e';
            if !is_word(c) && !is_sign {
                break;
            }
            before = c;
            end += c.len_utf8();
        }
        self.at += end;
        &rest[..end]
    }

    /// The bytes between quotation marks, escaped as by [`u8::escape_ascii`].
    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, ParseError> {
        self.expect("\"")?;
        let mut bytes = vec![];
        loop {
            let mut rest = self.text[self.at..].bytes();
            let (byte, length) = match rest.next() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(bytes);
                }
                Some(b'\\') => match rest.next() {
                    Some(b'n') => (b'\n', 2),
                    Some(b't') => (b'\t', 2),
                    Some(b'r') => (b'\r', 2),
                    Some(quoted @ (b'"' | b'\'' | b'\\')) => (quoted, 2),
                    Some(b'x') => {
                        let digits = self.text.get(self.at + 2..self.at + 4);
                        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                        (byte.ok_or_else(|| self.expected("`\\x` and two digits"))?, 4)
                    }
                    _ => return Err(self.expected("an escape such as `\\n` or `\\x00`")),
                },
                Some(plain @ b' '..=b'~') => (plain, 1),
                _ => return Err(self.expected("`\"`")),
            };
            bytes.push(byte);
            self.at += length;
        }
    }

    /// An error at this position about a missing element.
    pub(super) fn expected(&mut self, what: &str) -> ParseError {
        let rest = self.rest();
        let found = match (self.peek_word(), rest.chars().next()) {
            (_, None) => "the end of the text".to_string(),
            (_, Some('\n')) => "the end of the line".to_string(),
            ("", Some(first)) => format!("`{}`", first.escape_debug()),
            (word, _) => format!("`{}`", word.chars().take(40).collect::<String>()),
        };
        self.error(format!("expected {what}, found {found}"))
    }

    /// An error at this position.
    pub(super) fn error(&self, message: String) -> ParseError {
        let before = &self.text[..self.at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).saturating_add(1);
        let line = count(before.matches('\n').count());
        let column = count(before[line_start..].chars().count());
        ParseError { position: LineColumn { line, column }, message }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')
}
