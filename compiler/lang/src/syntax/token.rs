//! The tokens of the language, as recognised by `logos`.

use logos::{FilterResult, Lexer, Logos};

use crate::source::{WrongDirective, line_directive};

/// Why no token could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LexError {
    /// No token starts with this character.
    #[default]
    UnexpectedCharacter,
    /// `/*` without `*/`.
    UnterminatedComment,
    /// `"` without its closing quote.
    UnterminatedString,
    /// `'a'`
    Character,
    /// `b'` without its closing quote.
    UnterminatedByte,
    /// A `#line` that is wrong, or behind other text.
    LineDirective(WrongDirective),
}

/// Declares the tokens with a fixed spelling, and this spelling for messages.
macro_rules! tokens {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// A token.
        #[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
        #[logos(error = LexError)]
        pub(crate) enum Token {
            $(#[token($text)] $name,)*
            /// A name.
            #[regex(r"[A-Za-z_][A-Za-z0-9_]*")]
            Name,
            /// `'outer`: the label of a loop.
            #[regex(r"'[A-Za-z_][A-Za-z0-9_]*")]
            Label,
            /// An integer; the parser checks its digits.
            #[regex(r"[0-9]", number)]
            Int,
            /// A number with a point or an exponent.
            Float,
            /// A string, quotes included.
            #[token("\"", string)]
            String,
            /// A byte literal: `b'a'`.
            #[token("b'", byte)]
            Byte,
            /// Text that the lexer reported; the parser does not report it again.
            #[regex(r"'([^'\\\n]|\\[^\n])'", character)]
            Error,
            /// Blanks or a comment; never leaves the lexer. `logos` would skip them by recursion and overflow
            /// the stack on long runs of them.
            #[regex(r"[ \t\r\n\x0C]+")]
            #[regex(r"//[^\n]*", allow_greedy = true)]
            #[token("/*", block_comment)]
            #[regex(r"#line[^\n]*", directive, allow_greedy = true)]
            Skipped,
            /// The end of the file.
            End,
        }

        impl Token {
            /// The tokens with a fixed spelling.
            pub(crate) const FIXED: &[Token] = &[$(Token::$name),*];

            /// The token as named in messages.
            pub(crate) fn describe(self) -> &'static str {
                match self {
                    $(Token::$name => concat!("`", $text, "`"),)*
                    Token::Name => "a name",
                    Token::Label => "a label",
                    Token::Int | Token::Float => "a number",
                    Token::String => "a string",
                    Token::Byte => "a byte",
                    Token::Error => "something else",
                    Token::Skipped => "a comment",
                    Token::End => "the end of the file",
                }
            }
        }
    };
}

tokens! {
    As = "as", Break = "break", Const = "const", Continue = "continue", Dynamic = "dynamic", Else = "else",
    Extern = "extern", False = "false", Fn = "fn", For = "for", If = "if", In = "in", Kernel = "kernel",
    Launch = "launch", Let = "let", Loop = "loop", Mut = "mut", Return = "return", Shared = "shared",
    Static = "static", Struct = "struct", True = "true", Try = "try", Use = "use", While = "while",
    LeftParen = "(", RightParen = ")", LeftBracket = "[", RightBracket = "]", LeftBrace = "{", RightBrace = "}",
    Comma = ",", Semicolon = ";", Colon = ":", PathSeparator = "::", Dot = ".", DotDot = "..",
    DotDotEqual = "..=", Arrow = "->", FatArrow = "=>", Hash = "#", Question = "?",
    Plus = "+", Minus = "-", Star = "*", Slash = "/", Percent = "%", And = "&", Or = "|", Caret = "^",
    Not = "!", AndAnd = "&&", OrOr = "||", ShiftLeft = "<<", ShiftRight = ">>",
    LaunchOpen = "<<<", LaunchClose = ">>>",
    Equal = "=", PlusEqual = "+=", MinusEqual = "-=", StarEqual = "*=", SlashEqual = "/=",
    PercentEqual = "%=", AndEqual = "&=", OrEqual = "|=", CaretEqual = "^=",
    ShiftLeftEqual = "<<=", ShiftRightEqual = ">>=",
    EqualEqual = "==", NotEqual = "!=", Less = "<", LessEqual = "<=", Greater = ">", GreaterEqual = ">=",
}

impl Token {
    /// Whether this can only start an item. Excludes `const`, which also occurs in types.
    pub(super) fn starts_item(self) -> bool {
        matches!(
            self,
            Token::Fn | Token::Kernel | Token::Struct | Token::Static | Token::Extern | Token::Use
        )
    }

    /// Whether this is a keyword: spelled like a name, but not a name.
    pub(super) fn is_keyword(self) -> bool {
        self.describe().as_bytes().get(1).is_some_and(u8::is_ascii_lowercase)
            && self != Token::Label
            && self.describe().starts_with('`')
    }

