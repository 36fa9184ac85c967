//! Types.

use super::Parser;
use crate::source::Span;
use crate::syntax::ast::{MAX_BLOCKS, TypeExpr, TypeExprKind};
use crate::syntax::token::Token;

impl Parser<'_> {
    /// A type.
    pub(super) fn ty(&mut self) -> Option<TypeExpr> {
        match self.peek() {
            Token::Name => {
                let name = self.name()?;
                Some(TypeExpr { kind: TypeExprKind::Name(name), span: name.span, height: 1 })
            }
            Token::Star => self.pointer_type(),
            Token::LeftBracket => self.array_type(),
            found => {
                self.expected("a type");
                if found == Token::And {
                    self.hint_last("there are no references: write `*const T`, or `*mut T` to change the value");
                }
                None
            }
        }
    }

    /// `*const T` or `*mut T`, with any number of stars.
    fn pointer_type(&mut self) -> Option<TypeExpr> {
        let mut stars: Vec<(Span, bool)> = vec![];
        while self.peek() == Token::Star {
            let star = self.bump();
            let mutable = match self.peek() {
                Token::Mut => true,
                Token::Const => false,
                _ => {
                    self.expected("`const` or `mut`");
                    return None;
                }
            };
            self.bump();
            stars.push((star, mutable));
        }
        let mut ty = self.ty()?;
        for (star, mutable) in stars.into_iter().rev() {
            let span = star.to(ty.span);
            let height = ty.height;
            ty = self.type_node(
                TypeExprKind::Pointer { mutable, pointee: Box::new(ty) },
                span,
                height,
            )?;
        }
        Some(ty)
    }

    /// `[T; n]` or `[T]`.
    fn array_type(&mut self) -> Option<TypeExpr> {
        let ((element, length), span) =
            self.delimited(Token::LeftBracket, Token::RightBracket, |parser| {
                let element = parser.ty()?;
                let length =
                    if parser.eat(Token::Semicolon) { Some(parser.expression()?) } else { None };
                Some((Box::new(element), length))
            })?;
        let mut height = element.height;
        let kind = match length {
            Some(length) => {
                height = height.max(length.height);
                TypeExprKind::Array(element, Box::new(length))
            }
            None => TypeExprKind::Slice(element),
        };
        self.type_node(kind, span, height)
    }

    fn type_node(&mut self, kind: TypeExprKind, span: Span, inner: u16) -> Option<TypeExpr> {
        if inner >= MAX_BLOCKS {
            self.too_deep(span, MAX_BLOCKS);
            return None;
        }
        Some(TypeExpr { kind, span, height: inner + 1 })
    }

    /// A placeholder for a type that could not be parsed.
    pub(super) fn error_type(&self) -> TypeExpr {
        TypeExpr { kind: TypeExprKind::Error, span: self.span(), height: 1 }
    }
}
