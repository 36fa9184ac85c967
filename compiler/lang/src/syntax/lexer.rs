//! Splits text into tokens.

use logos::Logos;

use super::token::{LexError, Token, is_float};
use crate::diagnostics::{Collector, Diagnostic, ids, is_bidi};
use crate::source::{FileId, MAX_LINES, Span, WrongDirective};

/// A token and its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lexeme {
    /// The token.
    pub(crate) token: Token,
    /// The first byte.
    pub(crate) start: u32,
    /// One past the last byte.
    pub(crate) end: u32,
}

/// The tokens of a text; the last is [`Token::End`]. Anything else is reported and left out.
pub(crate) fn lex(text: &str, file: FileId, diagnostics: &mut Collector) -> Vec<Lexeme> {
    // A byte order mark is not part of the program.
    let skipped = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut lexer = Token::lexer(text);
    lexer.bump(skipped);
    let mut tokens = Vec::with_capacity(text.len() / 4);
    let mut unexpected: Option<Span> = None;
    while let Some(result) = lexer.next() {
        let span = Span::new(file, lexer.span());
        if result != Err(LexError::UnexpectedCharacter) {
            diagnostics.extend(unexpected.take().map(|span| unexpected_character(text, span)));
        }
        let token = match result {
            Ok(Token::Skipped) => continue,
            Ok(Token::Int) if is_float(lexer.slice()) => Token::Float,
            Ok(token) => token,
            Err(LexError::UnexpectedCharacter) => {
                // A run of such characters is a single error.
                match &mut unexpected {
                    Some(run) if run.end == span.start => run.end = span.end,
                    _ => {
                        diagnostics.extend(unexpected.map(|span| unexpected_character(text, span)));
                        unexpected = Some(span);
                    }
                }
                Token::Error
            }
            Err(error) => {
                diagnostics.push(broken_token(error, span));
                if error == LexError::UnterminatedComment {
                    break;
                }
                Token::Error
            }
        };
        tokens.push(Lexeme { token, start: span.start, end: span.end });
    }
    diagnostics.extend(unexpected.map(|span| unexpected_character(text, span)));
    if text.contains(is_bidi) {
        hidden_order(text, file, &tokens, diagnostics);
    }
    let end = Span::new(file, text.len()..text.len());
    tokens.push(Lexeme { token: Token::End, start: end.start, end: end.end });
    tokens
}

/// Reports characters that make comments and strings display differently from how the compiler reads them.
/// Elsewhere these characters are unexpected like any other.
fn hidden_order(text: &str, file: FileId, tokens: &[Lexeme], diagnostics: &mut Collector) {
    let mut tokens = tokens.iter().peekable();
    let mut line = 0..0;
    for (at, c) in text.char_indices().filter(|(_, c)| is_bidi(*c)) {
        // These characters come in pairs: one report per line is enough.
        if line.contains(&at) {
            continue;
        }
        while tokens.next_if(|token| token.end as usize <= at).is_some() {}
        let inside = tokens.peek().filter(|token| token.start as usize <= at);
        if inside.is_some_and(|token| token.token == Token::Error) {
            continue;
        }
        line = at..at + text[at..].find('\n').unwrap_or(text.len() - at);
        let span = Span::new(file, at..at + c.len_utf8());
        let message = format!(
            "U+{:04X} makes text display differently from how the compiler reads it",
            u32::from(c)
        );
        let error = Diagnostic::error(ids::TEXT_DIRECTION, span, message);
        diagnostics.push(error.hint("remove it; the remaining text may then read differently"));
    }
}

fn broken_token(error: LexError, span: Span) -> Diagnostic {
    match error {
        LexError::UnterminatedComment => {
            let message = "this comment is never closed";
            Diagnostic::error(ids::UNTERMINATED_COMMENT, span, message)
                .hint("close it with `*/`; comments nest")
        }
        LexError::UnterminatedString => {
            let message = "this string has no closing quote on its line";
            Diagnostic::error(ids::UNTERMINATED_STRING, span, message)
                .hint("write a line break as `\\n`")
        }
        LexError::UnterminatedByte => {
            let message = "this byte has no closing quote on its line";
            Diagnostic::error(ids::UNTERMINATED_STRING, span, message).hint("write it as `b'a'`")
        }
        LexError::LineDirective(wrong) => {
            let lines = format!("write a line from 1 to {MAX_LINES}");
            let (message, hint) = match wrong {
                WrongDirective::Form => (
                    "this `#line` is not a directive",
                    "write `#line 12` or `#line 12 \"file\"` on a line of its own",
                ),
                WrongDirective::Line => ("this `#line` names a line that no text has", &*lines),
                WrongDirective::Name => (
                    "this `#line` names no file",
                    "write a name with a file at its end, as \"dir/file\"",
                ),
            };
            Diagnostic::error(ids::SYNTAX_ERROR, span, message).hint(hint)
        }
        LexError::Character | LexError::UnexpectedCharacter => {
            let message = "the language has no character literals";
            Diagnostic::error(ids::UNEXPECTED_CHARACTER, span, message)
                .hint("write a byte literal, `b'a'`, of type `u8`")
        }
    }
}

fn unexpected_character(text: &str, span: Span) -> Diagnostic {
    let found = &text[span.range()];
    let shown: String = found.chars().take(16).collect();
    let message = format!("unexpected {:?}", shown);
    let error = Diagnostic::error(ids::UNEXPECTED_CHARACTER, span, message);
    match found {
        _ if found.chars().any(char::is_alphabetic) => {
            error.hint("names consist of the letters a to z and A to Z, digits and `_`")
        }
        "~" => error.hint("`!` flips the bits of an integer"),
        "\u{201c}" | "\u{201d}" => error.hint("strings use straight quotes: `\"`"),
        _ => error,
    }
}
