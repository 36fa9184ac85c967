//! Text to tokens.

use logos::Logos;

use super::token::{LexError, Token, is_float};
use crate::diagnostics::{Collector, Diagnostic, ids};
use crate::source::{FileId, Span};

/// A token and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexeme {
    /// The token.
    pub(super) token: Token,
    /// First byte.
    pub(super) start: u32,
    /// One past the last byte.
    pub(super) end: u32,
}

/// The tokens of a text; the last is [`Token::End`]. What is no token is reported and left out.
pub(super) fn lex(text: &str, file: FileId, diagnostics: &mut Collector) -> Vec<Lexeme> {
    // A byte order mark is no part of the program.
    let skipped = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut lexer = Token::lexer(text);
    lexer.bump(skipped);
    let mut tokens = Vec::with_capacity(text.len() / 4);
    let mut unexpected: Option<Span> = None;
    while let Some(result) = lexer.next() {
        let span = Span::new(file, lexer.span());
        let push = |token| Lexeme { token, start: span.start, end: span.end };
        match result {
            Ok(Token::Int) if is_float(lexer.slice()) => tokens.push(push(Token::Float)),
            Ok(token) => tokens.push(push(token)),
            Err(LexError::UnexpectedCharacter) => {
                // A run of such characters is one mistake.
                unexpected = match unexpected {
                    Some(before) if before.end == span.start => Some(before.to(span)),
                    Some(before) => {
                        diagnostics.push(unexpected_character(text, before));
                        Some(span)
                    }
                    None => Some(span),
                };
                continue;
            }
            Err(LexError::UnterminatedComment) => {
                let message = "this comment has no end";
                let error = Diagnostic::error(ids::UNTERMINATED_COMMENT, span, message);
                diagnostics.push(error.hint("close it with `*/`; comments nest"));
                break;
            }
            Err(LexError::UnterminatedString) => {
                let message = "this string has no closing quote on its line";
                let error = Diagnostic::error(ids::UNTERMINATED_STRING, span, message);
                diagnostics.push(error.hint("write a line break as `\\n`"));
                tokens.push(push(Token::String));
            }
        }
        if let Some(span) = unexpected.take() {
            diagnostics.push(unexpected_character(text, span));
        }
    }
    if let Some(span) = unexpected {
        diagnostics.push(unexpected_character(text, span));
    }
    let end = Span::new(file, text.len()..text.len());
    tokens.push(Lexeme { token: Token::End, start: end.start, end: end.end });
    tokens
}

fn unexpected_character(text: &str, span: Span) -> Diagnostic {
    let found = &text[span.range()];
    let shown: String = found.chars().take(16).collect();
    let message = format!("unexpected {:?}", shown);
    let error = Diagnostic::error(ids::UNEXPECTED_CHARACTER, span, message);
    match found {
        "$" | "@" | "`" | "\\" => error,
        "'" => error.hint("the language has no characters; write the number, `97` for `a`"),
        _ if found.chars().any(char::is_alphabetic) => {
            error.hint("names are made of the letters a to z, digits and `_`")
        }
        _ => error,
    }
}
