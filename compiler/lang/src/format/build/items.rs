//! Items.

use super::super::document::Break;
use super::{Builder, ListStyle};
use crate::syntax::Token;

impl Builder<'_> {
    pub(super) fn file(&mut self) {
        let between = Break { deeper: false, blank: true, ..Break::SPACE };
        while self.peek() != Token::End {
            let before = self.at;
            self.item();
            if self.at == before {
                self.token();
            }
            self.place(between);
        }
        self.token();
    }

    fn item(&mut self) {
        self.attributes(false);
        match self.peek() {
            Token::Const | Token::Static => {
                let id = self.open();
                self.token();
                self.space();
                self.name_and_type();
                self.value();
                self.eat(Token::Semicolon);
                self.close(id);
            }
            Token::Struct => {
                self.token();
                self.space();
                self.token();
                self.space();
                let forced = self.source.gaps.get(self.at + 1).is_some_and(|gap| gap.newline);
                let style = ListStyle { spaced: true, blank: true, forced, fill: false };
                self.list(Token::RightBrace, style, Self::name_and_type);
                self.eat(Token::Semicolon);
            }
            Token::Use => {
                self.token();
                self.space();
                self.token();
                self.eat(Token::Semicolon);
            }
            Token::Extern | Token::Fn | Token::Kernel => self.function(),
            _ => self.token(),
        }
    }

    /// `[mut] name: T`
    fn name_and_type(&mut self) {
        if self.eat(Token::Mut) {
            self.space();
        }
        self.token();
        if self.eat(Token::Colon) {
            self.space();
            self.ty();
        }
    }

    fn function(&mut self) {
        let id = self.open();
        if self.eat(Token::Extern) {
            self.space();
        }
        self.token();
        self.space();
        self.token();
        if self.eat(Token::Less) {
            while !matches!(self.peek(), Token::Greater | Token::End) {
                if self.eat(Token::Const) {
                    self.space();
                }
                self.name_and_type();
                if self.eat(Token::Comma) && self.peek() != Token::Greater {
                    self.space();
                }
            }
            self.token();
        }
        if self.peek() == Token::LeftParen {
            self.list(Token::RightParen, ListStyle::default(), Self::name_and_type);
        }
        if self.peek() == Token::Arrow {
            self.space();
            self.token();
            self.space();
            self.ty();
        }
        if self.peek() == Token::LeftBrace {
            self.space();
            let block = self.block();
            self.force(id, &[block]);
        } else {
            self.eat(Token::Semicolon);
        }
        self.close(id);
    }
}
