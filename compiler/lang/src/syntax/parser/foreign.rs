//! Constructs of C, CUDA C++ and Rust that the language lacks, with hints for people used to them.

use super::Parser;
use crate::diagnostics::{Diagnostic, ids};
use crate::syntax::ast::{Expr, ExprKind};
use crate::syntax::token::Token;
use crate::types::Scalar;

impl Parser<'_> {
    /// Reports a statement of another language, recognised by its first two tokens. Returns whether it was
    /// one.
    pub(super) fn foreign_statement(&mut self) -> bool {
        let next = self.peek_at(1);
        if self.peek() != Token::Name {
            return false;
        }
        let span = self.span();
        let word = &self.text[span.range()];
        let (message, hint) = match (word, next) {
            ("match" | "switch", Token::Name | Token::LeftParen) if self.opens_block() => (
                format!("there is no `{word}`"),
                "write `if x == 0 { … } else if x == 1 { … }`".to_owned(),
            ),
            ("do", Token::LeftBrace) => (
                "there is no `do`".to_owned(),
                "write `loop { …; if !condition { break; } }`".into(),
            ),
            ("__shared__", _) => {
                ("there is no `__shared__`".to_owned(), "write `shared name: [f32; 32];`".into())
            }
            ("goto", Token::Name) => (
                "there is no `goto`".to_owned(),
                "`break` and `continue` take the label of a loop: `break 'outer`".into(),
            ),
            ("var" | "auto", Token::Name) => {
                ("a variable is declared with `let`".to_owned(), "write `let x = …;`".into())
            }
            // `int x` and `unsigned int x`.
            (_, Token::Name) => {
                let is_two_words = self.peek_at(2) == Token::Name;
                let name = self.span_of(self.lexeme(if is_two_words { 2 } else { 1 }));
                let ty = own_type(word);
                (
                    "a variable is declared with `let`".to_owned(),
                    format!("write `let {}: {ty} = …;`", &self.text[name.range()]),
                )
            }
            _ => return false,
        };
        self.report(Diagnostic::error(ids::SYNTAX_ERROR, span, message).hint(hint));
        true
    }

    /// Whether a `{` follows on this line before a `;`.
    fn opens_block(&self) -> bool {
        // Bounded: one line may contain many such words.
        let rest = &self.text[self.span().end as usize..];
        rest.find(['\n', ';', '{']).is_some_and(|at| rest[at..].starts_with('{'))
    }

    /// The message and hint for an expression not followed by `;`, if another language's operator follows.
    pub(super) fn foreign_operator(&self, value: &Expr) -> Option<(&'static str, &'static str)> {
        let is_name = matches!(value.kind, ExprKind::Name(_));
        Some(match self.peek() {
            Token::Question => ("there is no `? :`", "write `if condition { a } else { b }`"),
            Token::Arrow => ("there is no `->`", "`.` reads a field through a pointer: `p.x`"),
            Token::Not if is_name => ("there are no macros", "call the function without the `!`"),
            Token::Name | Token::Int | Token::LeftParen
                if self.tokens[self.at.saturating_sub(1)].token == Token::RightParen =>
            {
                ("expected `;` after `)`", "a value is converted with `as`: `x as f32`")
            }
            _ => return None,
        })
    }
}

/// The likely equivalent of the C type `word`.
pub(super) fn own_type(word: &str) -> &str {
    match word {
        "int" | "long" | "short" | "signed" => "i32",
        "unsigned" | "uint" | "size_t" => "u32",
        "float" => "f32",
        "double" => "f64",
        "char" => "i8",
        word => word,
    }
}

/// A hint for `u32::MAX` and the like.
pub(super) fn limit_of_type(ty: &str, name: &str) -> Option<String> {
    let scalar = Scalar::from_name(ty).filter(|scalar| scalar.is_integer())?;
    let (least, most) = scalar.range();
    let number = match name {
        "MAX" => most,
        "MIN" => least,
        _ => return None,
    };
    Some(format!("types have no constants: write `{number}`"))
}

/// A hint for a word that begins an item in C++, CUDA or Rust.
pub(super) fn foreign_item(word: &str) -> Option<&'static str> {
    Some(match word {
        "__global__" => "a kernel is declared as `kernel name(…) { … }`",
        "__device__" | "void" | "inline" | "__forceinline__" => {
            "a function is declared as `fn name(…) { … }`"
        }
        "__constant__" => "write `const NAME: T = …;`, or `static name: T = …;` for memory",
        "pub" => "remove it: every item can be used everywhere",
        "unsafe" | "async" => "remove it",
        "let" => "outside functions, write `const NAME: T = …;` or `static name: T = …;`",
        "class" | "union" => "there are structs, without methods: `struct Name { field: T }`",
        "impl" | "trait" => "there are no methods: write functions, `fn name(…) { … }`",
        "enum" => "write constants: `const FIRST: u32 = 0;`",
        "type" | "typedef" | "using" => {
            "there are no type aliases; `use \"path.grid\";` is for files"
        }
        "template" => "const parameters follow the name: `fn name<const N: u32>(…)`",
        "namespace" | "mod" | "module" | "import" | "include" => {
            "the items of another file are used with `use \"path.grid\";`"
        }
        _ => return None,
    })
}
