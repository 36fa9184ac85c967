//! Operators: binary, `as`, prefix and postfix, with Rust's precedence.

use super::{Parser, foreign};
use crate::chain::Left;
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, GenericArgument, Generics, Name, UnaryOp};
use crate::syntax::token::Token;

/// A binary operator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Infix {
    Binary(BinaryOp),
    /// `&&` if true, otherwise `||`.
    Logical(bool),
}

/// The binary operator of a token and its binding power.
fn infix(token: Token) -> Option<(Infix, u8)> {
    Some(match token {
        Token::Star => (Infix::Binary(BinaryOp::Mul), 10),
        Token::Slash => (Infix::Binary(BinaryOp::Div), 10),
        Token::Percent => (Infix::Binary(BinaryOp::Rem), 10),
        Token::Plus => (Infix::Binary(BinaryOp::Add), 9),
        Token::Minus => (Infix::Binary(BinaryOp::Sub), 9),
        Token::ShiftLeft => (Infix::Binary(BinaryOp::Shl), 8),
        Token::ShiftRight => (Infix::Binary(BinaryOp::Shr), 8),
        Token::And => (Infix::Binary(BinaryOp::And), 7),
        Token::Caret => (Infix::Binary(BinaryOp::Xor), 6),
        Token::Or => (Infix::Binary(BinaryOp::Or), 5),
        Token::EqualEqual => (Infix::Binary(BinaryOp::Eq), COMPARISON),
        Token::NotEqual => (Infix::Binary(BinaryOp::Ne), COMPARISON),
        Token::Less => (Infix::Binary(BinaryOp::Lt), COMPARISON),
        Token::LessEqual => (Infix::Binary(BinaryOp::Le), COMPARISON),
        Token::Greater => (Infix::Binary(BinaryOp::Gt), COMPARISON),
        Token::GreaterEqual => (Infix::Binary(BinaryOp::Ge), COMPARISON),
        Token::AndAnd => (Infix::Logical(true), 3),
        Token::OrOr => (Infix::Logical(false), 2),
        _ => return None,
    })
}

const COMPARISON: u8 = 4;

/// The binding power of a token as a binary operator, if it is one.
pub(crate) fn infix_power(token: Token) -> Option<u8> {
    infix(token).map(|(_, power)| power)
}

struct Operator {
    infix: Infix,
    power: u8,
    span: Span,
}

/// A prefix operator.
#[derive(Clone, Copy)]
enum Prefix {
    Unary(UnaryOp),
    Deref,
    AddressOf,
}

