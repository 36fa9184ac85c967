//! Blocks and statements.

use super::Parser;
use crate::deep;
use crate::diagnostics::{Diagnostic, ids, nearest};
use crate::source::Span;
use crate::syntax::ast::{
    Attribute, BinaryOp, Block, Expr, ExprKind, Loop, LoopHead, Name, Statement, StatementKind,
};
use crate::syntax::token::Token;

impl Parser<'_> {
    /// `{ … }`. Returns a block whatever follows the `{`; errors in it are reported and left out.
    pub(super) fn block(&mut self) -> Option<Block> {
        let opened = self.expect(Token::LeftBrace)?;
        self.enter(opened)?;
        if self.enter_block(opened).is_none() {
            self.depth -= 1;
            return None;
        }
        let struct_literals = std::mem::replace(&mut self.struct_literals, true);
        let mut block = Block { statements: vec![], value: None, span: opened, height: 0 };
        while !matches!(self.peek(), Token::RightBrace | Token::End) && !self.peek().starts_item() {
            let start = self.at;
            match self.statement() {
                Some(statement) => self.add_statement(&mut block, statement),
                None => self.skip_statement(start),
            }
        }
        self.struct_literals = struct_literals;
        self.depth -= 1;
        self.blocks -= 1;
        let closed = self.close(opened, Token::RightBrace).unwrap_or_else(|| self.previous_span());
        block.span = opened.to(closed);
        if block.height >= deep::limit() {
            self.too_deep(block.span, deep::limit());
            block = Block { statements: vec![], value: None, span: block.span, height: 0 };
        }
        Some(block)
    }

    fn add_statement(&mut self, block: &mut Block, statement: Option<Statement>) {
        let Some(statement) = statement else { return };
        block.height = block.height.max(statement.kind.height());
        match statement.kind {
            StatementKind::Expr { value, semicolon: false }
                if self.peek() == Token::RightBrace && may_have_value(&value) =>
            {
                block.value = Some(Box::new(value));
            }
            kind => block.statements.push(Statement { kind, span: statement.span }),
        }
    }

    /// A statement; `Some(None)` for a lone `;`.
    fn statement(&mut self) -> Option<Option<Statement>> {
        let start = self.span();
        let mut unroll = None;
        if self.peek() == Token::Hash {
            unroll = self.statement_attributes()?;
        }
        if self.eat(Token::Semicolon) {
            return Some(None);
        }
        let mut kind = self.statement_kind()?;
        if let StatementKind::Loop(item) = &mut kind {
            item.unroll = unroll;
        }
        Some(Some(Statement { kind, span: start.to(self.previous_span()) }))
    }

    fn statement_kind(&mut self) -> Option<StatementKind> {
        match self.peek() {
            Token::Let | Token::Mut => self.let_statement(),
            Token::Shared => self.shared_statement(false),
            Token::Dynamic => self.shared_statement(true),
            Token::While | Token::Loop | Token::For | Token::Label => self.loop_statement(),
            Token::Break | Token::Continue => self.jump_statement(),
            Token::Return => self.return_statement(),
            Token::If | Token::LeftBrace => self.block_like_statement(),
            Token::Const => {
                self.misplaced_const();
                None
            }
            _ => self.expression_statement(),
        }
    }

    fn misplaced_const(&mut self) {
        let message = "a constant must be declared outside functions";
        let error = Diagnostic::error(ids::SYNTAX_ERROR, self.span(), message);
        self.report(error.hint("write `let`, or move it out of the function"));
    }

    /// Attributes of a statement. Only loops accept one, `unroll`.
    fn statement_attributes(&mut self) -> Option<Option<Attribute>> {
        let mut unroll: Option<Attribute> = None;
        let attributes = self.attributes()?;
        let on_loop = matches!(self.peek(), Token::While | Token::Loop | Token::For | Token::Label);
        for attribute in attributes {
            let error = match &self.text[attribute.name.span.range()] {
                "unroll" if on_loop => match &unroll {
                    None => {
                        unroll = Some(attribute);
                        continue;
                    }
                    Some(first) => Diagnostic::error(
                        ids::INVALID_UNROLL,
                        attribute.span,
                        "`unroll` is given twice",
                    )
                    .label(first.span, "first here"),
                },
                "unroll" | "launch_bounds" | "noalias" | "fast_math" => Diagnostic::error(
                    ids::MISPLACED_ATTRIBUTE,
                    attribute.span,
                    "this attribute does not apply to this statement",
                ),
                other => {
                    let message = format!("there is no attribute `{other}`");
                    let at = attribute.name.span;
                    let error = Diagnostic::error(ids::UNKNOWN_ATTRIBUTE, at, message);
                    match nearest(other, ["unroll"].into_iter()) {
                        Some(near) => error.hint(format!("did you mean `{near}`?")),
                        None => error,
                    }
                }
            };
            self.diagnostics.push(error);
        }
        Some(unroll)
    }

    /// `let [mut] name[: T] [= e];` Returns a statement even after an error if the name was parsed, so that
    /// the name is known.
    fn let_statement(&mut self) -> Option<StatementKind> {
        let start = self.at;
        self.expect(Token::Let);
        let mutable = self.eat(Token::Mut);
        let is_pattern = self.peek() == Token::LeftParen;
        let Some(name) = self.name() else {
            if is_pattern {
                self.hint_last("there are no tuples: write a `let` for each variable; a function returns several values as a struct");
            }
            return None;
        };
        let mut ty = None;
        let mut value = None;
        let read = (|| {
            if self.eat(Token::Colon) {
                // A placeholder until the type is parsed.
                ty = Some(self.error_type());
                ty = Some(self.ty()?);
            }
            if self.eat(Token::Equal) {
                value = Some(self.error_expr(self.span()));
                let read = self.expression()?;
                if let Some((message, hint)) = self.foreign_operator(&read) {
                    let error = Diagnostic::error(ids::SYNTAX_ERROR, self.span(), message);
                    self.report(error.hint(hint));
                    return None;
                }
                value = Some(read);
            }
            self.expect(Token::Semicolon)
        })();
        if read.is_none() {
            // The part of the value that was parsed may be incomplete.
            value = Some(self.error_expr(name.span));
            self.skip_statement(start);
        }
        Some(StatementKind::Let { mutable, name, ty, value })
    }

    /// `shared name: T;` or `dynamic shared name: [T];`
    fn shared_statement(&mut self, dynamic: bool) -> Option<StatementKind> {
        let start = self.at;
        if dynamic {
            self.bump();
        }
        self.expect(Token::Shared)?;
        let name = self.name()?;
        let mut ty = self.error_type();
        let read = (|| {
            self.expect(Token::Colon)?;
            ty = self.ty()?;
            if self.peek() == Token::Equal {
                let message = "`shared` memory cannot be initialised where it is declared";
                let error = Diagnostic::error(ids::SYNTAX_ERROR, self.span(), message);
                self.report(error.hint("let one thread assign it, then call `sync_threads()`"));
                return None;
            }
            self.expect(Token::Semicolon)
        })();
        if read.is_none() {
            self.skip_statement(start);
        }
        Some(match dynamic {
            true => StatementKind::DynamicShared { name, ty },
            false => StatementKind::Shared { name, ty },
        })
    }

    /// `['label:] while … { … }`, `loop { … }` or `for … in … { … }`
    fn loop_statement(&mut self) -> Option<StatementKind> {
        let label = match self.peek() {
            Token::Label => {
                let span = self.bump();
                self.expect(Token::Colon)?;
                Some(Name { span })
            }
            _ => None,
        };
        let head = match self.peek() {
            Token::Loop => {
                self.bump();
                LoopHead::Loop
            }
            Token::While => {
                self.bump();
                LoopHead::While(self.head_expression()?)
            }
            Token::For => {
                self.bump();
                if self.peek() == Token::LeftParen {
                    let message = "expected a name, found `(`";
                    let error = Diagnostic::error(ids::SYNTAX_ERROR, self.span(), message);
                    self.report(error.hint("write `for i in 0..n { … }`"));
                    return None;
                }
                let name = self.name()?;
                self.expect(Token::In)?;
                LoopHead::For { name, range: self.head_expression()? }
            }
            _ => {
                self.expected("`while`, `loop` or `for`");
                return None;
            }
        };
        let body = self.block()?;
        let item = StatementKind::Loop(Box::new(Loop { label, unroll: None, head, body }));
        if item.height() > deep::limit() {
            self.too_deep(self.previous_span(), deep::limit());
            return None;
        }
        Some(item)
    }

    /// The expression before a block. If it cannot be parsed but the block can be found, returns an error
    /// expression, so that the block is parsed.
    pub(super) fn head_expression(&mut self) -> Option<Expr> {
        let struct_literals = std::mem::replace(&mut self.struct_literals, false);
        let start = self.span();
        let mut value = self.expression();
        self.struct_literals = struct_literals;
        if value.is_some() && self.peek() != Token::LeftBrace {
            if self.peek() == Token::Equal {
                let message = "expected `{`, found `=`";
                let error = Diagnostic::error(ids::SYNTAX_ERROR, self.span(), message);
                self.report(error.hint("`==` compares; `=` assigns, as a statement of its own"));
            } else {
                self.expected(Token::LeftBrace.describe());
                self.hint_last("a body needs braces: `if condition { … }`");
            }
            value = None;
        }
        if value.is_none() && self.skip_to_body() {
            value = Some(self.error_expr(start));
        }
        value
    }

    fn jump_statement(&mut self) -> Option<StatementKind> {
        let is_break = self.peek() == Token::Break;
        self.bump();
        let label = match self.peek() {
            Token::Label => Some(Name { span: self.bump() }),
            _ => None,
        };
        self.end_of_statement()?;
        Some(StatementKind::Jump { is_break, label })
    }

    fn return_statement(&mut self) -> Option<StatementKind> {
        self.bump();
        let value = match self.peek() {
            Token::Semicolon | Token::RightBrace => None,
            _ => Some(self.expression()?),
        };
        self.end_of_statement()?;
        Some(StatementKind::Return(value))
    }

    /// A `;`, optional before `}`.
    fn end_of_statement(&mut self) -> Option<()> {
        if self.peek() != Token::RightBrace {
            self.expect(Token::Semicolon)?;
        }
        Some(())
    }

    /// `if … { … }` or `{ … }` at the start of a statement ends there, as in Rust.
    fn block_like_statement(&mut self) -> Option<StatementKind> {
        let value = self.block_like()?;
        let semicolon = self.eat(Token::Semicolon);
        Some(StatementKind::Expr { value, semicolon })
    }

    /// An expression, an assignment, or the value of the block.
    fn expression_statement(&mut self) -> Option<StatementKind> {
        if self.foreign_statement() {
            return None;
        }
        let place = self.expression()?;
        if let Some(op) = assignment(self.peek()) {
            let op_span = self.bump();
            let value = self.expression()?;
            if let Some((message, hint)) = self.foreign_operator(&value) {
                let error = Diagnostic::error(ids::SYNTAX_ERROR, self.span(), message);
                self.report(error.hint(hint));
                return None;
            }
            if self.peek() == Token::Equal {
                let message = "an assignment has no value";
                let error = Diagnostic::error(ids::SYNTAX_ERROR, self.span(), message);
                self.report(error.hint("write one assignment after the other"));
                return None;
            }
            self.end_of_assignment()?;
            return Some(StatementKind::Assign { place, op, op_span, value });
        }
        let semicolon = self.eat(Token::Semicolon);
        if !semicolon && self.peek() != Token::RightBrace {
            self.missing_semicolon(&place);
            return None;
        }
        Some(StatementKind::Expr { value: place, semicolon })
    }

    fn end_of_assignment(&mut self) -> Option<Span> {
        self.expect(Token::Semicolon)
    }

    fn missing_semicolon(&mut self, value: &Expr) {
        let is_name = matches!(value.kind, ExprKind::Name(_));
        match self.peek() {
            Token::LaunchOpen if is_name => {
                let name = &self.text[value.span.range()];
                let message = "a kernel is launched with `launch`";
                let error = Diagnostic::error(ids::SYNTAX_ERROR, self.span(), message);
                self.report(error.hint(format!("write `launch {name}<<<…>>>(…)`")));
            }
            _ => match self.foreign_operator(value) {
                Some((message, hint)) => {
                    let error = Diagnostic::error(ids::SYNTAX_ERROR, self.span(), message);
                    self.report(error.hint(hint));
                }
                None => self.expected(Token::Semicolon.describe()),
            },
        }
    }
}

/// The operator of an assignment: `Some(None)` for `=`.
fn assignment(token: Token) -> Option<Option<BinaryOp>> {
    Some(match token {
        Token::Equal => None,
        Token::PlusEqual => Some(BinaryOp::Add),
        Token::MinusEqual => Some(BinaryOp::Sub),
        Token::StarEqual => Some(BinaryOp::Mul),
        Token::SlashEqual => Some(BinaryOp::Div),
        Token::PercentEqual => Some(BinaryOp::Rem),
        Token::AndEqual => Some(BinaryOp::And),
        Token::OrEqual => Some(BinaryOp::Or),
        Token::CaretEqual => Some(BinaryOp::Xor),
        Token::ShiftLeftEqual => Some(BinaryOp::Shl),
        Token::ShiftRightEqual => Some(BinaryOp::Shr),
        _ => return None,
    })
}

/// Whether the last expression of a block can be its value. An `if` without `else` and without an inner value
/// is a statement.
fn may_have_value(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::If { branches, otherwise: None } => {
            branches.iter().any(|(_, block)| block.value.is_some())
        }
        _ => true,
    }
}
