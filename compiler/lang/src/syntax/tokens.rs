//! The tokens of a text for tools that need no tree: editors, tests of the grammar.

use std::ops::Range;

use super::lexer::lex;
use super::token::Token;
use crate::diagnostics::{Collector, Diagnostic};
use crate::source::{FileId, SourceMap};

/// What kind of token it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A word or sign of the language: its text says which.
    Fixed,
    /// A name.
    Name,
    /// `'outer`
    Label,
    /// A number without point and exponent.
    Int,
    /// A number with a point or an exponent.
    Float,
    /// A string, quotes included.
    String,
    /// `b'a'`
    Byte,
}

/// The tokens of a file with the bytes that they cover, and what is wrong where there is none. Comments are
/// not among them.
pub fn tokens(
    sources: &SourceMap,
    file: FileId,
) -> (Vec<(TokenKind, Range<usize>)>, Vec<Diagnostic>) {
    let mut diagnostics = Collector::default();
    let lexemes = lex(&sources.file(file).text, file, &mut diagnostics);
    let tokens = lexemes.iter().filter_map(|lexeme| {
        let kind = match lexeme.token {
            Token::End | Token::Error | Token::Skipped => return None,
            Token::Name => TokenKind::Name,
            Token::Label => TokenKind::Label,
            Token::Int => TokenKind::Int,
            Token::Float => TokenKind::Float,
            Token::String => TokenKind::String,
            Token::Byte => TokenKind::Byte,
            _ => TokenKind::Fixed,
        };
        Some((kind, lexeme.start as usize..lexeme.end as usize))
    });
    (tokens.collect(), diagnostics.into_vec())
}

/// The words that cannot be names, in alphabetical order.
pub fn keywords() -> Vec<&'static str> {
    let words = Token::FIXED.iter().filter(|token| token.is_keyword());
    words.map(|token| token.describe().trim_matches('`')).collect()
}

/// The signs that are always spelled the same: brackets, operators and the like.
pub fn signs() -> Vec<&'static str> {
    let signs = Token::FIXED.iter().filter(|token| !token.is_keyword());
    signs.map(|token| token.describe().trim_matches('`')).collect()
}
