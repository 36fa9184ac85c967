//! The syntax stage: from source text to tokens to a tree.
//!
//! Parsing never fails: text that could not be parsed is reported, and left out of the tree or represented by
//! [`ast::ExprKind::Error`]. No tree is higher than [`ast::MAX_HEIGHT`], which bounds recursive walks
//! (including `Drop`).

pub mod ast;
mod lexer;
mod literal;
mod parser;
mod token;
mod tokens;

pub(crate) use lexer::{Lexeme, lex};
pub(crate) use parser::infix_power;
pub(crate) use token::Token;
pub use tokens::{TokenKind, keywords, signs, tokens};

use crate::diagnostics::{Collector, Diagnostic, ids};
use crate::source::{FileId, SourceMap, Span};

/// The maximum size of a source file, in bytes.
pub const MAX_FILE_BYTES: usize = 64 << 20;

/// Parses a file of the map. The tree contains everything that could be parsed; the messages are in source
/// order.
pub fn parse(sources: &SourceMap, file: FileId) -> (ast::File, Vec<Diagnostic>) {
    let text = sources.file(file).text.as_str();
    let mut diagnostics = Collector::default();
    let parsed = if text.len() > MAX_FILE_BYTES {
        let message = format!("the file has {} bytes; the maximum is {MAX_FILE_BYTES}", text.len());
        let at = Span::new(file, 0..0);
        diagnostics.push(Diagnostic::error(ids::FILE_TOO_LARGE, at, message));
        ast::File::empty(Span::new(file, 0..0))
    } else {
        let tokens = lexer::lex(text, file, &mut diagnostics);
        parser::Parser::new(text, file, &tokens, &mut diagnostics).file()
    };
    let mut diagnostics = diagnostics.into_vec();
    crate::diagnostics::sort(&mut diagnostics);
    (parsed, diagnostics)
}

/// The value of an unsigned integer literal, ignoring its suffix; `None` for any other text.
pub(crate) fn integer_literal(text: &str) -> Option<i128> {
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    match literal::number(text, false) {
        Ok(literal::Number::Int(value, None)) => i128::try_from(value).ok(),
        _ => None,
    }
}

/// The paths of all `use`s of a file, with the span of each, quotes included. Finds the same ones as
/// [`parse`], without building a tree.
pub fn used_paths(sources: &SourceMap, file: FileId) -> Vec<(String, Span)> {
    let text = sources.file(file).text.as_str();
    if !text.contains("use") || text.len() > MAX_FILE_BYTES {
        return vec![];
    }
    let tokens = lexer::lex(text, file, &mut Collector::default());
    let pairs = tokens
        .windows(2)
        .filter(|pair| [pair[0].token, pair[1].token] == [token::Token::Use, token::Token::String]);
    let path = |path: &lexer::Lexeme| {
        let span = Span { file, start: path.start, end: path.end };
        let unescaped = literal::unescape(&text[span.range()]);
        unescaped.wrong.is_empty().then_some((unescaped.text, span))
    };
    pairs.filter_map(|pair| path(&pair[1])).collect()
}

#[cfg(test)]
mod tests;
