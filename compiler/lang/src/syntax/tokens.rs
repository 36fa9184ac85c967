//! The tokens of a text, for tools that need no tree: editors and tests of the grammar.

use std::ops::Range;

use super::lexer::lex;
use super::token::Token;
use crate::diagnostics::{Collector, Diagnostic};
use crate::source::{FileId, SourceMap};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A keyword or sign, identified by its text.
    Fixed,
    /// A name.
    Name,
    /// `'outer`
    Label,
    /// A number without a point or an exponent.
    Int,
    /// A number with a point or an exponent.
    Float,
    /// A string, quotes included.
    String,
    /// `b'a'`
    Byte,
}

/// The tokens of a file with their byte ranges, and the error where there is no token. Comments are left out.
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

/// The keywords, in alphabetical order.
pub fn keywords() -> Vec<&'static str> {
    let words = Token::FIXED.iter().filter(|token| token.is_keyword());
    words.map(|token| token.describe().trim_matches('`')).collect()
}

/// The signs: brackets, operators and the like.
pub fn signs() -> Vec<&'static str> {
    let signs = Token::FIXED.iter().filter(|token| !token.is_keyword());
    signs.map(|token| token.describe().trim_matches('`')).collect()
}