impl Parser<'_> {
    // These functions return their operand directly if no operator follows, which saves stack for each level
    // of a nested expression.

    /// An expression. Ranges bind loosest.
    pub(super) fn expression(&mut self) -> Option<Expr> {
        let start = self.binary();
        match self.peek() {
            Token::DotDot | Token::DotDotEqual => self.range(start?),
            _ => start,
        }
    }

    fn range(&mut self, start: Expr) -> Option<Expr> {
        if self.peek() == Token::DotDotEqual {
            let message = "a range cannot include its end";
            let error = Diagnostic::error(ids::SYNTAX_ERROR, self.span(), message);
            self.report(error.hint("write `a..b + 1`"));
            return None;
        }
        self.bump();
        let end = self.binary()?;
        let span = start.span.to(end.span);
        self.node(ExprKind::Range(Box::new(start), Box::new(end)), span)
    }

    /// Binary expressions, with an operand stack and an operator stack instead of recursion.
    fn binary(&mut self) -> Option<Expr> {
        let first = self.cast();
        match infix(self.peek()) {
            None => first,
            Some(_) => self.binary_rest(first?),
        }
    }

    fn binary_rest(&mut self, first: Expr) -> Option<Expr> {
        let mut operands = vec![first];
        let mut operators: Vec<Operator> = vec![];
        while let Some((infix, power)) = infix(self.peek()) {
            while operators.last().is_some_and(|last| last.power >= power) {
                if power == COMPARISON && operators.last().is_some_and(|last| last.power == power) {
                    self.chained_comparison(&operators);
                    return None;
                }
                self.reduce(&mut operands, &mut operators)?;
            }
            let span = self.bump();
            operators.push(Operator { infix, power, span });
            operands.push(self.cast()?);
        }
        while !operators.is_empty() {
            self.reduce(&mut operands, &mut operators)?;
        }
        operands.pop()
    }

    /// Combines the last two operands with the last operator.
    fn reduce(&mut self, operands: &mut Vec<Expr>, operators: &mut Vec<Operator>) -> Option<()> {
        let operator = operators.pop()?;
        let right = Box::new(operands.pop()?);
        let left = Left::new(operands.pop()?);
        let span = left.span.to(right.span);
        let kind = match operator.infix {
            Infix::Binary(op) => ExprKind::Binary { op, op_span: operator.span, left, right },
            Infix::Logical(is_and) => ExprKind::Logical { is_and, left, right },
        };
        let node = self.node(kind, span)?;
        operands.push(node);
        Some(())
    }

    fn chained_comparison(&mut self, operators: &[Operator]) {
        let message = "comparisons do not chain";
        let mut error = Diagnostic::error(ids::CHAINED_COMPARISON, self.span(), message);
        if let Some(first) = operators.last() {
            error = error.label(first.span, "the first comparison");
        }
        self.report(error.hint("write `a < b && b < c`, or put one of them in parentheses"));
    }

    /// `e as T`, possibly repeated.
    fn cast(&mut self) -> Option<Expr> {
        let value = self.unary();
        match self.peek() {
            Token::As => self.cast_rest(value?),
            _ => value,
        }
    }

    fn cast_rest(&mut self, mut value: Expr) -> Option<Expr> {
        while self.eat(Token::As) {
            let ty = self.ty()?;
            let span = value.span.to(ty.span);
            value = self.node(ExprKind::Cast(Box::new(value), Box::new(ty)), span)?;
        }
        Some(value)
    }

    /// Prefix operators, then an operand with its postfix operators.
    fn unary(&mut self) -> Option<Expr> {
        if !matches!(
            self.peek(),
            Token::Minus | Token::Not | Token::Star | Token::And | Token::AndAnd
        ) {
            return self.postfix();
        }
        let prefixes = self.prefixes();
        let operand = self.postfix()?;
        self.apply_prefixes(operand, prefixes)
    }

    fn prefixes(&mut self) -> Vec<(Prefix, Span)> {
        let mut prefixes = vec![];
        loop {
            let prefix = match self.peek() {
                Token::Minus => Prefix::Unary(UnaryOp::Neg),
                Token::Not => Prefix::Unary(UnaryOp::Not),
                Token::Star => Prefix::Deref,
                Token::And | Token::AndAnd => Prefix::AddressOf,
                _ => return prefixes,
            };
            let twice = self.peek() == Token::AndAnd;
            let span = self.bump();
            prefixes.push((prefix, span));
            if twice {
                prefixes.push((prefix, Span { start: span.start + 1, ..span }));
            }
            if matches!(prefix, Prefix::AddressOf) && self.peek() == Token::Mut {
                let error = Diagnostic::error(ids::SYNTAX_ERROR, self.span(), "there is no `&mut`");
                self.report(error.hint("`&x` is a `*mut` pointer if `x` can be assigned"));
                self.bump();
            }
        }
    }

    fn apply_prefixes(&mut self, operand: Expr, prefixes: Vec<(Prefix, Span)>) -> Option<Expr> {
        let mut value = operand;
        for (prefix, at) in prefixes.into_iter().rev() {
            let span = at.to(value.span);
            let operand = Box::new(value);
            let kind = match prefix {
                Prefix::Unary(op) => ExprKind::Unary(op, operand),
                Prefix::Deref => ExprKind::Deref(operand),
                Prefix::AddressOf => ExprKind::AddressOf(operand),
            };
            value = self.node(kind, span)?;
        }
        Some(value)
    }

    /// An operand followed by calls, fields and indices.
    fn postfix(&mut self) -> Option<Expr> {
        let value = self.primary();
        match self.peek() {
            Token::Dot | Token::LeftBracket | Token::LeftParen | Token::PathSeparator => {
                self.postfix_rest(value?)
            }
            _ => value,
        }
    }

    fn postfix_rest(&mut self, mut value: Expr) -> Option<Expr> {
        loop {
            let next = match self.peek() {
                Token::Dot => self.dot(value),
                Token::LeftBracket => self.index(value),
                Token::LeftParen | Token::PathSeparator => self.call(value),
                _ => return Some(value),
            };
            value = next?;
        }
    }

    /// `.name` or `.name(arguments)`
    fn dot(&mut self, base: Expr) -> Option<Expr> {
        self.bump();
        let name = self.name()?;
        if self.peek() != Token::LeftParen {
            let span = base.span.to(name.span);
            return self.node(ExprKind::Field(Box::new(base), name), span);
        }
        let (arguments, end) = self.arguments()?;
        let span = base.span.to(end);
        self.node(ExprKind::MethodCall { base: Box::new(base), name, arguments }, span)
    }

    /// `[index]`
    fn index(&mut self, base: Expr) -> Option<Expr> {
        let (index, end) =
            self.delimited(Token::LeftBracket, Token::RightBracket, Self::expression)?;
        let span = base.span.to(end);
        self.node(ExprKind::Index(Box::new(base), Box::new(index)), span)
    }

    /// `[::<…>](arguments)` after a name.
    fn call(&mut self, callee: Expr) -> Option<Expr> {
        let generics = self.generics()?.map(Box::new);
        let ExprKind::Name(name) = callee.kind else {
            let message = "only functions can be called, by name";
            self.report(Diagnostic::error(ids::SYNTAX_ERROR, callee.span, message));
            return None;
        };
        let (arguments, end) = self.arguments()?;
        self.node(ExprKind::Call { callee: name, generics, arguments }, callee.span.to(end))
    }

    /// `::<…>`
    pub(super) fn generics(&mut self) -> Option<Option<Generics>> {
        if self.peek() != Token::PathSeparator {
            return Some(None);
        }
        let of = self.previous_span();
        let start = self.bump();
        let named = self.span();
        let limit = foreign::limit_of_type(&self.text[of.range()], &self.text[named.range()]);
        let arguments = self.delimited(Token::Less, Token::Greater, |parser| {
            parser.list(Token::Greater, Self::generic_argument)
        });
        let Some((arguments, end)) = arguments else {
            limit.into_iter().for_each(|hint| self.hint_last(&hint));
            return None;
        };
        Some(Some(Generics { arguments, span: start.to(end) }))
    }

    /// A type, a literal, or an expression in `{ … }`; without braces, a `>` in it would end the list.
    fn generic_argument(&mut self) -> Option<GenericArgument> {
        let argument = match self.peek() {
            Token::Name => GenericArgument::Name(self.name()?),
            Token::Star | Token::LeftBracket => GenericArgument::Type(self.ty()?),
            Token::LeftBrace => GenericArgument::Value(self.braced_expression()?),
            Token::Int
            | Token::Float
            | Token::Byte
            | Token::True
            | Token::False
            | Token::Minus
            | Token::Not => GenericArgument::Value(self.unary()?),
            _ => {
                self.expected("a type or a constant");
                return None;
            }
        };
        let next = self.peek();
        if next != Token::Greater && (infix(next).is_some() || next == Token::As) {
            let message = "an expression between `<` and `>` needs braces";
            let error = Diagnostic::error(ids::SYNTAX_ERROR, self.span(), message);
            self.report(error.hint("put it in braces: `::<{ N + 1 }>`"));
            return None;
        }
        Some(argument)
    }

    /// `{ e }`: only an expression, unlike a block.
    fn braced_expression(&mut self) -> Option<Expr> {
        if self.peek_at(1).starts_statement() {
            let error = Diagnostic::error(
                ids::SYNTAX_ERROR,
                self.span_of(self.lexeme(1)),
                format!("expected an expression, found {}", self.peek_at(1).describe()),
            );
            self.report(error);
            self.skip_delimited();
            return None;
        }
        let braced = self.delimited(Token::LeftBrace, Token::RightBrace, Self::expression);
        // In `{ e; }` the closing brace belongs to this pair, not to the enclosing block.
        let statement = [self.peek(), self.peek_at(1)] == [Token::Semicolon, Token::RightBrace];
        if braced.is_none() && statement {
            self.bump();
            self.bump();
        }
        braced.map(|(value, span)| Expr { span, ..value })
    }

    /// `(a, b)`
    pub(super) fn arguments(&mut self) -> Option<(Vec<Expr>, Span)> {
        self.delimited(Token::LeftParen, Token::RightParen, |parser| {
            parser.list(Token::RightParen, Self::expression)
        })
    }

    /// A struct literal's fields: `name: e` or `name` alone.
    pub(super) fn field_values(&mut self) -> Option<Vec<(Name, Expr)>> {
        self.list(Token::RightBrace, |parser| {
            let name = parser.name()?;
            let value = match parser.eat(Token::Colon) {
                true => parser.expression()?,
                false => parser.node(ExprKind::Name(name), name.span)?,
            };
            Some((name, value))
        })
    }
}
