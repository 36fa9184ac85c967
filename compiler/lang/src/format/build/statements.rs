//! Blocks and statements.

use super::super::document::{Break, BreakKind, GroupId};
use super::Builder;
use crate::syntax::Token;

/// Whether a block may stay on one line.
#[derive(Clone, Copy)]
pub(super) struct BlockShape {
    /// It has no statement.
    is_empty: bool,
    /// It has at most one statement, with no block in it.
    is_simple: bool,
}

impl Builder<'_> {
    /// `{ … }`; breaks with the enclosing group.
    pub(super) fn block(&mut self) -> BlockShape {
        self.token();
        let closing = Break { closing: true, deeper: false, ..Break::SPACE };
        if self.peek() == Token::RightBrace {
            self.place(Break { kind: BreakKind::Never, space: false, ..closing });
            self.token();
            self.blocks += 1;
            return BlockShape { is_empty: true, is_simple: true };
        }
        let blocks = self.blocks;
        let mut statements = 0;
        while !matches!(self.peek(), Token::RightBrace | Token::End) {
            self.place(Break { blank: statements > 0, ..Break::SPACE });
            let before = self.at;
            self.statement();
            if self.at == before {
                self.token();
            }
            statements += 1;
        }
        self.place(Break { blank: true, ..closing });
        let is_simple = statements <= 1 && self.blocks == blocks;
        self.token();
        self.blocks += 1;
        BlockShape { is_empty: false, is_simple }
    }

    /// Forces a group of blocks to break if it was written over several lines or must not share one line.
    pub(super) fn force(&mut self, id: GroupId, blocks: &[BlockShape]) {
        let was_broken = self.has_newline(id) && blocks.iter().any(|block| !block.is_empty);
        let forced = was_broken || blocks.iter().any(|block| !block.is_simple);
        self.document.groups[id].forced = forced;
    }

    fn statement(&mut self) {
        self.attributes(true);
        match self.peek() {
            Token::While | Token::Loop | Token::For | Token::Label => self.loop_statement(),
            Token::If | Token::LeftBrace => {
                self.block_like();
                self.eat(Token::Semicolon);
            }
            _ => {
                let id = self.open();
                self.simple_statement();
                self.eat(Token::Semicolon);
                self.close(id);
            }
        }
    }

    fn loop_statement(&mut self) {
        let id = self.open();
        if self.eat(Token::Label) {
            self.eat(Token::Colon);
            self.space();
        }
        let word = self.peek();
        self.token();
        if word == Token::For {
            self.space();
            self.token();
            self.space();
            self.token();
        }
        if word == Token::Loop {
            self.space();
        } else {
            self.head();
        }
        let block = self.block();
        self.force(id, &[block]);
        self.close(id);
    }

    /// The head between keyword and block. If an operator chain in it breaks, the block's brace starts a new
    /// line.
    fn head(&mut self) {
        self.space();
        let chain = self.expression(false);
        let kind = chain.map_or(BreakKind::Never, BreakKind::With);
        self.place(Break { kind, deeper: false, ..Break::SPACE });
    }

    /// An `if` or a block, as a statement or as a value.
    pub(super) fn block_like(&mut self) {
        let id = self.open();
        let mut blocks = vec![];
        while self.peek() == Token::If {
            self.token();
            self.head();
            blocks.push(self.block());
            if self.peek() != Token::Else {
                self.force(id, &blocks);
                self.close(id);
                return;
            }
            self.place(Break { deeper: false, ..Break::STAY });
            self.token();
            self.space();
        }
        blocks.push(self.block());
        self.force(id, &blocks);
        self.close(id);
    }

    /// Any statement except loops, `if` and blocks; without the `;`.
    fn simple_statement(&mut self) {
        match self.peek() {
            Token::Let => {
                self.token();
                self.space();
                if self.eat(Token::Mut) {
                    self.space();
                }
                self.token();
                self.type_after_colon();
                if self.peek() == Token::Equal {
                    self.value();
                }
            }
            Token::Shared | Token::Dynamic => {
                if self.eat(Token::Dynamic) {
                    self.space();
                }
                self.token();
                self.space();
                self.token();
                self.type_after_colon();
            }
            Token::Break | Token::Continue => {
                self.token();
                if self.peek() == Token::Label {
                    self.space();
                    self.token();
                }
            }
            Token::Return => {
                self.token();
                if !matches!(self.peek(), Token::Semicolon | Token::RightBrace) {
                    self.space();
                    self.expression(true);
                }
            }
            Token::Semicolon => {}
            _ => {
                self.expression(true);
                if is_assignment(self.peek()) {
                    self.value();
                }
            }
        }
    }

    fn type_after_colon(&mut self) {
        if self.eat(Token::Colon) {
            self.space();
            self.ty();
        }
    }
}

fn is_assignment(token: Token) -> bool {
    matches!(
        token,
        Token::Equal
            | Token::PlusEqual
            | Token::MinusEqual
            | Token::StarEqual
            | Token::SlashEqual
            | Token::PercentEqual
            | Token::AndEqual
            | Token::OrEqual
            | Token::CaretEqual
            | Token::ShiftLeftEqual
            | Token::ShiftRightEqual
    )
}
