//! The syntax stage: source text to tokens to a tree.
//!
//! Parsing never fails: what could not be read is left out of the tree or stands in it as
//! [`ast::ExprKind::Error`], and a message says so. No tree is higher than [`ast::MAX_HEIGHT`], so that
//! whoever walks one by recursion (its `Drop` too) has a bound.

pub mod ast;
mod lexer;
mod literal;
mod parser;
mod token;
mod tokens;

pub(crate) use lexer::{Lexeme, lex};
pub(crate) use parser::infix_power;
pub(crate) use token::Token;
pub use tokens::{TokenKind, keywords, tokens};

use crate::diagnostics::{Collector, Diagnostic, ids};
use crate::source::{FileId, SourceMap, Span};

/// The largest source file that is read, in bytes.
pub const MAX_FILE_BYTES: usize = 64 << 20;

/// Parses a file of the map. The tree is what could be read of it; the messages are in the order of the
/// source.
pub fn parse(sources: &SourceMap, file: FileId) -> (ast::File, Vec<Diagnostic>) {
    let text = sources.file(file).text.as_str();
    let mut diagnostics = Collector::default();
    let parsed = if text.len() > MAX_FILE_BYTES {
        let message = format!(
            "the file has {} bytes; the largest that is read has {MAX_FILE_BYTES}",
            text.len()
        );
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

#[cfg(test)]
mod tests;
