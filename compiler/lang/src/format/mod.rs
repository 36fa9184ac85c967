//! The layout of source text: `gridlet fmt`.
//!
//! A text that parses becomes a list of tokens with the comments between them (`trivia`); those become a
//! document of groups that stand on one line if they fit (`document`), built by walking the tokens along the
//! grammar (`build`); printing it is one pass (`print`). No step knows what names mean, and the result has the
//! very tokens of the source but for commas before a closing delimiter, which is checked at the end.
//!
//! The style is that of rustfmt, with two choices of the author that are kept: a block of one statement that
//! was written on one line stays there if it fits, and so does a struct. One blank line is kept where there were some.

mod build;
mod document;
mod print;
mod trivia;

use crate::diagnostics::Severity;
use crate::error::{Error, Result};
use crate::source::{FileId, SourceMap};
use crate::syntax::Token;

use trivia::Source;

/// The longest line that is filled, in characters.
pub const WIDTH: usize = 100;

/// Spaces of a level.
const INDENT: usize = 4;

/// Formats the first file of a map.
///
/// Formatting twice gives what formatting once gives. Lines end as the first one of the source does, with `\n` or
/// with `\r\n`; a byte order mark is left out.
///
/// # Errors
/// [`Error::Program`] if the file has syntax errors: its tokens cannot be trusted then.
pub fn format(sources: &SourceMap) -> Result<String> {
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

/// Whether the result says what the source says.
fn check(source: &Source<'_>, formatted: &str) -> Result<()> {
    let after = Source::read(formatted);
    let same = source.texts().eq(after.texts()) && source.comment_lines().eq(after.comment_lines());
    match same {
        true => Ok(()),
        false => Err(Error::internal("format", "the result has other tokens or comments")),
    }
}

/// Whether a comma before this token says nothing.
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
