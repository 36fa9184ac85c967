//! Operands: literals, names, parentheses, arrays, `if`, blocks, launches.

use super::Parser;
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprKind, Launch, LaunchOption, Name, Str};
use crate::syntax::literal::{Number, byte, number, unescape};
use crate::syntax::token::Token;
use crate::types::Scalar;

impl Parser<'_> {
    /// An operand.
    pub(super) fn primary(&mut self) -> Option<Expr> {
        match self.peek() {
            Token::Int | Token::Float => self.number(),
            Token::True | Token::False => {
                let kind = ExprKind::Bool(self.peek() == Token::True);
                let span = self.bump();
                self.node(kind, span)
            }
            Token::String => self.string(),
            Token::Byte => self.byte(),
            Token::Name => self.name_or_struct(),
            Token::LeftParen => self.parenthesised(),
            Token::LeftBracket => self.array(),
            Token::If | Token::LeftBrace => self.block_like(),
            Token::Launch | Token::Try => self.launch(),
            _ => {
                self.expected_expression();
                None
            }
        }
    }

    fn expected_expression(&mut self) {
        let previous = self.tokens[self.at.saturating_sub(1)];
        let span = self.span();
        if self.peek() == Token::Plus && previous.token == Token::Plus && previous.end == span.start
        {
            let error = Diagnostic::error(ids::SYNTAX_ERROR, span, "there is no `++`");
            self.report(error.hint("write `+= 1`"));
        } else {
            self.expected("an expression");
        }
    }

    fn number(&mut self) -> Option<Expr> {
        let is_float = self.peek() == Token::Float;
        let span = self.bump();
        let kind = match number(&self.text[span.range()], is_float) {
            Ok(Number::Int(value, suffix)) => ExprKind::Int { value, suffix },
            Ok(Number::Float { double, single, half, bfloat, suffix }) => {
                ExprKind::Float { double, single, half, bfloat, suffix }
            }
            Err(message) => {
                self.diagnostics.push(Diagnostic::error(ids::INVALID_NUMBER, span, message));
                ExprKind::Error
            }
        };
        self.node(kind, span)
    }

    /// `b'a'`: a `u8`.
    fn byte(&mut self) -> Option<Expr> {
        let span = self.bump();
        let kind = match byte(&self.text[span.range()]) {
            Ok(value) => ExprKind::Int { value: value.into(), suffix: Some(Scalar::U8) },
            Err((range, message)) => {
                let start = span.start as usize;
                let at = Span::new(self.file, start + range.start..start + range.end);
                let is_escape = self.text[at.range()].starts_with('\\');
                let error = match is_escape {
                    true => Diagnostic::error(ids::INVALID_ESCAPE, at, message).hint(
                        "the escapes of a byte are `\\n \\r \\t \\\\ \\\" \\' \\0` and `\\x00` to `\\xff`",
                    ),
                    false => Diagnostic::error(ids::UNEXPECTED_CHARACTER, at, message),
                };
                self.diagnostics.push(error);
                ExprKind::Error
            }
        };
        self.node(kind, span)
    }

    pub(super) fn string(&mut self) -> Option<Expr> {
        let span = self.bump();
        let unescaped = unescape(&self.text[span.range()]);
        for range in &unescaped.wrong {
            let start = span.start as usize;
            let at = Span::new(self.file, start + range.start..start + range.end);
            let message = format!("there is no escape `{}`", &self.text[at.range()]);
            let error = Diagnostic::error(ids::INVALID_ESCAPE, at, message);
            self.diagnostics.push(
                error.hint("the escapes are `\\n \\r \\t \\\\ \\\" \\'` and `\\x01` to `\\x7f`"),
            );
        }
        let damaged = !unescaped.wrong.is_empty() || span.end - span.start < 2;
        let string = Str { text: unescaped.text, offsets: unescaped.offsets, damaged };
        self.node(ExprKind::Str(Box::new(string)), span)
    }

    /// `name` or `Name { … }`
    fn name_or_struct(&mut self) -> Option<Expr> {
        let name = self.name()?;
        if self.peek() != Token::LeftBrace || !self.struct_literals {
            return self.node(ExprKind::Name(name), name.span);
        }
        let (fields, end) =
            self.delimited(Token::LeftBrace, Token::RightBrace, Self::field_values)?;
        self.node(ExprKind::Struct { name, fields }, name.span.to(end))
    }

    fn parenthesised(&mut self) -> Option<Expr> {
        let (mut value, span) = self.delimited(Token::LeftParen, Token::RightParen, |parser| {
            let value = parser.expression()?;
            if parser.peek() == Token::Comma {
                parser.expected(Token::RightParen.describe());
                parser.hint_last(
                    "there are no tuples: write a statement for each value, or a struct",
                );
                return None;
            }
            Some(value)
        })?;
        value.span = span;
        Some(value)
    }

    /// `[a, b, c]` or `[e; n]`
    fn array(&mut self) -> Option<Expr> {
        let opened = self.span();
        self.enter_block(opened)?;
        let array = self.array_in_block();
        self.blocks -= 1;
        array
    }

    fn array_in_block(&mut self) -> Option<Expr> {
        let (kind, span) = self.delimited(Token::LeftBracket, Token::RightBracket, |parser| {
            if parser.peek() == Token::RightBracket {
                return Some(ExprKind::Array(vec![]));
            }
            let first = parser.expression()?;
            if parser.eat(Token::Semicolon) {
                let length = parser.expression()?;
                return Some(ExprKind::ArrayRepeat(Box::new(first), Box::new(length)));
            }
            let mut elements = vec![first];
            if parser.eat(Token::Comma) {
                elements.extend(parser.list(Token::RightBracket, Self::expression)?);
            }
            Some(ExprKind::Array(elements))
        })?;
        self.node(kind, span)
    }

    /// `if` with all its `else` branches, or a block.
    pub(super) fn block_like(&mut self) -> Option<Expr> {
        let start = self.span();
        if self.peek() == Token::LeftBrace {
            let block = self.block()?;
            let span = block.span;
            return self.node(ExprKind::Block(block), span);
        }
        let mut branches = vec![];
        let mut otherwise = None;
        while self.peek() == Token::If {
            let opened = self.bump();
            // `if if if …`
            self.enter(opened)?;
            let condition = self.head_expression();
            self.depth -= 1;
            let condition = condition?;
            let block = self.block()?;
            branches.push((condition, block));
            if !self.eat(Token::Else) {
                break;
            }
            if self.peek() != Token::If {
                otherwise = Some(self.block()?);
                break;
            }
        }
        let span = start.to(self.previous_span());
        self.node(ExprKind::If { branches, otherwise }, span)
    }

    /// `[try] launch kernel<<<config>>>(arguments)`
    fn launch(&mut self) -> Option<Expr> {
        let start = self.span();
        let is_try = self.eat(Token::Try);
        self.expect(Token::Launch)?;
        let kernel = self.name()?;
        let generics = self.generics()?;
        let (config, config_span) =
            self.delimited(Token::LaunchOpen, Token::LaunchClose, |parser| {
                parser.list(Token::LaunchClose, Self::launch_option)
            })?;
        let (arguments, arguments_span) = self.arguments()?;
        let span = start.to(arguments_span);
        let launch =
            Launch { is_try, kernel, generics, config, config_span, arguments, arguments_span };
        self.node(ExprKind::Launch(Box::new(launch)), span)
    }

    /// `e` or `name = e`; the keyword `shared` is a name here.
    fn launch_option(&mut self) -> Option<LaunchOption> {
        let named =
            matches!(self.peek(), Token::Name | Token::Shared) && self.peek_at(1) == Token::Equal;
        let name = named.then(|| {
            let span = self.bump();
            self.bump();
            Name { span }
        });
        Some(LaunchOption { name, value: self.expression()? })
    }
}
