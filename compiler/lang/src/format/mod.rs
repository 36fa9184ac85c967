//! The formatter, `gridlet fmt`.
//!
//! A text that parses becomes a list of tokens with the comments between them (`trivia`); walking the tokens
//! along the grammar (`build`) turns these into a document of groups, each of which stays on one line if it
//! fits (`document`); the document is printed in one pass (`print`). No step resolves names. The result has
//! exactly the tokens of the source, apart from commas before a closing delimiter; this is checked at the
//! end.
//!
//! The style is rustfmt's, except that two choices of the author are kept: a block of one statement written
//! on one line stays on one line if it fits, and so does a struct. Consecutive blank lines are reduced to
//! one.

mod build;
mod document;
mod print;
mod trivia;

use crate::deep;
use crate::diagnostics::Severity;
use crate::error::{Error, Result};
use crate::source::{FileId, SourceMap};
use crate::syntax::Token;

use trivia::Source;

/// The maximum line width, in characters.
pub const WIDTH: usize = 100;

/// Spaces per level of indentation.
const INDENT: usize = 4;
/// The most spaces before a line.
const MAX_INDENT: usize = 256 * INDENT;

/// Formats the first file of a map.
///
/// Formatting is idempotent. Line endings follow the first line of the source, `\n` or `\r\n`; a byte order
/// mark is removed.
///
/// # Errors
/// [`Error::Program`] if the file has syntax errors, because its tokens cannot be trusted then.
pub fn format(sources: &SourceMap) -> Result<String> {
    deep::with_room(sources, || format_here(sources))
}

/// As [`format`], on this thread.
fn format_here(sources: &SourceMap) -> Result<String> {
    let (_, diagnostics) = crate::syntax::parse(sources, FileId(0));
    if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return Err(Error::Program(diagnostics));
    }
    let text = &sources.file(FileId(0)).text;
    let has_returns = text.split_once('\n').is_some_and(|(line, _)| line.ends_with('\r'));
    let unix = text.replace("\r\n", "\n");
    let source = Source::read(&unix);
    let formatted = print::print(&source, &build::build(&source));
    check(&source, &formatted)?;
    Ok(if has_returns { formatted.replace('\n', "\r\n") } else { formatted })
}

/// Checks that the result has the tokens and comments of the source.
fn check(source: &Source<'_>, formatted: &str) -> Result<()> {
    let after = Source::read(formatted);
    let same = source.texts().eq(after.texts()) && source.comment_lines().eq(after.comment_lines());
    match same {
        true => Ok(()),
        false => Err(Error::internal("format", "the result has other tokens or comments")),
    }
}

/// Whether a comma before this token is redundant.
fn closes(token: Token) -> bool {
    matches!(
        token,
        Token::RightParen
            | Token::RightBracket
            | Token::RightBrace
            | Token::LaunchClose
            | Token::Greater
    )
}
