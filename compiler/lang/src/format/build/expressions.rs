//! Expressions.

use super::super::document::{Break, GroupId, Part};
use super::{Builder, ListStyle};
use crate::syntax::{Token, infix_power};

/// A chain of operators of equal precedence, which break together.
struct Chain {
    power: u8,
    id: GroupId,
    /// The start of its first operand: part and token.
    start: (usize, usize),
}

impl Builder<'_> {
    /// An expression; `structs` is false in the head of an `if` or a loop, where struct literals are
    /// excluded. Returns the group of the outermost operator chain, if there is one.
    pub(super) fn expression(&mut self, structs: bool) -> Option<GroupId> {
        let chain = self.binary(structs);
        if matches!(self.peek(), Token::DotDot | Token::DotDotEqual) {
            self.token();
            self.binary(structs);
        }
        chain
    }

    /// Binary expressions, with an explicit stack instead of recursion.
    fn binary(&mut self, structs: bool) -> Option<GroupId> {
        let mut start = self.operand(structs);
        let mut chains: Vec<Chain> = vec![];
        let mut outermost = None;
        while let Some(power) = infix_power(self.peek()) {
            while let Some(last) = chains.pop_if(|last| last.power > power) {
                self.close(last.id);
                start = last.start;
            }
            if chains.last().is_none_or(|last| last.power < power) {
                let id = self.new_group(start.0, start.1);
                if let Some(Part::Open(ids)) = self.document.parts.get_mut(start.0) {
                    ids.insert(0, id);
                }
                chains.push(Chain { power, id, start });
            }
            self.place(Break::SPACE);
            self.token();
            self.space();
            start = self.operand(structs);
        }
        while let Some(last) = chains.pop() {
            self.close(last.id);
            outermost = Some(last.id);
        }
        outermost
    }

    /// An operand with prefix operators, postfix operators and casts. Returns its start.
    fn operand(&mut self, structs: bool) -> (usize, usize) {
        let start = (self.document.parts.len(), self.at);
        self.document.parts.push(Part::Open(vec![]));
        while matches!(
            self.peek(),
            Token::Minus | Token::Not | Token::Star | Token::And | Token::AndAnd
        ) {
            self.token();
        }
        self.primary(structs);
        self.postfix();
        while self.peek() == Token::As {
            self.space();
            self.token();
            self.space();
            self.ty();
        }
        start
    }

    fn primary(&mut self, structs: bool) {
        match self.peek() {
            Token::LeftParen => {
                self.token();
                self.expression(true);
                self.eat(Token::RightParen);
            }
            Token::LeftBracket => self.array(),
            Token::If | Token::LeftBrace => self.block_like(),
            Token::Launch | Token::Try => self.launch(),
            Token::Name => {
                self.token();
                if structs && self.peek() == Token::LeftBrace {
                    self.space();
                    let style = ListStyle { spaced: true, ..ListStyle::default() };
                    self.list(Token::RightBrace, style, |builder| {
                        builder.token();
                        if builder.eat(Token::Colon) {
                            builder.space();
                            builder.expression(true);
                        }
                    });
                }
            }
            Token::Int
            | Token::Float
            | Token::String
            | Token::Byte
            | Token::True
            | Token::False => self.token(),
            _ => {}
        }
    }

    fn postfix(&mut self) {
        loop {
            match self.peek() {
                Token::Dot => {
                    // In `8 .step()`, a comment after the dot would turn the dot into a decimal point.
                    let follows_number = self
                        .source
                        .tokens
                        .get(self.at.wrapping_sub(1))
                        .is_some_and(|before| before.token == Token::Int);
                    let gap = self.source.gaps.get(self.at + 1);
                    if follows_number && gap.is_some_and(|gap| !gap.comments.is_empty()) {
                        self.space();
                    }
                    self.token();
                    self.token();
                }
                Token::LeftBracket => {
                    self.token();
                    self.expression(true);
                    self.eat(Token::RightBracket);
                }
                Token::LeftParen => self.arguments(),
                Token::PathSeparator => self.generics(),
                _ => return,
            }
        }
    }

    /// `(a, b)`
    pub(super) fn arguments(&mut self) {
        self.list(Token::RightParen, ListStyle::default(), |builder| {
            builder.expression(true);
        });
    }

    /// `[a, b]` or `[e; n]`
    fn array(&mut self) {
        let style = ListStyle { fill: true, ..ListStyle::default() };
        self.list(Token::RightBracket, style, |builder| {
            builder.expression(true);
        });
    }

    /// `::<…>`
    fn generics(&mut self) {
        self.token();
        self.eat(Token::Less);
        while !matches!(self.peek(), Token::Greater | Token::End) {
            match (self.peek(), self.peek_at(1)) {
                (Token::Comma, next) => {
                    self.token();
                    if next != Token::Greater {
                        self.space();
                    }
                }
                (Token::Star, Token::Const | Token::Mut) | (Token::LeftBracket, _) => self.ty(),
                (Token::LeftBrace, _) => {
                    self.token();
                    self.space();
                    self.expression(true);
                    self.space();
                    self.eat(Token::RightBrace);
                }
                (Token::Name, _) => self.token(),
                _ => {
                    let before = self.at;
                    self.operand(true);
                    if self.at == before {
                        self.token();
                    }
                }
            }
        }
        self.eat(Token::Greater);
    }

    /// `[try] launch kernel<<<config>>>(arguments)`
    fn launch(&mut self) {
        if self.eat(Token::Try) {
            self.space();
        }
        self.token();
        self.space();
        self.token();
        if self.peek() == Token::PathSeparator {
            self.generics();
        }
        if self.peek() == Token::LaunchOpen {
            self.list(Token::LaunchClose, ListStyle::default(), |builder| {
                let is_named = matches!(builder.peek(), Token::Name | Token::Shared)
                    && builder.peek_at(1) == Token::Equal;
                if is_named {
                    builder.token();
                    builder.space();
                    builder.token();
                    builder.space();
                }
                builder.expression(true);
            });
        }
        if self.peek() == Token::LeftParen {
            self.arguments();
        }
    }
}