    /// Whether this can only start a statement.
    pub(super) fn starts_statement(self) -> bool {
        matches!(
            self,
            Token::Let
                | Token::While
                | Token::Loop
                | Token::For
                | Token::Return
                | Token::Break
                | Token::Continue
                | Token::Dynamic
        )
    }
}

/// Consumes the rest of a number: `0x1f`, `1_000u64`, `1.5e-3f64`. The digits are checked later, so that
/// `0b12` is one invalid number and not two valid ones.
fn number(lexer: &mut Lexer<'_, Token>) -> FilterResult<(), LexError> {
    // `lex`, which sees the whole text, decides the variant.
    lexer.bump(number_length(lexer.slice(), lexer.remainder()));
    FilterResult::Emit(())
}

/// The number of bytes of `rest` that belong to the number that starts with the digit `first`.
fn number_length(first: &str, rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let word = |from: usize| {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        from + bytes[from..].iter().take_while(|byte| is_word(byte)).count()
    };
    let digits = |from: usize| {
        let is_digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'_';
        from + bytes[from..].iter().take_while(|byte| is_digit(byte)).count()
    };
    if first == "0" && matches!(bytes.first(), Some(b'x' | b'o' | b'b')) {
        return word(0);
    }
    let mut at = digits(0);
    // `1.5` and `1.`, but not `1..n` and not `1.name`.
    let point_follows = bytes.get(at) == Some(&b'.')
        && !bytes
            .get(at + 1)
            .is_some_and(|next| *next == b'.' || *next == b'_' || next.is_ascii_alphabetic());
    if point_follows {
        at = digits(at + 1);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        if bytes.get(at + 1 + sign).is_some_and(u8::is_ascii_digit) {
            at = digits(at + 1 + sign);
        }
    }
    word(at)
}

/// Whether the text of a number is that of a float.
pub(super) fn is_float(text: &str) -> bool {
    let prefixed = ["0x", "0o", "0b"].iter().any(|prefix| text.starts_with(prefix));
    !prefixed && (text.contains('.') || text.contains(['e', 'E']) || text.contains('f'))
}

/// Consumes the rest of a string. Of the escapes, only `\"` matters here.
fn string(lexer: &mut Lexer<'_, Token>) -> FilterResult<(), LexError> {
    let rest = lexer.remainder();
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            _ if escaped && byte != b'\n' => escaped = false,
            b'\\' => escaped = true,
            b'"' => {
                lexer.bump(at + 1);
                return FilterResult::Emit(());
            }
            // A string ends on its line, so that a missing quote does not swallow the rest of the file.
            b'\n' => {
                lexer.bump(rest[..at].trim_end_matches('\r').len());
                return FilterResult::Error(LexError::UnterminatedString);
            }
            _ => {}
        }
    }
    lexer.bump(rest.len());
    FilterResult::Error(LexError::UnterminatedString)
}

/// Consumes the rest of a byte literal, whatever its contents.
fn byte(lexer: &mut Lexer<'_, Token>) -> FilterResult<(), LexError> {
    let rest = lexer.remainder();
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'\n' => break,
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            // `b'''` is one literal, and invalid.
            b'\'' if at > 0 || !rest[1..].starts_with('\'') => {
                lexer.bump(at + 1);
                return FilterResult::Emit(());
            }
            _ => {}
        }
    }
    FilterResult::Error(LexError::UnterminatedByte)
}

/// Accepts a `#line` directive on a line of its own.
fn directive(lexer: &mut Lexer<'_, Token>) -> FilterResult<(), LexError> {
    let before = lexer.source()[..lexer.span().start].trim_start_matches('\u{feff}');
    let line = before.rsplit('\n').next().unwrap_or(before);
    let wrong = match line.trim().is_empty() {
        true => line_directive(lexer.slice()).err(),
        false => Some(WrongDirective::Form),
    };
    match wrong {
        None => FilterResult::Emit(()),
        Some(wrong) => FilterResult::Error(LexError::LineDirective(wrong)),
    }
}

/// Consumes a comment. Comments nest, as in Rust.
fn block_comment(lexer: &mut Lexer<'_, Token>) -> FilterResult<(), LexError> {
    let bytes = lexer.remainder().as_bytes();
    let (mut depth, mut at) = (1usize, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    lexer.bump(at);
                    return FilterResult::Emit(());
                }
            }
            _ => at += 1,
        }
    }
    // The error's span is only `/*`: where the comment should have ended is unknown.
    FilterResult::Error(LexError::UnterminatedComment)
}

/// `'a'`, a character literal in other languages.
fn character(_: &mut Lexer<'_, Token>) -> FilterResult<(), LexError> {
    FilterResult::Error(LexError::Character)
}
