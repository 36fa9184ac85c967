//! Blocks and `if`, as statements and as values.

use super::body::{Body, drop_value};
use super::mismatch::Why;
use super::tree::{Block, Expr, ExprKind, Statement};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::Type;

/// The expected value of a block.
#[derive(Clone, Copy)]
pub(super) enum Want<'t> {
    /// Any type; an open literal may take this one.
    Infer(Option<&'t Type>),
    /// This type.
    Need(&'t Type, Why),
}

/// A checked block.
struct Checked {
    block: Block,
    outcome: Outcome,
    span: Span,
}

enum Outcome {
    /// An error was reported.
    Wrong,
    /// It has no value, and its end is unreachable.
    NoEnd,
    /// A value of this type; `Unit` for none.
    Value(Type),
}

impl<'a> Body<'_, 'a> {
    /// The statements of a block in their own scope, and its value as produced by `value` in that scope.
    pub(super) fn open_block<T>(
        &mut self,
        block: &'a ast::Block,
        value: impl FnOnce(&mut Self) -> T,
    ) -> (Vec<Statement>, T) {
        let scope = self.begin_scope();
        let outer_end = std::mem::replace(&mut self.block_end, block.span.end);
        self.block_depth += 1;
        let mut statements = Vec::with_capacity(block.statements.len());
        for statement in &block.statements {
            if self.is_discarded() {
                break;
            }
            statements.extend(self.statement(statement));
        }
        let value = value(self);
        self.block_depth -= 1;
        self.block_end = outer_end;
        self.end_scope(scope);
        (statements, value)
    }

    /// Whether code here is discarded: unreachable code in an instance of a function with const parameters.
    pub(super) fn is_discarded(&self) -> bool {
        !self.alive && self.cx.environment.discards()
    }

    /// The body of a loop. Its value, if any, must be of type `()`.
    pub(super) fn unit_block(&mut self, block: &'a ast::Block) -> Option<Block> {
        let checked = self.block(block, Want::Need(&Type::Unit, Why::Nothing));
        match checked.outcome {
            Outcome::Wrong => None,
            _ => Some(checked.block),
        }
    }

    /// An `if` or a block.
    pub(super) fn block_like(&mut self, e: &'a ast::Expr, want: Want<'_>) -> Option<Expr> {
        if self.constant {
            self.not_constant(e.span);
            return None;
        }
        match &e.kind {
            ast::ExprKind::If { branches, otherwise } => {
                self.if_chain(branches, otherwise.as_ref(), want, e.span)
            }
            ast::ExprKind::Block(block) => self.block_expression(block, want, e.span),
            _ => None,
        }
    }

    fn block_expression(
        &mut self,
        block: &'a ast::Block,
        want: Want<'_>,
        span: Span,
    ) -> Option<Expr> {
        let mut checked = self.block(block, want);
        let ty = match checked.outcome {
            Outcome::Wrong => return None,
            Outcome::Value(ty) => ty,
            Outcome::NoEnd => match want {
                Want::Need(ty, _) => ty.clone(),
                Want::Infer(_) => Type::Unit,
            },
        };
        self.fill(&mut checked.block, &ty, span);
        Some(Expr { kind: ExprKind::Block(checked.block), ty, span })
    }

    /// Adds a placeholder value to a block that never ends, if one is needed.
    fn fill(&mut self, block: &mut Block, ty: &Type, span: Span) {
        if *ty != Type::Unit && block.value.is_none() {
            block.value = Some(Box::new(self.unset(ty, span, &mut block.statements)));
        }
    }

    fn block(&mut self, block: &'a ast::Block, want: Want<'_>) -> Checked {
        let span = block.value.as_ref().map_or(block.span, |value| value.span);
        let (statements, value) = self.open_block(block, |body| {
            let value = block.value.as_deref().filter(|_| !body.is_discarded())?;
            Some(match want {
                Want::Need(ty, why) => body.need(value, ty, why),
                Want::Infer(hint) => body.infer(value, hint),
            })
        });
        let mut result = Block { statements, value: None };
        let outcome = match value {
            Some(None) => Outcome::Wrong,
            Some(Some(value)) if value.ty == Type::Unit => {
                result.statements.push(drop_value(value));
                self.without_value(block, want)
            }
            Some(Some(value)) => {
                let ty = value.ty.clone();
                result.value = Some(Box::new(value));
                Outcome::Value(ty)
            }
            None => self.without_value(block, want),
        };
        Checked { block: result, outcome, span }
    }

    /// The outcome of a block without a value.
    fn without_value(&mut self, block: &'a ast::Block, want: Want<'_>) -> Outcome {
        match want {
            _ if !self.alive => Outcome::NoEnd,
            Want::Need(ty, why) if *ty != Type::Unit => {
                self.missing_value(block, ty, why);
                Outcome::Wrong
            }
            _ => Outcome::Value(Type::Unit),
        }
    }

    fn missing_value(&mut self, block: &'a ast::Block, ty: &Type, why: Why) {
        let end = block.span.end;
        let at = Span { start: end.saturating_sub(1), end, ..block.span };
        let empty = Expr { kind: ExprKind::Bool(false), ty: Type::Unit, span: at };
        // As for a value of type `()`, but with a better hint.
        let last = block.statements.last().map(|statement| &statement.kind);
        let dropped = matches!(last, Some(ast::StatementKind::Expr { semicolon: true, .. }));
        self.mismatch(&empty, ty, why);
        if dropped {
            self.cx.hint_last("the last expression is the block's value if no `;` follows it");
        }
    }

    /// `if`, any number of `else if`, and optionally `else`.
    fn if_chain(
        &mut self,
        branches: &'a [(ast::Expr, ast::Block)],
        otherwise: Option<&'a ast::Block>,
        want: Want<'_>,
        span: Span,
    ) -> Option<Expr> {
        let mut conditions = Vec::with_capacity(branches.len());
        let mut otherwise = otherwise;
        let mut left = vec![];
        for branch in branches {
            let condition = self.need(&branch.0, &Type::BOOL, Why::Nothing);
            match &condition {
                Some(Expr { kind: ExprKind::Bool(false), .. }) if self.discards() => continue,
                Some(Expr { kind: ExprKind::Bool(true), .. }) if self.discards() => {
                    otherwise = Some(&branch.1);
                    break;
                }
                _ => {}
            }
            conditions.push(condition);
            left.push(branch);
        }
        match (left.is_empty(), otherwise) {
            (true, Some(block)) => return self.block_expression(block, want, span),
            (true, None) => {
                let nothing = Block { statements: vec![], value: None };
                return Some(Expr { kind: ExprKind::Block(nothing), ty: Type::Unit, span });
            }
            _ => {}
        }
        let blocks: Vec<&'a ast::Block> =
            left.iter().map(|branch| &branch.1).chain(otherwise).collect();
        let has_else = otherwise.is_some();
        let (checked, ty) = self.branches(&blocks, has_else, want, span)?;
        let mut blocks = Vec::with_capacity(checked.len());
        for mut checked in checked {
            self.fill(&mut checked.block, &ty, checked.span);
            blocks.push(checked.block);
        }
        let otherwise = if has_else { blocks.pop() } else { None };
        let branches = conditions.into_iter().zip(blocks);
        let branches = branches.map(|(condition, block)| Some((condition?, block)));
        let kind = ExprKind::If { branches: branches.collect::<Option<_>>()?, otherwise };
        Some(Expr { kind, ty, span })
    }

    /// Whether a block whose condition is false is discarded.
    pub(super) fn discards(&self) -> bool {
        self.cx.environment.discards()
    }

    /// Checks the blocks of an `if` against one type, which it also infers.
    fn branches(
        &mut self,
        blocks: &[&'a ast::Block],
        has_else: bool,
        want: Want<'_>,
        span: Span,
    ) -> Option<(Vec<Checked>, Type)> {
        let start = self.alive;
        let mut end = start && !has_else;
        let mut checked: Vec<Option<Checked>> = blocks.iter().map(|_| None).collect();
        let mut found: Option<(Type, Span)> = None;
        let mut wrong = false;
        // Blocks whose value has a type of its own take precedence over those with open literals.
        let open = |at: &usize| {
            blocks[*at].value.as_ref().is_none_or(|value| value.literal != ast::Literal::No)
        };
        let own = (0..blocks.len()).filter(|at| !open(at));
        let order: Vec<usize> = own.chain((0..blocks.len()).filter(open)).collect();
        for at in order {
            self.alive = start;
            let want = match (&found, want) {
                (_, Want::Need(_, _)) => want,
                (Some((ty, from)), _) => Want::Need(ty, Why::Same(*from)),
                (None, Want::Infer(_)) => want,
            };
            // Without `else` there is no value, but the blocks are not at fault.
            let want = if has_else { want } else { Want::Infer(None) };
            let result = self.block(blocks[at], want);
            end |= self.alive;
            match &result.outcome {
                Outcome::Wrong => wrong = true,
                Outcome::NoEnd => {}
                Outcome::Value(ty) if found.is_none() => found = Some((ty.clone(), result.span)),
                Outcome::Value(_) => {}
            }
            checked[at] = Some(result);
        }
        self.alive = end;
        if wrong {
            return None;
        }
        let ty = match (found, want) {
            (Some((ty, at)), _) if !has_else && ty != Type::Unit => {
                self.no_else(want, &ty, at, span);
                return None;
            }
            (_, Want::Need(ty, _)) if *ty != Type::Unit && !has_else => {
                self.no_else(want, ty, span, span);
                return None;
            }
            (_, Want::Need(ty, _)) => ty.clone(),
            (Some((ty, _)), _) => ty,
            (None, _) => Type::Unit,
        };
        Some((checked.into_iter().flatten().collect(), ty))
    }

    /// Reports an `if` without `else` that should have a value, or whose value is unused.
    fn no_else(&mut self, want: Want<'_>, ty: &Type, at: Span, span: Span) {
        if let Want::Need(Type::Unit, why) = want {
            let value = Expr { kind: ExprKind::Bool(false), ty: ty.clone(), span: at };
            self.mismatch(&value, &Type::Unit, why);
            return;
        }
        let message = "this `if` has a value only when its condition is true";
        let error = Diagnostic::error(ids::MISSING_ELSE, span, message);
        self.cx.report(error.hint("add an `else`"));
    }
}
